import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Compares the registry of numbers with what this module's decoders accept, and with their reading
/// of newer ones.
@Suite struct RecordLevelTests {
    private static let container = ContainerReference(
        container: "iCloud.org.example", environment: .production)

    /// Whether the decoder knows the kind, whatever it makes of the missing bytes after it.
    private static func knows(
        _ body: Bytes, kindAt offset: Int, _ decode: (Bytes) throws(DecodingError) -> Void
    ) -> Bool {
        do throws(DecodingError) {
            try decode(body)
            return true
        } catch {
            if case .unknownNumber = error.kind { return false }
            return error != DecodingError(.malformed, at: offset)
        }
    }

    @Test func `every number that is decoded is registered, and the other way round`() {
        for number in UInt8.min...UInt8.max {
            #expect(
                (RecordCommand.Kind(rawValue: number) != nil
                    || RecordState.operations.row(of: [1, number]) != nil)
                    == (NumberFamily.recordCommand.level(of: number) != nil), "command \(number)")
            #expect(
                (RecordQuery.Kind(rawValue: number) != nil
                    || RecordState.questions.row(number) != nil)
                    == (NumberFamily.recordQuery.level(of: number) != nil), "query \(number)")
            #expect(
                Self.knows([1, number], kindAt: 1) { (bytes) throws(DecodingError) in
                    _ = try IdentityQuery(decoding: bytes)
                } == (NumberFamily.identityQuery.level(of: number) != nil), "query \(number)")
            #expect(
                (IdentityKey.Kind(rawValue: number) != nil)
                    == (NumberFamily.identityRow.level(of: number) != nil), "row \(number)")
            #expect(
                (FieldIndex.Kind(rawValue: number) != nil)
                    == (NumberFamily.indexKind.level(of: number) != nil), "index \(number)")
            #expect(
                (BucketMail.Kind(rawValue: number) != nil)
                    == (NumberFamily.mail.level(of: number) != nil), "mail \(number)")
        }
        #expect(
            NumberFamily.job.entries.map(\.number) == [
                Job.cascadeKind, Job.trimKind, Job.purgeKind, IndexJob.Kind.fill.rawValue,
                IndexJob.Kind.drop.rawValue, Job.dispatchKind, Job.recallKind, Job.letterKind,
                Job.auditKind, IndexJob.Kind.clear.rawValue,
            ])
    }

    private static func agree<Value: RawRepresentable<UInt8>>(
        _ type: Value.Type, _ family: NumberFamily
    ) -> Bool {
        (UInt8.min...UInt8.max).allSatisfy {
            (Value(rawValue: $0) != nil) == (family.level(of: $0) != nil)
        }
    }

    @Test func `the enumerations that stand in rows, commands and outcomes are registered`() {
        #expect(Self.agree(RecordOperation.Kind.self, .recordOperation))
        #expect(Self.agree(ModifyZones.Kind.self, .zoneEdit))
        #expect(Self.agree(Subscription.Kind.self, .subscriptionKind))
        #expect(Self.agree(DocumentItem.Kind.self, .documentKind))
        #expect(Self.agree(DocumentOperation.Clash.self, .documentClash))
        #expect(Self.agree(InboundLink.State.self, .linkState))
        #expect(Self.agree(FieldIndex.State.self, .indexState))
        #expect(Self.agree(RecordRefusal.Reason.self, .recordRefusal))
        #expect(Self.agree(ZoneRefusal.self, .zoneRefusal))
        #expect(Self.agree(DeletionReason.self, .deletionReason))
        #expect(Self.agree(EncryptionScope.self, .encryptionScope))
        #expect(Self.agree(RequestRefusal.Reason.self, .requestRefusal))
        #expect(Self.agree(SubscriptionResult.self, .subscriptionResult))
        #expect(Self.agree(KeyValueRefusal.self, .keyValueRefusal))
        #expect(Self.agree(DocumentRefusal.self, .documentRefusal))
        #expect(Self.agree(ReplacedBody.self, .replacedBody))
    }

    // MARK: Reading

    @Test func `a subscription is as new as its comparators and selectors`() throws {
        let state = DataState()
        var predicate = RecordPredicate(recordType: "A")
        predicate.filters = [
            RecordFilter(
                field: .system(.recordName), comparator: .notListMemberBeginsWith,
                operand: .scalar(.string("x")))
        ]
        let subscription = Subscription(
            "s", .query, predicate: predicate, reasons: .created, content: [])
        let database = DatabaseID(container: Self.container, scope: .public, owner: "")
        let command = ModifySubscriptions(database) { $0.operations = [.create(subscription)] }
        var body = command.encoded()
        #expect(state.reading(of: Self.command(.records, body)) == .readable(since: .one))
        // The selector, then the comparator, behind the type's name.
        let known: Bytes = [1, 21, 1]
        let place = try #require(
            body.indices.dropLast(2).last { Bytes(body[$0..<($0 + 3)]) == known })
        body[place + 1] = 22
        #expect(state.reading(of: Self.command(.records, body)) == .newer("comparator 22"))
        body[place] = 8
        #expect(state.reading(of: Self.command(.records, body)) == .newer("system field 8"))
        body[place] = 1
        body[place + 1] = 0
        #expect(state.reading(of: Self.command(.records, body)) == .malformed)
    }

    private static func command(_ kind: Command.Kind, _ body: Bytes) -> Command {
        Command(
            kind: kind, identity: RequestIdentity(high: 1, low: 1), deadlineMilliseconds: 1,
            container: Self.container, schemaVersion: 0, principal: Principal(kind: .system),
            body: body)
    }

    @Test func `an identity command is as new as the newest row it names`() {
        let state = DataState()
        var body = IdentityCommand([IdentityCommand.Edit(IdentityKey(.account, of: [7]), .remove)])
            .encoded()
        #expect(state.reading(of: Self.command(.identity, body)) == .readable(since: .one))
        body[2] = 200
        #expect(state.reading(of: Self.command(.identity, body)) == .newer("identity row 200"))
        body[2] = 0
        #expect(state.reading(of: Self.command(.identity, body)) == .malformed)
        body[0] = 9
        #expect(
            state.reading(of: Self.command(.identity, body)) == .newer("identity command version 9")
        )
    }

    @Test func `a delivery is as new as the newest mail in it`() {
        let state = DataState()
        func reading(_ bodies: [Bytes]) -> CommandReading {
            let mails = bodies.enumerated().map {
                Mail(sequence: UInt64($0.offset + 1), sentAt: .zero, body: $0.element)
            }
            let bag = MailBag(MailRoute(from: GroupID(1), to: GroupID(2)), mails)
            return state.reading(of: Self.command(.mail, MailCommand.deliver(bag).encoded()))
        }
        #expect(reading([[1, 1], [1, 7]]) == .readable(since: .one))
        #expect(reading([[1, 1], [1, 99]]) == .newer("mail 99"))
        #expect(reading([[2, 1]]) == .newer("mail version 2"))
        #expect(reading([[1, 1], []]) == .malformed)
    }
}
