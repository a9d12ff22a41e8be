import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

enum RewrapGoldens {
    static let old = WrappedKey {
        $0.wrapped = [1, 2, 3]
        $0.check = Bytes(repeating: 7, count: 8)
    }
    static let new = WrappedKey {
        $0.wrapped = [4, 5]
        $0.wrappingVersion = 300
        $0.check = Bytes(repeating: 8, count: 8)
    }
}

/// Keys of databases that are wrapped under a newer key of their container, in rows.
@Suite struct RewrapKeyTests {
    private var bench = AssetBench(Rows())

    private mutating func put(_ version: UInt32, _ key: WrappedKey, of database: DatabaseID) throws
    {
        let put = PutKey(database) {
            $0.version = version
            $0.key = key
        }
        _ = try self.bench.apply(put).get()
    }

    private mutating func rewrap(
        _ version: UInt32, from old: WrappedKey, to new: WrappedKey,
        as principal: Principal = Bench.system
    ) throws -> Result<DatabaseKey, RequestRefusal> {
        try self.bench.apply(
            RewrapKey(Bench.privateDatabase) {
                $0.version = version
                $0.old = old
                $0.new = new
            }, as: principal)
    }

    private static func key(_ version: UInt32, _ key: WrappedKey?)
        -> Result<DatabaseKey, RequestRefusal>
    {
        .success(
            DatabaseKey {
                $0.version = version
                $0.key = key
            })
    }

    private static func ask(after: Bytes? = nil) -> WrappedKeysAsk {
        WrappedKeysAsk {
            $0.container = Bench.container
            $0.check = RewrapGoldens.old.check
            $0.after = after
        }
    }

    private mutating func page(after: Bytes? = nil) throws -> WrappedKeysPage {
        try self.bench.ask(Self.ask(after: after)).get()
    }

    @Test mutating func `a key is replaced only as it was read`() throws {
        let (old, new) = (RewrapGoldens.old, RewrapGoldens.new)
        try self.put(0, old, of: Bench.privateDatabase)
        try self.put(1, old, of: Bench.privateDatabase)
        #expect(
            try self.rewrap(1, from: old, to: new, as: Bench.user)
                == .failure(RequestRefusal(.accessDenied)))
        #expect(
            try self.rewrap(1, from: old, to: new) == Self.key(1, new))
        #expect(try self.page().items.map(\.version) == [0])
        // One that comes late, from before somebody else wrapped it.
        var late = new
        late.wrapped = [6]
        #expect(
            try self.rewrap(1, from: old, to: late) == Self.key(1, new))
        // No such version.
        #expect(
            try self.rewrap(2, from: old, to: new) == Self.key(2, nil))
    }

    @Test mutating func `a key that an erasure has destroyed does not come back`() throws {
        let (old, new) = (RewrapGoldens.old, RewrapGoldens.new)
        try self.put(1, old, of: Bench.privateDatabase)
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase)))
        #expect(
            try self.rewrap(1, from: old, to: new) == Self.key(1, nil))
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
            #expect(page.items.count <= WrappedKeysAsk.keyCountMax)
            found += page.items.map(\.database.owner)
            after = page.next
            pageCount += 1
        } while after != nil && pageCount < 100
        #expect(found == expected)
        #expect(pageCount >= 5)
        // Nothing is another container's.
        var ask = Self.ask()
        #expect(
            try self.bench.ask(ask, as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        ask.container.container += ".other"
        #expect(try self.bench.ask(ask).get().items.isEmpty)
    }
}
