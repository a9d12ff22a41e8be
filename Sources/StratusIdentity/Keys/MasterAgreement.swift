package import StratusCluster
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
/// | bytes | master check, format 1                                              |
/// | ----- | ------------------------------------------------------------------- |
/// | 1     | format, 1                                                           |
/// | 8     | the check value of the key, as in ``SealedKey``                     |
///
/// The row's name is the version, 4 bytes big-endian. Version 0 has no row: it comes from the
/// secret that all nodes share.
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
        guard self.store.router.level.allows(.two) else { return [:] }
        var noted: [UInt32: Bytes] = [:]
        for row in try await self.store.list(
            .masterCheck, of: [], at: Self.home, countMax: Self.countMax)
        {
            guard let version = try? Self.version(row.name),
                let check = try? Self.check(in: row.row.body)
            else { continue }
            noted[version] = check
        }
        return noted
    }

    /// Compares a key of this node with what is noted, and notes it where nothing is.
    ///
    /// - Returns: the check value that is noted, if it is of another key. Nil: they are the same.
    package func compare(_ version: UInt32) async throws(RouteError) -> Bytes? {
        guard version > 0 else { return nil }
        guard let own = self.check(of: version) else {
            throw .refused("this node lacks master key \(version)")
        }
        guard self.store.router.level.allows(.two) else { throw .upgrading }
        let key = Self.row(version)
        for _ in 0..<4 {
            if let row = try await self.store.row(key, at: Self.home) {
                let noted = try Self.check(in: row.body)
                guard noted == own else { return noted }
                try self.agreed(version, own)
                return nil
            }
            _ = try await self.store.submit(
                [.init(key, if: .absent, .put(body: [1] + own, expiresAtMilliseconds: 0))],
                to: Self.home)
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

    /// Forgets which key a version is. Whoever calls has looked that it wraps nothing.
    ///
    /// - Returns: whether it was noted.
    package func forget(_ version: UInt32) async throws(RouteError) -> Bool {
        guard self.store.router.level.allows(.two) else { throw .upgrading }
        return try await self.store.update(Self.row(version), at: Self.home) { row in
            row == nil ? nil : .remove
        }
    }

    private static func row(_ version: UInt32) -> IdentityKey {
        var writer = ByteWriter(reserving: 4)
        writer.write(fixed: version.byteSwapped)
        return IdentityKey(.masterCheck, of: [], writer.bytes)
    }

    private static func version(_ name: Bytes) throws(RouteError) -> UInt32 {
        guard name.count == 4 else { throw .unreadable }
        return name.reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func check(in body: Bytes) throws(RouteError) -> Bytes {
        do {
            var reader = ByteReader(body)
            try reader.identityFormat(1)
            let check = try reader.raw(8)
            try reader.finish()
            return check
        } catch { throw .unreadable }
    }
}
