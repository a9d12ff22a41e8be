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
    func apply(_ entries: ArraySlice<Entry>, into outcomes: inout [Outcome]) throws(StoreError)
    /// Makes what was applied one commit. Bounded: the caller commits every 512 row writes or 20 ms.
    func commit() throws(StoreError)
    /// An error left it where only ``reset()`` may be called: also one of a checkpoint or a snapshot.
    var mustReset: Bool { get }
    /// After any error: back to the last commit. Returns the index to replay from.
    func reset() throws(StoreError) -> LogIndex
    /// Answers a read at `applied`.
    func answer(_ query: Query) throws(StoreError) -> QueryAnswer
    /// The rows in key order, in chunks, the digest at the end.
    func snapshot() throws(StoreError) -> any SnapshotSource
    /// Where a snapshot that arrives is kept until it is whole.
    func makeSpool() throws(StoreError) -> any SnapshotSpool
    func install(_ identity: SnapshotIdentity, from source: any SnapshotSource) throws(StoreError)
}

package protocol SnapshotSource: AnyObject {
    /// The next chunk; nil after the last.
    func next() throws(StoreError) -> Bytes?
}
