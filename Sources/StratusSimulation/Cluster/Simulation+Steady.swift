import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusStorage

// C-31, M-24: a member that has lost its rows, or was away, must catch up while load goes on and
// nothing else goes wrong. What only converges once the load has stopped does not converge in a
// cluster that is used.
extension Simulation {
    /// A member is close enough when it streams and lacks no more than so many entries.
    private static let lagMax: UInt64 = 64
    /// The most snapshots allowed for one group. Each needs one or two; a snapshot that is begun
    /// again and again shows as more.
    private static let snapshotCountMax = 12

    func beginSteady() {
        self.phase = .steady
        self.note("faults end, load goes on")
        self.endFaults()
        self.snapshotsBefore = self.report.reached[.snapshotNeeded] ?? 0
        self.steadyDeadline = self.now + self.options.steadyTime.clampedNanoseconds
        if self.options.tearsTail {
            self.beginTornTail()
        } else if self.options.rotsRows {
            self.rotRows()
        } else if self.options.standstillTime > .zero {
            self.standStill()
        } else if let node = self.nodes.last(where: { !self.leadsAnything($0) }), node.isUp {
            for struck in self.toLoseRows(node) {
                self.crash(struck, losesPower: false, backAfter: 300_000_000)
                for group in self.groups { self.loseRows(of: group, on: struck) }
            }
        }
        self.queue.add(.check(.streaming), at: self.now + 1_000_000_000)
    }

    /// Core audit 3.3: of three, two may lose their rows and keep their logs, and the third goes on
    /// from its rows.
    private func toLoseRows(_ first: SimulatedNode) -> [SimulatedNode] {
        if self.nodes.count == 3, self.seedStrikesTwo,
            let second = self.nodes.last(where: { $0.id != first.id }), second.isUp,
            self.mayLoseRows([first, second])
        {
            return [first, second]
        }
        return self.mayLoseRows([first]) ? [first] : []
    }

    /// Whether a node that has rows can be brought up to date by the logs of those that have none:
    /// nobody else can send what is before these.
    private func mayLoseRows(_ struck: [SimulatedNode]) -> Bool {
        for group in self.groups {
            var (first, last) = (LogIndex.zero, LogIndex.zero)
            for node in self.nodes {
                guard let raft = node.host?.replica(of: group)?.raft else { continue }
                if raft.lacksState || struck.contains(where: { $0.id == node.id }) {
                    first = max(first, raft.log.base.index)
                } else {
                    last = max(last, raft.durable)
                }
            }
            if last < first { return false }
        }
        return true
    }

    private func drawn(_ count: Int) -> Int {
        Int.random(in: 0..<count, using: &self.faultRandom)
    }

    private var seedStrikesTwo: Bool {
        Int.random(in: 0..<2, using: &self.faultRandom) == 0
    }

    /// Core audit 2: the others go on, and the node's memory must not grow.
    private func standStill() {
        guard let node = self.nodes.last(where: { !self.leadsAnything($0) }), node.isUp else {
            return
        }
        let time = self.options.standstillTime.clampedNanoseconds
        self.standstill = (node.id, self.now + time)
        self.steadyDeadline += time
        self.note("the disk of \(node.id) \(self.options.standsStillFull ? "is full" : "hangs")")
        if self.options.standsStillFull {
            node.files.setCapacity(node.files.usedSize)
        } else {
            node.slowness = time
        }
    }

    private func endStandstill(of node: SimulatedNode) {
        self.note("the disk of \(node.id) works again")
        self.standstill = nil
        self.snapshotsBefore = self.report.reached[.snapshotNeeded] ?? 0
        node.slowness = 0
        node.files.setCapacity(nil)
    }

    /// Checks the memory that waits for a disk that takes nothing: no more than the node's groups
    /// may have unsynced.
    private func checkQueue(of node: SimulatedNode) {
        guard let log = node.log else { return }
        let bound = self.groups.count * self.unsyncedBound
        self.report.waitingSizeBound = bound
        self.report.waitingSizeMax = max(self.report.waitingSizeMax, log.queuedSize.raw)
        if log.queuedSize.raw > bound {
            self.invariants.report(
                "C-17 bounded memory",
                "\(log.queuedSize.raw) bytes wait for the disk of \(node.id), of \(bound)")
        }
    }

    /// The most that one replica may have unsynced.
    private var unsyncedBound: Int {
        let tuning = self.tuning.raft
        return max(tuning.unsyncedSizeMax, tuning.uncommittedSizeMax) + self.entryBound + 1_024
    }

    /// One that compares carries two values.
    private var entryBound: Int {
        max(self.tuning.raft.appendSizeMax, 2 * self.options.valueSizeMax.raw + 1_024)
    }

    /// Core audit 11, core audit 3.2: of a member that leads nothing, or of the leader. What the leader
    /// answers until somebody finds it is given to nobody: see ``answersFromRot(_:of:)``. In half of
    /// the runs a second member loses its rows, and needs those of who is left.
    private func rotRows() {
        let ofLeader = self.drawn(2) == 0
        let needsSecond = self.nodes.count > 2 && self.drawn(2) == 0
        for group in self.groups {
            guard
                let leader = self.nodes.last(where: {
                    $0.host?.replica(of: group)?.raft.role == .leader
                }),
                let node = ofLeader ? leader : self.nodes.last(where: { !self.leadsAnything($0) }),
                let partition = node.partitions[group], partition.applied > .zero
            else { continue }
            do throws(StoreError) {
                for register in 0..<self.options.registerCount {
                    let key = RegisterName(group: group, register: register).key
                    try partition.store.rot(.record, key, to: [0xDE, 0xAD])
                }
            } catch { return self.note("\(group) \(node.id) cannot rot: \(error)") }
            self.invariants.rotten[group] = node.id
            self.note("\(group) \(node.id) rots in its rows")
        }
        if needsSecond { self.strikeBesideRot() }
        if self.options.checksRows { self.checkRows() }
    }

    /// A second member loses its rows, as long as a sound one is left.
    private func strikeBesideRot() {
        let rotten = Set(self.invariants.rotten.values)
        guard let second = self.nodes.first(where: { !rotten.contains($0.id) && $0.isUp }),
            self.nodes.contains(where: { !rotten.contains($0.id) && $0.id != second.id && $0.isUp }
            ),
            self.mayLoseRows([second])
        else { return }
        self.crash(second, losesPower: false, backAfter: 300_000_000)
        for group in self.groups { self.loseRows(of: group, on: second) }
    }

    /// What a node's scrub does: every replica adds up its rows, one after the other.
    func checkRows() {
        guard self.phase == .steady else { return }
        for node in self.nodes where node.isUp {
            let group = self.groups[self.drawn(self.groups.count)]
            self.enter(node, group) { host, now, effects in
                host.with(group, at: now, into: &effects) { replica, out in
                    replica.checkRows(isPaced: true, at: now, into: &out)
                }
            }
        }
        self.queue.add(.check(.rows), at: self.now + 500_000_000)
    }

    /// Whether the node answers from rows that have rotted, which nobody has found yet.
    func answersFromRot(_ node: SimulatedNode, of group: GroupID) -> Bool {
        guard self.invariants.rotten[group] == node.id else { return false }
        if self.invariants.foundRotten.contains(group) {
            self.invariants.report(
                "I-5 read from rows", "\(group): \(node.id) answers from rows it knows to be wrong")
        }
        return true
    }

    func diverged(_ group: GroupID, on node: SimulatedNode, at index: LogIndex) {
        self.note("\(group) \(node.id) finds that it differs at \(index)")
        guard self.invariants.rotten[group] != node.id else {
            self.invariants.foundRotten.insert(group)
            return
        }
        self.invariants.report("I-3 equal state", "\(group): \(node.id) differs at \(index)")
    }

    func foundRotten(_ group: GroupID, on node: SimulatedNode, at index: LogIndex) {
        self.note("\(group) \(node.id) finds that its rows are not what it applied, at \(index)")
        guard self.invariants.rotten[group] != node.id else {
            self.invariants.foundRotten.insert(group)
            // What was found outlives the process.
            if self.drawn(2) == 0 {
                self.queue.add(.check(.endRotten(node.id)), at: self.now + 1_000_000)
            }
            return
        }
        self.invariants.report("I-3 rows as applied", "\(group): \(node.id) is rotten at \(index)")
    }

    func rebuilt(_ group: GroupID, on node: SimulatedNode, at index: LogIndex) {
        self.note("\(group) \(node.id) has other rows since \(index)")
        if self.invariants.rotten[group] == node.id {
            self.invariants.rotten[group] = nil
            self.invariants.foundRotten.remove(group)
        }
        guard let partition = node.partitions[group] else { return }
        self.invariants.installed(node.id, group, partition.applied, partition.digest)
    }

    private func leadsAnything(_ node: SimulatedNode) -> Bool {
        self.groups.contains { node.host?.replica(of: $0)?.raft.role == .leader }
    }

    func checkStreaming() {
        guard self.phase == .steady else { return }
        if let (id, until) = self.standstill {
            self.checkQueue(of: self.node(id))
            self.queue.add(.check(.streaming), at: self.now + 50_000_000)
            if self.now >= until { self.endStandstill(of: self.node(id)) }
            return
        }
        let snapshotCount = (self.report.reached[.snapshotNeeded] ?? 0) - self.snapshotsBefore
        if snapshotCount > Self.snapshotCountMax * self.groups.count {
            self.invariants.report(
                "C-31 catches up under load",
                "\(snapshotCount) snapshots were needed since the faults ended")
        }
        let laggards = self.groups.compactMap { self.laggard(in: $0) }
        guard let first = laggards.first ?? self.tornTailProblem else {
            return self.beginLiveness()
        }
        guard self.now < self.steadyDeadline else {
            let isRotten = !self.invariants.rotten.isEmpty
            return self.invariants.report(
                isRotten ? "I-3 divergence is found" : "C-31 catches up under load", first)
        }
        self.queue.add(.check(.streaming), at: self.now + 50_000_000)
    }

    /// Describes a replica of a group that does not stream or is far behind; nil if there is none.
    private func laggard(in group: GroupID) -> String? {
        let replicas = self.nodes.compactMap { $0.host?.replica(of: group) }
        if let node = self.invariants.rotten[group] {
            return "\(group): the rows of \(node) have rotted, and are not replaced"
        }
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

    /// C-17: what waits in memory for a disk that is full or slow has a bound. Called after
    /// everything that a node does.
    func checkBounds(of replica: Replica, on node: SimulatedNode) {
        // Mail and the orders of the system group are never gated: their senders bound them.
        guard self.records == nil, self.placed == nil else { return }
        let tuning = self.tuning.raft
        let bound = self.unsyncedBound
        if replica.raft.unsyncedSize > bound {
            self.invariants.report(
                "C-17 bounded memory",
                "\(replica.group): \(replica.raft.unsyncedSize) bytes wait for the disk of \(node.id), of \(bound)"
            )
        }
        // Beside what is kept on purpose: what is not durable here, and what is not committed.
        let tailBound = tuning.tailSizeMax + 2 * bound
        if replica.raft.log.tailSize > tailBound {
            self.invariants.report(
                "C-17 bounded memory",
                "\(replica.group): \(node.id) keeps \(replica.raft.log.tailSize) bytes of entries in memory, of \(tailBound)"
            )
        }
        for peer in replica.raft.peers
        where peer.flightSize > tuning.inFlightSizeMax + self.entryBound {
            self.invariants.report(
                "C-17 bounded memory",
                "\(replica.group): \(peer.flightSize) bytes are on their way to \(peer.node)")
        }
    }
}
