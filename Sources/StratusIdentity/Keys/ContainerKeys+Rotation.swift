import StratusCluster
package import StratusModel
import StratusRecords

// A newer key for a container. The row has both keys until nothing is under the older one and no
// node can put anything under it any more.
extension ContainerKeys {
    /// A rotation as it stands.
    package struct Rotating: Sendable {
        package var newest: Version
        /// Nil: it was retired, or the container never had another one.
        package var older: Version?
        /// Since when the newest key seals.
        package var sinceMilliseconds: Int64
        /// What was begun under the older key may still arrive for so long.
        package var waitsMilliseconds: Int64
        /// Whether this call drew the newest key.
        package var isNew: Bool
    }

    /// How long what was begun under a key may still arrive after the newer one is in the row: its
    /// deadline is from before the row was read. The rest is for clocks that differ.
    package static let settling = IdentityStore.patience + .seconds(5)

    /// Gives a container a newer key, which seals from now on, unless a rotation goes on already:
    /// then that one.
    ///
    /// - Returns: nil where the container has no key yet, and needs none.
    package func beginRotation(of container: ContainerReference) async throws(RouteError)
        -> Rotating?
    {
        // Counted from before anything is read, so the row is not written later than `settling`
        // counts on.
        let deadline = self.store.deadlineMilliseconds
        let master = try await self.masterVersion(for: container)
        try await self.agreement.require(master)
        let settling =
            Self.settling.clampedNanoseconds / 1_000_000 + self.store.partitions.leadMilliseconds
        var rotating: Rotating?
        try await self.store.update(
            Self.name(of: container), at: .container(container), by: deadline
        ) { row throws(RouteError) in
            rotating = nil
            guard let row else { return nil }
            let known = try Self.decode(row.body)
            let keys = try self.open(known, of: container)
            let now = self.store.now
            if keys.count > 1 {
                // The row may have been written as late as its own deadline allowed.
                let most = settling + IdentityStore.patience.clampedNanoseconds / 1_000_000
                // A clock that went back must not make it wait for ever.
                let rest = max(0, min(known.sinceMilliseconds + most - now, most))
                rotating = Rotating(
                    newest: keys[0], older: keys[1], sinceMilliseconds: known.sinceMilliseconds,
                    waitsMilliseconds: rest, isNew: false)
                return nil
            }
            guard keys[0].number < .max else { throw .refused("there are no more versions") }
            let newest = self.draw(version: keys[0].number + 1)
            rotating = Rotating(
                newest: newest, older: keys[0], sinceMilliseconds: now,
                waitsMilliseconds: settling, isNew: true)
            return .put(
                body: try self.row([newest, keys[0]], of: container, under: master, since: now)
                    .encoded(), expiresAtMilliseconds: 0)
        }
        self.forget(container)
        return rotating
    }

    /// Destroys the older key. Whoever calls has seen, after the time to wait, that nothing is
    /// under it.
    ///
    /// - Throws: `refused` where the newest key is another one by now.
    package func retireOlder(than newest: Version, of container: ContainerReference)
        async throws(RouteError)
    {
        try await self.store.update(Self.name(of: container), at: .container(container)) {
            row throws(RouteError) in
            guard let row else { throw .refused("the container has no key any more") }
            var known = try Self.decode(row.body)
            guard try self.open(known, of: container)[0].check == newest.check else {
                throw .refused("the container has got another key meanwhile")
            }
            if known.entries.count == 1 { return nil }
            known.retireOlder()
            return .put(body: known.encoded(), expiresAtMilliseconds: 0)
        }
        self.forget(container)
    }
}
