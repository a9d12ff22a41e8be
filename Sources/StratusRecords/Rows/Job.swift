import StratusCoding
import StratusModel

// Job row, format 1. Keys: 1 kind, 4 zone; a cascade adds the target's name. Jobs on indexes have
// their own: see `IndexJob`.
//
// | bytes  | what                                                                         |
// | ------ | ---------------------------------------------------------------------------- |
// | 1      | format, 1                                                                    |
// | …      | cascade and trim: text container, 1 environment, 1 scope, text owner, text zone |
// | varint | cascade: tag of the deletion; only references written before it count         |
// | text   | cascade: the last referrer looked at; empty at the start                      |
// | varint | trim: tombstones to keep                                                     |
// | varint | trim: the last tag looked at                                                 |

/// Whose zone a job works in.
struct JobPlace: Equatable {
    var database: DatabaseID
    var zone: String
}

/// Work that an entry left to be done in bounded slices.
enum Job: Equatable {
    /// Delete what refers to `target` by DELETE_SELF references written before `before`.
    case cascade(ZoneNumber, JobPlace, target: String, before: ChangeTag, cursor: String)
    /// Drop the oldest tombstones until the zone keeps no more than `keep`; everything through
    /// `cursor` was looked at.
    case trim(ZoneNumber, JobPlace, keep: UInt64, cursor: ChangeTag)
    /// Remove every row of an incarnation that is gone.
    case purge(ZoneNumber)
    /// Fill or drop indexes after a change of the schema.
    case index(IndexJob)

    static let cascadeKind: UInt8 = 1
    static let trimKind: UInt8 = 2
    static let purgeKind: UInt8 = 3

    var key: Bytes {
        switch self {
        case .cascade(let zone, _, let target, _, _):
            [Self.cascadeKind] + Keys.zoneStart(zone) + Bytes(target.utf8)
        case .trim(let zone, _, _, _): [Self.trimKind] + Keys.zoneStart(zone)
        case .purge(let zone): [Self.purgeKind] + Keys.zoneStart(zone)
        case .index(let job): job.key
        }
    }

    func encoded() -> Bytes {
        if case .index(let job) = self { return job.encoded() }
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        switch self {
        case .cascade(_, let place, _, let before, let cursor):
            writer.write(place.database)
            writer.write(text: place.zone)
            writer.write(varint: before.raw)
            writer.write(text: cursor)
        case .trim(_, let place, let keep, let cursor):
            writer.write(place.database)
            writer.write(text: place.zone)
            writer.write(varint: keep)
            writer.write(varint: cursor.raw)
        case .purge, .index: break
        }
        return writer.bytes
    }

    init(key: Bytes, row: Bytes) throws(DecodingError) {
        if let job = try IndexJob(key: key, row: row) {
            self = .index(job)
            return
        }
        guard key.count >= 5 else { throw DecodingError(.truncated, at: 0) }
        let zone = ZoneNumber(
            key[1..<5].reduce(0) { number, byte in number << 8 | UInt32(byte) })
        var reader = ByteReader(row)
        try reader.format(1)
        switch key[0] {
        case Self.cascadeKind:
            guard let target = String(validating: key[5...], as: UTF8.self) else {
                throw DecodingError(.malformed, at: 0)
            }
            let place = try reader.jobPlace()
            let before = ChangeTag(try reader.varint())
            self = .cascade(
                zone, place, target: target, before: before, cursor: try reader.text())
        case Self.trimKind:
            let place = try reader.jobPlace()
            let keep = try reader.varint()
            self = .trim(zone, place, keep: keep, cursor: ChangeTag(try reader.varint()))
        case Self.purgeKind: self = .purge(zone)
        default: throw DecodingError(.malformed, at: 0)
        }
        try reader.finish()
    }
}

extension ByteReader {
    fileprivate mutating func jobPlace() throws(DecodingError) -> JobPlace {
        let database = try self.database()
        return JobPlace(database: database, zone: try self.text())
    }
}
