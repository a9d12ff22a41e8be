import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import Testing

@testable import StratusQuery
@testable import StratusRecords
@testable import StratusStorage

/// Random lives of assets, held against a model of what must be there and what may be there. After
/// each command the rows are compared with each other and with the model.
@Suite struct AssetPropertyTests {
    static let seeds: [UInt64] = Array(1...12)

    @Test(arguments: Self.seeds) func `assets live as long as they are held`(seed: UInt64) throws {
        var life = AssetLife(AssetBench(Rows()), seed: seed)
        let fault = try life.run(steps: 700)
        #expect(fault == nil, "seed \(seed)")
        // A life in which little happens shows nothing.
        #expect(life.pinCount > 20 && life.sharedCount > 5, "seed \(seed)")
        #expect(life.goneCount > 10 && life.heldCount > 8, "seed \(seed)")
        #expect(life.replacedCount > 5 && life.usedCount > 50, "seed \(seed)")
    }

    @Test(arguments: [101, 102, 103] as [UInt64])
    func `over rows on a disk it is the same`(seed: UInt64) throws {
        let world = SimulatedWorld(seed: seed)
        let system = FileSystem(world.simulatedFiles)
        try world.simulatedFiles.makeDirectory("rows")
        let path = DiskPath("rows/1")
        try RowDatabase.make(path, in: system, fileTag: 1)
        let file = try RowDatabase(
            path, in: system,
            Connection.Options(synchronous: .normal, fileTag: 1, cacheSize: .kibibytes(64)))
        let disk = Rows(over: file)
        disk.begin()
        var life = AssetLife(AssetBench(disk), seed: seed)
        life.atEachStep = { rows, step in
            guard step % 50 == 0 else { return }
            try rows.commit()
            rows.begin()
        }
        let fault = try life.run(steps: 500)
        #expect(fault == nil, "seed \(seed)")
        var memory = AssetLife(AssetBench(Rows()), seed: seed)
        #expect(try memory.run(steps: 500) == nil, "seed \(seed)")
        for table in [Table.asset, .body, .key, .record, .zone] {
            let there = try disk.view.rows(table, from: [], to: [], limit: .max)
            let here = try memory.bench.rows.view.rows(table, from: [], to: [], limit: .max)
            #expect(there.map(\.key) == here.map(\.key) && there.map(\.row) == here.map(\.row))
        }
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [
            PlantedBug.expiredPinTakesHeld, .purgeForgetsAssets, .shareNotTakenBack,
            .holderKeptOnReplace, .usedPinKept, .rereferenceNotPinned, .latePinTaken, .graceIgnored,
            .condemnedNotTakenBack, .replacedKeyKept, .replacedBodyKept,
        ])
    func `a planted bug is found`(bug: PlantedBug) throws {
        #if STRATUS_PLANTED
            for seed in Self.seeds {
                var life = AssetLife(
                    AssetBench(Rows(), bugs: PlantedBugs([bug])), seed: seed)
                // A row that the bug has made unreadable is found as well.
                guard let fault = try? life.run(steps: 700) else { return }
                if !fault.isEmpty { return }
            }
            Issue.record("\(bug) is not found")
        #endif
    }
}

/// A life, step by step.
struct AssetLife {
    var bench: AssetBench
    var atEachStep: (Rows, Int) throws -> Void = { _, _ in }
    private var random: SeededGenerator
    private var model = AssetModel()
    private var drawn: UInt128 = 0
    private var keyVersion: UInt32 = 1
    private var zones: Set<String> = []
    private(set) var pinCount = 0
    private(set) var sharedCount = 0
    private(set) var goneCount = 0
    private(set) var heldCount = 0
    private(set) var replacedCount = 0
    private(set) var usedCount = 0
    private var bodies: Set<BodyID> = []

    init(_ bench: AssetBench, seed: UInt64) {
        self.bench = bench
        self.random = SeededGenerator(seed: seed)
    }

    /// - Returns: what was wrong; nil: nothing.
    mutating func run(steps: Int) throws -> String? {
        try self.bench.putKey(0)
        try self.bench.putKey(1)
        for step in 1...steps {
            try self.act()
            if let fault = try self.check(isSettled: false) { return "step \(step): \(fault)" }
            try self.atEachStep(self.bench.rows, step)
        }
        // Everything that nobody holds ends.
        self.bench.milliseconds += 3_600_000
        try self.bench.finishJobs()
        return try self.check(isSettled: true).map { "at the end: \($0)" }
    }

    private mutating func act() throws {
        self.model.now = self.bench.milliseconds + 10
        // Everything is gone after it: seldom.
        if Int.random(in: 0..<250, using: &self.random) == 0 { return try self.erase() }
        switch Int.random(in: 0..<100, using: &self.random) {
        case 0..<22: try self.pin()
        case 22..<52: try self.save()
        case 52..<62: try self.delete()
        case 62..<67: try self.rereference()
        case 67..<71: try self.changeZone()
        case 71..<73: try self.lose()
        case 73..<75: try self.rotate()
        case 75..<81: try self.replace()
        case 81..<85: self.bench.milliseconds += .random(in: 1...9_000, using: &self.random)
        case 85..<95:
            let budget = Int.random(in: 1...40, using: &self.random)
            try self.bench.jobs(budget: budget)
            self.model.jobsRan()
        default:
            try self.bench.finishJobs(budget: .random(in: 5...100, using: &self.random))
            self.model.jobsRan()
            if let fault = try self.check(isSettled: true) { throw BenchError(fault) }
        }
    }

    private mutating func pin() throws {
        self.drawn += 1
        let content: UInt128? =
            Int.random(in: 0..<4, using: &self.random) == 0
            ? nil : .random(in: 1...12, using: &self.random)
        let upload =
            Int.random(in: 0..<6, using: &self.random) == 0
            ? UInt128.random(in: 1...self.drawn, using: &self.random) : self.drawn
        let late = Int.random(in: 0..<8, using: &self.random) == 0
        let now = self.bench.milliseconds + 10
        let orphanAfter = late ? now - 1 : now + .random(in: 0...5_000, using: &self.random)
        let size = content.map { UInt64($0) * 100 } ?? UInt64(self.drawn % 3_000)
        self.model.now = now
        let outcome = try self.bench.pin(
            self.drawn, content: content, size: size, upload: upload,
            keyVersion: self.keyVersion, orphanAfter: orphanAfter)
        switch outcome {
        case .success(let pinned):
            if late { throw BenchError("a pin behind its orphanAfter was taken") }
            if !pinned.isShared, pinned.asset != AssetID(self.drawn) {
                throw BenchError("another asset than the drawn one")
            }
            self.pinCount += 1
            if pinned.isShared { self.sharedCount += 1 }
            self.model.pinned(
                pinned, upload: upload, until: now + self.bench.rules.pinMilliseconds)
        case .failure(let refusal):
            switch refusal.reason {
            case .pinTooLate where late: break
            case .uploadAttached where upload != self.drawn: break
            default: throw BenchError("a pin is refused: \(refusal)")
            }
        }
    }

    private func name() -> [String] { (0..<14).map { "r\($0)" } }

    private mutating func save() throws {
        let zone = self.zones.sorted().randomElement(using: &self.random) ?? ZoneID.defaultName
        let atomic =
            zone != ZoneID.defaultName && Int.random(in: 0..<6, using: &self.random) == 0
        var operations: [RecordOperation] = []
        var names = self.name().shuffled(using: &self.random)
        for _ in 0..<Int.random(in: 1...3, using: &self.random) {
            let name = names.removeLast()
            let held = try self.record(name, in: zone)?.value(of: "pages")?.assetReferences ?? []
            var list: [Scalar] = []
            for _ in 0..<Int.random(in: 0...3, using: &self.random) {
                if let back = held.randomElement(using: &self.random),
                    Bool.random(using: &self.random)
                {
                    // What was read is written back.
                    list.append(
                        .asset(
                            AssetReference(fileChecksum: back.fileChecksum, size: back.size)))
                } else if let asset = self.someAsset() {
                    let receipt = self.model.receipts(of: asset).randomElement(using: &self.random)
                    let reference = try self.bench.reference(asset.raw, receipt: receipt)
                    list.append(
                        .asset(
                            reference
                                ?? AssetReference(fileChecksum: "gone", size: 1, asset: asset)))
                }
            }
            var fields = [Field(name: "pages", value: .list(.asset, list))]
            if let first = list.first { fields.append(Field(name: "cover", value: .scalar(first))) }
            if case .asset(let cover)? = list.first, cover.asset == nil { fields.removeLast() }
            if Int.random(in: 0..<3, using: &self.random) == 0 {
                fields.append(
                    reference(
                        "up", to: names.randomElement(using: &self.random)!, .deleteSelf, zone: zone
                    ))
            }
            operations.append(
                RecordOperation(
                    Bool.random(using: &self.random) ? .forceReplace : .forceUpdate,
                    recordName: name, recordType: "Book", fields: fields))
        }
        if Int.random(in: 0..<5, using: &self.random) == 0 {
            operations.append(RecordOperation(.forceDelete, recordName: names.removeLast()))
        }
        self.model.now = self.bench.milliseconds + 10
        let results = try self.bench.modify(in: zone, atomic: atomic, operations)
        for (operation, result) in zip(operations, results) where result.saved != nil {
            for (asset, receipt) in operation.receipts {
                self.model.saved(with: receipt.raw, of: asset)
                self.usedCount += 1
            }
        }
    }

    /// Mostly one of the latest: older ones are often gone.
    private mutating func someAsset() -> AssetID? {
        Int.random(in: 0..<12, using: &self.random) == 0
            ? self.model.known.randomElement(using: &self.random)
            : self.model.known.suffix(8).randomElement(using: &self.random)
    }

    private mutating func delete() throws {
        let zone = self.zones.sorted().randomElement(using: &self.random) ?? ZoneID.defaultName
        self.model.now = self.bench.milliseconds + 10
        try self.bench.modify(
            in: zone,
            rules: RecordRules(cascadeCountMax: Int.random(in: 1...3, using: &self.random)),
            [
                RecordOperation(
                    .forceDelete, recordName: self.name().randomElement(using: &self.random)!)
            ])
    }

    private mutating func rereference() throws {
        guard let asset = self.someAsset() else { return }
        self.model.now = self.bench.milliseconds + 10
        let until = self.model.now + self.bench.rules.pinMilliseconds
        self.drawn += 1
        // Some have a pin that no save ends.
        let receipt = Int.random(in: 0..<4, using: &self.random) == 0 ? nil : self.drawn
        let hold = HoldAssets(Bench.privateDatabase) {
            $0.assets = [asset]
            $0.pins = receipt.map { [UploadID($0)] } ?? []
            $0.rules = self.bench.rules
        }
        let held = try self.bench.apply(hold, as: Bench.user).get()
        if held.assets[0] != nil { self.model.rereferenced(asset, by: receipt, until: until) }
    }

    private mutating func changeZone() throws {
        let zone = ["A", "B"].randomElement(using: &self.random)!
        self.model.now = self.bench.milliseconds + 10
        if self.zones.remove(zone) != nil {
            _ = try self.bench.apply(
                .modifyZones(
                    ModifyZones(
                        database: Bench.privateDatabase,
                        operations: [
                            ModifyZones.Operation(
                                .delete, zone: zone, drawnIncarnation: ZoneIncarnation(0))
                        ])))
        } else {
            try self.bench.zone(zone)
            self.zones.insert(zone)
        }
    }

    private mutating func erase() throws {
        _ = try self.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase, zoneCount: 100)))
        self.zones = []
        // The next key has another number, and the old one never comes back.
        guard try self.bench.putKey(self.keyVersion).get().key == nil else {
            throw BenchError("a destroyed key is there")
        }
        self.keyVersion += 1
        guard try self.bench.putKey(self.keyVersion).get().key != nil else {
            throw BenchError("no new key")
        }
        self.model.now = self.bench.milliseconds
    }

    private mutating func lose() throws {
        guard let body = self.bodies.sorted().randomElement(using: &self.random) else { return }
        guard try self.bench.apply(LoseBody(body)) == .success(true) else {
            throw BenchError("a named body is unknown")
        }
        guard Bool.random(using: &self.random) else { return }
        let find = FindBody {
            $0.body = body
            $0.orphanAfterMilliseconds = .max
        }
        guard try self.bench.apply(find) == .success(true) else {
            throw BenchError("a lost body is unknown")
        }
    }

    /// A newer key; the older ones go once no file is under them.
    private mutating func rotate() throws {
        guard try self.olderFiles().isEmpty else { return }
        let retire = RetireKeys(Bench.privateDatabase) { $0.below = self.keyVersion }
        _ = try self.bench.apply(retire).get()
        guard try self.bench.putKey(self.keyVersion + 1).get().key != nil else {
            throw BenchError("no newer key")
        }
        self.keyVersion += 1
    }

    private mutating func olderFiles() throws -> [OlderFile] {
        let ask = OlderFilesAsk(Bench.privateDatabase) { $0.below = self.keyVersion }
        return try self.bench.ask(ask).get().files
    }

    /// A file is sealed anew: its row changes in two places, and no other asset's does.
    private mutating func replace() throws {
        guard let file = try self.olderFiles().randomElement(using: &self.random),
            let row = try self.bench.row(file.asset.raw)
        else { return }
        self.drawn += 1
        var replace = ReplaceGoldens.replace(
            file.asset.raw, old: row.body.raw, body: self.drawn + 2_000_000, size: row.size,
            keyVersion: self.keyVersion)
        let late = Int.random(in: 0..<8, using: &self.random) == 0
        let now = self.bench.milliseconds + 10
        replace.new.orphanAfterMilliseconds = late ? now - 1 : now
        self.model.now = now
        let outcome = try self.bench.apply(replace)
        guard outcome == .success(late ? .late : .replaced) else {
            throw BenchError("a new body: \(outcome)")
        }
        var expected = row
        if !late { (expected.body, expected.keyVersion) = (replace.new.body, self.keyVersion) }
        guard try self.bench.row(file.asset.raw) == expected else {
            throw BenchError("\(file.asset) is not what it was")
        }
        if !late { self.replacedCount += 1 }
    }

    private func record(_ name: String, in zone: String) throws -> Record? {
        var bench = self.bench
        let answer = try bench.ask(
            .lookup(RecordLookup(database: Bench.privateDatabase, zone: zone, names: [name])))
        guard case .lookup(let found) = answer, case .found(let record) = found.items[0] else {
            return nil
        }
        return record
    }

    private mutating func check(isSettled: Bool) throws -> String? {
        let audit = try AssetRowAudit(over: self.bench.rows.view)
        if let fault = audit.faults.first { return fault }
        if let fault = try self.bench.rowFaults().first { return "the audit says \(fault)" }
        if let fault = try self.checkChanges(audit) { return fault }
        self.goneCount = self.model.known.count - audit.assets.count
        self.heldCount = max(self.heldCount, audit.holders.count)
        let live = try self.liveZones()
        if let fault = self.model.observe(
            audit, grace: self.bench.rules.graceMilliseconds, live: live,
            at: self.bench.milliseconds,
            isSettled: isSettled)
        {
            return fault
        }
        guard
            case .use(_, _, let use) = try self.bench.ask(.use(Bench.privateDatabase))
        else { return "no use" }
        let sum = audit.assets.values.reduce(AssetUse.none) { $0 + $1.use }
        return use == sum ? nil : "the database uses \(use), its assets \(sum)"
    }

    private func liveZones() throws -> Set<ZoneNumber> {
        var live: Set<ZoneNumber> = []
        for (key, row) in try self.bench.rows.view.rows(.zone, from: [], to: [], limit: .max)
        where key[4] == 0 {
            let zone = try ZoneRow(decoding: row)
            if !zone.isDeleted { live.insert(zone.number) }
        }
        return live
    }

    /// What a keeper hears comes to what the rows say.
    private mutating func checkChanges(_ audit: AssetRowAudit) throws -> String? {
        for change in self.bench.changes {
            switch change {
            case .named(let body):
                guard self.bodies.insert(body.body).inserted else { return "named twice" }
            case .dropped(let body, _, _):
                guard self.bodies.remove(body) != nil else { return "dropped and not named" }
            case .lost(let body, _, _):
                guard self.bodies.contains(body) else { return "lost and not named" }
            case .found(let body):
                guard self.bodies.contains(body.body) else { return "found and not named" }
            case .unlisted: return "changes are missing"
            }
        }
        self.bench.changes = []
        return self.bodies == audit.bodies ? nil : "the keeper hears of other bodies"
    }
}

/// What was promised to those who have receipts and links.
struct AssetModel {
    /// The time of the command that is applied next.
    var now: Int64 = 0
    private(set) var known: [AssetID] = []
    /// Pins of receipts that were not used, as their outcomes promised them.
    private var pins: [AssetID: [UInt128: Int64]] = [:]
    /// Pins that no save ends.
    private var common: [AssetID: Int64] = [:]
    private var everPinned: [AssetID: [UInt128]] = [:]
    /// Assets whose receipts the last command used.
    private var used: Set<AssetID> = []
    private var uploads: [UInt128: AssetID] = [:]
    private var condemned: [AssetID: Int64] = [:]
    /// Its holders went in a way that may leave no grace.
    private var mayGoAtOnce: Set<AssetID> = []
    private var holders: [AssetID: Set<AssetRowAudit.Holder>] = [:]
    private var ranJobs = false

    mutating func jobsRan() { self.ranJobs = true }

    func receipts(of asset: AssetID) -> [UInt128] { self.everPinned[asset] ?? [] }

    private func pinned(_ asset: AssetID) -> Int64? {
        [self.pins[asset]?.values.max(), self.common[asset]].compactMap { $0 }.max()
    }

    mutating func pinned(_ pin: PinnedAsset, upload: UInt128, until: Int64) {
        let asset = pin.asset
        if let first = self.uploads[upload], first != asset, self.pins[first]?[upload] != nil,
            self.holders[first]?.isEmpty ?? true, self.common[first] ?? 0 <= self.now,
            self.pins[first]?.allSatisfy({ $0.key == upload || $0.value <= self.now }) == true
        {
            self.forget(first)
        }
        self.uploads[upload] = asset
        if !pin.isShared { self.known.append(asset) }
        self.pin(asset, by: upload, until: until)
    }

    mutating func rereferenced(_ asset: AssetID, by receipt: UInt128?, until: Int64) {
        self.pin(asset, by: receipt, until: until)
    }

    private mutating func pin(_ asset: AssetID, by receipt: UInt128?, until: Int64) {
        // A grace that has begun is not cut short.
        let end = max(self.condemned[asset] ?? 0, until)
        if let receipt {
            self.pins[asset, default: [:]][receipt] = max(self.pins[asset]?[receipt] ?? 0, end)
            self.everPinned[asset, default: []].append(receipt)
        } else {
            self.common[asset] = max(self.common[asset] ?? 0, end)
        }
        self.condemned[asset] = nil
        self.mayGoAtOnce.remove(asset)
    }

    /// The save ends the pin of its receipt, and no other.
    mutating func saved(with receipt: UInt128, of asset: AssetID) {
        self.pins[asset]?[receipt] = nil
        self.used.insert(asset)
    }

    private mutating func forget(_ asset: AssetID) {
        self.pins[asset] = nil
        self.common[asset] = nil
        self.condemned[asset] = nil
        self.mayGoAtOnce.remove(asset)
    }

    /// Learns who holds what now, and says what should not be.
    ///
    /// - Parameter isSettled: whether jobs have just run to their end.
    mutating func observe(
        _ audit: AssetRowAudit, grace: Int64, live: Set<ZoneNumber>, at time: Int64,
        isSettled: Bool
    ) -> String? {
        var held: [AssetID: Set<AssetRowAudit.Holder>] = [:]
        for holder in audit.holders { held[holder.asset, default: []].insert(holder) }
        for asset in self.known {
            let before = self.holders[asset] ?? []
            let after = held[asset] ?? []
            if !after.isEmpty {
                self.condemned[asset] = nil
                self.mayGoAtOnce.remove(asset)
            } else if !before.isEmpty {
                if let end = self.pinned(asset), end > self.now {
                    // A short pin takes nothing from the grace.
                    if time + grace > end { self.common[asset] = time + grace }
                } else {
                    self.condemned[asset] = time + grace
                }
                let purged = before.contains { !live.contains($0.zone) }
                if purged { self.mayGoAtOnce.insert(asset) }
            }
            if after.isEmpty, before.isEmpty, self.used.contains(asset),
                self.pinned(asset) == nil, self.condemned[asset] == nil
            {
                // Saved and taken away by one command.
                self.condemned[asset] = time + grace
            }
            let ends = max(self.pinned(asset) ?? 0, self.condemned[asset] ?? 0)
            let isThere = audit.assets[asset] != nil
            if !isThere {
                if !after.isEmpty { return "\(asset) is held and gone" }
                if ends > time, !self.mayGoAtOnce.contains(asset) {
                    return "\(asset) is gone \(ends - time) ms too early"
                }
                self.forget(asset)
            } else if after.isEmpty, isSettled, ends <= time {
                return "\(asset) is there \(time - ends) ms too long"
            }
        }
        self.holders = held
        self.used = []
        self.ranJobs = false
        return nil
    }
}
