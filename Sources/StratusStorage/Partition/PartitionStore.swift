import StratusCoding
package import StratusModel
package import StratusRows
package import StratusSQLite

/// The rows of one partition in one SQLite file, brought forward by a log that is the truth.
///
/// Owned by one executor. *Applied* entries are published: they may be answered. Their rows stay in
/// memory, and a flush makes those of many entries one COMMIT. A COMMIT syncs nothing and a
/// checkpoint syncs twice. A process that ends takes what is not *committed* with it, and a power
/// cut may take what is not *durable*; the log brings both back. So the log may let go of entries
/// only through ``durable``, and nothing that leaves a replica may depend on what is committed.
///
/// Promises:
/// - `durable <= committed <= applied`; only ``reset()`` and a restart move `applied` back, to
///   `committed`.
/// - After an error while entries are applied nothing of that batch may be answered: call
///   ``reset()``, replay. After an error of a flush the rows stay in memory, and the next flush
///   writes them.
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
        /// The rows that a check reads in one go.
        package var checkSize: ByteCount = .kibibytes(64)
        /// Entries are applied until so many rows were written since the last publish: one batch of
        /// records writes hundreds.
        package var writeCountMax = Int.max
        /// When rows go from memory to the file.
        package var flush = FlushRules()
        /// Shared by the partitions of a node; nil: nobody else flushes.
        package var turns: FlushTurns?
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
    /// Nil while closed.
    var open: PartitionRows?
    private var cache: CacheBudget.Share?
    /// The last snapshot, as long as somebody wants it.
    weak var spooling: PartitionSpooling?
    var position: AppliedPosition
    var committed: AppliedPosition
    var recent: RecentWork
    /// The last entry that was ever applied here. Below it entries are applied again.
    var reached = LogIndex.zero
    package internal(set) var durable: LogIndex
    package internal(set) var mustReset = false
    package internal(set) var wrongRows: WrongRows?
    package private(set) var newer: NewerEntry?
    package internal(set) var erasure: ErasureMark?
    private var writeCountAtPublish = 0

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
        self.recent = RecentWork(limits.turns?.share())
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
            try self.openFile()
            self.durable = self.position.index
            self.wrongRows = try onDisk { () throws(DiskError) in
                try files.mark(of: number, in: system.files)
            }
        }
    }

    // MARK: Where it stands

    package var applied: LogIndex { self.position.index }
    package var digest: StateDigest { self.open?.rows.digest ?? self.position.digest }
    /// Index, term, time and configuration of the last entry applied.
    package var appliedPosition: AppliedPosition {
        var position = self.position
        position.digest = self.digest
        return position
    }
    /// The position of the rows that a restart of the process finds.
    var committedPosition: AppliedPosition { self.committed }
    /// Row writes since the last publish.
    package var unpublishedWriteCount: Int {
        (self.open?.rows.writeCount ?? 0) - self.writeCountAtPublish
    }
    /// Rows were lost from memory, and the entries that made them are being applied again: until
    /// they are, nobody who was told of them may look.
    package var isReplaying: Bool { self.position.index < self.reached }
    package var walSize: ByteCount {
        ByteCount((self.open?.file.walFrameCount ?? 0) * (Connection.pageSize + 24))
    }
    /// The unused part of the store's file. New data goes there before the file grows.
    package var spareSize: ByteCount {
        get throws(StoreError) {
            guard self.number != nil else { return ByteCount(0) }
            return ByteCount(try self.openRows().file.sparePageCount() * Connection.pageSize)
        }
    }
    package var snapshotSize: ByteCount {
        get throws(StoreError) {
            guard self.number != nil else { return ByteCount(0) }
            let file = try self.openRows().file
            let count = try file.pageCount() - file.sparePageCount()
            return ByteCount(max(0, count) * Connection.pageSize)
        }
    }
    package var isOpen: Bool { self.open != nil }
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
            let rows = try self.beginBatch()
            let (mailCount, eventCount) = (rows.mailCount, rows.eventCount)
            for entry in entries {
                guard let outcome = try self.apply(entry, over: rows) else { break }
                outcomes.append(outcome)
                for change in self.application.state.takeBodyChanges() {
                    self.bodyChanges.append(change)
                }
                if self.unpublishedWriteCount >= self.limits.writeCountMax { break }
            }
            self.mailCount += rows.mailCount - mailCount
            self.eventCount += rows.eventCount - eventCount
        } catch {
            self.mustReset = true
            throw error
        }
    }

    /// - Returns: nil when only a newer build can apply the entry. Then nothing was done.
    private func apply(_ entry: Entry, over rows: Rows) throws(StoreError) -> Outcome? {
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

    package func publish() throws(StoreError) {
        precondition(!self.mustReset, "an error was not followed by reset()")
        guard let open, open.rows.isInBatch else {
            if self.number == nil { self.committed = self.position }
            return
        }
        do throws(StoreError) { try open.rows.publish() } catch {
            self.mustReset = true
            throw error
        }
        self.reached = max(self.reached, self.position.index)
        self.writeCountAtPublish = open.rows.writeCount
        self.recent.isWaiting = true
        self.recent.share?.note(open.rows.freshCount, open.rows.freshSize)
    }

    package func reset() throws(StoreError) -> LogIndex {
        self.application.forget()
        // What was told may not have lasted, and comes again.
        self.bodyChanges.append(.unlisted)
        self.position = self.committed
        self.recent.forget()
        if let open {
            do throws(StoreError) {
                try open.rows.discard()
                self.erasure = try ErasureMark.read(from: open.rows)
                self.writeCountAtPublish = open.rows.writeCount
            } catch { self.open = nil }
        }
        if self.system.hasFailedSync(self.path) {
            throw StoreError(.io, "a sync failed: what is on disk is not known")
        }
        if self.open == nil, self.number != nil {
            try self.openFile()
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
            return try self.application.state.answer(query, within: time, over: Rows().view)
        }
        let open = try self.openRows()
        return try open.file.reading { () throws(StoreError) in
            try self.application.state.answer(query, within: time, over: open.rows.view)
        }
    }

    // MARK: Bodies

    package func takeBodyChanges() -> [BodyChange] { self.bodyChanges.take() }

    package func bodies(from body: BodyID, limit: Int) throws(StoreError) -> [BodyManifest] {
        guard self.number != nil else { return [] }
        guard !self.isReplaying else { throw StoreError(.busy, "entries are applied again") }
        return try self.openRows().rows.view.bodies(from: body, limit: limit)
    }

    // MARK: Durability

    /// Commits, copies the whole WAL into the database and syncs both, on this thread.
    /// Returns whether every frame was copied: a reader elsewhere may hold some back.
    @discardableResult
    package func checkpoint() throws(StoreError) -> Bool {
        if self.number == nil, self.position.index > .zero {
            do throws(StoreError) { _ = try self.beginBatch() } catch {
                // The file may be there and know nothing of what was applied without it.
                self.mustReset = true
                throw error
            }
        }
        try self.commit()
        return try self.copyWAL()
    }

    func copyWAL() throws(StoreError) -> Bool {
        guard let open else { return true }
        let index = try self.gate.checkpoint { () throws(StoreError) in
            try open.file.checkpoint().isComplete
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
        precondition(
            index <= self.committed.index || self.limits.bugs.contains(.durableAtFlushBegin),
            "durable ahead of the last commit")
        self.durable = max(self.durable, index)
    }

    /// Commits, checkpoints and gives back memory and descriptors. The next use opens again.
    package func close() throws(StoreError) {
        guard self.open != nil else { return }
        try self.checkpoint()
        self.application.forget()
        self.position.digest = self.digest
        self.open = nil
        self.cache = nil
    }

    /// Computes the digest anew from every row, for the scrub: any difference from ``digest`` is
    /// damage or divergence. Also what SQLite itself finds wrong.
    package func verify() throws(StoreError) -> [String] {
        guard self.number != nil else { return [] }
        let open = try self.openRows()
        try self.commit()
        var faults = try open.file.findDamage()
        let digest = try open.rows.computeDigest()
        if digest != open.rows.digest {
            faults.append("the rows' digest is \(digest), stored is \(open.rows.digest)")
        }
        return faults
    }

    /// Changes a row as a write that never reached the disk may: the row is another one, and
    /// neither a checksum nor the digest shows it. For simulations and tests.
    package func rot(_ table: Table, _ key: Bytes, to row: Bytes) throws(StoreError) {
        try self.commit()
        let open = try self.openRows()
        try open.rows.put(table, key, row)
        try open.rows.commit()
        self.open = self.rows(of: open.file, digest: self.committed.digest)
        self.application.forget()
    }

    #if STRATUS_PLANTED
        /// Plants a bug: the position is kept as if in another file than the rows, one entry
        /// behind, and nobody remembers what commands answered.
        package func plantRewind() throws(StoreError) {
            try self.commit()
            guard let open, self.position.index > .zero else { return }
            let rows = open.rows
            let digest = rows.digest
            let all = Bytes()
            var keys: [Bytes] = []
            try rows.scan(.request, from: all.span.bytes, to: all.span.bytes, descending: false) {
                key, _ in
                keys.append(Bytes(copying: key))
                return .next
            }
            for key in keys { try rows.remove(.request, key) }
            try rows.commit()
            self.open = self.rows(of: open.file, digest: digest)
            self.application.forget()
            self.position.index = self.position.index.previous
            self.committed = self.position
            self.durable = min(self.durable, self.position.index)
        }
    #endif

    // MARK: Opening

    var path: DiskPath { self.files.rows(self.number ?? 1) }

    private func beginBatch() throws(StoreError) -> Rows {
        if self.number == nil {
            // Entries that needed no file were applied in memory only: the file begins where they
            // end.
            let position = self.position
            try self.makeRows()
            try self.openFile()
            self.position = position
            self.committed = position
            self.recent.isWaiting = true
        }
        let rows = try self.openRows().rows
        rows.begin()
        return rows
    }

    /// Whether the WAL goes on growing because a snapshot holds the rows. It is told to hurry;
    /// where that does not help, what is left of it is spooled here and now.
    func mayGrowFurther() -> Bool {
        guard let spooling, spooling.holdsView else { return false }
        spooling.isUrgent = true
        if self.walSize.raw <= self.limits.walSizeMax.raw * Limits.spoolingFactor { return true }
        spooling.hurry()
        return false
    }

    private func rows(of file: RowDatabase, digest: StateDigest) -> PartitionRows {
        self.writeCountAtPublish = 0
        return PartitionRows(file, digest: digest, bugs: self.limits.bugs)
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

    func openRows() throws(StoreError) -> PartitionRows {
        if let open { return open }
        try self.openFile()
        return self.open!
    }

    func openFile() throws(StoreError) {
        if self.cache == nil { self.cache = self.limits.caches?.share() }
        let file = try RowDatabase(
            self.path, in: self.system,
            Connection.Options(
                synchronous: .normal, fileTag: self.files.tag,
                cacheSize: self.cache?.size ?? self.limits.cacheSize))
        let position = try AppliedPosition.read(from: Rows(over: file))
        let open = self.rows(of: file, digest: position.digest)
        self.position = position
        self.committed = position
        self.erasure = try ErasureMark.read(from: open.rows)
        self.open = open
        // So that a checkpoint by another connection may already count what is here.
        try self.gate.commit(through: self.committed.index) { () throws(StoreError) in }
    }
}

/// Checkpoints one partition's database from another thread than its owner's.
///
/// Owned by that thread: not `Sendable`.
package final class PartitionCheckpointer {
    private let file: RowDatabase
    let gate: CommitGate

    init(_ path: DiskPath, in system: FileSystem, fileTag: UInt32, _ gate: CommitGate)
        throws(StoreError)
    {
        self.file = try RowDatabase(
            path, in: system,
            Connection.Options(
                synchronous: .normal, fileTag: fileTag, cacheSize: .kibibytes(256)))
        self.gate = gate
        // A connection that has never read does not know the database is in WAL mode and copies
        // nothing.
        _ = try AppliedPosition.read(from: Rows(over: self.file))
    }

    /// Returns the index that is durable now, or nil if a reader held frames back.
    package func run() throws(StoreError) -> LogIndex? {
        try self.gate.checkpoint { () throws(StoreError) in try self.file.checkpoint().isComplete }
    }
}
