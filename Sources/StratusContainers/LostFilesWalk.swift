import StratusCluster
import StratusHTTP
import StratusIdentity
package import StratusModel
package import StratusRecords
import StratusRuntime
import Synchronization

/// Looks in all partitions of all containers for files of which no node has a sound copy. Each
/// call of ``next()`` does a bounded piece.
package struct LostFilesWalk: Sendable {
    private enum Step: Sendable {
        case containers(after: ContainerReference?)
        case users(ContainerReference, after: Bytes?)
        case database(DatabaseID, after: AssetID?)
    }

    package enum Piece: Sendable {
        case files([LostFile])
        /// A partition does not answer, or says no.
        case failing(DatabaseID, String)
    }

    private static let containerCountMax = 100
    private static let userCountMax = 20

    private let registry: ContainerRegistry
    private let reader: ArchiveReader
    private var store: IdentityStore { self.reader.store }
    private var steps: [Step] = [.containers(after: nil)]
    /// Partitions that were looked at: several databases share one.
    private var seen: Set<GroupID> = []

    package init(_ directory: Directory) {
        self.registry = directory.registry
        self.reader = ArchiveReader(store: directory.accounts.store)
    }

    /// Nil at the end.
    package mutating func next() async throws -> Piece? {
        guard let step = self.steps.popLast() else { return nil }
        switch step {
        case .containers(let after):
            let page = try await self.registry.page(after: after, limit: Self.containerCountMax)
            if page.count == Self.containerCountMax {
                self.steps.append(.containers(after: page.last))
            }
            for container in page.reversed() {
                self.steps.append(.users(container, after: nil))
                for part in try await self.registry.publicDatabase(of: container).parts.reversed() {
                    self.add(part)
                }
            }
        case .users(let container, let after):
            let users = try await self.store.page(
                .user, of: IdentityKey.home(container), at: .container(container), after: after,
                limit: Self.userCountMax)
            if users.count == Self.userCountMax {
                self.steps.append(.users(container, after: users.last?.name))
            }
            let layout = try await self.registry.layout(of: container)
            for user in users {
                let name = String(decoding: user.name, as: UTF8.self)
                let database = layout.privateDatabase(of: name, in: container)
                for part in try await PrivateParts(store: self.store).parts(of: database) {
                    self.add(part)
                }
            }
        case .database(let database, let after):
            do {
                let lost = try await self.reader.lostFiles(after: after, near: database)
                if let next = lost.next { self.steps.append(.database(database, after: next)) }
                return .files(lost.files)
            } catch let error as RouteError {
                return .failing(database, "\(error)")
            }
        }
        return .files([])
    }

    private mutating func add(_ database: DatabaseID) {
        if let group = self.store.router.group(of: .database(database)) {
            guard self.seen.insert(group).inserted else { return }
        }
        self.steps.append(.database(database, after: nil))
    }
}

/// The walk as JSON lines: one for each file, one for each partition that does not answer, and a
/// last one with `done`.
package final class LostFilesLines: ResponseBody {
    private static let quietPieceCountMax = 100

    private let state: Mutex<(walk: LostFilesWalk, isDone: Bool)>

    package init(_ walk: LostFilesWalk) { self.state = Mutex((walk, false)) }

    package func next() async throws -> Bytes? {
        // Asked for one piece at a time, so nobody else moves it meanwhile.
        var (walk, isDone) = self.state.withLock { $0 }
        if isDone { return nil }
        var lines = Bytes()
        // An empty piece would be the end, and most pieces have no lost file. An empty line shows
        // that the walk goes on.
        for number in 1...Self.quietPieceCountMax where lines.isEmpty {
            if number == Self.quietPieceCountMax { lines = [0x0A] }
            guard let piece = try await walk.next() else {
                isDone = true
                lines += Self.line { $0.member("done", true) }
                break
            }
            switch piece {
            case .files(let files): for file in files { lines += Self.line(file) }
            case .failing(let database, let reason):
                lines += Self.line {
                    Self.write(database, to: &$0)
                    $0.member("failing", reason)
                }
            }
        }
        self.state.withLock { [walk, isDone] in $0 = (walk, isDone) }
        return lines
    }

    private static func line(_ members: (inout JSONWriter) -> Void) -> Bytes {
        var json = JSONWriter()
        json.object { members(&$0) }
        return json.finish() + [0x0A]
    }

    private static func line(_ file: LostFile) -> Bytes {
        Self.line {
            Self.write(file.database, to: &$0)
            $0.member("size", Int64(clamping: file.size))
            $0.member("fileChecksum", file.fileChecksum)
            if let holder = file.holder {
                $0.member("zone", holder.zone)
                $0.member("recordName", holder.record)
            }
        }
    }

    private static func write(_ database: DatabaseID, to json: inout JSONWriter) {
        json.member("container", database.container.container)
        json.member("environment", database.container.environment.name)
        json.member("database", database.scope.name)
        json.member("owner", database.owner)
    }
}
