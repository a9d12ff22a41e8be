package import StratusModel

/// What a JSON document may cost before it is refused.
package struct JSONLimits: Sendable, Equatable {
    /// Arrays and objects within each other.
    package var depthMax = 64
    package var sizeMax: ByteCount = .mebibytes(16)
    /// Values and keys together. A value costs eight bytes of tape beside its text.
    package var valueCountMax = 1 << 20
    /// Keeps a string with half of a surrogate pair, and a number no Double can hold, as values that
    /// nothing can be read from, instead of refusing the document: what holds them is then wrong, and
    /// not everything around it.
    package var keepsUnreadable = false

    package init() {}

    package init(depthMax: Int, sizeMax: ByteCount, valueCountMax: Int) {
        self.depthMax = depthMax
        self.sizeMax = sizeMax
        self.valueCountMax = valueCountMax
    }
}
