import StratusCluster
package import StratusIdentity
package import StratusModel
package import StratusRecords

/// One person's documents in one container, for administrators.
package struct UserDocuments: Sendable {
    /// The device that an administrator's changes are said to come from.
    package static let device = "administrator"
    /// Items that a listing shows.
    package static let listedMax = 100_000

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

    private func ask(_ question: DocumentsAsk.Question) async throws -> DocumentsAnswer {
        return try await ArchiveReader(store: self.store).documents(question, of: self.database)
    }

    private static let otherKind = RouteError.otherKind

    /// An item with the names of the folders above it.
    package struct Listed: Sendable {
        package var path: String
        package var item: DocumentItem
    }

    /// Everything in a folder and below it, folders before what is in them. Nil: it is not there.
    package func list(_ path: [String]) async throws -> [Listed]? {
        guard case .lookup(let found) = try await self.ask(.lookup([.path(path)])) else {
            throw Self.otherKind
        }
        guard let top = found.first ?? nil else { return nil }
        guard top.kind == .folder else {
            return [Listed(path: path.joined(separator: "/"), item: top)]
        }
        var listed: [Listed] = []
        var open = [(path: path.joined(separator: "/"), id: top.id)]
        while let folder = open.popLast() {
            var after: Bytes?
            repeat {
                guard
                    case .list(let items, let next) = try await self.ask(
                        .list(folder: folder.id, after: after, limit: 200))
                else { throw Self.otherKind }
                for item in items ?? [] {
                    let path = folder.path.isEmpty ? item.name : "\(folder.path)/\(item.name)"
                    listed.append(Listed(path: path, item: item))
                    if item.kind == .folder { open.append((path, item.id)) }
                }
                after = next
                guard listed.count <= Self.listedMax else {
                    throw RouteError.refused("more than \(Self.listedMax) items")
                }
            } while after != nil
        }
        return listed.sorted { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    }

    package struct Use: Sendable, Equatable {
        package var fileCount = 0
        package var folderCount = 0
        package var size: UInt64 = 0
        package var versionCount: UInt64 = 0
    }

    /// What is in the folder `Documents`, and what is beside it.
    package func use() async throws -> (documents: Use, rest: Use) {
        var uses = (documents: Use(), rest: Use())
        func add(_ item: DocumentItem, to use: inout Use) {
            switch item.kind {
            // A package is shown as one file.
            case .file, .package: use.fileCount += 1
            case .folder: use.folderCount += 1
            }
            use.size += item.size
            use.versionCount += item.conflicts
        }
        for listed in try await self.list([]) ?? [] where !DocumentNames.isRoot(listed.item.id) {
            if listed.path.hasPrefix(DocumentNames.documentsName + "/") {
                add(listed.item, to: &uses.documents)
            } else {
                add(listed.item, to: &uses.rest)
            }
        }
        return uses
    }

    /// The contents of a file, the current one first. Nil: there is no such file.
    package func versions(_ path: [String]) async throws -> [DocumentVersion]? {
        guard case .lookup(let found) = try await self.ask(.lookup([.path(path)])) else {
            throw Self.otherKind
        }
        guard let item = found.first ?? nil else { return nil }
        guard case .versions(let versions) = try await self.ask(.versions(id: item.id)) else {
            throw Self.otherKind
        }
        return versions
    }

    /// The locks that hold, with the paths of their items.
    package func locks() async throws -> [(path: String, lock: DocumentLock)] {
        guard case .locks(let all) = try await self.ask(.locks) else { throw Self.otherKind }
        let now = self.store.now
        var locks: [(path: String, lock: DocumentLock)] = []
        for lock in all where lock.untilMilliseconds > now {
            locks.append((try await self.path(of: lock.item), lock))
        }
        return locks
    }

    private func path(of id: String) async throws -> String {
        var names: [String] = []
        var at = id
        for _ in 0...DocumentNames.depthMax where at != DocumentNames.root {
            guard case .lookup(let found) = try await self.ask(.lookup([.id(at)])) else {
                throw Self.otherKind
            }
            guard let item = found.first ?? nil else { break }
            names.append(item.name)
            at = item.folder
        }
        return names.reversed().joined(separator: "/")
    }

    /// The links that are good, with the paths of their files.
    package func publications() async throws
        -> [(path: String, publication: DocumentPublication)]
    {
        guard case .publications(let all) = try await self.ask(.publications) else {
            throw Self.otherKind
        }
        let now = self.store.now
        var found: [(path: String, publication: DocumentPublication)] = []
        for publication in all where publication.untilMilliseconds > now {
            found.append((try await self.path(of: publication.item), publication))
        }
        return found
    }

    /// Ends a link. False: there is no such link.
    package func withdraw(_ publication: String) async throws -> Bool {
        try await self.change(.withdraw(id: publication)) == .removed(id: publication)
    }

    /// Ends a lock. False: there is no such lock.
    package func unlock(_ token: String) async throws -> Bool {
        try await self.change(.unlock(token: token)) == .unlocked
    }

    private func change(_ operation: DocumentOperation) async throws -> DocumentResult? {
        let outcome = try await self.store.plain.submit(
            RecordCommand.modifyDocuments(
                ModifyDocuments(
                    database: self.database, device: Self.device,
                    nowMilliseconds: self.store.now,
                    drawnIncarnation: ZoneIncarnation(self.store.world.random()),
                    operations: [operation])), at: .database(self.database))
        guard case .documents(let results) = outcome else { throw Self.otherKind }
        return results.first
    }
}
