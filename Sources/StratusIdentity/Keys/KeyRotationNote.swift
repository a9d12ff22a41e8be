package import StratusModel
import StratusRecords

/// The row of a rotation, in the hands of one run. A run that another one has followed changes
/// nothing any more.
package struct KeyRotationNote: Sendable {
    private let store: IdentityStore
    private let container: ContainerReference
    private let key: IdentityKey
    package private(set) var rotation: KeyRotation

    /// Takes the row over, or makes it.
    ///
    /// - Parameter kind: keeps rotations of several kinds of keys apart.
    package init(
        _ kind: String, of container: ContainerReference, _ store: IdentityStore
    ) async throws(RouteError) {
        let key = IdentityKey(
            .keyRotation, of: IdentityKey.home(container), Bytes(kind.utf8))
        let run = store.draw(KeyRotation.runSize)
        var taken = KeyRotation(run: run, begunMilliseconds: store.now)
        try await store.update(key, at: .container(container)) { row throws(RouteError) in
            taken = KeyRotation(run: run, begunMilliseconds: store.now)
            if let row {
                taken = try Self.decode(row)
                taken.run = run
            }
            return .put(body: taken.encoded(), expiresAtMilliseconds: 0)
        }
        self.store = store
        self.container = container
        self.key = key
        self.rotation = taken
    }

    /// Writes how far it has come.
    package mutating func write(_ change: (inout KeyRotation) -> Void) async throws(RouteError) {
        var changed = self.rotation
        change(&changed)
        try await self.update(.put(body: changed.encoded(), expiresAtMilliseconds: 0))
        self.rotation = changed
    }

    /// The rotation is done.
    package func remove() async throws(RouteError) { try await self.update(.remove) }

    private func update(_ change: IdentityCommand.Change) async throws(RouteError) {
        let (run, isRemoval) = (self.rotation.run, change == .remove)
        try await self.store.update(self.key, at: .container(self.container)) {
            row throws(RouteError) in
            guard let row else {
                // A removal that was carried out, though nobody heard of it.
                if isRemoval { return nil }
                throw .refused("this rotation was ended meanwhile")
            }
            guard try Self.decode(row).run == run else {
                throw .refused("another run goes on with this rotation")
            }
            return change
        }
    }

    private static func decode(_ row: IdentityRow) throws(RouteError) -> KeyRotation {
        do { return try KeyRotation(decoding: row.body) } catch { throw .unreadableRow }
    }
}
