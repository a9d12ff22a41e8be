import StratusCluster
import StratusIdentity
package import StratusModel
package import StratusRecords

/// The storage that the databases of a container use, a page of users at a time.
package struct ContainerUsage: Sendable {
    private let accounts: Accounts
    private var store: IdentityStore { self.accounts.store }
    private let registry: ContainerRegistry

    /// Users on one page: each is a question to another partition.
    package static let userCountMax = 100

    package init(_ directory: Directory) {
        self.accounts = directory.accounts
        self.registry = directory.registry
    }

    package struct Held: Sendable, Equatable {
        /// Empty: the public database.
        package var owner: String
        /// The address of the owner's account, if there is one.
        package var email: String?
        package var use: StorageUse
        package var zoneCount: UInt64
    }

    package struct Page: Sendable, Equatable {
        package var databases: [Held]
        /// The user after whom the next page begins; nil: this was the last.
        package var next: String?
    }

    /// The first page begins with the public database.
    package func page(of container: ContainerReference, after: String?) async throws -> Page {
        var page = Page(databases: [])
        if after == nil {
            page.databases.append(
                try await self.held(by: try await self.registry.publicDatabase(of: container)))
        }
        let users = try await self.store.page(
            .user, of: IdentityKey.home(container), at: .container(container),
            after: after.map { Bytes($0.utf8) }, limit: Self.userCountMax)
        let layout =
            users.isEmpty ? ContainerLayout() : try await self.registry.layout(of: container)
        let owners = users.map { (try? ContainerUser(decoding: $0.row.body))?.account }
        var emails = try await self.accounts.accounts(owners.compactMap(\.self)).makeIterator()
        for (user, owner) in zip(users, owners) {
            let name = String(decoding: user.name, as: UTF8.self)
            var held = try await self.held(by: layout.privateDatabase(of: name, in: container))
            if owner != nil { held.email = emails.next()??.email }
            page.databases.append(held)
            page.next = name
        }
        if users.count < Self.userCountMax { page.next = nil }
        return page
    }

    /// The sum over its buckets, each as it is when it is asked.
    package func held(by database: PublicDatabase) async throws -> Held {
        var all = Held(owner: "", use: .none, zoneCount: 0)
        for part in database.parts {
            let held = try await self.held(part)
            all.use = all.use + held.use
            all.zoneCount += held.zoneCount
        }
        return all
    }

    /// The same of a user's private database.
    private func held(by database: PrivateDatabase) async throws -> Held {
        var all = Held(owner: database.home.owner, use: .none, zoneCount: 0)
        for part in try await DatabaseParts(store: self.store).parts(of: database) {
            let held = try await self.held(part)
            all.use = all.use + held.use
            all.zoneCount += held.zoneCount
        }
        return all
    }

    private func held(_ database: DatabaseID) async throws -> Held {
        let answer = try await self.store.plain.ask(
            RecordQuery.Ask.use(database), at: .database(database))
        guard case .use(let use, let zoneCount, _) = answer else { throw RouteError.otherKind }
        return Held(owner: database.owner, use: use, zoneCount: zoneCount)
    }
}
