package import StratusModel
package import StratusStorage

/// A partition's state as a node keeps it. Besides the needs of replication it tells when it
/// reaches the disk and how much space it occupies.
package protocol NodePartition: PartitionState {
    /// Index, term, time and configuration of the last entry applied.
    var appliedPosition: AppliedPosition { get }
    var walSize: ByteCount { get }
    /// The free space inside its file: additions go there before the file grows.
    var spareSize: ByteCount { get throws(StoreError) }
    /// A snapshot is being spooled: checkpoints are incomplete.
    var isSpooling: Bool { get }
    /// Holds memory and descriptors now.
    var isOpen: Bool { get }
    /// Moves when an entry has written a row of mail, and never comes back to where it was.
    var mailCount: Int { get }
    /// The same of rows of events that subscriptions may want.
    var eventCount: Int { get }
    /// What applied entries have done to the rows of bodies since the last call. Bounded: what is
    /// not taken becomes ``BodyChange/unlisted``.
    func takeBodyChanges() -> [BodyChange]
    /// The named bodies from this name on, ascending, as the applied entries have left them: for
    /// the comparison with the copies that are held.
    func bodies(from body: BodyID, limit: Int) throws(StoreError) -> [BodyManifest]
    /// Rows were lost from memory, and their entries are being applied again: nobody who keeps files
    /// for them may look meanwhile, or be told.
    var isReplaying: Bool { get }
    /// Whether a sync has failed: the content of the disk is then unknown, and only a restart
    /// helps.
    var hasFailedSync: Bool { get }

    @discardableResult
    func checkpoint() throws(StoreError) -> Bool
    func makeCheckpointer() throws(StoreError) -> PartitionCheckpointer?
    /// nil while there is no file.
    func makeScrub() throws(StoreError) -> PartitionScrub?
    /// Whether the checkpointer copies the file in use: an installed snapshot brings another.
    func isCurrent(_ checkpointer: PartitionCheckpointer) -> Bool
    func noteDurable(through index: LogIndex)
    /// Gives memory and descriptors back; the next use opens again.
    func close() throws(StoreError)
}

extension PartitionStore: NodePartition {}
