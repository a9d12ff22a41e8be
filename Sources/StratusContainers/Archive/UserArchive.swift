import StratusCluster
import StratusHTTP
package import StratusIdentity
package import StratusModel
import StratusRecords
package import StratusRuntime

/// Everything a container holds about one of its users: written out, or destroyed.
///
/// An archive is JSON lines: the first says whom it is about, each other one is a record as the web
/// services write it, with its database. The private database comes whole; of the public one the
/// user's own record and every record the user created. The key-value store, documents and
/// subscriptions follow.
///
/// A zone's feed may lose its place while it is read: too many deletions are forgotten, the zone is
/// made again, its partition is recovered. Then it is read from its beginning once more, after a
/// line with `begunAgain` that takes back what was said of the zone so far. After
/// ``restartCountMax`` times, a line with `incomplete` says that the archive lacks records of the
/// zone.
package struct UserArchive: Sendable {
    private let accounts: Accounts
    private let access: ContainerAccess
    private let registry: ContainerRegistry
    private let form: RecordForm
    private let keys: DatabaseKeys?
    private var store: IdentityStore { self.accounts.store }

    /// How often one zone is begun again.
    package static let restartCountMax = 8

    package init(_ directory: Directory) {
        self.accounts = directory.accounts
        self.access = directory.access
        self.registry = directory.registry
        self.form = directory.form
        self.keys = directory.keys
    }

    /// The counts of what an erasure removed.
    package struct Receipt: Sendable, Equatable {
        package var containerCount = 0
        package var zoneCount = 0
        package var recordCount = 0
    }

    // MARK: Export

    /// Nil: no such account.
    ///
    /// - Parameter files: names the files of records, for whoever reads their bytes; nil: the
    ///   archive has their checksums and sizes only.
    package func export(
        _ id: AccountID, in container: ContainerReference, files: (any ExportedFiles)? = nil
    ) async throws -> (any ResponseBody)? {
        guard let account = try await self.accounts.account(id) else { return nil }
        let name = self.store.keys.userRecordName(
            of: id, epoch: account.epoch, in: container)
        let sessions = try await self.accounts.sessions(of: id).map(\.session)
            .filter { $0.container == container }
            .sorted { $0.openedMilliseconds < $1.openedMilliseconds }
        let passwords = try await self.accounts.appPasswords(of: id)
            .filter { $0.container == container }
        var head = JSONWriter()
        head.object {
            $0.member("format", "stratus user archive 1")
            $0.member("container", container.container)
            $0.member("environment", container.environment.name)
            $0.member("userRecordName", name)
            $0.member("email", account.email)
            $0.member("givenName", account.givenName)
            $0.member("familyName", account.familyName)
            $0.member("isDiscoverable", account.isDiscoverable)
            $0.member("verified", account.verification.name)
            $0.member("createdMilliseconds", account.createdMilliseconds)
            if account.lastSignInMilliseconds > 0 {
                $0.member("lastSignInMilliseconds", account.lastSignInMilliseconds)
            }
            $0.key("sessions")
            $0.array { array in
                for session in sessions {
                    array.object {
                        $0.member("openedMilliseconds", session.openedMilliseconds)
                        $0.member("agent", session.agent)
                    }
                }
            }
            $0.key("appPasswords")
            $0.array { array in
                for password in passwords {
                    array.object {
                        $0.member("name", password.kind.label)
                        $0.member("madeMilliseconds", password.madeMilliseconds)
                    }
                }
            }
            if files != nil { $0.member("files", true) }
        }
        try await files?.keepUp()
        let walk = try await self.walk(name, in: container)
        return ArchiveLines(
            head: head.finish() + [0x0A], walk: walk, form: self.form, keys: self.keys,
            files: files)
    }

    private func walk(_ user: String, in container: ContainerReference) async throws -> ArchiveWalk
    {
        let reader = ArchiveReader(store: self.store)
        let layout = try await self.registry.layout(of: container)
        let database = layout.privateDatabase(of: user, in: container)
        let owned = database.home
        let open = try await self.registry.publicDatabase(of: container)
        // Records of users are never queried; the person's own is read by its name.
        let types = try await reader.schema(of: container).types.map(\.name).filter {
            $0 != RecordState.userType
        }
        var steps: [ArchiveWalk.Step] = []
        let parts = try await DatabaseParts(store: self.store).parts(of: database)
        for part in parts {
            for zone in try await reader.zones(of: part) where zone != ZoneID.defaultName {
                steps.append(.feed(part, zone: zone, after: nil, restartCount: 0))
            }
        }
        for type in types { steps.append(.type(owned, type, after: nil, creator: nil)) }
        steps.append(.keyValues(owned, after: nil))
        steps.append(.documents(owned, after: nil, restartCount: 0))
        steps.append(.record(open.part(of: user), name: user))
        for type in types {
            for part in open.parts {
                steps.append(.type(part, type, after: nil, creator: user))
            }
        }
        // A subscription to one zone is where the zone is.
        for part in parts.reversed() {
            steps.append(.subscriptions(part, isShared: false, user: user))
        }
        steps.append(.subscriptions(owned, isShared: true, user: user))
        // Every part of a public database has all of them.
        steps.append(.subscriptions(open.parts[0], isShared: false, user: user))
        return ArchiveWalk(reader: reader, steps: steps)
    }

    // MARK: Erasure

    /// Destroys what every container holds for somebody, and the account.
    ///
    /// The account is shut first; sessions that a node still believes in are over after `settling`.
    /// What is cut short is safe to begin again: the account goes last.
    ///
    /// - Returns: nil where there is no such account.
    package func erase(_ id: AccountID, settling: Duration = .milliseconds(1_200)) async throws
        -> Receipt?
    {
        guard let account = try await self.accounts.account(id) else { return nil }
        _ = try await self.accounts.disable(id)
        try await Task.sleep(for: settling)
        var receipt = Receipt()
        for container in try await self.accounts.containers(of: id) {
            let name = self.store.keys.userRecordName(
                of: id, epoch: account.epoch, in: container)
            try await self.erase(name, in: container, &receipt)
            try await self.access.removeUser(name, in: container)
            receipt.containerCount += 1
        }
        return try await self.accounts.remove(id) ? receipt : nil
    }

    private func erase(
        _ user: String, in container: ContainerReference, _ receipt: inout Receipt
    ) async throws {
        let reader = ArchiveReader(store: self.store)
        let layout = try await self.registry.layout(of: container)
        let erased = try await DatabaseErasure(store: self.store).run(
            layout.privateDatabase(of: user, in: container))
        receipt.zoneCount += Int(clamping: erased.zoneCount)
        receipt.recordCount += Int(clamping: erased.recordCount)
        for part in try await self.registry.publicDatabase(of: container).parts {
            try await reader.forgetSubscriptions(of: user, in: part)
        }
        let open = try await self.registry.publicDatabase(of: container).part(of: user)
        if !(try await reader.record(user, in: open)).isEmpty {
            if try await reader.delete(user, in: open) { receipt.recordCount += 1 }
        }
    }
}
