/// What stands after the `?`: names and values, decoded once. Unknown names are nobody's error.
package struct QueryParameters: Sendable, Equatable {
    private var pairs: [(name: String, value: String)]

    /// A pair that does not decode is left out, as if it had not been sent: none of them is vital.
    package init(_ query: String?) {
        self.pairs = (query ?? "").split(separator: "&").compactMap { pair in
            let parts = pair.split(
                separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decode(parts[0]),
                let value = parts.count == 2 ? PercentEncoding.decode(parts[1]) : ""
            else { return nil }
            return (name, value)
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
