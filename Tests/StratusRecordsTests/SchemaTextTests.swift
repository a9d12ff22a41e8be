import StratusModel
import StratusQuery
import StratusRecords
import Testing

/// The schema language, read and written.
@Suite struct SchemaTextTests {
    /// The reference's example, with every kind of comment and spacing.
    static let example = """
        DEFINE SCHEMA

            CREATE ROLE librarian; // who may lend

            RECORD TYPE Book (
                "___createTime" TIMESTAMP SORTABLE,
                "___createdBy"  REFERENCE,
                "___etag"       STRING,
                "___modTime"    TIMESTAMP QUERYABLE SORTABLE,
                "___modifiedBy" REFERENCE,
                "___recordID"   REFERENCE QUERYABLE,
                title           STRING QUERYABLE SORTABLE SEARCHABLE, -- folded
                pages           INT64 QUERYABLE SORTABLE,
                weight          NUMBER PREFERRED AS DOUBLE,
                shelf           REFERENCE QUERYABLE,
                tags            LIST<STRING> QUERYABLE,
                place           LOCATION QUERYABLE,
                cover           ASSET, /* large
                                          files */
                note            ENCRYPTED STRING,
                "grant"         STRING,
                secrets         LIST < ENCRYPTED BYTES >,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world",
                GRANT READ, CREATE, WRITE TO librarian
            );
        """

    /// The text it is written as: sorted, complete, aligned.
    static let golden = """
        DEFINE SCHEMA

            CREATE ROLE librarian;

            RECORD TYPE Book (
                "___createTime" TIMESTAMP SORTABLE,
                "___createdBy"  REFERENCE,
                "___etag"       STRING,
                "___modTime"    TIMESTAMP QUERYABLE SORTABLE,
                "___modifiedBy" REFERENCE,
                "___recordID"   REFERENCE QUERYABLE,
                "grant"         STRING,
                cover           ASSET,
                note            ENCRYPTED STRING,
                pages           INT64 QUERYABLE SORTABLE,
                place           LOCATION QUERYABLE,
                secrets         LIST<ENCRYPTED BYTES>,
                shelf           REFERENCE QUERYABLE,
                tags            LIST<STRING> QUERYABLE,
                title           STRING QUERYABLE SORTABLE SEARCHABLE,
                weight          DOUBLE,
                GRANT WRITE TO "_creator",
                GRANT CREATE TO "_icloud",
                GRANT READ TO "_world",
                GRANT READ, CREATE, WRITE TO librarian
            );

        """

    @Test func `the reference's example is read and written as the golden text`() throws {
        let schema = try SchemaText.read(Self.example)
        #expect(SchemaText.write(schema) == Self.golden)
        #expect(try SchemaText.read(Self.golden) == schema)
        let book = try #require(schema.type(named: "Book"))
        #expect(book.field(named: "note")?.type == FieldType(.string, isEncrypted: true))
        #expect(book.field(named: "___createdBy") == nil)
        #expect(book.field(named: "___modTime")?.indexes == [.queryable, .sortable])
        #expect(
            book.grants.last == Grant(role: "librarian", permissions: [.read, .create, .write]))
        #expect(schema.roles == ["librarian"])
    }

    @Test func `keywords have no case, names do, and white space is free`() throws {
        let schema = try SchemaText.read(
            "define schema record type A(a string queryable,A String,grant read to \"_world\");")
        #expect(schema.types.first?.fields.map(\.name) == ["A", "a"])
        #expect(try SchemaText.read("DEFINE SCHEMA") == Schema())
        #expect(SchemaText.write(Schema()) == "DEFINE SCHEMA\n")
    }

    @Test(
        arguments: [
            ("", 1, 1, "expected DEFINE, found the end of the text"),
            ("DEFINE SCHEMA\nRECORD Book ();", 2, 8, "expected TYPE, found 'Book'"),
            (
                "DEFINE SCHEMA RECORD TYPE B (a STRING)", 1, 39,
                "expected ';', found the end of the text"
            ),
            ("DEFINE SCHEMA RECORD TYPE B (a TEXT);", 1, 32, "expected a type, found 'TEXT'"),
            (
                "DEFINE SCHEMA RECORD TYPE B (a STRING, a INT64);", 1, 40,
                "field 'a' is defined twice"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (queryable STRING);", 1, 30,
                "'queryable' is reserved: write it in double quotes"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (___modTime TIMESTAMP);", 1, 30,
                "'___modTime' starts with '_': write it in double quotes"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (\"___modTime\" STRING);", 1, 30,
                "field '___modTime' is a TIMESTAMP"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (\"___x\" STRING);", 1, 30,
                "'___x' is no field of the system's"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (a ASSET QUERYABLE);", 1, 30,
                "field 'a' of type ASSET cannot be QUERYABLE"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (a LIST<STRING> SORTABLE);", 1, 30,
                "field 'a' of type LIST<STRING> cannot be SORTABLE"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (a INT64 SEARCHABLE);", 1, 30,
                "field 'a' of type INT64 cannot be SEARCHABLE"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (a ENCRYPTED STRING QUERYABLE);", 1, 30,
                "field 'a' is encrypted and cannot be indexed"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (a ENCRYPTED ASSET);", 1, 32,
                "ASSET cannot be encrypted"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (a STRING, GRANT READ TO boss);", 1, 54,
                "role 'boss' is not created in this schema"
            ),
            (
                "DEFINE SCHEMA RECORD TYPE B (a STRING, GRANT FLY TO \"_world\");", 1, 46,
                "expected READ, CREATE or WRITE, found 'FLY'"
            ),
            ("DEFINE SCHEMA CREATE ROLE a; CREATE ROLE a;", 1, 30, "role 'a' is created twice"),
            ("DEFINE SCHEMA /* open", 1, 15, "a comment is not closed"),
            ("DEFINE SCHEMA RECORD TYPE B (\"a STRING);", 1, 30, "a double quote is not closed"),
            (
                "DEFINE SCHEMA RECORD TYPE Bä (a STRING);", 1, 28,
                "a character that has no place outside comments"
            ),
        ] as [(String, Int, Int, String)])
    func `what is wrong is said with its place`(
        text: String, line: Int, column: Int, reason: String
    ) {
        #expect(throws: SchemaTextError(line: line, column: column, reason: reason)) {
            try SchemaText.read(text)
        }
    }

    @Test(arguments: 1...30 as ClosedRange<UInt64>)
    func `random schemas survive writing and reading`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let schema = Self.random(&generator)
        #expect(SchemaRules.check(schema) == nil)
        let text = SchemaText.write(schema)
        #expect(try SchemaText.read(text) == schema, "\(text)")
        #expect(SchemaText.write(try SchemaText.read(text)) == text)
    }

    static func random(_ generator: inout SeededGenerator) -> Schema {
        func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }
        let roles = ["critic", "editor", "reader"].filter { _ in chance(40) }
        let names = ["Book", "author", "Shelf_2", "Z"].filter { _ in chance(60) }
        let types = names.sorted().map { name in
            var fields: [FieldDefinition] = []
            for fieldName in ["a", "B", "grant", "queryable", "title", "x_1"] where chance(60) {
                let scalar = ScalarType.allCases.randomElement(using: &generator)!
                var field = FieldDefinition(
                    name: fieldName,
                    type: FieldType(
                        scalar, isList: chance(30),
                        isEncrypted: chance(20) && scalar != .asset && scalar != .reference))
                for option in [FieldIndexes.queryable, .sortable, .searchable] where chance(50) {
                    let before = field
                    field.indexes.insert(option)
                    if SchemaRules.check(field) != nil { field = before }
                }
                fields.append(field)
            }
            for system in SystemField.allCases where chance(30) {
                fields.append(
                    FieldDefinition(
                        name: system.mappedName, type: FieldType(system.type),
                        indexes: chance(50) ? .queryable : [.queryable, .sortable]))
            }
            let grants = (["_creator", "_icloud", "_world"] + roles).filter { _ in chance(50) }.map
            {
                Grant(role: $0, permissions: chance(50) ? [.read] : [.read, .write])
            }
            return RecordType(
                name: name, fields: fields.sorted { $0.name < $1.name }, grants: grants)
        }
        return Schema(types: types, roles: roles)
    }

    @Test(arguments: 1...40 as ClosedRange<UInt64>)
    func `damaged text is read or refused, never more`(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let pieces: [Bytes] = [
            [0], [0xFF], [0x80], [0xEF, 0xBB, 0xBF], Bytes("\"".utf8), Bytes("/*".utf8),
            Bytes("*/".utf8), Bytes("--".utf8), Bytes("LIST<".utf8), Bytes(";".utf8),
            Bytes("(".utf8),
            Bytes("GRANT".utf8), Bytes("\n".utf8), Bytes("DEFINE SCHEMA".utf8),
            Bytes("ENCRYPTED".utf8),
        ]
        for _ in 0..<50 {
            var bytes = Bytes(Self.example.utf8)
            for _ in 0..<Int.random(in: 1...6, using: &generator) {
                let at = Int.random(in: 0...bytes.count, using: &generator)
                let end = min(bytes.count, at + Int.random(in: 0...20, using: &generator))
                bytes.replaceSubrange(
                    at..<end,
                    with: Bool.random(using: &generator)
                        ? pieces.randomElement(using: &generator)! : [])
            }
            do {
                let schema = try SchemaText.read(String(decoding: bytes, as: UTF8.self))
                #expect(SchemaRules.check(schema) == nil, "seed \(seed)")
            } catch {
                #expect(error.line >= 1 && error.column >= 1 && !error.reason.isEmpty)
            }
        }
    }
}
