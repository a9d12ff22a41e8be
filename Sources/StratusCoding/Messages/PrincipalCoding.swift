package import StratusModel

// A principal: 1 kind, text user record name, count of roles, each a text.

extension ByteWriter {
    package mutating func write(_ principal: Principal) {
        self.write(principal.kind.rawValue)
        self.write(text: principal.userRecordName)
        self.write(texts: principal.roles)
    }

    package mutating func write(texts: [String]) {
        self.write(count: texts.count)
        for text in texts { self.write(text: text) }
    }
}

extension ByteReader {
    package mutating func principal() throws(DecodingError) -> Principal {
        guard let kind = Principal.Kind(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        let user = try self.text()
        return Principal(kind: kind, userRecordName: user, roles: try self.texts())
    }

    package mutating func texts() throws(DecodingError) -> [String] {
        let count = try self.count()
        var texts: [String] = []
        texts.reserveCapacity(min(count, 256))
        for _ in 0..<count { texts.append(try self.text()) }
        return texts
    }
}
