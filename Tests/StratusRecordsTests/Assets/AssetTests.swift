import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Pins, saves, keys and ends of assets, one by one.
@Suite struct AssetTests {
    var bench = AssetBench()

    init() throws {
        try self.bench.putKey(0)
        try self.bench.putKey(1)
        try self.bench.zone("Shelves")
    }

    private mutating func asset(_ number: UInt128) throws -> StoredAsset? {
        try self.bench.ask(AssetAsk(Bench.privateDatabase) { $0.asset = AssetID(number) }).get()
    }

    private mutating func settle(after milliseconds: Int64) throws {
        self.bench.milliseconds += milliseconds
        try self.bench.finishJobs()
    }

    private static func pages(_ references: [AssetReference]) -> Field {
        Field(name: "pages", value: .list(.asset, references.map { .asset($0) }))
    }

    private mutating func save(_ name: String, _ fields: Field...) throws -> RecordRefusal? {
        let result = try self.bench.modify(
            in: "Shelves",
            [RecordOperation(.forceUpdate, recordName: name, recordType: "Book", fields: fields)]
        ).first
        if case .refused(let refusal)? = result { return refusal }
        return nil
    }

    // MARK: Pins

    @Test mutating func `an asset is there while it is pinned, and then no more`() throws {
        #expect(
            try self.bench.pin(1, content: 9, size: 600)
                == AssetBench.pinned(1, "sum9"))
        let asset = try #require(try self.asset(1))
        #expect(asset.body.body == BodyID(1_000_001) && asset.body.size == 600)
        #expect(asset.body.namedAt == LogIndex(self.bench.index))
        #expect(asset.key == AssetGoldens.key && asset.database == Bench.privateDatabase)
        try self.settle(after: 9_900)
        #expect(try self.asset(1) != nil)
        try self.settle(after: 200)
        #expect(try self.asset(1) == nil)
        #expect(self.bench.changes.count == 2)
        #expect(
            self.bench.changes.last
                == .dropped(
                    BodyID(1_000_001), chunkCount: 3, at: LogIndex(self.bench.index)))
        #expect(try self.bench.rows.view.rows(.body, from: [], to: [], limit: .max).isEmpty)
        // The ticket is remembered for as long as an upload under it could be pinned.
        #expect(try self.bench.rows.view.rows(.asset, from: [], to: [], limit: .max).count == 2)
        try self.settle(after: 3_600_000)
        #expect(try self.bench.rows.view.rows(.asset, from: [], to: [], limit: .max).isEmpty)
    }

    @Test mutating func `a pin behind its orphanAfter does nothing`() throws {
        let now = self.bench.milliseconds
        let late = try self.bench.pin(1, content: nil, size: 1, orphanAfter: now + 9)
        #expect(late == .failure(RequestRefusal(.pinTooLate)))
        #expect(self.bench.changes.isEmpty)
        // At the same millisecond nodes keep the copies still.
        let inTime = try self.bench.pin(1, content: nil, size: 1, orphanAfter: now + 20)
        #expect(inTime != .failure(RequestRefusal(.pinTooLate)))
    }

    @Test mutating func `a name is given once`() throws {
        _ = try self.bench.pin(1, content: nil, size: 1)
        #expect(
            try self.bench.pin(1, content: nil, size: 1, upload: 7)
                == .failure(RequestRefusal(.assetTaken)))
    }

    /// Saves a record with a receipt.
    @discardableResult
    private mutating func save(_ name: String, _ asset: UInt128, with receipt: UInt128) throws
        -> RecordRefusal?
    {
        let reference = try #require(try self.bench.reference(asset, receipt: receipt))
        return try self.save(name, Self.pages([reference]))
    }

    @Test mutating func `a file that was uploaded twice goes with its last record`() throws {
        _ = try self.bench.pin(1, content: 9, size: 600)
        _ = try self.bench.pin(2, content: 9, size: 600)
        #expect(try self.save("a", 1, with: 1) == nil)
        #expect(try self.save("b", 1, with: 2) == nil)
        try self.bench.modify(in: "Shelves", [.delete("a")])
        try self.settle(after: 1_000)
        #expect(try self.asset(1) != nil)
        try self.bench.modify(in: "Shelves", [.delete("b")])
        try self.settle(after: 1_900)
        #expect(try self.asset(1) != nil, "its grace is not over")
        try self.settle(after: 200)
        #expect(try self.asset(1) == nil)
        #expect(try AssetRowAudit(over: self.bench.rows.view).faults == [])
    }

    @Test mutating func `the same file uploaded again for a record that holds it keeps no pin`()
        throws
    {
        _ = try self.bench.pin(1, content: 9, size: 600)
        #expect(try self.save("a", 1, with: 1) == nil)
        _ = try self.bench.pin(2, content: 9, size: 600)
        #expect(try self.save("a", 1, with: 2) == nil)
        try self.bench.modify(in: "Shelves", [.delete("a")])
        try self.settle(after: 2_100)
        #expect(try self.asset(1) == nil)
    }

    @Test mutating func `a rereferenced file goes with its last record`() throws {
        _ = try self.bench.pin(1, content: nil, size: 600)
        #expect(try self.save("a", 1, with: 1) == nil)
        let hold = HoldAssets(Bench.privateDatabase) {
            $0.assets = [AssetID(1), AssetID(1)]
            $0.pins = [UploadID(7), UploadID(8)]
            $0.rules = self.bench.rules
        }
        let held = try self.bench.apply(hold, as: Bench.user).get().assets
        #expect(held.count == 2 && held.allSatisfy { $0 != nil })
        #expect(try self.save("b", 1, with: 7) == nil)
        try self.bench.modify(in: "Shelves", [.delete("a"), .delete("b")])
        try self.settle(after: 2_100)
        #expect(try self.asset(1) != nil, "one receipt was not used")
        #expect(try self.save("c", 1, with: 8) == nil)
        try self.bench.modify(in: "Shelves", [.delete("c")])
        try self.settle(after: 2_100)
        #expect(try self.asset(1) == nil)
    }

    @Test mutating func `a refused save uses no receipt`() throws {
        _ = try self.bench.pin(1, content: 9, size: 600)
        _ = try self.bench.pin(2, content: 9, size: 600)
        #expect(try self.save("a", 1, with: 1) == nil)
        let reference = try #require(try self.bench.reference(1, receipt: 2))
        let again = try self.bench.modify(
            in: "Shelves", [.create("a", [Self.pages([reference])])])
        #expect(again.first?.refusal == .exists)
        try self.bench.modify(in: "Shelves", [.delete("a")])
        try self.settle(after: 2_500)
        #expect(try self.save("b", 1, with: 2) == nil, "the second receipt is good for its time")
    }

    @Test mutating func `more receipts than are told apart keep a file for their time`() throws {
        for number in 1...(AssetRow.pinCountMax + 2) {
            _ = try self.bench.pin(UInt128(number), content: 9, size: 600)
        }
        let row = try #require(try self.bench.row(1))
        #expect(row.pins.count == AssetRow.pinCountMax && row.commonEnd != nil)
        #expect(try AssetRow(decoding: row.encoded()) == row)
        #expect(try AssetRowAudit(over: self.bench.rows.view).faults == [])
    }

    @Test mutating func `equal files are one asset, and both receipts last their time`() throws {
        _ = try self.bench.pin(1, content: 9, size: 600)
        #expect(
            try self.bench.pin(2, content: 9, size: 600)
                == AssetBench.pinned(1, "sum9", isShared: true))
        #expect(self.bench.changes.count == 1)
        // The first one's record comes and goes.
        try self.bench.save("a", in: "Shelves", [1])
        try self.bench.save("a", in: "Shelves", [])
        try self.settle(after: 9_000)
        #expect(try self.bench.save("b", in: "Shelves", [1])?.refusal == nil)
        // Of another size it is another file, whatever the digest says.
        #expect(
            try self.bench.pin(3, content: 9, size: 601)
                == AssetBench.pinned(3, "sum9"))
    }

    @Test mutating func `a second file takes the first one's place until a record holds it`()
        throws
    {
        _ = try self.bench.pin(1, content: nil, size: 600, upload: 5)
        _ = try self.bench.pin(2, content: nil, size: 700, upload: 5)
        #expect(try self.asset(1) == nil)
        #expect(try self.bench.save("a", in: "Shelves", [2])?.refusal == nil)
        #expect(
            try self.bench.pin(3, content: nil, size: 1, upload: 5)
                == .failure(RequestRefusal(.uploadAttached)))
        // Also once nothing is left of the asset.
        try self.bench.save("a", in: "Shelves", [])
        try self.settle(after: 2_100)
        #expect(try self.asset(2) == nil)
        #expect(
            try self.bench.pin(4, content: nil, size: 1, upload: 5)
                == .failure(RequestRefusal(.uploadAttached)))
    }

    // MARK: Bounds

    @Test mutating func `what no record holds is bounded, and what all hold by the quota`() throws {
        self.bench.rules.unattachedSizeMax = 1_000
        _ = try self.bench.pin(1, content: nil, size: 600)
        #expect(
            try self.bench.pin(2, content: nil, size: 401)
                == .failure(RequestRefusal(.tooMuchUnattached, "1000")))
        try self.bench.save("a", in: "Shelves", [1])
        _ = try self.bench.pin(2, content: nil, size: 401)
        self.bench.rules.unattachedCountMax = 1
        #expect(
            try self.bench.pin(3, content: nil, size: 1)
                == .failure(RequestRefusal(.tooMuchUnattached, "1000")))
        self.bench.rules.unattachedCountMax = 9
        guard case .use(let held, _, let use) = try self.bench.ask(.use(Bench.privateDatabase))
        else { throw BenchError("no use") }
        #expect(
            use == AssetUse(count: 2, size: 1_001, unattachedCount: 1, unattachedSize: 401))
        self.bench.rules.databaseSizeMax = held.size + 1_001 + 9
        #expect(
            try self.bench.pin(3, content: nil, size: 10)
                == .failure(
                    RequestRefusal(.databaseFull, String(self.bench.rules.databaseSizeMax))))
        #expect(
            try self.bench.pin(3, content: nil, size: 9)
                == AssetBench.pinned(3, "sum3"))
        // Records count beside assets.
        var rules = RecordRules()
        rules.databaseSizeMax = self.bench.rules.databaseSizeMax
        let full = try self.bench.modify(
            in: "Shelves", rules: rules, [.create("b", [text("t", "one more")])])
        #expect(full.first?.refusal == .databaseFull)
    }

    @Test mutating func `a record holds so many assets, an entry changes so many`() throws {
        let most = AssetEdits.recordCountMax
        self.bench.rules.pinMilliseconds = 3_600_000
        var references: [AssetReference] = []
        for number in 1...(most + 1) {
            _ = try self.bench.pin(UInt128(number), content: nil, size: 0)
            references.append(try #require(try self.bench.reference(UInt128(number))))
        }
        #expect(
            try self.save("a", Self.pages(references))
                == RecordRefusal(.tooManyAssets, String(most)))
        let operations = ["a", "b", "c"].map {
            RecordOperation(
                .create, recordName: $0, recordType: "Book",
                fields: [Self.pages(Array(references.dropLast()))])
        }
        // One record is always let in; the next ones are left to another entry.
        var results = try self.bench.modify(in: "Shelves", operations)
        #expect(results.map(\.refusal) == [nil, .deferred, .deferred])
        results = try self.bench.modify(in: "Shelves", atomic: true, Array(operations.dropFirst()))
        #expect(results.map(\.refusal) == [.atomicFailure, .tooManyAssets])
        _ = try self.bench.modify(in: "Shelves", [operations[1]])
        _ = try self.bench.modify(in: "Shelves", [operations[2]])
        // A cascade goes on in a job where its assets are too many.
        try self.bench.modify(in: "Shelves", [.create("root")])
        for name in ["a", "b", "c"] {
            #expect(try self.save(name, reference("up", to: "root", .deleteSelf)) == nil)
        }
        let deleted = try self.bench.modify(in: "Shelves", [.delete("root")])
        #expect(deleted.first?.isDeleted == true)
        #expect(try self.bench.row(1)?.isHeld == true)
        try self.bench.finishJobs()
        #expect(try self.bench.row(1)?.isHeld == false)
        #expect(try AssetRowAudit(over: self.bench.rows.view).faults == [])
    }

    @Test mutating func `a large body has all of its pages, and loses them all`() throws {
        let size = UInt64(BodyCoding.pageChunkCount * 2 + 5) * 256
        _ = try self.bench.pin(1, content: nil, size: size)
        #expect(try self.bench.rows.view.rows(.body, from: [], to: [], limit: .max).count == 3)
        #expect(try self.asset(1)?.body.chunks.count == BodyCoding.pageChunkCount * 2 + 5)
        try self.settle(after: 10_000)
        #expect(try self.bench.rows.view.rows(.body, from: [], to: [], limit: .max).isEmpty)
    }

    // MARK: Saves

    @Test mutating func `a receipt must agree with its asset`() throws {
        _ = try self.bench.pin(1, content: nil, size: 600)
        var reference = try #require(try self.bench.reference(1))
        reference.size = 601
        #expect(
            try self.save("a", Self.pages([reference])) == RecordRefusal(.assetMismatch, "pages"))
        reference.size = 600
        reference.fileChecksum = "other"
        #expect(
            try self.save("a", Self.pages([reference])) == RecordRefusal(.assetMismatch, "pages"))
        reference.fileChecksum = "sum1"
        reference.asset = AssetID(2)
        #expect(
            try self.save("a", Self.pages([reference])) == RecordRefusal(.assetMissing, "pages"))
        reference.asset = AssetID(1)
        reference.wrappingKey = "forgotten"
        #expect(try self.save("a", Self.pages([reference])) == nil)
        let answer = try self.bench.ask(
            .lookup(
                RecordLookup(database: Bench.privateDatabase, zone: "Shelves", names: ["a"])))
        guard case .lookup(let found) = answer, case .found(let record) = found.items[0] else {
            throw BenchError("no record")
        }
        let stored = AssetReference(fileChecksum: "sum1", size: 600, asset: AssetID(1))
        #expect(record.value(of: "pages")?.assetReferences == [stored])
    }

    @Test mutating func `what was read is written back without a receipt, to its own field`()
        throws
    {
        _ = try self.bench.pin(1, content: nil, size: 600)
        _ = try self.bench.pin(2, content: nil, size: 600)
        let first = try #require(try self.bench.reference(1))
        #expect(try self.save("a", Self.pages([first])) == nil)
        let back = AssetReference(fileChecksum: "sum1", size: 600)
        #expect(try self.save("a", Self.pages([back, back]), text("t", "x")) == nil)
        #expect(try self.bench.row(1)?.isHeld == true)
        #expect(
            try self.save("b", Self.pages([back])) == RecordRefusal(.assetMismatch, "pages"))
        let cover = Field(name: "cover", value: .scalar(.asset(back)))
        #expect(try self.save("a", cover) == RecordRefusal(.assetMismatch, "cover"))
        let other = AssetReference(fileChecksum: "sum2", size: 600)
        #expect(
            try self.save("a", Self.pages([other])) == RecordRefusal(.assetMismatch, "pages"))
        #expect(try AssetRowAudit(over: self.bench.rows.view).faults == [])
    }

    @Test mutating func `an asset belongs to its database`() throws {
        _ = try self.bench.pin(1, content: nil, size: 600)
        let reference = try #require(try self.bench.reference(1))
        var modify = ModifyRecords(
            database: Bench.publicDatabase, drawnIncarnation: ZoneIncarnation(1),
            operations: [.create("a", [Self.pages([reference])])])
        modify.resolvesAssets = true
        guard case .records(let modified) = try self.bench.apply(.modifyRecords(modify)) else {
            throw BenchError("refused")
        }
        #expect(modified.results.first?.refusal == .assetMissing)
        let hold = HoldAssets(Bench.publicDatabase) { $0.assets = [AssetID(1)] }
        #expect(try self.bench.apply(hold).get().assets == [nil])
    }

    @Test mutating func `an asset outlives its last record by its grace, and is taken back`()
        throws
    {
        _ = try self.bench.pin(1, content: nil, size: 600)
        try self.bench.save("a", in: "Shelves", [1])
        try self.settle(after: 20_000)
        try self.bench.modify(in: "Shelves", [.delete("a")])
        try self.settle(after: 1_900)
        #expect(try self.asset(1) != nil)
        #expect(try self.bench.save("b", in: "Shelves", [1])?.refusal == nil)
        try self.settle(after: 20_000)
        #expect(try self.asset(1) != nil)
        try self.bench.modify(in: "Shelves", [.delete("b")])
        try self.settle(after: 2_000)
        #expect(try self.asset(1) == nil)
        #expect(
            try self.bench.save("c", in: "Shelves", [1])?.refusal == .assetMissing)
    }

    /// Found by the random test: the pin was over, and no job had seen to it.
    @Test mutating func `a pin that is over takes nobody's grace`() throws {
        _ = try self.bench.pin(1, content: nil, size: 600)
        try self.bench.save("a", in: "Shelves", [1])
        let hold = HoldAssets(Bench.privateDatabase) {
            $0.assets = [AssetID(1)]
            $0.rules = self.bench.rules
        }
        let expected = HeldAsset {
            $0.fileChecksum = "sum1"
            $0.size = 600
        }
        #expect(try self.bench.apply(hold).get().assets == [expected])
        self.bench.milliseconds += 10_100
        try self.bench.modify(in: "Shelves", [.delete("a")])
        try self.bench.finishJobs()
        #expect(try self.asset(1) != nil)
        try self.settle(after: 2_000)
        #expect(try self.asset(1) == nil)
    }

    // MARK: Zones and databases

    @Test mutating func `links of a deleted zone are dead at once`() throws {
        _ = try self.bench.pin(1, content: nil, size: 600)
        _ = try self.bench.pin(2, content: nil, size: 600)
        try self.bench.zone("Other")
        try self.bench.save("a", in: "Shelves", [1, 2])
        try self.bench.save("b", in: "Other", [2])
        let delete = ModifyZones(
            database: Bench.privateDatabase,
            operations: [
                ModifyZones.Operation(
                    .delete, zone: "Shelves", drawnIncarnation: ZoneIncarnation(0))
            ])
        _ = try self.bench.apply(.modifyZones(delete))
        #expect(try self.asset(1) == nil)
        #expect(try self.asset(2) != nil)
        #expect(try self.bench.row(1) != nil)
        try self.bench.finishJobs(budget: 3)
        #expect(try self.bench.row(1) == nil)
        #expect(try self.bench.row(2)?.isHeld == true)
        #expect(try AssetRowAudit(over: self.bench.rows.view).faults == [])
    }

    @Test mutating func `an erasure destroys the keys, and no later key has their numbers`()
        throws
    {
        _ = try self.bench.pin(1, content: nil, size: 600)
        _ = try self.bench.pin(2, content: nil, size: 600)
        try self.bench.save("a", in: "Shelves", [1])
        let receipt = try #require(try self.bench.reference(2))
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase)))
        #expect(try self.asset(1) == nil)
        #expect(try self.asset(2) == nil)
        #expect(try self.newestKey() == Self.key(1, nil))
        #expect(try self.bench.putKey(1).get() == Self.key(1, nil))
        #expect(try self.bench.putKey(3) == .failure(RequestRefusal(.keyMissing)))
        #expect(try self.bench.putKey(2).get() == Self.key(2, AssetGoldens.key))
        #expect(
            try self.bench.pin(3, content: nil, size: 1)
                == .failure(RequestRefusal(.keyMissing)))
        // A receipt from before: its file cannot be opened any more.
        try self.bench.zone("Shelves")
        #expect(
            try self.save("a", Self.pages([receipt])) == RecordRefusal(.assetMissing, "pages"))
        try self.bench.finishJobs()
        #expect(try self.bench.row(1) == nil)
    }

    @Test mutating func `a field sealed under a key that is not there is refused`() throws {
        func secret(_ version: UInt32) -> Field {
            Field(
                name: "secret",
                value: .sealed(
                    FieldType(.string, isEncrypted: true),
                    SealedFieldCoding.bytes(keyVersion: version, content: [1, 2])))
        }
        let refusal = RecordRefusal(.fieldKeyMissing, "secret")
        #expect(try self.save("a", secret(1)) == nil)
        #expect(try self.save("b", secret(2)) == refusal)
        let other = Field(
            name: "secret", value: .sealed(FieldType(.string, isEncrypted: true), [9, 9]))
        #expect(try self.save("b", other) == refusal)
        // A save that was under way during an erasure: nobody could open it.
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase)))
        try self.bench.zone("Shelves")
        #expect(try self.save("a", secret(1)) == refusal)
        try self.bench.putKey(2)
        #expect(try self.save("a", secret(2)) == nil)
    }

    @Test mutating func `a key is put once`() throws {
        let other = WrappedKey {
            $0.wrapped = [1]
            $0.wrappingVersion = 9
        }
        var put = PutKey(Bench.privateDatabase) {
            $0.version = 1
            $0.key = other
        }
        #expect(try self.bench.apply(put).get() == Self.key(1, AssetGoldens.key))
        #expect(
            try self.bench.apply(put, as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        // A database that nobody has written to gets its row with its key.
        put.database = Bench.publicDatabase
        #expect(try self.bench.apply(put).get() == Self.key(1, other))
        let ask = KeyAsk(Bench.publicDatabase) { $0.version = 1 }
        #expect(try self.bench.ask(ask).get() == Self.key(1, other))
        #expect(
            try self.bench.ask(ask, as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        #expect(
            try self.bench.ask(AssetAsk(Bench.privateDatabase) { _ in }, as: Bench.user)
                == .failure(RequestRefusal(.accessDenied)))
    }

    @Test mutating func `after a recovery no key has the number of one that was lost`() throws {
        _ = try self.bench.pin(1, content: nil, size: 600)
        // Its outcome has no body.
        _ = try? self.bench.apply(.recover)
        #expect(try self.asset(1) != nil)
        #expect(try self.bench.putKey(2) == .failure(RequestRefusal(.keyMissing)))
        #expect(try self.newestKey() == Self.key(1 << 16, nil))
        let next: UInt32 = 1 << 16 + 1
        #expect(try self.bench.putKey(next).get() == Self.key(next, AssetGoldens.key))
    }

    private mutating func newestKey() throws -> DatabaseKey? {
        try self.bench.ask(KeyAsk(Bench.privateDatabase) { _ in }).get()
    }

    private static func key(_ version: UInt32, _ key: WrappedKey?) -> DatabaseKey {
        DatabaseKey {
            $0.version = version
            $0.key = key
        }
    }

    private mutating func lost() throws -> [LostFile] {
        var (files, place): ([LostFile], LostFilesPlace?) = ([], nil)
        repeat {
            let page = try self.bench.ask(LostFilesAsk { $0.after = place }).get()
            files += page.files
            place = page.next
        } while place != nil
        return files
    }

    private static func lost(_ asset: UInt128, in holder: (zone: String, record: String)?)
        -> LostFile
    {
        LostFile {
            $0.asset = AssetID(asset)
            $0.database = Bench.privateDatabase
            $0.fileChecksum = "sum\(asset)"
            $0.size = 600
            guard let holder else { return }
            $0.holder = LostFile.Holder {
                $0.zone = holder.zone
                $0.record = holder.record
            }
        }
    }

    @Test mutating func `lost files are listed with the record that holds them`() throws {
        for number in 1...3 as ClosedRange<UInt128> {
            _ = try self.bench.pin(number, content: nil, size: 600)
        }
        #expect(
            try self.save("a", Self.pages([#require(try self.bench.reference(2))])) == nil)
        #expect(try self.lost().isEmpty)
        for number in 2...3 as ClosedRange<UInt128> {
            _ = try self.bench.apply(LoseBody(BodyID(number + 1_000_000)))
        }
        #expect(
            try self.lost() == [Self.lost(2, in: ("Shelves", "a")), Self.lost(3, in: nil)])
        #expect(
            try self.bench.ask(LostFilesAsk(), as: Bench.user)
                == .failure(RequestRefusal(.accessDenied)))
    }

    @Test mutating func `a lost file's zone is found among many, in bounded steps`() throws {
        let count = 2 * ZoneSearch.stepCountMax
        for number in 0..<count { try self.bench.zone("A\(number)") }
        try self.bench.zone("Z")
        for number in 1...120 as ClosedRange<UInt128> {
            _ = try self.bench.pin(number, content: nil, size: 600)
            _ = try self.bench.apply(LoseBody(BodyID(number + 1_000_000)))
            try self.bench.save("r\(number)", in: number % 2 == 0 ? "Z" : "A7", [number])
        }
        let expected = (1...120 as ClosedRange<UInt128>).map {
            Self.lost($0, in: ($0 % 2 == 0 ? "Z" : "A7", "r\($0)"))
        }
        #expect(try self.lost() == expected)
    }

    @Test mutating func `a lost body says so, and is shared with nobody`() throws {
        _ = try self.bench.pin(1, content: 9, size: 600)
        #expect(
            try self.bench.apply(LoseBody(BodyID(1_000_001))) == .success(true))
        #expect(try self.asset(1)?.body.isLost == true)
        #expect(
            self.bench.changes.last
                == .lost(BodyID(1_000_001), chunkCount: 3, at: LogIndex(self.bench.index)))
        #expect(
            try self.bench.apply(LoseBody(BodyID(5))) == .success(false))
        #expect(
            try self.bench.pin(2, content: 9, size: 600)
                == AssetBench.pinned(2, "sum9"))
        // The lost one's end leaves the share to the other.
        try self.settle(after: 9_985)
        #expect(try self.asset(1) == nil)
        #expect(
            try self.bench.pin(3, content: 9, size: 600)
                == AssetBench.pinned(2, "sum9", isShared: true))
    }

    private mutating func find(
        _ body: UInt128, until milliseconds: Int64 = .max, as principal: Principal = Bench.system
    ) throws -> Result<Bool, RequestRefusal> {
        try self.bench.apply(
            FindBody {
                $0.body = BodyID(body)
                $0.orphanAfterMilliseconds = milliseconds
            }, as: principal)
    }

    @Test mutating func `a lost body that was found can be read and shared again`() throws {
        _ = try self.bench.pin(1, content: 9, size: 600)
        let body = BodyID(1_000_001)
        #expect(try self.find(1_000_001) == .success(true))
        #expect(try self.find(5) == .success(false))
        _ = try self.bench.apply(LoseBody(body))
        let lost = try #require(try self.asset(1)?.body)
        #expect(
            try self.find(1_000_001, until: self.bench.milliseconds)
                == .failure(RequestRefusal(.pinTooLate)))
        #expect(
            try self.find(1_000_001, as: Bench.user) == .failure(RequestRefusal(.accessDenied)))
        #expect(try self.asset(1)?.body == lost)
        #expect(try self.find(1_000_001) == .success(true))
        let found = try #require(try self.asset(1)?.body)
        #expect(!found.isLost)
        #expect(found.namedAt == LogIndex(self.bench.index))
        #expect(found.chunks == lost.chunks)
        #expect(self.bench.changes.last == .found(found))
        #expect(try self.lost().isEmpty)
        #expect(
            try self.bench.pin(2, content: 9, size: 600)
                == AssetBench.pinned(1, "sum9", isShared: true))
    }

    @Test mutating func `bodies are told in the order of the question, for Stratus itself`() throws
    {
        _ = try self.bench.pin(1, content: nil, size: 600)
        let known = BodyID(1_000_001)
        let found = try self.bench.ask(BodiesAsk([BodyID(5), known, known])).get()
        #expect(found.bodies.map { $0?.body } == [nil, known, known])
        #expect(
            try self.bench.ask(BodiesAsk([known]), as: Bench.user)
                == .failure(RequestRefusal(.accessDenied)))
        let many = Array(repeating: known, count: BodiesAsk.countMax + 1)
        #expect(
            try self.bench.ask(BodiesAsk(many))
                == .failure(RequestRefusal(.tooManyItems, String(BodiesAsk.countMax))))
    }

    /// The largest file there is, and as many small ones as a question may name.
    @Test mutating func `questions about the largest files keep their bound`() throws {
        let (most, chunk) = (StoredBody.chunkCountMax, 64)
        var pin = AssetGoldens.pin(1, body: 1_000_001, upload: 1, digest: nil)
        pin.stored.size = UInt64(most * chunk)
        pin.stored.chunkSize = UInt32(chunk)
        pin.stored.chunks = Array(
            repeating: .init(storedSize: UInt32(chunk) + 17, crc: .max), count: most)
        pin.stored.orphanAfterMilliseconds = .max
        pin.rules = self.bench.rules
        _ = try self.bench.apply(pin, as: Bench.user).get()
        for number in 2...UInt128(BodiesAsk.countMax) {
            _ = try self.bench.pin(number, content: nil, size: 25_600)
        }
        #expect(try self.asset(1)?.body.chunks.count == most)
        let names = (1...UInt128(BodiesAsk.countMax)).map { BodyID($0 + 1_000_000) }
        #expect(try self.bench.ask(BodiesAsk(names)).get().bodies.count == 1)
        #expect(
            try self.bench.ask(BodiesAsk(Array(names.reversed()))).get().bodies.count
                == BodiesAsk.countMax - 1)
        let page = try self.bench.ask(DatabaseFilesAsk(Bench.privateDatabase) { _ in }).get()
        #expect(page.bodies.count == BodiesAsk.countMax && page.next == nil)
        #expect(try self.bench.rowFaults().isEmpty)
    }

    @Test func `the nodes that have a found body are checked as those of a pin`() {
        let command = AssetGoldens.find.enveloped(
            container: Bench.container, identity: RequestIdentity(high: 1, low: 2),
            deadlineMilliseconds: 1, schemaVersion: 0, principal: Bench.system)
        #expect(DataState().holdings(in: command) == AssetGoldens.find.storers)
    }

    @Test mutating func `jobs are asked for when something ends`() throws {
        #expect(
            try self.bench.ask(.work(asOf: .max)) == .work(isWaiting: false, willWait: false))
        _ = try self.bench.pin(1, content: nil, size: 600)
        let end = self.bench.milliseconds + 10_000
        #expect(
            try self.bench.ask(.work(asOf: end - 1)) == .work(isWaiting: false, willWait: true))
        #expect(try self.bench.ask(.work(asOf: end)) == .work(isWaiting: true, willWait: true))
    }

    @Test func `changes that nobody takes are bounded`() {
        var changes = BodyChanges()
        for number in 0...UInt128(BodyChanges.countMax) {
            changes.append(.dropped(BodyID(number), chunkCount: 1, at: LogIndex(1)))
        }
        changes.append(.dropped(BodyID(7), chunkCount: 1, at: LogIndex(2)))
        #expect(
            changes.take()
                == [.unlisted, .dropped(BodyID(7), chunkCount: 1, at: LogIndex(2))])
        #expect(changes.take() == [])
    }
}
