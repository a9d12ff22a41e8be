import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// The decision table of operation types: reference part 1, §5.2, row by row.
@Suite struct OperationTableTests {
    /// The table's entry for one kind in one situation.
    struct Row: Sendable, CustomTestStringConvertible {
        enum Answer: Sendable, Equatable {
            case saved(fields: [String])
            case deleted
            case refused(RecordRefusal.Reason)
        }
        enum Tag: Sendable { case none, right, stale }

        let kind: RecordOperation.Kind
        let exists: Bool
        let tag: Tag
        let answer: Answer

        var testDescription: String {
            "\(self.kind) of \(self.exists ? "an existing" : "a missing") record, tag \(self.tag)"
        }
    }

    static let rows: [Row] = [
        Row(kind: .create, exists: true, tag: .none, answer: .refused(.exists)),
        Row(kind: .create, exists: true, tag: .right, answer: .refused(.exists)),
        Row(kind: .create, exists: false, tag: .none, answer: .saved(fields: ["new"])),
        Row(kind: .create, exists: false, tag: .stale, answer: .saved(fields: ["new"])),
        Row(kind: .update, exists: true, tag: .right, answer: .saved(fields: ["new", "old"])),
        Row(kind: .update, exists: true, tag: .stale, answer: .refused(.tagMismatch)),
        Row(kind: .update, exists: true, tag: .none, answer: .refused(.tagMissing)),
        Row(kind: .update, exists: false, tag: .stale, answer: .refused(.notFound)),
        Row(kind: .forceUpdate, exists: true, tag: .none, answer: .saved(fields: ["new", "old"])),
        Row(kind: .forceUpdate, exists: true, tag: .stale, answer: .saved(fields: ["new", "old"])),
        Row(kind: .forceUpdate, exists: false, tag: .none, answer: .saved(fields: ["new"])),
        Row(kind: .replace, exists: true, tag: .right, answer: .saved(fields: ["new"])),
        Row(kind: .replace, exists: true, tag: .stale, answer: .refused(.tagMismatch)),
        Row(kind: .replace, exists: true, tag: .none, answer: .refused(.tagMissing)),
        Row(kind: .replace, exists: false, tag: .none, answer: .refused(.notFound)),
        Row(kind: .forceReplace, exists: true, tag: .stale, answer: .saved(fields: ["new"])),
        Row(kind: .forceReplace, exists: false, tag: .none, answer: .saved(fields: ["new"])),
        Row(kind: .delete, exists: true, tag: .none, answer: .deleted),
        Row(kind: .delete, exists: true, tag: .right, answer: .deleted),
        Row(kind: .delete, exists: true, tag: .stale, answer: .refused(.tagMismatch)),
        Row(kind: .delete, exists: false, tag: .none, answer: .refused(.notFound)),
        Row(kind: .forceDelete, exists: true, tag: .stale, answer: .deleted),
        Row(kind: .forceDelete, exists: false, tag: .none, answer: .deleted),
    ]

    @Test(arguments: Self.rows)
    func `operation types do what the table says`(row: Row) throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        var stored: Record?
        if row.exists { stored = try bench.modify(.create("book", [number("old", 1)]))[0].saved }
        let tag: String? =
            switch row.tag {
            case .none: nil
            case .right: stored?.tag.text
            case .stale: "zz9"
            }
        let before = bench.rows.contents
        let result = try bench.modify(
            RecordOperation(
                row.kind, recordName: "book", recordType: "Book", changeTag: tag,
                fields: row.kind.isDelete ? [] : [number("new", 2)]))[0]

        switch (row.answer, result) {
        case (.saved(let fields), .saved(let saved)):
            let record = try #require(saved.record)
            #expect(record.fields.map(\.name) == fields)
            #expect(try bench.lookup("book") == record)
            #expect(record.created == stored?.created ?? record.modified)
        case (.deleted, .deleted(let tag)):
            #expect((tag != nil) == row.exists)
            #expect(try bench.lookup("book") == nil)
        case (.refused(let reason), .refused(let refusal)):
            #expect(refusal.reason == reason)
            #expect(bench.rows.contents == before, "a refused operation changes nothing")
        default: Issue.record("\(row.answer) became \(result)")
        }
    }

    @Test func `create, forceUpdate and forceReplace of a missing record need its type`() throws {
        var bench = Bench()
        for kind in [RecordOperation.Kind.create, .forceUpdate, .forceReplace] {
            let result = try bench.modify(
                in: ZoneID.defaultName, RecordOperation(kind, recordName: "book"))[0]
            #expect(result.refusal == .typeMissing)
        }
    }

    @Test func `another recordType than the stored one is refused, none is valid`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let made = try #require(try bench.modify(.create("book"))[0].saved)
        let other = RecordOperation(
            .update, recordName: "book", recordType: "Loan", changeTag: made.tag.text)
        guard case .refused(let refusal) = try bench.modify(other)[0] else {
            Issue.record("saved")
            return
        }
        #expect(refusal == RecordRefusal(.typeMismatch, "Book"))
        #expect(try bench.modify(.update("book", made.tag))[0].saved?.type == "Book")
    }

    @Test func `clearing a field removes it, setting it beats clearing it`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("book", [number("a", 1), number("b", 2), number("c", 3)]))
        let result = try bench.modify(
            RecordOperation(
                .forceUpdate, recordName: "book", fields: [number("c", 4)],
                clearedFields: ["c", "b", "unknown", "b"]))[0]
        #expect(result.saved?.fields == [number("a", 1), number("c", 4)])
    }

    @Test func `an update that changes nothing still takes a new tag`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let made = try #require(try bench.modify(.create("book", [number("a", 1)]))[0].saved)
        let same = try #require(try bench.modify(.update("book", made.tag))[0].saved)
        #expect(same.fields == made.fields)
        #expect(same.tag > made.tag)
        #expect(same.modified.milliseconds > made.modified.milliseconds)
    }

    @Test func `created survives a replacement, and a record made again has a new one`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let made = try #require(try bench.modify(.create("book"))[0].saved)
        let replaced = try #require(
            try bench.modify(RecordOperation(.forceReplace, recordName: "book"))[0].saved)
        #expect(replaced.created == made.created)
        try bench.modify(.delete("book"))
        let again = try #require(try bench.modify(.create("book"))[0].saved)
        #expect(again.created.milliseconds > made.created.milliseconds)
        #expect(again.tag > replaced.tag)
    }

    @Test func `G-34 a name in two operations refuses the request, and so do too many and none`()
        throws
    {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        #expect(try bench.refusal([.create("a"), .create("b"), .delete("a")]) == .duplicateRecord)
        #expect(try bench.refusal([]) == .empty)
        #expect(try bench.refusal((0...200).map { .create("r\($0)") }) == .tooManyItems)
        #expect(try bench.changes().changes.isEmpty)
    }

    @Test func `a zone that does not exist refuses the request`() throws {
        var bench = Bench()
        #expect(try bench.refusal(in: "Nope", [.create("a")]) == .zoneNotFound)
        try bench.zones(.create, "Shelves")
        #expect(try bench.refusal(in: "Nope", [.create("a")]) == .zoneNotFound)
        let answer = try bench.ask(
            .lookup(RecordLookup(database: Bench.privateDatabase, zone: "Nope", names: ["a"])))
        #expect(answer == .refused(RequestRefusal(.zoneNotFound, "Nope")))
    }

    @Test func `G-29 operations are decided in order, each seeing those before it`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let results = try bench.modify(
            .create("a", [number("n", 1)]),
            RecordOperation(.update, recordName: "ghost", recordType: "Book"),
            .delete("gone"),
            RecordOperation(.forceUpdate, recordName: "b", recordType: "Book"))
        #expect(results.map { $0.saved?.name } == ["a", nil, nil, "b"])
        #expect(results[1].refusal == .notFound)
        #expect(results[2].isDeleted)
        #expect(try bench.changes().changes.map(\.name) == ["a", "b"])
    }

    @Test(
        arguments: [
            "", "_secret", "tab\there", "zero\u{0}", "naïve", String(repeating: "n", count: 256),
        ])
    func `G-35 a record name that breaks the rules is refused`(name: String) throws {
        var bench = Bench()
        #expect(
            try bench.modify(in: ZoneID.defaultName, .create(name))[0].refusal == .nameInvalid)
    }

    @Test(arguments: ["a/b", "photo:IN-1 (2)", String(repeating: "n", count: 255)])
    func `G-35 a record name within the rules is taken as it is`(name: String) throws {
        var bench = Bench()
        #expect(try bench.modify(in: ZoneID.defaultName, .create(name))[0].saved?.name == name)
    }

    @Test func `G-34 a record larger than a record may be is refused, one byte less is saved`()
        throws
    {
        var bench = Bench()
        let overhead = 1 + 1 + 1 + 1 + 2
        func sized(_ size: Int) -> [Field] {
            [Field(name: "b", value: .scalar(.bytes(Bytes(repeating: 7, count: size - overhead))))]
        }
        let rules = RecordRules(recordSizeMax: 1_000)
        let results = try bench.modify(
            in: ZoneID.defaultName, rules: rules, .create("fits", sized(1_000)),
            .create("not", sized(1_001)))
        #expect(results[0].saved != nil)
        #expect(results[1].refusal == .tooLarge)
        // A merge counts what is there already.
        let grown = try bench.modify(
            in: ZoneID.defaultName, rules: rules,
            RecordOperation(.forceUpdate, recordName: "fits", fields: [number("n", 1)]))
        #expect(grown[0].refusal == .tooLarge)
    }

    @Test func `a short GUID is given once and stays`() throws {
        var bench = Bench()
        let link = ShareLink(drawn: 7, part: 0, owner: 1)
        let other = ShareLink(drawn: 8, part: 0, owner: 1)
        let asked = RecordOperation(
            .create, recordName: "root", recordType: "Shelf", drawnShortGUID: link)
        #expect(
            try bench.modify(in: ZoneID.defaultName, asked)[0].saved?.shortGUID == link.text)
        let again = RecordOperation(
            .forceReplace, recordName: "root", recordType: "Shelf", drawnShortGUID: other)
        #expect(
            try bench.modify(in: ZoneID.defaultName, again)[0].saved?.shortGUID == link.text)
    }

    @Test func `I-12 modified never goes back in a zone, whatever the clock does`() throws {
        var bench = Bench()
        let made = try #require(
            try bench.modify(in: ZoneID.defaultName, .create("a"))[0].saved)
        bench.time = HybridTime(milliseconds: 5)
        let next = try #require(
            try bench.modify(in: ZoneID.defaultName, .create("b"))[0].saved)
        #expect(next.created.milliseconds == made.created.milliseconds)
    }
}
