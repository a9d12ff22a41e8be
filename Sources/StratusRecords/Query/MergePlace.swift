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
package struct MergePlace: Sendable, Hashable, Comparable {
    package let key: Bytes
    package let marker: Bytes

    package init(key: Bytes, marker: Bytes) {
        self.key = key
        self.marker = marker
    }

    init(_ position: OrderedPosition, _ order: QueryOrder, _ fingerprint: UInt64) {
        var key = Bytes()
        for (level, part) in position.keys.enumerated() {
            Self.append(part, isAscending: order.ascending[level], to: &key)
        }
        if position.keys.count == order.ascending.count, let name = position.name {
            Self.append(name, isAscending: order.tieAscending, to: &key)
        } else {
            key.append(2)
        }
        self.key = key
        var anywhere = position
        anywhere.zone = []
        self.marker = QueryPosition.ordered(anywhere).encoded(fingerprint)
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
