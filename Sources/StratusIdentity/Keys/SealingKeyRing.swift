import StratusCoding
package import StratusModel
import StratusRecords
package import StratusSealing
import Synchronization

/// The keys that tokens, links, sync tokens and markers are sealed with, by number.
///
/// Number 0 comes from the cluster's secret itself. Others are drawn, and stand in rows, wrapped
/// under that secret, so the rows alone are useless. The newest seals once it is ten seconds old,
/// when every serving node has read it. All that were not revoked open. Everything that must never
/// change (record names, hashes, the audit trail) comes from the secret and not from here.
///
/// | bytes    | sealing key, format 1                                  |
/// | -------- | ------------------------------------------------------ |
/// | 1        | format, 1                                              |
/// | flag     | revoked                                                |
/// | signed   | made, milliseconds                                     |
/// | prefixed | 32 bytes, sealed under the secret for the number; empty: number 0, or revoked |
package final class SealingKeyRing: Sendable {
    package struct Key: Sendable, Equatable {
        package var number: UInt64
        package var isRevoked: Bool
        package var madeMilliseconds: Int64
        /// Whether it is the one that seals.
        package var isSealing = false
        fileprivate var secret: Bytes?
    }

    package enum Rotation: Sendable, Equatable {
        case made(number: UInt64)
        /// Revoke older ones first.
        case tooMany
    }

    private static let home = ShardKey.account("sealing keys")
    /// The number of keys that open: a forged token costs its sender one more try for each.
    package static let liveCountMax = 16
    static let countMax = 1_000
    private static let settlingMilliseconds: Int64 = 10_000
    private static let lifetime = Duration.seconds(1)
    private static let grace = Duration.seconds(10)

    private struct Reading {
        var readAt: MonotonicTime?
        var isUnderWay = false
        var known: [Key] = []
        var generation: UInt64 = 0
    }

    private let store: IdentityStore
    private let wrapping: TokenCipher
    /// The ciphers that learn of every change, each with the purpose its keys are derived for.
    private let ciphers: [(purpose: String, cipher: TokenCipher)]
    private let reading = Mutex(Reading())

    /// - Parameters:
    ///   - feeds: what sync tokens and markers are sealed with.
    ///   - assets: what upload tickets, receipts and download links are sealed with.
    package init(
        store: IdentityStore, feeds: TokenCipher?, assets: AssetCiphers? = nil
    ) {
        self.store = store
        self.wrapping = TokenCipher(key: store.keys.wrappingKey)
        self.ciphers =
            [("credentials", store.keys.cipher)] + (feeds.map { [("feeds", $0)] } ?? [])
            + (assets?.purposes ?? [])
    }

    /// Another one whenever other keys open or seal than before.
    package var generation: UInt64 { self.reading.withLock { $0.generation } }

    /// Until when what was opened with the keys of now need not be opened again.
    var goodUntil: MonotonicTime? {
        self.reading.withLock { $0.readAt.map { $0 + Self.lifetime + Self.lifetime } }
    }

    // MARK: Keeping up

    /// Keeps the ciphers' keys at most two seconds old while the rows can be read, and at most ten
    /// seconds while they cannot. Under steady traffic nobody waits for that; after a silence one
    /// request does.
    package func keepUp() async throws(RouteError) {
        enum Step { case nothing, behind, now }
        let now = self.store.world.now
        let step = self.reading.withLock { reading -> Step in
            let age = reading.readAt.map { now - $0 } ?? .seconds(3_600)
            if age < Self.lifetime || (reading.isUnderWay && age < Self.grace) { return .nothing }
            reading.isUnderWay = true
            return age < Self.lifetime + Self.lifetime ? .behind : .now
        }
        switch step {
        case .nothing: return
        case .now: try await self.tryToRead(since: now)
        case .behind: Task { try? await self.tryToRead(since: now) }
        }
    }

    /// Reads the keys. If that fails, the last keys hold for a grace period, and then this throws.
    private func tryToRead(since now: MonotonicTime) async throws(RouteError) {
        defer { self.reading.withLock { $0.isUnderWay = false } }
        do throws(RouteError) { try await self.read() } catch {
            let readAt = self.reading.withLock { $0.readAt }
            guard let readAt, now < readAt + Self.grace else { throw error }
        }
    }

    /// Reads the keys and hands them to the ciphers.
    @discardableResult
    package func read() async throws(RouteError) -> [Key] {
        // Before the read: what is learnt is at least as new as this.
        let start = self.store.world.now
        var all = try await self.rows()
        if !all.contains(where: { $0.number == 0 }) {
            all.insert(Key(number: 0, isRevoked: false, madeMilliseconds: 0), at: 0)
        }
        let live = all.indices.filter { !all[$0].isRevoked }
        let settled = live.last {
            all[$0].madeMilliseconds + Self.settlingMilliseconds <= self.store.now
        }
        guard let sealing = settled ?? live.last else {
            throw .refused("no key is left to seal with")
        }
        all[sealing].isSealing = true
        for (purpose, cipher) in self.ciphers {
            func derived(_ key: Key) -> Bytes? {
                key.secret.map { KeyedHash.derive($0, purpose) }
            }
            cipher.adopt(
                sealing: derived(all[sealing]),
                opening: live.reversed().map { derived(all[$0]) })
        }
        self.reading.withLock { [all] reading in
            reading.readAt = max(reading.readAt ?? start, start)
            if reading.known != all {
                reading.known = all
                reading.generation += 1
            }
        }
        return all
    }

    /// By number, the oldest first; without number 0 unless it was revoked.
    private func rows() async throws(RouteError) -> [Key] {
        var all: [Key] = []
        for listed in try await self.store.list(
            .sealingKey, of: [], at: Self.home, countMax: Self.countMax)
        {
            guard listed.name.count == 8 else { throw .unreadableRow }
            let number = listed.name.reduce(0) { $0 << 8 | UInt64($1) }
            all.append(try self.decode(listed.row.body, number))
        }
        return all
    }

    // MARK: Changing

    /// Makes a new key. It opens at once and seals after ten seconds.
    package func rotate() async throws(RouteError) -> Rotation {
        for _ in 0..<16 {
            let all = try await self.rows()
            guard all.count(where: { !$0.isRevoked }) < Self.liveCountMax,
                all.count < Self.countMax
            else { return .tooMany }
            let number = (all.last?.number ?? 0) + 1
            let key = Key(
                number: number, isRevoked: false, madeMilliseconds: self.store.now,
                secret: self.store.draw(32))
            let outcome = try await self.store.submit(
                [
                    .init(
                        Self.key(number), if: .absent,
                        .put(body: self.encode(key), expiresAtMilliseconds: 0))
                ], to: Self.home)
            if case .done = outcome {
                try await self.read()
                return .made(number: number)
            }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// Ends every key before `number`: what they sealed opens nowhere within two seconds.
    ///
    /// - Returns: how many were ended; nil where there is no live key of that number to go on with.
    package func revoke(before number: UInt64) async throws(RouteError) -> Int? {
        let all = try await self.rows()
        guard all.contains(where: { $0.number == number && !$0.isRevoked }) else { return nil }
        var ended = all.filter { $0.number < number && !$0.isRevoked }
        if !all.contains(where: { $0.number == 0 }) {
            ended.insert(Key(number: 0, isRevoked: false, madeMilliseconds: 0), at: 0)
        }
        var rest = ended[...]
        while !rest.isEmpty {
            let some = rest.prefix(IdentityCommand.editCountMax)
            rest = rest.dropFirst(some.count)
            let edits = some.map { key -> IdentityCommand.Edit in
                var key = key
                key.isRevoked = true
                key.secret = nil
                return .init(
                    Self.key(key.number), .put(body: self.encode(key), expiresAtMilliseconds: 0))
            }
            guard case .done = try await self.store.submit(edits, to: Self.home) else {
                throw .notExecuted(retryAfter: .seconds(1))
            }
        }
        try await self.read()
        return ended.count
    }

    // MARK: Rows

    private static func name(_ number: UInt64) -> Bytes {
        withUnsafeBytes(of: number.bigEndian) { Bytes($0) }
    }

    private static func key(_ number: UInt64) -> IdentityKey {
        IdentityKey(.sealingKey, of: [], Self.name(number))
    }

    private func encode(_ key: Key) -> Bytes {
        var writer = ByteWriter(reserving: 80)
        writer.write(1 as UInt8)
        writer.write(flag: key.isRevoked)
        writer.write(signed: key.madeMilliseconds)
        writer.write(
            prefixed: key.secret.map { self.wrapping.seal($0, for: Self.name(key.number)) } ?? [])
        return writer.bytes
    }

    private func decode(_ body: Bytes, _ number: UInt64) throws(RouteError) -> Key {
        var reader = ByteReader(body)
        do {
            try reader.identityFormat(1)
            var key = Key(
                number: number, isRevoked: try reader.flag(),
                madeMilliseconds: try reader.signed())
            let sealed = try reader.prefixed()
            try reader.finish()
            if !sealed.isEmpty {
                key.secret = self.wrapping.open(sealed, for: Self.name(number))
                if key.secret == nil { throw DecodingError(.malformed, at: 0) }
            } else if number != 0, !key.isRevoked {
                throw DecodingError(.malformed, at: 0)
            }
            return key
        } catch { throw .unreadableRow }
    }
}
