import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusStorage

// Injects the faults, and lets the cluster recover from them.
extension Simulation {
    func count(_ fault: SimulationOptions.Fault) {
        self.report.faultCounts[fault, default: 0] += 1
    }

    private func draw(_ count: Int) -> Int {
        Int.random(in: 0..<max(1, count), using: &self.faultRandom)
    }

    func drawTime(_ range: ClosedRange<Int64>) -> Int64 {
        Int64.random(in: range, using: &self.faultRandom) * 1_000_000
    }

    func handle(_ event: FaultEvent) {
        switch event {
        case .draw: self.strike()
        case .powerLoss(let id, let life):
            guard self.phase == .safety, self.node(id).incarnation == life else { return }
            self.count(.crashOnRarePath)
            self.crash(self.node(id), losesPower: true, backAfter: self.restartTime())
        case .cut(let links, let time): self.cut(links, for: time)
        case .heal(let number): self.cuts.removeAll { $0.number == number }
        case .restart(let id):
            if !self.node(id).isUp, !self.node(id).isOut { self.start(self.node(id)) }
        case .diskRoom(let id): self.node(id).files.setCapacity(nil)
        }
    }

    func scheduleFault() {
        let most = 2 * self.options.faultInterval.clampedNanoseconds
        self.queue.add(
            .fault(.draw), at: self.now + Int64.random(in: 1...most, using: &self.faultRandom))
    }

    private static let striking: [SimulationOptions.Fault] = [
        .partition, .oneWayCut, .processCrash, .powerLoss, .pause, .clockDrift, .clockJump,
        .slowDisk, .membership, .transfer, .flappingLink, .crashInCall, .fullDisk, .deafNode,
        .muteNode, .bridge,
    ]

    // MARK: Striking

    func strike() {
        guard self.phase == .safety else { return }
        defer { self.scheduleFault() }
        let possible = Self.striking.filter(self.options.faults.contains)
        guard !possible.isEmpty else { return }
        let fault = possible[self.draw(possible.count)]
        let node = self.struck()
        self.count(fault)
        self.mix(8, node.id.raw, 0, UInt64(Self.striking.firstIndex(of: fault) ?? 0), 0)
        self.note("fault \(fault.rawValue) at \(node.id)")
        switch fault {
        case .partition: self.partition()
        case .oneWayCut:
            let other = self.nodes[self.draw(self.nodes.count)]
            self.cut([(node.id, other.id)], for: self.drawTime(50...3_000))
        case .flappingLink: self.flap(node)
        case .processCrash:
            self.crash(node, losesPower: false, backAfter: self.restartTime())
        case .powerLoss:
            let isEverywhere = self.draw(4) == 0
            for other in isEverywhere ? self.nodes : [node] {
                self.crash(other, losesPower: true, backAfter: self.restartTime())
            }
        case .pause:
            let until = self.now + self.drawTime(10...3_000)
            node.pausedUntil = max(node.pausedUntil, until)
            self.timeline?.paused(node.id, from: self.now, to: until)
        case .clockDrift: node.setRate(Int64(900 + self.draw(201)), at: self.now)
        case .clockJump:
            // The time of a group's entries never goes back: if a reservation was made an hour
            // ahead, its deadline takes that hour to pass.
            let jumps: [Int64] =
                self.records?.buckets == nil && self.hasClients
                ? [3_600_000, -3_600_000, 700, -700, 40, -40] : [700, -700, 40, -40]
            node.wallOffset = jumps[self.draw(jumps.count)]
        case .slowDisk: node.slowness = self.draw(2) == 0 ? 0 : self.drawTime(20...2_000)
        case .membership: if self.placed == nil { self.changeMembers() } else { self.operate() }
        case .transfer: self.transfer()
        case .crashInCall:
            // The process ends at one of its next operations on the disk, whatever it is.
            node.files.plan(DiskFault(at: node.files.operationCount + 1 + self.draw(60), .crash))
        case .fullDisk:
            node.files.setCapacity(
                ByteCount(node.files.usedSize.raw + self.draw(5) * self.draw(4_096)))
            self.queue.add(.fault(.diskRoom(node.id)), at: self.now + self.drawTime(20...2_000))
        case .deafNode:
            self.cut(self.nodes.map { ($0.id, node.id) }, for: self.drawTime(100...3_000))
        case .muteNode:
            self.cut(self.nodes.map { (node.id, $0.id) }, for: self.drawTime(100...3_000))
        case .bridge: self.bridge()
        case .lostRows, .rottenLog, .crashOnRarePath, .loss, .duplication, .longDelay, .failedSync,
            .failedApply, .tinyLimits:
            break
        }
    }

    private func struck() -> SimulatedNode {
        if self.options.aimsAtSyncs, self.draw(2) == 0,
            let node = self.nodes.first(where: \.isSyncing)
        {
            return node
        }
        if self.options.aimsAtLeaders, self.draw(2) == 0,
            let leader = self.leader(of: self.groups[self.draw(self.groups.count)])
        {
            return leader
        }
        // A node that is down already cannot be struck.
        let up = self.options.isBackSoon ? self.nodes.filter(\.isUp) : []
        let possible = up.isEmpty ? self.nodes : up
        return possible[self.draw(possible.count)]
    }

    /// Draws a crash for a node on a rare path: the power goes, now or in a moment.
    func passed(_ path: RarePath, _ node: SimulatedNode) {
        self.report.reached[path, default: 0] += 1
        if path == .acknowledgedTailOwed { self.tornTailIsOwed(by: node) }
        guard self.options.faults.contains(.crashOnRarePath), self.phase == .safety,
            self.report.reached[path]! < 20, self.draw(3) == 0
        else { return }
        let delay = self.draw(2) == 0 ? 0 : self.drawTime(0...5)
        self.queue.add(
            .fault(.powerLoss(node.id, life: node.incarnation)), at: self.now + delay)
    }

    /// S-34: a process that makes its predecessor's data durable may be stopped too. Its later
    /// writes are torn, in the system's cache alone or by a power cut.
    func aimAtStart(of node: SimulatedNode) {
        guard self.isAimedAt(node) else { return }
        node.files.clearFaults()
        guard self.phase == .safety else { return }
        let aim = self.draw(4)
        self.count(.crashInCall)
        let delay = [0, 0, self.draw(300), self.draw(3_000)][aim]
        let atHead = self.options.aimsAtHeads && aim >= 2 && self.draw(2) == 0
        node.files.plan(
            DiskFault(
                at: node.files.operationCount + 1 + delay, .crash, isSticky: true,
                kinds: aim < 2 ? [.sync] : [.write], prefix: "log/", offset: atHead ? 0 : nil))
    }

    private func isAimedAt(_ node: SimulatedNode) -> Bool {
        self.options.aimsAtStarts && Int(node.id.raw) <= self.options.aimedNodeCount
    }

    /// The way a process ended that could not start: as one that gave up, or, if a fault was aimed
    /// at it, by a power cut.
    func endOfStart(of node: SimulatedNode) -> DiskRestart {
        self.isAimedAt(node) && node.files.isCrashed ? .powerLoss : .processCrash
    }

    func restartTime() -> Int64 {
        let most = self.options.restartMax.clampedNanoseconds / 1_000_000
        return self.drawTime(1...max(1, most))
    }

    func cut(_ links: [(NodeID, NodeID)], for time: Int64) {
        guard self.phase == .safety else { return }
        self.cutCount += 1
        for (from, to) in links where from != to {
            self.cuts.append((number: self.cutCount, from: from, to: to))
        }
        self.timeline?.cut(links.map { $0 }, from: self.now, to: self.now + time)
        self.queue.add(.fault(.heal(self.cutCount)), at: self.now + time)
    }

    private func partition() {
        let sides = self.nodes.map { _ in self.draw(2) }
        var links: [(NodeID, NodeID)] = []
        for (one, side) in zip(self.nodes, sides) {
            for (other, otherSide) in zip(self.nodes, sides) where side != otherSide {
                links.append((one.id, other.id))
            }
        }
        self.cut(links, for: self.drawTime(50...4_000))
    }

    /// C-13: the leader hears one other node alone; that one and the rest hear each other.
    private func bridge() {
        let group = self.groups[self.draw(self.groups.count)]
        guard let leader = self.leader(of: group) else { return }
        let others = self.nodes.filter { $0.id != leader.id }
        guard !others.isEmpty else { return }
        let bridge = others[self.draw(others.count)].id
        let links = others.map(\.id).filter { $0 != bridge }.flatMap { other in
            [(leader.id, other), (other, leader.id)]
        }
        self.cut(links, for: self.drawTime(500...4_000))
    }

    /// C-39: up and down for a while.
    private func flap(_ node: SimulatedNode) {
        let other = self.nodes[self.draw(self.nodes.count)]
        let links = [(node.id, other.id), (other.id, node.id)]
        for time in 0..<Int64(self.draw(20) + 1) {
            self.queue.add(
                .fault(.cut(links, for: 100_000_000)), at: self.now + time * 200_000_000)
        }
    }

    private func leader(of group: GroupID) -> SimulatedNode? {
        self.nodes.filter { $0.host?.replica(of: group)?.raft.role == .leader }.max {
            ($0.host?.replica(of: group)?.raft.term ?? .zero)
                < ($1.host?.replica(of: group)?.raft.term ?? .zero)
        }
    }

    private func changeMembers() {
        let group = self.groups[self.draw(self.groups.count)]
        guard let node = self.leader(of: group), node.pausedUntil <= self.now else { return }
        let sizes = [1, 2, 3, 3, 3, 4, 5].filter { $0 <= self.nodes.count }
        let ids = self.nodes.map(\.id).shuffled(using: &self.faultRandom)
        let size = sizes[self.draw(sizes.count)]
        var voters = Array(ids.prefix(size))
        var learners = Array(ids.dropFirst(size).prefix(self.draw(3)))
        if self.options.memberSetCount > 0 {
            voters = self.memberSet(self.draw(self.options.memberSetCount))
            learners.removeAll { voters.contains($0) }
        }
        self.nextToken += 1
        let token = RaftGroup.RequestToken(self.nextToken)
        self.note("\(group) \(node.id) is asked for voters \(voters) learners \(learners)")
        self.enter(node) { host, now, effects in
            host.with(group, at: now, into: &effects) { replica, out in
                replica.changeMembers(
                    voters: voters, learners: learners, as: token,
                    wallMilliseconds: node.wall(self.now), at: now, into: &out)
            }
        }
    }

    /// One of few sets, so that changes lead back to earlier ones: half of the nodes each, and then
    /// all of them.
    private func memberSet(_ number: Int) -> [NodeID] {
        let ids = self.nodes.map(\.id)
        switch number {
        case 0: return Array(ids.prefix((ids.count + 1) / 2))
        case 1: return Array(ids.suffix((ids.count + 1) / 2))
        default: return ids
        }
    }

    private func transfer() {
        let group = self.groups[self.draw(self.groups.count)]
        guard let node = self.leader(of: group), node.pausedUntil <= self.now else { return }
        let target = self.nodes[self.draw(self.nodes.count)].id
        self.enter(node) { host, now, effects in
            host.with(group, at: now, into: &effects) { replica, out in
                replica.handle(.transferRequested(to: target), at: now, into: &out)
            }
        }
    }

    // MARK: Coming right

    func beginLiveness() {
        self.phase = .liveness
        self.note("faults end")
        self.endFaults()
        // A change of members that waits for copies may need a node that was spared before.
        if self.placed == nil, self.hasClients { self.leaveOneDead() }
        if self.hasClients { self.closeRegisters() }
        // The last operations go one after another.
        self.convergenceDeadline =
            self.now + self.options.livenessTime.clampedNanoseconds
            + Int64(self.closing.count) * 500_000_000
        if self.hasClients { self.queue.add(.client(.think(0)), at: self.now + 1_000_000_000) }
        self.queue.add(.check(.convergence), at: self.now + 1_000_000_000)
    }

    /// Clients are events of the simulation; those of files and of pushes are tasks.
    var hasClients: Bool { self.assets == nil && self.push == nil }

    func endFaults() {
        self.timeline?.faultsEnded(at: self.now)
        self.cuts = []
        // A pause keeps its end: work put off until then must not be overtaken by new work.
        for node in self.nodes {
            node.setRate(1_000, at: self.now)
            node.wallOffset = 0
            node.slowness = 0
            node.files.clearFaults()
            node.files.setCapacity(nil)
            if !node.isUp, !node.isOut, self.placed?.lost.contains(node.id) != true {
                self.start(node)
            }
        }
    }

    private func closeRegisters() {
        for group in self.clientGroups {
            if self.records != nil {
                self.closing.append(RegisterName(group: group, register: RegisterName.jobs))
            }
            for register in 0..<self.options.registerCount {
                self.closing.append(RegisterName(group: group, register: register))
            }
            self.closing.append(RegisterName(group: group, register: RegisterName.lastWrite))
        }
    }

    /// Damages a disk before a process begins, as an operator's mistake or age would: S-14, S-16,
    /// S-28. A sound copy of every entry and state must be left on a majority. So at most one node
    /// is struck until it is whole again. None is struck while a lost node is not replaced, or if
    /// two are a majority of two.
    func damage(_ node: SimulatedNode) {
        guard self.phase == .safety, node.incarnation > 1, self.options.voterCount > 2,
            self.options.faults.contains(.lostRows) || self.options.faults.contains(.rottenLog),
            !self.nodes.contains(where: \.isImpaired), self.isPlacedWhole
        else { return }
        switch self.draw(4) {
        case 0 where self.options.faults.contains(.lostRows): self.loseRows(node)
        case 1...2 where self.options.faults.contains(.rottenLog): self.rotLog(node)
        default: break
        }
    }

    private func loseRows(_ node: SimulatedNode) {
        self.loseRows(of: self.groups[self.draw(self.groups.count)], on: node)
    }

    func loseRows(of group: GroupID, on node: SimulatedNode) {
        let number = String(group.raw)
        let folder = "partitions/" + String(repeating: "0", count: 5 - number.count) + number + "/"
        let files = node.files.allFiles.filter { $0.raw.hasPrefix(folder) }
        guard !files.isEmpty, let promised = node.promised[group] else { return }
        for path in files { node.files.uproot(path) }
        node.promised[group]?.state = .zero
        // A log that still begins at the first entry makes them again.
        node.promised[group]?.hasLostState = promised.start > .zero
        node.isStruck = true
        self.count(.lostRows)
        self.note("\(group) \(node.id) loses its rows")
    }

    /// Flips one bit, anywhere except where a start must take it for a tear (S-09): at the end of
    /// the newest segment. The next start's findings are compared with the node's promises.
    private func rotLog(_ node: SimulatedNode) {
        let segments = node.files.allFiles.filter { $0.raw.hasSuffix(".seg") }
        guard !segments.isEmpty else { return }
        for _ in 0..<8 {
            let path = segments[self.draw(segments.count)]
            let end = (node.files.contents(of: path) ?? []).lastIndex { $0 != 0 } ?? 0
            let offset = self.draw(end + 1)
            let bit = self.draw(8)
            guard self.mayRot(bit, offset, path, of: node) else { continue }
            node.files.flip(bit: bit, at: offset, of: path)
            node.isStruck = true
            self.count(.rottenLog)
            self.note("\(node.id) \(path) rots at \(offset)")
            return
        }
    }

    /// Whether this bit may flip; tried on a copy.
    ///
    /// A log that cannot name its loss ends its node. That strikes a node seldom, since nothing
    /// else is damaged in the rest of the run. It never strikes one that only a placement table
    /// could replace.
    private func mayRot(_ bit: Int, _ offset: Int, _ path: DiskPath, of node: SimulatedNode)
        -> Bool
    {
        guard let before = self.tryLog(of: node, { _ in }) else { return false }
        guard let after = self.tryLog(of: node, { $0.flip(bit: bit, at: offset, of: path) }),
            !after.damage.hasUnknownLoss
        else { return self.placed == nil && self.draw(4) == 0 }
        guard path == Self.newestSegment(of: node) else { return true }
        func count(_ damage: SegmentedLog.Damage) -> Int {
            damage.entries.reduce(0) { $0 + $1.indexes.count }
        }
        // The last batch may have filled what was named before it.
        let isWhole = before.groupIDs.allSatisfy {
            after.last(of: $0) == before.last(of: $0)
                && after.hardState(of: $0) == before.hardState(of: $0)
        }
        return isWhole && count(after.damage) >= count(before.damage)
            && after.damage.suspectTail == before.damage.suspectTail
    }

    /// The log that a start would find after a change of its files, tried on a copy.
    ///
    /// - Parameter onlySynced: what it finds if the power takes all that is not synced.
    func tryLog(
        of node: SimulatedNode, onlySynced: Bool = false, _ change: (SimulatedFiles) -> Void
    ) -> SegmentedLog? {
        let copy = SimulatedWorld(seed: 1)
        for file in node.files.allFiles where file.raw.hasPrefix("log/") {
            copy.simulatedFiles.plant(
                node.files.contents(of: file, onlySynced: onlySynced) ?? [], at: file)
        }
        _ = try? copy.files.makeDirectory("log")
        change(copy.simulatedFiles)
        return try? SegmentedLog(
            in: "log", of: copy, isNew: false, limits: self.logLimits, onEvent: { _ in })
    }

    /// By the sequence in the headers.
    static func newestSegment(of node: SimulatedNode) -> DiskPath? {
        func sequence(_ path: DiskPath) -> UInt64 {
            guard let bytes = node.files.contents(of: path), bytes.count >= 16 else { return 0 }
            return bytes[8..<16].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        return node.files.allFiles.filter { $0.raw.hasSuffix(".seg") }.max {
            sequence($0) < sequence($1)
        }
    }

    /// A minority may stay away for good: the others must manage.
    private func leaveOneDead() {
        guard self.nodes.count >= 3, self.draw(3) == 0,
            !self.nodes.contains(where: \.isImpaired)
        else { return }
        let dead = self.nodes[self.draw(self.nodes.count)]
        let living = self.nodes.map(\.id).filter { $0 != dead.id }
        for group in self.groups {
            for node in self.nodes {
                // Whatever configuration any replica goes by, the living must be enough for it.
                guard let raft = node.host?.replica(of: group)?.raft,
                    raft.configuration.isQuorum(living)
                else { return }
            }
        }
        self.crash(dead, losesPower: true, backAfter: nil)
    }

    func checkConvergence() {
        if self.recovery != nil { return self.checkRecovery() }
        self.finishOperating()
        if let problem = self.findMembershipProblem() ?? self.findProblem()
            ?? self.findLinksProblem() ?? self.findLevelProblem() ?? self.findAssetsProblem()
            ?? self.findPushProblem()
        {
            self.lastProblem = problem
            guard self.now < self.convergenceDeadline else {
                self.invariants.report("liveness", self.lastProblem)
                return
            }
            self.queue.add(.check(.convergence), at: self.now + 200_000_000)
            return
        }
        if self.options.losesMajority { self.loseSurvivor() } else { self.phase = .done }
    }

    /// The problem that still keeps the cluster from its proper state.
    private func findProblem() -> String? {
        for group in self.groups {
            let replicas = self.nodes.compactMap { $0.host?.replica(of: group) }
            let leaders = replicas.filter { $0.raft.role == .leader }
            guard let leader = leaders.max(by: { $0.raft.term < $1.raft.term }) else {
                return "\(group) has no leader"
            }
            guard leader.raft.commit == leader.raft.log.last else {
                return "\(group): \(leader.node) cannot commit past \(leader.raft.commit)"
            }
            if leader.raft.configuration.isJoint { return "\(group) stays joint" }
            if let problem = self.findRecordsProblem(leader) { return problem }
            let members = leader.raft.configuration.members
            for replica in replicas where members.contains(replica.node) {
                if replica.raft.leader != leader.node {
                    return "\(group): \(replica.node) does not follow \(leader.node)"
                }
                if replica.state.applied != leader.raft.commit {
                    return "\(group): \(replica.node) is at \(replica.state.applied), "
                        + "\(leader.node) at \(leader.raft.commit)"
                }
                if replica.state.digest != leader.state.digest {
                    return "\(group): \(replica.node) has another state than \(leader.node)"
                }
            }
        }
        if let waiting = self.clients.first(where: { $0.current != nil }) {
            return "client \(waiting.number) still waits for an answer"
        }
        return self.closing.isEmpty ? nil : "the last operations are not done"
    }
}
