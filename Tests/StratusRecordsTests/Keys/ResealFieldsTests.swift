import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

enum ResealGoldens {
    static func secret(_ version: UInt32, _ content: Bytes = [1, 2]) -> Field {
        Field(
            name: "secret",
            value: .sealed(
                FieldType(.string, isEncrypted: true),
                SealedFieldCoding.bytes(keyVersion: version, content: content)))
    }
}

/// Values that are sealed anew, in rows.
@Suite struct ResealFieldsTests {
    private var bench = AssetBench(Rows())

    init() throws {
        try self.bench.putKey(0)
        try self.bench.putKey(1)
        try self.bench.zone("Shelves")
    }

    private mutating func save(_ name: String, _ fields: [Field]) throws -> RecordRefusal? {
        let results = try self.bench.modify(
            in: "Shelves",
            [
                RecordOperation(
                    .forceUpdate, recordName: name, recordType: "Note", fields: fields)
            ])
        if case .refused(let refusal)? = results.first { return refusal }
        return nil
    }

    private mutating func old(below version: UInt32, after: String? = nil) throws
        -> SealedRecords
    {
        try self.bench.ask(
            SealedRecordsAsk(Bench.privateDatabase) {
                $0.zone = "Shelves"
                $0.after = after
                $0.below = version
            }
        ).get()
    }

    private mutating func reseal(
        _ items: [ResealFields.Item], as principal: Principal = Bench.system
    ) throws -> Result<ResealedFields, RequestRefusal> {
        try self.bench.apply(
            ResealFields(Bench.privateDatabase) {
                $0.zone = "Shelves"
                $0.items = items
            }, as: principal)
    }

    private func all(_ table: Table) throws -> [Bytes] {
        try self.bench.rows.view.rows(table, from: [], to: [], limit: .max).map { $0.key + $0.row }
    }

    private static func resealed(_ count: UInt64, older: UInt64)
        -> Result<ResealedFields, RequestRefusal>
    {
        .success(
            ResealedFields {
                $0.count = count
                $0.olderKeyCount = older
            })
    }

    private static func item(_ name: String, _ tag: ChangeTag, _ field: Field)
        -> ResealFields.Item
    {
        ResealFields.Item {
            $0.record = name
            $0.tag = tag
            $0.fields = [field]
        }
    }

    @Test mutating func `a value that is sealed anew changes neither tag nor feed`() throws {
        let title = Field(name: "title", value: .scalar(.string("x")))
        #expect(try self.save("a", [ResealGoldens.secret(1), title]) == nil)
        #expect(try self.save("b", [title]) == nil)
        try self.bench.putKey(2)
        let page = try self.old(below: 2)
        #expect(page.records.map(\.name) == ["a"] && page.next == nil)
        let record = try #require(page.records.first)
        let feed = try self.all(.feed)
        let zones = try self.all(.zone)
        let item = Self.item("a", record.tag, ResealGoldens.secret(2, [8, 9]))
        #expect(
            try self.reseal([item], as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        #expect(try self.reseal([item]) == Self.resealed(1, older: 1))
        #expect(try self.all(.feed) == feed)
        #expect(try self.all(.zone) == zones)
        #expect(try self.old(below: 2).records.isEmpty)
        let again = try #require(try self.old(below: 3).records.first)
        var expected = record
        expected.fields[0] = ResealGoldens.secret(2, [8, 9])
        #expect(again == expected)
    }

    @Test mutating func `what is not as it was read is left as it is`() throws {
        #expect(try self.save("a", [ResealGoldens.secret(1)]) == nil)
        let tag = try #require(try self.old(below: 2).records.first).tag
        let same = ResealGoldens.secret(2, [8, 9])
        // Nobody has made key 2 yet.
        #expect(try self.reseal([Self.item("a", tag, same)]) == Self.resealed(0, older: 0))
        try self.bench.putKey(2)
        let other = Field(name: "other", value: same.value)
        let plain = Field(name: "secret", value: .scalar(.string("x")))
        let items = [
            Self.item("a", ChangeTag(tag.raw + 1), same), Self.item("nobody", tag, same),
            Self.item("a", tag, ResealGoldens.secret(2, [1])),
            Self.item("a", tag, ResealGoldens.secret(1)),
            Self.item("a", tag, other), Self.item("a", tag, plain),
        ]
        for item in items {
            #expect(try self.reseal([item]) == Self.resealed(0, older: 1), "\(item)")
        }
        #expect(try self.old(below: 2).records.count == 1)
        #expect(try self.reseal([Self.item("a", tag, same)]) == Self.resealed(1, older: 1))
    }

    @Test mutating func `after a newer key nothing is saved under an old one`() throws {
        try self.bench.putKey(2)
        let refusal = RecordRefusal(.fieldKeyMissing, "secret")
        #expect(try self.save("a", [ResealGoldens.secret(1)]) == refusal)
        #expect(try self.save("a", [ResealGoldens.secret(2)]) == nil)
    }

    @Test mutating func `pages find every record once`() throws {
        for number in 0..<450 {
            let name = "n\(number)"
            let fields = number % 3 == 0 ? [] : [ResealGoldens.secret(1)]
            #expect(try self.save(name, fields) == nil)
        }
        try self.bench.putKey(2)
        var names: [String] = []
        var after: String?
        var count = 0
        repeat {
            let page = try self.old(below: 2, after: after)
            #expect(page.records.count <= ResealFields.recordCountMax)
            names += page.records.map(\.name)
            after = page.next
            count += 1
        } while after != nil && count < 100
        #expect(names.count == 300 && Set(names).count == 300)
        #expect(count >= 2)
    }

    @Test mutating func `large records end a page, and a command, before their count does`() throws
    {
        let large = Field(
            name: "text", value: .scalar(.bytes(Bytes(repeating: 7, count: 700_000))))
        for number in 0..<8 {
            #expect(try self.save("n\(number)", [ResealGoldens.secret(1), large]) == nil)
        }
        try self.bench.putKey(2)
        var records: [Record] = []
        var (after, count) = (nil as String?, 0)
        repeat {
            let page = try self.old(below: 2, after: after)
            #expect(page.records.count <= 1)
            records += page.records
            after = page.next
            count += 1
        } while after != nil && count < 100
        #expect(records.count == 8)
        let items = records.map {
            Self.item($0.name, $0.tag, ResealGoldens.secret(2, [8, 9]))
        }
        // The sixth passes the bound, and is the last.
        #expect(try self.reseal(items) == Self.resealed(6, older: 1))
        #expect(try self.reseal(Array(items[6...])) == Self.resealed(2, older: 1))
    }
}
