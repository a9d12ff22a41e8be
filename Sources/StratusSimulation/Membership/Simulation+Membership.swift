import StratusAssets
import StratusCluster
import StratusCoding
import StratusConsensus
import StratusModel
import StratusPlacement
import StratusStorage

// Simulates clusters whose groups are placed by the real table: carries out the requests that the
// real membership shells make of a process.
extension Simulation {
    /// Nil in a cluster whose groups stay where the seed put them.
    func makeShells(of node: SimulatedNode) throws(ClusterDirectory.Refusal) -> ClusterShells? {
        guard let placed else { return nil }
        var tuning = MembershipKeeper.Tuning()
        tuning.holdTime = self.options.holdTime
        let isFounder = Int(node.id.raw) <= self.options.nodeCount
        let shells = try ClusterShells(
            ProcessLife(of: node, in: self, on: placed.executor),
            founding: isFounder ? placed.founding : nil, tuning: tuning, bugs: self.bugs)
        let revision = shells.directory.revision
        if revision < node.revisionFollowed {
            self.invariants.report(
                "M-07 view goes back",
                "\(node.id) goes by view \(revision), its last process by \(node.revisionFollowed)")
        }
        return shells
    }

    func startShells(of node: SimulatedNode) {
        guard let placed, let shells = node.shells else { return }
        let isFounder = Int(node.id.raw) <= self.options.nodeCount
        guard var own = shells.directory.view.node(node.id) else { return }
        own.directory = UInt64(node.id.raw)
        own.incarnation = NodeIncarnation(node.incarnation)
        own.key = Self.key(of: Int(node.id.raw))
        let recovery = try? RecoveryNote.kept(in: node.world.files)
        shells.start(
            recovering: recovery, forming: isFounder ? placed.formation : nil, as: own)
    }

    static func key(of number: Int) -> Bytes { Bytes("key of \(number)".utf8) }

    /// Runs what has become ready by the last event, until everything waits.
    func pump() {
        guard let executor = self.placed?.executor ?? self.assets?.executor ?? self.push?.executor,
            !executor.isIdle
        else { return }
        for node in self.nodes where node.isUp { node.showTime(self.now) }
        executor.run()
        for node in self.nodes where node.isUp && node.files.isCrashed { _ = self.hasEnded(node) }
        // Tasks of an ended process finish here.
        executor.run()
    }

    func drawToken() -> RaftGroup.RequestToken {
        self.nextToken += 1
        return RaftGroup.RequestToken(self.nextToken)
    }

    func removalDelay() -> Duration {
        .microseconds(Int64.random(in: 0...20_000, using: &self.diskRandom))
    }

    // MARK: Replicas that come and go

    /// Whether the node has a replica of the group: a replica that it keeps is opened when somebody
    /// asks for it.
    func isOpen(_ group: GroupID, on node: SimulatedNode) -> Bool {
        guard let host = node.host else { return false }
        if host.replica(of: group) != nil { return true }
        guard let directory = node.shells?.directory, let log = node.log, let system = node.system,
            directory.firstConfiguration(of: group) != nil
        else { return false }
        do {
            let replica = try self.openReplica(of: group, on: node, log, system)
            self.enter(node, group) { host, now, effects in
                host.add(replica, at: now, into: &effects)
            }
        } catch {
            node.partitions[group] = nil
            if !self.hasEnded(node) {
                self.note("\(group) \(node.id) cannot be opened: \(error)")
                self.reportLoss(error, on: node)
            }
        }
        return node.host?.replica(of: group) != nil
    }

    func retire(on node: SimulatedNode, keeping keeps: (GroupID) -> Bool) -> [GroupID] {
        guard let log = node.log, let host = node.host else { return [] }
        var retired: [GroupID] = []
        for group in Set(host.allGroups + log.groupIDs).sorted() where !keeps(group) {
            let isOpen = host.replica(of: group) != nil
            let isThere = isOpen || log.last(of: group).index > .zero
            if isThere { self.invariants.retires(node, group, disks: self.nodes) }
            if isOpen {
                self.note("\(group) \(node.id) lets its replica go")
                self.timeline?.role(
                    .follower, term: .zero, of: node.id, in: group, at: self.now)
                host.remove(group)
                self.answerWaiting(for: group, on: node)
                // A partition that cannot be closed is deleted all the same.
                try? node.partitions[group]?.store.close()
                node.partitions[group] = nil
                node.checkpointers[group] = nil
            }
            log.forget(group)
            node.promised[group] = nil
            self.watched[node.id]?[group] = nil
            if isThere { retired.append(group) }
            if self.hasEnded(node) { return retired }
        }
        self.beginFlush(node)
        return retired
    }

    /// A replica that goes did not lead; what waits for it may have been committed by others.
    private func answerWaiting(for group: GroupID, on node: SimulatedNode) {
        let waiting = node.requests.filter { $0.value.group == group }.keys
        for token in waiting.sorted(by: { $0.raw < $1.raw }) {
            guard let request = node.requests.removeValue(forKey: token) else { continue }
            self.give(request.isWrite ? .outcomeUnknown : .notLeader(nil), to: request, token, node)
        }
    }

    func configure(
        _ group: GroupID, at index: LogIndex, voters: [NodeID], learners: [NodeID],
        on node: SimulatedNode
    ) -> Bool {
        let token = self.drawToken()
        var isProposed = false
        self.enter(node, group) { host, now, effects in
            isProposed = host.configure(
                group, at: index, voters: voters, learners: learners, as: token,
                wallMilliseconds: node.wall(self.now), bugs: self.bugs, at: now, into: &effects)
        }
        if isProposed {
            self.note("\(group) \(node.id) is told voters \(voters) learners \(learners)")
        }
        return isProposed
    }

    // MARK: Requests of nodes

    /// Hands a request to a replica, as a node does that got it from a peer or from its own router.
    func take(
        _ body: PeerRequest.Body, of group: GroupID, as token: RaftGroup.RequestToken,
        for asker: SimulatedNode.Asker, deadline: MonotonicTime, on node: SimulatedNode
    ) {
        var isWrite = false
        if case .command = body { isWrite = true }
        let request = SimulatedNode.PendingRequest(
            asker: asker, group: group, isWrite: isWrite, askedAt: self.now)
        guard self.isOpen(group, on: node) else {
            return self.give(.notLeader(nil), to: request, token, node)
        }
        node.requests[token] = request
        self.queue.add(
            .overdue(node.id, life: node.incarnation, token), at: node.global(deadline) + 1_000_000)
        self.enter(node, group) { host, now, effects in
            host.with(group, at: now, into: &effects) { replica, out in
                switch body {
                case .command(let command):
                    replica.submit(
                        [(token, command)], wallMilliseconds: node.wall(self.now), at: now,
                        into: &out)
                case .query(let query): replica.read(query, as: token, at: now, into: &out)
                case .node: break
                }
            }
        }
    }

    func overdue(_ token: RaftGroup.RequestToken, on id: NodeID, life: UInt64) {
        let node = self.node(id)
        guard node.incarnation == life, let request = node.requests.removeValue(forKey: token)
        else { return }
        node.host?.replica(of: request.group)?.abandon(token)
        self.give(
            request.isWrite ? .outcomeUnknown : .notExecuted(retryAfterMilliseconds: 100),
            to: request, token, node)
    }

    func give(
        _ answer: PeerResponse.Answer, to request: SimulatedNode.PendingRequest,
        _ token: RaftGroup.RequestToken, _ node: SimulatedNode
    ) {
        switch request.asker {
        case .here(let life): life.answer(token, answer)
        case .peer(let other, let number):
            _ = self.send(
                .response(PeerResponse(number: number, answer: answer)), from: node, to: other)
        case .carrier(let carrier, let life, let parcel):
            self.giveBack(answer, to: carrier, life: life, parcel, from: node)
        case .client: break
        }
    }

    // MARK: Messages of nodes

    /// - Returns: false where there is no link: the two do not know each other as members.
    func send(_ message: PeerMessage, from node: NodeID, to other: NodeID) -> Bool {
        self.send(message, from: self.node(node), to: other)
    }

    func send(_ message: PeerMessage, from node: SimulatedNode, to other: NodeID) -> Bool {
        if self.streams != nil { return self.sayTwice(message, node, to: other) }
        guard self.areLinked(node.id, other) else { return false }
        var heard = message
        if self.options.encodesMessages {
            guard let again = try? PeerMessage(decoding: message.encoded()) else {
                preconditionFailure("a message does not survive its codec: \(message)")
            }
            heard = again
        }
        self.send(from: node.id, to: other) { life in
            .peer(heard, from: node.id, to: other, life: life)
        }
        return true
    }

    /// Whether both nodes see each other as members, so that they have links. In a cluster that is
    /// not placed all nodes are linked.
    func areLinked(_ one: NodeID, _ other: NodeID) -> Bool {
        guard self.placed != nil else { return true }
        guard Int(other.raw) <= self.nodes.count,
            let near = self.node(one).shells?.life, near.peers.contains(other)
        else { return false }
        // Others do not know that a node is down: messages sent to it are lost.
        guard let far = self.node(other).shells?.life else { return true }
        return far.peers.contains(one)
    }

    func hear(_ message: PeerMessage, from: NodeID, to: NodeID, life: UInt64) {
        let node = self.node(to)
        guard node.incarnation == life, node.isUp else { return }
        switch message {
        case .response(let response):
            self.mix(9, from.raw, to.raw, response.number, 0)
            node.shells?.router.receive(response, from: from)
            node.assets?.asks.answer(response.number, response.answer)
            node.push?.asks.answer(response.number, response.answer)
        case .request(let request):
            self.mix(10, from.raw, to.raw, request.number, UInt64(request.group.raw))
            if case .node(let question) = request.body {
                if let push = node.push, let question = try? NodeQuestion(decoding: question) {
                    push.hear(question, request.number)
                }
                node.shells?.take(question, request.number, from: from)
            } else {
                let deadline =
                    node.local(self.now) + .milliseconds(Int64(request.remainingMilliseconds))
                self.take(
                    request.body, of: request.group, as: self.drawToken(),
                    for: .peer(from, number: request.number), deadline: deadline, on: node)
            }
        case .copy(let message): node.assets?.courier.receive(message, from: from)
        default: break
        }
    }
}

extension PeerResponse.Answer {
    init(_ result: Result<Simulation.Answer, ReplicaRefusal>, by node: NodeID) {
        self =
            switch result {
            case .success(.outcome(let outcome)): .outcome(outcome)
            case .success(.answer(let answer)): .answer(answer)
            case .success(.refused(let refusal)), .failure(let refusal):
                Self(refusal, by: node, busy: .notExecuted(retryAfterMilliseconds: 50))
            }
    }
}
