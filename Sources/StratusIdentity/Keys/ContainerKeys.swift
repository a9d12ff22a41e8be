import StratusCoding
package import StratusModel
import StratusRecords
package import StratusSealing
import Synchronization

/// The keys of containers: each wraps the keys of its container's databases.
///
/// A key is drawn when it is first needed, and stands at the container's home as an identity row,
/// wrapped under the master key: a ``ContainerKeyRow``. It goes with the container, and what it
/// wrapped can be opened by nobody then. While it is rotated the row has two keys.
package final class ContainerKeys: Sendable {
    /// One version of a container's key, opened.
    package struct Version: Sendable {
        package let number: UInt32
        package let key: SecretBytes
        /// The value by which the keys under it name it.
        package let check: Bytes

        init(_ number: UInt32, _ key: SecretBytes) {
            self.number = number
            self.key = key
            self.check = SealedKey.check(of: key)
        }
    }

    private struct Kept {
        var keys: [Version]
        var readAt: MonotonicTime
    }

    /// How long a key is used before its row is read again.
    private static let lifetime = Duration.seconds(600)
    private static let keptMax = 4_096

    let store: IdentityStore
    package let master: any MasterKeys
    /// What keeps nodes from wrapping under different keys of one number.
    package let agreement: MasterAgreement
    private let kept = Mutex<[ContainerReference: Kept]>([:])

    /// - Parameter agreed: see ``MasterAgreement``.
    package init(
        store: IdentityStore, master: any MasterKeys,
        agreed: @escaping @Sendable (UInt32, Bytes) throws(RouteError) -> Void = { _, _ in }
    ) {
        self.store = store
        self.master = master
        self.agreement = MasterAgreement(store: store, master: master, agreed: agreed)
    }

    /// The version that wraps from now on.
    package var sealing: UInt32 { self.master.sealing }
    /// Every version that this node was given, in order.
    package var versions: [UInt32] { self.master.versions }

    /// The newest key of a container.
    package func key(of container: ContainerReference, fresh: Bool = false)
        async throws(RouteError) -> SecretBytes
    {
        try await self.keys(of: container, fresh: fresh)[0].key
    }

    /// The key that seals. It is read: what a new key of a database is wrapped under must be what
    /// everybody else finds, and the older one is destroyed soon.
    ///
    /// Whoever seals under it submits that by a deadline from before this is called.
    package func sealing(of container: ContainerReference) async throws(RouteError) -> Version {
        try await self.keys(of: container, fresh: true)[0]
    }

    /// Every key that opens something, the newest first.
    ///
    /// - Parameter fresh: reads the row, whatever is in memory.
    package func keys(of container: ContainerReference, fresh: Bool = false)
        async throws(RouteError) -> [Version]
    {
        let now = self.store.world.now
        if !fresh, let kept = self.kept.withLock({ $0[container] }),
            now < kept.readAt + Self.lifetime
        {
            return kept.keys
        }
        let name = Self.name(of: container)
        for _ in 0..<16 {
            if let row = try await self.store.row(name, at: .container(container)) {
                let keys = try self.open(try Self.decode(row.body), of: container)
                self.keep(keys, of: container, at: now)
                return keys
            }
            let deadline = self.store.deadlineMilliseconds
            let master = try await self.masterVersion(for: container)
            try await self.agreement.require(master)
            let drawn = self.draw(version: 0)
            let row = ContainerKeyRow(try self.entry(drawn, of: container, under: master))
            let outcome = try await self.store.submit(
                [
                    .init(
                        name, if: .absent,
                        .put(body: row.encoded(), expiresAtMilliseconds: 0))
                ], to: .container(container), by: deadline)
            if case .done = outcome {
                self.keep([drawn], of: container, at: now)
                return [drawn]
            }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// The master key that wraps the key of a container that has none yet.
    ///
    /// Nobody who goes through all containers finds one that nobody has made. So nothing of it is
    /// under a master key that might be retired or forgotten.
    func masterVersion(for container: ContainerReference) async throws(RouteError) -> UInt32 {
        let isListed = try await ContainerRegistry.isListed(container, in: self.store)
        return isListed ? self.master.sealing : 0
    }

    /// How a container's key is stored.
    package enum State: Sendable, Equatable {
        /// Nobody has needed one yet.
        case none
        /// It opens.
        case wrapped(master: UInt32)
        /// This node cannot open it.
        ///
        /// - Parameter master: nil where the row itself cannot be read.
        case closed(master: UInt32?, reason: String)
    }

    /// Reads the row of a container's key, and opens it.
    package func state(of container: ContainerReference) async throws(RouteError) -> State {
        let name = Self.name(of: container)
        guard let row = try await self.store.row(name, at: .container(container)) else {
            return .none
        }
        var master: UInt32?
        do throws(RouteError) {
            let known = try Self.decode(row.body)
            master = known.master
            _ = try self.open(known, of: container)
            return .wrapped(master: known.master)
        } catch {
            guard case .refused(let reason) = error else { throw error }
            return .closed(master: master, reason: reason)
        }
    }

    /// Wraps a container's key under the master key that seals. The key itself stays, so nothing
    /// under it changes.
    ///
    /// - Returns: false where it is wrapped so already, or there is none.
    package func wrapAnew(_ container: ContainerReference) async throws(RouteError) -> Bool {
        let deadline = self.store.deadlineMilliseconds
        let master = self.master.sealing
        try await self.agreement.require(master)
        return try await self.store.update(
            Self.name(of: container), at: .container(container), by: deadline
        ) { row throws(RouteError) in
            guard let row else { return nil }
            let known = try Self.decode(row.body)
            if known.master == master { return nil }
            return .put(
                body: try self.row(
                    try self.open(known, of: container), of: container, under: master,
                    since: known.sinceMilliseconds
                ).encoded(), expiresAtMilliseconds: 0)
        }
    }

    // MARK: Rows

    static func name(of container: ContainerReference) -> IdentityKey {
        IdentityKey(.containerKey, of: IdentityKey.home(container))
    }

    static func decode(_ body: Bytes) throws(RouteError) -> ContainerKeyRow {
        do { return try ContainerKeyRow(decoding: body) } catch { throw .unreadableRow }
    }

    func draw(version: UInt32) -> Version {
        var drawn = self.store.draw(SealedKey.keySize)
        return Version(version, SecretBytes(taking: &drawn))
    }

    /// Forgets what is in memory: the next one to ask reads the row.
    func forget(_ container: ContainerReference) { self.kept.withLock { $0[container] = nil } }

    private func keep(_ keys: [Version], of container: ContainerReference, at now: MonotonicTime) {
        self.kept.withLock { kept in
            if kept.count >= Self.keptMax, kept[container] == nil { kept = [:] }
            kept[container] = Kept(keys: keys, readAt: now)
        }
    }

    /// - Parameter keys: the newest first, two at most.
    func row(
        _ keys: [Version], of container: ContainerReference, under master: UInt32, since: Int64
    ) throws(RouteError) -> ContainerKeyRow {
        var older: ContainerKeyRow.Entry?
        if keys.count > 1 { older = try self.entry(keys[1], of: container, under: master) }
        return ContainerKeyRow(
            try self.entry(keys[0], of: container, under: master), older: older,
            sinceMilliseconds: since)
    }

    private func entry(
        _ version: Version, of container: ContainerReference, under master: UInt32
    ) throws(RouteError) -> ContainerKeyRow.Entry {
        guard let above = self.master.key(master) else {
            throw .refused("this node lacks master key \(master)")
        }
        let wrapped = SealedKey(
            version.key, under: above, version: master,
            for: Self.purpose(container, version.number),
            nonce: Bytes(self.store.draw(16).prefix(12)))
        return ContainerKeyRow.Entry(version: version.number, key: wrapped)
    }

    func open(_ row: ContainerKeyRow, of container: ContainerReference) throws(RouteError)
        -> [Version]
    {
        guard let above = self.master.key(row.master) else {
            throw .refused("this node lacks master key \(row.master)")
        }
        var keys: [Version] = []
        for entry in row.entries {
            do throws(SealedKey.Problem) {
                let key = try entry.key.open(
                    under: above, for: Self.purpose(container, entry.version))
                keys.append(Version(entry.version, key))
            } catch {
                switch error {
                case .otherKey:
                    throw .refused("master key \(row.master) of this node is another one")
                case .damaged: throw .unreadableRow
                }
            }
        }
        return keys
    }

    /// - Parameter version: not written for the first key, which is older than versions.
    private static func purpose(_ container: ContainerReference, _ version: UInt32) -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(text: "container")
        writer.write(container.environment.rawValue)
        writer.write(text: container.container)
        if version > 0 { writer.write(fixed: version) }
        return writer.bytes
    }
}
