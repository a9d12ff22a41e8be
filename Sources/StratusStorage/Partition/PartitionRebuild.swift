import StratusCoding
import StratusModel
import StratusRows
import StratusSQLite

/// Makes a partition's file anew beside the one in use, and replaces it: what SQLite has freed in
/// the old one, and what lies in its WAL, is then gone.
///
/// First the rows as they are now are spooled, as for a peer. They are installed as if a peer had
/// sent them. Then the entries that were applied meanwhile are applied to the new file, until it is
/// where the old one is. Only then it takes over, and only if both have the same digest. So what
/// was applied never goes back, and rows that have rotted are never copied.
final class PartitionRebuild<State: ReplicatedState>: RebuildWork {
    private enum Stage {
        case spooling(PartitionSpooling)
        case installing(PartitionInstallation)
        /// The new file is whole up to some entry.
        case following
        case done
    }

    private unowned let store: PartitionStore<State>
    private let entries: (LogIndex) throws(StoreError) -> [Entry]
    private var stage: Stage
    /// Where the spooled rows stand.
    private let start: AppliedPosition
    /// The new rows while they follow, and where they stand.
    private var open: PartitionRows?
    private var position: AppliedPosition
    private var mark: ErasureMark?
    private var application: CommandApplication<State>
    private var unsyncedCount = 0
    private var sliceCount = 0

    /// Everybody on the thread waits for a sync.
    private static var unsyncedCountMax: Int { 8 }
    /// After so many slices the rest is done in one go: the old file may grow as fast.
    private static var sliceCountMax: Int { 1_000 }

    /// - Parameters:
    ///   - mark: what the new file owes to erasures all the same.
    ///   - entries: reads applied entries from an index on, some of them.
    init(
        of store: PartitionStore<State>, _ spooling: PartitionSpooling,
        keeping mark: ErasureMark?,
        reading entries: @escaping (LogIndex) throws(StoreError) -> [Entry]
    ) {
        self.store = store
        self.entries = entries
        self.stage = .spooling(spooling)
        self.start = store.appliedPosition
        self.position = store.appliedPosition
        self.application = store.freshApplication
        self.mark = mark
    }

    var isUrgent: Bool {
        guard case .spooling(let spooling) = self.stage else { return false }
        return spooling.isUrgent
    }

    func advance() throws(StoreError) -> ByteCount? {
        do throws(StoreError) {
            switch self.stage {
            case .spooling(let spooling):
                if let size = try spooling.advance() { return size }
                self.stage = .installing(try self.installation(of: spooling.source()))
                return ByteCount(0)
            case .installing(let installation):
                if let size = try installation.advance() { return size }
                self.open = try self.store.openUnfinished(digest: self.position.digest)
                self.stage = .following
                return ByteCount(0)
            case .following:
                guard let open else { preconditionFailure("a rebuild has lost its file") }
                return try self.follow(open)
            case .done: preconditionFailure("a file was rebuilt already")
            }
        } catch {
            self.open = nil
            self.stage = .done
            throw error
        }
    }

    private func installation(of source: any SnapshotSource) throws(StoreError)
        -> PartitionInstallation
    {
        let identity = SnapshotIdentity(
            index: self.start.index, term: self.start.term,
            configuration: Configuration(voters: []), digest: self.start.digest)
        return try self.store.makeInstallation(
            identity, from: source, mark: { [mark = self.mark] _, _ in mark }
        ) { _ in }
    }

    /// One slice of the entries that the new file lacks, or the end.
    private func follow(_ open: PartitionRows) throws(StoreError) -> ByteCount? {
        self.sliceCount += 1
        guard !self.store.mustReset else {
            throw StoreError(.busy, "the rows in use have failed")
        }
        try self.store.commit()
        let target = self.store.committedPosition
        var size = 0
        while self.position.index < target.index {
            size += try self.apply(through: target.index, to: open)
            if self.sliceCount < Self.sliceCountMax { return ByteCount(size) }
        }
        // As the old file has it: nobody has to notice that there is another one.
        let rows = open.rows
        try target.write(to: rows)
        try rows.commit()
        guard self.position.index == target.index, rows.digest == target.digest else {
            throw StoreError(
                .corrupt,
                "at entry \(target.index) the new rows have the digest \(rows.digest), the old ones \(target.digest)"
            )
        }
        try self.sync(open.file)
        self.open = nil
        self.stage = .done
        try self.store.takeOver(at: target)
        return nil
    }

    /// - Returns: the size of the entries.
    private func apply(through end: LogIndex, to open: PartitionRows) throws(StoreError) -> Int {
        let entries = try self.entries(self.position.index.next).prefix { $0.index <= end }
        guard entries.first?.index == self.position.index.next else {
            throw StoreError(.io, "the log lacks entry \(self.position.index.next)")
        }
        let rows = open.rows
        rows.begin()
        for entry in entries {
            let outcome = try PartitionStore<State>.apply(
                entry, over: rows, by: &self.application, at: &self.position, marking: &self.mark,
                build: .build)
            guard case .applied = outcome else {
                throw StoreError(.busy, "entry \(entry.index) needs a newer build")
            }
            _ = self.application.state.takeBodyChanges()
        }
        try open.commit(at: &self.position)
        self.unsyncedCount += 1
        if self.unsyncedCount == Self.unsyncedCountMax { try self.sync(open.file) }
        return entries.reduce(0) { $0 + $1.payload.count }
    }

    private func sync(_ file: RowDatabase) throws(StoreError) {
        self.unsyncedCount = 0
        guard try file.checkpoint().isComplete else {
            throw StoreError(.busy, "somebody reads a file that is being made")
        }
    }
}
