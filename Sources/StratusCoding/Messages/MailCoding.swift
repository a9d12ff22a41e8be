package import StratusModel

// Mail command, format 1: the body of a `Command` of kind `.mail`
//
// | bytes      | what                                                                          |
// | ---------- | ----------------------------------------------------------------------------- |
// | 1          | format, 1                                                                     |
// | 1          | kind: 1 deliver, 2 release                                                    |
// | 2 + 2      | sender, receiver                                                              |
// | …          | deliver: count of mails, each one as below                                     |
// | varint, time | release: everything through this number was received, as of this time        |
//
// A mail: varint number, time it was sent at, prefixed body. A time: signed milliseconds, varint
// count.
//
// Mail outcome, format 1: 1 format; 1 kind: 1 received (varint through, time), 2 released,
// 3 refused. Answered, and never remembered.
//
// Outbox ask, format 1: 1 format, count of receivers left out, each 2 bytes, varints bags, mails,
// bytes. Outbox, format 1: 1 format, varints waiting mails, their bytes; flag more; count of
// piles, each 2 receiver and a count of mails. Neither is ever stored.

extension MailCommand {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 128)
        writer.write(1 as UInt8)
        switch self {
        case .deliver(let bag):
            writer.write(1 as UInt8)
            writer.write(bag.route)
            writer.write(bag.mails)
        case .release(let receipt):
            writer.write(2 as UInt8)
            writer.write(receipt.route)
            writer.write(varint: receipt.through)
            writer.write(receipt.at)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.firstFormat()
        switch try reader.byte() {
        case 1:
            let route = try reader.mailRoute()
            self = .deliver(MailBag(route, try reader.mails()))
        case 2:
            let route = try reader.mailRoute()
            let through = try reader.varint()
            self = .release(
                MailReceipt(route, through: through, at: try reader.hybridTime()))
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}

extension MailCommand: Submittable {
    package typealias Refusal = String
    package static var family: Command.Kind { .mail }
    package static let place = ContainerReference(
        container: "stratus.mail", environment: .production)

    package static func outcome(decoding body: Bytes, detail: Bytes) throws -> MailOutcome {
        try MailOutcome(decoding: body)
    }
}

extension MailOutcome {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 24)
        writer.write(1 as UInt8)
        switch self {
        case .received(let through, let time):
            writer.write(1 as UInt8)
            writer.write(varint: through)
            writer.write(time)
        case .released: writer.write(2 as UInt8)
        case .refused: writer.write(3 as UInt8)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.firstFormat()
        switch try reader.byte() {
        case 1:
            let through = try reader.varint()
            self = .received(through: through, at: try reader.hybridTime())
        case 2: self = .released
        case 3: self = .refused
        default: throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
    }
}

extension OutboxAsk {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 16 + 2 * self.except.count)
        writer.write(1 as UInt8)
        writer.write(count: self.except.count)
        for group in self.except { writer.write(fixed: group.raw) }
        writer.write(count: max(0, self.bagCountMax))
        writer.write(count: max(0, self.mailCountMax))
        writer.write(count: max(0, self.bagSizeMax))
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.firstFormat()
        var except: [GroupID] = []
        for _ in 0..<(try reader.count(minimumSize: 2)) {
            except.append(GroupID(try reader.fixed16()))
        }
        let bags = try reader.bound()
        let mails = try reader.bound()
        self.init(
            except: except, bagCountMax: bags, mailCountMax: mails, bagSizeMax: try reader.bound())
        try reader.finish()
    }

    /// The envelope around this question.
    package func enveloped() -> Query { Query(kind: .mail, body: self.encoded()) }
}

extension Outbox {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(varint: self.waitingCount)
        writer.write(varint: self.waitingSize)
        writer.write(flag: self.hasMore)
        writer.write(count: self.piles.count)
        for pile in self.piles {
            writer.write(fixed: pile.receiver.raw)
            writer.write(pile.mails)
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.firstFormat()
        self.init()
        self.waitingCount = try reader.varint()
        self.waitingSize = try reader.varint()
        self.hasMore = try reader.flag()
        for _ in 0..<(try reader.count(minimumSize: 3)) {
            let receiver = GroupID(try reader.fixed16())
            self.piles.append(Pile(receiver, try reader.mails()))
        }
        try reader.finish()
    }
}

extension ByteWriter {
    package mutating func write(_ time: HybridTime) {
        self.write(signed: time.milliseconds)
        self.write(varint: UInt64(time.count))
    }

    fileprivate mutating func write(_ route: MailRoute) {
        self.write(fixed: route.sender.raw)
        self.write(fixed: route.receiver.raw)
    }

    fileprivate mutating func write(_ mails: [Mail]) {
        self.write(count: mails.count)
        for mail in mails {
            self.write(varint: mail.sequence)
            self.write(mail.sentAt)
            self.write(prefixed: mail.body)
        }
    }
}

extension ByteReader {
    package mutating func hybridTime() throws(DecodingError) -> HybridTime {
        let milliseconds = try self.signed()
        let start = self.offset
        guard let count = UInt16(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        return HybridTime(milliseconds: milliseconds, count: count)
    }

    fileprivate mutating func firstFormat() throws(DecodingError) {
        let version = try self.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
    }

    fileprivate mutating func mailRoute() throws(DecodingError) -> MailRoute {
        let sender = GroupID(try self.fixed16())
        return MailRoute(from: sender, to: GroupID(try self.fixed16()))
    }

    fileprivate mutating func mails() throws(DecodingError) -> [Mail] {
        let count = try self.count(minimumSize: 4)
        var mails: [Mail] = []
        mails.reserveCapacity(min(count, 256))
        for _ in 0..<count {
            let sequence = try self.varint()
            let sentAt = try self.hybridTime()
            mails.append(Mail(sequence: sequence, sentAt: sentAt, body: try self.prefixed()))
        }
        return mails
    }

    /// A number that counts no bytes that follow: at most 2³¹ - 1.
    fileprivate mutating func bound() throws(DecodingError) -> Int {
        let start = self.offset
        guard let value = Int32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        return Int(value)
    }
}
