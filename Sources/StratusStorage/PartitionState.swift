package import StratusModel

/// The replicated state of one partition on disk: rows that a log of entries brings forward.
///
/// Owned by one executor. `durable <= applied`, and neither goes back except by ``reset()``.
package protocol PartitionState: AnyObject {
    /// What reads see.
    var applied: LogIndex { get }
    /// What a power cut leaves; never behind the log's start.
    var durable: LogIndex { get }
    /// Of the rows at `applied`; equal on every replica.
    var digest: StateDigest { get }

    /// Applies entries in order, appending one outcome for each. Entries at or below `applied` are a
    /// bug. A command with a known identity is not applied again: its stored outcome is appended.
    ///
    /// Stops before the first entry that only a newer build can apply: then there are fewer outcomes than
    /// entries, and ``newer`` names that entry.
    func apply(_ entries: ArraySlice<Entry>, into outcomes: inout [Outcome]) throws(StoreError)
    /// The entry that the last ``apply(_:into:)`` stopped before, if any.
    var newer: NewerEntry? { get }
    /// Which builds can apply the command.
    func reading(of command: Command) -> CommandReading
    /// Makes what was applied one commit. Bounded: the caller commits every 512 row writes or 20 ms.
    func commit() throws(StoreError)
    /// An error left it where only ``reset()`` may be called: also one of a checkpoint or a snapshot.
    var mustReset: Bool { get }
    /// After any error: back to the last commit. Returns the index to replay from.
    func reset() throws(StoreError) -> LogIndex
    /// Answers a read at `applied`.
    func answer(_ query: Query) throws(StoreError) -> QueryAnswer
    /// The same, and what can be asked for in pages ends its page when the time is over.
    func answer(_ query: Query, within time: ReadTime?) throws(StoreError) -> QueryAnswer
    /// The rows at `applied`, in key order, in chunks, the digest at the end. Entries may be applied between its
    /// slices; a snapshot begun before that is not whole is given up.
    func snapshot() throws(StoreError) -> any SnapshotSpooling
    /// What a snapshot of the rows may take on disk while it is sent, at most; 0: nothing that is known of.
    var snapshotSize: ByteCount { get throws(StoreError) }
    /// Where a snapshot that arrives is kept until it is whole.
    func makeSpool() throws(StoreError) -> any SnapshotSpool
    /// Replaces everything by a snapshot, at the last slice: until then, and after an error or a crash, the rows
    /// are what they were. One at a time.
    func install(_ identity: SnapshotIdentity, from source: any SnapshotSource) throws(StoreError)
        -> any SnapshotWork
}

extension PartitionState {
    package func answer(_ query: Query, within time: ReadTime?) throws(StoreError) -> QueryAnswer {
        try self.answer(query)
    }
}

/// What takes long with a snapshot, done a slice at a time so that others get their turn in between.
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

package protocol SnapshotSpooling: SnapshotWork {
    /// It holds up what has to be let go: nothing should slow it down.
    var isUrgent: Bool { get }
    /// What was spooled, from the first chunk. To be called when all is done.
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
