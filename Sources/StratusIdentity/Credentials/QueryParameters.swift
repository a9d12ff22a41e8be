import StratusModel

/// The text after the `?`: names and values, decoded once. Unknown names are ignored.
package struct QueryParameters: Sendable, Equatable {
    private var pairs: [(name: String, value: String)]

    /// A pair that does not decode is left out, as if it had not been sent: none of them is vital.
    package init(_ query: String?) {
        self.pairs = []
        guard let query else { return }
        self.pairs.reserveCapacity(4)
        var pairs = self.pairs
        Self.visit(query) { name, value in
            if let name = PercentEncoding.decode(name), let value = PercentEncoding.decode(value) {
                pairs.append((name, value))
            }
        }
        self.pairs = pairs
    }

    /// Visits every pair as it was sent. Every request runs this, so it reads bytes, not
    /// characters, and copies none.
    private static func visit(
        _ query: String, _ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void
    ) {
        let bytes = query.utf8Span.span
        var start = 0
        while start < bytes.count {
            var end = start
            var middle: Int?
            while end < bytes.count, bytes[end] != UInt8(ascii: "&") {
                if middle == nil, bytes[end] == UInt8(ascii: "=") { middle = end }
                end += 1
            }
            if end > start {
                let name = bytes.extracting(start..<(middle ?? end))
                body(name, bytes.extracting((middle.map { $0 + 1 } ?? end)..<end))
            }
            start = end + 1
        }
    }

    /// The first value of a name.
    package subscript(_ name: String) -> String? { self.pairs.first { $0.name == name }?.value }

    package func count(of name: String) -> Int { self.pairs.count { $0.name == name } }

    /// Booleans arrive as `true`, `True` or `1`.
    package func isTrue(_ name: String) -> Bool {
        self[name].map(Self.isTrue(value:)) ?? false
    }

    /// The same of one parameter, without a look at the others' values.
    package static func isTrue(_ wanted: String, in query: String?) -> Bool {
        guard let query else { return false }
        var found: Bool?
        Self.visit(query) { name, value in
            // Decoded, a name is no longer than it was sent.
            guard found == nil, name.count >= wanted.utf8.count,
                PercentEncoding.decode(name) == wanted,
                let value = PercentEncoding.decode(value)
            else { return }
            found = Self.isTrue(value: value)
        }
        return found ?? false
    }

    private static func isTrue(value: String) -> Bool {
        value == "1" || value.lowercased() == "true"
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.pairs.elementsEqual(other.pairs) { $0 == $1 }
    }
}
