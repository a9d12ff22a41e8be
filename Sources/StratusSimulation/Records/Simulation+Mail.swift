import StratusCluster
import StratusCoding
import StratusConsensus
import StratusModel
import StratusRecords
import StratusStorage

/// A parcel from a courier to a group, until it is answered.
struct Parcel {
    var route: MailRoute
    var command: MailCommand

    var group: GroupID {
        if case .deliver = self.command { self.route.receiver } else { self.route.sender }
    }
}

/// An event of the mail at one node.
enum MailEvent {
    /// Time to look whether there is any.
    case look
    /// The courier asked for it.
    case woke
    /// A parcel of another node, or of this one.
    case arrived(Parcel, UInt64, from: NodeID, life: UInt64)
    case answered(UInt64, PeerResponse.Answer)
    case again(UInt64)
    case overdue(UInt64)
}

// Lets leaders carry mail between the groups that hold buckets: the real courier, over the
// simulated network.
extension Simulation {
    func startCarrying(on node: SimulatedNode) {
        guard self.records?.buckets != nil else { return }
        self.add(.mail(.look), to: node, at: self.now + 10_000_000)
    }

    func handle(_ event: MailEvent, on node: SimulatedNode) {
        switch event {
        case .look: self.lookForMail(on: node)
        case .woke: self.tell(node, .woke)
        case .arrived(let parcel, let number, let from, let life):
            self.mix(12, from.raw, node.id.raw, number, UInt64(parcel.group.raw))
            self.take(
                .command(self.envelope(parcel, by: node)), of: parcel.group, as: self.drawToken(),
                for: .carrier(from, life: life, parcel: number),
                deadline: node.local(self.now) + .seconds(5), on: node)
        case .answered(let number, let answer): self.answered(number, answer, on: node)
        case .again(let number): self.dispatch(number, from: node)
        case .overdue(let number): self.finish(number, nil, on: node)
        }
    }

    // MARK: Looking

    /// Looks for mail, as a node's carrier does when it is told of news.
    private func lookForMail(on node: SimulatedNode) {
        let pause = Int64.random(in: 10...100, using: &self.diskRandom) * 1_000_000
        self.add(.mail(.look), to: node, at: self.now + pause)
        for group in self.clientGroups {
            guard let partition = node.partitions[group],
                node.host?.replica(of: group)?.raft.role == .leader
            else {
                node.mailSeen[group] = nil
                continue
            }
            let count = partition.store.mailCount
            guard node.mailSeen[group] != count else { continue }
            node.mailSeen[group] = count
            self.tell(node, .news(group))
            guard node.isUp else { return }
        }
    }

    private func tell(_ node: SimulatedNode, _ event: MailCourier.Event) {
        var events = [event]
        while let next = events.popLast(), node.isUp {
            var actions: [MailCourier.Action] = []
            node.courier.handle(next, at: node.local(self.now), into: &actions)
            for action in actions {
                switch action {
                case .look(let group, let ask):
                    events.append(.found(group, self.outbox(ask, of: group, on: node)))
                case .deliver(let bag): self.post(.deliver(bag), bag.route, from: node)
                case .release(let receipt): self.post(.release(receipt), receipt.route, from: node)
                case .wake(let time):
                    self.add(.mail(.woke), to: node, at: max(self.now, node.global(time)))
                case .alarm(let route, let trouble):
                    self.invariants.report("mail arrives", "\(route): \(trouble)")
                }
            }
        }
    }

    private func outbox(_ ask: OutboxAsk, of group: GroupID, on node: SimulatedNode) -> Outbox? {
        guard let replica = node.host?.replica(of: group), replica.raft.role == .leader,
            let answer = try? replica.state.answer(ask.enveloped()), !self.hasEnded(node)
        else { return nil }
        return try? Outbox(decoding: answer.body)
    }

    // MARK: Carrying

    private func post(_ command: MailCommand, _ route: MailRoute, from node: SimulatedNode) {
        self.nextToken += 1
        let number = self.nextToken
        node.parcels[number] = Parcel(route: route, command: command)
        self.records?.count("parcels")
        self.add(.mail(.overdue(number)), to: node, at: self.now + 5_000_000_000)
        self.dispatch(number, from: node)
    }

    /// Sends to the node's presumed leader. Now and then, and if it knows none, it sends to any
    /// replica.
    private func dispatch(_ number: UInt64, from node: SimulatedNode) {
        guard let parcel = node.parcels[number] else { return }
        let any = self.nodes[Int.random(in: 0..<self.nodes.count, using: &self.networkRandom)].id
        let known = node.host?.replica(of: parcel.group)?.raft.leader
        let target = self.networkRandom.next() % 4 == 0 ? any : known ?? any
        if self.streams != nil, target != node.id {
            let request = PeerRequest(
                number: number, group: parcel.group, epoch: 0, remainingMilliseconds: 5_000,
                body: .command(self.envelope(parcel, by: node)))
            if !self.say(.request(request), node, to: target) { self.again(number, on: node) }
            return
        }
        // A node whose process has ended refuses connections, and the carrier's router goes on to
        // the next at once. What was under way to it is lost.
        guard target == node.id || self.areLinked(node.id, target) && self.node(target).isUp
        else {
            self.again(number, on: node)
            return
        }
        self.send(
            .mail(.arrived(parcel, number, from: node.id, life: node.incarnation)),
            from: node.id, to: target)
    }

    private func envelope(_ parcel: Parcel, by node: SimulatedNode) -> Command {
        parcel.command.enveloped(
            identity: RequestIdentity(high: self.diskRandom.next(), low: self.diskRandom.next()),
            deadlineMilliseconds: node.wall(self.now) + 5_000)
    }

    private func again(_ number: UInt64, on node: SimulatedNode) {
        self.add(.mail(.again(number)), to: node, at: self.now + 30_000_000)
    }

    /// The node that was asked answers.
    func giveBack(
        _ answer: PeerResponse.Answer, to carrier: NodeID, life: UInt64, _ parcel: UInt64,
        from node: SimulatedNode
    ) {
        // A later process of the carrier knows of no such parcel.
        self.send(.mail(.answered(parcel, answer)), from: node.id, to: carrier, life: life)
    }

    func answered(
        _ number: UInt64, _ answer: PeerResponse.Answer, on node: SimulatedNode
    ) {
        switch answer {
        case .outcome(let outcome) where outcome.verdict == .decided:
            self.finish(number, (try? MailOutcome(decoding: outcome.body)) ?? .refused, on: node)
        case .outcome, .answer: self.finish(number, .refused, on: node)
        case .notLeader, .notExecuted, .outcomeUnknown, .refused: self.again(number, on: node)
        }
    }

    private func finish(_ number: UInt64, _ outcome: MailOutcome?, on node: SimulatedNode) {
        guard let parcel = node.parcels.removeValue(forKey: number) else { return }
        switch parcel.command {
        case .deliver: self.tell(node, .delivered(parcel.route, outcome))
        case .release: self.tell(node, .released(parcel.route, outcome))
        }
    }

    // MARK: The end

    /// The reason why buckets are not settled: mail, or reservations whose deadline is still to
    /// come.
    func findMailProblem(_ leader: Replica) -> String? {
        guard self.records?.buckets != nil else { return nil }
        let answer = try? leader.state.answer(OutboxAsk().enveloped())
        guard let answer, let outbox = try? Outbox(decoding: answer.body) else {
            return "\(leader.group): its outbox cannot be read"
        }
        return outbox.waitingCount == 0 ? nil : "\(leader.group): \(outbox.waitingCount) mails wait"
    }

    func checkBuckets(_ replicas: [GroupID: Replica]) -> Violation? {
        guard let buckets = self.records?.buckets else { return nil }
        let names = SimulatedBuckets.names
        let ask = LinkEnds.Ask(
            RecordWorld.container, bucketCount: buckets.count, names: names)
        var ends: [LinkEnds] = []
        var records: [String: Record] = [:]
        for group in buckets.groups {
            guard let replica = replicas[group],
                let answer = try? replica.state.answer(
                    Query(kind: .reference, body: ask.encoded())),
                let found = try? LinkEnds(decoding: answer.body)
            else { return Violation("links between buckets", "\(group) cannot be read") }
            ends.append(found)
        }
        for name in names {
            let database = buckets.database(of: name)
            guard let replica = replicas[buckets.group(of: database)],
                case .lookup(let found)? = self.ask(
                    .lookup(
                        RecordLookup(
                            database: database, zone: ZoneID.defaultName, names: [name])),
                    of: replica)
            else { return Violation("links between buckets", "\(name) cannot be read") }
            if case .found(let record)? = found.items.first { records[name] = record }
        }
        return buckets.check(ends, records)
    }
}
