package import StratusModel

/// The limits of a JSON document; one that exceeds them is refused.
package struct JSONLimits: Sendable, Equatable {
    /// Arrays and objects within each other.
    package var depthMax = 96
    package var sizeMax: ByteCount = .mebibytes(16)
    /// Values and keys together. A value costs eight bytes of tape beside its text.
    package var valueCountMax = 1 << 20
    /// Keeps half a surrogate pair, a number that no Double can hold, or what is nested too deep, as
    /// a value that cannot be read, instead of refusing the document. Then only the part that holds it is wrong, not
    /// everything around it.
    package var keepsUnreadable = false

    package init() {}

    package init(depthMax: Int, sizeMax: ByteCount, valueCountMax: Int) {
        self.depthMax = depthMax
        self.sizeMax = sizeMax
        self.valueCountMax = valueCountMax
    }
}
