import StratusCluster
import StratusConsensus
import StratusModel
import StratusStorage

/// What went wrong, if anything did: the first broken promise of a run.
package struct Violation: Error, Sendable, Equatable, CustomStringConvertible {
    package let rule: String
    package let text: String

    package init(_ rule: String, _ text: String) {
        self.rule = rule
        self.text = text
    }

    package var description: String { "\(self.rule): \(self.text)" }
}

/// Everything that must hold in every state of a cluster, checked as it runs by somebody who sees all
/// nodes at once. The numbers are the fault catalogue's.
struct Invariants {
    private struct Applied {
        var term: Term
        var content: UInt64
        var time: HybridTime
        var digest: StateDigest
    }

    private struct Group {
        /// By index, from 1: what any replica applied there first.
        var applied: [Applied] = []
        /// By index, from 1: the term of what any replica took for committed.
        var committed: [Term] = []
        var leaders: [Term: NodeID] = [:]
    }

    private var groups: [GroupID: Group] = [:]
    private(set) var violation: Violation?

    mutating func report(_ rule: String, _ text: String) {
        if self.violation == nil { self.violation = Violation(rule, text) }
    }

    /// I-1: at most one leader in a term, and its log holds every committed entry.
    mutating func becameLeader(_ node: NodeID, _ replica: Replica) {
        let group = replica.group
        let term = replica.raft.term
        if let other = self.groups[group, default: Group()].leaders[term], other != node {
            self.report("I-1 election safety", "\(group): \(node) and \(other) lead term \(term)")
        }
        self.groups[group, default: Group()].leaders[term] = node
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

    /// I-2: a committed entry never changes.
    mutating func committed(_ node: NodeID, _ replica: Replica, since before: LogIndex) {
        let group = replica.group
        let raft = replica.raft
        var index = max(before, raft.log.base.index)
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

    /// I-2, I-3, I-12: the same entry with the same effect on every replica, in the order of time.
    mutating func applied(_ node: NodeID, _ group: GroupID, _ entry: Entry, _ digest: StateDigest) {
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
        } else {
            self.report(
                "I-2 state machine safety", "\(group): \(node) skipped to \(entry.index)")
        }
    }

    /// I-3 for a state that did not come from entries.
    mutating func installed(
        _ node: NodeID, _ group: GroupID, _ index: LogIndex, _ digest: StateDigest
    ) {
        let position = Int(index.raw) - 1
        guard position >= 0, let applied = self.groups[group]?.applied, position < applied.count,
            applied[position].digest != digest
        else { return }
        self.report("I-3 equal state", "\(group): \(node) installed another state at \(index)")
    }

    /// I-11: what is acknowledged is on the disks of a majority.
    mutating func acknowledged(
        _ node: NodeID, _ replica: Replica, at index: LogIndex, disks: [SimulatedNode]
    ) {
        guard let applied = self.groups[replica.group]?.applied,
            Int(index.raw) <= applied.count
        else {
            self.report(
                "I-11 durable before acknowledged", "\(replica.group): \(index) was never applied")
            return
        }
        let term = applied[Int(index.raw) - 1].term
        let holders = disks.filter { $0.holds(index, of: term, in: replica.group) }.map(\.id)
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
        if state < promised.state { fail("had its state at \(promised.state), finds \(state)") }
        for (position, term) in promised.terms.enumerated() {
            let index = LogIndex(promised.start.raw + 1 + UInt64(position))
            guard index > log.start(of: group).index else { continue }
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
