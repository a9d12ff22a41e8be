import StratusCoding
import StratusModel

// Job row, format 1. Keys: 1 kind, 4 zone; a cascade and a dispatch add the target's name, a recall
// the referrer's, 0x00 and 16 bytes of identity. A letter's: 1 kind, 2 sender, 8 number of the mail
// it answers. Jobs on indexes have their own: see `IndexJob`.
//
// | bytes  | what                                                                         |
// | ------ | ---------------------------------------------------------------------------- |
// | 1      | format, 1                                                                    |
// | …      | cascade and trim: text container, 1 environment, 1 scope, text owner, text zone |
// | varint | cascade: tag of the deletion; only references written before it count         |
// | text   | cascade: the last referrer looked at; empty at the start                      |
// | varint | trim: tombstones to keep                                                     |
// | varint | trim: the last tag looked at                                                 |
// | …      | dispatch: as a cascade, but the cursor is a key, prefixed                     |
// | …      | recall: place, text target, 1 action, text referrer, 8 + 8 identity           |
// | …      | letter: a `BucketMail`, prefixed; one of kind stated is `removed` if it is   |
// |        | not so when it leaves                                                        |
// | 1      | purge: flag whether the zone's records held assets                            |
// | …      | audit: place, and the last key looked at, prefixed                            |

/// The zone that a job works in, and its database.
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
    /// Remove every row of an incarnation that is gone. If its records held assets, they are read
    /// first.
    case purge(ZoneNumber, hasAssets: Bool)
    /// Fill or drop indexes after a change of the schema.
    case index(IndexJob)
    /// Tell the buckets of those who refer to `target` by DELETE_SELF, reserved before `before`,
    /// that it is gone.
    case dispatch(ZoneNumber, JobPlace, target: String, before: ChangeTag, cursor: Bytes)
    /// Delete the referrer of a link whose target is gone.
    case recall(ZoneNumber, JobPlace, Link)
    /// Answer a mail, when there is room.
    case letter(LetterName, BucketMail)
    /// Compare what this bucket knows of links with their other ends, from behind the key `cursor`.
    case audit(ZoneNumber, JobPlace, cursor: Bytes)

    /// The mail that a letter answers.
    struct LetterName: Equatable {
        var sender: GroupID
        var sequence: UInt64
    }

    static let cascadeKind: UInt8 = 1
    static let trimKind: UInt8 = 2
    static let purgeKind: UInt8 = 3
    // 4 and 5 are those of `IndexJob`.
    static let dispatchKind: UInt8 = 6
    static let recallKind: UInt8 = 7
    static let letterKind: UInt8 = 8
    static let auditKind: UInt8 = 9

    var key: Bytes {
        switch self {
        case .cascade(let zone, _, let target, _, _): Self.cascadeKey(zone, target: target)
        case .trim(let zone, _, _, _): [Self.trimKind] + Keys.zoneStart(zone)
        case .purge(let zone, _): [Self.purgeKind] + Keys.zoneStart(zone)
        case .index(let job): job.key
        case .dispatch(let zone, _, let target, _, _):
            [Self.dispatchKind] + Keys.zoneStart(zone) + Bytes(target.utf8)
        case .recall(let zone, _, let link): Self.recallKey(zone, link)
        case .letter(let name, _): Self.letterKey(name)
        case .audit(let zone, _, _): [Self.auditKind] + Keys.zoneStart(zone)
        }
    }

    static func cascadeKey(_ zone: ZoneNumber, target: String) -> Bytes {
        [Self.cascadeKind] + Keys.zoneStart(zone) + Bytes(target.utf8)
    }

    private static func recallKey(_ zone: ZoneNumber, _ link: Link) -> Bytes {
        var key = [Self.recallKind] + Keys.zoneStart(zone)
        key.append(contentsOf: link.referrer.utf8)
        key.append(0)
        Keys.append(link.identity.high, to: &key)
        Keys.append(link.identity.low, to: &key)
        return key
    }

    private static func letterKey(_ name: LetterName) -> Bytes {
        var key: Bytes = [
            Self.letterKind, UInt8(name.sender.raw >> 8),
            UInt8(truncatingIfNeeded: name.sender.raw),
        ]
        Keys.append(name.sequence, to: &key)
        return key
    }

    /// The zone that it works in, where its row names one.
    var place: JobPlace? {
        switch self {
        case .cascade(_, let place, _, _, _), .trim(_, let place, _, _),
            .dispatch(_, let place, _, _, _), .recall(_, let place, _), .audit(_, let place, _):
            place
        case .purge, .index, .letter: nil
        }
    }

    /// Whether the job may post mail: it waits while the outbox is full.
    var posts: Bool {
        switch self {
        case .cascade(_, let place, _, _, _): place.database.recordBucket != nil
        case .dispatch, .recall, .letter, .audit: true
        case .trim, .purge, .index: false
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
        case .purge(_, let hasAssets): writer.write(flag: hasAssets)
        case .index: break
        case .dispatch(_, let place, _, let before, let cursor):
            writer.write(place.database)
            writer.write(text: place.zone)
            writer.write(varint: before.raw)
            writer.write(prefixed: cursor)
        case .recall(_, let place, let link):
            writer.write(place.database)
            writer.write(text: place.zone)
            writer.write(text: link.target)
            writer.write(link.action.rawValue)
            writer.write(text: link.referrer)
            writer.write(link.identity)
        case .letter(_, let mail): writer.write(prefixed: mail.encoded())
        case .audit(_, let place, let cursor):
            writer.write(place.database)
            writer.write(text: place.zone)
            writer.write(prefixed: cursor)
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
        case Self.purgeKind: self = .purge(zone, hasAssets: try reader.flag())
        case Self.dispatchKind:
            guard let target = String(validating: key[5...], as: UTF8.self) else {
                throw DecodingError(.malformed, at: 0)
            }
            let place = try reader.jobPlace()
            let before = ChangeTag(try reader.varint())
            self = .dispatch(
                zone, place, target: target, before: before, cursor: try reader.prefixed())
        case Self.recallKind:
            let place = try reader.jobPlace()
            let target = try reader.text()
            let action = try reader.action()
            let referrer = try reader.text()
            self = .recall(
                zone, place,
                Link(
                    target: target, action: action, referrer: referrer,
                    identity: try reader.identity()))
        case Self.letterKind:
            guard key.count == 11 else { throw DecodingError(.malformed, at: 0) }
            let name = LetterName(
                sender: GroupID(UInt16(key[1]) << 8 | UInt16(key[2])),
                sequence: key[3...].reduce(0) { $0 << 8 | UInt64($1) })
            self = .letter(name, try BucketMail(decoding: try reader.prefixed()))
        case Self.auditKind:
            let place = try reader.jobPlace()
            self = .audit(zone, place, cursor: try reader.prefixed())
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
