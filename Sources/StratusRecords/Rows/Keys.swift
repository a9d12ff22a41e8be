import StratusModel

/// One incarnation of a zone inside one partition: the first four bytes of every key that belongs
/// to it. Numbers are given in order and never again, so that a deleted zone's rows are out of
/// sight the moment its zone row no longer names its number.
package struct ZoneNumber: Sendable, Hashable, Comparable {
    package var raw: UInt32
    package init(_ raw: UInt32) { self.raw = raw }
    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
}

/// A database inside one partition.
package struct DatabaseNumber: Sendable, Hashable {
    package var raw: UInt32
    package init(_ raw: UInt32) { self.raw = raw }
}

// Keys, all numbers big-endian so that bytes order as the numbers do. Names are the UTF-8 of names
// that hold no control characters, so a zero byte ends one.
//
// | table     | key                                                                        |
// | --------- | -------------------------------------------------------------------------- |
// | database  | 0x00: the partition's counters                                             |
// |           | 0x01, 1 environment, 1 scope, container, 0x00, owner: a database             |
// |           | 0x01, 1 environment, 0x00, container, 0x00, 0x00, 1 number: a bucket of a    |
// |           | public one                                                                  |
// |           | 0x01, 1 environment, 0x01, container, 0x00, owner, 0x00, 1 number, 1 count: a |
// |           | bucket of a private one                                                     |
// | zone      | 4 database, 0x00, zone name: a zone, live or deleted                        |
// |           | 4 database, 0x01, 8 turn: the zone that had that turn last                  |
// | record    | 4 zone, record name: a live record or a tombstone                           |
// | feed      | 4 zone, 8 change tag: the record or tombstone that changed there last        |
// | reference | 4 zone, target name, 0x00, 0x00: how many DELETE_SELF referrers it has       |
// |           | 4 zone, target name, 0x00, 1 kind, referrer name: one reference or child      |
// |           | 4 zone, record name, 0x00, 0xC0: the record's own place in the tree           |
// | schema    | 0x00, 1 environment, container: the schema held (others: StratusRecords/Schema) |
// | job       | 1 kind, 4 zone, and what the kind needs to tell its jobs apart               |
// | index     | 4 zone, then what StratusRecords/Query says                                  |

enum Keys {
    static let counters: Bytes = [0x00]

    static func database(_ database: DatabaseID) -> Bytes {
        var key = Self.databases(of: database.container, database.scope)
        key.append(contentsOf: database.owner.utf8)
        if let bucket = database.recordBucket { key += [0, bucket.number] }
        if let bucket = database.zoneBucket { key += [0, bucket.number, bucket.count] }
        return key
    }

    /// The prefix of all databases' keys.
    static let allDatabases: Bytes = [0x01]

    /// Whose key it is; a bucket of a public database is told as the whole.
    static func database(decoding key: Bytes) -> DatabaseID? {
        guard key.count > 3, key[0] == 0x01, let environment = Environment(rawValue: key[1]),
            let scope = DatabaseScope(rawValue: key[2]), let end = key[3...].firstIndex(of: 0),
            let container = String(validating: key[3..<end], as: UTF8.self)
        else { return nil }
        let reference = ContainerReference(container: container, environment: environment)
        if scope == .public { return DatabaseID(container: reference, scope: .public, owner: "") }
        let rest = key[(end + 1)...]
        let ownerEnd = rest.firstIndex(of: 0) ?? rest.endIndex
        guard scope == .private, ownerEnd > rest.startIndex,
            let owner = String(validating: rest[..<ownerEnd], as: UTF8.self)
        else { return nil }
        var database = DatabaseID(container: reference, scope: .private, owner: owner)
        if ownerEnd < rest.endIndex {
            guard rest.endIndex - ownerEnd == 3,
                Bucket.isBucket(Int(rest[ownerEnd + 1]), of: Int(rest[ownerEnd + 2]))
            else { return nil }
            database.bucket = Bucket(Int(rest[ownerEnd + 1]), of: Int(rest[ownerEnd + 2]))
        }
        return database
    }

    /// The prefix of the keys of a container's databases of one scope.
    static func databases(of container: ContainerReference, _ scope: DatabaseScope) -> Bytes {
        var key: Bytes = [0x01, container.environment.rawValue, scope.rawValue]
        key.reserveCapacity(64)
        key.append(contentsOf: container.container.utf8)
        key.append(0)
        return key
    }

    static func schema(_ container: ContainerReference) -> Bytes {
        [0x00, container.environment.rawValue] + Bytes(container.container.utf8)
    }

    static func zone(_ database: DatabaseNumber, _ name: String) -> Bytes {
        var key = Self.bytes(database.raw, reserving: 1 + name.utf8.count)
        key.append(0)
        key.append(contentsOf: name.utf8)
        return key
    }

    static func zonePrefix(_ database: DatabaseNumber) -> Bytes {
        var key = Self.bytes(database.raw, reserving: 1)
        key.append(0)
        return key
    }

    /// Whether a key of ``Table/zone`` is a zone's, and not that of a turn.
    static func isZone(_ key: Bytes) -> Bool { key.count > 4 && key[4] == 0 }

    static func turn(_ database: DatabaseNumber, _ turn: UInt64) -> Bytes {
        var key = Self.bytes(database.raw, reserving: 9)
        key.append(1)
        Self.append(turn, to: &key)
        return key
    }

    static func record(_ zone: ZoneNumber, _ name: String) -> Bytes {
        var key = Self.bytes(zone.raw, reserving: name.utf8.count)
        key.append(contentsOf: name.utf8)
        return key
    }

    static func feed(_ zone: ZoneNumber, _ tag: ChangeTag) -> Bytes {
        var key = Self.bytes(zone.raw, reserving: 8)
        Self.append(tag.raw, to: &key)
        return key
    }

    /// The count of a target's DELETE_SELF referrers, and the start of its references.
    static func referrerCount(_ zone: ZoneNumber, target: String) -> Bytes {
        var key = Self.referencePrefix(zone, target: target)
        key.append(0)
        return key
    }

    static func references(_ zone: ZoneNumber, target: String, _ kind: ReferenceKind) -> Bytes {
        var key = Self.referencePrefix(zone, target: target)
        key.append(kind.rawValue)
        return key
    }

    static func reference(
        _ zone: ZoneNumber, target: String, _ kind: ReferenceKind, referrer: String
    ) -> Bytes {
        var key = Self.references(zone, target: target, kind)
        key.append(contentsOf: referrer.utf8)
        return key
    }

    static func referencePrefix(_ zone: ZoneNumber, target: String) -> Bytes {
        var key = Self.bytes(zone.raw, reserving: target.utf8.count + 40)
        key.append(contentsOf: target.utf8)
        key.append(0)
        return key
    }

    /// Everything that belongs to one zone, in any table whose keys start with its number.
    static func zoneStart(_ zone: ZoneNumber) -> Bytes { Self.bytes(zone.raw, reserving: 0) }

    /// The first key after every key that starts with `prefix`; empty when there is none.
    static func end(of prefix: Bytes) -> Bytes {
        var end = prefix
        while let last = end.popLast() {
            if last < 0xFF {
                end.append(last + 1)
                return end
            }
        }
        return []
    }

    static func bytes(_ number: UInt32, reserving capacity: Int) -> Bytes {
        var key = Bytes()
        key.reserveCapacity(4 + capacity)
        key.append(UInt8(truncatingIfNeeded: number >> 24))
        key.append(UInt8(truncatingIfNeeded: number >> 16))
        key.append(UInt8(truncatingIfNeeded: number >> 8))
        key.append(UInt8(truncatingIfNeeded: number))
        return key
    }

    static func append(_ number: UInt64, to key: inout Bytes) {
        for shift in stride(from: 56, through: 0, by: -8) {
            key.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
        }
    }

    /// The eight bytes that end a key of `offset` bytes more.
    static func number(_ key: Bytes, at offset: Int) throws(StoreError) -> UInt64 {
        guard key.count == offset + 8 else { throw StoreError(.unreadable, "key") }
        var number: UInt64 = 0
        for byte in key[offset..<(offset + 8)] { number = number << 8 | UInt64(byte) }
        return number
    }
}
