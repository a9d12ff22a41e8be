package import StratusCoding
package import StratusModel

/// A key, wrapped under the one above it. The state never looks inside.
package struct WrappedKey: FormValue, Sendable, Hashable {
    package static let sizeMax = 128
    package static let checkSizeMax = 32

    package var wrapped: Bytes = []
    /// The version of the key that wraps it.
    package var wrappingVersion: UInt32 = 0
    /// By which a node sees whether it has that key.
    package var check: Bytes = []

    package init() {}

    private var isBounded: Bool {
        (1...Self.sizeMax).contains(self.wrapped.count) && self.check.count <= Self.checkSizeMax
    }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.wrapped)
        try form.lay(&self.wrappingVersion)
        try form.lay(&self.check)
        try form.require(self.isBounded)
    }
}

/// A key of a database as its row has it.
package struct DatabaseKey: FormValue, Sendable, Hashable {
    package var version: UInt32 = 0
    /// Nil: an erasure has destroyed it.
    package var key: WrappedKey?

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.version)
        try form.lay(&self.key)
    }
}
