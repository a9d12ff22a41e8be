import StratusCoding
import StratusModel

// A row of the record table is a record body (StratusCoding, format byte 0x01), or a tombstone:
//
// | bytes  | what                                                       |
// | ------ | ---------------------------------------------------------- |
// | 1      | 0x02                                                       |
// | varint | change tag of the deletion                                 |
//
// A row of the feed table, format 1:
//
// | bytes  | what                                                       |
// | ------ | ---------------------------------------------------------- |
// | 1      | 0x01 a live record changed here, 0x02 a deletion           |
// | varint | the database's turn at that change; 0 in default zones     |
// | rest   | the record's name, UTF-8                                   |

/// The row of a record's name in the record table.
enum RecordRow: Equatable {
    case live(Record)
    /// Deleted, and still in the feed.
    case tombstone(ChangeTag)

    static let liveFormat: UInt8 = 1
    static let tombstoneFormat: UInt8 = 2

    init(decoding bytes: Bytes, name: String, zone: ZoneID) throws(DecodingError) {
        var reader = ByteReader(bytes)
        if bytes.first == Self.tombstoneFormat {
            _ = try reader.byte()
            self = .tombstone(ChangeTag(try reader.varint()))
        } else {
            self = .live(try reader.recordBody(name: name, zone: zone))
        }
        try reader.finish()
    }

    /// Whether a row is a live record's. The rest of the row is not looked at.
    static func isLive(_ row: Bytes) throws(StoreError) -> Bool {
        switch row.first {
        case Self.liveFormat: return true
        case Self.tombstoneFormat: return false
        default: throw StoreError(.unreadable, "record")
        }
    }

    static func encodedTombstone(_ tag: ChangeTag) -> Bytes {
        var writer = ByteWriter(reserving: 8)
        writer.write(Self.tombstoneFormat)
        writer.write(varint: tag.raw)
        return writer.bytes
    }
}

/// One place in a zone's feed.
struct FeedRow: Equatable {
    var isDeletion: Bool
    var turn: UInt64
    var name: String

    init(isDeletion: Bool, turn: UInt64, name: String) {
        self.isDeletion = isDeletion
        self.turn = turn
        self.name = name
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: self.name.utf8.count + 8)
        writer.write(self.isDeletion ? 2 : 1 as UInt8)
        writer.write(varint: self.turn)
        writer.write(raw: self.name.utf8)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        switch try reader.byte() {
        case 1: self.isDeletion = false
        case 2: self.isDeletion = true
        case let version: throw DecodingError(.unknownVersion(version), at: 0)
        }
        self.turn = try reader.varint()
        let start = reader.offset
        guard
            let name = String(validating: try reader.raw(reader.remaining), as: UTF8.self)
        else { throw DecodingError(.malformed, at: start) }
        self.name = name
    }
}
