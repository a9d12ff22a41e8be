/// Times and bounds of one group. Simulations run with tiny and odd ones.
package struct RaftTuning: Sendable, Equatable {
    /// A replica without a leader campaigns after a time drawn between these (thesis §3.4). The
    /// pair heartbeats have waited for the leader before that: see ``NodeLiveness``.
    package var electionDelayMin: Duration = .milliseconds(100)
    package var electionDelayMax: Duration = .milliseconds(400)
    /// After the process of the leader's node has ended, the first pre-votes are asked for after
    /// times drawn between these, so many times, and no vote is asked for unless one of them is
    /// granted by a majority.
    package var promptDelayMin: Duration = .milliseconds(10)
    package var promptDelayMax: Duration = .milliseconds(60)
    package var promptElectionCountMax = 4
    /// After elections that find no leader, later ones become rarer by up to this factor. Without
    /// it, candidates would disturb each other for ever if a vote takes longer to reach a disk than
    /// they wait.
    package var electionBackoffMax: Int64 = 16
    /// The time after which an unanswered message is sent again.
    package var resendDelay: Duration = .milliseconds(200)
    /// A leader that a majority does not answer by name for this long steps down (thesis §6.2).
    package var quorumTimeout: Duration = .milliseconds(700)
    /// A leadership transfer that takes longer is given up (thesis §3.10).
    package var transferTimeout: Duration = .milliseconds(700)

    /// Entries of one message, by size and by number.
    package var appendSizeMax = 1 << 20
    package var appendCountMax = 1_024
    /// Sent to one peer and not yet on its stable storage.
    package var inFlightSizeMax = 8 << 20
    package var inFlightMessageCountMax = 64
    /// A follower accepts no more entries while this much waits in memory for its log's sync. It is
    /// twice what one leader may have on its way to it, because one leader may follow another.
    package var unsyncedSizeMax: Int { 2 * self.inFlightSizeMax }
    /// Proposals beyond this are refused until some are committed.
    package var uncommittedSizeMax = 32 << 20
    package var proposalSizeMax = 16 << 20
    /// Recent entries kept in memory for slow followers.
    package var tailSizeMax = 8 << 20
    package var waitingReadCountMax = 4_096
    /// A follower that has made nothing durable for so long, and taken nothing of a snapshot, is
    /// not waited for.
    package var followerPatience: Duration = .seconds(10)
    /// Messages held back until the term or vote they speak of is on stable storage.
    package var heldMessageCountMax = 64
    /// Whether a joint configuration is left only when a majority of the incoming voters has every
    /// copy that was named before it. The shells must then say `.copiesHeld`.
    package var awaitsCopies = false

    package init() {}
}
