import StratusModel

/// A recursive-descent reader of the schema language, over its bytes. Whatever the text, it answers
/// with a schema or an error, in time proportional to the text.
struct SchemaParser {
    private enum Token: Equatable {
        case word(String)
        /// In double quotes.
        case quoted(String)
        case sign(UInt8)
        case end
    }

    private struct Place {
        var line: Int
        var column: Int
    }

    private let bytes: Bytes
    private var position = 0
    private var line = 1
    private var lineStart = 0

    /// The token that comes next, and where it stands.
    private var next: Token = .end
    private var place = Place(line: 1, column: 1)

    init(_ text: String) { self.bytes = Bytes(text.utf8) }

    // MARK: Grammar

    mutating func schema() throws(SchemaTextError) -> Schema {
        try self.advance()
        try self.expect(word: "DEFINE")
        try self.expect(word: "SCHEMA")
        var schema = Schema()
        var roles = Set<String>()
        var types = Set<String>()
        var grants: [(role: String, place: Place)] = []
        while self.next != .end {
            let place = self.place
            if self.isNext(word: "CREATE") {
                try self.advance()
                try self.expect(word: "ROLE")
                let name = try self.identifier("a role's name", mayBeSystem: false)
                guard roles.insert(name).inserted else {
                    throw self.error("role '\(name)' is created twice", at: place)
                }
                schema.roles.append(name)
            } else if self.isNext(word: "RECORD") {
                try self.advance()
                try self.expect(word: "TYPE")
                let type = try self.recordType(&grants)
                guard types.insert(type.name).inserted else {
                    throw self.error("record type '\(type.name)' is defined twice", at: place)
                }
                schema.types.append(type)
            } else {
                throw self.error("expected CREATE ROLE or RECORD TYPE, found \(self.found)")
            }
            try self.expect(sign: ";")
        }
        for (role, place) in grants
        where !SchemaRules.systemRoles.contains(role) && !roles.contains(role) {
            throw self.error("role '\(role)' is not created in this schema", at: place)
        }
        schema.types.sort { $0.name < $1.name }
        schema.roles.sort()
        if let reason = SchemaRules.check(schema) {
            throw SchemaTextError(line: 1, column: 1, reason: reason)
        }
        return schema
    }

    private mutating func recordType(
        _ grants: inout [(role: String, place: Place)]
    ) throws(SchemaTextError) -> RecordType {
        let name = try self.identifier("a record type's name", mayBeSystem: false)
        var fields: [String: FieldDefinition] = [:]
        var granted: [String: Set<Grant.Permission>] = [:]
        var seen = Set<String>()
        try self.expect(sign: "(")
        while true {
            let place = self.place
            if self.isNext(word: "GRANT") {
                try self.advance()
                let permissions = try self.permissions()
                let rolePlace = self.place
                let role = try self.identifier("a role", mayBeSystem: true)
                grants.append((role, rolePlace))
                granted[role, default: []].formUnion(permissions)
            } else {
                let field = try self.field()
                guard seen.insert(field.name).inserted else {
                    throw self.error("field '\(field.name)' is defined twice", at: place)
                }
                if let reason = SchemaRules.check(field) {
                    throw self.error(reason, at: place)
                }
                // Implicit fields are stated by their indexes only.
                if field.name.utf8.first != UInt8(ascii: "_") || !field.indexes.isEmpty {
                    fields[field.name] = field
                }
            }
            if self.isNext(sign: ")") { break }
            try self.expect(sign: ",")
        }
        try self.expect(sign: ")")
        return RecordType(
            name: name, fields: fields.values.sorted { $0.name < $1.name },
            grants: granted.map { role, permissions in
                Grant(role: role, permissions: permissions.sorted { $0.rawValue < $1.rawValue })
            }.sorted { $0.role < $1.role })
    }

    private mutating func permissions() throws(SchemaTextError) -> [Grant.Permission] {
        var permissions: [Grant.Permission] = []
        while true {
            guard
                let permission = Grant.Permission.allCases.first(where: {
                    self.isNext(word: SchemaText.name($0))
                })
            else { throw self.error("expected READ, CREATE or WRITE, found \(self.found)") }
            permissions.append(permission)
            try self.advance()
            if !self.isNext(sign: ",") { break }
            try self.advance()
        }
        try self.expect(word: "TO")
        return permissions
    }

    private mutating func field() throws(SchemaTextError) -> FieldDefinition {
        if case .word(let word) = self.next, SchemaText.reserved.contains(word.uppercased()) {
            throw self.error("'\(word)' is reserved: write it in double quotes")
        }
        let name = try self.identifier("a field's name", mayBeSystem: true)
        let type = try self.dataType()
        var indexes: FieldIndexes = []
        while true {
            if self.isNext(word: "QUERYABLE") {
                indexes.insert(.queryable)
            } else if self.isNext(word: "SORTABLE") {
                indexes.insert(.sortable)
            } else if self.isNext(word: "SEARCHABLE") {
                indexes.insert(.searchable)
            } else {
                break
            }
            try self.advance()
        }
        return FieldDefinition(name: name, type: type, indexes: indexes)
    }

    /// `ENCRYPTED` is accepted before and inside `LIST<…>`: the reference leaves the place open.
    private mutating func dataType() throws(SchemaTextError) -> FieldType {
        let place = self.place
        var isEncrypted = try self.take(word: "ENCRYPTED")
        let isList = try self.take(word: "LIST")
        if isList {
            try self.expect(sign: "<")
            if try self.take(word: "ENCRYPTED") { isEncrypted = true }
        }
        let scalar = try self.scalarType()
        if isList { try self.expect(sign: ">") }
        if isEncrypted, scalar == .asset || scalar == .reference {
            throw self.error(
                "\(SchemaText.name(of: FieldType(scalar))) cannot be encrypted", at: place)
        }
        return FieldType(scalar, isList: isList, isEncrypted: isEncrypted)
    }

    private mutating func scalarType() throws(SchemaTextError) -> ScalarType {
        if try self.take(word: "NUMBER") {
            guard try self.take(word: "PREFERRED") else { return .double }
            try self.expect(word: "AS")
            if try self.take(word: "INT64") { return .int64 }
            if try self.take(word: "DOUBLE") { return .double }
            throw self.error("expected INT64 or DOUBLE, found \(self.found)")
        }
        for type in ScalarType.allCases
        where try self.take(word: SchemaText.name(of: FieldType(type))) {
            return type
        }
        throw self.error("expected a type, found \(self.found)")
    }

    private mutating func identifier(
        _ what: String, mayBeSystem: Bool
    ) throws(SchemaTextError) -> String {
        let name: String
        switch self.next {
        case .word(let word): name = word
        case .quoted(let text): name = text
        case .sign, .end: throw self.error("expected \(what), found \(self.found)")
        }
        let isSystem = name.utf8.first == UInt8(ascii: "_")
        if isSystem {
            guard mayBeSystem else { throw self.error("\(what) cannot start with '_'") }
            guard case .quoted = self.next else {
                throw self.error("'\(name)' starts with '_': write it in double quotes")
            }
        }
        let plain = isSystem ? String(name.drop { $0 == "_" }) : name
        guard NameRules.isIdentifier(plain, limit: 255), name.utf8.count <= 255 else {
            throw self.error("'\(name)' is not a name: letters, digits and '_', a letter first")
        }
        try self.advance()
        return name
    }

    // MARK: Tokens

    private func isNext(word: String) -> Bool {
        if case .word(let found) = self.next { return found.uppercased() == word }
        return false
    }

    private func isNext(sign: Unicode.Scalar) -> Bool {
        self.next == .sign(UInt8(ascii: sign))
    }

    private mutating func take(word: String) throws(SchemaTextError) -> Bool {
        guard self.isNext(word: word) else { return false }
        try self.advance()
        return true
    }

    private mutating func expect(word: String) throws(SchemaTextError) {
        guard self.isNext(word: word) else {
            throw self.error("expected \(word), found \(self.found)")
        }
        try self.advance()
    }

    private mutating func expect(sign: Unicode.Scalar) throws(SchemaTextError) {
        guard self.isNext(sign: sign) else {
            throw self.error("expected '\(sign)', found \(self.found)")
        }
        try self.advance()
    }

    private var found: String {
        switch self.next {
        case .word(let word): "'\(word)'"
        case .quoted(let text): "\"\(text)\""
        case .sign(let sign): "'\(Unicode.Scalar(sign))'"
        case .end: "the end of the text"
        }
    }

    private func error(_ reason: String, at place: Place? = nil) -> SchemaTextError {
        let place = place ?? self.place
        return SchemaTextError(line: place.line, column: place.column, reason: reason)
    }

    private mutating func advance() throws(SchemaTextError) {
        try self.skipSpace()
        self.place = Place(line: self.line, column: self.position - self.lineStart + 1)
        guard self.position < self.bytes.count else {
            self.next = .end
            return
        }
        let byte = self.bytes[self.position]
        if Self.isWord(byte) {
            let start = self.position
            while self.position < self.bytes.count, Self.isWord(self.bytes[self.position]) {
                self.position += 1
            }
            self.next = .word(self.text(start, self.position))
        } else if byte == UInt8(ascii: "\"") {
            let start = self.position + 1
            var end = start
            while end < self.bytes.count, self.bytes[end] != byte, self.bytes[end] != 0x0A {
                end += 1
            }
            guard end < self.bytes.count, self.bytes[end] == byte else {
                throw self.error("a double quote is not closed")
            }
            self.position = end + 1
            self.next = .quoted(self.text(start, end))
        } else if byte > 0x20 && byte < 0x7F {
            self.position += 1
            self.next = .sign(byte)
        } else {
            throw self.error("a character that has no place outside comments")
        }
    }

    private func text(_ start: Int, _ end: Int) -> String {
        String(decoding: self.bytes[start..<end], as: UTF8.self)
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || byte == UInt8(ascii: "_")
    }

    /// White space, `// …`, `-- …` and `/* … */`.
    private mutating func skipSpace() throws(SchemaTextError) {
        while self.position < self.bytes.count {
            switch (self.bytes[self.position], self.peek) {
            case (0x0A, _): self.newLine()
            case (0x20, _), (0x09, _), (0x0D, _), (0x0C, _): self.position += 1
            case (UInt8(ascii: "/"), UInt8(ascii: "/")), (UInt8(ascii: "-"), UInt8(ascii: "-")):
                while self.position < self.bytes.count, self.bytes[self.position] != 0x0A {
                    self.position += 1
                }
            case (UInt8(ascii: "/"), UInt8(ascii: "*")): try self.skipComment()
            case (0xEF, 0xBB) where self.position == 0 && self.bytes.count > 2: self.position = 3
            default: return
            }
        }
    }

    private mutating func skipComment() throws(SchemaTextError) {
        let start = Place(line: self.line, column: self.position - self.lineStart + 1)
        self.position += 2
        while self.position < self.bytes.count {
            if self.bytes[self.position] == UInt8(ascii: "*"), self.peek == UInt8(ascii: "/") {
                self.position += 2
                return
            }
            if self.bytes[self.position] == 0x0A { self.newLine() } else { self.position += 1 }
        }
        throw self.error("a comment is not closed", at: start)
    }

    private mutating func newLine() {
        self.position += 1
        self.line += 1
        self.lineStart = self.position
    }

    private var peek: UInt8? {
        self.position + 1 < self.bytes.count ? self.bytes[self.position + 1] : nil
    }
}
