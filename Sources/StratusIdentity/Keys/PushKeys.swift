import StratusCoding
package import StratusModel
import StratusRecords
package import StratusSealing
import Synchronization

/// The keys by which a container sends to push providers.
///
/// They stand at the container's home as identity rows, sealed under the container's key, and are
/// believed for a second. So a key that was added, exchanged or removed counts on every node a
/// second later, without a restart (P-18). A private key is parsed once for each revision of its
/// row.
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
        /// Nil after a change of this node: the rows are read again.
        var known: Known?
        var readAt: MonotonicTime
        var parsed: ParsedSigningKeys
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
        if !fresh, let kept = self.kept.withLock({ $0[container] }), let known = kept.known,
            now < kept.readAt + Self.lifetime
        {
            return known
        }
        var parsed = self.parsed(of: container)
        let known = try await self.read(container, &parsed)
        self.kept.withLock { [parsed] kept in
            if kept.count >= Self.keptMax, kept[container] == nil { kept = [:] }
            kept[container] = Kept(known: known, readAt: now, parsed: parsed)
        }
        return known
    }

    /// How often rows are read again that were sealed anew meanwhile.
    private static let rereadMax = 3

    private func parsed(of container: ContainerReference) -> ParsedSigningKeys {
        self.kept.withLock { $0[container]?.parsed } ?? ParsedSigningKeys()
    }

    /// How often a key of the container was parsed since it came to memory, for tests.
    package func parseCount(of container: ContainerReference) -> Int {
        self.parsed(of: container).parseCount
    }

    private func read(
        _ container: ContainerReference, _ parsed: inout ParsedSigningKeys
    ) async throws(RouteError) -> Known {
        for number in 1...Self.rereadMax {
            let rows = try await self.rows(of: container)
            parsed.keep(rows)
            if rows.isEmpty { return Known() }
            // The keys in memory may be older than what the rows are sealed under.
            let ciphers = try await self.ciphers(of: container, fresh: number > 1)
            do throws(RouteError) {
                return try Self.known(rows, ciphers, &parsed)
            } catch { if number == Self.rereadMax { throw error } }
        }
        throw .unreadableRow
    }

    private func rows(of container: ContainerReference) async throws(RouteError)
        -> [IdentityAnswer.Listed]
    {
        try await self.store.list(
            .pushKey, of: IdentityKey.home(container), at: .container(container), countMax: 100)
    }

    private static func known(
        _ rows: [IdentityAnswer.Listed], _ ciphers: [TokenCipher],
        _ parsed: inout ParsedSigningKeys
    ) throws(RouteError) -> Known {
        var known = Known()
        for row in rows { try PushKeyRow.read(row, ciphers, parsed: &parsed, into: &known) }
        known.apns.sort { ($0.createdMilliseconds, $0.key) < ($1.createdMilliseconds, $1.key) }
        known.vapid.sort { $0.number < $1.number }
        return known
    }

    private static func cipher(_ key: ContainerKeys.Version) -> TokenCipher {
        let derived = KeyDerivation.derive(
            from: key.key, info: Bytes("stratus push keys 1".utf8))
        return TokenCipher(key: derived.withBytes { Bytes($0) })
    }

    /// The keys that may have sealed a row, the newest first.
    private func ciphers(of container: ContainerReference, fresh: Bool = false)
        async throws(RouteError) -> [TokenCipher]
    {
        try await self.containers.keys(of: container, fresh: fresh).map { Self.cipher($0) }
    }

    /// The key that seals a row. The row is submitted by a deadline from before this is called.
    private func sealing(of container: ContainerReference) async throws(RouteError) -> TokenCipher {
        Self.cipher(try await self.containers.sealing(of: container))
    }

    /// Seals the rows anew that are sealed under an older key of the container. May be carried out
    /// twice.
    ///
    /// - Returns: how many there were.
    package func sealAnew(
        in container: ContainerReference, from older: ContainerKeys.Version,
        to newest: ContainerKeys.Version
    ) async throws(RouteError) -> Int {
        let (old, new) = (Self.cipher(older), Self.cipher(newest))
        let rows = try await self.rows(of: container)
        if rows.isEmpty { return 0 }
        var parsed = self.parsed(of: container)
        let known = try Self.known(rows, [new, old], &parsed)
        var count = 0
        for listed in rows {
            let isWritten = try await self.store.update(
                IdentityKey(.pushKey, of: IdentityKey.home(container), listed.name),
                at: .container(container)
            ) { row throws(RouteError) in
                guard let row,
                    let body = PushKeyRow.sealedAnew(
                        row.body, named: listed.name, known, from: old, to: new)
                else { return nil }
                return .put(body: body, expiresAtMilliseconds: row.expiresAtMilliseconds)
            }
            if isWritten { count += 1 }
        }
        self.kept.withLock { $0[container]?.known = nil }
        return count
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
        let deadline = self.store.deadlineMilliseconds
        let cipher = try await self.sealing(of: container)
        try await self.put(
            PushKeyRow.name(.apns, team, key), in: container,
            PushKeyRow.apns(
                team: team, key: key, topics: topics, created: self.store.now, signing, cipher),
            by: deadline)
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
        let deadline = self.store.deadlineMilliseconds
        let cipher = try await self.sealing(of: container)
        let now = self.store.now
        try await self.put(
            PushKeyRow.name(vapid: number), in: container,
            PushKeyRow.vapid(number: number, contact: contact, created: now, signing, cipher),
            by: deadline)
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
        _ name: Bytes, in container: ContainerReference, _ body: Bytes, by deadline: Int64? = nil
    ) async throws(RouteError) {
        try await self.edit(
            name, in: container, .put(body: body, expiresAtMilliseconds: 0), by: deadline)
    }

    private func edit(
        _ name: Bytes, in container: ContainerReference, _ change: IdentityCommand.Change,
        by deadline: Int64? = nil
    ) async throws(RouteError) {
        let key = IdentityKey(.pushKey, of: IdentityKey.home(container), name)
        let outcome = try await self.store.submit(
            [.init(key, if: .any, change)], to: .container(container), by: deadline)
        guard case .done = outcome else { throw .refused("a change that is no change") }
        self.kept.withLock { $0[container]?.known = nil }
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
        for number in 0..<8 {
            let known = try await self.store.row(row, at: .container(container))
            var ciphers = try await self.ciphers(of: container, fresh: number > 0)
            var token = known.flatMap { PushKeyRow.token($0.body, of: key, ciphers) }
            if known != nil, token == nil {
                // It may be sealed under a newer key than those in memory.
                ciphers = try await self.ciphers(of: container, fresh: true)
                token = known.flatMap { PushKeyRow.token($0.body, of: key, ciphers) }
            }
            if let token, !isDue(token.issuedAt) { return token }
            let deadline = self.store.deadlineMilliseconds
            let cipher = try await self.sealing(of: container)
            let now = self.store.now / 1_000
            let text = make(now)
            let outcome = try await self.store.submit(
                [
                    .init(
                        row, if: known.map { .revision($0.revision) } ?? .absent,
                        .put(
                            body: PushKeyRow.token(text, issuedAt: now, of: key, cipher),
                            expiresAtMilliseconds: (now + 3_600) * 1_000))
                ], to: .container(container), by: deadline)
            if case .done = outcome { return (text, now) }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }
}
