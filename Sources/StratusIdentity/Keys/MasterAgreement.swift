import StratusCluster
import StratusCoding
package import StratusModel
import StratusRecords
package import StratusSealing

/// What the nodes of a cluster agree on: which key each version of a named master key is.
///
/// The first node that is given a version notes the check value of its key in a row. A node with
/// another key under that number sees that it differs, and wraps nothing under it. So no two nodes
/// ever wrap under different keys of one number.
///
/// The row is a ``MasterCheck``, and its name the version, 4 bytes big-endian. Version 0 has no
/// row: it comes from the secret that all nodes share.
///
/// A version is forgotten in two steps. First the row says that it leaves, and nobody begins to
/// wrap under it. What somebody had begun before is done or refused after ``settling``. Whoever
/// then sees that nothing is under the version frees it. Its key never comes under that version
/// again.
package struct MasterAgreement: Sendable {
    package static let home = ShardKey.account("master keys")
    /// Versions that are noted at a time: each has been given to a node once.
    private static let countMax = 10_000

    private let store: IdentityStore
    private let master: any MasterKeys
    /// Told of each version on which this node agrees, before anything is wrapped under it.
    private let agreed: @Sendable (UInt32, Bytes) throws(RouteError) -> Void

    /// - Parameter agreed: notes on this node's disk that it has the key, so that the node does not
    ///   start without it.
    package init(
        store: IdentityStore, master: any MasterKeys,
        agreed: @escaping @Sendable (UInt32, Bytes) throws(RouteError) -> Void = { _, _ in }
    ) {
        self.store = store
        self.master = master
        self.agreed = agreed
    }

    /// The check value of a key of this node. Nil: it was not given that version.
    package func check(of version: UInt32) -> Bytes? {
        self.master.key(version).map { SealedKey.check(of: $0) }
    }

    /// The check values that are noted, by version. What cannot be read is left out: it keeps no
    /// other from being shown, and nothing is wrapped under its version.
    package func noted() async throws(RouteError) -> [UInt32: Bytes] {
        var noted: [UInt32: Bytes] = [:]
        for row in try await self.store.list(
            .masterCheck, of: [], at: Self.home, countMax: Self.countMax)
        {
            guard let version = try? Self.version(row.name),
                let row = try? MasterCheck(decoding: row.row.body)
            else { continue }
            noted[version] = row.check
        }
        return noted
    }

    /// Compares a key of this node with what is noted, and notes it where nothing is.
    ///
    /// - Returns: the check value that is noted, if it is of another key. Nil: they are the same.
    /// - Throws: `refused` where the version is being forgotten, or the key was.
    package func compare(_ version: UInt32) async throws(RouteError) -> Bytes? {
        guard version > 0 else { return nil }
        guard let own = self.check(of: version) else {
            throw .refused("this node lacks master key \(version)")
        }
        let key = Self.row(version)
        for _ in 0..<4 {
            let row = try await self.store.row(key, at: Self.home)
            let known = try row.map { row throws(RouteError) in try Self.decode(row) }
            switch known?.state {
            case .noted(let noted)?:
                guard noted == own else { return noted }
                try self.agreed(version, own)
                return nil
            case .leaving?:
                throw .refused(
                    "master key \(version) is being forgotten: run 'stratusctl encryption-key "
                        + "forget \(version)' to the end")
            case .free?, nil: break
            }
            let forgotten = known?.forgotten ?? []
            guard !forgotten.contains(own) else {
                throw .refused(
                    "the cluster was told to forget this key as master key \(version): give this "
                        + "node the right file, or give this one another version")
            }
            _ = try await self.store.submit(
                [
                    .init(
                        key, if: row.map { .revision($0.revision) } ?? .absent,
                        .put(
                            body: MasterCheck(.noted(own), forgotten: forgotten).encoded(),
                            expiresAtMilliseconds: 0))
                ], to: Self.home)
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// What must be so before anything is wrapped under a version.
    ///
    /// - Throws: `refused` where the other nodes have another key under that number.
    package func require(_ version: UInt32) async throws(RouteError) {
        guard let noted = try await self.compare(version) else { return }
        throw .refused(self.difference(version, noted))
    }

    /// Says how a key of this node differs.
    package func difference(_ version: UInt32, _ noted: Bytes) -> String {
        let own = self.check(of: version).map { Hexadecimal.text($0) } ?? "none"
        return "master key \(version) of this node has the check value \(own), and the cluster has "
            + "noted \(Hexadecimal.text(noted)): the nodes were given different files"
    }

    /// How long what was begun under a version may still arrive after it began to leave.
    package static let settling = IdentityStore.patience + .seconds(5)

    /// Where a version stands that is to be forgotten.
    package enum Leaving: Sendable, Equatable {
        /// Nobody has noted it.
        case unknown
        /// What was begun before may still arrive for that long.
        case settles(milliseconds: Int64)
        /// Nothing is wrapped under it any more: look whether anything is.
        case settled
    }

    /// Lets nobody begin to wrap under a version any more.
    package func leave(_ version: UInt32) async throws(RouteError) -> Leaving {
        var leaving = Leaving.unknown
        try await self.store.update(Self.row(version), at: Self.home) { row throws(RouteError) in
            let now = self.store.now
            let settling =
                Self.settling.clampedNanoseconds / 1_000_000
                + self.store.partitions.leadMilliseconds
            leaving = .unknown
            guard let row else { return nil }
            var known = try Self.decode(row)
            switch known.state {
            case .free: return nil
            case .leaving(_, let since):
                // A clock that went back must not make it wait for ever.
                let rest = min(since + settling - now, settling)
                leaving = rest > 0 ? .settles(milliseconds: rest) : .settled
                return nil
            case .noted(let check):
                leaving = .settles(milliseconds: settling)
                known.state = .leaving(check, sinceMilliseconds: now)
                return .put(body: known.encoded(), expiresAtMilliseconds: 0)
            }
        }
        return leaving
    }

    /// Something is under a version that was leaving: it stays.
    package func keep(_ version: UInt32) async throws(RouteError) {
        try await self.store.update(Self.row(version), at: Self.home) { row throws(RouteError) in
            guard let row else { return nil }
            var known = try Self.decode(row)
            guard case .leaving(let check, _) = known.state else { return nil }
            known.state = .noted(check)
            return .put(body: known.encoded(), expiresAtMilliseconds: 0)
        }
    }

    /// Frees a version that left. Whoever calls has looked that it wraps nothing since.
    ///
    /// - Returns: false where it was not leaving.
    package func free(_ version: UInt32) async throws(RouteError) -> Bool {
        var isFree = false
        try await self.store.update(Self.row(version), at: Self.home) { row throws(RouteError) in
            isFree = false
            guard let row else { return nil }
            var known = try Self.decode(row)
            guard case .leaving(let check, _) = known.state else {
                isFree = known.state == .free
                return nil
            }
            known.forget(check)
            isFree = true
            return .put(body: known.encoded(), expiresAtMilliseconds: 0)
        }
        return isFree
    }

    private static func row(_ version: UInt32) -> IdentityKey {
        var writer = ByteWriter(reserving: 4)
        writer.write(fixed: version.byteSwapped)
        return IdentityKey(.masterCheck, of: [], writer.bytes)
    }

    private static func version(_ name: Bytes) throws(RouteError) -> UInt32 {
        guard name.count == 4 else { throw .unreadableRow }
        return name.reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func decode(_ row: IdentityRow) throws(RouteError) -> MasterCheck {
        do { return try MasterCheck(decoding: row.body) } catch { throw .unreadableRow }
    }
}
