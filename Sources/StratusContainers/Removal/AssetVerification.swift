import StratusAdminModel
import StratusCluster
import StratusIdentity
package import StratusModel
import StratusRecords
import StratusRuntime
import Synchronization

/// Reads back, on one node, the copies of the files of one container. Each call of ``next()`` does
/// a bounded piece.
package struct AssetVerification: Sendable {
    /// Reads copies of a body on this node, no faster than the node wishes.
    package typealias Check = @Sendable (BodyID, Range<UInt32>, GroupID) async -> CopyChecking

    private enum Step: Sendable {
        case owners(DatabaseWalk)
        case parts(of: String, DatabaseWalk)
        case files(DatabaseID, GroupID, after: AssetID?)
        case copies(DatabaseID, GroupID, [BodyExtent], from: UInt32)
    }

    enum Piece: Sendable, Equatable {
        case checked(CopyCheck)
        /// This node keeps no replica of the database.
        case elsewhere(DatabaseID)
        case failing(DatabaseID, String)
    }

    /// Copies of one piece.
    private static let copyCountMax = 64

    private let check: Check
    private let reader: ArchiveReader
    private let retries: Retries
    private var steps: [Step]

    package init(
        of container: ContainerReference, _ directory: Directory, by check: @escaping Check
    ) {
        self.init(of: container, directory, retries: Retries(), by: check)
    }

    init(
        of container: ContainerReference, _ directory: Directory, retries: Retries,
        by check: @escaping Check
    ) {
        self.check = check
        self.reader = ArchiveReader(store: directory.accounts.store)
        self.retries = retries
        self.steps = [
            .owners(DatabaseWalk(of: container, directory.registry, directory.accounts.store))
        ]
    }

    /// Nil at the end.
    mutating func next() async throws -> Piece? {
        guard let step = self.steps.popLast() else { return nil }
        switch step {
        case .owners(var walk):
            let owner = try await self.retries.run { try await walk.next() }
            guard let owner else { return nil }
            self.steps.append(.owners(walk))
            self.steps.append(.parts(of: owner, walk))
        case .parts(let owner, let walk):
            let parts = try await self.retries.run { try await walk.parts(of: owner) }
            for part in parts.reversed() {
                // Where there is one partition, it is the first.
                let group = self.reader.store.partitions.group(of: .database(part)) ?? GroupID(1)
                self.steps.append(.files(part, group, after: nil))
            }
        case .files(let database, let group, let after):
            return await self.files(of: database, group, after)
        case .copies(let database, let group, let bodies, let from):
            return await self.copies(of: database, group, bodies, from)
        }
        return .checked(CopyCheck())
    }

    private mutating func files(
        of database: DatabaseID, _ group: GroupID, _ after: AssetID?
    ) async -> Piece {
        do {
            let page = try await self.retries.run { [reader] in
                try await reader.files(of: database, after: after)
            }
            // A partition that holds nothing may not have been opened here.
            if !page.bodies.isEmpty,
                case .elsewhere = await self.check(BodyID(0), 0..<0, group)
            {
                return .elsewhere(database)
            }
            if let next = page.next { self.steps.append(.files(database, group, after: next)) }
            self.steps.append(.copies(database, group, page.bodies, from: 0))
            return .checked(CopyCheck())
        } catch {
            return .failing(database, (error as? RouteError)?.reason ?? "\(error)")
        }
    }

    private mutating func copies(
        of database: DatabaseID, _ group: GroupID, _ bodies: [BodyExtent], _ from: UInt32
    ) async -> Piece {
        var (rest, from, left) = (bodies[...], from, UInt32(Self.copyCountMax))
        var all = CopyCheck()
        while let extent = rest.first, left > 0 {
            let end = min(extent.chunkCount, from + left)
            if from < end {
                switch await self.check(extent.body, from..<end, group) {
                case .checked(let check): all.add(check)
                case .elsewhere: return .elsewhere(database)
                case .failing: return .failing(database, "its copies on this node cannot be read")
                }
                left -= end - from
            }
            if end == extent.chunkCount {
                rest.removeFirst()
                from = 0
            } else {
                from = end
            }
        }
        if !rest.isEmpty { self.steps.append(.copies(database, group, Array(rest), from: from)) }
        return .checked(all)
    }
}

/// The work as JSON lines: the counts so far now and then, one line for each database that is not
/// read to its end, and a last one with `done`.
package final class AssetVerificationLines: ResponseBody {
    private static let quietPieceCountMax = 100

    private struct State: Sendable {
        var work: AssetVerification
        var counts = CopyCheck()
        var elsewhere = 0
        var isDone = false
    }

    private let state: Mutex<State>

    package init(_ work: AssetVerification) { self.state = Mutex(State(work: work)) }

    package func next() async throws -> Bytes? {
        // Asked for one piece at a time, so nobody else moves it meanwhile.
        var state = self.state.withLock { $0 }
        if state.isDone { return nil }
        var lines = Bytes()
        for _ in 0..<Self.quietPieceCountMax where lines.isEmpty {
            switch try await state.work.next() {
            case nil:
                state.isDone = true
                lines = Self.line(state)
            case .checked(let check):
                state.counts.add(check)
                if check != CopyCheck() { lines = Self.line(state) }
            case .elsewhere: state.elsewhere += 1
            case .failing(let database, let reason):
                lines =
                    UnreadDatabaseLine {
                        $0.database = database.scope.name
                        $0.owner = database.owner.isEmpty ? nil : database.owner
                        $0.failing = reason
                    }.line
            }
        }
        // An empty piece would be the end.
        if lines.isEmpty { lines = Self.line(state) }
        self.state.withLock { [state] in $0 = state }
        return lines
    }

    private static func line(_ state: State) -> Bytes {
        VerifyLine {
            $0.read = Int64(state.counts.soundCount + state.counts.damagedCount)
            $0.bytes = Int64(clamping: state.counts.size)
            $0.damaged = Int64(state.counts.damagedCount)
            $0.missing = Int64(state.counts.missingCount)
            $0.elsewhere = Int64(state.elsewhere)
            $0.isDone = state.isDone
        }.line
    }
}
