import StratusCoding
package import StratusModel
package import StratusSQLite

/// The rows of one partition in one SQLite file, brought forward by a log that is the truth.
///
/// Owned by one executor. A COMMIT syncs nothing and a checkpoint syncs twice; between the two a
/// power cut may take what was committed, and the log brings it back. So the log may let go of
/// entries only through ``durable``.
///
/// Promises:
/// - `durable <= committed <= applied`; only ``reset()`` and a restart move `applied` back, to
///   `committed`.
/// - After any error nothing applied since the last commit may be answered: call ``reset()``,
///   replay.
/// - No file exists before the first entry is applied. ``close()`` gives back memory and
///   descriptors; the next use opens again.
/// - Equal rows give an equal ``digest`` on every replica.
package final class PartitionStore<State: ReplicatedState>: PartitionState {
    package struct Limits: Sendable, Equatable {
        /// The next transaction waits for a checkpoint when the WAL has grown past this.
        package var walSizeMax: ByteCount = .mebibytes(16)
        package var cacheSize: ByteCount = .mebibytes(2)
        /// The budget of which the store's cache is a share, instead of having `cacheSize`.
        package var caches: CacheBudget?
        /// While a snapshot is spooled the WAL may grow to so many times `walSizeMax`. The
        /// checkpoint after it copies all of that, and commits wait for it: so it is no larger.
        static var spoolingFactor: Int { 4 }
        /// Rows of a snapshot are put together up to this size: what is spooled or installed in one
        /// go.
        package var snapshotFrameSize: ByteCount = .kibibytes(256)
        /// Entries are applied until so many rows were written since the last commit: one batch of
        /// records writes hundreds.
        package var writeCountMax = Int.max
        /// Newer entries stop the partition. Tests and the simulator run older builds by it.
        package var build = FeatureLevel.build
        package var bugs = PlantedBugs()
        package init() {}
    }

    package let group: GroupID
    /// One for each file: what a checkpointer of an earlier file reports is never taken for this
    /// one.
    var gate = CommitGate()
    let files: PartitionFiles
    let system: FileSystem
    let limits: Limits
    var application: CommandApplication<State>
    /// The number of the file that counts; nil until the first entry.
    var number: Int?
    /// nil while closed.
    var rows: RowDatabase?
    private var cache: CacheBudget.Share?
    /// The last snapshot, as long as somebody wants it.
    weak var spooling: PartitionSpooling?
    var position: AppliedPosition
    var committed: AppliedPosition
    package internal(set) var durable: LogIndex
    package internal(set) var mustReset = false
    package private(set) var newer: NewerEntry?
    package internal(set) var erasure: ErasureMark?
    private var writeCountAtCommit = 0

    /// Finds what is on disk in `parent`. Opens a database only if there is one.
    package init(
        _ state: State, group: GroupID, in parent: DiskPath, of system: FileSystem,
        limits: Limits = Limits()
    ) throws(StoreError) {
        let files = PartitionFiles(group, in: parent)
        self.group = group
        self.files = files
        self.system = system
        self.limits = limits
        self.application = CommandApplication(state, bugs: limits.bugs)
        self.position = .start
        self.committed = .start
        self.durable = .zero
        self.number = try onDisk { () throws(DiskError) in try files.settle(in: system.files) }
        if let number {
            // From here on everything committed is also durable: the WAL was just written and
            // synced.
            if !limits.bugs.contains(.walNotWrittenAgain) {
                try RowDatabase.makeDurable(files.rows(number), in: system.files)
            }
            try self.open()
            self.durable = self.position.index
        }
    }

    // MARK: Where it stands

    package var applied: LogIndex { self.position.index }
    package var digest: StateDigest { self.rows?.digest ?? self.position.digest }
    /// Index, term, time and configuration of the last entry applied.
    package var appliedPosition: AppliedPosition {
        var position = self.position
        position.digest = self.digest
        return position
    }
    /// The position of the rows that a restart of the process finds.
    var committedPosition: AppliedPosition { self.committed }
    /// Row writes since the last commit.
    package var uncommittedWriteCount: Int {
        (self.rows?.writeCount ?? 0) - self.writeCountAtCommit
    }
    package var walSize: ByteCount {
        ByteCount((self.rows?.walFrameCount ?? 0) * (Connection.pageSize + 24))
    }
    /// The unused part of the store's file. New data goes there before the file grows.
    package var spareSize: ByteCount {
        get throws(StoreError) {
            guard self.number != nil else { return ByteCount(0) }
            return ByteCount(try self.openRows().sparePageCount() * Connection.pageSize)
        }
    }
    package var snapshotSize: ByteCount {
        get throws(StoreError) {
            guard self.number != nil else { return ByteCount(0) }
            let rows = try self.openRows()
            let count = try rows.pageCount() - rows.sparePageCount()
            return ByteCount(max(0, count) * Connection.pageSize)
        }
    }
    package var isOpen: Bool { self.rows != nil }
    /// Moves when an entry has written a row of mail, and never comes back to where it was.
    package private(set) var mailCount = 0
    package private(set) var eventCount = 0
    /// Not yet taken by ``takeBodyChanges()``.
    var bodyChanges = BodyChanges()
    /// True once a sync has failed. The content of the disk is then unknown, and only a restart
    /// mends it.
    package var hasFailedSync: Bool { self.system.hasFailedSync(self.path) }
    /// How many commands are remembered for their repetition.
    package var rememberedCount: Int { self.application.rememberedCount }

    // MARK: Applying

    package func reading(of command: Command) -> CommandReading {
        self.application.state.reading(of: command)
    }

    package func holdings(in command: Command) -> [CopyHolding]? {
        self.application.state.holdings(in: command)
    }

    package func apply(_ entries: ArraySlice<Entry>, into outcomes: inout [Outcome])
        throws(StoreError)
    {
        guard !entries.isEmpty else { return }
        precondition(!self.mustReset, "an error was not followed by reset()")
        self.newer = nil
        for (offset, entry) in entries.enumerated() {
            precondition(
                entry.index.raw == self.position.index.raw + UInt64(offset) + 1,
                "entry \(entry.index) after \(self.position.index)")
        }
        if self.number == nil, entries.allSatisfy({ $0.kind == .noop }) {
            // What leaders commit to learn what is committed makes no file: most partitions of a
            // young cluster never see anything else.
            for entry in entries {
                self.position.advance(past: entry)
                outcomes.append(Outcome(.none))
            }
            return
        }
        do throws(StoreError) {
            let rows = try self.beginTransaction()
            let (mailCount, eventCount) = (rows.mailCount, rows.eventCount)
            for entry in entries {
                guard let outcome = try self.apply(entry, over: rows) else { break }
                outcomes.append(outcome)
                for change in self.application.state.takeBodyChanges() {
                    self.bodyChanges.append(change)
                }
                if self.uncommittedWriteCount >= self.limits.writeCountMax { break }
            }
            self.mailCount += rows.mailCount - mailCount
            self.eventCount += rows.eventCount - eventCount
        } catch {
            self.mustReset = true
            throw error
        }
    }

    /// - Returns: nil when only a newer build can apply the entry. Then nothing was done.
    private func apply(_ entry: Entry, over rows: RowDatabase) throws(StoreError) -> Outcome? {
        switch try Self.apply(
            entry, over: rows, by: &self.application, at: &self.position, marking: &self.erasure,
            build: self.limits.build)
        {
        case .applied(let outcome): return outcome
        case .newer(let newer):
            self.newer = newer
            return nil
        }
    }

    package func commit() throws(StoreError) {
        precondition(!self.mustReset, "an error was not followed by reset()")
        guard let rows, rows.isInTransaction else {
            if self.number == nil { self.committed = self.position }
            return
        }
        do throws(StoreError) {
            // A row that was there after all is taken out of the digest when it is written over.
            try rows.writePending()
            self.position.digest = rows.digest
            var store = rows
            try self.position.write(to: &store)
            try self.gate.commit(through: self.position.index) { () throws(StoreError) in
                try rows.commitTransaction()
            }
        } catch {
            self.mustReset = true
            throw error
        }
        self.committed = self.position
        self.writeCountAtCommit = rows.writeCount
        if self.limits.bugs.contains(.durableAtCommit) { self.durable = self.committed.index }
    }

    package func reset() throws(StoreError) -> LogIndex {
        self.application.forget()
        // What was told may not have lasted, and comes again.
        self.bodyChanges.append(.unlisted)
        self.position = self.committed
        if let rows {
            do throws(StoreError) {
                try rows.rollBack()
                rows.digest = self.committed.digest
                self.erasure = try ErasureMark.read(from: rows)
                self.writeCountAtCommit = rows.writeCount
            } catch { self.rows = nil }
        }
        if self.system.hasFailedSync(self.path) {
            throw StoreError(.io, "a sync failed: what is on disk is not known")
        }
        if self.rows == nil, self.number != nil {
            try self.open()
            // A failed COMMIT may turn out to have been kept.
            self.committed = self.position
        }
        self.mustReset = false
        return self.position.index
    }

    package func answer(_ query: Query) throws(StoreError) -> QueryAnswer {
        try self.answer(query, within: nil)
    }

    package func answer(_ query: Query, within time: ReadTime?) throws(StoreError) -> QueryAnswer {
        guard self.number != nil else {
            return try self.application.state.answer(query, within: time, over: NoRows())
        }
        let rows = try self.openRows()
        return try rows.reading { () throws(StoreError) in
            try self.application.state.answer(query, within: time, over: rows)
        }
    }

    // MARK: Bodies

    package func takeBodyChanges() -> [BodyChange] { self.bodyChanges.take() }

    package func bodies(from body: BodyID, limit: Int) throws(StoreError) -> [BodyManifest] {
        guard self.number != nil else { return [] }
        return try self.openRows().bodies(from: body, limit: limit)
    }

    // MARK: Durability

    /// Commits, copies the whole WAL into the database and syncs both, on this thread.
    /// Returns whether every frame was copied: a reader elsewhere may hold some back.
    @discardableResult
    package func checkpoint() throws(StoreError) -> Bool {
        if self.number == nil, self.position.index > .zero {
            do throws(StoreError) { _ = try self.beginTransaction() } catch {
                // The file may be there and know nothing of what was applied without it.
                self.mustReset = true
                throw error
            }
        }
        try self.commit()
        guard let rows else { return true }
        let index = try self.gate.checkpoint { () throws(StoreError) in
            try rows.checkpoint().isComplete
        }
        guard let index else { return false }
        self.noteDurable(through: index)
        return true
    }

    /// A checkpointer for another thread; tell its result to ``noteDurable(through:)``. nil while
    /// there is no file.
    package func makeCheckpointer() throws(StoreError) -> PartitionCheckpointer? {
        guard let number else { return nil }
        return try PartitionCheckpointer(
            self.files.rows(number), in: self.system, fileTag: self.files.tag, self.gate)
    }

    /// Reads the file back, to be run where checkpoints are. nil while there is no file.
    package func makeScrub() throws(StoreError) -> PartitionScrub? {
        guard let number else { return nil }
        return try PartitionScrub(self.files, number: number, in: self.system, self.gate)
    }

    /// Whether the checkpointer copies the file in use: a snapshot that is installed brings
    /// another.
    package func isCurrent(_ checkpointer: PartitionCheckpointer) -> Bool {
        checkpointer.gate === self.gate
    }

    package func noteDurable(through index: LogIndex) {
        precondition(index <= self.committed.index, "durable ahead of the last commit")
        self.durable = max(self.durable, index)
    }

    /// Commits, checkpoints and gives back memory and descriptors. The next use opens again.
    package func close() throws(StoreError) {
        guard self.rows != nil else { return }
        try self.checkpoint()
        self.application.forget()
        self.rows = nil
        self.cache = nil
    }

    /// Computes the digest anew from every row, for the scrub: any difference from ``digest`` is
    /// damage or divergence. Also what SQLite itself finds wrong.
    package func verify() throws(StoreError) -> [String] {
        guard self.number != nil else { return [] }
        let rows = try self.openRows()
        var faults = try rows.findDamage()
        let digest = try rows.computeDigest()
        if digest != rows.digest {
            faults.append("the rows' digest is \(digest), stored is \(rows.digest)")
        }
        return faults
    }

    /// Changes a row as a write that never reached the disk may: the row is another one, and
    /// neither a checksum nor the digest shows it. For simulations and tests.
    package func rot(_ table: Table, _ key: Bytes, to row: Bytes) throws(StoreError) {
        try self.commit()
        let rows = try self.openRows()
        let digest = rows.digest
        try rows.beginTransaction()
        try rows.put(table, key.span.bytes, row.span.bytes)
        try rows.commitTransaction()
        rows.digest = digest
        self.application.forget()
    }

    #if STRATUS_PLANTED
        /// Plants a bug: the position is kept as if in another file than the rows, one entry
        /// behind, and nobody remembers what commands answered.
        package func plantRewind() throws(StoreError) {
            guard let rows, self.position.index > .zero else { return }
            let digest = rows.digest
            let all = Bytes()
            var keys: [Bytes] = []
            try rows.scan(.request, from: all.span.bytes, to: all.span.bytes, descending: false) {
                key, _ in
                keys.append(Bytes(copying: key))
                return .next
            }
            try rows.beginTransaction()
            for key in keys { try rows.remove(.request, key.span.bytes) }
            try rows.commitTransaction()
            rows.digest = digest
            self.application.forget()
            self.position.index = self.position.index.previous
            self.committed = self.position
            self.durable = min(self.durable, self.position.index)
        }
    #endif

    // MARK: Opening

    var path: DiskPath { self.files.rows(self.number ?? 1) }

    private func beginTransaction() throws(StoreError) -> RowDatabase {
        if self.number == nil {
            // Entries that needed no file were applied in memory only: the file begins where they
            // end.
            let position = self.position
            try self.makeRows()
            try self.open()
            self.position = position
            self.committed = position
        }
        var rows = try self.openRows()
        if rows.isInTransaction { return rows }
        if self.walSize > self.limits.walSizeMax, !self.mayGrowFurther() {
            guard try self.checkpoint() else {
                throw StoreError(.busy, "a reader holds back the checkpoint of a full WAL")
            }
            rows = try self.openRows()
        }
        try rows.beginTransaction()
        return rows
    }

    /// Whether the WAL goes on growing because a snapshot holds the rows. It is told to hurry;
    /// where that does not help, what is left of it is spooled here and now.
    private func mayGrowFurther() -> Bool {
        guard let spooling, spooling.holdsView else { return false }
        spooling.isUrgent = true
        if self.walSize.raw <= self.limits.walSizeMax.raw * Limits.spoolingFactor { return true }
        spooling.hurry()
        return false
    }

    func makeDirectory() throws(StoreError) {
        try onDisk { () throws(DiskError) in
            let files = self.system.files
            try files.makeDirectory(self.files.directory)
            try files.syncDirectories(upFrom: self.files.directory.parent)
        }
    }

    private func makeRows() throws(StoreError) {
        try self.makeDirectory()
        try RowDatabase.make(self.files.rows(1), in: self.system, fileTag: self.files.tag)
        self.number = 1
    }

    func openRows() throws(StoreError) -> RowDatabase {
        if let rows { return rows }
        try self.open()
        return self.rows!
    }

    func open() throws(StoreError) {
        if self.cache == nil { self.cache = self.limits.caches?.share() }
        let rows = try RowDatabase(
            self.path, in: self.system,
            Connection.Options(
                synchronous: .normal, fileTag: self.files.tag,
                cacheSize: self.cache?.size ?? self.limits.cacheSize))
        self.position = try AppliedPosition.read(from: rows)
        self.committed = self.position
        self.erasure = try ErasureMark.read(from: rows)
        rows.digest = self.position.digest
        self.writeCountAtCommit = 0
        self.rows = rows
        // So that a checkpoint by another connection may already count what is here.
        try self.gate.commit(through: self.committed.index) { () throws(StoreError) in }
    }
}

/// Checkpoints one partition's database from another thread than its owner's.
///
/// Owned by that thread: not `Sendable`.
package final class PartitionCheckpointer {
    private let rows: RowDatabase
    let gate: CommitGate

    init(_ path: DiskPath, in system: FileSystem, fileTag: UInt32, _ gate: CommitGate)
        throws(StoreError)
    {
        self.rows = try RowDatabase(
            path, in: system,
            Connection.Options(
                synchronous: .normal, fileTag: fileTag, cacheSize: .kibibytes(256)))
        self.gate = gate
        // A connection that has never read does not know the database is in WAL mode and copies
        // nothing.
        _ = try AppliedPosition.read(from: self.rows)
    }

    /// Returns the index that is durable now, or nil if a reader held frames back.
    package func run() throws(StoreError) -> LogIndex? {
        try self.gate.checkpoint { () throws(StoreError) in try self.rows.checkpoint().isComplete }
    }
}

/// The rows of a partition that nobody has written to.
struct NoRows: RowReader {
    func row(_ table: Table, _ key: borrowing RawSpan) -> Bytes? { nil }
    func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) {}
}
