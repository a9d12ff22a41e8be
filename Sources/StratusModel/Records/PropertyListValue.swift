/// One value of the key-value store: a property list.
package indirect enum PropertyListValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    /// Never NaN or infinite.
    case real(Double)
    case boolean(Bool)
    /// Milliseconds since 1970.
    case date(Int64)
    case data(Bytes)
    case array([PropertyListValue])
    /// Sorted by key (UTF-8 order), no key twice.
    case dictionary([Member])

    package struct Member: Sendable, Hashable {
        package var key: String
        package var value: PropertyListValue

        package init(key: String, value: PropertyListValue) {
            self.key = key
            self.value = value
        }
    }

    /// Arrays and dictionaries within each other, a value that is neither counted as one level.
    package static let depthMax = 32
}
