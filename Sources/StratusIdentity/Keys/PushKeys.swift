package import StratusCluster
import StratusCoding
package import StratusModel
import StratusRecords
package import StratusSealing
import Synchronization

/// The keys by which a container sends to push providers.
///
/// They stand at the container's home as identity rows, sealed under the container's key, and are
/// believed for a second. So a key that was added, exchanged or removed counts on every node a
/// second later, without a restart (P-18).
package final class PushKeys: Sendable {
    /// A key of a team for APNs.
    package struct APNsKey: Sendable {
        /// Ten letters and digits each, as Apple gives them.
        package var team: String
        package var key: String
        /// The bundle identifiers of the apps that it sends to; the first counts where a device
        /// names none.
        package var topics: [String]
        package var createdMilliseconds: Int64
        /// Grows when the row changes.
        package var revision: UInt64
        package var signing: SigningKey
    }

    /// A key pair for Web Push.
    package struct VAPIDKey: Sendable {
        package var number: UInt64
        /// `mailto:` or `https:`: whom a push service may write to.
        package var contact: String
        package var createdMilliseconds: Int64
        package var signing: SigningKey
    }

    /// What a container has.
    package struct Known: Sendable {
        package var apns: [APNsKey] = []
        /// The oldest first.
        package var vapid: [VAPIDKey] = []
        /// Nothing is sent.
        package var isPaused = false
        package init() {}
    }

    /// What came of a change.
    package enum Change: Sendable, Equatable {
        case done
        case tooMany
    }

    package static let apnsCountMax = 8
    package static let vapidCountMax = 4
    package static let topicCountMax = 32
    private static let lifetime = Duration.seconds(1)
    private static let keptMax = 4_096

    private struct Kept {
        var known: Known
        var readAt: MonotonicTime
    }

    package let store: IdentityStore
    private let containers: ContainerKeys
    private let kept = Mutex<[ContainerReference: Kept]>([:])

    package init(store: IdentityStore, containers: ContainerKeys) {
        self.store = store
        self.containers = containers
    }

    // MARK: Reading

    /// What a container has, at most a second old.
    /// - Parameter fresh: reads the rows, whatever is in memory.
    package func known(
        of container: ContainerReference, fresh: Bool = false
    ) async throws(RouteError) -> Known {
        let now = self.store.world.now
        if !fresh, let kept = self.kept.withLock({ $0[container] }),
            now < kept.readAt + Self.lifetime
        {
            return kept.known
        }
        // The level is asked before the row: a build below it cannot read the question.
        guard self.store.router.level.allows(.two) else { return Known() }
        var known = Known()
        let rows = try await self.store.list(
            .pushKey, of: IdentityKey.home(container), at: .container(container), countMax: 100)
        if !rows.isEmpty {
            let cipher = try await self.cipher(of: container)
            for row in rows { try PushKeyRow.read(row, cipher, into: &known) }
        }
        known.apns.sort { ($0.createdMilliseconds, $0.key) < ($1.createdMilliseconds, $1.key) }
        known.vapid.sort { $0.number < $1.number }
        self.kept.withLock { [known] kept in
            if kept.count >= Self.keptMax, kept[container] == nil { kept = [:] }
            kept[container] = Kept(known: known, readAt: now)
        }
        return known
    }

    private func cipher(of container: ContainerReference) async throws(RouteError) -> TokenCipher {
        let key = try await self.containers.key(of: container)
        let derived = KeyDerivation.derive(from: key, info: Bytes("stratus push keys 1".utf8))
        return TokenCipher(key: derived.withBytes { Bytes($0) })
    }

    // MARK: Changing

    /// Adds a key, or puts it in the place of one of the same team and name.
    package func add(
        team: String, key: String, topics: [String], _ signing: SigningKey,
        to container: ContainerReference
    ) async throws(RouteError) -> Change {
        let known = try await self.known(of: container, fresh: true)
        let isNew = !known.apns.contains { $0.team == team && $0.key == key }
        if isNew, known.apns.count >= Self.apnsCountMax { return .tooMany }
        let cipher = try await self.cipher(of: container)
        try await self.put(
            PushKeyRow.name(.apns, team, key), in: container,
            PushKeyRow.apns(
                team: team, key: key, topics: topics, created: self.store.now, signing, cipher))
        return .done
    }

    /// - Returns: false where there is no such key.
    package func remove(
        team: String, key: String, from container: ContainerReference
    ) async throws(RouteError) -> Bool {
        let known = try await self.known(of: container, fresh: true)
        guard known.apns.contains(where: { $0.team == team && $0.key == key }) else {
            return false
        }
        for name in [PushKeyRow.name(.apns, team, key), PushKeyRow.name(.token, team, key)] {
            try await self.edit(name, in: container, .remove)
        }
        return true
    }

    /// Draws a new key pair. Browsers that subscribed with an older one are still sent to with it,
    /// while it is among the last four.
    package func makeVAPID(
        contact: String, in container: ContainerReference
    ) async throws(RouteError) -> VAPIDKey {
        let known = try await self.known(of: container, fresh: true)
        let number = (known.vapid.last?.number ?? 0) + 1
        let signing = SigningKey.make()
        let cipher = try await self.cipher(of: container)
        let now = self.store.now
        try await self.put(
            PushKeyRow.name(vapid: number), in: container,
            PushKeyRow.vapid(number: number, contact: contact, created: now, signing, cipher))
        for old in known.vapid.dropLast(Self.vapidCountMax - 1) {
            try await self.edit(PushKeyRow.name(vapid: old.number), in: container, .remove)
        }
        return VAPIDKey(
            number: number, contact: contact, createdMilliseconds: now, signing: signing)
    }

    /// Stops or starts all sending for a container.
    package func pause(
        _ isPaused: Bool, _ container: ContainerReference
    ) async throws(RouteError) {
        let name = PushKeyRow.name(.pause)
        if isPaused {
            try await self.put(name, in: container, PushKeyRow.pause(since: self.store.now))
        } else {
            try await self.edit(name, in: container, .remove)
        }
    }

    private func put(
        _ name: Bytes, in container: ContainerReference, _ body: Bytes
    ) async throws(RouteError) {
        try await self.edit(name, in: container, .put(body: body, expiresAtMilliseconds: 0))
    }

    private func edit(
        _ name: Bytes, in container: ContainerReference, _ change: IdentityCommand.Change
    ) async throws(RouteError) {
        guard self.store.router.level.allows(.two) else { throw .upgrading }
        let key = IdentityKey(.pushKey, of: IdentityKey.home(container), name)
        let outcome = try await self.store.submit(
            [.init(key, if: .any, change)], to: .container(container))
        guard case .done = outcome else { throw .refused("a change that is no change") }
        self.kept.withLock { $0[container] = nil }
    }

    // MARK: Provider tokens

    /// The token that a team shows APNs, the same on all nodes of a cluster: APNs refuses a team
    /// that changes it often (P-05). Who finds it due makes the next; who was slower takes that.
    ///
    /// - Parameter isDue: whether a token made at this second is to be replaced.
    /// - Parameter make: a token of this second.
    package func providerToken(
        of key: APNsKey, in container: ContainerReference,
        isDue: @Sendable (_ issuedAt: Int64) -> Bool, make: @Sendable (_ now: Int64) -> String
    ) async throws(RouteError) -> (text: String, issuedAt: Int64) {
        let name = PushKeyRow.name(.token, key.team, key.key)
        let row = IdentityKey(.pushKey, of: IdentityKey.home(container), name)
        let cipher = try await self.cipher(of: container)
        for _ in 0..<8 {
            let known = try await self.store.row(row, at: .container(container))
            if let known, let token = PushKeyRow.token(known.body, of: key, cipher),
                !isDue(token.issuedAt)
            {
                return token
            }
            let now = self.store.now / 1_000
            let text = make(now)
            let outcome = try await self.store.submit(
                [
                    .init(
                        row, if: known.map { .revision($0.revision) } ?? .absent,
                        .put(
                            body: PushKeyRow.token(text, issuedAt: now, of: key, cipher),
                            expiresAtMilliseconds: (now + 3_600) * 1_000))
                ], to: .container(container))
            if case .done = outcome { return (text, now) }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }
}
