import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

enum ReplaceGoldens {
    static func replace(
        _ asset: UInt128 = 0xA1, old: UInt128 = 0xB1, body: UInt128 = 0xB2, size: UInt64 = 300,
        keyVersion: UInt32 = 2
    ) -> ReplaceBody {
        ReplaceBody(Bench.privateDatabase) {
            $0.asset = AssetID(asset)
            $0.old = BodyID(old)
            $0.new = AssetGoldens.pin(asset, body: body, size: size).stored
            $0.new.keyVersion = keyVersion
        }
    }

    static let samples = [
        TypedGolden.command("command-replace-body-1", Self.replace()),
        TypedGolden.outcome("outcome-body-replaced-1", of: ReplaceBody.self, .replaced),
        TypedGolden.outcome("outcome-body-replaced-2", of: ReplaceBody.self, .differs),
    ]
}

/// Bodies that are sealed anew, in rows.
@Suite struct ReplaceBodyTests {
    private var bench = AssetBench()

    /// The assets 1 to 3 under key 1, of which record "a" holds the first, and a key 2.
    init() throws {
        try self.bench.putKey(0)
        try self.bench.putKey(1)
        try self.bench.zone("Shelves")
        for number in 1...3 as ClosedRange<UInt128> {
            _ = try self.bench.pin(number, content: number, size: 300)
        }
        try self.bench.save("a", in: "Shelves", [1])
        try self.bench.putKey(2)
        self.bench.changes = []
    }

    private mutating func replace(
        _ asset: UInt128 = 1, body: UInt128 = 5_000_001, as principal: Principal = Bench.system,
        _ change: (inout ReplaceBody) -> Void = { _ in }
    ) throws -> Result<ReplacedBody, RequestRefusal> {
        var replace = ReplaceGoldens.replace(asset, old: asset + 1_000_000, body: body)
        change(&replace)
        return try self.bench.apply(replace, as: principal)
    }

    private func everything() throws -> [[Bytes]] {
        try [Table.asset, .body, .key, .record, .feed, .zone, .database].map {
            try self.bench.rows.view.rows($0, from: [], to: [], limit: .max).map { $0.key + $0.row }
        }
    }

    private mutating func older(below version: UInt32 = 2) throws -> [OlderFile] {
        try self.bench.ask(OlderFilesAsk(Bench.privateDatabase) { $0.below = version }).get().files
    }

    @Test func `a command whose numbers do not agree is malformed`() {
        let changes: [(inout ReplaceBody) -> Void] = [
            { $0.new.size += 600 }, { $0.new.keyVersion = 0 }, { $0.new.body = $0.old },
            {
                $0.new.storers = Array(
                    repeating: $0.new.storers[0], count: StoredBody.storerCountMax + 1)
            },
        ]
        for change in changes {
            var replace = ReplaceGoldens.replace()
            change(&replace)
            #expect(throws: DecodingError.self) {
                _ = try ReplaceBody(decoding: replace.encoded(), container: Bench.container)
            }
        }
    }

    @Test mutating func `the asset has the new body, and is else what it was`() throws {
        let before = try #require(try self.bench.row(1))
        #expect(
            try self.older().map(\.asset) == [AssetID(1), AssetID(2), AssetID(3)])
        #expect(try self.replace() == .success(.replaced))
        var expected = before
        expected.body = BodyID(5_000_001)
        expected.keyVersion = 2
        #expect(try self.bench.row(1) == expected)
        #expect(try self.bench.rowFaults().isEmpty)
        #expect(try AssetRowAudit(over: self.bench.rows.view).faults.isEmpty)
        let named = try #require(
            try AssetRows.body(BodyID(5_000_001), over: self.bench.rows.view))
        #expect(named.namedAt == LogIndex(self.bench.index) && named.keyVersion == 2)
        #expect(
            self.bench.changes == [
                .named(named),
                .dropped(
                    BodyID(1_000_001), chunkCount: 2, at: LogIndex(self.bench.index)),
            ])
        #expect(try AssetRows.body(BodyID(1_000_001), over: self.bench.rows.view) == nil)
        #expect(try self.older().map(\.asset) == [AssetID(2), AssetID(3)])
        // An equal file finds it as before, and its receipt is good.
        let pinned = try self.bench.pin(9, content: 1, size: 300, keyVersion: 2).get()
        #expect(pinned.asset == AssetID(1) && pinned.isShared)
        // Under another identity it says the same, and changes nothing.
        let rows = try self.everything()
        #expect(try self.replace() == .success(.replaced))
        #expect(try self.everything() == rows)
    }

    @Test mutating func `what cannot be replaced is left as it is, and said`() throws {
        let refusals: [(ReplacedBody, (inout ReplaceBody) -> Void)] = [
            (.late, { $0.new.orphanAfterMilliseconds = 1 }),
            (.gone, { $0.asset = AssetID(77) }),
            (.gone, { $0.database = Bench.publicDatabase }),
            (.keyMissing, { $0.new.keyVersion = 1 }), (.keyMissing, { $0.new.keyVersion = 3 }),
            (.changed, { $0.old = BodyID(1_000_002) }),
            (.taken, { $0.new.body = BodyID(1_000_002) }),
            (
                .differs,
                {
                    $0.new.size = 301
                    $0.new.chunks[1].storedSize += 1
                }
            ),
            (
                .differs,
                {
                    $0.new.chunkSize = 512
                    $0.new.chunks = [.init(storedSize: 317, crc: 1)]
                }
            ),
        ]
        let rows = try self.everything()
        for (refusal, change) in refusals {
            #expect(try self.replace { change(&$0) } == .success(refusal), "\(refusal)")
            #expect(try self.everything() == rows, "\(refusal)")
        }
        #expect(try self.replace(as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        #expect(try self.everything() == rows && self.bench.changes.isEmpty)
        // The newest key was destroyed with the database.
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase, zoneCount: 100)))
        #expect(try self.replace(2) == .success(.keyMissing))
    }

    @Test mutating func `a lost body is listed as one, and what was read of it is taken`() throws {
        _ = try self.bench.apply(LoseBody(BodyID(1_000_001)))
        #expect(try self.older().map(\.isLost) == [true, false, false])
        // Somebody had read all of it before its copies went.
        #expect(try self.replace() == .success(.replaced))
        #expect(
            try AssetRows.body(BodyID(5_000_001), over: self.bench.rows.view)?.isLost == false)
        #expect(try self.older().map(\.asset) == [AssetID(2), AssetID(3)])
    }

    @Test mutating func `after a newer key no file is named under an old one`() throws {
        #expect(
            try self.bench.pin(4, content: nil, size: 300, keyVersion: 1)
                == .failure(RequestRefusal(.keyMissing)))
        _ = try self.bench.pin(4, content: nil, size: 300, keyVersion: 2).get()
    }

    @Test mutating func `keys that nothing needs are destroyed, and no others`() throws {
        try self.bench.putKey(3)
        func keys() throws -> [UInt32] {
            try (0...4).filter {
                try AssetRows.opens($0, of: self.bench.row(1)!.database, over: self.bench.rows.view)
            }
        }
        func retire(_ version: UInt32, as principal: Principal = Bench.system) throws
            -> Result<ResealedFields, RequestRefusal>
        {
            try self.bench.apply(
                RetireKeys(Bench.privateDatabase) { $0.below = version }, as: principal)
        }
        func left(_ count: UInt64) -> Result<ResealedFields, RequestRefusal> {
            .success(ResealedFields { $0.olderKeyCount = count })
        }
        #expect(try retire(2, as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        // A version that is not there yet destroys nothing, nor does one that leaves all.
        for version in [0, 1, 4] as [UInt32] { #expect(try retire(version) == left(2)) }
        #expect(try keys() == [0, 1, 2, 3])
        #expect(try retire(2) == left(1))
        #expect(try keys() == [0, 2, 3])
        #expect(try retire(3) == left(0))
        #expect(try keys() == [0, 3])
    }

    @Test mutating func `pages find each older file once, and none of other databases`() throws {
        for number in 10..<1_210 as Range<UInt128> {
            _ = try self.bench.pin(
                number, content: nil, size: 0, keyVersion: 2)
        }
        try self.bench.putKey(3)
        let other = DatabaseID(container: Bench.container, scope: .private, owner: "somebody")
        for version in [0, 1] as [UInt32] {
            _ = try self.bench.apply(
                PutKey(other) {
                    $0.version = version
                    $0.key = AssetGoldens.key
                }
            ).get()
        }
        var pin = AssetGoldens.pin(5_000, body: 5_000, upload: 5_000, digest: nil)
        pin.database = other
        _ = try self.bench.apply(pin)
        var (found, after, count): ([AssetID], AssetID?, Int) = ([], nil, 0)
        repeat {
            let page = try self.bench.ask(
                OlderFilesAsk(Bench.privateDatabase) {
                    $0.after = after
                    $0.below = 3
                }
            ).get()
            found += page.files.map(\.asset)
            after = page.next
            count += 1
        } while after != nil && count < 100
        #expect(found.count == 1_203 && Set(found).count == 1_203 && count == 5)
        let ask = OlderFilesAsk(Bench.privateDatabase) { $0.below = 3 }
        #expect(
            try self.bench.ask(ask, as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
    }
}
