import StratusCoding
import StratusModel
import StratusSimulation
import StratusStorage
import Synchronization
import Testing

/// A log over a simulated disk, with what it reported.
final class LogBench {
    let world: SimulatedWorld
    var files: SimulatedFiles { self.world.simulatedFiles }
    private let reported = Reports()
    var limits = SegmentedLog.Limits()

    final class Reports: Sendable {
        private let events = Mutex<[LogEvent]>([])
        func add(_ event: LogEvent) { self.events.withLock { $0.append(event) } }
        func take() -> [LogEvent] {
            self.events.withLock { events in
                defer { events = [] }
                return events
            }
        }
    }

    init(seed: UInt64 = 1, segmentSize: Int = 8_192, isSealed: Bool = false) {
        self.world = SimulatedWorld(seed: seed)
        if isSealed { self.world.seal(under: SealedFilesTests.masters()) }
        self.limits.segmentSize = ByteCount(segmentSize)
    }

    func open(isNew: Bool = true) throws(LogError) -> SegmentedLog {
        let reported = self.reported
        return try SegmentedLog(
            in: "log", of: self.world, isNew: isNew, limits: self.limits,
            onEvent: { reported.add($0) })
    }

    var events: [LogEvent] { self.reported.take() }

    /// Writes entries to each of `groups`, a batch for each index.
    func write(_ range: ClosedRange<UInt64>, to groups: [UInt16] = [1]) throws {
        let log = try self.open()
        for index in range {
            for group in groups { log.append(group, index...index) }
            log.flushAll()
        }
    }

    /// Flips a bit of the first file, so many bytes from the payload of an entry of group 1: no
    /// other place has its text. Then the process ends.
    func damage(entry index: UInt64, at distance: Int = 100) throws {
        let path = try #require(self.files.allFiles.first)
        let bytes = try #require(self.files.contents(of: path))
        let text = Self.entry(index).payload
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: text) })
        self.files.flip(bit: 3, at: start + distance, of: path)
        self.files.restart(after: .processCrash)
    }

    static func entry(_ index: UInt64, term: UInt64 = 1, size: Int = 200, mark: UInt64 = 0) -> Entry
    {
        Entry(
            index: LogIndex(index), term: Term(term),
            time: HybridTime(milliseconds: Int64(1_000 + index), count: UInt16(index & 7)),
            kind: index % 5 == 0 ? .noop : .command,
            payload: Bytes("\(index) \(term) \(mark) ".utf8)
                + Bytes((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ Int(index)) }))
    }

    static func entries(_ range: ClosedRange<UInt64>, term: UInt64 = 1, size: Int = 200) -> [Entry]
    {
        range.map { Self.entry($0, term: term, size: size) }
    }
}

extension SegmentedLog {
    func append(_ group: UInt16, _ range: ClosedRange<UInt64>, term: UInt64 = 1) {
        self.submit([
            LogBatch(group: GroupID(group), entries: LogBench.entries(range, term: term))
        ])
    }
    func flushAll() { while self.flush() {} }
    func all(_ group: UInt16) throws -> [Entry] {
        let start = self.start(of: GroupID(group)).index
        return try self.read(GroupID(group), from: start.next, limit: .mebibytes(64))
    }
    func indexes(_ group: UInt16) throws -> [UInt64] { try self.all(group).map(\.index.raw) }
}
