import StratusCluster
import StratusIdentity
package import StratusModel
package import StratusRecords

/// Looks in all partitions of all containers for files of which no node has a sound copy, or for
/// rows that say different things of a file. Each call of ``next()`` does a bounded piece.
package struct AssetWalk: Sendable {
    package enum Look: Sendable { case lostFiles, rows }

    private enum Step: Sendable {
        case containers(after: ContainerReference?)
        case owners(DatabaseWalk)
        case parts(of: String, DatabaseWalk)
        case lostFiles(DatabaseID, after: LostFilesPlace?)
        case rows(DatabaseID, after: AssetRowsPlace?)
    }

    package enum Piece: Sendable {
        case files([LostFile])
        case faults([AssetRowFault])
        /// A partition does not answer, or says no. Where the container's own does not, its public
        /// database stands for it.
        case failing(DatabaseID, String)
    }

    private static let containerCountMax = 100

    private let look: Look
    private let registry: ContainerRegistry
    private let reader: ArchiveReader
    private let retries: Retries
    private var store: IdentityStore { self.reader.store }
    private var steps: [Step] = [.containers(after: nil)]
    /// Partitions that were looked at: several databases share one.
    private var seen: Set<GroupID> = []

    package init(for look: Look, _ directory: Directory, retries: Retries = Retries()) {
        self.look = look
        self.registry = directory.registry
        self.reader = ArchiveReader(store: directory.accounts.store)
        self.retries = retries
    }

    /// Nil at the end.
    ///
    /// - Throws: where not even the list of containers can be read.
    package mutating func next() async throws -> Piece? {
        guard let step = self.steps.popLast() else { return nil }
        switch step {
        case .containers(let after):
            let page = try await self.retries.run { [registry] in
                try await registry.page(after: after, limit: Self.containerCountMax)
            }
            if page.count == Self.containerCountMax {
                self.steps.append(.containers(after: page.last))
            }
            for container in page.reversed() {
                self.steps.append(.owners(DatabaseWalk(of: container, self.registry, self.store)))
            }
        case .owners(var walk):
            do {
                let owner = try await self.retries.run { try await walk.next() }
                guard let owner else { break }
                self.steps.append(.owners(walk))
                self.steps.append(.parts(of: owner, walk))
            } catch let error as RouteError {
                return .failing(Self.database(of: "", in: walk.container), error.reason)
            }
        case .parts(let owner, let walk):
            do {
                for part in try await self.retries.run({ try await walk.parts(of: owner) })
                    .reversed()
                { self.add(part) }
            } catch let error as RouteError {
                return .failing(Self.database(of: owner, in: walk.container), error.reason)
            }
        case .lostFiles(let database, let after):
            do {
                let lost = try await self.retries.run { [reader] in
                    try await reader.lostFiles(after: after, near: database)
                }
                if let next = lost.next { self.steps.append(.lostFiles(database, after: next)) }
                return .files(lost.files)
            } catch let error as RouteError {
                return .failing(database, error.reason)
            }
        case .rows(let database, let after):
            do {
                let page = try await self.retries.run { [reader] in
                    try await reader.assetRows(after: after, near: database)
                }
                if let next = page.next { self.steps.append(.rows(database, after: next)) }
                return .faults(page.faults)
            } catch let error as RouteError {
                return .failing(database, error.reason)
            }
        }
        return .files([])
    }

    private static func database(of owner: String, in container: ContainerReference) -> DatabaseID {
        DatabaseID(
            container: container, scope: owner.isEmpty ? .public : .private, owner: owner)
    }

    private mutating func add(_ database: DatabaseID) {
        if let group = self.store.partitions.group(of: .database(database)) {
            guard self.seen.insert(group).inserted else { return }
        }
        switch self.look {
        case .lostFiles: self.steps.append(.lostFiles(database, after: nil))
        case .rows: self.steps.append(.rows(database, after: nil))
        }
    }
}
