package import StratusConsensus
package import StratusModel

extension NodeReplicas {
    package struct Setup: Sendable {
        package var node: NodeID
        package var incarnation: NodeIncarnation
        package var peers: [NodeID]
        package var limits = Limits()
        package var tuning = Replica.Tuning()
        /// What answers to reads may take together; nil: as much as they will.
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
        /// Who voted in a group when it began; nil for a group that this node has no part in.
        package var firstConfiguration: @Sendable (GroupID) -> Configuration?
        /// Through which index a replica that begins anew stays silent: see ``RaftGroup/silentThrough``.
        package var silentThrough: @Sendable (GroupID) -> LogIndex = { _ in .zero }
        /// Others may become peers later: the watch over nodes runs from the start.
        package var isClustered = false
        /// Bytes of snapshots that are spooled and installed in a second, all partitions together; 0: as many as can
        /// be.
        package var snapshotRate = ByteCount(0)
        /// What the log may take on disk before it keeps no more for followers that are behind, all groups together.
        package var retainedLogSizeMax: ByteCount = .mebibytes(4_096)
        /// What is to stay free on the disk for what deletes; 0: nothing.
        package var reserve = ByteCount(0)
        /// Whether a command may make the rows more than they are: it is refused while there is no more than the
        /// reserve.
        package var adds: @Sendable (Command) -> Bool = { _ in false }
        /// What leaders here may append.
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

    /// What the node should know. Called on the replicas' executor; nothing here may block.
    package struct Events: Sendable {
        /// Final: see the type's promises.
        package var fenced: @Sendable (String) -> Void = { _ in }
        /// A replica applies nothing any more until a newer build is started.
        package var stopped: @Sendable (GroupID, NewerEntry) -> Void = { _, _ in }
        /// Whether the disk has room for the log: without it commands are refused, and nothing is lost.
        package var roomChanged: @Sendable (Bool) -> Void = { _ in }
        /// Whether the disk is down to its reserve, and what is free on it.
        package var reserveChanged: @Sendable (_ isLow: Bool, _ free: UInt64) -> Void = { _, _ in }
        /// Whether the wall clock is so far from the others' that this node leads nothing.
        package var clockChanged: @Sendable (_ isOff: Bool, _ leadMilliseconds: Int64) -> Void = {
            _, _ in
        }
        /// Whether the log's writes wait so long for the disk that this node leads nothing.
        package var stallChanged: @Sendable (Bool) -> Void = { _ in }
        /// Of the groups that the disk held at the start so many are open, by ``NodeReplicas/openNext()`` or because
        /// somebody asked for them.
        package var opened: @Sendable (_ count: Int, _ of: Int) -> Void = { _, _ in }
        package var alarm: @Sendable (GroupID, String) -> Void = { _, _ in }
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
    }
}
