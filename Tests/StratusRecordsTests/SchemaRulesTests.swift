import StratusModel
import StratusQuery
import StratusRecords
import Testing

/// How a schema may grow, and how a partition's indexes follow it.
@Suite struct SchemaRulesTests {
    static func schema(_ text: String, version: UInt64 = 3) throws -> Schema {
        var schema = try SchemaText.read("DEFINE SCHEMA " + text)
        schema.version = version
        return schema
    }

    static let books = "RECORD TYPE Book (title STRING QUERYABLE, pages INT64);"

    @Test func `the first type of a field wins, and what is there stays`() throws {
        let schema = try Self.schema(Self.books)
        let wish = RecordType(
            name: "Book",
            fields: [
                FieldDefinition(name: "due", type: FieldType(.timestamp), indexes: .sortable),
                FieldDefinition(name: "title", type: FieldType(.int64), indexes: .sortable),
            ])
        let grown = try SchemaRules.extending(schema, with: [wish]).get()
        #expect(grown.version == 4)
        let book = try #require(grown.type(named: "Book"))
        #expect(book.fields.map(\.name) == ["due", "pages", "title"])
        #expect(book.field(named: "title")?.type == FieldType(.string))
        #expect(book.field(named: "title")?.indexes == .queryable)
        #expect(book.grants == [], "an imported type has the grants it was written with")
        // A second gateway that saw the same new field changes nothing.
        #expect(try SchemaRules.extending(grown, with: [wish]).get() == grown)
    }

    @Test func `promise: every schema has Users, which no import takes away`() throws {
        let plain = try Self.schema(Self.books)
        #expect(plain.type(named: "Users") == .users)
        let shown = plain.namingUsers
        #expect(shown.types.map(\.name) == ["Book", "Users"])
        // An export that comes back changes nothing.
        #expect(
            try SchemaRules.importing(
                SchemaText.read(SchemaText.write(shown)), over: plain, production: Schema()
            ).get() == plain)
        let wish = RecordType(
            name: "Users",
            fields: [FieldDefinition(name: "nick", type: FieldType(.string))])
        let grown = try SchemaRules.extending(plain, with: [wish]).get()
        let users = try #require(grown.type(named: "Users"))
        #expect(users.fields.map(\.name) == ["nick", "roles"])
        #expect(users.grants == RecordType.users.grants, "nobody may create or remove one")
        // A text without it leaves it, and one without grants leaves it writable.
        let kept = try SchemaRules.importing(plain, over: grown, production: Schema()).get()
        #expect(kept.type(named: "Users") == users)
        let named = try SchemaRules.importing(
            try Self.schema("RECORD TYPE Users (age INT64);"), over: plain, production: Schema()
        ).get()
        #expect(named.type(named: "Users")?.fields.map(\.name) == ["age", "roles"])
        #expect(named.type(named: "Users")?.grants == RecordType.users.grants)
        // Production gets it with all else.
        let production = try SchemaRules.promoting(grown, over: Schema()).get()
        #expect(production.type(named: "Users") == users)
        #expect(SchemaRules.check(production) == nil)
    }

    @Test func `an extension that is no schema is refused`() throws {
        let schema = try Self.schema(Self.books)
        let bad = RecordType(
            name: "Loan", fields: [FieldDefinition(name: "1st", type: FieldType(.string))])
        guard case .failure(let refusal) = SchemaRules.extending(schema, with: [bad]) else {
            Issue.record("accepted")
            return
        }
        #expect(refusal.text == "record type 'Loan': '1st' is no name for a field")
    }

    @Test func `an import removes what production does not have, and only that`() throws {
        let current = try Self.schema(Self.books + "RECORD TYPE Draft (a STRING);")
        let production = try Self.schema("RECORD TYPE Book (title STRING);", version: 9)
        let new = try Self.schema("RECORD TYPE Book (title STRING SORTABLE, isbn STRING);")
        let imported = try SchemaRules.importing(new, over: current, production: production).get()
        #expect(imported.version == 4)
        #expect(
            SchemaChange.between(current, imported).map(\.description) == [
                "+ Book.isbn STRING", "- Book.pages INT64",
                "~ Book.title STRING QUERYABLE → STRING SORTABLE", "- record type Draft",
            ])
        let losing = try Self.schema("RECORD TYPE Author (name STRING);")
        guard
            case .failure(let refusal) = SchemaRules.importing(
                losing, over: current, production: production)
        else {
            Issue.record("accepted")
            return
        }
        #expect(refusal.reasons == ["record type 'Book' is in production and missing here"])
        let altering = try Self.schema("RECORD TYPE Book (title STRING, pages STRING);")
        guard
            case .failure(let other) = SchemaRules.importing(
                altering, over: current, production: production)
        else {
            Issue.record("accepted")
            return
        }
        #expect(other.text == "field 'pages' of 'Book' is INT64 and cannot become STRING")
    }

    @Test func `a promotion adds and keeps, with indexes and grants of development`() throws {
        let development = try Self.schema(
            "CREATE ROLE boss; RECORD TYPE Book (title STRING SORTABLE, GRANT READ TO boss);")
        let production = try Self.schema(
            "RECORD TYPE Book (title STRING QUERYABLE, old INT64); RECORD TYPE Log (a STRING);",
            version: 7)
        let promoted = try SchemaRules.promoting(development, over: production).get()
        #expect(promoted.version == 8)
        #expect(promoted.types.map(\.name) == ["Book", "Log"])
        #expect(promoted.type(named: "Book")?.fields.map(\.name) == ["old", "title"])
        #expect(promoted.type(named: "Book")?.field(named: "title")?.indexes == .sortable)
        #expect(promoted.roles == ["boss"])
        #expect(try SchemaRules.promoting(promoted, over: promoted).get() == promoted)
        let reset = SchemaRules.resetting(development, to: promoted)
        #expect(reset.types == promoted.types && reset.roles == promoted.roles)
        // Of a new era, each time.
        #expect(reset.version == 1_000_000_001)
        #expect(SchemaRules.resetting(reset, to: promoted).version == 2_000_000_001)
        let other = try Self.schema("RECORD TYPE Book (title INT64);")
        guard case .failure = SchemaRules.promoting(other, over: production) else {
            Issue.record("a promotion changed a type")
            return
        }
    }

    @Test func `a save just in time asks for the indexes Apple gives`() throws {
        let fields = [
            Field(name: "cover", value: .scalar(.bytes([1]))),
            Field(name: "tags", value: .list(.string, [.string("a")])),
            Field(name: "title", value: .scalar(.string("a"))),
            Field(name: "when", value: .scalar(.timestamp(1))),
        ]
        let type = try #require(
            JustInTime.missing(in: Schema(), recordType: "Loan", fields: fields))
        #expect(
            SchemaText.write(Schema(types: [type])).contains(
                "title           STRING QUERYABLE SORTABLE SEARCHABLE"))
        #expect(type.field(named: "cover")?.indexes == [])
        #expect(type.field(named: "when")?.indexes == [.queryable, .sortable])
        #expect(type.field(named: "tags")?.indexes == .queryable)
        #expect(type.field(named: "___recordID")?.indexes == .queryable)
        #expect(type.grants == Grant.defaults)
        let schema = try SchemaRules.extending(Schema(), with: [type]).get()
        #expect(JustInTime.missing(in: schema, recordType: "Loan", fields: fields) == nil)
        let more =
            fields + [
                Field(name: "note", value: .sealed(FieldType(.string, isEncrypted: true), [1]))
            ]
        let missing = try #require(JustInTime.missing(in: schema, recordType: "Loan", fields: more))
        #expect(missing.fields.map(\.name) == ["note"] && missing.fields[0].indexes == [])
    }

    @Test func `indexes keep their numbers, new ones are built, dropped ones never come back`()
        throws
    {
        var indexed = IndexedSchema(schema: try Self.schema(Self.books), over: .checked)
        let title = try #require(indexed.index(.values, of: "title", in: "Book"))
        #expect(title.state == .ready, "a new type has no records to build from")
        let sortable = try Self.schema(
            "RECORD TYPE Book (title STRING QUERYABLE SORTABLE, pages INT64 QUERYABLE);", version: 4
        )
        #expect(indexed.install(sortable, over: .checked).isEmpty)
        #expect(indexed.index(.values, of: "title", in: "Book") == title)
        #expect(indexed.index(.absence, of: "title", in: "Book")?.state == .building)
        #expect(indexed.building.map(\.field) == ["pages", "title"])
        #expect(!indexed.building.contains { $0.field == "isbn" }, "no record holds a new field")
        #expect(indexed.index(.elements, of: "title", in: "Book") == nil)
        indexed.markReady(indexed.building.map(\.number))
        #expect(indexed.building.isEmpty)
        let dropped = indexed.install(
            try Self.schema("RECORD TYPE Book (pages INT64 QUERYABLE);", version: 5), over: .checked
        )
        #expect(dropped.map(\.kind) == [.values, .absence])
        indexed.install(sortable, over: .none)
        let again = try #require(indexed.index(.values, of: "title", in: "Book"))
        #expect(again.number > title.number && again.state == .ready)
        #expect(try IndexedSchema(decoding: indexed.encoded()) == indexed)
    }

    @Test func `an index being built is no index to a query`() throws {
        var indexed = IndexedSchema(schema: try Self.schema(Self.books), over: .checked)
        indexed.install(
            try Self.schema(
                "RECORD TYPE Book (title STRING QUERYABLE, pages INT64 QUERYABLE SORTABLE);",
                version: 4),
            over: .checked)
        let predicate = RecordPredicate(
            recordType: "Book",
            filters: [
                RecordFilter(
                    field: .field("pages"), comparator: .equals, operand: .scalar(.int64(1)))
            ])
        #expect(throws: QueryRefusal.invalid("Field 'pages' is not marked queryable")) {
            try CompiledQuery(predicate, in: indexed, home: ZoneID(name: "Z", owner: ""))
        }
        indexed.markReady(indexed.building.map(\.number))
        _ = try CompiledQuery(predicate, in: indexed, home: ZoneID(name: "Z", owner: ""))
    }

    @Test func `the stored form of version 1 is these bytes for ever`() throws {
        let indexed = IndexedSchema(
            schema: try Self.schema("RECORD TYPE B (a STRING QUERYABLE);", version: 2))
        let digits = indexed.encoded().map { String(Int($0) + 0x100, radix: 16).suffix(2) }.joined()
        #expect(digits == "010101020101420101610101000002010101420161010102000000")
    }
}
