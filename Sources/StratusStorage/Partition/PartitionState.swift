package import StratusModel

/// The replicated state of one partition on disk: rows that a log of entries brings forward.
///
/// Owned by one executor. `durable <= applied`, and neither goes back except by ``reset()``. What is
/// applied is first in memory, and reaches the file by ``flushIfDue(at:)``. The log brings back what
/// a process takes with it that ends before.
package protocol PartitionState: AnyObject {
    /// The index that reads see.
    var applied: LogIndex { get }
    /// The index that survives a power cut; never behind the log's start.
    var durable: LogIndex { get }
    /// The digest of the rows at `applied`; equal on every replica.
    var digest: StateDigest { get }

    /// Applies entries in order, appending one outcome for each. Entries at or below `applied` are
    /// a bug. A command with a known identity is not applied again: its stored outcome is appended.
    ///
    /// Stops before the first entry that only a newer build can apply, and behind one with which
    /// the rows written since the last commit are many: then there are fewer outcomes than entries.
    /// In the first case ``newer`` names the entry; otherwise at least one was applied.
    func apply(_ entries: ArraySlice<Entry>, into outcomes: inout [Outcome]) throws(StoreError)
    /// The entry that the last ``apply(_:into:)`` stopped before, if any.
    var newer: NewerEntry? { get }
    /// Which builds can apply the command.
    func reading(of command: Command) -> CommandReading
    /// The nodes that hold the copies that the command names; nil: it names none.
    func holdings(in command: Command) -> [CopyHolding]?
    /// Ends a batch: the applied entries may be answered, since the log holds them and they give the
    /// same again.
    func publish() throws(StoreError)
    /// Brings rows that are in memory nearer to the file, if it is time, by one slice.
    ///
    /// - Returns: when it is to be called again; nil: not before something else is applied.
    /// - Throws: the rows stay in memory, and it may be called again, unless ``mustReset`` says
    ///   something else.
    func flushIfDue(at now: MonotonicTime) throws(StoreError) -> MonotonicTime?
    /// Memory holds as much as it may: nothing is to be applied before a flush has ended.
    var isFull: Bool { get }
    /// Keeps ``digest`` as that of ``applied``, until all its rows are in the file: a row that was
    /// expected to be new, and was not, is found only then.
    func noteDigest()
    /// The noted digests that are exact now, each of them once. One may be missing.
    func takeDigests() -> [NotedDigest]
    /// Brings all that was applied to the file at once. ``digest`` is exact then.
    func commit() throws(StoreError)
    /// Whether an error left it so that only ``reset()`` may be called; errors of a checkpoint or a
    /// snapshot count too.
    var mustReset: Bool { get }
    /// After an error: back to what the file has. Returns the index to replay from.
    func reset() throws(StoreError) -> LogIndex
    /// Answers a read at `applied`.
    func answer(_ query: Query) throws(StoreError) -> QueryAnswer
    /// The same, and what can be asked for in pages ends its page when the time is over.
    func answer(_ query: Query, within time: ReadTime?) throws(StoreError) -> QueryAnswer
    /// Begins a snapshot of the rows at `applied`, in key order, in chunks, the digest at the end.
    /// Entries may be applied between its slices. An earlier snapshot that is not whole is given
    /// up.
    func snapshot() throws(StoreError) -> any SnapshotSpooling
    /// Begins to add up the digest of the rows at `applied`, which throws `.corrupt` at the end if it
    /// is not ``digest``. Entries may be applied between its slices.
    func check() throws(StoreError) -> any ViewWork
    /// What the rows were found to be, until others take their place. It outlives a restart.
    var wrongRows: WrongRows? { get }
    func mark(_ wrong: WrongRows) throws(StoreError)
    /// The most that a snapshot of the rows may take on disk while it is sent; 0: unknown.
    var snapshotSize: ByteCount { get throws(StoreError) }
    /// Makes the place that keeps an arriving snapshot until it is whole.
    func makeSpool() throws(StoreError) -> any SnapshotSpool
    /// Replaces everything by a snapshot, at the last slice: until then, and after an error or a
    /// crash, the rows stay as they were. One at a time.
    func install(_ identity: SnapshotIdentity, from source: any SnapshotSource) throws(StoreError)
        -> any SnapshotWork

    /// Set while the file may hold what was erased: ``rebuild(reading:)`` ends that.
    var erasure: ErasureMark? { get }
    /// Whether rows are still to be removed for ``erasure``: before they are, a rebuild is too early.
    func erasureStanding() throws(StoreError) -> ErasureStanding
    /// Begins to make the file anew beside the one in use, which it replaces at the last slice. One
    /// at a time, and not beside an installation.
    ///
    /// - Parameter entries: reads applied entries from an index on, some of them. They stay readable
    ///   as long as the work goes on.
    func rebuild(reading entries: @escaping (LogIndex) throws(StoreError) -> [Entry])
        throws(StoreError) -> any RebuildWork
}

/// The digest of the rows after the entry at an index.
package struct NotedDigest: Sendable, Equatable {
    package let index: LogIndex
    package let digest: StateDigest
}

extension PartitionState {
    package func publish() throws(StoreError) { try self.commit() }

    package func flushIfDue(at now: MonotonicTime) throws(StoreError) -> MonotonicTime? { nil }

    package var isFull: Bool { false }

    package var erasure: ErasureMark? { nil }

    package func erasureStanding() throws(StoreError) -> ErasureStanding { .over }

    package func rebuild(reading entries: @escaping (LogIndex) throws(StoreError) -> [Entry])
        throws(StoreError) -> any RebuildWork
    { throw StoreError(.busy, "there is no file to rebuild") }

    package func holdings(in command: Command) -> [CopyHolding]? { nil }

    package func answer(_ query: Query, within time: ReadTime?) throws(StoreError) -> QueryAnswer {
        try self.answer(query)
    }
}

/// Why rows are to be replaced.
package enum WrongRows: String, Sendable, CaseIterable {
    /// They are not what was applied: the disk has lost or misplaced a write, or a page is damaged.
    case rotten
    /// They are others than those of most replicas, at the same entry.
    case differ
}

/// The slow work on a snapshot, done a slice at a time so that other work can run in between.
package protocol SnapshotWork: AnyObject {
    /// Does one slice more.
    /// - Returns: the bytes that went through it; nil when all is done.
    /// - Throws: it has come to nothing, and is not to go on.
    func advance() throws(StoreError) -> ByteCount?
}

extension SnapshotWork {
    /// Does what is left in one go.
    package func finish() throws(StoreError) { while try self.advance() != nil {} }
}

package protocol RebuildWork: ViewWork {}

/// Work on the rows as they were at one moment.
package protocol ViewWork: SnapshotWork {
    /// Whether it keeps a full WAL from being freed: then nothing should slow it down.
    var isUrgent: Bool { get }
}

package protocol SnapshotSpooling: ViewWork {
    /// The spooled bytes, from the first chunk. Call it when all work is done.
    func source() -> any SnapshotSource
}

extension SnapshotSpooling {
    package func whole() throws(StoreError) -> any SnapshotSource {
        try self.finish()
        return self.source()
    }
}

package protocol SnapshotSource: AnyObject {
    /// The next chunk; nil after the last.
    func next() throws(StoreError) -> Bytes?
}
