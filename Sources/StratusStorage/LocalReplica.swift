package import StratusModel
import StratusSQLite

/// One partition on one node without consensus: a batch of commands is one SQLite commit with a sync.
///
/// What `stratus dev` stands on until a replicated group replaces it. Owned by one executor that may
/// block.
///
/// Promises:
/// - A command whose outcome was returned is on stable storage and is applied once.
/// - `.notExecuted` means that it did not happen; `.outcomeUnknown` that it may show after a restart.
/// - After any error the rows are those of the last commit.
package final class LocalReplica<State: ReplicatedState> {
    /// Above this many frames in the WAL the next commit is followed by a checkpoint.
    private static var walFrameCountMax: Int { 1_024 }

    private let world: any World
    private let path: DiskPath
    private let system: FileSystem
    private let options: Connection.Options
    private var application: CommandApplication<State>
    /// nil after an error that the connection did not survive: the next use opens another.
    private var rows: RowDatabase?
    private var position: AppliedPosition
    /// Why the replica takes no more writes, once it does not: a sync failed. Only a restart mends it.
    package private(set) var fault: StoreError?

    /// Opens the replica in `directory`, making it if it was never made.
    ///
    /// - Throws: `.corrupt` if it was made and its database is gone: an empty start would lose what was
    ///   acknowledged.
    package init(_ state: State, in directory: DiskPath, of world: any World)
        throws(StoreError)
    {
        self.world = world
        self.path = directory.appending("rows.db")
        self.system = FileSystem(world.files)
        self.options = Connection.Options(
            synchronous: .full, fileTag: 0, cacheSize: .mebibytes(16))
        self.application = CommandApplication(state)
        try Self.prepare(directory, self.path, self.system)
        let rows = try RowDatabase(self.path, in: self.system, self.options)
        self.position = try AppliedPosition.read(from: rows)
        rows.digest = self.position.digest
        self.rows = rows
    }

    private static func prepare(
        _ directory: DiskPath, _ path: DiskPath, _ system: FileSystem
    ) throws(StoreError) {
        let files = system.files
        let made = directory.appending("made")
        try onDisk { () throws(DiskError) in
            try files.makeDirectory(directory)
            try files.syncDirectories(upFrom: directory.parent)
        }
        let wasMade = try onDisk { () throws(DiskError) in try files.exists(made) }
        let exists = try onDisk { () throws(DiskError) in try files.exists(path) }
        if wasMade, !exists { throw StoreError(.corrupt, "\(path) is missing") }
        if !exists { try RowDatabase.make(path, in: system, fileTag: 0) }
        if !wasMade {
            try onDisk { () throws(DiskError) in
                // Its name is the message; its directory's sync also covers the database's name.
                _ = try files.open(made, create: true)
                try files.syncDirectory(directory)
            }
        }
        try RowDatabase.makeDurable(path, in: files)
    }

    package var applied: LogIndex { self.position.index }
    package var digest: StateDigest { self.position.digest }

    /// Applies the commands in order, as one commit. One result for each.
    package func apply(_ commands: [Command]) -> [Result<Outcome, RouteFailure>] {
        var position = self.position
        var outcomes: [Outcome] = []
        outcomes.reserveCapacity(commands.count)
        let rows: RowDatabase
        do throws(StoreError) {
            rows = try self.openRows()
            try rows.beginTransaction()
            var store = rows
            for command in commands {
                position.index = position.index.next
                position.time = position.time.successor(
                    wallMilliseconds: self.world.wallMilliseconds)
                outcomes.append(
                    try self.application.apply(
                        command, at: EntryPosition(index: position.index, time: position.time),
                        over: &store))
            }
            position.digest = rows.digest
            try position.write(to: &store)
        } catch {
            self.recover(from: error)
            return commands.map { _ in .failure(.notExecuted) }
        }
        do throws(StoreError) { try rows.commitTransaction() } catch {
            // The commit may have reached the disk although it was not reported.
            self.recover(from: error)
            return commands.map { _ in .failure(.outcomeUnknown) }
        }
        self.position = position
        if rows.walFrameCount > Self.walFrameCountMax { self.checkpoint() }
        return outcomes.map { .success($0) }
    }

    /// Answers a read over every command applied so far.
    package func answer(_ query: Query) throws(StoreError) -> QueryAnswer {
        do throws(StoreError) {
            return try self.application.state.answer(query, over: self.openRows())
        } catch {
            self.recover(from: error)
            throw error
        }
    }

    /// Copies the WAL into the database. A failure loses nothing: it is tried again.
    package func checkpoint() {
        do throws(StoreError) { _ = try self.openRows().checkpoint() } catch {
            self.recover(from: error)
        }
    }

    package func findDamage() throws(StoreError) -> [String] { try self.openRows().findDamage() }

    private func openRows() throws(StoreError) -> RowDatabase {
        if let fault { throw fault }
        if let rows { return rows }
        let rows = try RowDatabase(
            self.path, in: self.system, self.options, digest: self.position.digest)
        // What the rows say, not what memory says: a commit may have been kept after all.
        self.position = try AppliedPosition.read(from: rows)
        rows.digest = self.position.digest
        self.rows = rows
        return rows
    }

    private func recover(from error: StoreError) {
        self.application.forget()
        if self.system.hasFailedSync(self.path) { self.fault = error }
        guard let rows else { return }
        do throws(StoreError) {
            try rows.rollBack()
            rows.digest = self.position.digest
            if rows.isInTransaction { self.rows = nil }
        } catch { self.rows = nil }
    }
}

/// Why a command has no outcome.
package enum RouteFailure: Error, Sendable, Equatable {
    case notExecuted, outcomeUnknown
}
