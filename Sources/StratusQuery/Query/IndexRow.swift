import StratusCoding
package import StratusModel

// Index row, version 1
//
// | part   | what                                                                                |
// | ------ | ----------------------------------------------------------------------------------- |
// | zone   | the zone's prefix, as the record rows have it; no zone's is the beginning of another |
// | number | the index, an ordered number                                                        |
// | body   | by kind of index:                                                                   |
// |        | values: the ordered value; nothing for ___recordID, whose value is the name         |
// |        | absence: nothing                                                                    |
// |        | elements: 01 and the ordered value; 02 for an empty list; 03 for a list of too many |
// |        | tokens: 01 and the word as ordered text; 03 for a text of too many                  |
// |        | cells: 8 bytes, the grid code, big-endian                                           |
// |        | long texts: nothing                                                                 |
// |        | creators: the creator, as an ordered value                                          |
// | name   | the record's name, to the end                                                       |
//
// The row is empty, but for cells: latitude and longitude, 8 bytes each, little-endian IEEE 754;
// and for long texts: a word summary (`TextWords.swift`).

/// A zone, and the prefix of its index rows.
package struct ZoneScope: Sendable, Hashable {
    package var id: ZoneID
    /// The bytes that the keys of this zone's index rows begin with. No zone's prefix begins
    /// another's.
    package var prefix: Bytes

    package init(id: ZoneID, prefix: Bytes) {
        self.id = id
        self.prefix = prefix
    }

    /// Whether it is the public database's, which nobody owns.
    var isPublic: Bool { self.id.owner.isEmpty }
}

/// A row of the index table.
package struct IndexRow: Sendable, Hashable {
    package var key: Bytes
    package var row: Bytes

    package init(key: Bytes, row: Bytes = []) {
        self.key = key
        self.row = row
    }
}

/// The keys of index rows.
package enum IndexKey {
    static let present: UInt8 = 1
    static let emptyList: UInt8 = 2
    static let tooMany: UInt8 = 3

    package static func start(_ zone: ZoneScope, _ number: UInt32) -> Bytes {
        var key = zone.prefix
        key.reserveCapacity(key.count + 64)
        OrderedKey.append(number: number, to: &key)
        return key
    }

    /// The offset of the record's name in a key of this index; nil for a key of another index.
    static func nameStart(in key: Bytes, of index: FieldIndex, after start: Int) -> Int? {
        switch index.kind {
        case .absence, .longTexts:
            return start
        case .cells:
            return Self.fixed(8, in: key, after: start)
        case .values:
            if index.systemField == .recordName { return start }
            return Self.valueEnd(index.type.scalar, in: key, after: start)
        case .creators:
            return Self.valueEnd(index.type.scalar, in: key, after: start)
        case .elements, .tokens:
            guard start < key.count else { return nil }
            if key[start] != Self.present { return start + 1 }
            return Self.valueEnd(index.type.scalar, in: key, after: start + 1)
        }
    }

    private static func valueEnd(_ type: ScalarType, in key: Bytes, after start: Int) -> Int? {
        switch type {
        case .int64, .double, .timestamp: Self.fixed(8, in: key, after: start)
        case .location: Self.fixed(16, in: key, after: start)
        case .string, .bytes, .reference, .asset: OrderedKey.textEnd(in: key, from: start)
        }
    }

    private static func fixed(_ width: Int, in key: Bytes, after start: Int) -> Int? {
        start + width <= key.count ? start + width : nil
    }
}
