/// The `name=value` pairs of a query, decoded, in order, repeated names and all.
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
        for part in (query ?? "").utf8.split(separator: 0x26) {
            let pair = part.split(
                separator: 0x3D, maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentCoding.decode(pair[0], plusIsSpace: true),
                let value = pair.count == 1
                    ? "" : PercentCoding.decode(pair[1], plusIsSpace: true)
            else { return nil }
            items.append(Item(name: name, value: value))
        }
        self.items = items
    }

    /// The first value of that name.
    package subscript(_ name: String) -> String? { self.items.first { $0.name == name }?.value }

    package func values(of name: String) -> [String] {
        self.items.filter { $0.name == name }.map(\.value)
    }
}
