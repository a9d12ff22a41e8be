import StratusCluster
import StratusCoding
package import StratusIdentity
package import StratusModel
package import StratusRecords
import StratusRows

/// One person's key-value store in one container, for administrators.
package struct UserKeyValues: Sendable {
    /// The device that an administrator's changes are said to come from.
    package static let device = "administrator"
    /// Pages that a store is read in: more than there are.
    private static let pageCountMax = 256

    private let store: IdentityStore
    private let database: DatabaseID

    /// Nil: no such account.
    package init?(_ id: AccountID, in container: ContainerReference, _ directory: Directory)
        async throws
    {
        guard let database = try await directory.homeDatabase(of: id, in: container) else {
            return nil
        }
        self.store = directory.store
        self.database = database
    }

    package struct Content: Sendable {
        /// Every key with an encoded property list, in the order of their last changes.
        package var values: [(key: String, value: Bytes)] = []
        package var use = KeyValueUse()
    }

    package func content() async throws -> Content {
        let reader = ArchiveReader(store: self.store)
        var content = Content()
        var values: [Bytes: (place: Int, value: Bytes?)] = [:]
        var after: FeedPosition?
        var place = 0
        for _ in 0..<Self.pageCountMax {
            let page = try await reader.keyValues(of: self.database, after: after)
            if page.isFromStart { values = [:] }
            for entry in page.entries {
                place += 1
                values[Bytes(entry.key.utf8)] = (place, entry.value)
            }
            content.use = page.use
            after = page.position
            if !page.moreComing { break }
        }
        for (key, found) in values.sorted(by: { $0.value.place < $1.value.place }) {
            guard let value = found.value else { continue }
            content.values.append((String(decoding: key, as: UTF8.self), value))
        }
        return content
    }

    package func devices() async throws -> [KeyValueDevice] {
        try await ArchiveReader(store: self.store).keyValueDevices(of: self.database)
    }

    /// Sets a key, or removes it where `value` is nil. The change is as young as can be. It is held
    /// against the default limits, whatever those of apps are.
    /// - Returns: why it was refused; nil: it stands.
    package func change(
        _ key: String, to value: Bytes?
    ) async throws -> KeyValueRefusal? {
        let now = self.store.now
        let last = try await self.devices().first { $0.device == Self.device }?.lastBatch ?? 0
        let change = ModifyKeyValues.Change {
            $0.key = key
            $0.atMilliseconds = now
            $0.value = value
        }
        let modified = try await self.store.plain.submit(
            ModifyKeyValues(self.database) {
                $0.device = Self.device
                $0.batch = last + 1
                $0.nowMilliseconds = now
                $0.drawnIncarnation = ZoneIncarnation(self.store.world.random())
                $0.changes = [change]
            }, at: .database(self.database))
        // Somebody else's change had this number: nothing was done.
        if modified.isRepeat { throw RouteError.notExecuted(retryAfter: .seconds(1)) }
        return modified.refused.first?.reason
    }
}
