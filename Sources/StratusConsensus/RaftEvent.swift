package import StratusModel

extension RaftGroup {
    /// Facts that reach a group.
    package enum Event: Sendable, Equatable {
        /// The replica is running and may arm its timers. Once, and first but for what is known
        /// already: reasons not to lead, and nodes that are silent or should not lead.
        case started
        case received(ConsensusMessage, from: NodeID)
        /// Everything submitted to the log through here is on stable storage. Entries and hard
        /// states become durable in the order in which they were submitted.
        case durable(through: LogIndex, term: Term, hardState: HardState?)
        /// A wake-up asked for with `.wake`. May be late or spurious.
        case woke

        case proposed([Proposal])
        /// Reads have arrived, while the state had applied everything through `applied`.
        case readsRequested([RequestToken], applied: LogIndex)
        case configurationProposed(
            RequestToken, voters: [NodeID], learners: [NodeID], wallMilliseconds: Int64)
        case transferRequested(to: NodeID)
        /// This replica has every copy that entries through here have named, synced. It may be less
        /// than before: copies rot. Said only with ``RaftTuning/awaitsCopies``.
        case copiesHeld(through: LogIndex)
        /// This replica must not lead now, for these reasons, each until it is `.permitted` again.
        case inhibited(Inhibition)
        case permitted(Inhibition)
        /// The own rows differ from those of a majority of the voters, at the same entry.
        case diverged
        /// The own rows are not what was applied: they are to be replaced, and the log is whole.
        case rowsRotten

        /// The pair heartbeats say that the node is silent.
        case suspected(NodeID)
        /// The node's process has ended: its connections are closed, and it refuses new ones.
        case ended(NodeID)
        /// The pair heartbeats say that the node is heard again.
        case trusted(NodeID)
        /// The pair heartbeats say that the node is there, but should not lead.
        case declined(NodeID)
        case recovered(NodeID)
        /// The node's process is another one than before: whatever it led, it leads no more.
        case restarted(NodeID)
        /// The heartbeat said so: the leader of `term` leads no more.
        case leaderResigned(NodeID, term: Term)

        /// Answers `.sendFromLog`: entries through here are on their way, of this size together;
        /// nil: none could be read.
        case sentFromLog(to: NodeID, through: LogIndex?, size: Int)

        /// The state holds everything through here on stable storage, and the log may let it go.
        case released(through: LogIndex)
        /// All chunks of a snapshot have arrived and were verified.
        case snapshotArrived(SnapshotIdentity)
        /// Answers `.install`.
        case snapshotInstalled(SnapshotIdentity)
        case snapshotRefused(SnapshotIdentity)
        /// Chunks before `next` have arrived.
        case snapshotProgressed(SnapshotIdentity, next: UInt32)
    }

    /// One entry somebody wants in the log.
    package struct Proposal: Sendable, Equatable {
        package var token: RequestToken
        package var kind: Entry.Kind
        package var payload: Bytes
        /// The proposer's wall clock; the entry's time is later than its predecessor's in any case.
        package var wallMilliseconds: Int64
        /// The entry's time is later than this too: what comes from another group was there before
        /// it is here.
        package var after: HybridTime
        /// The nodes that hold what the entry names: it is appended only if they are enough. Nil:
        /// it names nothing that is outside the log.
        package var heldBy: [CopyHolding]?

        package init(
            token: RequestToken, kind: Entry.Kind = .command, payload: Bytes,
            wallMilliseconds: Int64, after: HybridTime = .zero, heldBy: [CopyHolding]? = nil
        ) {
            self.heldBy = heldBy
            self.token = token
            self.kind = kind
            self.payload = payload
            self.wallMilliseconds = wallMilliseconds
            self.after = after
        }
    }

    /// The shell's name for a request, given back with the answer. Means nothing here.
    package struct RequestToken: Sendable, Hashable {
        package var raw: UInt64
        package init(_ raw: UInt64) { self.raw = raw }
    }
}
