import StratusModel

/// Keys of links' rows; ``LinkRows`` has the table of them.
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

    /// A row of a link, as an audit comes by it.
    enum Found: Equatable {
        /// At the target.
        case inbound(Link)
        /// At the referrer. Under which reservation says the row.
        case outbound(ActingReference, referrer: String)
        /// Something else: a reference within the bucket, or a count.
        case other
    }

    static func found(_ key: Bytes) throws(StoreError) -> Found {
        guard key.count > 6, let end = key[4...].firstIndex(of: 0), end + 1 < key.count,
            let name = String(validating: key[4..<end], as: UTF8.self)
        else { throw StoreError(.unreadable, "reference key") }
        let marker = key[end + 1]
        guard marker >= 0x80 else { return .other }
        guard let action = Reference.Action(rawValue: marker & 0x0F), action != .none else {
            throw StoreError(.unreadable, "link key")
        }
        if marker & 0xF0 == 0x80 {
            let (referrer, identity) = try Self.rest(of: key, after: end + 2)
            return .inbound(
                Link(target: name, action: action, referrer: referrer, identity: identity))
        }
        guard marker & 0xF0 == 0xF0,
            let target = String(validating: key[(end + 2)...], as: UTF8.self)
        else { throw StoreError(.unreadable, "link key") }
        return .outbound(ActingReference(target: target, action: action), referrer: name)
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
