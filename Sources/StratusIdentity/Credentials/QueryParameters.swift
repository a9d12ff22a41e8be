import StratusModel

/// What stands after the `?`: names and values, decoded once. Unknown names are nobody's error.
package struct QueryParameters: Sendable, Equatable {
    private var pairs: [(name: String, value: String)]

    /// A pair that does not decode is left out, as if it had not been sent: none of them is vital.
    package init(_ query: String?) {
        self.pairs = []
        guard let query else { return }
        // Every request comes by here, some twice: bytes, not characters.
        for pair in Bytes(query.utf8).split(separator: UInt8(ascii: "&")) {
            let middle = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard let name = PercentEncoding.decode(pair[..<middle]),
                let value = PercentEncoding.decode(pair[middle...].dropFirst())
            else { continue }
            self.pairs.append((name, value))
        }
    }

    /// The first value of a name.
    package subscript(_ name: String) -> String? { self.pairs.first { $0.name == name }?.value }

    package func count(of name: String) -> Int { self.pairs.count { $0.name == name } }

    /// Booleans arrive as `true`, `True` or `1`.
    package func isTrue(_ name: String) -> Bool {
        guard let value = self[name] else { return false }
        return value == "1" || value.lowercased() == "true"
    }

    package static func == (one: Self, other: Self) -> Bool {
        one.pairs.elementsEqual(other.pairs) { $0 == $1 }
    }
}
