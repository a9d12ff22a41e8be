import StratusCoding
package import StratusModel
import StratusRows

/// A lock that a client of WebDAV took on an item.
///
/// It is a record of its own, which goes with its item, and takes the first free of
/// ``countMax`` names. The records of removed locks stay for a while, so names that were drawn
/// would become too many to look through. A lock whose time is over forbids nothing, and its name
/// is free.
package struct DocumentLock: Sendable, Hashable {
    /// Locks in one store.
    package static let countMax = 256
    /// Shared locks that hold for one item, those of folders above it included: every listing shows
    /// them with each item.
    package static let sharedCountMax = 16
    package static let ownerSizeMax = 1 << 10
    /// The longest time that one may be given at once.
    package static let spanMilliseconds: Int64 = 3_600_000

    static let type = "_DocumentLock"
    /// Items have names of hexadecimal digits: no lock stands among them.
    static let namePrefix = "lock-"

    /// 32 hexadecimal digits.
    package var token: String
    package var item: String
    /// Excludes every other lock; otherwise only exclusive ones.
    package var isExclusive: Bool
    /// Holds for everything below the item too.
    package var isInfinite: Bool
    /// What the client says of itself: empty, or one element of XML that stands alone. Answers have
    /// it as it is, so only what the XML writer wrote may come here.
    package var owner: Bytes
    package var untilMilliseconds: Int64

    package init(
        token: String, item: String, isExclusive: Bool, isInfinite: Bool, owner: Bytes,
        untilMilliseconds: Int64
    ) {
        self.token = token
        self.item = item
        self.isExclusive = isExclusive
        self.isInfinite = isInfinite
        self.owner = owner
        self.untilMilliseconds = untilMilliseconds
    }

    static func recordName(_ slot: Int) -> String {
        let digits = String(slot)
        return Self.namePrefix + String(repeating: "0", count: 3 - digits.utf8.count) + digits
    }

    func fields(in zone: ZoneID) -> [Field] {
        let item: FieldValue =
            DocumentNames.isRoot(self.item)
            ? .scalar(.string(self.item))
            : .scalar(
                .reference(Reference(recordName: self.item, zone: zone, action: .deleteSelf)))
        return [
            Field(name: "isExclusive", value: .scalar(.int64(self.isExclusive ? 1 : 0))),
            Field(name: "isInfinite", value: .scalar(.int64(self.isInfinite ? 1 : 0))),
            Field(name: "item", value: item),
            Field(name: "owner", value: .scalar(.bytes(self.owner))),
            Field(name: "token", value: .scalar(.string(self.token))),
            Field(name: "until", value: .scalar(.timestamp(self.untilMilliseconds))),
        ]
    }

    init(_ record: Record) throws(StoreError) {
        guard record.type == Self.type,
            case .scalar(.string(let token))? = record.value(of: "token"),
            case .scalar(.int64(let isExclusive))? = record.value(of: "isExclusive"),
            case .scalar(.int64(let isInfinite))? = record.value(of: "isInfinite"),
            case .scalar(.bytes(let owner))? = record.value(of: "owner"),
            case .scalar(.timestamp(let until))? = record.value(of: "until")
        else { throw StoreError(.unreadable, "document lock") }
        switch record.value(of: "item") {
        case .scalar(.string(let root)): self.item = root
        case .scalar(.reference(let reference)): self.item = reference.recordName
        default: throw StoreError(.unreadable, "document lock")
        }
        self.token = token
        self.isExclusive = isExclusive != 0
        self.isInfinite = isInfinite != 0
        self.owner = owner
        self.untilMilliseconds = until
    }

    /// The locks of a store, by their records; those whose time is over are among them.
    static func all(
        of zone: ZoneNumber, in id: ZoneID, over rows: RowView
    ) throws(StoreError) -> [(slot: Int, lock: DocumentLock)] {
        let start = Keys.record(zone, Self.namePrefix)
        var locks: [(slot: Int, lock: DocumentLock)] = []
        for key in try rows.keys(
            .record, from: start, to: Keys.end(of: start), limit: Self.countMax)
        {
            let digits = String(decoding: key.dropFirst(start.count), as: UTF8.self)
            guard let slot = Int(digits) else { throw StoreError(.corrupt, "document lock") }
            guard
                let record = try StoredRows.record(
                    Self.recordName(slot), of: zone, in: id, over: rows
                ).row?.live
            else { continue }
            locks.append((slot, try DocumentLock(record)))
        }
        return locks
    }
}

/// A property that a client of WebDAV keeps with an item.
package struct DocumentProperty: Sendable, Hashable {
    package static let countMax = 64
    /// Bytes of all properties of one item.
    package static let sizeMax = 16 << 10

    package struct Name: Sendable, Hashable, Comparable {
        package var namespace: String
        package var local: String

        package init(namespace: String, local: String) {
            self.namespace = namespace
            self.local = local
        }

        /// By bytes: which characters are equivalent differs between builds.
        package static func == (one: Self, other: Self) -> Bool {
            one.namespace.utf8.elementsEqual(other.namespace.utf8)
                && one.local.utf8.elementsEqual(other.local.utf8)
        }

        package func hash(into hasher: inout Hasher) {
            for part in [self.namespace, self.local] { hasher.combine(Bytes(part.utf8)) }
        }

        package static func < (one: Self, other: Self) -> Bool {
            let namespaces = (Bytes(one.namespace.utf8), Bytes(other.namespace.utf8))
            if namespaces.0 != namespaces.1 {
                return namespaces.0.lexicographicallyPrecedes(namespaces.1)
            }
            return one.local.utf8.lexicographicallyPrecedes(other.local.utf8)
        }
    }

    package var name: Name
    /// The whole element, as XML that stands alone.
    package var element: Bytes

    package init(_ name: Name, element: Bytes) {
        self.name = name
        self.element = element
    }

    // MARK: In a record
    //
    // | bytes    | properties, format 1                                       |
    // | -------- | ---------------------------------------------------------- |
    // | 1        | format, 1                                                  |
    // | count    | then texts namespace and local, prefixed element, by name  |

    static func attributes(_ properties: [DocumentProperty]) -> Bytes {
        if properties.isEmpty { return [] }
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(properties)
        return writer.bytes
    }

    static func properties(_ attributes: Bytes) throws(StoreError) -> [DocumentProperty] {
        if attributes.isEmpty { return [] }
        return try decodingRow("document properties") { () throws(DecodingError) in
            var reader = ByteReader(attributes)
            let format = try reader.byte()
            guard format == 1 else {
                throw DecodingError(.unknownVersion(format), at: reader.offset - 1)
            }
            let properties = try reader.documentProperties()
            try reader.finish()
            return properties
        }
    }
}

/// What happens to one property.
package enum DocumentPropertyChange: Sendable, Hashable {
    case set(DocumentProperty)
    case remove(DocumentProperty.Name)
}
