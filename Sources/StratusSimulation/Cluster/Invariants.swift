import StratusCluster
import StratusCoding
import StratusConsensus
import StratusModel
import StratusPlacement
import StratusStorage

/// The first broken promise of a run.
package struct Violation: Error, Sendable, Equatable, CustomStringConvertible {
    package let rule: String
    package let text: String

    package init(_ rule: String, _ text: String) {
        self.rule = rule
        self.text = text
    }

    package var description: String { "\(self.rule): \(self.text)" }
}

/// Everything that must hold in every state of a cluster, checked as it runs by an observer that
/// sees all nodes at once. The numbers are the fault catalogue's.
struct Invariants {
    fileprivate struct Applied {
        var term: Term
        var content: UInt64
        var time: HybridTime
        var digest: StateDigest
    }

    struct Group {
        /// By index, from 1: what any replica applied there first.
        fileprivate var applied: [Applied] = []
        var appliedCount: Int { self.applied.count }
        /// By index, from 1: the term of what any replica took for committed.
        var committed: [Term] = []
        var leaders: [Term: NodeID] = [:]
        /// The votes given, by term, recorded apart from anything the nodes remember of them.
        var votes: [Term: [NodeID: NodeID]] = [:]
        /// When a voter last told a leader that it still follows, by both.
        var confirmations: [NodeID: [NodeID: Int64]] = [:]
        /// The configurations in force at each node, and since when, oldest first.
        var inForce: [NodeID: [(since: Int64, configuration: Configuration)]] = [:]
        /// By the index of their entries, oldest first; the one the group was made with is at zero.
        var configurations: [(index: LogIndex, configuration: Configuration)] = []
        /// In a cluster with a placement table: the last one that any replica took for committed.
        var confirmed: (through: LogIndex, configuration: Configuration)?

        func configuration(at index: LogIndex) -> Configuration? {
            guard index.raw <= UInt64(self.applied.count) else { return nil }
            return self.configurations.last { $0.index <= index }?.configuration
        }
    }

    var groups: [GroupID: Group] = [:]
    /// The view that the system group has decided; nil in a cluster without a placement table.
    var view: ClusterView?
    /// Members whose rows were made to rot and are not replaced yet: what they apply says nothing.
    var rotten: [GroupID: NodeID] = [:]
    /// Those of them that their node has found.
    var foundRotten: Set<GroupID> = []
    private(set) var violation: Violation?

    mutating func report(_ rule: String, _ text: String) {
        if self.violation == nil { self.violation = Violation(rule, text) }
    }

    /// Every group begins with a configuration that no entry holds.
    mutating func begins(_ group: GroupID, with configuration: Configuration) {
        self.groups[group, default: Group()].configurations = [(.zero, configuration)]
    }

    /// The term of an entry that some replica has applied.
    func term(of group: GroupID, at index: LogIndex) -> Term? {
        guard let applied = self.groups[group]?.applied, index > .zero,
            Int(index.raw) <= applied.count
        else { return nil }
        return applied[Int(index.raw) - 1].term
    }

    /// M-19: a group continues from one replica, whose log ends at `last`. What was decided behind
    /// `through` is lost, and these entries stand there.
    mutating func continues(
        _ group: GroupID, on node: NodeID, behind through: LogIndex, with entries: [Entry],
        through last: LogIndex, _ digest: StateDigest
    ) {
        var known = self.groups[group, default: Group()]
        let count = min(Int(through.raw), known.applied.count)
        known.applied.removeLast(known.applied.count - count)
        known.committed.removeLast(max(0, known.committed.count - count))
        known.configurations.removeAll { $0.index.raw > UInt64(count) }
        known.confirmed = (last, Configuration(voters: [node]))
        known.inForce = [:]
        known.confirmations = [:]
        for entry in entries {
            known.applied.append(
                Applied(
                    term: entry.term, content: Self.hash(entry), time: entry.time, digest: digest))
            if entry.kind == .configuration,
                let configuration = try? Configuration(decoding: entry.payload)
            {
                known.configurations.append((entry.index, configuration))
            }
        }
        self.groups[group] = known
    }

    // MARK: What is said

    /// I-1, I-11: of what a node says to others, what it must never have to take back.
    mutating func said(
        _ message: ConsensusMessage, _ node: SimulatedNode, _ replica: Replica, to other: NodeID,
        at now: Int64
    ) {
        let group = replica.group
        switch message.body {
        case .preVoteRequest, .preVoteAnswer: return
        case .voteAnswer(granted: true):
            self.votes(node, for: other, message.term, group)
            if replica.raft.mustReach != nil {
                self.report("S-08 no vote", "\(group): \(node.id) votes, and its log is damaged")
            }
        case .voteRequest: self.votes(node, for: node.id, message.term, group)
        case .probeAnswer:
            self.groups[group, default: Group()].confirmations[other, default: [:]][node.id] = now
        case .appendAccepted(let match, _, _):
            let term = replica.raft.log.term(at: match) ?? .zero
            // Entries before a log's base were committed by others too, so acknowledging them again
            // promises nothing.
            if match > replica.raft.log.base.index, !node.holds(match, of: term, in: group) {
                self.report(
                    "I-11 durable before said", "\(group): \(node.id) says it has \(match)@\(term)")
            }
        default: break
        }
        if (node.hardStates[group]?.term ?? .zero) < message.term {
            self.report(
                "C-09 durable before said",
                "\(group): \(node.id) speaks in term \(message.term), which is not on its disk")
        }
    }

    private mutating func votes(
        _ node: SimulatedNode, for candidate: NodeID, _ term: Term, _ group: GroupID
    ) {
        let before = self.groups[group, default: Group()].votes[term]?[node.id]
        if let before, before != candidate {
            self.report(
                "I-1 one vote in a term",
                "\(group): \(node.id) votes for \(before) and \(candidate) in term \(term)")
        }
        self.groups[group, default: Group()].votes[term, default: [:]][node.id] = candidate
        if node.hardStates[group] != HardState(term: term, vote: candidate) {
            self.report(
                "C-09 durable before said",
                "\(group): \(node.id) votes in term \(term), which is not on its disk")
        }
    }

    /// C-16, C-42: a node that must not lead leads nothing, even groups it has opened since it
    /// knows. Called after every step of a node.
    mutating func leads(_ replica: Replica, on host: ReplicaHost) {
        guard replica.raft.role == .leader, host.liveness.isInhibited || replica.raft.isInhibited
        else { return }
        self.report(
            "C-16 inhibited nodes lead nothing",
            "\(replica.group): \(replica.node) leads term \(replica.raft.term) although it must not"
        )
    }

    /// Called after everything that a node does.
    mutating func goesBy(_ node: NodeID, _ replica: Replica, at now: Int64) {
        let configuration = replica.raft.configuration
        let known = self.groups[replica.group]?.inForce[node]?.last?.configuration
        guard known != configuration else { return }
        self.groups[replica.group, default: Group()].inForce[node, default: []].append(
            (now, configuration))
    }

    /// C-03, C-49: a leader answers a read once a majority has confirmed, after the read arrived,
    /// that it leads. A majority of any configuration that was in force meanwhile counts. A
    /// confirmed read may wait for its rows while voters change.
    mutating func answersRead(_ replica: Replica, askedAt: Int64) {
        // It answered before it was deposed, in the same call.
        guard replica.raft.role == .leader else { return }
        if replica.raft.lacksState {
            self.report(
                "I-5 read from rows",
                "\(replica.group): \(replica.node) answers a read, and has no rows")
        }
        let said = self.groups[replica.group]?.confirmations[replica.node] ?? [:]
        let voters = said.filter { $0.value >= askedAt }.map(\.key) + [replica.node]
        let inForce = self.groups[replica.group]?.inForce[replica.node] ?? []
        let first = inForce.lastIndex { $0.since <= askedAt } ?? inForce.startIndex
        let mayGoBy = inForce[first...].map(\.configuration) + [replica.raft.configuration]
        if !mayGoBy.contains(where: { $0.isQuorum(voters) }) {
            self.report(
                "I-5 read confirmed",
                "\(replica.group): \(replica.node) answers a read that was asked when only "
                    + voters.sorted().map(\.description).joined(separator: " ") + " followed it")
        }
    }

    // MARK: What is decided

    /// I-1: one leader in a term, chosen by a majority, and its log holds every committed entry.
    mutating func becameLeader(_ leading: SimulatedNode, _ replica: Replica) {
        let node = leading.id
        let group = replica.group
        let term = replica.raft.term
        if let other = self.groups[group, default: Group()].leaders[term] {
            self.report("I-1 election safety", "\(group): \(node) and \(other) lead term \(term)")
        }
        self.groups[group, default: Group()].leaders[term] = node
        var voters = (self.groups[group]?.votes[term] ?? [:]).filter { $0.value == node }.map(\.key)
        if leading.hardStates[group] == HardState(term: term, vote: node), !voters.contains(node) {
            voters.append(node)
        }
        if !replica.raft.configuration.isQuorum(voters) {
            self.report(
                "I-1 elected by a majority",
                "\(group): \(node) leads term \(term) by the votes of "
                    + voters.sorted().map(\.description).joined(separator: " "))
        }
        let committed = self.groups[group]?.committed ?? []
        let log = replica.raft.log
        guard let last = committed.last else { return }
        let index = LogIndex(UInt64(committed.count))
        // A leader of an older term than the entry's may be behind: it cannot commit anything.
        guard last <= term else { return }
        if index > log.base.index, log.term(at: index) != last {
            self.report(
                "I-1 leader completeness",
                "\(group): \(node) leads term \(term) without entry \(index)@\(last)")
        }
    }

    /// I-2: a committed entry never changes, and a leader commits by rule.
    ///
    /// - Parameter before: what the same process took for committed when it was last looked at.
    mutating func committed(
        _ holder: SimulatedNode, _ replica: Replica, since before: LogIndex?,
        disks: [SimulatedNode]
    ) {
        let node = holder.id
        let group = replica.group
        let raft = replica.raft
        if let before, raft.commit < before {
            self.report(
                "I-2 commit never falls",
                "\(group): \(node) goes back from \(before) to \(raft.commit)")
        }
        if let term = raft.log.term(at: raft.commit), raft.log.lastPoint.term < term {
            self.report("I-2 terms never fall", "\(group): \(node) keeps a tail of an older term")
        }
        if let before, raft.role == .leader, raft.commit > before {
            self.commits(holder, replica, since: before, disks: disks)
        }
        if self.view != nil { self.confirms(replica) }
        var index = max(before ?? .zero, raft.log.base.index)
        while index < raft.commit {
            index = index.next
            guard let term = raft.log.term(at: index) else { continue }
            let position = Int(index.raw) - 1
            let known = self.groups[group, default: Group()].committed.count
            if position < known {
                let other = self.groups[group]!.committed[position]
                if other != term {
                    self.report(
                        "I-2 committed entries",
                        "\(group): entry \(index) is of term \(term) on \(node), was of \(other)")
                }
            } else if position == known {
                self.groups[group, default: Group()].committed.append(term)
            }
        }
    }

    /// C-02, I-11: a leader commits through an entry of its own term that a majority of the
    /// configuration in force has on disk.
    private mutating func commits(
        _ node: SimulatedNode, _ replica: Replica, since before: LogIndex, disks: [SimulatedNode]
    ) {
        let group = replica.group
        let log = replica.raft.log
        let commit = replica.raft.commit
        guard let term = log.term(at: commit) else { return }
        if term != replica.raft.term {
            self.report(
                "C-02 own term",
                "\(group): \(node.id) commits \(commit)@\(term) in term \(replica.raft.term)")
        }
        // A joint configuration that this commits was in force until now; the one after it is
        // already in force.
        let there = log.configuration(at: commit)
        let inForce =
            there.isJoint && there != log.configuration(at: before) ? there : log.configuration
        let holders = disks.filter { $0.owns(commit, of: term, in: group) }.map(\.id)
        if !inForce.isQuorum(holders) {
            self.report(
                "I-11 durable before committed",
                "\(group): \(node.id) commits \(commit)@\(term), which is durable only on "
                    + holders.map(\.description).joined(separator: " "))
        }
    }

    /// M-01, M-02: one change at a time, and none before the leader knows what is committed.
    mutating func changes(_ replica: Replica, at point: LogPoint) {
        let raft = replica.raft
        guard point.index > raft.commit else { return }
        if raft.log.term(at: raft.commit) != raft.term {
            self.report(
                "M-01 change before own term",
                "\(replica.group): \(replica.node) changes members at \(point.index)")
        }
        if raft.log.configuration(at: point.index.previous)
            != raft.log.configuration(at: raft.commit)
        {
            self.report(
                "M-02 two changes",
                "\(replica.group): \(replica.node) changes members at \(point.index)")
        }
    }

    /// M-04: what a replica goes by is what the entries say.
    mutating func checkConfiguration(_ replica: Replica) {
        let index = replica.raft.handed
        // A newcomer knows of nobody until the log has told it.
        guard !replica.raft.log.configuration(at: index).voters.isEmpty else { return }
        guard let known = self.groups[replica.group]?.configuration(at: index),
            replica.raft.log.configuration(at: index) != known
        else { return }
        self.report(
            "M-04 configuration", "\(replica.group): \(replica.node) has another one at \(index)")
    }

    /// I-4, M-04: a snapshot never takes a state back, and brings the configuration of its index.
    mutating func installs(
        _ node: NodeID, _ group: GroupID, _ identity: SnapshotIdentity, over applied: LogIndex
    ) {
        let mayStay = self.rotten[group] == node
        if identity.index < applied || identity.index == applied && !mayStay {
            self.report(
                "I-4 state goes back", "\(group): \(node) at \(applied) installs \(identity.index)")
        }
        if let known = self.groups[group]?.configuration(at: identity.index),
            known != identity.configuration
        {
            self.report(
                "M-04 configuration", "\(group): a snapshot at \(identity.index) has another one")
        }
    }

    /// I-2, I-3, I-12: the same entry with the same effect on every replica, in the order of time.
    /// - Returns: whether no other replica was there before.
    @discardableResult
    mutating func applied(_ node: NodeID, _ group: GroupID, _ entry: Entry, _ digest: StateDigest)
        -> Bool
    {
        if self.rotten[group] == node { return false }
        let content = Self.hash(entry)
        let position = Int(entry.index.raw) - 1
        let known = self.groups[group, default: Group()].applied.count
        if position < known {
            let other = self.groups[group]!.applied[position]
            if other.term != entry.term || other.content != content {
                self.report(
                    "I-2 state machine safety",
                    "\(group): \(node) applies \(entry.index)@\(entry.term), "
                        + "another had \(entry.index)@\(other.term)")
            } else if other.digest != digest {
                self.report(
                    "I-3 equal state", "\(group): \(node) has another state at \(entry.index)")
            }
        } else if position == known {
            if let last = self.groups[group]!.applied.last, entry.time <= last.time {
                self.report("I-12 time", "\(group): time goes back at \(entry.index)")
            }
            self.groups[group, default: Group()].applied.append(
                Applied(term: entry.term, content: content, time: entry.time, digest: digest))
            if entry.kind == .configuration,
                let configuration = try? Configuration(decoding: entry.payload)
            {
                self.groups[group, default: Group()].configurations.append(
                    (entry.index, configuration))
            }
            return true
        } else {
            self.report(
                "I-2 state machine safety", "\(group): \(node) skipped to \(entry.index)")
        }
        return false
    }

    /// I-3 for a state that did not come from entries.
    mutating func installed(
        _ node: NodeID, _ group: GroupID, _ index: LogIndex, _ digest: StateDigest
    ) {
        let position = Int(index.raw) - 1
        guard position >= 0, let applied = self.groups[group]?.applied, position < applied.count,
            applied[position].digest != digest, self.rotten[group] != node
        else { return }
        self.report("I-3 equal state", "\(group): \(node) installed another state at \(index)")
    }

    /// I-11: what is acknowledged is on the disks of a majority.
    mutating func acknowledged(
        _ node: NodeID, _ replica: Replica, at index: LogIndex, disks: [SimulatedNode]
    ) {
        guard let applied = self.groups[replica.group]?.applied, index > .zero,
            Int(index.raw) <= applied.count
        else {
            self.report(
                "I-11 durable before acknowledged", "\(replica.group): \(index) was never applied")
            return
        }
        let term = applied[Int(index.raw) - 1].term
        let holders = disks.filter { $0.owns(index, of: term, in: replica.group) }.map(\.id)
        // The configuration may have moved on since the entry was committed: either will do.
        let raft = replica.raft
        let candidates = [raft.configuration, raft.log.configuration(at: index)].flatMap {
            [$0, Configuration(voters: $0.voters)]
                + ($0.isJoint ? [Configuration(voters: $0.incoming)] : [])
        }
        if !candidates.contains(where: { $0.isQuorum(holders) }) {
            self.report(
                "I-11 durable before acknowledged",
                "\(replica.group): \(index) was acknowledged by \(node) and is durable only on "
                    + holders.map(\.description).joined(separator: " "))
        }
    }

    /// I-11 of one node: what a process was told is on stable storage, the next one finds.
    mutating func recovered(
        _ node: NodeID, _ group: GroupID, _ promised: SimulatedNode.Promised, log: SegmentedLog,
        state: LogIndex
    ) {
        func fail(_ text: String) {
            self.report("I-11 durable survives", "\(group): \(node) \(text)")
        }
        let vote = log.hardState(of: group)
        if let before = promised.hardState {
            if (vote?.term ?? .zero) < before.term { fail("forgot term \(before.term)") }
            if vote?.term == before.term, before.vote != nil, vote?.vote != before.vote {
                fail("forgot its vote in term \(before.term)")
            }
        }
        if state < promised.state, !promised.hasLostState {
            fail("had its state at \(promised.state), finds \(state)")
        }
        // Rotten entries are named, and come back from peers. Of a batch that cannot be read not
        // even the terms are known.
        let named = log.damage.entries.first { $0.group == group }?.indexes ?? []
        for (position, term) in promised.terms.enumerated() {
            let index = LogIndex(promised.start.raw + 1 + UInt64(position))
            guard index > log.start(of: group).index, !named.contains(index) else { continue }
            if log.term(of: group, at: index) != term { fail("lost entry \(index)@\(term)") }
        }
    }

    /// I-2, log matching: where two logs agree on a term, they agree before it.
    mutating func compareLogs(_ one: Replica, _ other: Replica) {
        let (a, b) = (one.raft.log, other.raft.log)
        let least = max(a.base.index, b.base.index)
        var index = min(a.last, b.last)
        while index > least, a.term(at: index) != b.term(at: index) { index = index.previous }
        while index > least {
            if a.term(at: index) != b.term(at: index) {
                self.report(
                    "I-2 log matching",
                    "\(one.group): \(one.node) and \(other.node) part before \(index)")
                return
            }
            index = index.previous
        }
    }

    private static func hash(_ entry: Entry) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func mix(_ value: UInt64) { hash = (hash ^ value) &* 0x100_0000_01B3 }
        mix(entry.term.raw)
        mix(UInt64(entry.kind.rawValue))
        mix(UInt64(bitPattern: entry.time.milliseconds))
        for byte in entry.payload { mix(UInt64(byte)) }
        return hash
    }
}
