import StratusModel
import StratusQuery
import StratusRecords

/// Draws records, filters and sorts from small worlds of values, so that they often meet.
struct QueryLibrary {
    var generator: SeededGenerator
    /// Draws many texts, words and bytes that agree in more than an index row holds. Otherwise they
    /// are rare.
    var sharesHeads = false

    init(seed: UInt64) { self.generator = SeededGenerator(seed: seed) }

    static let all: FieldIndexes = [.queryable, .sortable, .searchable]
    static let plain: [(String, ScalarType)] = [
        ("flag", .int64), ("link", .reference), ("place", .location), ("rating", .double),
        ("title", .string), ("when", .timestamp), ("blob", .bytes),
    ]
    static let lists: [(String, ScalarType)] = [
        ("links", .reference), ("marks", .int64), ("tags", .string),
    ]
    /// Drawn where heads are shared.
    static let byteList: (String, ScalarType) = ("blobs", .bytes)
    private var lists: [(String, ScalarType)] {
        self.sharesHeads ? Self.lists + [Self.byteList] : Self.lists
    }
    static let type = RecordType(
        name: "Book",
        fields: (Self.plain.map {
            FieldDefinition(name: $0.0, type: FieldType($0.1), indexes: Self.all)
        }
            + (Self.lists + [Self.byteList]).map {
                FieldDefinition(name: $0.0, type: FieldType($0.1, isList: true), indexes: Self.all)
            }
            + SystemField.allCases.map {
                FieldDefinition(
                    name: $0.mappedName, type: FieldType($0.type), indexes: [.queryable, .sortable])
            }).sorted { $0.name < $1.name })
    static let schema = IndexedSchema(
        schema: Schema(
            version: 1,
            types: [
                Self.type,
                RecordType(
                    name: "Noise",
                    fields: [
                        FieldDefinition(name: "title", type: FieldType(.string), indexes: Self.all)
                    ]),
            ]))

    static let words = [
        "", "sea", "Sea", "SEA roads", "Low Tide", "straße", "STRASSE", "the", "Tide tables",
        "ähre",
        "東京タワー", "a\u{0}b", "a", "zebra",
    ]
    /// Single words that agree in more than an index row holds.
    static let longWords = ["x", "y", "z"].map { String(repeating: "l", count: 300) + $0 }
    static let numbers: [Int64] = [-3, -1, 0, 1, 2, 3, 7, .max, .min]
    static let reals: [Double] = [-2.5, -1, -0.0, 0, 0.5, 1, 2, 3.25, 1e19]
    static let places: [Location] = [
        Location(latitude: 0, longitude: 0), Location(latitude: 90, longitude: 12),
        Location(latitude: -90, longitude: 0), Location(latitude: 1, longitude: 179.999),
        Location(latitude: 1, longitude: -179.999), Location(latitude: 52.5, longitude: 13.4),
        Location(latitude: 52.5001, longitude: 13.4001), Location(latitude: 48.1, longitude: 11.6),
        Location(latitude: 89.9, longitude: 170), Location(latitude: 89.9, longitude: -10),
    ]

    mutating func chance(_ percent: Int) -> Bool {
        Int.random(in: 0..<100, using: &self.generator) < percent
    }

    mutating func pick<Element>(_ from: [Element]) -> Element {
        from.randomElement(using: &self.generator)!
    }

    mutating func scalar(_ type: ScalarType, home: ZoneID) -> Scalar {
        switch type {
        case .string:
            if self.sharesHeads, self.chance(60) { return .string(self.pick(Self.longWords)) }
            // Some share more than the 240 bytes an index row holds.
            if self.chance(4) {
                return .string(String(repeating: "long ", count: 60) + self.pick(["x", "y"]))
            }
            return .string(self.pick(Self.words))
        case .int64: return .int64(self.pick(Self.numbers))
        case .double: return .double(self.pick(Self.reals))
        case .timestamp: return .timestamp(self.pick(Self.numbers))
        case .bytes:
            if self.sharesHeads {
                return .bytes(
                    Bytes(repeating: 7, count: 300) + self.pick([[], [8], [9]]))
            }
            return .bytes(self.pick([[], [0], [0, 1], [255], Bytes(repeating: 7, count: 300)]))
        case .location: return .location(self.pick(Self.places))
        case .reference:
            let zone = self.chance(80) ? home : ZoneID(name: "Elsewhere", owner: "_x")
            return .reference(
                Reference(recordName: self.pick(["r1", "r2", "r3"]), zone: zone, action: .none))
        case .asset: return .asset(AssetReference(fileChecksum: "x", size: 1))
        }
    }

    mutating func record(_ name: String, zone: ZoneID, type: String = "Book") -> Record {
        var fields: [Field] = []
        for (field, scalar) in Self.plain where self.chance(type == "Book" ? 85 : 30) {
            fields.append(Field(name: field, value: .scalar(self.scalar(scalar, home: zone))))
        }
        for (field, scalar) in self.lists where self.chance(80) {
            var elements: [Scalar] = []
            for _ in 0..<Int.random(in: 0...4, using: &self.generator) {
                elements.append(self.scalar(scalar, home: zone))
            }
            // A list of more elements than an index row each is written for.
            if scalar == .int64, self.chance(1) {
                elements += (100..<(101 + Int64(IndexMaintenance.rowCountMax))).map { .int64($0) }
            }
            fields.append(Field(name: field, value: .list(scalar, elements)))
        }
        let users = ["_a", "_b", "_c"]
        return Record(
            name: name, type: type, zone: zone, tag: ChangeTag(1),
            created: ChangeStamp(
                milliseconds: Int64.random(in: 0..<5, using: &self.generator),
                userRecordName: self.pick(users), deviceID: "2"),
            modified: ChangeStamp(
                milliseconds: Int64.random(in: 0..<50, using: &self.generator),
                userRecordName: self.pick(users), deviceID: "2"),
            fields: fields.sorted { $0.name < $1.name },
            parent: self.chance(50) ? self.pick(["p1", "p2"]) : nil,
            share: self.chance(20) ? "s1" : nil)
    }

    mutating func filter(home: ZoneID, names: [String]) -> RecordFilter {
        while true {
            if self.chance(6) {
                return RecordFilter(
                    field: .anySearchable,
                    comparator: self.chance(50) ? .containsAllTokens : .containsAnyTokens,
                    operand: .scalar(
                        .string(self.pick(["sea tide", "sea", "roads low", "the", "京 東"]))))
            }
            let field: FieldSelector
            let type: FieldType
            if self.chance(25) {
                let system = self.pick(SystemField.allCases)
                field = .system(system)
                type = FieldType(system.type)
            } else if self.chance(30) {
                let (name, scalar) = self.pick(self.lists)
                field = .field(name)
                type = FieldType(scalar, isList: true)
            } else {
                let (name, scalar) = self.pick(Self.plain)
                field = .field(name)
                type = FieldType(scalar)
            }
            let comparator = self.pick(Comparator.allCases)
            guard FilterCompiler.accepts(comparator, type) else { continue }
            return self.filter(field, type, comparator, home: home, names: names)
        }
    }

    private mutating func filter(
        _ field: FieldSelector, _ type: FieldType, _ comparator: Comparator, home: ZoneID,
        names: [String]
    ) -> RecordFilter {
        func operand(_ library: inout Self) -> Scalar {
            if case .system(let system) = field {
                switch system {
                case .recordName: return .string(library.pick(names + ["nobody"]))
                case .createdUserRecordName, .modifiedUserRecordName:
                    return .string(library.pick(["_a", "_b", "_z"]))
                case .createdTimestamp, .modifiedTimestamp:
                    return .timestamp(Int64.random(in: 0..<50, using: &library.generator))
                case .share, .parent: return .string(library.pick(["p1", "p2", "s1"]))
                }
            }
            if type.scalar == .int64, library.chance(30) {
                return .double(library.pick(Self.reals))
            }
            if type.scalar == .double, library.chance(30) {
                return .int64(library.pick(Self.numbers + [9_007_199_254_740_993]))
            }
            return library.scalar(type.scalar, home: home)
        }
        var distance: Double?
        let value: FieldValue
        switch comparator {
        case .in, .notIn, .listContainsAll, .notListContainsAll, .listContainsAny,
            .notListContainsAny:
            var elements: [Scalar] = []
            for _ in 0..<Int.random(in: 0...3, using: &self.generator) {
                elements.append(operand(&self))
            }
            // A list holds one type; the compiler accepts either kind of number.
            let first = elements.first?.type ?? type.scalar
            value = .list(first, elements.filter { $0.type == first })
        case .beginsWith, .notBeginsWith, .listMemberBeginsWith, .notListMemberBeginsWith:
            value = .scalar(
                .string(self.pick(["", "s", "S", "Sea", "t", "straß", "a\u{0}", "long long"])))
        case .containsAllTokens, .containsAnyTokens:
            var text = ""
            if self.sharesHeads {
                let words = Self.longWords.shuffled(using: &self.generator)
                text = words.prefix(self.pick([1, 2, 3])).joined(separator: " ")
            } else {
                text = self.pick(["sea", "tide low", "roads sea", "the a", "strasse", "京"])
            }
            value = .scalar(.string(text))
        default:
            value = .scalar(operand(&self))
            if type.scalar == .location {
                distance = self.pick([0, 10, 1_000, 600_000, 5_000_000, 3e7])
            }
        }
        return RecordFilter(
            field: field, comparator: comparator, operand: value, distance: distance)
    }

    mutating func sort() -> RecordSort {
        let ascending = self.chance(50)
        if self.chance(30) {
            return RecordSort(field: .system(self.pick(SystemField.allCases)), ascending: ascending)
        }
        let (name, scalar) = self.pick(Self.plain)
        return RecordSort(
            field: .field(name), ascending: ascending,
            relativeLocation: scalar == .location ? self.pick(Self.places) : nil)
    }

    mutating func predicate(home: ZoneID, names: [String]) -> RecordPredicate {
        var predicate = RecordPredicate(recordType: "Book")
        for _ in 0..<self.pick([0, 1, 1, 1, 2, 2, 3]) {
            predicate.filters.append(self.filter(home: home, names: names))
        }
        for _ in 0..<self.pick([0, 0, 1, 1, 2, 3]) { predicate.sorts.append(self.sort()) }
        return predicate
    }
}
