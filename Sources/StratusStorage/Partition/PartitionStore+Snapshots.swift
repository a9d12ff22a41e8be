import StratusCoding
package import StratusModel
import StratusRows
import StratusSQLite

/// Snapshots of a partition, and files that take the place of the one in use.
extension PartitionStore {
    // MARK: Snapshots

    /// Whether a snapshot holds a view of the rows: no checkpoint is complete before it is spooled.
    package var isSpooling: Bool { self.spooling?.holdsView ?? false }

    package func snapshot() throws(StoreError) -> any SnapshotSpooling {
        try self.makeSpooling(into: self.files.spool)
    }

    package func check() throws(StoreError) -> any ViewWork {
        // A snapshot adds the digest up as well.
        guard !self.isSpooling else { throw StoreError(.busy, "a snapshot is made of the rows") }
        return try self.makeSpooling(into: nil)
    }

    private func makeSpooling(into path: DiskPath?) throws(StoreError) -> PartitionSpooling {
        try self.commit()
        self.spooling?.giveUp()
        let spooling = try PartitionSpooling(
            self.makeView(), at: self.appliedPosition, into: path, in: self.system.files,
            frameSize: (path == nil ? self.limits.checkSize : self.limits.snapshotFrameSize).raw,
            bugs: self.limits.bugs)
        self.spooling = spooling
        return spooling
    }

    /// The rows as they are now, whatever is committed later. Nil while there is no file.
    private func makeView() throws(StoreError) -> RowDatabase? {
        guard self.number != nil else { return nil }
        if self.limits.bugs.contains(.snapshotOfManyStates) { return try self.openRows().file }
        let view = try RowDatabase(
            self.path, in: self.system,
            Connection.Options(
                synchronous: .normal, fileTag: self.files.tag, cacheSize: .kibibytes(256)))
        try view.begin()
        // The first read is what holds the rows.
        _ = try AppliedPosition.read(from: Rows(over: view))
        return view
    }

    package func makeSpool() throws(StoreError) -> any SnapshotSpool {
        try FileSpool(self.files.arrivals, in: self.system.files)
    }

    package func install(_ identity: SnapshotIdentity, from source: any SnapshotSource)
        throws(StoreError) -> any SnapshotWork
    {
        let state = self.application.state
        return try self.makeInstallation(
            identity, from: source,
            mark: { (rows, position) throws(StoreError) in
                // What jobs have still to remove will be in freed pages here too.
                guard let left = try state.removing(over: rows.view) else { return nil }
                return ErasureMark(
                    index: position.index, sinceMilliseconds: position.time.milliseconds,
                    horizon: left.upperBound,
                    outcomesThrough: try RequestTable.deadline(isLast: true, in: rows.view) ?? 0)
            }
        ) { (position) throws(StoreError) in try self.takeOver(at: position) }
    }

    /// - Parameter mark: what the new rows owe to erasures.
    func makeInstallation(
        _ identity: SnapshotIdentity, from source: any SnapshotSource,
        mark: @escaping (Rows, AppliedPosition) throws(StoreError) -> ErasureMark?,
        _ end: @escaping (AppliedPosition) throws(StoreError) -> Void
    ) throws(StoreError) -> PartitionInstallation {
        try self.makeDirectory()
        return PartitionInstallation(
            self.files.unfinished, identity, from: source, in: self.system,
            fileTag: self.files.tag, bugs: self.limits.bugs, mark: mark, takeOver: end)
    }

    /// Puts the database that was made beside the one in use in its place.
    func takeOver(at position: AppliedPosition) throws(StoreError) {
        let next = (self.number ?? 0) + 1
        let path = self.files.rows(next)
        try onDisk { () throws(DiskError) in
            let files = self.system.files
            let wal = DiskPath(self.files.unfinished.raw + "-wal")
            if try files.exists(wal) { try files.remove(wal) }
            try files.rename(self.files.unfinished, to: path)
        }
        do throws(DiskError) { try self.system.files.syncDirectory(path.parent) } catch {
            // The new file may count after the next start, or may not: nothing that is done to the
            // old one now is sure to last. As final as a failed sync, and for the same reason.
            self.system.noteFailedSync(path)
            throw StoreError(error)
        }
        // Renamed and synced: from here on the new rows are the partition.
        let old = self.number
        self.spooling?.giveUp()
        self.open = nil
        self.recent.forget()
        self.application.forget()
        self.bodyChanges.append(.unlisted)
        self.number = next
        self.gate = CommitGate()
        self.wrongRows = nil
        self.position = position
        self.committed = position
        self.reached = position.index
        self.durable = position.index
        self.mustReset = false
        // It is installed whether this works or not: the next use opens it again.
        try? self.openFile()
        if let old {
            try? RowDatabase.discard(self.files.rows(old), in: self.system.files)
            try? self.files.removeMarks(of: old, in: self.system.files)
        }
        // What was set aside is not needed any more.
        try? onDisk { () throws(DiskError) in try self.files.discardAside(in: self.system.files) }
    }

    package func mark(_ wrong: WrongRows) throws(StoreError) {
        self.wrongRows = wrong
        guard let number else { return }
        try onDisk { () throws(DiskError) in
            try self.files.mark(number, as: wrong, in: self.system.files)
        }
    }

    // MARK: Erasures

    package func erasureStanding() throws(StoreError) -> ErasureStanding {
        guard let erasure, self.number != nil else { return .over }
        let rows = try self.openRows().rows.view
        if let left = try self.application.state.removing(over: rows),
            left.lowerBound <= erasure.horizon
        {
            return .removing
        }
        let first = try RequestTable.deadline(isLast: false, in: rows)
        guard let first, first <= erasure.outcomesThrough else { return .over }
        return .remembering(through: erasure.outcomesThrough)
    }

    package func rebuild(reading entries: @escaping (LogIndex) throws(StoreError) -> [Entry])
        throws(StoreError) -> any RebuildWork
    {
        guard self.number != nil, !self.isSpooling else {
            throw StoreError(.busy, "there is no file, or a snapshot is made of it")
        }
        // Where something is still to be removed, the new file is not the last.
        var mark = try self.erasureStanding() == .over ? nil : self.erasure
        let spooling = try self.makeSpooling(into: self.files.spool)
        mark?.sinceMilliseconds = self.position.time.milliseconds
        return PartitionRebuild(of: self, spooling, keeping: mark, reading: entries)
    }

    /// Knows nothing of the rows in use.
    var freshApplication: CommandApplication<State> {
        var application = self.application
        application.forget()
        return application
    }

    /// The file at the place where rows are made, which is whole.
    ///
    /// - Parameter digest: of the rows there.
    func openUnfinished(digest: StateDigest) throws(StoreError) -> PartitionRows {
        let file = try RowDatabase(
            self.files.unfinished, in: self.system,
            Connection.Options(synchronous: .normal, fileTag: self.files.tag))
        return PartitionRows(file, digest: digest)
    }

    enum Applied {
        case applied(Outcome)
        /// Nothing was done.
        case newer(NewerEntry)
    }

    /// Applies an entry to rows, and moves their position behind it.
    ///
    /// - Parameter mark: what the rows owe to erasures; written with them.
    static func apply(
        _ entry: Entry, over rows: Rows, by application: inout CommandApplication<State>,
        at position: inout AppliedPosition, marking mark: inout ErasureMark?, build: FeatureLevel
    ) throws(StoreError) -> Applied {
        var outcome = Outcome(.none)
        switch entry.kind {
        case .command, .mail:
            let command = try? Command(decoding: entry.payload)
            let reading =
                command.map { application.state.reading(of: $0) }
                ?? Command.readingOfEnvelope(entry.payload)
            if case .newer(let what) = reading.asSeen(by: build) {
                return .newer(NewerEntry(index: entry.index, what: what, build: build))
            }
            if let command, (command.kind == .mail) == (entry.kind == .mail) {
                outcome = try application.apply(
                    command, at: EntryPosition(index: entry.index, time: entry.time), over: rows)
            } else {
                outcome = Outcome(.unreadable)
            }
        case .configuration: position.configuration = entry.payload
        case .noop: break
        }
        position.advance(past: entry)
        let (hasErased, hasForgotten) = (
            application.state.takeErased(), application.takeForgotten()
        )
        guard hasErased || hasForgotten else { return .applied(outcome) }
        var made = ErasureMark(
            index: entry.index,
            sinceMilliseconds: mark?.sinceMilliseconds ?? position.time.milliseconds,
            horizon: mark?.horizon ?? 0, outcomesThrough: mark?.outcomesThrough ?? 0)
        if hasErased {
            let left = try application.state.removing(over: rows.view)
            let last = try RequestTable.deadline(isLast: true, in: rows.view)
            made.horizon = max(left?.upperBound ?? 0, made.horizon)
            made.outcomesThrough = max(last ?? 0, made.outcomesThrough)
        } else if try RequestTable.deadline(isLast: false, in: rows.view) ?? .max
            > made.outcomesThrough
        {
            made.outcomesThrough = 0
        }
        try made.write(to: rows)
        mark = made
        return .applied(outcome)
    }
}

extension AppliedPosition {
    mutating func advance(past entry: Entry) {
        self.index = entry.index
        self.term = entry.term
        self.time = max(self.time, entry.time)
    }
}
