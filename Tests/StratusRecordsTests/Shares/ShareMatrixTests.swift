import StratusCoding
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRows
import Testing

@testable import StratusRecords

/// Who may do what in whose zone. A kind of command or question without a line here fails the test.
@Suite struct ShareMatrixTests {
    private enum Caller: String, CaseIterable {
        case owner, readOnly, readWrite, former, invited, stranger, serverKey, anonymous

        var principal: Principal {
            switch self {
            case .owner: Bench.user
            case .serverKey: Principal(kind: .serverKey, userRecordName: "_readWrite")
            case .anonymous: Principal(kind: .anonymous)
            default: Principal(kind: .user, userRecordName: "_\(self.rawValue)")
            }
        }
    }

    private enum Place: String, CaseIterable {
        /// The owner's zone that is shared, one that is not, and a zone of the caller's own.
        case shared, other, own
    }

    /// What a line of the matrix may expect.
    private enum Need {
        case everybody, owner, system, link, reader
    }

    private enum Verdict: String {
        case allowed, denied, missing
    }

    private static func expected(_ need: Need, _ caller: Caller, _ place: Place) -> Verdict {
        // Anonymous callers own nothing: the database in question is the owner's then.
        let isOwn = caller == .owner || place == .own && caller != .anonymous
        switch need {
        case .everybody: return .allowed
        case .system: return .denied
        case .owner: return isOwn ? .allowed : .denied
        case .link: return caller == .serverKey || caller == .anonymous ? .denied : .allowed
        case .reader:
            if isOwn { return .allowed }
            if caller == .serverKey || caller == .anonymous { return .denied }
            let reads = place == .shared && (caller == .readOnly || caller == .readWrite)
            return reads ? .allowed : .missing
        }
    }

    private static func bench() throws -> ShareBench {
        var bench = ShareBench()
        try bench.bench.zones(.create, "Other")
        try bench.bench.modify(in: "Other", .create("a"))
        for caller in Caller.allCases where !caller.principal.userRecordName.isEmpty {
            let home = ShareBench.home(of: caller.principal.userRecordName)
            try bench.makeOwnZone(in: home)
        }
        try bench.share(people: [.user("_former"), .user("_readOnly")])
        try bench.join("_former")
        try bench.join("_readOnly")
        var draft = bench.draft([
            .user("_readOnly"), .user("_readWrite"), .user("_invited"),
        ])
        draft.invitations[1].permission = .readWrite
        try bench.save(draft)
        try bench.join("_readWrite")
        return bench
    }

    private static func place(_ place: Place, _ caller: Caller) -> (DatabaseID, zone: String) {
        let user = caller.principal.userRecordName
        switch place {
        case .shared: return (Bench.privateDatabase, ShareBench.zone)
        case .other: return (Bench.privateDatabase, "Other")
        case .own where user.isEmpty: return (Bench.privateDatabase, "Own")
        case .own: return (ShareBench.home(of: user), "Own")
        }
    }

    private static func verdict(_ refusal: RequestRefusal?) -> Verdict {
        switch refusal?.reason {
        case .accessDenied: .denied
        case .zoneNotFound: .missing
        default: .allowed
        }
    }

    // MARK: Questions

    private static func line(
        of kind: RecordQuery.Kind, _ database: DatabaseID, _ zone: String
    ) -> (need: Need, ask: RecordQuery.Ask)? {
        let predicate = RecordPredicate(recordType: "Book")
        switch kind {
        case .lookup:
            return (
                .reader, .lookup(RecordLookup(database: database, zone: zone, names: ["a"]))
            )
        case .zoneChanges:
            return (.reader, .zoneChanges(ZoneChangesAsk(database: database, zone: zone)))
        case .page:
            return (
                .reader,
                .page(QueryPageAsk(database: database, zone: zone, predicate: predicate))
            )
        case .judge:
            let modify = ModifyRecords(
                database: database, zone: zone, drawnIncarnation: ZoneIncarnation(1),
                operations: [.create("z")])
            return (.reader, .judge(JudgeAsk(modify, schemaVersion: 0, growth: [])))
        case .zones: return (.owner, .zones(database, names: nil))
        case .zonePage: return (.owner, .zonePage(database, after: nil, limit: 10))
        case .databaseChanges:
            return (.owner, .databaseChanges(DatabaseChangesAsk(database: database)))
        case .use: return (.owner, .use(database))
        // Their forms are those of the goldens, by the need that the list of needs has.
        case .schema, .jobs, .work, .buckets, .documents, .heldRecords:
            return nil
        }
    }

    @Test func `each question is answered to those who may ask it`() throws {
        let bench = try Self.bench()
        for kind in RecordQuery.Kind.allCases {
            for caller in Caller.allCases {
                for place in Place.allCases {
                    let (database, zone) = Self.place(place, caller)
                    guard let (need, ask) = Self.line(of: kind, database, zone) else { continue }
                    let answer = try bench.bench.ask(ask, as: caller.principal)
                    let verdict: Verdict
                    switch answer {
                    case .refused(let refusal): verdict = Self.verdict(refusal)
                    case .zoneRefused(.notFound): verdict = .missing
                    default: verdict = .allowed
                    }
                    // Keys may not see how much there is.
                    if kind == .use, caller == .serverKey { continue }
                    // There is no such zone.
                    if place == .own, caller == .anonymous { continue }
                    #expect(
                        verdict == Self.expected(need, caller, place),
                        "\(kind) of \(caller) in \(place)")
                }
            }
        }
    }

    /// The questions about a database that have no line above: nobody but its owner is answered.
    @Test func `what has no line is the owner's, or of no database`() throws {
        let bench = try Self.bench()
        for ask in GoldenTests.queries {
            let query = RecordQuery(principal: Bench.user, ask)
            guard let database = query.database, database.scope == .private,
                Self.line(of: query.kind, database, "Other") == nil
            else { continue }
            #expect(ask.need == .owner || ask.need == .system)
            for caller in Caller.allCases where caller != .owner {
                let answer = try bench.bench.ask(ask, as: caller.principal)
                #expect(
                    answer == .refused(RequestRefusal(.accessDenied)), "\(query.kind) of \(caller)")
            }
        }
    }

    @Test func `a zone is found by its name by those who may read in it`() throws {
        let bench = try Self.bench()
        for caller in Caller.allCases {
            let answer = try bench.bench.ask(
                .zones(Bench.privateDatabase, names: [ShareBench.zone, "Other", "Missing"]),
                as: caller.principal)
            guard case .zones(let zones) = answer else {
                Issue.record("\(answer)")
                continue
            }
            let isFound = zones.map { if case .zone = $0 { true } else { false } }
            let reads = [.owner, .readOnly, .readWrite].contains(caller)
            #expect(isFound == [reads, caller == .owner, false], "\(caller)")
        }
    }

    @Test func `each question that is a type is answered to those who may ask it`() throws {
        let bench = try Self.bench()
        for row in RecordState.questions.rows {
            let need = try #require(Self.typedNeeds["\(row.type)"], "\(row.type) has no line")
            for caller in Caller.allCases {
                for place in Place.allCases {
                    if place == .own, caller == .anonymous { continue }
                    let (database, zone) = Self.place(place, caller)
                    let refusal = try Self.ask(row.type, database, zone, caller, bench)
                    #expect(
                        Self.verdict(refusal) == Self.expected(need, caller, place),
                        "\(row.type) of \(caller) in \(place)")
                }
            }
        }
    }

    private static let typedNeeds: [String: Need] = [
        "KeyAsk": .system, "SealedRecordsAsk": .system, "OlderFilesAsk": .system,
        "WrappedKeysAsk": .system, "ShareByLinkAsk": .link, "ShareDetailAsk": .reader,
        "SharedZonesAsk": .owner, "PutKey": .system, "RewrapKey": .system, "RetireKeys": .system,
        "ResealFields": .system, "JoinShare": .link, "LeaveShares": .reader,
        "NoteSharedZone": .system, "PinAsset": .owner, "HoldAssets": .owner, "LoseBody": .system,
        "FindBody": .system, "ReplaceBody": .system, "AssetAsk": .system, "LostFilesAsk": .system,
        "DatabaseFilesAsk": .system, "AssetRowsAsk": .system, "BodiesAsk": .system,
        "SubscriptionsAsk": .owner, "NewsAsk": .owner, "WaitingDevicesAsk": .system,
        "AudienceAsk": .owner, "ModifySubscriptions": .owner, "FollowNews": .system,
        "ModifyKeyValues": .owner, "KeyValuesAsk": .owner, "KeyValueDevicesAsk": .owner,
    ]

    private static func ask<Question: PartitionQuestion>(
        _ type: Question.Type, _ database: DatabaseID, _ zone: String, _ caller: Caller,
        _ bench: ShareBench
    ) throws -> RequestRefusal? where Question.State == RecordState {
        var question = Question()
        if var asked = question as? any DatabaseQuestion {
            asked.database = database
            if var detail = asked as? ShareDetailAsk {
                detail.zone = zone
                asked = detail
            }
            question = try #require(asked as? Question)
        }
        if case .failure(let refusal) = try bench.ask(question, as: caller.principal) {
            return refusal
        }
        return nil
    }

    // MARK: Commands

    private static func line(
        of kind: RecordCommand.Kind, _ database: DatabaseID, _ zone: String
    ) -> (need: Need, command: RecordCommand)? {
        switch kind {
        case .modifyRecords:
            return (
                .reader,
                .modifyRecords(
                    ModifyRecords(
                        database: database, zone: zone, drawnIncarnation: ZoneIncarnation(1),
                        operations: [RecordOperation(.forceUpdate, recordName: "a")]))
            )
        case .modifyZones:
            return (
                .owner,
                .modifyZones(
                    ModifyZones(
                        database: database,
                        operations: [
                            ModifyZones.Operation(
                                .delete, zone: zone, drawnIncarnation: ZoneIncarnation(1))
                        ]))
            )
        case .eraseDatabase: return (.system, .eraseDatabase(EraseDatabase(database: database)))
        case .continueJobs: return (.system, .continueJobs(ContinueJobs()))
        case .recover: return (.system, .recover)
        case .auditLinks: return (.system, .auditLinks(AuditLinks(database: database)))
        // Their forms are those of the goldens.
        case .installSchema, .extendSchema, .reserveReferences, .noteBuckets, .modifyDocuments,
            .forgetOutcomes:
            return nil
        }
    }

    @Test func `each command is carried out for those who may ask for it`() throws {
        let bench = try Self.bench()
        for kind in RecordCommand.Kind.allCases {
            for caller in Caller.allCases {
                for place in Place.allCases {
                    if place == .own, caller == .anonymous { continue }
                    let (database, zone) = Self.place(place, caller)
                    guard let (need, command) = Self.line(of: kind, database, zone) else {
                        continue
                    }
                    var copy = bench.bench.copied()
                    let before = copy.rows.contents
                    let outcome = try copy.apply(command, as: caller.principal)
                    var refusal: RequestRefusal?
                    if case .refused(let found) = outcome { refusal = found }
                    let verdict = Self.verdict(refusal)
                    #expect(
                        verdict == Self.expected(need, caller, place),
                        "\(kind) of \(caller) in \(place)")
                    if verdict != .allowed { #expect(copy.rows.contents == before) }
                }
            }
        }
    }

    @Test func `commands without a line are the owner's, or of no database`() throws {
        let bench = try Self.bench()
        for (name, command) in GoldenTests.commands {
            guard let database = command.database, database.scope == .private,
                Self.line(of: command.kind, database, "Other") == nil
            else { continue }
            for caller in Caller.allCases where caller != .owner {
                var copy = bench.bench.copied()
                let outcome = try copy.apply(command, as: caller.principal)
                #expect(
                    outcome == .refused(RequestRefusal(.accessDenied)), "\(name) of \(caller)")
            }
        }
    }

    @Test func `each operation that is a type is carried out for those who may`() throws {
        let bench = try Self.bench()
        for row in RecordState.operations.rows {
            let need = try #require(Self.typedNeeds["\(row.type)"], "\(row.type) has no line")
            for caller in Caller.allCases {
                for place in Place.allCases {
                    if place == .own, caller == .anonymous { continue }
                    let (database, zone) = Self.place(place, caller)
                    var copy = bench.bench.copied()
                    let refusal = try Self.apply(row.type, database, zone, caller, &copy)
                    var expected = Self.expected(need, caller, place)
                    // Nobody leaves what is their own.
                    if "\(row.type)" == "LeaveShares", caller == .owner || place == .own {
                        expected = .denied
                    }
                    #expect(
                        Self.verdict(refusal) == expected, "\(row.type) of \(caller) in \(place)")
                }
            }
        }
    }

    private static func apply<Operation: PartitionOperation>(
        _ type: Operation.Type, _ database: DatabaseID, _ zone: String, _ caller: Caller,
        _ bench: inout Bench
    ) throws -> RequestRefusal? where Operation.State == RecordState {
        var random = SeededGenerator(seed: 1)
        var operation = Drawing.value(type, from: &random)
        if var leave = operation as? LeaveShares {
            leave.zone = zone
            operation = try #require(leave as? Operation)
        }
        if !operation.take(OperationHead(database: database)) {
            _ = operation.take(OperationHead())
        }
        if case .failure(let refusal) = try bench.apply(operation, as: caller.principal) {
            return refusal
        }
        return nil
    }

    // MARK: Records

    @Test func `in a shared zone each operation is carried out for those who may write`() throws {
        let bench = try Self.bench()
        let kinds: [RecordOperation] = [
            .create("z"), RecordOperation(.forceUpdate, recordName: "a"),
            RecordOperation(.forceReplace, recordName: "a"), .delete("a"), .delete("missing"),
        ]
        for caller in [Caller.owner, .readOnly, .readWrite] {
            for operation in kinds {
                var copy = bench.bench.copied()
                let result = try copy.modify(as: caller.principal, operation)[0]
                #expect((result.refusal == .writeDenied) == (caller == .readOnly))
            }
            // A share is its owner's alone, and so is its record.
            var copy = bench
            copy.bench = bench.bench.copied()
            let result = try copy.save(copy.draft(), as: caller.principal)
            #expect((result.saved != nil) == (caller == .owner), "\(result)")
            #expect(caller == .owner || result.refusal == .writeDenied)
        }
    }
}
