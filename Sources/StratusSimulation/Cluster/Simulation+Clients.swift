import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusStorage

// Clients: each asks, waits, asks again under the same identity, and writes down what it saw.
extension Simulation {
    func thinkTime() -> Int64 {
        let most = self.options.thinkTimeMax.clampedNanoseconds
        return self.now + Int64.random(in: 0...most, using: &self.clientRandom)
    }

    private func draw(_ count: Int) -> Int {
        Int.random(in: 0..<max(1, count), using: &self.clientRandom)
    }

    private var trueWall: Int64 { 1_700_000_000_000 + self.now / 1_000_000 }

    // MARK: Asking

    func handle(_ event: ClientEvent) {
        switch event {
        case .think(let client): self.think(client)
        case .request(let client, let number, let identity, let to):
            self.request(client: client, number: number, identity: identity, to: to)
        case .response(let client, let number, let answer):
            self.respond(client: client, number: number, answer)
        case .impatience(let client, let number, let attempt):
            self.lostPatience(client: client, number: number, attempt: attempt)
        }
    }

    private func think(_ index: Int) {
        guard self.clients[index].current == nil, self.recovery == nil else { return }
        if self.phase == .liveness {
            self.thinkOfTheEnd(index)
            return
        }
        let group = self.clientGroups[self.draw(self.clientGroups.count)]
        if self.records != nil { return self.thinkOfRecords(index, in: group) }
        let register = self.draw(self.options.registerCount)
        let name = RegisterName(group: group, register: register)
        let work: SimulatedClient.Work
        switch index < self.options.readerCount ? 8 : self.draw(10) {
        case 9 - self.options.readShare..<9: work = .read(register: register)
        case 0...2: work = .command(.write(name.key, value: self.newValue()))
        case 3...8:
            let expected = self.clients[index].seen[name].map(self.bytes)
            work = .command(
                .compareAndSet(name.key, expected: expected, value: self.newValue()))
        default: work = .feed(after: self.clients[index].cursors[group] ?? 0)
        }
        self.begin(work, name, by: index)
    }

    private func newValue() -> Bytes {
        defer { self.nextValue += 1 }
        return self.bytes(self.nextValue)
    }

    /// The value, and behind it what makes some of them long: as its number says, always the same.
    private func bytes(_ value: Int) -> Bytes {
        let most = self.options.valueSizeMax.raw
        let draw = UInt64(value) &* 0x9E37_79B9_7F4A_7C15 >> 33
        let size = draw % self.options.longValueOneIn == 0 ? Int(draw) % max(1, most) : 0
        return History.bytes(value) + Bytes(repeating: 0x5A, count: size > 8 ? size - 8 : 0)
    }

    /// - Parameters:
    ///   - deadline: nil: drawn.
    ///   - identity: nil: drawn.
    func begin(
        _ work: SimulatedClient.Work, _ name: RegisterName, by index: Int, deadline: Int64? = nil,
        identity: RequestIdentity? = nil
    ) {
        let group = name.group
        self.clients[index].operationCount += 1
        self.report.operationCount += 1
        let leader = self.clients[index].leaders[group]
        let target = leader ?? self.nodes[self.draw(self.nodes.count)].id
        let life = Int64.random(in: 1_000...6_000, using: &self.clientRandom)
        let current = SimulatedClient.Current(
            number: self.clients[index].operationCount, group: group, register: name.register,
            work: work, identity: identity ?? self.newIdentity(), calledAt: self.now,
            deadlineMilliseconds: deadline
                ?? max(self.trueWall, self.clients[index].latestMilliseconds) + life,
            givesUpAt: self.now + life * 1_000_000 + 500_000_000, target: target,
            floor: self.floor(of: work, in: group))
        self.clients[index].current = current
        self.sendRequest(index)
    }

    private func newIdentity() -> RequestIdentity {
        RequestIdentity(high: self.clientRandom.next(), low: self.clientRandom.next())
    }

    private func sendRequest(_ index: Int) {
        guard let current = self.clients[index].current else { return }
        self.clients[index].current?.attempt += 1
        let isFaulty = self.phase == .safety
        let event = Event.client(
            .request(
                client: index, number: current.number, identity: current.identity,
                current.target))
        let isLost =
            isFaulty && self.options.faults.contains(.loss) && self.networkRandom.next() % 20 == 0
        if !isLost { self.queue.add(event, at: self.now + self.delay(isFaulty)) }
        if isFaulty, self.options.faults.contains(.duplication),
            self.networkRandom.next() % 10 == 0
        {
            // C-08, C-51: a copy that arrives when everything is long over.
            self.keepForLater(current)
            self.queue.add(
                event,
                at: self.now + Int64.random(in: 0...8_000_000_000, using: &self.networkRandom))
        }
        let patience = Int64.random(
            in: self.options.patienceMilliseconds, using: &self.clientRandom)
        self.queue.add(
            .client(
                .impatience(client: index, number: current.number, attempt: current.attempt + 1)),
            at: self.now + patience * 1_000_000)
    }

    private func keepForLater(_ current: SimulatedClient.Current) {
        guard current.work.isWrite else { return }
        self.lateCopies[current.identity] = current
    }

    // MARK: At the node

    func request(client index: Int, number: Int, identity: RequestIdentity, to id: NodeID) {
        let node = self.node(id)
        guard node.isUp else { return }
        let live = self.clients[index].current
        let asked = live?.number == number ? live : self.lateCopies[identity]
        guard let asked else { return }
        self.mix(6, id.raw, UInt32(index), UInt64(number), 0)
        self.nextToken += 1
        let token = RaftGroup.RequestToken(self.nextToken)
        let asker = SimulatedNode.Asker.client(index, operation: number)
        guard self.isOpen(asked.group, on: node) else {
            return self.respond(to: asker, .refused(.notLeader(nil)))
        }
        node.requests[token] = SimulatedNode.PendingRequest(
            asker: asker, group: asked.group, isWrite: asked.work.isWrite,
            askedAt: self.now)
        let body = self.body(of: asked, as: identity, by: node)
        self.enter(node, asked.group) { host, now, effects in
            host.with(asked.group, at: now, into: &effects) { replica, out in
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

    func answer(
        _ token: RaftGroup.RequestToken, of group: GroupID, on node: SimulatedNode,
        _ result: Result<Answer, ReplicaRefusal>
    ) {
        guard let pending = node.requests.removeValue(forKey: token) else { return }
        // The client hears nothing, and asks again.
        if case .success = result, self.answersFromRot(node, of: group) { return }
        if pending.isWrite, case .success = result, let replica = node.host?.replica(of: group) {
            self.invariants.acknowledged(
                node.id, replica, at: replica.state.applied, disks: self.nodes)
        }
        if !pending.isWrite, case .success = result, let replica = node.host?.replica(of: group) {
            self.invariants.answersRead(replica, askedAt: pending.askedAt)
        }
        guard case .client = pending.asker else {
            return self.give(
                PeerResponse.Answer(result, by: node.id), to: pending, token, node)
        }
        switch result {
        case .success(let answer): self.respond(to: pending.asker, answer)
        case .failure(let refusal): self.respond(to: pending.asker, .refused(refusal))
        }
    }

    private func respond(to asker: SimulatedNode.Asker, _ answer: Answer) {
        guard case .client(let client, let operation) = asker else { return }
        self.queue.add(
            .client(.response(client: client, number: operation, answer)),
            at: self.now + self.delay(self.phase == .safety))
    }

    // MARK: Hearing

    func respond(client index: Int, number: Int, _ answer: Answer) {
        guard let current = self.clients[index].current, current.number == number else { return }
        self.mix(7, UInt32(index), 0, UInt64(number), 0)
        switch answer {
        case .refused(let refusal):
            self.clients[index].leaders[current.group] = nil
            var next = self.nodes[self.draw(self.nodes.count)].id
            if case .notLeader(let hint?) = refusal { next = hint }
            self.clients[index].current?.target = next
            // Not at once: an election takes a while, and a loop of refusals would only make noise.
            self.queue.add(
                .client(.impatience(client: index, number: number, attempt: current.attempt)),
                at: self.now + 20_000_000)
        case .outcome(let outcome): self.finish(current, outcome, by: index)
        case .answer(let answer): self.finish(current, answer, by: index)
        }
    }

    func lostPatience(client index: Int, number: Int, attempt: Int) {
        guard let current = self.clients[index].current, current.number == number,
            current.attempt == attempt
        else { return }
        if self.now >= current.givesUpAt {
            self.giveUp(current, by: index)
            return
        }
        if self.bugs.contains(.retryUnderNewIdentity), current.work.isWrite {
            self.clients[index].current?.identity = self.newIdentity()
        }
        if self.draw(2) == 0 {
            self.clients[index].current?.target = self.nodes[self.draw(self.nodes.count)].id
        }
        self.sendRequest(index)
    }

    private func giveUp(_ current: SimulatedClient.Current, by index: Int) {
        self.report.unknownCount += 1
        switch current.work {
        case .command(let command): self.record(current, command, outcome: nil)
        case .records(let work): if work.isWrite { self.forget(current, work, by: index) }
        case .read, .feed: break
        }
        self.done(index)
    }

    private func done(_ index: Int) {
        self.clients[index].current = nil
        self.queue.add(.client(.think(index)), at: self.thinkTime())
    }

    private func finish(
        _ current: SimulatedClient.Current, _ outcome: Outcome, by index: Int
    ) {
        if let time = outcome.expiredAtMilliseconds {
            self.clients[index].latestMilliseconds = max(
                self.clients[index].latestMilliseconds, time)
        }
        if case .records(let work) = current.work {
            self.finish(current, work, outcome, by: index)
            return self.done(index)
        }
        guard case .command(let command) = current.work else { return }
        switch outcome.verdict {
        case .decided:
            guard let decided = try? RegisterOutcome(decoding: outcome.body) else {
                self.invariants.report("outcome", "an outcome does not decode")
                return
            }
            self.record(current, command, outcome: decided)
            self.report.acknowledgedCount += 1
            let name = RegisterName(group: current.group, register: current.register)
            self.clients[index].seen[name] = History.value(
                decided.tookEffect ? command.newValue : decided.before)
            self.clients[index].leaders[current.group] = current.target
        case .expired, .unreadable:
            // An earlier copy may have been applied in time.
            self.record(current, command, outcome: nil)
            self.report.unknownCount += 1
        case .none:
            // Only a planted bug answers so.
            self.record(
                current, command, outcome: RegisterOutcome(tookEffect: true, before: nil))
        }
        self.done(index)
    }

    private func finish(
        _ current: SimulatedClient.Current, _ answer: QueryAnswer, by index: Int
    ) {
        self.report.acknowledgedCount += 1
        self.clients[index].leaders[current.group] = current.target
        switch current.work {
        case .read(let register):
            let name = RegisterName(group: current.group, register: register)
            let bytes = (try? RegisterState.value(in: answer)) ?? nil
            let value = History.value(bytes)
            self.clients[index].seen[name] = value
            self.history.registers[name, default: []].append(
                .init(.read(value), calledAt: current.calledAt, returnedAt: self.now))
        case .feed(let after):
            let changes = (try? RegisterState.changes(in: answer)) ?? []
            self.history.feedReads.append(
                .init(
                    client: index, group: current.group, calledAt: current.calledAt,
                    after: after, changes: changes, isComplete: changes.count < 10))
            if let last = changes.last {
                self.clients[index].cursors[current.group] = last.position
            }
        case .records(let work): self.finish(current, work, answer, by: index)
        case .command: break
        }
        self.done(index)
    }

    private func record(
        _ current: SimulatedClient.Current, _ command: RegisterCommand, outcome: RegisterOutcome?
    ) {
        let name = RegisterName(group: current.group, register: current.register)
        let returned = outcome == nil ? nil : self.now
        let new = History.value(command.newValue)
        let operation: LinearizabilityChecker.Operation
        switch command {
        case .write, .remove: operation = .write(new)
        case .compareAndSet(_, let expected, _):
            operation =
                outcome?.tookEffect == false
                ? .failedCompareAndSet(expected: History.value(expected))
                : .compareAndSet(expected: History.value(expected), value: new)
        }
        self.history.registers[name, default: []].append(
            .init(operation, calledAt: current.calledAt, returnedAt: returned))
        if let new {
            self.history.writes.append(
                .init(
                    value: new, group: current.group, returnedAt: returned,
                    tookEffect: outcome?.tookEffect))
        }
        self.timeline?.operation(
            in: current.group, from: current.calledAt, to: self.now, isKnown: outcome != nil)
    }

    // MARK: The end

    /// The first client writes to every group and reads every register; the others rest.
    private func thinkOfTheEnd(_ index: Int) {
        guard index == 0, let next = self.closing.popLast() else { return }
        if self.records != nil {
            self.beginEnd(next, by: index)
        } else if next.register < 0 {
            let name = RegisterName(group: next.group, register: 0)
            self.begin(
                .command(.write(name.key, value: self.newValue())), name, by: index)
        } else {
            self.begin(.read(register: next.register), next, by: index)
        }
    }
}

extension RegisterCommand {
    var newValue: Bytes? {
        switch self {
        case .write(_, let value), .compareAndSet(_, _, let value): value
        case .remove: nil
        }
    }
}
