import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

enum RewrapGoldens {
    static let old = WrappedKey(
        wrapped: [1, 2, 3], wrappingVersion: 0, check: Bytes(repeating: 7, count: 8))
    static let new = WrappedKey(
        wrapped: [4, 5], wrappingVersion: 300, check: Bytes(repeating: 8, count: 8))

    static let commands: [(name: String, command: RecordCommand)] = [
        (
            "command-rewrap-key-1",
            .rewrapKey(
                RewrapKey(
                    database: Bench.privateDatabase, version: 300, old: Self.old, new: Self.new))
        )
    ]

    static let queries: [RecordQuery.Ask] = [
        .wrappedKeys(
            WrappedKeysAsk(container: Bench.privateDatabase.container, check: Self.old.check)),
        .wrappedKeys(
            WrappedKeysAsk(
                container: Bench.privateDatabase.container, check: Self.old.check,
                after: [0, 0, 0, 1, 0, 0, 0, 2])),
    ]

    static let answers: [RecordAnswer] = [
        .wrappedKeys(WrappedKeysPage(items: [], next: nil)),
        .wrappedKeys(
            WrappedKeysPage(
                items: [
                    .init(database: Bench.privateDatabase, version: 300, key: Self.old),
                    .init(database: Bench.publicDatabase, version: 0, key: Self.new),
                ], next: [9])),
    ]
}

/// Keys of databases that are wrapped under a newer key of their container, in rows.
@Suite struct RewrapKeyTests {
    private var bench = AssetBench(Rows())

    private mutating func put(_ version: UInt32, _ key: WrappedKey, of database: DatabaseID) throws
    {
        _ = try self.bench.apply(
            .putKey(PutKey(database: database, version: version, key: key)))
    }

    private mutating func rewrap(
        _ version: UInt32, from old: WrappedKey, to new: WrappedKey,
        as principal: Principal = Bench.system
    ) throws -> RecordOutcome {
        try self.bench.apply(
            .rewrapKey(
                RewrapKey(
                    database: Bench.privateDatabase, version: version, old: old, new: new)),
            as: principal)
    }

    private mutating func page(after: Bytes? = nil, as principal: Principal = Bench.system) throws
        -> WrappedKeysPage
    {
        let ask = WrappedKeysAsk(
            container: Bench.privateDatabase.container, check: RewrapGoldens.old.check,
            after: after)
        guard case .wrappedKeys(let page) = try self.bench.ask(.wrappedKeys(ask), as: principal)
        else { throw BenchError("no page") }
        return page
    }

    @Test mutating func `a key is replaced only as it was read`() throws {
        let (old, new) = (RewrapGoldens.old, RewrapGoldens.new)
        try self.put(0, old, of: Bench.privateDatabase)
        try self.put(1, old, of: Bench.privateDatabase)
        #expect(
            try self.rewrap(1, from: old, to: new, as: Bench.user)
                == .refused(RequestRefusal(.accessDenied)))
        #expect(
            try self.rewrap(1, from: old, to: new) == .key(DatabaseKey(version: 1, key: new)))
        #expect(try self.page().items.map(\.version) == [0])
        // One that comes late, from before somebody else wrapped it.
        var late = new
        late.wrapped = [6]
        #expect(
            try self.rewrap(1, from: old, to: late) == .key(DatabaseKey(version: 1, key: new)))
        // No such version.
        #expect(
            try self.rewrap(2, from: old, to: new) == .key(DatabaseKey(version: 2, key: nil)))
    }

    @Test mutating func `a key that an erasure has destroyed does not come back`() throws {
        let (old, new) = (RewrapGoldens.old, RewrapGoldens.new)
        try self.put(1, old, of: Bench.privateDatabase)
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase)))
        #expect(
            try self.rewrap(1, from: old, to: new) == .key(DatabaseKey(version: 1, key: nil)))
        #expect(try self.page().items.isEmpty)
    }

    @Test mutating func `the pages name every key under the older one, and no other`() throws {
        var expected: [String] = []
        for number in 0..<700 {
            var database = Bench.privateDatabase
            database.owner = "owner\(number)"
            let isOld = number % 3 != 0
            try self.put(1, isOld ? RewrapGoldens.old : RewrapGoldens.new, of: database)
            if isOld { expected.append(database.owner) }
        }
        var (found, after, pageCount) = ([String](), nil as Bytes?, 0)
        repeat {
            let page = try self.page(after: after)
            #expect(page.items.count <= RecordState.wrappedKeyCountMax)
            found += page.items.map(\.database.owner)
            after = page.next
            pageCount += 1
        } while after != nil && pageCount < 100
        #expect(found == expected)
        #expect(pageCount >= 5)
        // Nothing is another container's.
        var ask = WrappedKeysAsk(
            container: Bench.privateDatabase.container, check: RewrapGoldens.old.check)
        #expect(
            try self.bench.ask(.wrappedKeys(ask), as: Bench.user)
                == .refused(RequestRefusal(.accessDenied)))
        ask.container.container += ".other"
        guard case .wrappedKeys(let none) = try self.bench.ask(.wrappedKeys(ask)) else {
            throw BenchError("no page")
        }
        #expect(none.items.isEmpty)
    }
}
