package import StratusCluster
import StratusCoding
package import StratusModel
import StratusRecords
package import StratusSealing
import Synchronization

/// The keys of containers: each wraps the keys of its container's databases.
///
/// A key is drawn when it is first needed, and stands at the container's home as an identity row,
/// wrapped under the master key. It goes with the container, and what it wrapped can be opened by
/// nobody then.
///
/// | bytes | container key, format 1                  |
/// | ----- | ---------------------------------------- |
/// | 1     | format, 1                                |
/// | 72    | the key, as ``SealedKey``                |
package final class ContainerKeys: Sendable {
    private struct Kept {
        var key: SecretBytes
        var readAt: MonotonicTime
    }

    /// How long a key is used before its row is read again.
    private static let lifetime = Duration.seconds(600)
    private static let keptMax = 4_096

    private let store: IdentityStore
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

    /// - Parameter fresh: reads the row, whatever is in memory: what a new key of a database is
    ///   wrapped under must be what everybody else finds.
    package func key(of container: ContainerReference, fresh: Bool = false)
        async throws(RouteError) -> SecretBytes
    {
        let now = self.store.world.now
        if !fresh, let kept = self.kept.withLock({ $0[container] }),
            now < kept.readAt + Self.lifetime
        {
            return kept.key
        }
        // The level is asked before the row: a build below it cannot read the question.
        guard self.store.router.level.allows(.two) else { throw .upgrading }
        let name = IdentityKey(.containerKey, of: IdentityKey.home(container))
        for _ in 0..<16 {
            if let row = try await self.store.row(name, at: .container(container)) {
                let key = try self.open(row.body, of: container)
                self.keep(key, of: container, at: now)
                return key
            }
            let deadline = self.store.deadlineMilliseconds
            let version = try await self.version(for: container)
            try await self.agreement.require(version)
            var drawn = self.store.draw(32)
            let key = SecretBytes(taking: &drawn)
            let outcome = try await self.store.submit(
                [
                    .init(
                        name, if: .absent,
                        .put(
                            body: try self.row(key, of: container, under: version),
                            expiresAtMilliseconds: 0))
                ], to: .container(container), by: deadline)
            if case .done = outcome {
                self.keep(key, of: container, at: now)
                return key
            }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// The master key that wraps the key of a container that has none yet.
    ///
    /// Nobody who goes through all containers finds one that nobody has made. So nothing of it is
    /// under a master key that might be retired or forgotten.
    private func version(for container: ContainerReference) async throws(RouteError) -> UInt32 {
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
        guard self.store.router.level.allows(.two) else { throw .upgrading }
        let name = IdentityKey(.containerKey, of: IdentityKey.home(container))
        guard let row = try await self.store.row(name, at: .container(container)) else {
            return .none
        }
        var version: UInt32?
        do throws(RouteError) {
            version = try Self.wrapped(row.body).version
            _ = try self.open(row.body, of: container)
        } catch {
            guard case .refused(let reason) = error else { throw error }
            return .closed(master: version, reason: reason)
        }
        return version.map { .wrapped(master: $0) } ?? .none
    }

    /// Wraps a container's key under the master key that seals. The key itself stays, so nothing
    /// under it changes.
    ///
    /// - Returns: false where it is wrapped so already, or there is none.
    package func wrapAnew(_ container: ContainerReference) async throws(RouteError) -> Bool {
        guard self.store.router.level.allows(.two) else { throw .upgrading }
        let deadline = self.store.deadlineMilliseconds
        try await self.agreement.require(self.master.sealing)
        let name = IdentityKey(.containerKey, of: IdentityKey.home(container))
        return try await self.store.update(name, at: .container(container), by: deadline) {
            (row) throws(RouteError) in
            guard let row, try Self.wrapped(row.body).version != self.master.sealing else {
                return nil
            }
            let key = try self.open(row.body, of: container)
            return .put(
                body: try self.row(key, of: container, under: self.master.sealing),
                expiresAtMilliseconds: 0)
        }
    }

    private func keep(_ key: SecretBytes, of container: ContainerReference, at now: MonotonicTime) {
        self.kept.withLock { kept in
            if kept.count >= Self.keptMax, kept[container] == nil { kept = [:] }
            kept[container] = Kept(key: key, readAt: now)
        }
    }

    private func row(
        _ key: SecretBytes, of container: ContainerReference, under version: UInt32
    ) throws(RouteError) -> Bytes {
        guard let above = self.master.key(version) else {
            throw .refused("this node lacks master key \(version)")
        }
        let wrapped = SealedKey(
            key, under: above, version: version, for: Self.purpose(container),
            nonce: Bytes(self.store.draw(16).prefix(12)))
        return [1] + wrapped.encoded
    }

    private func open(_ body: Bytes, of container: ContainerReference) throws(RouteError)
        -> SecretBytes
    {
        let wrapped = try Self.wrapped(body)
        guard let above = self.master.key(wrapped.version) else {
            throw .refused("this node lacks master key \(wrapped.version)")
        }
        do throws(SealedKey.Problem) {
            return try wrapped.open(under: above, for: Self.purpose(container))
        } catch {
            switch error {
            case .otherKey:
                throw .refused("master key \(wrapped.version) of this node is another one")
            case .damaged: throw .unreadable
            }
        }
    }

    private static func wrapped(_ body: Bytes) throws(RouteError) -> SealedKey {
        do {
            var reader = ByteReader(body)
            try reader.identityFormat(1)
            return try SealedKey(decoding: Bytes(body.dropFirst()))
        } catch { throw .unreadable }
    }

    private static func purpose(_ container: ContainerReference) -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(text: "container")
        writer.write(container.environment.rawValue)
        writer.write(text: container.container)
        return writer.bytes
    }
}
