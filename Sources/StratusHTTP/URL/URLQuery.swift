import StratusModel

/// The `name=value` pairs of a query, decoded once, in order, repeated names and all.
package struct URLQuery: Sendable, Equatable {
    package struct Item: Sendable, Equatable {
        package let name: String
        /// Empty for `name=` and for `name` alone.
        package let value: String
    }
    package let items: [Item]

    /// `+` is a space, as forms write it.
    ///
    /// - Returns: nil where a name or a value does not decode.
    package init?(_ query: String?) {
        var items: [Item] = []
        var isWhole = true
        Self.visit(query ?? "") { name, value in
            guard let name = PercentCoding.decode(name, plusIsSpace: true),
                let value = PercentCoding.decode(value, plusIsSpace: true)
            else { return isWhole = false }
            items.append(Item(name: name, value: value))
        }
        guard isWhole else { return nil }
        self.items = items
    }

    /// As clients of CloudKit write queries: `+` is itself, and a pair that does not decode is left
    /// out, as if it had not been sent: none of them is vital.
    package init(ofClient query: String?) {
        var items: [Item] = []
        items.reserveCapacity(4)
        Self.visit(query ?? "") { name, value in
            if let name = PercentCoding.decode(name), let value = PercentCoding.decode(value) {
                items.append(Item(name: name, value: value))
            }
        }
        self.items = items
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

    /// The first value of that name.
    package subscript(_ name: String) -> String? { self.items.first { $0.name == name }?.value }

    package func values(of name: String) -> [String] {
        self.items.filter { $0.name == name }.map(\.value)
    }

    package func count(of name: String) -> Int { self.items.count { $0.name == name } }

    /// Whether a client's query sets a flag: booleans arrive as `true`, `True` or `1`. Without a
    /// look at the values of others.
    package static func isTrue(_ wanted: String, ofClient query: String?) -> Bool {
        guard let query else { return false }
        var found: Bool?
        Self.visit(query) { name, value in
            // Decoded, a name is no longer than it was sent.
            guard found == nil, name.count >= wanted.utf8.count,
                PercentCoding.decode(name) == wanted, let value = PercentCoding.decode(value)
            else { return }
            found = value == "1" || value.lowercased() == "true"
        }
        return found ?? false
    }
}
