import StratusCoding
import StratusModel

// Counters of a partition, format 1: 1 format, varint next database number, varint next zone
// number, varint tag floor of databases that are made from now on, varint turn that they begin at,
// varint number that their events begin at.
//
// Database row, format 1:
//
// | bytes  | what                                                                        |
// | ------ | --------------------------------------------------------------------------- |
// | 1      | format, 1                                                                   |
// | varint | number                                                                      |
// | varint | turn: the feed's last position                                              |
// | text   | the custom zone whose turn it is; empty before the first                    |
// | varint | oldest turn a position may name                                             |
// | varint | tag floor: new zones start above it                                         |
// | varint | live custom zones                                                           |
// | varint | deleted zones that are still remembered                                     |
// | varint | records of the custom zones but the one whose turn it is                    |
// | varint | bytes of their rows                                                         |
// | 1      | flag: buckets are noted, and the next three follow                          |
// | 1      | count of the buckets that the database's custom zones lie in                 |
// | varint | those that are in use, a bit each                                           |
// | varint | tag floor of the layout that the buckets are of                             |

/// Hands out the numbers that stand in keys.
struct PartitionCounters: Equatable {
    var nextDatabase: UInt32 = 1
    var nextZone: UInt32 = 1
    /// Above every tag of databases that a recovery has lost.
    var tagFloor: UInt64 = 0
    /// Beyond every turn of databases that a recovery has lost.
    var turnFloor: UInt64 = 0
    /// Beyond every number of events that a recovery has lost.
    var eventFloor: UInt64 = 0

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 36)
        writer.write(1 as UInt8)
        writer.write(varint: UInt64(self.nextDatabase))
        writer.write(varint: UInt64(self.nextZone))
        writer.write(varint: self.tagFloor)
        writer.write(varint: self.turnFloor)
        writer.write(varint: self.eventFloor)
        return writer.bytes
    }

    init() {}

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self.nextDatabase = try reader.number32()
        self.nextZone = try reader.number32()
        self.tagFloor = try reader.varint()
        self.turnFloor = try reader.varint()
        self.eventFloor = try reader.varint()
        try reader.finish()
    }
}

/// The state of one database in a partition.
///
/// The database's feed is a list of *turns*: a turn begins when another zone than the last one
/// changes, and that zone's place moves to it. While one zone is written again and again the turn
/// stands still, and a position in the feed says how far the zone of its turn had come. A save in
/// the zone that changed last therefore costs the feed nothing.
///
/// The storage use is counted the same way. The row has the sum over all zones except two that
/// count themselves: the default zone and the one whose turn it is.
struct DatabaseRow: Equatable {
    /// Custom zones a database may hold.
    static let zoneCountMax: UInt64 = 100_000

    var number: DatabaseNumber
    var turn: UInt64 = 0
    var turnZone: String = ""
    var oldestTurn: UInt64 = 0
    var tagFloor: UInt64 = 0
    var zoneCount: UInt64 = 0
    var deletedZoneCount: UInt64 = 0
    /// The use of the custom zones, except for ``turnZone``.
    var heldElsewhere = StorageUse.none
    /// At the home of a spread database, once a bucket is in use.
    var buckets: ZoneBuckets?

    init(number: DatabaseNumber) { self.number = number }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 56)
        writer.write(1 as UInt8)
        writer.write(varint: UInt64(self.number.raw))
        writer.write(varint: self.turn)
        writer.write(text: self.turnZone)
        writer.write(varint: self.oldestTurn)
        writer.write(varint: self.tagFloor)
        writer.write(varint: self.zoneCount)
        writer.write(varint: self.deletedZoneCount)
        writer.write(self.heldElsewhere)
        writer.write(flag: self.buckets != nil)
        if let buckets { writer.write(buckets) }
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self.number = DatabaseNumber(try reader.number32())
        self.turn = try reader.varint()
        self.turnZone = try reader.text()
        self.oldestTurn = try reader.varint()
        self.tagFloor = try reader.varint()
        self.zoneCount = try reader.varint()
        self.deletedZoneCount = try reader.varint()
        self.heldElsewhere = try reader.storageUse()
        if try reader.flag() { self.buckets = try reader.zoneBuckets() }
        try reader.finish()
    }
}

extension ByteReader {
    mutating func format(_ expected: UInt8) throws(DecodingError) {
        _ = try self.format(expected...expected)
    }

    mutating func format(_ known: ClosedRange<UInt8>) throws(DecodingError) -> UInt8 {
        let version = try self.byte()
        guard known.contains(version) else {
            throw DecodingError(.unknownVersion(version), at: self.offset - 1)
        }
        return version
    }

    mutating func zoneBuckets() throws(DecodingError) -> ZoneBuckets {
        let start = self.offset
        let count = Int(try self.byte())
        let mask = BucketMask(try self.varint())
        guard Bucket.isBucket(0, of: count), count == 64 || mask.raw >> UInt64(count) == 0 else {
            throw DecodingError(.malformed, at: start)
        }
        return ZoneBuckets(count: count, mask: mask, tagFloor: try self.varint())
    }

    mutating func storageUse() throws(DecodingError) -> StorageUse {
        let recordCount = try self.varint()
        return StorageUse(recordCount: recordCount, size: try self.varint())
    }

    mutating func number32() throws(DecodingError) -> UInt32 {
        let start = self.offset
        guard let number = UInt32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        return number
    }
}

extension ByteWriter {
    mutating func write(_ buckets: ZoneBuckets) {
        self.write(UInt8(clamping: buckets.count))
        self.write(varint: buckets.mask.raw)
        self.write(varint: buckets.tagFloor)
    }

    mutating func write(_ use: StorageUse) {
        self.write(varint: use.recordCount)
        self.write(varint: use.size)
    }
}
