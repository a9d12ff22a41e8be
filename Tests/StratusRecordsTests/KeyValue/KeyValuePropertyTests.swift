import Foundation
import StratusModel
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// Devices with wrong clocks, offline for long, whose batches are lost and repeated, against a
/// model that knows when each change was really made. `STRATUS_SEEDS` sets the number of seeds.
@Suite struct KeyValuePropertyTests {
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 40)

    @Test(arguments: Self.seeds)
    func `the change that was really made last stands everywhere`(seed: UInt64) throws {
        var life = KeyValueLife(seed: seed, PlantedBugs())
        #expect(try life.run(steps: 400) == nil, "seed \(seed)")
        #expect(life.takenCount > 30, "seed \(seed): hardly anything was taken")
        #expect(try life.own.bench.isRepeatable(), "seed \(seed): another replica has other rows")
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [
            PlantedBug.deviceClockTrusted, .olderValueWins, .removalForgotten, .batchTakenAgain,
            .storeOverfilled,
        ])
    func `a planted bug is found`(bug: PlantedBug) throws {
        #if STRATUS_PLANTED
            for seed in Self.seeds {
                var life = KeyValueLife(seed: seed, PlantedBugs([bug]))
                guard let fault = try? life.run(steps: 400) else { return }
                if !fault.isEmpty { return }
            }
            Issue.record("\(bug) is not found")
        #endif
    }
}

struct KeyValueLife {
    /// A change as its device made it.
    private struct Change {
        var key: String
        var value: Bytes?
        /// When it was really made.
        var time: Int64
    }

    private struct Batch {
        var number: UInt64
        var changes: [Change]
        /// The device's clock when it was first sent.
        var sentNow: Int64
        var isFirst: Bool
    }

    private struct Device {
        var name: String
        /// How far its clock is off.
        var offset: Int64
        var pending: [Change] = []
        var lastBatch: UInt64 = 0
        var isFirst = true
        /// What was sent, for the network to deliver once more.
        var sent: [Batch] = []
        // A mirror that follows the store.
        var position: FeedPosition?
        var mirror: [String: Bytes] = [:]
    }

    /// What stands for a key, by the model.
    private struct Standing {
        var time: Int64
        var device: String
        var value: Bytes?
        /// The order of the last changes.
        var order: Int
    }

    private(set) var own = KeyValueBench()
    private var random: SeededGenerator
    private var devices: [Device]
    private var model: [String: Standing] = [:]
    private var lastBatches: [String: UInt64] = [:]
    private var order = 0
    private var now: Int64
    private(set) var takenCount = 0

    init(seed: UInt64, _ bugs: PlantedBugs) {
        self.random = SeededGenerator(seed: seed)
        self.own.bench.keepsCommands = true
        self.own.bench.state = DataState(bugs: bugs)
        self.own.rules.keyCountMax = 6
        self.own.rules.sizeMax = 60
        self.own.rules.removedCountMax = 3
        self.now = self.own.milliseconds
        self.devices = []
        for name in ["ann", "bob", "cid", "dot"] {
            let offset = Int64(self.random.next() % UInt64(2 * KeyValueTests.year))
            self.devices.append(Device(name: name, offset: offset - KeyValueTests.year))
        }
    }

    private mutating func draw(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self.random)
    }

    /// - Returns: what was wrong; nil: nothing.
    mutating func run(steps: Int) throws -> String? {
        for step in 1...steps {
            self.now += Int64(1 + self.draw(self.draw(8) == 0 ? 3_600_000 : 400))
            let index = self.draw(self.devices.count)
            switch self.draw(16) {
            case 0...5: self.edit(index)
            case 6...9:
                if let fault = try self.send(index) { return "step \(step): \(fault)" }
            case 10:
                if let fault = try self.sendAgain(index) { return "step \(step): \(fault)" }
            case 11: self.own.bench.state.forget()
            case 12: try self.finishJobs()
            case 13 where self.draw(12) == 0: try self.erase()
            default:
                if let fault = try self.follow(index) { return "step \(step): \(fault)" }
            }
            if let fault = try self.check() { return "step \(step): \(fault)" }
        }
        return nil
    }

    private mutating func edit(_ index: Int) {
        let key = "k\(self.draw(9))"
        let value =
            self.draw(3) == 0 ? nil : Bytes(repeating: UInt8(self.draw(250)), count: self.draw(24))
        self.devices[index].pending.append(Change(key: key, value: value, time: self.now))
    }

    // MARK: Batches

    private mutating func send(_ index: Int) throws -> String? {
        guard !self.devices[index].pending.isEmpty else { return nil }
        self.devices[index].lastBatch += 1
        let batch = Batch(
            number: self.devices[index].lastBatch, changes: self.devices[index].pending,
            sentNow: self.now + self.devices[index].offset, isFirst: self.devices[index].isFirst)
        self.devices[index].pending = []
        self.devices[index].isFirst = false
        self.devices[index].sent.append(batch)
        // One in six comes late, or only because it is sent again.
        if self.draw(6) == 0 { return nil }
        return try self.deliver(batch, index, now: batch.sentNow)
    }

    /// Delivers an earlier batch once more, as it was sent, or sent anew by the device. Only a
    /// device that waits for its answer sends anew, and it sends nothing later before.
    private mutating func sendAgain(_ index: Int) throws -> String? {
        guard let batch = self.devices[index].sent.last else { return nil }
        let isDelivered = (self.lastBatches[self.devices[index].name] ?? 0) >= batch.number
        // A copy that the network kept is as old as it is: it must change nothing. One that was
        // never there is stated with its true age.
        return try self.deliver(
            batch, index,
            now: isDelivered && self.draw(2) == 0
                ? batch.sentNow : self.now + self.devices[index].offset)
    }

    private mutating func deliver(_ batch: Batch, _ index: Int, now: Int64) throws -> String? {
        let device = self.devices[index]
        self.own.milliseconds = self.now
        let outcome = try self.own.send(
            device.name, batch: batch.number, now: now, first: batch.isFirst,
            batch.changes.map {
                .change($0.key, $0.time + device.offset, $0.value)
            })
        guard case .success(let modified) = outcome else { return "\(outcome)" }
        if (self.lastBatches[device.name] ?? 0) >= batch.number {
            return modified.isRepeat ? nil : "batch \(batch.number) was decided twice"
        }
        self.lastBatches[device.name] = batch.number
        let expected = batch.changes.map { self.take($0, device.name, isFirst: batch.isFirst) }
        self.forgetRemovals()
        return modified.results == expected
            ? nil : "\(device.name) \(batch.number): \(modified.results), not \(expected)"
    }

    private mutating func take(
        _ change: Change, _ device: String, isFirst: Bool
    ) -> ModifiedKeyValues.Result {
        let known = self.model[change.key]
        if isFirst, known?.value != nil { return .superseded }
        if let known, (change.time, device) < (known.time, known.device) { return .superseded }
        if let value = change.value {
            let others = self.model.filter { $0.key != change.key && $0.value.value != nil }
            if known?.value == nil, others.count >= 6 { return .refused(.tooManyKeys) }
            let size = others.reduce(value.count) { $0 + ($1.value.value?.count ?? 0) }
            let isSmaller = known?.value.map { value.count <= $0.count } ?? false
            if !isSmaller, size > 60 { return .refused(.storeFull) }
        }
        self.order += 1
        self.takenCount += 1
        self.model[change.key] = Standing(
            time: change.time, device: device, value: change.value, order: self.order)
        return .taken
    }

    private mutating func forgetRemovals() {
        let removed = self.model.filter { $0.value.value == nil }.sorted {
            $0.value.order < $1.value.order
        }
        for (key, _) in removed.prefix(max(0, removed.count - 3)) { self.model[key] = nil }
    }

    // MARK: Everything else

    private mutating func finishJobs() throws {
        self.own.milliseconds = self.now
        try self.own.bench.finishJobs()
        self.now = self.own.milliseconds
    }

    private mutating func erase() throws {
        self.own.milliseconds = self.now
        _ = try self.own.bench.apply(
            .eraseDatabase(EraseDatabase(database: Bench.privateDatabase)), as: Bench.system)
        self.model = [:]
        self.lastBatches = [:]
        for index in self.devices.indices { self.devices[index].sent = [] }
    }

    private mutating func follow(_ index: Int) throws -> String? {
        var moreComing = true
        while moreComing {
            let page = try self.own.page(
                after: self.devices[index].position, limit: UInt32(1 + self.draw(4)))
            if page.isFromStart { self.devices[index].mirror = [:] }
            for entry in page.entries {
                self.devices[index].mirror[entry.key] = entry.value
            }
            self.devices[index].position = page.position
            moreComing = page.moreComing
        }
        let values = self.model.compactMapValues(\.value)
        return self.devices[index].mirror == values
            ? nil : "a mirror is \(self.devices[index].mirror), not \(values)"
    }

    private func check() throws -> String? {
        let values = self.model.compactMapValues(\.value)
        let found = try self.own.values()
        if found != values { return "the store is \(found), not \(values)" }
        let use = try self.own.page().use
        if use.keyCount != UInt64(values.count)
            || use.size != UInt64(values.reduce(0) { $0 + $1.value.count })
            || use.removedCount != UInt64(self.model.count - values.count)
            || use.removedCount > 3 || use.size > 60 || use.keyCount > 6
        {
            return "the counters are \(use) of \(self.model)"
        }
        return nil
    }
}
