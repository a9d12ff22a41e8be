import StratusAssets
import StratusCluster
import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage

// Processes: what runs a node's code, carries out what it asks for, and ends it.
extension Simulation {
    // MARK: A process begins

    func start(_ node: SimulatedNode) {
        node.incarnation += 1
        self.note("\(node.id) starts, incarnation \(node.incarnation)")
        self.timeline?.started(node.id, at: self.now)
        if node.incarnation > 1 { node.files.restart(after: node.end) }
        self.damage(node)
        self.damageCopies(of: node)
        self.aimAtStart(of: node)
        self.setRates(node)
        do {
            try self.open(node)
        } catch {
            self.failed(node, error)
        }
    }

    private func setRates(_ node: SimulatedNode) {
        guard self.phase == .safety else { return }
        var rows = DiskFaultRates()
        rows.prefix = "partitions/"
        if self.options.faults.contains(.failedApply) {
            rows.failedReadOneIn = 2_000
            rows.failedWriteOneIn = 2_000
        }
        var all = DiskFaultRates()
        if self.options.faults.contains(.failedSync) {
            all.failedSyncOneIn = self.options.failedSyncOneIn
        }
        node.files.setRates(rows, all)
    }

    private struct LogIsOut: Error {
        let why: String
    }

    /// - Throws: ``LogIsOut`` where the log has rotted so that nobody can say what it has lost.
    private func openLog(of node: SimulatedNode, _ events: SimulatedNode.LogEvents) throws
        -> SegmentedLog
    {
        let mayRot = node.isStruck && self.options.faults.contains(.rottenLog)
        do throws(LogError) {
            let log = try SegmentedLog(
                in: "log", of: node.world, isNew: !node.hasLog, limits: self.logLimits
            ) { events.add($0) }
            if mayRot, log.damage.hasUnknownLoss { throw LogError(.corrupt, "\(log.damage)") }
            return log
        } catch {
            guard mayRot, error.kind == .corrupt else { throw error }
            throw LogIsOut(why: error.text)
        }
    }

    private func open(_ node: SimulatedNode) throws {
        let now = node.local(self.now)
        node.world.advance(to: now)
        let events = SimulatedNode.LogEvents()
        let log = try self.openLog(of: node, events)
        node.hasLog = true
        if !log.damage.suspectTail.isEmpty {
            self.note("\(node.id) finds a torn tail: \(log.damage.suspectTail)")
        }
        // Rot stays until what it struck is let go.
        if !log.damage.isNone { self.note("\(node.id) finds \(log.damage)") }
        let isExpected =
            self.options.faults.contains(.rottenLog) && !log.damage.hasUnknownLoss
        if !log.damage.isNone, !isExpected {
            self.invariants.report("S-07 torn, not damaged", "\(node.id) finds \(log.damage)")
        }
        let system = FileSystem(node.world.files, bugs: self.bugs)
        node.pace = SnapshotPace(rate: self.options.snapshotRate)
        node.shells = try self.makeShells(of: node)
        node.links = try self.makeLinks(of: node)
        node.assets = self.makeAssets(of: node)
        node.push = self.makePush(of: node)
        let others = node.shells?.life.peers ?? self.nodes.map(\.id).filter { $0 != node.id }
        let host = ReplicaHost(
            node: node.id,
            liveness: NodeLiveness(
                incarnation: NodeIncarnation(node.incarnation), peers: others, at: now))
        var replicas: [Replica] = []
        for group in self.groups where self.opensAtStart(group, node, log) {
            replicas.append(try self.openReplica(of: group, on: node, log, system))
        }
        node.isStruck = false
        node.log = log
        node.logEvents = events
        node.system = system
        node.host = host
        var effects: [ReplicaHost.Effect] = []
        for replica in replicas { host.add(replica, at: now, into: &effects) }
        host.start(at: now, into: &effects)
        self.carryOut(effects, of: node)
        self.startLinks(of: node)
        self.startShells(of: node)
        self.startAssets(of: node)
        node.push?.start()
        self.add(.checkpoint, to: node, at: self.now + self.checkpointDelay())
        self.startCarrying(on: node)
    }

    /// Opens a group the way a node does at its start: one by one, in case a job waits in its log.
    /// Other groups open when somebody asks.
    private func opensAtStart(_ group: GroupID, _ node: SimulatedNode, _ log: SegmentedLog) -> Bool
    {
        guard let directory = node.shells?.directory else { return true }
        return directory.keeps(group) && log.groupIDs.contains(group)
    }

    func openReplica(
        of group: GroupID, on node: SimulatedNode, _ log: SegmentedLog, _ system: FileSystem
    ) throws -> Replica {
        var limits = self.stateLimits
        limits.build = node.build
        let store = try PartitionStore(
            self.state(of: group, on: node), group: group, in: "partitions",
            of: system, limits: limits)
        let isFound = store.applied > .zero
        #if STRATUS_PLANTED
            if self.bugs.contains(.applyTwiceAfterRestart),
                store.applied > log.start(of: group).index.next
            {
                try store.plantRewind()
            }
        #endif
        let id = node.id  // The node holds the partition: it must not be held by it.
        let partition = ObservedPartition(store) { [unowned self] entry, outcome, digest in
            self.applied(entry, outcome, digest, of: group, on: id)
        } installing: { [unowned self] identity, applied in
            self.invariants.installs(id, group, identity, over: applied)
        }
        node.partitions[group] = partition
        if let promised = node.promised[group] {
            self.invariants.recovered(
                node.id, group, promised, log: log, state: store.applied)
        }
        if store.applied < log.start(of: group).index,
            node.promised[group]?.hasLostState != true
        {
            self.invariants.report(
                "S-22 log released too early",
                "\(group): \(id) has its state at \(store.applied), its log after "
                    + "\(log.start(of: group).index)")
        }
        let first = node.shells.map { $0.directory.firstConfiguration(of: group) }
        var recovered: RaftGroup.Recovered
        do throws(LogError) {
            recovered = try RaftGroup.Recovered(
                of: group, in: log, state: store.appliedPosition,
                initial: (first ?? self.initial[group]) ?? Configuration(voters: []),
                hasPeers: self.nodes.count > 1, tailSizeMax: self.tuning.raft.tailSizeMax)
            recovered.silentThrough = node.shells?.directory.silentThrough(of: group) ?? .zero
        } catch {
            if error.kind == .released {
                self.invariants.report("S-22 log released too early", error.text)
            }
            throw error
        }
        if isFound {
            self.invariants.installed(
                node.id, group, recovered.snapshot.index, recovered.snapshot.digest)
        }
        node.hardStates[group] = log.hardState(of: group)
        return Replica(
            group: group, node: node.id, recovered: recovered, state: partition, log: log,
            tuning: self.tuning, pace: node.pace,
            level: self.options.levels == nil ? .build : node.level.asked,
            seed: self.diskRandom.next(), bugs: self.bugs)
    }

    /// It could not start: a supervisor tries again. Anything but a disk that refused is a loss.
    private func failed(_ node: SimulatedNode, _ error: any Error) {
        self.note("\(node.id) does not start: \(error)")
        if error is LogIsOut { node.isOut = true } else { self.reportLoss(error, on: node) }
        node.endParts()
        self.endLinks(of: node)
        self.report.failedStartCount += 1
        node.partitions = [:]
        node.end = self.endOfStart(of: node)
        node.files.crash()
        if node.isOut { return }
        let pause = self.options.aimsAtStarts ? self.restartTime() : 200_000_000
        self.queue.add(.fault(.restart(node.id)), at: self.now + pause)
    }

    /// A disk that refuses is a fault; one that has less than it took is a loss.
    func reportLoss(_ error: any Error, on node: SimulatedNode) {
        let isLoss =
            switch error {
            case let error as LogError: error.kind == .corrupt || error.kind == .released
            case let error as StoreError: error.kind == .corrupt || error.kind == .unreadable
            case ClusterDirectory.Refusal.disk: false
            case let error as PeerMemory.Refusal: error.description.contains("damaged")
            case let error as StartFile.Refusal: error == .damaged
            default: true
            }
        if isLoss { self.invariants.report("I-11 durable survives", "\(node.id): \(error)") }
    }

    private func checkpointDelay() -> Int64 {
        let most = self.options.checkpointInterval.clampedNanoseconds
        return Int64.random(in: 1...most, using: &self.diskRandom)
    }

    // MARK: A process ends

    /// - Parameter losesPower: what the system's cache held is gone too.
    func crash(_ node: SimulatedNode, losesPower: Bool, backAfter: Int64?) {
        guard node.isUp else { return }
        self.note("\(node.id) \(losesPower ? "loses power" : "crashes")")
        self.timeline?.crashed(node.id, at: self.now, losesPower: losesPower)
        self.report.crashCount += 1
        for group in self.groups {
            guard let replica = node.host?.replica(of: group) else { continue }
            if replica.isSpooling { self.report.reached[.endedWhileSpooling, default: 0] += 1 }
            if replica.isInstalling { self.report.reached[.endedWhileInstalling, default: 0] += 1 }
        }
        self.watched[node.id] = nil
        self.endLinks(of: node)
        node.endProcess(groups: self.groups)
        self.breakLinks(of: node)
        node.end =
            losesPower
            ? (self.diskRandom.next() % 4 == 0 ? .powerLossLosingAll : .powerLoss) : .processCrash
        self.streams?.processEnded(node, losesPower: losesPower)
        if !losesPower { self.tellOfEnd(of: node) }
        if let backAfter {
            self.queue.add(.fault(.restart(node.id)), at: self.now + backAfter)
        }
    }

    /// Tells the other nodes, where no links do, that connections are closed and refused, each a
    /// little later.
    private func tellOfEnd(of node: SimulatedNode) {
        guard self.options.findsEnds, self.streams == nil else { return }
        for other in self.nodes where other.id != node.id && other.isUp {
            let delay = Int64.random(in: 100_000...8_000_000, using: &self.endRandom)
            self.add(.ended(node.id, life: node.incarnation), to: other, at: self.now + delay)
        }
    }

    /// Whether the process ended in the last call: killed inside it, or because a sync failed,
    /// which is final. What it wanted to say is never said.
    func hasEnded(_ node: SimulatedNode) -> Bool {
        guard node.isUp else { return true }
        let isKilled = node.files.isCrashed
        let isFenced = node.log?.fault != nil || node.system?.hasFailedSync == true
        guard isKilled || isFenced else { return false }
        if isFenced, !isKilled {
            self.count(.failedSync)
            self.note("\(node.id) fences itself")
        }
        let pause =
            self.options.isBackSoon
            ? self.restartTime()
            : Int64.random(in: 1_000_000...1_000_000_000, using: &self.diskRandom)
        self.crash(node, losesPower: self.diskRandom.next() % 2 == 0, backAfter: pause)
        return true
    }

    // MARK: A process runs

    /// Calls into a node's code and carries out what it asks for.
    ///
    /// - Parameter group: the only one it can concern; nil for all.
    func enter(
        _ node: SimulatedNode, _ group: GroupID? = nil,
        _ body: (ReplicaHost, MonotonicTime, inout [ReplicaHost.Effect]) -> Void
    ) {
        guard let host = node.host else { return }
        let now = node.local(self.now)
        node.world.advance(to: now)
        var effects: [ReplicaHost.Effect] = []
        body(host, now, &effects)
        if !self.hasEnded(node) { self.carryOut(effects, of: node, group) }
    }

    private func carryOut(
        _ effects: [ReplicaHost.Effect], of node: SimulatedNode, _ group: GroupID? = nil
    ) {
        for effect in effects {
            switch effect {
            case .heartbeat(let heartbeat, let to):
                if self.streams != nil {
                    _ = self.say(.heartbeat(heartbeat), node, to: to)
                    continue
                }
                guard self.areLinked(node.id, to) else { continue }
                self.send(.heartbeat(heartbeat, from: node.id), from: node.id, to: to)
            case .message(let group, let message, let to):
                self.report.messageCount += 1
                self.note("\(group) \(node.id) → \(to)  \(message)")
                if let replica = node.host?.replica(of: group) {
                    self.invariants.said(message, node, replica, to: to, at: self.now)
                }
                if self.streams != nil {
                    _ = self.say(.consensus(group, message), node, to: to)
                    continue
                }
                guard self.areLinked(node.id, to) else { continue }
                let heard = self.options.encodesMessages ? Self.recoded(message) : message
                self.send(.message(group, heard, from: node.id), from: node.id, to: to)
            case .wake(let time):
                self.add(.wake, to: node, at: max(self.now, node.global(time)))
            case .replica(let group, let effect):
                self.take(effect, of: group, on: node)
            }
        }
        self.watch(node, group)
        self.beginFlush(node)
    }

    func beginFlush(_ node: SimulatedNode) {
        guard node.isUp, !node.isSyncing, let log = node.log, log.hasWork else { return }
        node.isSyncing = log.beginFlush()
        if self.hasEnded(node) { return }
        if node.isSyncing {
            self.add(.synced, to: node, at: self.now + self.syncTime(node))
        }
    }

    private static func recoded(_ message: ConsensusMessage) -> ConsensusMessage {
        do throws(DecodingError) {
            return try ConsensusMessage(decoding: message.encoded())
        } catch {
            preconditionFailure("a message does not survive its codec: \(error)")
        }
    }

    private func syncTime(_ node: SimulatedNode) -> Int64 {
        let least = self.options.syncMin.clampedNanoseconds
        let most = self.options.syncMax.clampedNanoseconds
        return node.slowness + Int64.random(in: least...most, using: &self.diskRandom)
    }

    private func take(_ effect: Replica.Effect, of group: GroupID, on node: SimulatedNode) {
        switch effect {
        case .answered(let token, let result):
            self.answer(token, of: group, on: node, result.map { .outcome($0) })
        case .read(let token, let result):
            self.answer(token, of: group, on: node, result.map { .answer($0) })
        case .roleChanged(let role, let term, let leader):
            self.note(
                "\(group) \(node.id) is \(role) in term \(term), leader \(leader?.description ?? "none")"
            )
            self.timeline?.role(role, term: term, of: node.id, in: group, at: self.now)
            self.mix(4, node.id.raw, UInt32(group.raw), term.raw, role == .leader ? 1 : 0)
            if role == .leader, let replica = node.host?.replica(of: group) {
                self.invariants.becameLeader(node, replica)
            }
        case .reached(let path): self.passed(path, node)
        case .alarm(.acknowledgedGone(let index, let peer)):
            // A late refusal of the peer's former life looks the same here: links between nodes
            // bring none.
            self.note("\(group): \(node.id) misses \(index) at \(peer)")
        case .alarm(let alarm):
            self.invariants.report("alarm", "\(group): \(node.id) says \(alarm)")
        case .failed(let error): self.note("\(group) \(node.id) state failed: \(error)")
        case .stopped(let newer):
            // Whoever wrote it did not ask what everybody can read.
            self.invariants.report("M-22 levels", "\(group): \(node.id) stopped: \(newer)")
        case .gaveUp(let peer, let index):
            self.note("\(group) \(node.id) gives \(peer) up, which needs what is behind \(index)")
        case .changed(_, let result):
            self.note("\(group) \(node.id) membership: \(result)")
            if case .success(let point) = result, let replica = node.host?.replica(of: group) {
                self.invariants.changes(replica, at: point)
                self.invariants.promotes(replica, at: point, disks: self.nodes)
            }
        case .differs(let peer, let index):
            self.note("\(group) \(node.id) differs from \(peer) at \(index)")
        case .diverged(let index): self.diverged(group, on: node, at: index)
        case .rotten(let index): self.foundRotten(group, on: node, at: index)
        case .rowsChecked: break
        case .rebuilt(let index): self.rebuilt(group, on: node, at: index)
        case .rebuildFailed(let error): self.note("\(group) \(node.id) rebuild failed: \(error)")
        case .fileRebuilt: self.report.membershipCounts["files rebuilt", default: 0] += 1
        case .send, .wake, .resigned, .applied, .snapshotLacksRoom: break
        }
    }

    /// Looks at whom a node now goes by and what it takes for committed. Called after everything it
    /// does.
    private func watch(_ node: SimulatedNode, _ only: GroupID?) {
        guard let host = node.host else { return }
        for group in only.map({ [$0] }) ?? self.groups {
            guard let replica = host.replica(of: group) else { continue }
            self.invariants.leads(replica, on: host)
            self.invariants.goesBy(node.id, replica, at: self.now)
            self.checkBounds(of: replica, on: node)
            if self.assets != nil { self.tellBodies(of: group, on: node) }
            let commit = replica.raft.commit
            let before = self.watched[node.id]?[group]
            guard commit != before else { continue }
            self.watched[node.id, default: [:]][group] = commit
            self.invariants.committed(node, replica, since: before, disks: self.nodes)
        }
    }

    func synced(_ node: SimulatedNode) {
        guard let log = node.log else { return }
        node.isSyncing = false
        log.endFlush()
        if self.hasEnded(node) { return }
        self.mix(5, node.id.raw, 0, 0, 0)
        let events = node.logEvents.take()
        for case .durable(let group, _, _, let hardState) in events {
            node.hardStates[group] = hardState
        }
        for event in events { self.hand(event, to: node) }
        self.beginFlush(node)
        self.makeSpare(node)
    }

    private func makeSpare(_ node: SimulatedNode) {
        guard self.options.makesSparesAhead, node.isUp, !node.isSyncing else { return }
        node.log?.prepareSpare()
        _ = self.hasEnded(node)
    }

    /// A report of the log goes from its thread to the replica's, at once or a little later, in
    /// order.
    private func hand(_ event: LogEvent, to node: SimulatedNode) {
        let most = self.options.reportDelayMax.clampedNanoseconds
        guard most > 0, self.phase == .safety || node.reportsThrough > self.now else {
            self.reported(event, to: node)
            return
        }
        // Behind those that still wait, but no later: or a node that never stops writing would wait
        // for ever.
        let delay =
            self.phase == .safety ? Int64.random(in: 0...most, using: &self.diskRandom) : 0
        node.reportsThrough = max(node.reportsThrough, self.now + delay)
        self.add(.reported(event), to: node, at: node.reportsThrough)
    }

    func reported(_ event: LogEvent, to node: SimulatedNode) {
        guard case .durable(let group, let through, let term, let hardState) = event else { return }
        self.enter(node, group) { host, now, effects in
            host.becameDurable(
                group, through: through, term: term, hardState: hardState, at: now,
                into: &effects)
        }
    }

    func checkpoint(_ node: SimulatedNode) {
        for group in self.groups {
            self.checkpoint(group, on: node)
            if self.hasEnded(node) { return }
            self.tellDurable(group, on: node)
            self.release(group, on: node, keepsTrail: true)
            self.rebuildNowAndThen(group, on: node)
        }
        node.log?.noteState()
        self.beginFlush(node)
        if self.hasEnded(node) { return }
        self.expireNowAndThen(node)
        self.makeRoom(node)
        self.add(.checkpoint, to: node, at: self.now + self.checkpointDelay())
    }

    /// Runs a checkpoint as a node does on a thread of its own, or now and then as the store does
    /// by itself.
    private func checkpoint(_ group: GroupID, on node: SimulatedNode) {
        guard let partition = node.partitions[group],
            node.host?.replica(of: group)?.isStateWell == true
        else { return }
        do throws(StoreError) {
            switch self.diskRandom.next() % 8 {
            case 0: try partition.store.checkpoint()
            case 1:
                // A node closes no file that is being made anew.
                guard node.host?.replica(of: group)?.isRebuilding != true else { return }
                try partition.store.close()
            default:
                if let checkpointer = node.checkpointers[group],
                    !partition.store.isCurrent(checkpointer)
                {
                    node.checkpointers[group] = nil
                }
                if node.checkpointers[group] == nil {
                    node.checkpointers[group] = try partition.store.makeCheckpointer()
                }
                // As often as not, what is in memory is not waited for.
                if self.diskRandom.next() % 2 == 0 { try partition.store.commit() }
                if let index = try node.checkpointers[group]?.run() {
                    partition.store.noteDurable(through: index)
                }
            }
        } catch { self.note("\(group) \(node.id) checkpoint failed: \(error)") }
    }

    private func release(
        _ group: GroupID, on node: SimulatedNode, keepsTrail: Bool, keepsForFollowers: Bool = true
    ) {
        self.enter(node, group) { host, now, effects in
            host.with(group, at: now, into: &effects) { replica, out in
                replica.release(
                    keepsTrail: keepsTrail, keepsForFollowers: keepsForFollowers, at: now,
                    into: &out)
            }
        }
    }

    /// Old segments of the log must go: who holds the oldest lets go of all it can, and what no
    /// checkpoint releases is written again at the end.
    private func makeRoom(_ node: SimulatedNode) {
        guard let log = node.log, log.segmentCount > 3 || !log.hasExpired else { return }
        let keepsForFollowers =
            self.options.retainedSizeMax.raw == 0
            || log.sizeInUse <= self.options.retainedLogSizeMax
        for group in log.holdersOfOldest {
            self.release(
                group, on: node, keepsTrail: false, keepsForFollowers: keepsForFollowers)
            guard node.isUp else { return }
        }
        // Segments of a few entries are all but full with one: there everything is moved, as ever.
        guard self.options.retainedSizeMax.raw == 0 || log.isOldestWorthMoving else { return }
        for group in log.holdersOfOldest {
            do throws(LogError) { try log.moveForward(group) } catch {
                self.note("\(group) \(node.id) cannot be moved forward: \(error.text)")
            }
            if self.hasEnded(node) { return }
        }
        self.beginFlush(node)
    }

    // MARK: The network

    /// A link belongs to one life of each end: what is under way to a process that has ended is
    /// lost.
    ///
    /// - Parameter life: of the receiver; nil: the one that it has now.
    func send(_ event: ProcessEvent, from: NodeID, to: NodeID, life: UInt64? = nil) {
        guard Int(to.raw) <= self.nodes.count, to.raw > 0 else { return }
        let event = Event.process(event, to, life: life ?? self.node(to).incarnation)
        let isFaulty = self.phase == .safety
        let faults = self.options.faults
        if self.cuts.contains(where: { $0.from == from && $0.to == to }) { return }
        if isFaulty, faults.contains(.loss), self.networkRandom.next() % 20 == 0 {
            self.count(.loss)
            return
        }
        self.queue.add(event, at: self.now + self.delay(isFaulty))
        if isFaulty, faults.contains(.duplication),
            self.networkRandom.next() % self.options.copyOneIn == 0
        {
            self.count(.duplication)
            let isLate = self.options.copiesComeLate && self.networkRandom.next() % 2 == 0
            let delay =
                isLate
                ? Int64.random(in: 0...3_000_000_000, using: &self.networkRandom)
                : self.delay(isFaulty)
            self.queue.add(event, at: self.now + delay)
        }
    }

    func passes(from: NodeID, to: NodeID) -> Bool {
        !self.cuts.contains { $0.from == from && $0.to == to }
    }

    func delay(_ isFaulty: Bool) -> Int64 {
        let least = self.options.delayMin.clampedNanoseconds
        let most = self.options.delayMax.clampedNanoseconds
        let usual = Int64.random(in: least...most, using: &self.networkRandom)
        guard isFaulty, self.options.faults.contains(.longDelay),
            self.networkRandom.next() % self.options.lateMessageOneIn == 0
        else { return usual }
        self.count(.longDelay)
        return Int64.random(in: 0...3_000_000_000, using: &self.networkRandom)
    }
}
