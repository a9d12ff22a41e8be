import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

/// The promises of ``Rows``. Each test runs over rows in memory, over rows that SQLite has, and over
/// those of a batch that it does not have yet.
@Suite struct RowsContract {
    enum Kind: String, CaseIterable, CustomTestStringConvertible {
        case memory, sqlite, batch
        var testDescription: String { self.rawValue }
    }

    struct Store {
        let rows: Rows
        private let kind: Kind

        init(_ kind: Kind) throws {
            self.kind = kind
            switch kind {
            case .memory: self.rows = Rows()
            case .sqlite, .batch: self.rows = Rows(over: try RowsContract.file())
            }
            if kind == .batch { self.rows.begin() }
        }

        private func end() throws {
            if self.kind == .sqlite { try self.rows.commit() }
        }

        func put(_ key: Bytes, _ row: Bytes, _ table: Table = .record) throws {
            try self.rows.put(table, key, row)
            try self.end()
        }
        func remove(_ key: Bytes, _ table: Table = .record) throws {
            try self.rows.remove(table, key)
            try self.end()
        }
        func remove(_ key: Bytes, holding row: Bytes) throws {
            try self.rows.remove(.record, key.span.bytes, holding: row.span.bytes)
            try self.end()
        }
        func get(_ key: Bytes, _ table: Table = .record) throws -> Bytes? {
            try self.rows.row(table, key)
        }
        func keys(
            from: Bytes = [], to: Bytes = [], descending: Bool = false, limit: Int = .max,
            _ table: Table = .record
        ) throws -> [Bytes] {
            var keys: [Bytes] = []
            try self.rows.scan(
                table, from: from.span.bytes, to: to.span.bytes, descending: descending
            ) { key, _ in
                keys.append(Bytes(copying: key))
                return keys.count < limit ? .next : .stop
            }
            return keys
        }
    }

    private static func file() throws -> RowDatabase {
        let system = FileSystem(SimulatedFiles(seed: 1))
        try RowDatabase.make("rows.db", in: system, fileTag: 7)
        return try RowDatabase(
            "rows.db", in: system, Connection.Options(synchronous: .normal, fileTag: 7))
    }

    /// The file keeps its length, and what is put next goes where something was.
    @Test func `S-05 what was removed is spare, and is used before the file grows`() throws {
        let files = SimulatedFiles(seed: 1)
        let system = FileSystem(files)
        try RowDatabase.make("rows.db", in: system, fileTag: 7)
        let database = try RowDatabase(
            "rows.db", in: system, Connection.Options(synchronous: .normal, fileTag: 7))
        let rows = Rows(over: database)
        func change(_ body: (Bytes) throws -> Void) throws {
            for number in 0..<200 as Range<UInt8> { try body([number]) }
            try rows.commit()
            #expect(try database.checkpoint().isComplete)
        }
        let row = Bytes(repeating: 1, count: 4_000)
        func fill() throws {
            try change { try rows.put(.record, $0, row) }
        }
        try fill()
        let size = files.contents(of: "rows.db")?.count
        #expect(try database.sparePageCount() == 0)
        try change { try rows.remove(.record, $0) }
        #expect(try database.sparePageCount() > 150)
        #expect(files.contents(of: "rows.db")?.count == size)
        try fill()
        #expect(try database.sparePageCount() < 10)
        #expect(files.contents(of: "rows.db")?.count == size)
    }

    @Test(arguments: Kind.allCases)
    func `what was put last is what is read`(kind: Kind) throws {
        let store = try Store(kind)
        #expect(try store.get([1]) == nil)
        try store.put([1], [10])
        #expect(try store.get([1]) == [10])
        try store.put([1], [11, 12])
        #expect(try store.get([1]) == [11, 12])
        #expect(try store.get([1], .feed) == nil)
    }

    @Test(arguments: Kind.allCases)
    func `a removed row is gone and removing it again is no error`(kind: Kind) throws {
        let store = try Store(kind)
        try store.put([1], [10])
        try store.put([2], [20])
        try store.remove([1])
        try store.remove([1])
        #expect(try store.get([1]) == nil)
        #expect(try store.keys() == [[2]])
    }

    @Test(arguments: Kind.allCases)
    func `a row that a scan has found is removed without being read`(kind: Kind) throws {
        let store = try Store(kind)
        for number in 1...3 as ClosedRange<UInt8> { try store.put([number], [number, number]) }
        #expect(try store.keys() == [[1], [2], [3]])
        for number in [1, 3] as Bytes {
            let (key, row) = ([number] as Bytes, [number, number] as Bytes)
            try store.remove(key, holding: row)
        }
        #expect(try store.get([1]) == nil)
        #expect(try store.keys() == [[2]])
        try store.put([1], [7])
        #expect(try store.get([1]) == [7])
    }

    @Test func `the digest lets go of a row that a scan has found`() throws {
        let rows = Rows(over: try Self.file())
        let (key, row): (Bytes, Bytes) = ([1], [10])
        try rows.put(.request, key, row)
        try rows.commit()
        try rows.remove(.request, key.span.bytes, holding: row.span.bytes)
        // It may come back before anything is written.
        try rows.put(.request, key, row)
        try rows.put(.request, [2], row)
        try rows.remove(.request, key)
        try rows.commit()
        #expect(try rows.computeDigest() == rows.digest)
    }

    @Test(arguments: Kind.allCases)
    func `an empty row is not an absent one`(kind: Kind) throws {
        let store = try Store(kind)
        try store.put([1], [])
        #expect(try store.get([1]) == [])
        try store.put([], [5])
        #expect(try store.get([]) == [5])
        #expect(try store.keys() == [[], [1]])
    }

    @Test(arguments: Kind.allCases)
    func `keys are ordered byte by byte, the shorter first`(kind: Kind) throws {
        let store = try Store(kind)
        let ordered: [Bytes] = [
            [0], [0, 0], [0, 0xFF], [1], [0x7F], [0x80], [0xFE, 0xFF], [0xFF], [0xFF, 0],
            [0xFF, 0xFF, 0xFF],
        ]
        for key in ordered.reversed() { try store.put(key, key) }
        #expect(try store.keys() == ordered)
        #expect(try store.keys(descending: true) == ordered.reversed())
    }

    @Test(arguments: Kind.allCases)
    func `a scan includes its start and excludes its end`(kind: Kind) throws {
        let store = try Store(kind)
        for key in 1...9 as ClosedRange<UInt8> { try store.put([key], []) }
        let rows: [(name: String, from: Bytes, to: Bytes, expected: [UInt8])] = [
            ("both bounds", [3], [6], [3, 4, 5]),
            ("no end", [7], [], [7, 8, 9]),
            ("no start", [], [3], [1, 2]),
            ("neither", [], [], Array(1...9)),
            ("an empty range", [4], [4], []),
            ("a turned range", [6], [3], []),
            ("between keys", [3, 0], [5, 0], [4, 5]),
            ("past the end", [200], [], []),
        ]
        for row in rows {
            let expected = row.expected.map { [$0] }
            #expect(try store.keys(from: row.from, to: row.to) == expected, "\(row.name)")
            #expect(
                try store.keys(from: row.from, to: row.to, descending: true) == expected.reversed(),
                "\(row.name), descending")
        }
    }

    @Test(arguments: Kind.allCases)
    func `a scan stops when told, and the next one starts afresh`(kind: Kind) throws {
        let store = try Store(kind)
        for key in 1...9 as ClosedRange<UInt8> { try store.put([key], []) }
        #expect(try store.keys(limit: 2) == [[1], [2]])
        #expect(try store.keys(descending: true, limit: 1) == [[9]])
        #expect(try store.keys().count == 9)
    }

    @Test(arguments: Kind.allCases)
    func `a scan may read and scan the same table from within`(kind: Kind) throws {
        let store = try Store(kind)
        for key in 1...4 as ClosedRange<UInt8> { try store.put([key], [key]) }
        var seen: [Int] = []
        let all = Bytes()
        try store.rows.scan(.record, from: all.span.bytes, to: all.span.bytes, descending: false) {
            key, _ in
            let inner = try? store.keys()
            let row = try? store.get(Bytes(copying: key))
            seen.append((inner?.count ?? -1) * 10 + Int(row?.first ?? 0))
            return .next
        }
        #expect(seen == [41, 42, 43, 44])
    }

    @Test(arguments: Kind.allCases)
    func `rows of any size come back whole`(kind: Kind) throws {
        let store = try Store(kind)
        for size in [1, 900, 1_000, 4_095, 4_096, 4_097, 70_000, 2_000_000] {
            let row = Bytes((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ size) })
            let key = Bytes("key \(size)".utf8)
            try store.put(key, row)
            #expect(try store.get(key) == row, "\(size) bytes")
        }
        let long = Bytes(repeating: 0xAB, count: 3_000)
        try store.put(long, [1])
        #expect(try store.get(long) == [1])
    }

    @Test(arguments: Kind.allCases)
    func `tables do not see each other's rows`(kind: Kind) throws {
        let store = try Store(kind)
        for table in Table.all { try store.put([1], [table.rawValue], table) }
        for table in Table.all {
            #expect(try store.get([1], table) == [table.rawValue])
            #expect(try store.keys(table) == [[1]])
        }
    }

    @Test(arguments: Kind.allCases, 0..<12 as Range<UInt64>)
    func `random operations agree with a model`(kind: Kind, seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let store = try Store(kind)
        var model: [Bytes: Bytes] = [:]
        func key() -> Bytes {
            (0..<Int.random(in: 0...3, using: &random)).map { _ in
                [0, 1, 0x7F, 0xFF].randomElement(using: &random)!
            }
        }
        for _ in 0..<300 {
            let target = key()
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                let row = Bytes(
                    repeating: .random(in: 0...255, using: &random),
                    count: Int.random(in: 0...5_000, using: &random))
                try store.put(target, row)
                model[target] = row
            case 2:
                try store.remove(target)
                model[target] = nil
            case 3: #expect(try store.get(target) == model[target])
            default:
                let end = key()
                let expected = model.keys.filter {
                    !$0.lexicographicallyPrecedes(target)
                        && (end.isEmpty || $0.lexicographicallyPrecedes(end))
                }.sorted { $0.lexicographicallyPrecedes($1) }
                let isDescending = Bool.random(using: &random)
                #expect(
                    try store.keys(from: target, to: end, descending: isDescending)
                        == (isDescending ? expected.reversed() : expected))
            }
        }
    }
}
