import StratusModel
import StratusQuery
import StratusRecords
import Testing

/// Every comparator on every type of field: what it means, and what it refuses.
@Suite struct QueryFilterTests {
    static let zone = ZoneID(name: "Shelves", owner: "_owner")
    static let everything: FieldIndexes = [.queryable, .sortable, .searchable]

    static func reference(_ name: String, zone: ZoneID = Self.zone) -> Scalar {
        .reference(Reference(recordName: name, zone: zone, action: .none))
    }

    /// A field of every type, each with every index.
    static let type = RecordType(
        name: "Book",
        fields: ScalarType.allCases.flatMap { scalar in
            [
                FieldDefinition(
                    name: Self.name(scalar), type: FieldType(scalar), indexes: Self.everything),
                FieldDefinition(
                    name: Self.name(scalar) + "List", type: FieldType(scalar, isList: true),
                    indexes: Self.everything),
                FieldDefinition(
                    name: "sealed" + Self.name(scalar),
                    type: FieldType(scalar, isEncrypted: true)),
            ]
        }.sorted { $0.name < $1.name }
            + SystemField.allCases.map {
                FieldDefinition(
                    name: $0.mappedName, type: FieldType($0.type), indexes: Self.everything)
            })
    static let schema = IndexedSchema(schema: Schema(version: 1, types: [Self.type]))
    static let compiler = FilterCompiler(Self.type, in: Self.schema, home: Self.zone)

    static func name(_ scalar: ScalarType) -> String {
        switch scalar {
        case .string: "string"
        case .int64: "int"
        case .double: "double"
        case .timestamp: "time"
        case .bytes: "bytes"
        case .location: "place"
        case .reference: "link"
        case .asset: "file"
        }
    }

    static func record(_ fields: [Field]) -> Record {
        let stamp = ChangeStamp(milliseconds: 1_000, userRecordName: "_me", deviceID: "2")
        return Record(
            name: "book-1", type: "Book", zone: Self.zone, tag: ChangeTag(1), created: stamp,
            modified: ChangeStamp(milliseconds: 2_000, userRecordName: "_you", deviceID: "2"),
            fields: fields.sorted { $0.name < $1.name }, parent: "shelf-1")
    }

    static let sample = Self.record([
        Field(name: "string", value: .scalar(.string("Straße nach Süden"))),
        Field(name: "int", value: .scalar(.int64(42))),
        Field(name: "double", value: .scalar(.double(-1.5))),
        Field(name: "time", value: .scalar(.timestamp(1_462_060_800_000))),
        Field(name: "bytes", value: .scalar(.bytes([1, 2, 3]))),
        Field(
            name: "place", value: .scalar(.location(Location(latitude: 59.91, longitude: 10.75)))),
        Field(name: "link", value: .scalar(Self.reference("author-3"))),
        Field(name: "stringList", value: .list(.string, [.string("Maps"), .string("travel")])),
        Field(name: "intList", value: .list(.int64, [.int64(1), .int64(2), .int64(2)])),
        Field(name: "doubleList", value: .list(.double, [])),
        Field(name: "linkList", value: .list(.reference, [Self.reference("a")])),
        Field(
            name: "placeList",
            value: .list(.location, [.location(Location(latitude: 0, longitude: -0.0))])),
    ])

    static func matches(
        _ field: String, _ comparator: Comparator, _ operand: FieldValue, distance: Double? = nil,
        _ record: Record = Self.sample
    ) throws -> Bool {
        try Self.compiler.compile(
            RecordFilter(
                field: .field(field), comparator: comparator, operand: operand, distance: distance)
        ).matches(record)
    }

    struct Row: CustomTestStringConvertible, Sendable {
        var field: String
        var comparator: Comparator
        var operand: FieldValue
        var distance: Double?
        var expected: Bool
        var testDescription: String { "\(self.field) \(self.comparator) \(self.operand)" }

        init(
            _ field: String, _ comparator: Comparator, _ operand: FieldValue,
            _ distance: Double? = nil, is expected: Bool
        ) {
            self.field = field
            self.comparator = comparator
            self.operand = operand
            self.distance = distance
            self.expected = expected
        }
    }

    static func text(_ text: String) -> FieldValue { .scalar(.string(text)) }
    static func place(_ latitude: Double, _ longitude: Double) -> FieldValue {
        .scalar(.location(Location(latitude: latitude, longitude: longitude)))
    }

    @Test(arguments: [
        // Strings: equality and order ignore case, prefixes do not.
        Row("string", .equals, text("STRASSE nach süden"), is: true),
        Row("string", .equals, text("Straße"), is: false),
        Row("string", .equals, text("Straße nach Suden"), is: false),
        Row("string", .notEquals, text("straße NACH süden"), is: false),
        Row("string", .notEquals, text("x"), is: true),
        Row("string", .lessThan, text("T"), is: true),
        Row("string", .lessThan, text("strasse nach süden"), is: false),
        Row("string", .lessThanOrEquals, text("strasse nach süden"), is: true),
        Row("string", .greaterThan, text("S"), is: true),
        Row("string", .greaterThanOrEquals, text("T"), is: false),
        Row(
            "string", .in, .list(.string, [.string("x"), .string("STRASSE NACH SÜDEN")]), is: true),
        Row("string", .in, .list(.string, []), is: false),
        Row("string", .notIn, .list(.string, []), is: true),
        Row("string", .notIn, .list(.string, [.string("x")]), is: true),
        Row("string", .beginsWith, text("Straße"), is: true),
        Row("string", .beginsWith, text("straße"), is: false),
        Row("string", .beginsWith, text(""), is: true),
        Row("string", .notBeginsWith, text("straße"), is: true),
        Row("string", .containsAllTokens, text("suden STRASSE"), is: true),
        Row("string", .containsAllTokens, text("suden norden"), is: false),
        Row("string", .containsAnyTokens, text("suden norden"), is: true),
        Row("string", .containsAllTokens, text("the and"), is: false),
        Row("string", .containsAnyTokens, .list(.string, [.string("nach")]), is: true),
        // Numbers compare across their types, exactly.
        Row("int", .equals, .scalar(.int64(42)), is: true),
        Row("int", .equals, .scalar(.double(42)), is: true),
        Row("int", .equals, .scalar(.double(42.5)), is: false),
        Row("int", .lessThan, .scalar(.double(42.5)), is: true),
        Row("int", .greaterThan, .scalar(.double(-1e300)), is: true),
        Row("int", .greaterThanOrEquals, .scalar(.int64(43)), is: false),
        Row("int", .in, .list(.double, [.double(41.9), .double(42)]), is: true),
        Row("double", .equals, .scalar(.double(-1.5)), is: true),
        Row("double", .lessThan, .scalar(.int64(-1)), is: true),
        Row("double", .notIn, .list(.int64, [.int64(-1)]), is: true),
        Row("time", .greaterThan, .scalar(.timestamp(0)), is: true),
        Row("time", .equals, .scalar(.int64(1_462_060_800_000)), is: true),
        Row("bytes", .equals, .scalar(.bytes([1, 2, 3])), is: true),
        Row("bytes", .notEquals, .scalar(.bytes([1, 2])), is: true),
        // References are their target.
        Row("link", .equals, .scalar(reference("author-3")), is: true),
        Row("link", .equals, .scalar(.string("author-3")), is: true),
        Row(
            "link", .equals,
            .scalar(reference("author-3", zone: ZoneID(name: "Other", owner: "_owner"))), is: false),
        Row("link", .in, .list(.reference, [reference("author-3")]), is: true),
        Row("link", .notEquals, .scalar(reference("Author-3")), is: true),
        // Places: metres along the great circle.
        Row("place", .near, place(59.91, 10.76), 600, is: true),
        Row("place", .near, place(59.91, 10.76), 500, is: false),
        Row("place", .near, place(59.91, 10.75), 0, is: true),
        Row("place", .lessThan, place(59.91, 10.75), 0, is: false),
        Row("place", .lessThanOrEquals, place(59.91, 10.75), 0, is: true),
        Row("place", .near, place(-59.91, -169.25), 1e9, is: true),
        // Lists.
        Row("stringList", .listContains, text("MAPS"), is: true),
        Row("stringList", .notListContains, text("MAPS"), is: false),
        Row(
            "stringList", .listContainsAll, .list(.string, [.string("maps"), .string("travel")]),
            is: true),
        Row(
            "stringList", .listContainsAll, .list(.string, [.string("maps"), .string("sea")]),
            is: false),
        Row(
            "stringList", .listContainsAny, .list(.string, [.string("sea"), .string("maps")]),
            is: true),
        Row("stringList", .listContainsAll, .list(.string, []), is: true),
        Row("stringList", .listContainsAny, .list(.string, []), is: false),
        Row("stringList", .notListContainsAll, .list(.string, [.string("sea")]), is: true),
        Row("stringList", .notListContainsAny, .list(.string, [.string("maps")]), is: false),
        Row("stringList", .listMemberBeginsWith, text("tra"), is: true),
        Row("stringList", .listMemberBeginsWith, text("TRA"), is: false),
        Row("stringList", .notListMemberBeginsWith, text("TRA"), is: true),
        Row("stringList", .containsAllTokens, text("travel maps"), is: true),
        Row("intList", .listContains, .scalar(.double(2)), is: true),
        Row("intList", .listContainsAll, .list(.double, [.double(1.5)]), is: false),
        Row("doubleList", .notListContains, .scalar(.double(1)), is: true),
        Row("doubleList", .listContains, .scalar(.double(1)), is: false),
        Row("linkList", .listContains, .scalar(reference("a")), is: true),
        Row("placeList", .listContains, place(-0.0, 0), is: true),
        // A record without the field matches nothing.
        Row("timeList", .notListContains, .scalar(.timestamp(1)), is: false),
        // System fields, by their mapped names.
        Row("___recordID", .equals, .scalar(reference("book-1")), is: true),
        Row(
            "___recordID", .in, .list(.reference, [reference("x"), reference("book-1")]), is: true),
        Row("___recordID", .equals, .scalar(.string("book-2")), is: false),
        Row("___createTime", .lessThan, .scalar(.timestamp(1_001)), is: true),
        Row("___modTime", .equals, .scalar(.timestamp(2_000)), is: true),
        Row("___createdBy", .equals, .scalar(reference("_me")), is: true),
        Row("___modifiedBy", .notEquals, .scalar(reference("_me")), is: true),
        Row("___parent", .equals, .scalar(reference("shelf-1")), is: true),
        Row("___share", .notEquals, .scalar(reference("x")), is: false),
    ])
    func `a filter means what the reference says`(row: Row) throws {
        #expect(
            try Self.matches(row.field, row.comparator, row.operand, distance: row.distance)
                == row.expected)
    }

    @Test func `every comparator on every type is accepted or refused as the table says`() {
        let scalarOnly: [ScalarType: Set<Comparator>] = [
            .string: [
                .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan,
                .greaterThanOrEquals, .in, .notIn, .beginsWith, .notBeginsWith, .containsAllTokens,
                .containsAnyTokens,
            ],
            .int64: [
                .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan,
                .greaterThanOrEquals, .in, .notIn,
            ],
            .double: [
                .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan,
                .greaterThanOrEquals, .in, .notIn,
            ],
            .timestamp: [
                .equals, .notEquals, .lessThan, .lessThanOrEquals, .greaterThan,
                .greaterThanOrEquals, .in, .notIn,
            ],
            .bytes: [.equals, .notEquals],
            .location: [.near, .lessThan, .lessThanOrEquals],
            .reference: [.equals, .notEquals, .in, .notIn],
            .asset: [],
        ]
        let lists: Set<Comparator> = [
            .listContains, .notListContains, .listContainsAll, .notListContainsAll,
            .listContainsAny, .notListContainsAny,
        ]
        let stringLists: Set<Comparator> = [
            .listMemberBeginsWith, .notListMemberBeginsWith, .containsAllTokens, .containsAnyTokens,
        ]
        for scalar in ScalarType.allCases {
            for comparator in Comparator.allCases {
                let name = Self.name(scalar)
                Self.check(comparator, name, scalarOnly[scalar]?.contains(comparator) == true)
                Self.check(
                    comparator, name + "List",
                    scalar != .asset
                        && (lists.contains(comparator)
                            || (scalar == .string && stringLists.contains(comparator)))
                )
                Self.check(comparator, "sealed" + name, false)
            }
        }
    }

    /// Tries operands of every shape: an accepted comparator takes one of them, a refused one none.
    static func check(_ comparator: Comparator, _ field: String, _ isAccepted: Bool) {
        let scalars: [Scalar] = [
            .string("a"), .int64(1), .double(1.5), .timestamp(1), .bytes([1]),
            .location(Location(latitude: 0, longitude: 0)), Self.reference("a"),
            .asset(AssetReference(fileChecksum: "x", size: 1)),
        ]
        let operands =
            scalars.map { FieldValue.scalar($0) } + scalars.map { FieldValue.list($0.type, [$0]) }
        var answers: [Result<CompiledFilter, QueryRefusal>] = []
        for operand in operands {
            let filter = RecordFilter(
                field: .field(field), comparator: comparator, operand: operand, distance: 1)
            do {
                answers.append(.success(try Self.compiler.compile(filter)))
            } catch {
                answers.append(.failure(error))
            }
        }
        let succeeded = answers.contains { if case .success = $0 { true } else { false } }
        #expect(succeeded == isAccepted, "\(field) \(comparator)")
        if !isAccepted {
            for answer in answers {
                guard case .failure(let refusal) = answer else { continue }
                #expect(refusal.reason.contains("cannot be queried using filter type"))
            }
        }
    }

    @Test func `refusals have CloudKit's words`() {
        let type = RecordType(
            name: "Note",
            fields: [
                FieldDefinition(name: "body", type: FieldType(.string)),
                FieldDefinition(name: "place", type: FieldType(.location), indexes: .queryable),
                FieldDefinition(name: "secret", type: FieldType(.string, isEncrypted: true)),
                FieldDefinition(name: "stars", type: FieldType(.int64), indexes: .queryable),
            ])
        let schema = IndexedSchema(schema: Schema(version: 1, types: [type]))
        let compiler = FilterCompiler(type, in: schema, home: Self.zone)
        func refusal(
            _ field: FieldSelector, _ comparator: Comparator, _ operand: FieldValue,
            _ distance: Double? = nil
        ) -> String? {
            do {
                _ = try compiler.compile(
                    RecordFilter(
                        field: field, comparator: comparator, operand: operand, distance: distance))
                return nil
            } catch {
                return error.reason
            }
        }
        let one = FieldValue.scalar(.int64(1))
        #expect(
            refusal(.field("body"), .equals, Self.text("x"))
                == "Field 'body' is not marked queryable")
        #expect(
            refusal(.field("body"), .containsAllTokens, Self.text("x"))
                == "Field 'body' is not marked searchable")
        #expect(refusal(.field("stars"), .lessThan, one) == "Field 'stars' is not marked sortable")
        #expect(refusal(.field("stars"), .equals, one) == nil)
        #expect(
            refusal(.field("stars"), .equals, Self.text("x"))
                == "Invalid value, expected type INT64.")
        #expect(
            refusal(.field("stars"), .in, one) == "Invalid value, expected type INT64_LIST.")
        #expect(
            refusal(.field("secret"), .equals, Self.text("x"))
                == "Field 'secret' has a value type of ENCRYPTED_STRING and cannot be queried using filter type EQUALS"
        )
        #expect(refusal(.field("nothing"), .equals, one) == "Unknown field 'nothing'")
        #expect(
            refusal(.system(.recordName), .equals, Self.text("x"))
                == "Field 'recordName' is not marked queryable")
        #expect(
            refusal(.field("___modTime"), .equals, one)
                == "Field 'modifiedTimestamp' is not marked queryable")
        #expect(
            refusal(.field("place"), .near, Self.place(0, 0))
                == "Filter type NEAR on a location needs a distance")
        #expect(refusal(.field("place"), .near, Self.place(0, 0), 5) == nil)
        #expect(
            refusal(.anySearchable, .containsAllTokens, Self.text("x"))
                == "No field of record type 'Note' is marked searchable")
        #expect(
            refusal(.anySearchable, .equals, Self.text("x"))
                == "Filter type EQUALS needs a field name")
    }

    @Test func `without the switch no field needs an index`() throws {
        let type = RecordType(
            name: "Note", fields: [FieldDefinition(name: "body", type: FieldType(.string))])
        let compiler = FilterCompiler(
            type, in: IndexedSchema(schema: Schema(version: 1, types: [type])), home: Self.zone,
            requiresIndexes: false)
        let filter = try compiler.compile(
            RecordFilter(field: .field("body"), comparator: .equals, operand: Self.text("A")))
        #expect(filter.matches(Self.record([Field(name: "body", value: Self.text("a"))])))
    }

    @Test func `a long list in a record and a long one in a request do not multiply`() throws {
        let elements = (0..<30_000).map { Scalar.int64(Int64($0)) }
        let record = Self.record([Field(name: "intList", value: .list(.int64, elements))])
        #expect(
            try Self.matches(
                "intList", .listContainsAll, .list(.int64, elements.suffix(10_000).reversed()),
                record))
        #expect(
            try Self.matches(
                "intList", .notListContainsAny,
                .list(.int64, elements.prefix(10_000).map { _ in .int64(-1) }), record))
    }
}
