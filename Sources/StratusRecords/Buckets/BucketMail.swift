import StratusCoding
import StratusModel

// The body of a mail between buckets, format 1:
//
// | bytes | what                                                                                |
// | ----- | ----------------------------------------------------------------------------------- |
// | 1     | format, 1                                                                           |
// | 1     | kind: 1 confirmed, 2 removed, 3 settled, 4 cascade, 5 question, 6 stated, 7 inquiry  |
// | …     | the receiver's bucket: text container, 1 environment, 1 scope (3), 1 number, 1 count |
// | …     | the link: text target, 1 action, text referrer, 8 + 8 identity                       |

/// A reference that leaves its bucket: from `referrer`, in one, to `target`, in another.
///
/// The identity is that of the reservation it was made under. A reference that is dropped and made
/// again is therefore another link, and mail about the first never affects the second.
struct Link: Hashable {
    var target: String
    var action: Reference.Action
    var referrer: String
    var identity: RequestIdentity
}

/// A message from one bucket of a database to another.
struct BucketMail: Equatable {
    /// The raw value is in rows for ever.
    enum Kind: UInt8 {
        /// To the target's bucket: the save that the link was reserved for has happened.
        case confirmed = 1
        /// To the target's bucket: the referrer holds the reference no more.
        case removed = 2
        /// To the target's bucket, answering `question`: if the save had happened, it would be
        /// known by now.
        case settled = 3
        /// To the referrer's bucket: the target is deleted, and the reference is of action
        /// DELETE_SELF.
        case cascade = 4
        /// To the referrer's bucket, after the reservation's deadline: has the save happened?
        case question = 5
        /// To the target's bucket, from an audit: the referrer holds the reference, whatever is
        /// known of it there.
        case stated = 6
        /// To the referrer's bucket, from an audit, after the reservation's deadline: does it hold
        /// the reference? The answer is `stated` or `removed`.
        case inquiry = 7

        var goesToTarget: Bool {
            switch self {
            case .confirmed, .removed, .settled, .stated: true
            case .cascade, .question, .inquiry: false
            }
        }
    }

    var kind: Kind
    /// The receiver's database.
    var database: DatabaseID
    var link: Link

    /// - Parameter own: the sender's.
    init?(_ kind: Kind, _ link: Link, from own: DatabaseID) {
        guard let bucket = own.recordBucket else { return nil }
        self.kind = kind
        self.link = link
        self.database = own
        self.database.bucket = bucket.sibling(of: kind.goesToTarget ? link.target : link.referrer)
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 96)
        writer.write(1 as UInt8)
        writer.write(self.kind.rawValue)
        writer.write(self.database)
        writer.write(text: self.link.target)
        writer.write(self.link.action.rawValue)
        writer.write(text: self.link.referrer)
        writer.write(self.link.identity)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: 1)
        }
        self.kind = kind
        self.database = try reader.database()
        let target = try reader.text()
        let action = try reader.action()
        let referrer = try reader.text()
        self.link = Link(
            target: target, action: action, referrer: referrer, identity: try reader.identity())
        guard self.database.recordBucket != nil else { throw DecodingError(.malformed, at: 2) }
        try reader.finish()
    }
}

extension ByteWriter {
    mutating func write(_ identity: RequestIdentity) {
        self.write(fixed: identity.high)
        self.write(fixed: identity.low)
    }
}

extension ByteReader {
    mutating func identity() throws(DecodingError) -> RequestIdentity {
        let high = try self.fixed64()
        return RequestIdentity(high: high, low: try self.fixed64())
    }

    mutating func action() throws(DecodingError) -> Reference.Action {
        guard let action = Reference.Action(rawValue: try self.byte()), action != .none else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return action
    }
}
