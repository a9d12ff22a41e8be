package import StratusModel

/// A key, wrapped under the one above it. The state never looks inside.
package struct WrappedKey: Sendable, Hashable {
    package static let sizeMax = 128
    package static let checkSizeMax = 32

    package var wrapped: Bytes
    /// The version of the key that wraps it.
    package var wrappingVersion: UInt32
    /// By which a node sees whether it has that key.
    package var check: Bytes

    package init(wrapped: Bytes, wrappingVersion: UInt32, check: Bytes) {
        self.wrapped = wrapped
        self.wrappingVersion = wrappingVersion
        self.check = check
    }

    package var isBounded: Bool {
        (1...Self.sizeMax).contains(self.wrapped.count) && self.check.count <= Self.checkSizeMax
    }
}

/// Stratus' own: gives a database a key, unless it has one of that version.
///
/// Version 0 is the secret that digests of equal files are made with; bodies are sealed under the
/// others. A version that an erasure has destroyed never comes back: the next key has a higher one.
package struct PutKey: Sendable, Equatable {
    package var database: DatabaseID
    package var version: UInt32
    package var key: WrappedKey

    package init(database: DatabaseID, version: UInt32, key: WrappedKey) {
        self.database = database
        self.version = version
        self.key = key
    }
}

/// A key of a database as its row has it.
package struct DatabaseKey: Sendable, Hashable {
    package var version: UInt32
    /// Nil: an erasure has destroyed it.
    package var key: WrappedKey?

    package init(version: UInt32, key: WrappedKey?) {
        self.version = version
        self.key = key
    }
}
