import StratusCoding
import StratusModel

// Zone row, format 1:
//
// | bytes  | what                                                                        |
// | ------ | --------------------------------------------------------------------------- |
// | 1      | format, 1                                                                   |
// | 1      | 0 live; else the reason of the deletion                                     |
// | …      | deleted: text user, 8 + 8 request, signed milliseconds since 1970             |
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
// | 1      | switches: 1 the zone is shared as a whole, 2 its scope is PER_ZONE, 4        |
// |        | cascades are under way                                                      |
// | 1      | reason of the deletion of the incarnation before; 0: there was none           |
// | varint | turn of that deletion                                                        |
// | varint | turn of the last deletion with the reason purged; 0: there was none           |

/// How a zone came to its end.
struct ZoneEnd: Equatable {
    var reason: DeletionReason
    /// Who deleted it, and the request that did.
    var user: String
    var request: RequestIdentity
    var milliseconds: Int64
}

/// The state of one zone in a partition, live or deleted.
struct ZoneRow: Equatable {
    /// Nil: the zone is live.
    var end: ZoneEnd?
    var isDeleted: Bool { self.end != nil }
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
    /// Jobs have still to delete what refers to deleted records. Of zones without a tree nobody
    /// notes it.
    var hasCascades = false
    /// Fixed for the zone's life.
    var scope = EncryptionScope.perRecord
    /// How the incarnation before this one ended, and the turn in which it did.
    var earlierReason: DeletionReason?
    var earlierTurn: UInt64 = 0
    /// The turn in which a zone of this name was last purged.
    var purgeTurn: UInt64 = 0

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
            recordCount: self.recordCount, scope: self.scope)
    }

    /// Why the zone is gone, for somebody who has heard of all through a turn.
    func reason(after heard: UInt64) -> DeletionReason? {
        guard let end else { return nil }
        return self.strictest(end.reason, after: heard)
    }

    /// Why the zone's earlier incarnation is gone, for somebody who has not heard of that yet.
    func reasonBefore(after heard: UInt64) -> DeletionReason? {
        guard let earlierReason, self.earlierTurn > heard else { return nil }
        return self.strictest(earlierReason, after: heard)
    }

    /// Of several deletions that were missed, the one by which nothing may come back counts.
    private func strictest(_ reason: DeletionReason, after heard: UInt64) -> DeletionReason {
        self.purgeTurn > heard ? .purged : reason
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 40)
        writer.write(1 as UInt8)
        writer.write(self.end?.reason.rawValue ?? 0)
        if let end {
            writer.write(text: end.user)
            writer.write(end.request)
            writer.write(signed: end.milliseconds)
        }
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
        writer.write(
            (self.isShared ? 1 : 0) | (self.scope == .perZone ? 2 : 0)
                | (self.hasCascades ? 4 : 0) as UInt8)
        writer.write(self.earlierReason?.rawValue ?? 0)
        writer.write(varint: self.earlierTurn)
        writer.write(varint: self.purgeTurn)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        if let reason = try reader.deletionReason() {
            let user = try reader.text()
            let request = try reader.identity()
            self.end = ZoneEnd(
                reason: reason, user: user, request: request, milliseconds: try reader.signed())
        }
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
        let switches = try reader.byte()
        guard switches < 8 else { throw DecodingError(.malformed, at: reader.offset - 1) }
        self.isShared = switches & 1 != 0
        self.scope = switches & 2 != 0 ? .perZone : .perRecord
        self.hasCascades = switches & 4 != 0
        self.earlierReason = try reader.deletionReason()
        self.earlierTurn = try reader.varint()
        self.purgeTurn = try reader.varint()
        try reader.finish()
    }
}

extension ByteReader {
    /// Nil: 0, the zone is there.
    mutating func deletionReason() throws(DecodingError) -> DeletionReason? {
        let number = try self.byte()
        if number == 0 { return nil }
        guard let reason = DeletionReason(rawValue: number) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return reason
    }
}
