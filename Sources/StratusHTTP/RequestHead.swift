/// The head of one HTTP/1.1 request, already held against RFC 9112.
package struct RequestHead: Sendable, Equatable {
    /// As received, upper case by the grammar's custom: `GET`, `POST`, …
    package var method: String
    /// The path as the client sent it, percent-encoding and all: signatures are made over it.
    package var path: String
    /// What stands after the first `?`, as sent; nil without one.
    package var query: String?
    /// 0 or 1.
    package var minorVersion: Int
    package var headers: HeaderFields

    package init(
        method: String, path: String, query: String? = nil, minorVersion: Int = 1,
        headers: HeaderFields = HeaderFields()
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.minorVersion = minorVersion
        self.headers = headers
    }
}

/// Header fields in the order received. Names compare without regard to ASCII case.
package struct HeaderFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    package struct Line: Sendable, Equatable {
        package var name: String
        package var value: String
        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }
    package private(set) var lines: [Line]

    package init(_ lines: [Line] = []) { self.lines = lines }
    package init(dictionaryLiteral elements: (String, String)...) {
        self.lines = elements.map { Line(name: $0.0, value: $0.1) }
    }

    /// The first value of a field; nil when it is absent.
    package subscript(_ name: String) -> String? {
        self.lines.first { Self.equal($0.name, name) }?.value
    }

    package func values(of name: String) -> [String] {
        self.lines.filter { Self.equal($0.name, name) }.map(\.value)
    }

    package mutating func append(_ name: String, _ value: String) {
        self.lines.append(Line(name: name, value: value))
    }

    package mutating func set(_ name: String, _ value: String) {
        self.lines.removeAll { Self.equal($0.name, name) }
        self.append(name, value)
    }

    private static func equal(_ one: String, _ other: String) -> Bool {
        one.utf8.count == other.utf8.count
            && zip(one.utf8, other.utf8).allSatisfy { Self.lowered($0) == Self.lowered($1) }
    }

    private static func lowered(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
