import StratusModel
import StratusRecords
import Testing

/// The behaviours that Apple leaves unconfirmed (reference part 1, §17), each behind a switch.
@Suite struct SwitchTests {
    private func results(
        _ flags: RecordRules.Flags, _ operation: (Record) -> RecordOperation
    ) throws -> ModifiedRecords.Result {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let made = try #require(try bench.modify(.create("book", [number("n", 1)]))[0].saved)
        return try bench.modify(rules: RecordRules(flags: flags), operation(made))[0]
    }

    @Test func `deleteMissingSucceeds: delete of a missing record succeeds`() throws {
        let operation = RecordOperation(.delete, recordName: "ghost")
        #expect(try self.results([]) { _ in operation }.refusal == .notFound)
        #expect(try self.results(.deleteMissingSucceeds) { _ in operation }.isDeleted)
    }

    @Test func `tagIsOptional: an update without a tag is not checked, one with a tag is`() throws {
        #expect(try self.results(.tagIsOptional) { _ in .update("book", nil) }.saved != nil)
        let stale = try self.results(.tagIsOptional) { _ in .update("book", ChangeTag(99)) }
        #expect(stale.refusal == .tagMismatch)
    }

    @Test func `repeatedCreateSucceeds: the same create again answers the record it made`() throws {
        let flags = RecordRules.Flags.repeatedCreateSucceeds
        let same = try self.results(flags) { _ in .create("book", [number("n", 1)]) }
        #expect(same.saved?.fields == [number("n", 1)])
        let other = try self.results(flags) { _ in .create("book", [number("n", 2)]) }
        #expect(other.refusal == .exists)
    }

    @Test func `repeatedCreateSucceeds: not after another write, and not for another user`() throws
    {
        var bench = Bench()
        let rules = RecordRules(flags: .repeatedCreateSucceeds)
        let create = RecordOperation.create("book", [number("n", 1)])
        let database = Bench.publicDatabase
        try bench.modify(in: ZoneID.defaultName, of: database, create)
        let stranger = Principal(kind: .user, userRecordName: "_stranger")
        #expect(
            try bench.modify(
                in: ZoneID.defaultName, of: database, as: stranger, rules: rules, create)[0]
                .refusal == .exists)
        try bench.modify(
            in: ZoneID.defaultName, of: database,
            RecordOperation(.forceUpdate, recordName: "book"))
        #expect(
            try bench.modify(in: ZoneID.defaultName, of: database, rules: rules, create)[0]
                .refusal == .exists)
    }

    @Test func `typeMismatchIsIgnored: the stored type stays`() throws {
        let result = try self.results(.typeMismatchIsIgnored) {
            RecordOperation(
                .update, recordName: "book", recordType: "Loan", changeTag: $0.tag.text)
        }
        #expect(result.saved?.type == "Book")
    }

    @Test func `crossZoneReferencesAllowed: a NONE reference may leave its zone`() throws {
        let plain = reference("r", to: "x", .none, zone: "Elsewhere")
        let acting = reference("r", to: "x", .deleteSelf, zone: "Elsewhere")
        #expect(try self.results([]) { _ in .create("c", [plain]) }.refusal == .crossZoneReference)
        let flags = RecordRules.Flags.crossZoneReferencesAllowed
        #expect(try self.results(flags) { _ in .create("c", [plain]) }.saved != nil)
        #expect(
            try self.results(flags) { _ in .create("c", [acting]) }.refusal == .crossZoneReference)
    }

    @Test func `existingZoneIsRefused: creating an existing zone fails instead of answering it`()
        throws
    {
        var bench = Bench()
        let first = try bench.zones(.create, "Shelves")
        #expect(try bench.zones(.create, "Shelves") == first)
        let rules = RecordRules(flags: .existingZoneIsRefused)
        #expect(try bench.zones(.create, "Shelves", rules: rules) == [.refused(.exists)])
    }

    @Test func `batchesInDefaultZoneMayBeAtomic: else the request is refused`() throws {
        var bench = Bench()
        #expect(
            try bench.refusal(in: ZoneID.defaultName, atomic: true, [.create("a")])
                == .atomicInDefaultZone)
        let rules = RecordRules(flags: .batchesInDefaultZoneMayBeAtomic)
        let results = try bench.modify(
            in: ZoneID.defaultName, atomic: true, rules: rules, .create("a"),
            .update("ghost", nil))
        #expect(results.map(\.refusal) == [.atomicFailure, .notFound])
    }
}
