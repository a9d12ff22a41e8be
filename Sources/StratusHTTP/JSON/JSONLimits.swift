package import StratusModel

/// What a JSON document may cost before it is refused.
package struct JSONLimits: Sendable, Equatable {
    /// Arrays and objects within each other.
    package var depthMax = 64
    package var sizeMax: ByteCount = .mebibytes(16)
    /// Values and keys together. A value costs eight bytes of tape beside its text.
    package var valueCountMax = 1 << 20

    package init() {}

    package init(depthMax: Int, sizeMax: ByteCount, valueCountMax: Int) {
        self.depthMax = depthMax
        self.sizeMax = sizeMax
        self.valueCountMax = valueCountMax
    }
}
