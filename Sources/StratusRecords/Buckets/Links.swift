import StratusCoding
import StratusModel

// Rows of references that leave their bucket, in the reference table. Numbers in keys are big-endian.
//
// | key                                                             | row                                       |
// | --------------------------------------------------------------- | ----------------------------------------- |
// | 4 zone, target, 0x00, 0x80 + action, referrer, 0x00, 16 identity | at the target: 1 format, 1; 1 state: 1 reserved, |
// |                                                                 | 2 confirmed, 3 recalled; varint tag; signed deadline |
// | 4 zone, referrer, 0x00, 0xF0 + action, target                   | at the referrer: 1 format, 1; 16 identity  |
//
// And in the mail table, for as long as a link is no more than reserved:
//
// | key                                                             | row                                       |
// | --------------------------------------------------------------- | ----------------------------------------- |
// | 0x04, 8 deadline, 4 zone, then as the link's key                 | 1 format, 1; a `BucketMail` question, prefixed |

/// A link as the target's bucket knows it. It is counted with the target's referrers, whatever its state.
struct InboundLink: Equatable {
    /// The raw value is in rows for ever.
    enum State: UInt8 {
        /// A save may be about to hold the reference. Nobody knows yet.
        case reserved = 1
        /// The referrer holds it.
        case confirmed = 2
        /// Reserved, and the target is deleted since: should the save happen, its record goes.
        case recalled = 3
    }

    var state: State
    /// How far the target's zone had come when the link was reserved: a deletion that is later covers it.
    var tag: ChangeTag
    var deadlineMilliseconds: Int64

    init(state: State, tag: ChangeTag, deadlineMilliseconds: Int64) {
        self.state = state
        self.tag = tag
        self.deadlineMilliseconds = deadlineMilliseconds
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 24)
        writer.write(1 as UInt8)
        writer.write(self.state.rawValue)
        writer.write(varint: self.tag.raw)
        writer.write(signed: self.deadlineMilliseconds)
        return writer.bytes
    }

    init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        guard let state = State(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: 1)
        }
        self.state = state
        self.tag = ChangeTag(try reader.varint())
        self.deadlineMilliseconds = try reader.signed()
        try reader.finish()
    }
}

/// The rows of links, at both of their ends. Nothing is kept: each call reads and writes what it names.
struct LinkRows {
    let zone: ZoneNumber

    // MARK: At the target

    func inbound(_ link: Link, over rows: borrowing some RowReader) throws(StoreError)
        -> InboundLink?
    {
        guard let row = try rows.row(.reference, LinkKeys.inbound(self.zone, link)) else {
            return nil
        }
        return try decodingRow("link") { () throws(DecodingError) in
            try InboundLink(decoding: row)
        }
    }

    /// The first `limit` links to `target`, after the key `cursor`.
    func inbound(
        to target: String, _ action: Reference.Action, after cursor: Bytes = [], limit: Int,
        over rows: borrowing some RowReader
    ) throws(StoreError) -> [(key: Bytes, link: Link, state: InboundLink)] {
        let prefix = LinkKeys.inbound(self.zone, target: target, action)
        var found: [(key: Bytes, link: Link, state: InboundLink)] = []
        for (key, row) in try rows.rows(
            .reference, from: cursor.isEmpty ? prefix : cursor + [0], to: Keys.end(of: prefix),
            limit: limit)
        {
            let (referrer, identity) = try LinkKeys.rest(of: key, after: prefix.count)
            found.append(
                (
                    key,
                    Link(
                        target: target, action: action, referrer: referrer, identity: identity),
                    try decodingRow("link") { () throws(DecodingError) in
                        try InboundLink(decoding: row)
                    }
                ))
        }
        return found
    }

    /// Whether a link from `referrer` is confirmed, whatever it was reserved by.
    func refers(
        _ referrer: String, to target: String, _ action: Reference.Action,
        over rows: borrowing some RowReader
    ) throws(StoreError) -> Bool {
        let start = LinkKeys.inbound(self.zone, target: target, action) + Bytes(referrer.utf8) + [0]
        // One is confirmed, the others are reserved: by saves under way, and by those that came to nothing.
        for (_, row) in try rows.rows(
            .reference, from: start, to: Keys.end(of: start), limit: 100)
        {
            let link = try decodingRow("link") { () throws(DecodingError) in
                try InboundLink(decoding: row)
            }
            if link.state == .confirmed { return true }
        }
        return false
    }

    func put(_ link: Link, _ state: InboundLink, into rows: inout some RowStore)
        throws(StoreError)
    {
        try rows.put(.reference, LinkKeys.inbound(self.zone, link), state.encoded())
    }

    /// Reserves a link: its row, its place among the deadlines, and its part of the target's count.
    func reserve(
        _ link: Link, _ question: BucketMail, _ state: InboundLink, into rows: inout some RowStore
    ) throws(StoreError) {
        try self.put(link, state, into: &rows)
        var row = ByteWriter(reserving: 128)
        row.write(1 as UInt8)
        row.write(prefixed: question.encoded())
        try rows.put(
            .mail, LinkKeys.deadline(state.deadlineMilliseconds, self.zone, link), row.bytes)
        try self.count(link, by: 1, over: &rows)
    }

    /// The question of a reservation whose deadline has come.
    static func question(_ row: Bytes) throws(StoreError) -> BucketMail {
        try decodingRow("reservation") { () throws(DecodingError) in
            var reader = ByteReader(row)
            try reader.format(1)
            return try BucketMail(decoding: try reader.prefixed())
        }
    }

    func confirm(_ link: Link, _ state: InboundLink, over rows: inout some RowStore)
        throws(StoreError)
    {
        var state = state
        try self.forgetDeadline(link, state, over: &rows)
        state.state = .confirmed
        try self.put(link, state, into: &rows)
    }

    func remove(_ link: Link, _ state: InboundLink, over rows: inout some RowStore)
        throws(StoreError)
    {
        try rows.remove(.reference, LinkKeys.inbound(self.zone, link))
        if state.state != .confirmed { try self.forgetDeadline(link, state, over: &rows) }
        try self.count(link, by: -1, over: &rows)
    }

    private func forgetDeadline(
        _ link: Link, _ state: InboundLink, over rows: inout some RowStore
    ) throws(StoreError) {
        try rows.remove(.mail, LinkKeys.deadline(state.deadlineMilliseconds, self.zone, link))
    }

    func counts(of target: String, over rows: borrowing some RowReader) throws(StoreError)
        -> ReferrerCounts
    {
        let key = Keys.referrerCount(self.zone, target: target)
        guard let row = try rows.row(.reference, key) else { return ReferrerCounts() }
        return try decodingRow("referrer counts") { () throws(DecodingError) in
            try ReferrerCounts(decoding: row)
        }
    }

    private func count(_ link: Link, by delta: Int, over rows: inout some RowStore)
        throws(StoreError)
    {
        var counts = try self.counts(of: link.target, over: rows)
        counts.change(link.action, by: delta)
        let key = Keys.referrerCount(self.zone, target: link.target)
        if counts.isEmpty {
            try rows.remove(.reference, key)
        } else {
            try rows.put(.reference, key, counts.encoded())
        }
    }

    // MARK: At the referrer

    /// Under which reservation `referrer` holds a reference that leaves the bucket.
    func outbound(
        _ reference: ActingReference, of referrer: String, over rows: borrowing some RowReader
    ) throws(StoreError) -> RequestIdentity? {
        let key = LinkKeys.outbound(self.zone, reference, of: referrer)
        guard let row = try rows.row(.reference, key) else { return nil }
        return try decodingRow("link") { () throws(DecodingError) in
            var reader = ByteReader(row)
            try reader.format(1)
            let identity = try reader.identity()
            try reader.finish()
            return identity
        }
    }

    /// - Parameter identity: nil: the referrer holds it no more.
    func setOutbound(
        _ reference: ActingReference, of referrer: String, _ identity: RequestIdentity?,
        into rows: inout some RowStore
    ) throws(StoreError) {
        let key = LinkKeys.outbound(self.zone, reference, of: referrer)
        guard let identity else { return try rows.remove(.reference, key) }
        var writer = ByteWriter(reserving: 17)
        writer.write(1 as UInt8)
        writer.write(identity)
        try rows.put(.reference, key, writer.bytes)
    }
}

enum LinkKeys {
    static let deadlines: Bytes = [0x04]

    static func inbound(_ zone: ZoneNumber, target: String, _ action: Reference.Action) -> Bytes {
        var key = Keys.referencePrefix(zone, target: target)
        key.append(0x80 | action.rawValue)
        return key
    }

    static func inbound(_ zone: ZoneNumber, _ link: Link) -> Bytes {
        Self.inbound(zone, target: link.target, link.action) + Self.tail(link)
    }

    private static func tail(_ link: Link) -> Bytes {
        var tail = Bytes(link.referrer.utf8)
        tail.append(0)
        Keys.append(link.identity.high, to: &tail)
        Keys.append(link.identity.low, to: &tail)
        return tail
    }

    /// The referrer and the identity in the rest of an inbound link's key.
    static func rest(of key: Bytes, after count: Int) throws(StoreError)
        -> (referrer: String, identity: RequestIdentity)
    {
        let end = key.count - 17
        guard end > count, key[end] == 0,
            let referrer = String(validating: key[count..<end], as: UTF8.self)
        else { throw StoreError(.unreadable, "link key") }
        func word(_ start: Int) -> UInt64 {
            key[start..<(start + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        return (referrer, RequestIdentity(high: word(end + 1), low: word(end + 9)))
    }

    static func outbound(_ zone: ZoneNumber, _ reference: ActingReference, of referrer: String)
        -> Bytes
    {
        var key = Keys.referencePrefix(zone, target: referrer)
        key.append(0xF0 | reference.action.rawValue)
        key.append(contentsOf: reference.target.utf8)
        return key
    }

    /// Reservations in the order of their deadlines.
    static func deadline(_ milliseconds: Int64, _ zone: ZoneNumber, _ link: Link) -> Bytes {
        Self.deadlines(before: milliseconds) + Self.inbound(zone, link)
    }

    /// The first key of a deadline at or after this time.
    static func deadlines(before milliseconds: Int64) -> Bytes {
        var key = Self.deadlines
        Keys.append(UInt64(bitPattern: milliseconds) ^ 1 << 63, to: &key)
        return key
    }
}
