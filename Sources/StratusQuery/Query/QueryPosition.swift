import StratusCoding
import StratusModel

// Query position, version 1: what a continuation marker seals.
//
// | bytes  | what                                                                            |
// | ------ | ------------------------------------------------------------------------------- |
// | 1      | version, 1                                                                      |
// | 1      | kind: 1 named, 2 ordered                                                        |
// | 8      | fingerprint of the query                                                        |
// | bytes  | the zone's prefix                                                               |
// | …      | named: 1 kind of path (0 names, 1 ranges, 2 records), varint index number of its |
// |        | first range (0: none), varint how many such paths come before it, varint range; |
// |        | bytes: the last key or name of the path                                         |
// | …      | ordered: count of sort keys, bytes each; flag and bytes: the record's name        |

/// The end of a query's last page: by key and value, never by count, so that writes between pages
/// neither repeat nor hide a record that stood still.
enum QueryPosition: Sendable, Equatable {
    /// In the order of one index path: the last key seen. Without a key: before the zone. The path
    /// is found again wherever it stands in the list that a later schema makes.
    case named(zone: Bytes, path: PathName, range: Int, last: Bytes)
    case ordered(OrderedPosition)

    func encoded(_ fingerprint: UInt64) -> Bytes {
        var writer = ByteWriter()
        writer.write(1 as UInt8)
        switch self {
        case .named(let zone, let path, let range, let last):
            writer.write(1 as UInt8)
            writer.write(fixed: fingerprint)
            writer.write(prefixed: zone)
            writer.write(path.kind.rawValue)
            writer.write(varint: UInt64(path.number))
            writer.write(count: path.ordinal)
            writer.write(count: range)
            writer.write(prefixed: last)
        case .ordered(let position):
            writer.write(2 as UInt8)
            writer.write(fixed: fingerprint)
            writer.write(prefixed: position.zone)
            writer.write(count: position.keys.count)
            for key in position.keys { writer.write(prefixed: key) }
            writer.write(flag: position.name != nil)
            if let name = position.name { writer.write(prefixed: name) }
        }
        return writer.bytes
    }

    init(decoding bytes: Bytes, for fingerprint: UInt64) throws(QueryRefusal) {
        do {
            self = try Self.decode(bytes, for: fingerprint)
        } catch {
            throw .markerInvalid
        }
    }

    private static func decode(
        _ bytes: Bytes, for fingerprint: UInt64
    ) throws(DecodingError) -> QueryPosition {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.malformed, at: 0) }
        let kind = try reader.byte()
        guard try reader.fixed64() == fingerprint else { throw DecodingError(.malformed, at: 2) }
        let zone = try reader.prefixed()
        let position: QueryPosition
        switch kind {
        case 1:
            guard let kind = PathName.Kind(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            let name = PathName(
                kind: kind, number: UInt32(truncatingIfNeeded: try reader.varint()),
                ordinal: Int(truncatingIfNeeded: try reader.varint() & 0xFFFF))
            let range = Int(truncatingIfNeeded: try reader.varint() & 0xFFFF_FFFF)
            position = .named(zone: zone, path: name, range: range, last: try reader.prefixed())
        case 2:
            var keys: [Bytes] = []
            for _ in 0..<(try reader.count()) { keys.append(try reader.prefixed()) }
            let name = try reader.flag() ? try reader.prefixed() : nil
            position = .ordered(OrderedPosition(keys: keys, name: name, zone: zone))
        default:
            throw DecodingError(.malformed, at: 1)
        }
        try reader.finish()
        return position
    }

    /// Tells queries apart: a marker continues only the query it came from. FNV-1a, 64 bits.
    static func fingerprint(of predicate: RecordPredicate) -> UInt64 {
        var writer = ByteWriter()
        writer.write(predicate)
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in writer.bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        return hash
    }
}

/// A place in the total order of a sorted query: sort keys, then the record's name, then the zone.
struct OrderedPosition: Sendable, Equatable {
    /// Fewer than the sorts: after every record whose keys begin with these.
    var keys: [Bytes]
    /// Nil: after every name.
    var name: Bytes?
    var zone: Bytes
}

/// The directions of a total order.
struct QueryOrder: Sendable {
    let ascending: [Bool]
    let tieAscending: Bool

    init(_ query: CompiledQuery) {
        self.ascending = query.sorts.map(\.ascending)
        self.tieAscending = query.tieAscending
    }

    /// Whether `one` comes before `other`. Where a position ends early it is after all it begins.
    func isOrdered(_ one: OrderedPosition, before other: OrderedPosition) -> Bool {
        self.order(one, other) < 0
    }

    func order(_ one: OrderedPosition, _ other: OrderedPosition) -> Int {
        for level in 0..<self.ascending.count {
            switch (level < one.keys.count, level < other.keys.count) {
            case (true, true):
                let order = Self.order(one.keys[level], other.keys[level])
                if order != 0 { return self.ascending[level] ? order : -order }
            case (true, false): return -1
            case (false, true): return 1
            case (false, false): return 0
            }
        }
        switch (one.name, other.name) {
        case (let first?, let second?):
            var order = Self.order(first, second)
            if order == 0 { order = Self.order(one.zone, other.zone) }
            return self.tieAscending ? order : -order
        case (_?, nil): return -1
        case (nil, _?): return 1
        case (nil, nil): return 0
        }
    }

    private static func order(_ one: Bytes, _ two: Bytes) -> Int {
        Bytes.isOrdered(one, before: two) ? -1 : one == two ? 0 : 1
    }
}

/// A path by what it goes through, and not by its place in a list that every schema makes anew.
struct PathName: Sendable, Equatable {
    enum Kind: UInt8, Sendable {
        case names = 0
        case ranges = 1
        case records = 2
    }
    /// Of a position before a zone, which has come along no path.
    static let none = PathName(kind: .names, number: 0, ordinal: 0)

    var kind: Kind
    /// The number of the first range's index; 0: none.
    var number: UInt32
    /// Paths of the same kind and number that come before it.
    var ordinal: Int

    /// Names the path at `choice`.
    init(of choice: Int, in paths: [IndexPath]) {
        let places = paths.map(Self.place)
        (self.kind, self.number) = places[choice]
        self.ordinal = places[..<choice].filter { $0 == places[choice] }.count
    }

    init(kind: Kind, number: UInt32, ordinal: Int) {
        self.kind = kind
        self.number = number
        self.ordinal = ordinal
    }

    /// Nil: there is no such path any more.
    func choice(in paths: [IndexPath]) -> Int? {
        paths.indices.filter { Self.place(paths[$0]) == (self.kind, self.number) }
            .dropFirst(self.ordinal).first
    }

    private static func place(_ path: IndexPath) -> (Kind, UInt32) {
        switch path.access {
        case .names: (.names, 0)
        case .ranges(let ranges): (.ranges, ranges.first?.index.number ?? 0)
        case .records: (.records, 0)
        }
    }
}
