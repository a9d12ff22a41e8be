import StratusCoding
package import StratusModel

/// The position of a record, or of a page's end, among the records of all buckets. Its bytes
/// compare as the query sorts. Its marker continues the query from there in any bucket.
///
/// | part of `key`           | bytes                                                           |
/// | ----------------------- | --------------------------------------------------------------- |
/// | a sort key, or the name | 01, then the bytes with 00 written as 00 FF, then 00 00         |
/// | after all of these      | 02                                                              |
///
/// The bytes of a sort key are complemented where the sort is descending.
///
/// Where parts of a database are merged that hold several zones each, a name is followed by one
/// more such element: the number of the part, then the zone's prefix in it. So the order is total
/// even though one name may be in many zones.
package struct MergePlace: Sendable, Hashable, Comparable {
    package let key: Bytes
    package let marker: Bytes

    package init(key: Bytes, marker: Bytes) {
        self.key = key
        self.marker = marker
    }

    /// - Parameter part: the part that the position is in, where parts hold several zones.
    init(
        _ position: OrderedPosition, _ order: QueryOrder, _ fingerprint: UInt64,
        part: UInt8? = nil
    ) {
        var key = Bytes()
        for (level, part) in position.keys.enumerated() {
            Self.append(part, isAscending: order.ascending[level], to: &key)
        }
        if position.keys.count == order.ascending.count, let name = position.name {
            Self.append(name, isAscending: order.tieAscending, to: &key)
            if let part {
                Self.append([part] + position.zone, isAscending: order.tieAscending, to: &key)
            }
        } else {
            key.append(2)
        }
        self.key = key
        var anywhere = position
        anywhere.zone = part.map { [$0] + position.zone } ?? []
        self.marker = QueryPosition.ordered(anywhere).encoded(fingerprint)
    }

    /// A marker's zone, as the part with number `part` compares it with its own zones: in another
    /// part it is before all of them, or behind.
    static func zone(_ place: Bytes, seenBy part: UInt8) -> Bytes {
        guard let first = place.first else { return [] }
        if first == part { return Bytes(place.dropFirst()) }
        return first < part ? [] : Bytes(repeating: 0xFF, count: 5)
    }

    private static func append(_ part: Bytes, isAscending: Bool, to key: inout Bytes) {
        key.append(1)
        let mask: UInt8 = isAscending ? 0 : 0xFF
        for byte in part {
            key.append(byte ^ mask)
            if byte == 0 { key.append(0xFF ^ mask) }
        }
        key.append(mask)
        key.append(mask)
    }

    package static func < (one: Self, other: Self) -> Bool {
        Bytes.isOrdered(one.key, before: other.key)
    }
}
