/// A position in a log and the term of the entry there: what the log matching property compares.
package struct LogPoint: Sendable, Hashable, CustomStringConvertible {
    package var index: LogIndex
    package var term: Term

    package init(index: LogIndex, term: Term) {
        self.index = index
        self.term = term
    }

    /// Before every entry.
    package static let zero = LogPoint(index: .zero, term: .zero)

    /// The order in which logs are up to date (thesis §3.6.1): last term first, then length.
    package func isAtLeastAsUpToDate(as other: LogPoint) -> Bool {
        (self.term, self.index) >= (other.term, other.index)
    }

    package var description: String { "\(self.index)@\(self.term)" }
}

/// A message between two replicas of one group. The link's envelope names the group, the sender and
/// the receiver.
///
/// Every message names the term it was said in, so that an answer can be counted only for the
/// question it belongs to.
package struct ConsensusMessage: Sendable, Equatable {
    package enum Body: Sendable, Equatable {
        /// Asks: "Would you vote for me in this term, and can you still reach the leader?" Changes
        /// nothing at the receiver. The message's term is the one in which the sender would
        /// campaign.
        case preVoteRequest(last: LogPoint)
        /// Granted: the term of the request. Refused: the receiver's own term.
        case preVoteAnswer(granted: Bool)
        /// With `isTransfer`, the leader itself asked the candidate to take over.
        case voteRequest(last: LogPoint, isTransfer: Bool)
        case voteAnswer(granted: Bool)
        case append(previous: LogPoint, entries: [Entry], commit: LogIndex)
        /// The log agrees with the leader's through both positions: `match` is on stable storage,
        /// `received` is at least in memory.
        case appendAccepted(match: LogIndex, received: LogIndex, commit: LogIndex)
        /// The entry before index `previous.next` is another one here. `hint` is where to try next.
        case appendRefused(previous: LogIndex, hint: LogPoint)
        /// "Do you still follow me in this term?" Named by group and term: a node's heartbeat is no
        /// substitute.
        case probe(round: UInt64)
        case probeAnswer(round: UInt64)
        /// "Campaign now": the end of a leadership transfer.
        case transferNow
        /// The leader of the message's term leads no more.
        case resigned
        case snapshotChunk(SnapshotChunk)
        /// Chunks before `next` have arrived; `unneeded` when the receiver has the entries already.
        case snapshotAnswer(index: LogIndex, next: UInt32, unneeded: Bool)
        /// The digest of the sender's rows after the entry at `index`: equal on every replica.
        case digest(index: LogIndex, StateDigest)
        /// "Through which entry do you have every copy that was named?" The leader asks the
        /// incoming voters before it leaves a joint configuration.
        case heldAsk
        /// The sender has every copy that entries through here have named, synced.
        case held(through: LogIndex)
        /// "You had acknowledged the log through here." The leader says it to a follower whose log
        /// ends before that: what the follower took for torn it had promised.
        case acknowledged(through: LogPoint)
        /// "The rows of your snapshot at this entry are not those that it promises." The sender
        /// checks its own.
        case snapshotUntrue(index: LogIndex)
    }

    package var term: Term
    package var body: Body

    package init(term: Term, _ body: Body) {
        self.term = term
        self.body = body
    }
}

/// A piece of a snapshot. A stream is bound to the sender's term and the whole identity: pieces of
/// two streams are never put together.
package struct SnapshotChunk: Sendable, Equatable {
    package var identity: SnapshotIdentity
    package var sequence: UInt32
    package var isLast: Bool
    package var bytes: Bytes

    package init(identity: SnapshotIdentity, sequence: UInt32, isLast: Bool, bytes: Bytes) {
        self.identity = identity
        self.sequence = sequence
        self.isLast = isLast
        self.bytes = bytes
    }
}

/// A heartbeat between two nodes, sent once per pair, however many groups they share.
///
/// Feeds election timers and nothing else: it never counts as an acknowledgement of a group's
/// leader.
package struct NodeHeartbeat: Sendable, Equatable {
    /// A change tells the receiver that the sender's memory is gone: its groups have no leader.
    package var incarnation: NodeIncarnation
    package var sequence: UInt64
    /// How long the sender's oldest submitted log write has waited for its sync.
    package var unsyncedMilliseconds: UInt32
    /// The sender's wall clock, for the clock rule.
    package var wallMilliseconds: Int64
    /// The sender leads nothing: its disk hangs or its clock is off.
    package var declinesLeadership: Bool
    /// Groups the sender has just stopped leading, with the term it led.
    package var resigned: [ResignedGroup]

    package init(
        incarnation: NodeIncarnation, sequence: UInt64, unsyncedMilliseconds: UInt32,
        wallMilliseconds: Int64, declinesLeadership: Bool, resigned: [ResignedGroup]
    ) {
        self.incarnation = incarnation
        self.sequence = sequence
        self.unsyncedMilliseconds = unsyncedMilliseconds
        self.wallMilliseconds = wallMilliseconds
        self.declinesLeadership = declinesLeadership
        self.resigned = resigned
    }
}

package struct ResignedGroup: Sendable, Hashable {
    package var group: GroupID
    package var term: Term
    package init(group: GroupID, term: Term) {
        self.group = group
        self.term = term
    }
}

extension ConsensusMessage: CustomStringConvertible {
    package var description: String {
        switch self.body {
        case .preVoteRequest(let last): "prevote? t=\(self.term) last=\(last)"
        case .preVoteAnswer(let granted): "prevote \(granted ? "yes" : "no") t=\(self.term)"
        case .voteRequest(let last, let isTransfer):
            "vote? t=\(self.term) last=\(last)\(isTransfer ? " transfer" : "")"
        case .voteAnswer(let granted): "vote \(granted ? "yes" : "no") t=\(self.term)"
        case .append(let previous, let entries, let commit):
            "append t=\(self.term) after=\(previous)"
                + (entries.isEmpty ? "" : " [" + Self.range(entries) + "]") + " commit=\(commit)"
        case .appendAccepted(let match, let received, let commit):
            "accepted t=\(self.term) match=\(match)"
                + (received == match ? "" : " received=\(received)") + " commit=\(commit)"
        case .appendRefused(let previous, let hint):
            "refused t=\(self.term) after=\(previous) hint=\(hint)"
        case .probe(let round): "probe t=\(self.term) round=\(round)"
        case .probeAnswer(let round): "probed t=\(self.term) round=\(round)"
        case .transferNow: "campaign! t=\(self.term)"
        case .resigned: "resigned t=\(self.term)"
        case .snapshotChunk(let chunk):
            "snapshot t=\(self.term) at=\(chunk.identity.index)@\(chunk.identity.term) "
                + "#\(chunk.sequence)\(chunk.isLast ? " last" : "")"
        case .snapshotAnswer(let index, let next, let unneeded):
            "snapshot answer t=\(self.term) at=\(index) next=\(next)\(unneeded ? " unneeded" : "")"
        case .digest(let index, let digest): "digest t=\(self.term) at=\(index) \(digest)"
        case .heldAsk: "held? t=\(self.term)"
        case .held(let index): "held t=\(self.term) through=\(index)"
        case .acknowledged(let point): "acknowledged! t=\(self.term) through=\(point)"
        case .snapshotUntrue(let index): "snapshot untrue! t=\(self.term) at=\(index)"
        }
    }

    /// Entries as `first…last@term`, one part per run of one term.
    private static func range(_ entries: [Entry]) -> String {
        var parts: [String] = []
        var start = 0
        for position in entries.indices {
            let isEnd =
                position + 1 == entries.count || entries[position + 1].term != entries[start].term
            guard isEnd else { continue }
            let first = entries[start].index
            let last = entries[position].index
            parts.append(
                (first == last ? "\(first)" : "\(first)…\(last)") + "@\(entries[start].term)")
            start = position + 1
        }
        return parts.joined(separator: " ")
    }
}
