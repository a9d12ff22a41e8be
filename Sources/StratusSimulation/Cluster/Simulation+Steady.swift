import StratusCluster
import StratusConsensus
import StratusModel
import StratusStorage

// C-31, M-24: a member that has lost its rows, or was away, must catch up while load goes on and nothing else goes wrong.
// What only converges once the load has stopped does not converge in a cluster that is used.
extension Simulation {
    /// A member is close enough when it streams and lacks no more than so many entries.
    private static let lagMax: UInt64 = 64
    /// Of one group. Each needs one or two; a snapshot that is begun again and again shows as more.
    private static let snapshotCountMax = 12

    func beginSteady() {
        self.phase = .steady
        self.note("faults end, load goes on")
        self.endFaults()
        self.snapshotsBefore = self.report.reached[.snapshotNeeded] ?? 0
        self.steadyDeadline = self.now + self.options.steadyTime.clampedNanoseconds
        if let node = self.nodes.last(where: { !self.leadsAnything($0) }), node.isUp {
            self.crash(node, losesPower: false, backAfter: 300_000_000)
            for group in self.groups { self.loseRows(of: group, on: node) }
        }
        self.queue.add(.checkStreaming, at: self.now + 1_000_000_000)
    }

    private func leadsAnything(_ node: SimulatedNode) -> Bool {
        self.groups.contains { node.host?.replica(of: $0)?.raft.role == .leader }
    }

    func checkStreaming() {
        guard self.phase == .steady else { return }
        let snapshotCount = (self.report.reached[.snapshotNeeded] ?? 0) - self.snapshotsBefore
        if snapshotCount > Self.snapshotCountMax * self.groups.count {
            self.invariants.report(
                "C-31 catches up under load",
                "\(snapshotCount) snapshots were needed since the faults ended")
        }
        let laggards = self.groups.compactMap { self.laggard(in: $0) }
        guard let first = laggards.first else { return self.beginLiveness() }
        guard self.now < self.steadyDeadline else {
            return self.invariants.report("C-31 catches up under load", first)
        }
        self.queue.add(.checkStreaming, at: self.now + 50_000_000)
    }

    /// Who of a group does not stream, or is far behind; nil: nobody.
    private func laggard(in group: GroupID) -> String? {
        let replicas = self.nodes.compactMap { $0.host?.replica(of: group) }
        guard
            let leader = replicas.filter({ $0.raft.role == .leader }).max(by: {
                $0.raft.term < $1.raft.term
            })
        else { return "\(group): nobody leads" }
        if let replica = replicas.first(where: { $0.raft.lacksState }) {
            return "\(group): \(replica.node) lacks its rows"
        }
        for peer in leader.raft.peers {
            if peer.mode != .streaming {
                return
                    "\(group): \(peer.node) is not streaming but \(peer.mode), behind \(peer.match)"
            }
            let lag = leader.raft.log.last.raw - min(leader.raft.log.last.raw, peer.match.raw)
            if lag > Self.lagMax { return "\(group): \(peer.node) lacks \(lag) entries" }
        }
        return nil
    }

    /// C-17: what waits in memory for a disk that is full or slow has a bound. Called after everything that a node does.
    func checkBounds(of replica: Replica, on node: SimulatedNode) {
        // Mail and the orders of the system group are never gated: their senders bound them.
        guard self.records == nil, self.placed == nil else { return }
        let tuning = self.tuning.raft
        // One that compares carries two values.
        let entryMax = max(tuning.appendSizeMax, 2 * self.options.valueSizeMax.raw + 1_024)
        let bound = max(tuning.unsyncedSizeMax, tuning.uncommittedSizeMax) + entryMax + 1_024
        if replica.raft.unsyncedSize > bound {
            self.invariants.report(
                "C-17 bounded memory",
                "\(replica.group): \(replica.raft.unsyncedSize) bytes wait for the disk of \(node.id), of \(bound)"
            )
        }
        for peer in replica.raft.peers where peer.flightSize > tuning.inFlightSizeMax + entryMax {
            self.invariants.report(
                "C-17 bounded memory",
                "\(replica.group): \(peer.flightSize) bytes are on their way to \(peer.node)")
        }
    }
}
