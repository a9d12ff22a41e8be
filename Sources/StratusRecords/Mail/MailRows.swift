import StratusCoding
import StratusModel

// Keys of the mail table, all numbers big-endian:
//
// | key                        | row, every one with a first byte 1, its format                   |
// | -------------------------- | ---------------------------------------------------------------- |
// | 0x00                       | the office: varints waiting mails, their bytes; with a first     |
// |                            | byte 2 also a varint: below it numbers were given that a         |
// |                            | recovery has lost                                                |
// | 0x01, 2 receiver           | what was posted there: varint last number                        |
// | 0x02, 2 receiver, 8 number | a mail that waits: signed milliseconds, varint count; then its   |
// |                            | body                                                             |
// | 0x03, 2 sender             | what was received from there: varint last number                 |
//
// A route's row has a first byte 2 while the next number may be any later one: what came before it
// was lost. A row that is not there counts nothing. Both first bytes are flags for what the
// row holds, and belong to one format.

enum MailKeys {
    static let office: Bytes = [0x00]
    static let posted: Bytes = [0x01]
    static let waiting: Bytes = [0x02]
    static let received: Bytes = [0x03]

    static func posted(to receiver: GroupID) -> Bytes { Self.key(0x01, receiver) }
    static func waiting(for receiver: GroupID) -> Bytes { Self.key(0x02, receiver) }
    static func received(from sender: GroupID) -> Bytes { Self.key(0x03, sender) }

    static func waiting(for receiver: GroupID, _ sequence: UInt64) -> Bytes {
        var key = Self.waiting(for: receiver)
        Keys.append(sequence, to: &key)
        return key
    }

    /// The mail's receiver, and its number.
    static func readWaiting(_ key: Bytes) throws(StoreError) -> (GroupID, UInt64) {
        guard key.count == 11, key[0] == 0x02 else { throw StoreError(.unreadable, "a mail's key") }
        return (
            GroupID(UInt16(key[1]) << 8 | UInt16(key[2])), try Keys.number(key, at: 3)
        )
    }

    private static func key(_ kind: UInt8, _ group: GroupID) -> Bytes {
        [kind, UInt8(group.raw >> 8), UInt8(truncatingIfNeeded: group.raw)]
    }
}

/// The state of a partition's mail as a whole.
struct OfficeRow: Equatable {
    var waitingCount: UInt64 = 0
    var waitingSize: UInt64 = 0
    /// Routes that are not known may have come so far, and not further; 0: nothing was ever lost.
    var floor: UInt64 = 0

    /// A route of which there is no row, at its sender and at its receiver.
    var unposted: RouteRow { RouteRow(last: self.floor) }
    var unreceived: RouteRow { RouteRow(mayJump: self.floor > 0) }

    init() {}

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 24)
        writer.write(self.floor == 0 ? 1 : 2 as UInt8)
        writer.write(varint: self.waitingCount)
        writer.write(varint: self.waitingSize)
        if self.floor != 0 { writer.write(varint: self.floor) }
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let format = try reader.format(1...2)
        self.waitingCount = try reader.varint()
        self.waitingSize = try reader.varint()
        if format > 1 { self.floor = try reader.varint() }
        try reader.finish()
    }
}

/// How far one route has come, seen from one of its ends.
struct RouteRow: Equatable {
    var last: UInt64 = 0
    /// At a receiver that was recovered: some of what its sender has let go may be lost here.
    var mayJump = false

    /// How far a sender's numbers move when it is recovered.
    static let stride: UInt64 = 1 << 40

    init(last: UInt64 = 0, mayJump: Bool = false) {
        self.last = last
        self.mayJump = mayJump
    }

    /// Whether nothing that can still come lies between what was received and this number.
    func expects(_ number: UInt64) -> Bool {
        number == self.last + 1
            || number > self.last && (self.mayJump || number % Self.stride == 1)
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 8)
        writer.write(self.mayJump ? 2 : 1 as UInt8)
        writer.write(varint: self.last)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        self.mayJump = try reader.format(1...2) == 2
        self.last = try reader.varint()
        try reader.finish()
    }
}

extension Mail {
    func encodedRow() -> Bytes {
        var writer = ByteWriter(reserving: self.body.count + 16)
        writer.write(1 as UInt8)
        writer.write(self.sentAt)
        writer.write(raw: self.body)
        return writer.bytes
    }

    init(sequence: UInt64, row: Bytes) throws(DecodingError) {
        var reader = ByteReader(row)
        try reader.format(1)
        let sentAt = try reader.hybridTime()
        self.init(sequence: sequence, sentAt: sentAt, body: try reader.raw(reader.remaining))
    }
}
