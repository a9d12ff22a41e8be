import StratusCluster
import StratusCoding
package import StratusModel
package import StratusRecords
import StratusRows
package import StratusSealing
import Synchronization

/// The keys of databases: what bodies are sealed under, and the secret that digests of equal files
/// are made with.
///
/// A key is drawn when it is first needed, and stands in the database's own partition, wrapped
/// under its container's key. An erasure destroys it with the database.
package final class DatabaseKeys: Sendable {
    /// A key with the version that what it seals must name.
    package struct Sealing: Sendable {
        package let key: SecretBytes
        package let version: UInt32
    }

    private struct Kept: Hashable {
        var database: DatabaseID
        var version: UInt32
        var wrapped: WrappedKey
    }

    private static let keptMax = 4_096

    private let store: IdentityStore
    package let containers: ContainerKeys
    /// Keys by what their rows hold, so none is used whose row is gone.
    private let opened = Mutex<[Kept: SecretBytes]>([:])

    package init(store: IdentityStore, containers: ContainerKeys) {
        self.store = store
        self.containers = containers
    }

    /// The newest key that seals. Made if there is none.
    package func sealing(of database: DatabaseID) async throws(RouteError) -> Sealing {
        let newest = try await self.row(database, version: nil)
        if let newest, let key = newest.key {
            return Sealing(
                key: try await self.open(key, version: newest.version, of: database),
                version: newest.version)
        }
        return try await self.make(1 + (newest?.version ?? 0), of: database)
    }

    /// The version that seals. Nil: the database has no key that seals, and needs none: it never
    /// had one, or an erasure has destroyed it.
    package func newestVersion(of database: DatabaseID) async throws(RouteError) -> UInt32? {
        guard let newest = try await self.row(database, version: nil), newest.key != nil else {
            return nil
        }
        return newest.version
    }

    /// Gives a database a newer key, which seals from now on, unless it has one of that version.
    ///
    /// - Returns: the version that seals. Nil: see ``newestVersion(of:)``.
    package func rotate(_ database: DatabaseID, to version: UInt32) async throws(RouteError)
        -> UInt32?
    {
        guard let newest = try await self.newestVersion(of: database) else { return nil }
        if newest >= version { return newest }
        return try await self.put(newest + 1, of: database)?.version
    }

    /// What seals the fields of a database under one version of its key.
    ///
    /// - Returns: nil where the database does not have it any more, or it does not open.
    package func fieldSealer(_ version: UInt32, of database: DatabaseID) async throws(RouteError)
        -> FieldSealer?
    {
        guard case .opens(let key) = try await self.reading(version, of: database) else {
            return nil
        }
        return FieldSealer(databaseKey: key, version: version, database: database)
    }

    /// The secret that digests of equal files are made with. Made if there is none.
    ///
    /// - Returns: nil where its row says that it was destroyed: equal files are not shared then.
    package func secret(of database: DatabaseID) async throws(RouteError) -> SecretBytes? {
        if let row = try await self.row(database, version: 0) {
            guard let key = row.key else { return nil }
            return try await self.open(key, version: 0, of: database)
        }
        return try await self.make(0, of: database).key
    }

    /// What became of the key of one version.
    package enum Reading: Sendable {
        case opens(SecretBytes)
        /// Its row cannot be read, or does not open under the container's key.
        case damaged
        /// There is none, or an erasure has destroyed it.
        case none
    }

    /// Reads the row of one version's key, and opens it.
    ///
    /// - Throws: where the row or the container's key cannot be had now.
    package func reading(_ version: UInt32, of database: DatabaseID) async throws(RouteError)
        -> Reading
    {
        guard let row = try await self.row(database, version: version)?.key else { return .none }
        let key = try await self.opening(row, version: version, of: database)
        return key.map { .opens($0) } ?? .damaged
    }

    /// The key of one version, as its row has it now. Nil: there is none, or an erasure has
    /// destroyed it.
    package func key(_ version: UInt32, of database: DatabaseID) async throws(RouteError)
        -> SecretBytes?
    {
        guard let row = try await self.row(database, version: version)?.key else { return nil }
        return try await self.open(row, version: version, of: database)
    }

    /// The key that a row holds.
    package func open(_ row: WrappedKey, version: UInt32, of database: DatabaseID)
        async throws(RouteError) -> SecretBytes
    {
        guard let key = try await self.opening(row, version: version, of: database) else {
            throw .refused("a key of a database that does not open")
        }
        return key
    }

    /// How often a row is read again that was wrapped anew meanwhile.
    private static let rereadMax = 3

    /// Nil: the row is damaged, or not of this container.
    private func opening(_ row: WrappedKey, version: UInt32, of database: DatabaseID)
        async throws(RouteError) -> SecretBytes?
    {
        var row = row
        for _ in 0..<Self.rereadMax {
            if let key = try await self.openOnce(row, version: version, of: database) { return key }
            // It may have been wrapped under a newer key since it was read, and the older key may
            // be gone by now.
            guard let now = try await self.row(database, version: version)?.key, now != row else {
                return nil
            }
            row = now
        }
        return nil
    }

    private func openOnce(_ row: WrappedKey, version: UInt32, of database: DatabaseID)
        async throws(RouteError) -> SecretBytes?
    {
        let name = Kept(database: database, version: version, wrapped: row)
        if let key = self.opened.withLock({ $0[name] }) { return key }
        guard
            let sealed = try? SealedKey(
                text: row.wrapped, version: row.wrappingVersion, check: row.check)
        else { return nil }
        let purpose = Self.purpose(database, version)
        for isFresh in [false, true] {
            let above = try await self.containers.keys(of: database.container, fresh: isFresh)
            // Another container of the name may have been made since its keys were read, or a
            // newer key.
            guard let own = above.first(where: { $0.check == row.check }) else { continue }
            guard let key = try? sealed.open(under: own.key, for: purpose) else { return nil }
            self.opened.withLock { opened in
                if opened.count >= Self.keptMax { opened = [:] }
                opened[name] = key
            }
            return key
        }
        return nil
    }

    // MARK: A newer key of the container

    /// The outcome for a key that was to be wrapped anew.
    package enum Rewrapped: Sendable, Equatable {
        case done
        /// It was wrapped anew, or destroyed, since it was read.
        case changed
        /// It does not open under the container's older key.
        case closed
    }

    /// Wraps a key of a database under the newer key of its container. May be carried out twice.
    package func rewrap(
        _ item: WrappedKeysPage.Item, from older: ContainerKeys.Version,
        to newest: ContainerKeys.Version
    ) async throws(RouteError) -> Rewrapped {
        let purpose = Self.purpose(item.database, item.version)
        guard
            let sealed = try? SealedKey(
                text: item.key.wrapped, version: item.key.wrappingVersion, check: item.key.check),
            let key = try? sealed.open(under: older.key, for: purpose)
        else { return .closed }
        let row = self.wrap(key, under: newest, for: purpose)
        let standing = try await self.submit(
            RewrapKey(item.database) {
                $0.version = item.version
                $0.old = item.key
                $0.new = row
            }, by: nil)
        return standing.key == row ? .done : .changed
    }

    private func wrap(
        _ key: SecretBytes, under above: ContainerKeys.Version, for purpose: Bytes
    ) -> WrappedKey {
        let sealed = SealedKey(
            key, under: above.key, version: above.number, for: purpose,
            nonce: Bytes(self.store.draw(16).prefix(12)))
        return WrappedKey {
            $0.wrapped = sealed.text
            $0.wrappingVersion = sealed.version
            $0.check = sealed.check
        }
    }

    // MARK: New keys

    private func make(_ version: UInt32, of database: DatabaseID) async throws(RouteError)
        -> Sealing
    {
        var version = version
        for _ in 0..<16 {
            if let sealing = try await self.put(version, of: database) { return sealing }
            // An erasure destroyed it.
            guard version > 0 else { throw .notExecuted(retryAfter: .seconds(1)) }
            version += 1
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    /// Draws a key, unless the database has one of that version. Nil: it had, and an erasure has
    /// destroyed it.
    private func put(_ version: UInt32, of database: DatabaseID) async throws(RouteError)
        -> Sealing?
    {
        // From before the container's key is read: once that one is no longer the newest, what is
        // wrapped under it may arrive for a known time only.
        let deadline = self.store.deadlineMilliseconds
        let above = try await self.containers.sealing(of: database.container)
        var drawn = self.store.draw(32)
        let row = self.wrap(
            SecretBytes(taking: &drawn), under: above, for: Self.purpose(database, version))
        let put = PutKey(database) {
            $0.version = version
            $0.key = row
        }
        let standing = try await self.submit(put, by: deadline)
        guard standing.version == version else { throw .refused("an outcome for another key") }
        guard let wrapped = standing.key else { return nil }
        return Sealing(
            key: try await self.open(wrapped, version: version, of: database), version: version)
    }

    private func row(_ database: DatabaseID, version: UInt32?) async throws(RouteError)
        -> DatabaseKey?
    {
        try await self.store.plain.ask(
            KeyAsk(database) { $0.version = version }, at: .database(database))
    }

    /// - Parameter deadline: the time after which it is carried out no more; nil: from now.
    private func submit<Operation: DatabaseOperation<RecordState>>(
        _ operation: Operation, by deadline: Int64?
    ) async throws(RouteError) -> DatabaseKey where Operation.Outcome == DatabaseKey {
        do throws(PartitionError<RequestRefusal>) {
            return try await self.store.partitions.submit(
                operation, at: .database(operation.database),
                as: .system().fixed(by: deadline))
        } catch {
            // Somebody else was faster by a version.
            if case .refused(let refusal) = error, refusal.reason == .keyMissing {
                throw .notExecuted(retryAfter: .seconds(1))
            }
            throw error.map { "\($0.reason)" }
        }
    }

    private static func purpose(_ database: DatabaseID, _ version: UInt32) -> Bytes {
        var writer = ByteWriter(reserving: 96)
        writer.write(text: "database")
        writer.write(text: database.container.container)
        writer.write(database.container.environment.rawValue)
        writer.write(database.scope.rawValue)
        writer.write(text: database.owner)
        writer.write(flag: database.bucket != nil)
        if let bucket = database.bucket {
            writer.write(bucket.number)
            writer.write(bucket.count)
        }
        writer.write(fixed: version)
        return writer.bytes
    }
}
