import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRecords
import StratusStorage

// Clusters whose groups hold the real records' state.
extension Simulation {
    // MARK: Asking

    /// The request of a client to a replica.
    func body(
        of asked: SimulatedClient.Current, as identity: RequestIdentity, by node: SimulatedNode
    ) -> PeerRequest.Body {
        let name = RegisterName(group: asked.group, register: asked.register)
        switch asked.work {
        case .command(let body):
            let level =
                self.options.levels == nil ? FeatureLevel.one : self.level(for: body, on: node)
            return .command(
                Command(
                    kind: .reference, identity: identity,
                    deadlineMilliseconds: asked.deadlineMilliseconds,
                    container: ContainerReference(
                        container: "simulation", environment: .development),
                    schemaVersion: 0, principal: Principal(kind: .system),
                    body: body.encoded(for: level)))
        case .read: return .query(RegisterQuery.value(name.key).query)
        case .feed(let after): return .query(RegisterQuery.feed(after: after, limit: 10).query)
        case .records(.command(let body, let principal)):
            return .command(
                body.enveloped(
                    container: RecordWorld.container, identity: identity,
                    deadlineMilliseconds: asked.deadlineMilliseconds, schemaVersion: 0,
                    principal: principal))
        case .records(.query(let ask, let principal)):
            return .query(RecordQuery(principal: principal, ask).enveloped())
        }
    }

    /// How far a zone is known to have come that is asked about now.
    func floor(of work: SimulatedClient.Work, in group: GroupID) -> UInt64? {
        guard case .records(let work) = work else { return nil }
        return self.records?.floor(of: work, in: group)
    }

    func thinkOfRecords(_ index: Int, in group: GroupID) {
        if self.records?.zones != nil,
            self.records?.zones?.requests[index] != nil
                || Bool.random(using: &self.clientRandom)
        {
            return self.thinkOfZones(index)
        }
        if self.records?.buckets != nil, Int.random(in: 0..<3, using: &self.clientRandom) == 0 {
            return self.thinkOfBuckets(index)
        }
        guard let client = self.records?.clients[index],
            let work = self.records?.workload.work(
                in: group, for: client, using: &self.clientRandom)
        else { return }
        self.begin(.records(work), RegisterName(group: group, register: 0), by: index)
    }

    private func thinkOfBuckets(_ index: Int) {
        guard
            let fields = self.records?.workload.fields(using: &self.clientRandom),
            let step = self.records?.buckets?.step(
                of: index, fields: fields, using: &self.clientRandom)
        else { return }
        self.begin(
            .records(step.work), RegisterName(group: step.group, register: 0), by: index,
            deadline: step.deadline)
    }

    private func thinkOfZones(_ index: Int) {
        guard
            let step = self.records?.zoneStep(
                of: index, at: self.now, using: &self.clientRandom)
        else { return }
        self.begin(
            .records(step.work), RegisterName(group: step.group, register: 0), by: index,
            identity: step.identity)
    }

    // MARK: Hearing

    func finish(
        _ current: SimulatedClient.Current, _ work: RecordWork, _ outcome: Outcome, by index: Int
    ) {
        guard outcome.verdict == .decided else {
            // An earlier copy may have been applied in time.
            self.report.unknownCount += 1
            return self.forget(current, work, by: index)
        }
        self.report.acknowledgedCount += 1
        self.clients[index].leaders[current.group] = current.target
        var events: [SimulatedRecords.RegisterEvent] = []
        let problem = self.records?.hear(
            outcome, of: work, as: current.identity, deadline: current.deadlineMilliseconds,
            in: current.group, by: index, events: &events)
        if let problem {
            self.invariants.report(
                problem.rule, "\(current.group): client \(index) is answered: \(problem.text)")
        }
        self.record(events, of: current, returnedAt: self.now)
        self.timeline?.operation(
            in: current.group, from: current.calledAt, to: self.now, isKnown: true)
        self.continueAtTheEnd(current, outcome)
    }

    /// A command whose outcome nobody will know.
    func forget(_ current: SimulatedClient.Current, _ work: RecordWork, by index: Int) {
        let events = self.records?.possibleEvents(of: work, in: current.group, by: index) ?? []
        self.record(events, of: current, returnedAt: nil)
        self.timeline?.operation(
            in: current.group, from: current.calledAt, to: self.now, isKnown: false)
        self.continueAtTheEnd(current, nil)
    }

    func finish(
        _ current: SimulatedClient.Current, _ work: RecordWork, _ answer: QueryAnswer,
        by index: Int
    ) {
        var events: [SimulatedRecords.RegisterEvent] = []
        let violation = self.records?.hear(
            answer, to: work, in: current.group, by: index, floor: current.floor,
            events: &events)
        if let violation {
            self.invariants.report(violation.rule, "\(current.group): \(violation.text)")
        }
        self.record(events, of: current, returnedAt: self.now)
    }

    private func record(
        _ events: [SimulatedRecords.RegisterEvent], of current: SimulatedClient.Current,
        returnedAt: Int64?
    ) {
        for event in events {
            let name = RegisterName(
                group: event.group ?? current.group, register: event.register)
            self.history.registers[name, default: []].append(
                .init(
                    event.operation, calledAt: event.calledAt ?? current.calledAt,
                    returnedAt: returnedAt))
        }
    }

    // MARK: The end

    /// The first client writes to every group, reads every register, and sees jobs to their end.
    func beginEnd(_ next: RegisterName, by index: Int) {
        let work: RecordWork
        switch next.register {
        case RegisterName.lastWrite:
            guard
                let last = self.records?.workload.lastWrite(
                    in: next.group, using: &self.clientRandom)
            else { return }
            work = last
        case RegisterName.jobs: work = RecordWorkload.jobs(budget: 10_000)
        default:
            work = RecordWorkload.lookup(
                [RecordWorld.registerName(next.register)], in: RecordWorld.shelves)
        }
        self.begin(.records(work), next, by: index)
    }

    /// Jobs that are not done are asked for again.
    private func continueAtTheEnd(_ current: SimulatedClient.Current, _ outcome: Outcome?) {
        guard self.phase == .liveness, current.register == RegisterName.jobs else { return }
        if let outcome,
            case .jobs(let progress)? = try? RecordOutcome(decoding: outcome.body),
            !progress.hasMore
        {
            return
        }
        self.closing.append(RegisterName(group: current.group, register: RegisterName.jobs))
    }

    /// The reason why a group's records are not settled: jobs or reservations left behind.
    func findRecordsProblem(_ leader: Replica) -> String? {
        guard self.records != nil, self.clientGroups.contains(leader.group) else { return nil }
        if let problem = self.findMailProblem(leader) { return problem }
        let wall = self.node(leader.node).wall(self.now)
        switch self.ask(.work(asOf: wall), of: leader) {
        case .work(isWaiting: false, willWait: false)?: return nil
        case .work(isWaiting: false, willWait: true)?:
            return "\(leader.group) has reservations left"
        default: break
        }
        let jobs = RegisterName(group: leader.group, register: RegisterName.jobs)
        if self.closing.isEmpty, self.clients[0].current == nil {
            self.closing.append(jobs)
            self.queue.add(.client(.think(0)), at: self.now + 1_000_000)
        }
        return "\(leader.group) has jobs left"
    }
}
