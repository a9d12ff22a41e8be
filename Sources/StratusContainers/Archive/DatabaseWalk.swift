import StratusIdentity
import StratusModel
import StratusRecords

/// Goes through all databases of a container: the public one, then those of its users in the order
/// of their names.
struct DatabaseWalk: Sendable {
    private static let userCountMax = 100

    let container: ContainerReference
    private let registry: ContainerRegistry
    private let store: IdentityStore
    /// The owner that comes next but for those on the page: nil where the list has no more.
    private var after: Bytes?
    private var hasMore = true
    /// What was read and not taken yet.
    private var owners: [String]

    /// - Parameter last: the owner behind whom it begins; nil: with the public database.
    init(
        of container: ContainerReference, _ registry: ContainerRegistry, _ store: IdentityStore,
        after last: String? = nil
    ) {
        self.container = container
        self.registry = registry
        self.store = store
        self.owners = last == nil ? [""] : []
        if let last, !last.isEmpty { self.after = Bytes(last.utf8) }
    }

    /// The owner of the next database; empty for the public one, nil at the end. What fails can be
    /// asked again.
    mutating func next() async throws -> String? {
        if self.owners.isEmpty, self.hasMore {
            let users = try await self.store.page(
                .user, of: IdentityKey.home(self.container), at: .container(self.container),
                after: self.after, limit: Self.userCountMax)
            self.hasMore = users.count == Self.userCountMax
            self.after = users.last?.name
            self.owners = users.map { String(decoding: $0.name, as: UTF8.self) }
        }
        return self.owners.isEmpty ? nil : self.owners.removeFirst()
    }

    /// The parts of an owner's database, in an order that never changes.
    func parts(of owner: String) async throws -> [DatabaseID] {
        if owner.isEmpty {
            return try await self.registry.publicDatabase(of: self.container).parts
        }
        let layout = try await self.registry.layout(of: self.container)
        return try await DatabaseParts(store: self.store).parts(
            of: layout.privateDatabase(of: owner, in: self.container))
    }
}
