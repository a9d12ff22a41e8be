import StratusCoding
import StratusModel

// Rows of Table.subscription. Every key begins with one byte of kind and the four bytes of the
// database's number; texts hold no zero byte.
//
// | kind | rest of the key                          | row                                   |
// | ---- | ---------------------------------------- | ------------------------------------- |
// | 0    | nothing                                  | what is watched, and the events' ends |
// | 1    | 1 scope, subscriber, 0x00, ID            | a subscription                        |
// | 2    | record type                              | what subscriptions want of the type   |
// | 3    | zone name                                | the numbers of the zone's marks       |
// | 4    | subscriber, 0x00, 16 token               | a follower of the news                |
// | 5    | subscriber, 0x00, 16 token               | a follower that is a provider's device |
//
// Rows of Table.event: 4 database, 8 number.
//
// | row          | bytes, after 1 byte of format, 1                                          |
// | ------------ | ------------------------------------------------------------------------- |
// | watch        | varints next event, oldest event, subscriptions, those that watch zones,   |
// |              | events of records, front, marks, oldest mark                               |
// | subscription | varint since, then a subscription as in a command                          |
// | interest     | three varints: how many want creations, updates, deletions; count of       |
// |              | fields, each a text and a varint: how many want it                          |
// | mark         | count, varint numbers, ascending                                            |
// | follower     | a position, signed milliseconds of its last move; where the first byte is a |
// |              | 2, the flag of a device: database, then the same                            |
// | event        | 1 byte: 0 mark: text zone, varint tag; else the reason: text zone, count of |
// |              | omitted fields, each a text, text record name, a record body               |
//
// A position: varint number, text subscription.

extension Keys {
    enum SubscriptionKind: UInt8, CaseIterable {
        case watch = 0
        case subscription = 1
        case interest = 2
        case mark = 3
        case follower = 4
        case deviceFollower = 5
    }

    static func subscriptionRows(_ kind: SubscriptionKind, of database: DatabaseNumber) -> Bytes {
        [kind.rawValue] + Self.bytes(database.raw, reserving: 0)
    }

    static func watch(_ database: DatabaseNumber) -> Bytes {
        Self.subscriptionRows(.watch, of: database)
    }

    static func subscriptions(
        _ database: DatabaseNumber, isShared: Bool, of subscriber: String
    ) -> Bytes {
        let scope: DatabaseScope = isShared ? .shared : .private
        return Self.subscriptionRows(.subscription, of: database) + [scope.rawValue]
            + Bytes(subscriber.utf8) + [0]
    }

    static func subscription(
        _ database: DatabaseNumber, isShared: Bool, of subscriber: String, _ id: String
    ) -> Bytes {
        Self.subscriptions(database, isShared: isShared, of: subscriber) + Bytes(id.utf8)
    }

    static func interest(_ database: DatabaseNumber, _ type: String) -> Bytes {
        Self.subscriptionRows(.interest, of: database) + Bytes(type.utf8)
    }

    static func mark(_ database: DatabaseNumber, _ zone: String) -> Bytes {
        Self.subscriptionRows(.mark, of: database) + Bytes(zone.utf8)
    }

    static func followers(
        _ database: DatabaseNumber, of subscriber: String, as follower: NewsFollower
    ) -> Bytes {
        let kind: SubscriptionKind = follower == .poll ? .follower : .deviceFollower
        return Self.subscriptionRows(kind, of: database) + Bytes(subscriber.utf8) + [0]
    }

    static func follower(
        _ database: DatabaseNumber, of subscriber: String, _ token: Bytes,
        as follower: NewsFollower
    ) -> Bytes {
        Self.followers(database, of: subscriber, as: follower) + token
    }

    /// The owner and the token that a follower's key names.
    static func followerParts(_ key: Bytes) throws(StoreError) -> (subscriber: String, Bytes) {
        let (start, end) = (5, key.count - FollowNews.tokenLength)
        guard end > start + 1, key[end - 1] == 0 else {
            throw StoreError(.corrupt, "the key of a follower")
        }
        return (String(decoding: key[start..<(end - 1)], as: UTF8.self), Bytes(key[end...]))
    }

    static func event(_ database: DatabaseNumber, _ number: UInt64) -> Bytes {
        var key = Self.bytes(database.raw, reserving: 8)
        Self.append(number, to: &key)
        return key
    }
}

/// What is watched in a database, and which events it holds. Absent: nobody ever watched.
struct WatchRow: Equatable {
    var nextEvent: UInt64
    /// No event before this one is held.
    var oldestEvent: UInt64
    var subscriptionCount: UInt64 = 0
    var zoneWatcherCount: UInt64 = 0
    /// Events of records that are held.
    var eventCount: UInt64 = 0
    /// Marks through here keep their tags: somebody was told of them, or watches only since then.
    var front: UInt64
    /// Marks that are held.
    var markCount: UInt64 = 0
    /// No mark before this one is held.
    var oldestMark: UInt64

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        writer.write(varint: self.nextEvent)
        writer.write(varint: self.oldestEvent)
        writer.write(varint: self.subscriptionCount)
        writer.write(varint: self.zoneWatcherCount)
        writer.write(varint: self.eventCount)
        writer.write(varint: self.front)
        writer.write(varint: self.markCount)
        writer.write(varint: self.oldestMark)
        return writer.bytes
    }

    /// The state of a database that nobody has watched yet.
    ///
    /// - Parameter floor: of the partition's counters.
    init(above floor: UInt64 = 0) {
        self.nextEvent = floor + 1
        self.oldestEvent = floor + 1
        self.front = floor
        self.oldestMark = floor + 1
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.rowFormat()
        self.nextEvent = try reader.varint()
        self.oldestEvent = try reader.varint()
        self.subscriptionCount = try reader.varint()
        self.zoneWatcherCount = try reader.varint()
        self.eventCount = try reader.varint()
        self.front = try reader.varint()
        self.markCount = try reader.varint()
        self.oldestMark = try reader.varint()
        try reader.finish()
    }
}

struct SubscriptionRow: Equatable {
    /// It fires for events from this number on.
    var since: UInt64
    var subscription: Subscription

    init(since: UInt64, _ subscription: Subscription) {
        self.since = since
        self.subscription = subscription
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256 + self.subscription.content.count)
        writer.write(1 as UInt8)
        writer.write(varint: self.since)
        writer.write(self.subscription)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.rowFormat()
        self.since = try reader.varint()
        self.subscription = try reader.subscription()
        try reader.finish()
    }
}

/// What the query subscriptions of one record type want, so that events carry that and no more.
struct InterestRow: Equatable {
    /// Stands for every field, where a filter searches all of them.
    static let everyField = "*"

    /// How many want creations, updates, deletions.
    var counts: [UInt64] = [0, 0, 0]
    var fields: [String: UInt64] = [:]

    var isEmpty: Bool { self.counts.allSatisfy { $0 == 0 } }

    func wants(_ reason: Subscription.Reasons) -> Bool {
        self.counts[reason.rawValue.trailingZeroBitCount] > 0
    }

    func wants(field: String) -> Bool {
        self.fields[field] != nil || self.fields[Self.everyField] != nil
    }

    mutating func count(_ subscription: Subscription, by step: Int64) {
        for bit in 0..<3 where subscription.reasons.rawValue & 1 << bit != 0 {
            self.counts[bit] = Self.moved(self.counts[bit], by: step)
        }
        var names = Set(subscription.fields)
        for filter in subscription.predicate?.filters ?? [] {
            switch filter.field {
            case .field(let name): names.insert(name)
            case .anySearchable: names.insert(Self.everyField)
            case .system: break
            }
        }
        for name in names {
            let count = Self.moved(self.fields[name] ?? 0, by: step)
            self.fields[name] = count == 0 ? nil : count
        }
    }

    private static func moved(_ count: UInt64, by step: Int64) -> UInt64 {
        UInt64(clamping: Int64(clamping: count) + step)
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        for count in self.counts { writer.write(varint: count) }
        writer.write(count: self.fields.count)
        for (name, count) in self.fields.sorted(by: { $0.key < $1.key }) {
            writer.write(text: name)
            writer.write(varint: count)
        }
        return writer.bytes
    }

    init() {}

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.rowFormat()
        for bit in 0..<3 { self.counts[bit] = try reader.varint() }
        for _ in 0..<(try reader.count(minimumSize: 2)) {
            let name = try reader.text()
            self.fields[name] = try reader.varint()
        }
        try reader.finish()
    }
}

/// The numbers of a zone's marks, ascending: at most two for each follower, and the newest.
struct ZoneMarksRow: Equatable {
    static let countMax = 2 * 2 * RecordState.followerCountMax + 1

    var numbers: [UInt64] = []

    init(numbers: [UInt64] = []) { self.numbers = numbers }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16)
        writer.write(1 as UInt8)
        writer.write(count: self.numbers.count)
        for number in self.numbers { writer.write(varint: number) }
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.rowFormat()
        let count = try reader.count(minimumSize: 1)
        for _ in 0..<count { self.numbers.append(try reader.varint()) }
        let isSound =
            count <= Self.countMax
            && zip(self.numbers, self.numbers.dropFirst()).allSatisfy { $0 < $1 }
        guard isSound else { throw DecodingError(.malformed, at: 1) }
        try reader.finish()
    }
}

struct FollowerRow: Equatable {
    var position: NewsPosition
    var milliseconds: Int64
    /// Of a device only: whoever finds the row must know where it belongs.
    var database: DatabaseID?

    init(position: NewsPosition, milliseconds: Int64, deviceIn database: DatabaseID? = nil) {
        self.position = position
        self.milliseconds = milliseconds
        self.database = database
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 32)
        writer.write((self.database == nil ? 1 : 2) as UInt8)
        if let database = self.database { writer.write(database) }
        writer.write(self.position)
        writer.write(signed: self.milliseconds)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 || version == 2 else {
            throw DecodingError(.unknownVersion(version), at: 0)
        }
        self.database = version == 2 ? try reader.database() : nil
        self.position = try reader.newsPosition()
        self.milliseconds = try reader.signed()
        try reader.finish()
    }
}

extension NewsEvent {
    /// Whether a row is a mark: behind its format there is no reason.
    static func isMark(_ row: Bytes) -> Bool { row.count > 1 && row[1] == 0 }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(self)
        return writer.bytes
    }

    init(decoding bytes: Bytes, owner: String) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.rowFormat()
        self = try reader.newsEvent(owner: owner)
        try reader.finish()
    }
}

extension ByteReader {
    fileprivate mutating func rowFormat() throws(DecodingError) {
        let version = try self.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
    }
}
