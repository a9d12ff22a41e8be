package import StratusConsensus
package import StratusModel

extension NodeReplicas {
    package struct Setup: Sendable {
        package var node: NodeID
        package var incarnation: NodeIncarnation
        package var peers: [NodeID]
        package var limits = Limits()
        package var tuning = Replica.Tuning()
        /// The memory that all answers to reads may take; nil: no bound.
        package var answers: AnswerBudget?
        /// A partition's WAL is checkpointed when it has grown past this.
        package var checkpointSize: ByteCount = .mebibytes(4)
        /// Beyond so many segments the partitions that hold the oldest are checkpointed.
        package var segmentCountMax = 3
        /// Partitions with a file open. Beyond it those longest unused are closed.
        package var openPartitionCountMax = 64
        /// Makes or opens the state of a group.
        package var openPartition:
            @Sendable (GroupID) throws(StoreError) -> sending any NodePartition
        /// The first voters of a group; nil for a group that this node has no part in.
        package var firstConfiguration: @Sendable (GroupID) -> Configuration?
        /// The index through which a replica that begins anew stays silent: see
        /// ``RaftGroup/silentThrough``.
        package var silentThrough: @Sendable (GroupID) -> LogIndex = { _ in .zero }
        /// Others may become peers later: the watch over nodes runs from the start.
        package var isClustered = false
        /// Bytes of snapshots that are spooled and installed in a second, all partitions together;
        /// 0: no limit.
        package var snapshotRate = ByteCount(0)
        /// The size of the log on disk beyond which it keeps nothing more for followers that are
        /// behind, all groups together.
        package var retainedLogSizeMax: ByteCount = .mebibytes(4_096)
        /// The space to keep free on the disk for deletions; 0: none.
        package var reserve = ByteCount(0)
        /// Whether a command may add rows: it is refused while the disk has no more than the
        /// reserve.
        package var adds: @Sendable (Command) -> Bool = { _ in false }
        /// The keeper of copies, if there is one.
        package var bodies: BodyFeed?
        /// The level at which leaders here may append.
        package var level = ClusterLevel.build
        package var sleep: @Sendable (MonotonicTime) async -> Void
        package var events = Events()

        package init(
            node: NodeID, incarnation: NodeIncarnation, peers: [NodeID],
            openPartition:
                @escaping @Sendable (GroupID) throws(StoreError) -> sending any NodePartition,
            firstConfiguration: @escaping @Sendable (GroupID) -> Configuration?,
            sleep: @escaping @Sendable (MonotonicTime) async -> Void
        ) {
            self.node = node
            self.incarnation = incarnation
            self.peers = peers
            self.openPartition = openPartition
            self.firstConfiguration = firstConfiguration
            self.sleep = sleep
        }
    }

    /// The events that the node should know. Called on the replicas' executor; nothing here may
    /// block.
    package struct Events: Sendable {
        /// Final: see the type's promises.
        package var fenced: @Sendable (String) -> Void = { _ in }
        /// A replica applies nothing any more until a newer build is started.
        package var stopped: @Sendable (GroupID, NewerEntry) -> Void = { _, _ in }
        /// Reports whether the disk has room for the log: without it commands are refused, and
        /// nothing is lost.
        package var roomChanged: @Sendable (Bool) -> Void = { _ in }
        /// Whether the disk is down to its reserve, and what is free on it.
        package var reserveChanged: @Sendable (_ isLow: Bool, _ free: UInt64) -> Void = { _, _ in }
        /// Whether the wall clock is so far from the others' that this node leads nothing.
        package var clockChanged: @Sendable (_ isOff: Bool, _ leadMilliseconds: Int64) -> Void = {
            _, _ in
        }
        /// Whether the log's writes wait so long for the disk that this node leads nothing.
        package var stallChanged: @Sendable (Bool) -> Void = { _ in }
        /// Reports how many of the groups found on the disk at the start are open, by
        /// ``NodeReplicas/openNext()`` or because of a request.
        package var opened: @Sendable (_ count: Int, _ of: Int) -> Void = { _, _ in }
        /// A command that was taken by a leader here was committed and applied, after this time.
        package var committed: @Sendable (Duration) -> Void = { _ in }
        package var alarm: @Sendable (GroupID, String) -> Void = { _, _ in }
        /// The groups that this node keeps and cannot open, and why the first of them cannot be.
        package var unopenedChanged: @Sendable ([GroupID], String) -> Void = { _, _ in }
        package var roleChanged: @Sendable (GroupID, RaftGroup.Role, Term, NodeID?) -> Void = {
            _, _, _, _ in
        }
        package init() {}
    }

    package struct GroupStatus: Sendable, Equatable {
        package var group: GroupID
        package var role: RaftGroup.Role
        package var term: Term
        package var leader: NodeID?
        package var applied: LogIndex
        package var durable: LogIndex
        package var problem: String?
        /// False where the replica cannot be opened: `problem` says why.
        package var isOpen = true
        /// How far the time of its entries is ahead of this node's wall clock.
        package var aheadMilliseconds: Int64 = 0
    }
}
