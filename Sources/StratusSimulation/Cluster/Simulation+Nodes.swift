import StratusCluster
import StratusCoding
import StratusConsensus
import StratusModel
import StratusStorage

// Processes: what runs a node's code, carries out what it asks for, and ends it.
extension Simulation {
    // MARK: A process begins

    func start(_ node: SimulatedNode) {
        node.incarnation += 1
        self.note("\(node.id) starts, incarnation \(node.incarnation)")
        self.timeline?.started(node.id, at: self.now)
        let now = node.local(self.now)
        let others = self.nodes.map(\.id).filter { $0 != node.id }
        let host = ReplicaHost(
            node: node.id,
            liveness: NodeLiveness(
                incarnation: NodeIncarnation(node.incarnation), peers: others, at: now))
        node.log = SimulatedLog(medium: node.logs)
        node.log.now = now
        node.host = host
        node.partitions = [:]
        node.requests = [:]
        var effects: [ReplicaHost.Effect] = []
        for group in self.groups {
            guard let replica = self.openReplica(of: group, on: node) else { return }
            host.add(replica, at: now, into: &effects)
        }
        host.start(at: now, into: &effects)
        self.carryOut(effects, of: node)
        let life = node.incarnation
        self.queue.add(.checkpoint(node.id, life: life), at: self.now + self.checkpointDelay())
    }

    private func openReplica(of group: GroupID, on node: SimulatedNode) -> Replica? {
        let configuration = self.initial[group] ?? Configuration(voters: [])
        let saved = node.states[group] ?? (kept: .init(), medium: .init())
        let partition = SimulatedPartition(
            saved.kept, medium: saved.medium, initialConfiguration: configuration, node: node.id,
            seed: self.diskRandom.next(), bugs: self.bugs)
        if self.options.faults.contains(.failedApply), self.phase == .safety {
            partition.failsOneIn = 200
        }
        partition.observer = { [unowned self] entry, digest in
            self.invariants.applied(node.id, group, entry, digest)
            self.report.entryCount += 1
        }
        node.partitions[group] = partition
        let log = node.logs[group] ?? SimulatedLog.GroupLog()
        let identity = partition.identity
        if identity.index < log.base.index {
            self.invariants.report(
                "S-22 log released too early",
                "\(group): \(node.id) has its state at \(identity.index), its log after "
                    + "\(log.base.index)")
            return nil
        }
        if identity.index > .zero {
            self.invariants.installed(node.id, group, identity.index, partition.digest)
        }
        return Replica(
            group: group, node: node.id,
            recovered: .init(
                hardState: log.hardState, snapshot: identity, base: log.base,
                entries: log.entries),
            state: partition, log: node.log, tuning: self.tuning, seed: self.diskRandom.next(),
            bugs: self.bugs)
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
        node.logs = node.log.crash(&self.diskRandom)
        for group in self.groups {
            guard let partition = node.partitions[group] else { continue }
            // A commit that was not checkpointed survives the process, not the power.
            var kept =
                !losesPower && Bool.random(using: &self.diskRandom)
                ? partition.committed : partition.medium
            if self.bugs.contains(.applyTwiceAfterRestart), kept.position.index > .zero,
                (node.logs[group]?.base.index ?? .zero) < kept.position.index.previous
            {
                // As if the position were kept in another file than the rows, one entry behind.
                kept.position.index = kept.position.index.previous
                kept.rows = Self.forgettingRequests(kept.rows)
            }
            node.states[group] = (kept: kept, medium: partition.medium)
        }
        node.host = nil
        node.partitions = [:]
        node.requests = [:]
        if let backAfter { self.queue.add(.restart(node.id), at: self.now + backAfter) }
    }

    private static func forgettingRequests(_ rows: MemoryRowStore) -> MemoryRowStore {
        var rows = rows
        for row in rows.rows(.request) { rows.remove(.request, row.key.span.bytes) }
        return rows
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
        node.log.now = now
        var effects: [ReplicaHost.Effect] = []
        body(host, now, &effects)
        self.carryOut(effects, of: node, group)
    }

    private func carryOut(
        _ effects: [ReplicaHost.Effect], of node: SimulatedNode, _ group: GroupID? = nil
    ) {
        for effect in effects {
            switch effect {
            case .heartbeat(let heartbeat, let to):
                self.send(from: node.id, to: to) { life in
                    .heartbeat(heartbeat, from: node.id, to: to, life: life)
                }
            case .message(let group, let message, let to):
                self.report.messageCount += 1
                self.note("\(group) \(node.id) → \(to)  \(message)")
                let heard = self.options.encodesMessages ? Self.recoded(message) : message
                self.send(from: node.id, to: to) { life in
                    .message(group, heard, from: node.id, to: to, life: life)
                }
            case .wake(let time):
                self.queue.add(
                    .wake(node.id, life: node.incarnation), at: max(self.now, node.global(time)))
            case .replica(let group, let effect):
                self.take(effect, of: group, on: node)
            }
        }
        self.watch(node, group)
        if node.isUp, node.log.beginSync() {
            self.queue.add(
                .synced(node.id, life: node.incarnation), at: self.now + self.syncTime(node))
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
            self.answer(token, of: group, on: node, isWrite: true, result.map { .outcome($0) })
        case .read(let token, let result):
            self.answer(token, of: group, on: node, isWrite: false, result.map { .answer($0) })
        case .roleChanged(let role, let term, let leader):
            self.note(
                "\(group) \(node.id) is \(role) in term \(term), leader \(leader?.description ?? "none")"
            )
            self.timeline?.role(role, term: term, of: node.id, in: group, at: self.now)
            self.mix(4, node.id.raw, UInt32(group.raw), term.raw, role == .leader ? 1 : 0)
            if role == .leader, let replica = node.host?.replica(of: group) {
                self.invariants.becameLeader(node.id, replica)
            }
        case .reached(let path): self.report.reached[path, default: 0] += 1
        case .alarm(let alarm):
            self.invariants.report("alarm", "\(group): \(node.id) says \(alarm)")
        case .failed(let error): self.note("\(group) \(node.id) state failed: \(error)")
        case .changed(_, let result): self.note("\(group) \(node.id) membership: \(result)")
        case .send, .wake, .resigned, .applied: break
        }
    }

    /// Looks at what a node now takes for committed. Called after everything it does.
    private func watch(_ node: SimulatedNode, _ only: GroupID?) {
        guard let host = node.host else { return }
        for group in only.map({ [$0] }) ?? self.groups {
            guard let replica = host.replica(of: group) else { continue }
            let commit = replica.raft.commit
            let before = self.watched[node.id, default: [:]][group] ?? .zero
            guard commit != before else { continue }
            self.watched[node.id, default: [:]][group] = commit
            self.invariants.committed(node.id, replica, since: min(before, commit))
        }
    }

    func synced(_ id: NodeID, life: UInt64) {
        let node = self.node(id)
        guard node.incarnation == life, node.isUp else { return }
        if self.options.faults.contains(.failedSync), self.phase == .safety,
            self.diskRandom.next() % 3_000 == 0
        {
            // Final: the node fences itself and stops; what it finds on its disk decides.
            self.count(.failedSync)
            self.crash(node, losesPower: true, backAfter: 200_000_000)
            return
        }
        self.mix(5, id.raw, 0, 0, 0)
        for event in node.log.endSync() {
            guard case .durable(let group, let through, let term, let hardState) = event else {
                continue
            }
            self.enter(node, group) { host, now, effects in
                host.becameDurable(
                    group, through: through, term: term, hardState: hardState, at: now,
                    into: &effects)
            }
        }
        if node.isUp, node.log.beginSync() {
            self.queue.add(.synced(id, life: life), at: self.now + self.syncTime(node))
        }
    }

    func checkpoint(_ id: NodeID, life: UInt64) {
        let node = self.node(id)
        guard node.incarnation == life, node.isUp else { return }
        for group in self.groups { node.partitions[group]?.checkpoint() }
        for group in self.groups {
            self.enter(node, group) { host, now, effects in
                host.with(group, at: now, into: &effects) { replica, out in
                    replica.release(at: now, into: &out)
                }
            }
        }
        self.queue.add(.checkpoint(id, life: life), at: self.now + self.checkpointDelay())
    }

    // MARK: The network

    /// A link belongs to one life of each end: what is under way to a process that has ended is lost.
    private func send(from: NodeID, to: NodeID, _ event: (UInt64) -> Event) {
        guard Int(to.raw) <= self.nodes.count, to.raw > 0 else { return }
        let life = self.node(to).incarnation
        let isFaulty = self.phase == .safety
        let faults = self.options.faults
        if self.cuts.contains(where: { $0.from == from && $0.to == to }) { return }
        if isFaulty, faults.contains(.loss), self.networkRandom.next() % 20 == 0 {
            self.count(.loss)
            return
        }
        self.queue.add(event(life), at: self.now + self.delay(isFaulty))
        if isFaulty, faults.contains(.duplication), self.networkRandom.next() % 20 == 0 {
            self.count(.duplication)
            self.queue.add(event(life), at: self.now + self.delay(isFaulty))
        }
    }

    func delay(_ isFaulty: Bool) -> Int64 {
        let least = self.options.delayMin.clampedNanoseconds
        let most = self.options.delayMax.clampedNanoseconds
        let usual = Int64.random(in: least...most, using: &self.networkRandom)
        guard isFaulty, self.options.faults.contains(.longDelay),
            self.networkRandom.next() % 100 == 0
        else { return usual }
        self.count(.longDelay)
        return Int64.random(in: 0...3_000_000_000, using: &self.networkRandom)
    }

    func deliver(
        _ message: ConsensusMessage, of group: GroupID, from: NodeID, to: NodeID, life: UInt64
    ) {
        let node = self.node(to)
        guard node.incarnation == life, node.isUp else { return }
        self.enter(node, group) { host, now, effects in
            host.receive(message, of: group, from: from, at: now, into: &effects)
        }
    }
}
