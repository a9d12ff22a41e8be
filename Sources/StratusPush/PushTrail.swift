package import StratusModel

/// What a node remembers of its recent pushes: from a change to each device's verdict.
///
/// It stands in memory alone and forgets the oldest beyond its bounds. Times are milliseconds since
/// 1970, as this node's clock says.
package struct PushTrail: Sendable {
    /// The change that a push tells of.
    package struct Change: Sendable, Equatable {
        /// The change's number in the news of its database.
        package var event: UInt64
        package var subscription: String
        package var zone: String
        /// Nil: the zone as a whole.
        package var record: String?
        /// When a record was saved; nil after a deletion, and for zones.
        package var savedAt: Int64?

        package init(
            event: UInt64, subscription: String, zone: String, record: String? = nil,
            savedAt: Int64? = nil
        ) {
            self.event = event
            self.subscription = subscription
            self.zone = zone
            self.record = record
            self.savedAt = savedAt
        }
    }

    /// One change's way to one device.
    package struct Entry: Sendable, Equatable {
        package var change: Change
        package var target: PushTarget
        package var lane: String
        /// When the change was first found to concern the device.
        package var matchedAt: Int64
        /// When it was last given to a connection.
        package var sentAt: Int64?
        package var sendCount = 0
        /// What was last said of it, and when.
        package var verdict: String?
        package var verdictAt: Int64?
        /// When the device's place was moved behind the change.
        package var settledAt: Int64?

        fileprivate var size: Int {
            256 + self.change.subscription.utf8.count + self.change.zone.utf8.count
                + (self.change.record?.utf8.count ?? 0) + self.target.subscriber.utf8.count
                + self.target.database.owner.utf8.count
                + self.target.database.container.container.utf8.count + self.lane.utf8.count
                + (self.verdict?.utf8.count ?? 0)
        }
    }

    /// Which entries somebody wants to see.
    package struct Ask: Sendable {
        package var container: ContainerReference
        package var record: String?
        package var event: UInt64?
        package var subscriber: String?
        package var countMax: Int

        package init(
            container: ContainerReference, record: String? = nil, event: UInt64? = nil,
            subscriber: String? = nil, countMax: Int = 100
        ) {
            self.container = container
            self.record = record
            self.event = event
            self.subscriber = subscriber
            self.countMax = countMax
        }

        fileprivate func wants(_ entry: Entry) -> Bool {
            entry.target.database.container == self.container
                && (self.record.map { entry.change.record == $0 } ?? true)
                && (self.event.map { entry.change.event == $0 } ?? true)
                && (self.subscriber.map { entry.target.subscriber == $0 } ?? true)
        }
    }

    package static let verdictSizeMax = 256

    private let countMax: Int
    private let sizeMax: Int
    /// By a number that counts up; the numbers from `oldest` to `next` are all there.
    private var entries: [UInt64: Entry] = [:]
    private var oldest: UInt64 = 0
    private var next: UInt64 = 0
    /// The last entry of each device that has one.
    private var last: [PushTarget: UInt64] = [:]
    package private(set) var size = 0

    package init(countMax: Int = 4_096, sizeMax: Int = 2 << 20) {
        self.countMax = countMax
        self.sizeMax = sizeMax
    }

    package var count: Int { self.entries.count }

    /// Notes that a change concerns a device. A change that is found again goes on in its entry.
    package mutating func matched(
        _ change: Change, _ target: PushTarget, lane: String, at time: Int64
    ) {
        if let number = self.last[target], self.entries[number]?.change == change { return }
        let entry = Entry(change: change, target: target, lane: lane, matchedAt: time)
        self.entries[self.next] = entry
        self.last[target] = self.next
        self.next += 1
        self.size += entry.size
        self.trim()
    }

    package mutating func sent(_ target: PushTarget, at time: Int64) {
        self.change(target) {
            $0.sentAt = time
            $0.sendCount += 1
        }
    }

    /// - Parameter verdict: cut at ``verdictSizeMax`` bytes.
    package mutating func judged(_ target: PushTarget, _ verdict: String, at time: Int64) {
        var text = verdict
        while text.utf8.count > Self.verdictSizeMax { text.removeLast() }
        self.change(target) {
            $0.verdict = text
            $0.verdictAt = time
        }
    }

    package mutating func settled(_ target: PushTarget, at time: Int64) {
        self.change(target) { $0.settledAt = time }
    }

    /// The newest entries that are asked for, in the order in which they were matched.
    package func entries(_ ask: Ask) -> [Entry] {
        var found: [Entry] = []
        var number = self.next
        while number > self.oldest, found.count < ask.countMax {
            number -= 1
            if let entry = self.entries[number], ask.wants(entry) { found.append(entry) }
        }
        return found.reversed()
    }

    private mutating func change(_ target: PushTarget, _ edit: (inout Entry) -> Void) {
        guard let number = self.last[target], var entry = self.entries[number] else { return }
        self.size -= entry.size
        edit(&entry)
        self.size += entry.size
        self.entries[number] = entry
        self.trim()
    }

    private mutating func trim() {
        while self.oldest < self.next,
            self.entries.count > self.countMax || self.size > self.sizeMax
        {
            if let entry = self.entries.removeValue(forKey: self.oldest) {
                self.size -= entry.size
                if self.last[entry.target] == self.oldest { self.last[entry.target] = nil }
            }
            self.oldest += 1
        }
    }
}
