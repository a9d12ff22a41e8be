import StratusCoding
import StratusModel
import StratusRows

// Rows of references that leave their bucket, in the reference table. Numbers in keys are
// big-endian.
//
// | where           | key                                                              |
// | --------------- | ---------------------------------------------------------------- |
// | at the target   | 4 zone, target, 0x00, 0x80 + action, referrer, 0x00, 16 identity |
// | at the referrer | 4 zone, referrer, 0x00, 0xF0 + action, target                    |
//
// | where           | row                                                              |
// | --------------- | ---------------------------------------------------------------- |
// | at the target   | 1 format, 1; 1 state: 1 reserved, 2 confirmed, 3 recalled;       |
// |                 | varint tag; signed deadline                                      |
// | at the referrer | 1 format, 1; 16 identity                                         |
//
// And in the mail table, for as long as a link is no more than reserved, or an audit waits for its
// deadline:
//
// | key                                            | row                                      |
// | ---------------------------------------------- | ---------------------------------------- |
// | 0x04, 8 deadline, 4 zone, then the link's key  | 1 format, 1; a `BucketMail` to post      |
// |                                                | then, prefixed                           |

/// A link as the target's bucket knows it. It is counted with the target's referrers, whatever its
/// state.
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
    /// How far the target's zone had come when the link was reserved: a deletion that is later
    /// covers it.
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

/// The rows of links, at both of their ends. Nothing is kept: each call reads and writes what it
/// names.
struct LinkRows {
    let zone: ZoneNumber

    // MARK: At the target

    func inbound(_ link: Link, over rows: RowView) throws(StoreError)
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
        over rows: RowView
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
        over rows: RowView
    ) throws(StoreError) -> Bool {
        let start = LinkKeys.inbound(self.zone, target: target, action) + Bytes(referrer.utf8) + [0]
        // One is confirmed, the others are reserved: by saves under way, and by those that came to
        // nothing.
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

    func put(_ link: Link, _ state: InboundLink, into rows: Rows)
        throws(StoreError)
    {
        try rows.put(.reference, LinkKeys.inbound(self.zone, link), state.encoded())
    }

    /// Reserves a link: its row, its place among the deadlines, and its part of the target's count.
    func reserve(
        _ link: Link, _ question: BucketMail, _ state: InboundLink, into rows: Rows
    ) throws(StoreError) {
        try self.put(link, state, into: rows)
        try self.ask(question, state, into: rows)
        try self.count(link, by: 1, over: rows)
    }

    /// Posts `mail` about a link at the deadline of its reservation, instead of the mail that was
    /// to be posted then.
    func ask(
        _ mail: BucketMail, _ state: InboundLink, into rows: Rows
    ) throws(StoreError) {
        var row = ByteWriter(reserving: 128)
        row.write(1 as UInt8)
        row.write(prefixed: mail.encoded())
        try rows.put(
            .mail, LinkKeys.deadline(state.deadlineMilliseconds, self.zone, mail.link), row.bytes)
    }

    /// A link that its referrer holds and of which nothing is known here. No deadline: the save has
    /// happened.
    func restore(_ link: Link, _ zone: ZoneRow, over rows: Rows)
        throws(StoreError)
    {
        // As old as now: a deletion that is being told of came before it was known.
        let state = InboundLink(
            state: .confirmed, tag: ChangeTag(zone.lastTag), deadlineMilliseconds: 0)
        try self.put(link, state, into: rows)
        try self.count(link, by: 1, over: rows)
    }

    /// Decodes the `BucketMail` that a deadline's row posts.
    static func question(_ row: Bytes) throws(StoreError) -> BucketMail {
        try decodingRow("reservation") { () throws(DecodingError) in
            var reader = ByteReader(row)
            try reader.format(1)
            return try BucketMail(decoding: try reader.prefixed())
        }
    }

    func confirm(_ link: Link, _ state: InboundLink, over rows: Rows)
        throws(StoreError)
    {
        var state = state
        try self.forgetDeadline(link, state, over: rows)
        state.state = .confirmed
        try self.put(link, state, into: rows)
    }

    func remove(_ link: Link, _ state: InboundLink, over rows: Rows)
        throws(StoreError)
    {
        try rows.remove(.reference, LinkKeys.inbound(self.zone, link))
        if state.state != .confirmed { try self.forgetDeadline(link, state, over: rows) }
        try self.count(link, by: -1, over: rows)
    }

    func forgetDeadline(
        _ link: Link, _ state: InboundLink, over rows: Rows
    ) throws(StoreError) {
        try rows.remove(.mail, LinkKeys.deadline(state.deadlineMilliseconds, self.zone, link))
    }

    func counts(of target: String, over rows: RowView) throws(StoreError)
        -> ReferrerCounts
    {
        let key = Keys.referrerCount(self.zone, target: target)
        guard let row = try rows.row(.reference, key) else { return ReferrerCounts() }
        return try decodingRow("referrer counts") { () throws(DecodingError) in
            try ReferrerCounts(decoding: row)
        }
    }

    private func count(_ link: Link, by delta: Int, over rows: Rows)
        throws(StoreError)
    {
        var counts = try self.counts(of: link.target, over: rows.view)
        counts.change(link.action, by: delta)
        let key = Keys.referrerCount(self.zone, target: link.target)
        if counts.isEmpty {
            try rows.remove(.reference, key)
        } else {
            try rows.put(.reference, key, counts.encoded())
        }
    }

    // MARK: At the referrer

    /// The reservation under which `referrer` holds a reference that leaves the bucket.
    func outbound(
        _ reference: ActingReference, of referrer: String, over rows: RowView
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
        into rows: Rows
    ) throws(StoreError) {
        let key = LinkKeys.outbound(self.zone, reference, of: referrer)
        guard let identity else { return try rows.remove(.reference, key) }
        var writer = ByteWriter(reserving: 17)
        writer.write(1 as UInt8)
        writer.write(identity)
        try rows.put(.reference, key, writer.bytes)
    }
}
