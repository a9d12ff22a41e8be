import StratusCoding
import StratusModel

// Zone row, format 1:
//
// | bytes  | what                                                                        |
// | ------ | --------------------------------------------------------------------------- |
// | 1      | format, 1                                                                   |
// | 1      | 0 live, 1 deleted                                                           |
// | varint | number of this incarnation                                                  |
// | 8      | incarnation                                                                 |
// | varint | last tag                                                                    |
// | varint | base tag: the first change of this incarnation is above it                   |
// | varint | oldest tag a position may name                                              |
// | varint | live records                                                                |
// | varint | tombstones                                                                  |
// | varint | turn in the database's feed; 0 for a default zone                           |
// | signed | last `modified`, milliseconds since 1970                                    |
// | varint | bytes of the live records' rows                                             |
// | varint | live records that hold assets                                               |
// | 1      | switches: 1 the zone is shared as a whole                                    |

/// The state of one zone in a partition, live or deleted.
struct ZoneRow: Equatable {
    var isDeleted = false
    var number: ZoneNumber
    var incarnation: ZoneIncarnation
    /// Grows by one with every change of a record. It is the record's change tag and its place in
    /// the zone's feed at once.
    var lastTag: UInt64
    var baseTag: UInt64
    /// The tag of the youngest tombstone that was dropped: who has not seen it would miss a
    /// deletion.
    var oldestTag: UInt64
    var recordCount: UInt64 = 0
    var tombstoneCount: UInt64 = 0
    var turn: UInt64 = 0
    var lastMilliseconds: Int64 = .min
    /// Bytes of the live records' rows.
    var size: UInt64 = 0
    /// Live records that hold assets: whether a purge must read them.
    var assetRecordCount: UInt64 = 0
    /// There is a share of the whole zone.
    var isShared = false

    init(number: ZoneNumber, incarnation: ZoneIncarnation, baseTag: UInt64) {
        self.number = number
        self.incarnation = incarnation
        self.lastTag = baseTag
        self.baseTag = baseTag
        self.oldestTag = baseTag
    }

    /// Whether somebody who has come to `position` would miss nothing from there on.
    func honours(_ position: FeedPosition) -> Bool {
        // At or before the base nothing had been seen at all: that is the beginning.
        position.tag.raw <= self.baseTag
            || max(position.tag.raw, position.floor.raw) >= self.oldestTag
    }

    var held: StorageUse {
        get { StorageUse(recordCount: self.recordCount, size: self.size) }
        set {
            self.recordCount = newValue.recordCount
            self.size = newValue.size
        }
    }

    func summary(name: String) -> ZoneSummary {
        ZoneSummary(
            name: name, incarnation: self.incarnation, lastTag: ChangeTag(self.lastTag),
            recordCount: self.recordCount)
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 40)
        writer.write(1 as UInt8)
        writer.write(flag: self.isDeleted)
        writer.write(varint: UInt64(self.number.raw))
        writer.write(fixed: self.incarnation.raw)
        writer.write(varint: self.lastTag)
        writer.write(varint: self.baseTag)
        writer.write(varint: self.oldestTag)
        writer.write(varint: self.recordCount)
        writer.write(varint: self.tombstoneCount)
        writer.write(varint: self.turn)
        writer.write(signed: self.lastMilliseconds)
        writer.write(varint: self.size)
        writer.write(varint: self.assetRecordCount)
        writer.write(self.isShared ? 1 : 0 as UInt8)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        self.isDeleted = try reader.flag()
        self.number = ZoneNumber(try reader.number32())
        self.incarnation = ZoneIncarnation(try reader.fixed64())
        self.lastTag = try reader.varint()
        self.baseTag = try reader.varint()
        self.oldestTag = try reader.varint()
        self.recordCount = try reader.varint()
        self.tombstoneCount = try reader.varint()
        self.turn = try reader.varint()
        self.lastMilliseconds = try reader.signed()
        self.size = try reader.varint()
        self.assetRecordCount = try reader.varint()
        self.isShared = try reader.flag()
        try reader.finish()
    }
}
