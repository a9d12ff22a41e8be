import StratusDoubles
import StratusModel

/// One client. It has one operation at a time, sent again under the same identity until it is
/// answered or the client gives up.
struct SimulatedClient {
    enum Work: Equatable {
        case command(RegisterCommand)
        case read(register: Int)
        case feed(after: UInt64)
        /// An operation on a group that holds records.
        case records(RecordWork)

        var isWrite: Bool {
            switch self {
            case .command: true
            case .records(let work): work.isWrite
            case .read, .feed: false
            }
        }
    }

    struct Current {
        let number: Int
        let group: GroupID
        let register: Int
        let work: Work
        var identity: RequestIdentity
        let calledAt: Int64
        let deadlineMilliseconds: Int64
        let givesUpAt: Int64
        var target: NodeID
        /// For records: the known position of the zone when this was asked.
        var floor: UInt64?
        var attempt = 0
    }

    let number: Int
    var current: Current?
    var operationCount = 0
    /// The nodes that the client believes to lead each group.
    var leaders: [GroupID: NodeID] = [:]
    /// The latest time of any group for which a command of its came too late.
    var latestMilliseconds: Int64 = 0
    /// The last value it saw in each register, for compare-and-set.
    var seen: [RegisterName: Int] = [:]
    var cursors: [GroupID: UInt64] = [:]
}

struct RegisterName: Hashable, Comparable {
    var group: GroupID
    var register: Int
    static func < (one: Self, other: Self) -> Bool {
        (one.group, one.register) < (other.group, other.register)
    }
    /// Not registers, but what else is asked of a group in the end.
    static let lastWrite = -1
    static let jobs = -2

    var key: Bytes { [0x72, UInt8(truncatingIfNeeded: self.register)] }
}

/// The observations of clients, for the checkers at the end.
struct History {
    struct FeedRead {
        var client: Int
        var group: GroupID
        var calledAt: Int64
        var after: UInt64
        var changes: [RegisterChange]
        /// Nothing was held back by the page's limit.
        var isComplete: Bool
    }

    struct Write {
        var value: Int
        var group: GroupID
        var returnedAt: Int64?
        /// Nil for one whose outcome is unknown.
        var tookEffect: Bool?
    }

    var registers: [RegisterName: [LinearizabilityChecker.Event]] = [:]
    var writes: [Write] = []
    var feedReads: [FeedRead] = []

    static func value(_ bytes: Bytes?) -> Int? {
        bytes.map { $0.prefix(8).reduce(0) { $0 << 8 | Int($1) } }
    }

    static func bytes(_ value: Int) -> Bytes {
        (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    }

    /// Every promise to clients that can be checked when the run is over.
    ///
    /// - Parameter feeds: the whole feed of each group, as its replicas agree on it.
    func check(feeds: [GroupID: [RegisterChange]]) -> Violation? {
        for name in self.registers.keys.sorted() {
            let verdict = LinearizabilityChecker.check(
                self.registers[name] ?? [], stepCountMax: 2_000_000)
            switch verdict {
            case .linearizable: continue
            case .undecided:
                return Violation(
                    "I-5 linearizable",
                    "\(name.group) register \(name.register): too long to tell")
            case .violated(let event):
                return Violation(
                    "I-5 linearizable",
                    "\(name.group) register \(name.register): nothing explains \(event.operation)"
                        + " called at \(event.calledAt / 1_000) µs")
            }
        }
        return self.checkWrites(feeds) ?? self.checkFeeds(feeds)
    }

    /// I-4: an acknowledged write is there, once; a refused one is not.
    private func checkWrites(_ feeds: [GroupID: [RegisterChange]]) -> Violation? {
        var positions: [Int: [UInt64]] = [:]
        for group in feeds.keys.sorted() {
            for change in feeds[group] ?? [] {
                guard let value = Self.value(change.value) else { continue }
                positions[value, default: []].append(change.position)
            }
        }
        for write in self.writes {
            let found = positions[write.value]?.count ?? 0
            if found > 1 {
                return Violation(
                    "I-4 exactly once",
                    "\(write.group): write \(write.value) happened \(found) times")
            }
            if write.tookEffect == true, found == 0 {
                return Violation(
                    "I-4 nothing lost", "\(write.group): acknowledged write \(write.value) is gone")
            }
            if write.tookEffect == false, found > 0 {
                return Violation(
                    "I-4 refused is refused",
                    "\(write.group): refused write \(write.value) happened")
            }
        }
        return nil
    }

    /// I-5: no gap, no repeat, never back, and never behind what was acknowledged before the read.
    private func checkFeeds(_ feeds: [GroupID: [RegisterChange]]) -> Violation? {
        var acknowledged: [GroupID: [(time: Int64, position: UInt64)]] = [:]
        for group in feeds.keys.sorted() {
            var places: [Int: UInt64] = [:]
            for change in feeds[group] ?? [] {
                if let value = Self.value(change.value) { places[value] = change.position }
            }
            var highest: UInt64 = 0
            acknowledged[group] = self.writes
                .filter { $0.group == group && $0.tookEffect == true }
                .compactMap { write in
                    write.returnedAt.flatMap { time in
                        places[write.value].map { (time: time, position: $0) }
                    }
                }
                .sorted { $0.time < $1.time }
                .map { item in
                    highest = max(highest, item.position)
                    return (item.time, highest)
                }
        }
        for read in self.feedReads {
            let feed = (feeds[read.group] ?? []).filter { $0.position > read.after }
            guard Array(feed.prefix(read.changes.count)) == read.changes else {
                return Violation(
                    "I-5 feed",
                    "\(read.group): client \(read.client) read after \(read.after) what the feed "
                        + "does not say")
            }
            guard read.isComplete else { continue }
            let end = read.changes.last?.position ?? read.after
            let before = acknowledged[read.group]?.last { $0.time < read.calledAt }
            if let before, before.position > end {
                return Violation(
                    "I-5 feed",
                    "\(read.group): client \(read.client) did not see the write at "
                        + "\(before.position), acknowledged before it asked")
            }
        }
        return nil
    }
}
