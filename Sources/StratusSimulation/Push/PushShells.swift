import StratusCluster
import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPush
import StratusRecords
import StratusRows
import StratusStorage

/// The sender of one process, as a node has it: the real dispatcher and the real lanes, over
/// simulated providers. Its polls are in ``PushPolls``.
///
/// `Sendable` is unchecked: a simulation and all that belongs to it run in one thread.
final class PushShells: ProcessPart, @unchecked Sendable {
    struct Prepared {
        var target: PushTarget
        var hit: News.Hit
        var from: NewsPosition
        var to: NewsPosition
        var judgedAt: MonotonicTime
        /// Of the device's row, simulated milliseconds.
        var registeredAt: Int64
        var identity: UInt64
        var lane: LaneName

        var name: PushLedger.FollowerName {
            PushLedger.FollowerName(database: self.target.database, token: self.target.token)
        }
        var spent: String? {
            self.hit.subscription.firesOnce ? self.hit.subscription.id : nil
        }

        func isSame(as other: Self) -> Bool {
            self.from == other.from && self.to == other.to && self.hit == other.hit
                && self.registeredAt == other.registeredAt
        }
    }

    enum Look {
        case nothing(through: UInt64)
        case push(Prepared)
        case gone
    }

    struct Lane {
        var machine: PushLane
        var isConnected = false
        var connectionNumber: UInt64 = 0
        var wakeAt: MonotonicTime?
    }

    struct Flight {
        var push: Prepared
        var lane: LaneName
        var sending: UInt64 = 0
        var sentAtMilliseconds: Int64 = 0
        var verdict: Verdict?
    }

    enum Verdict {
        case accepted
        case gone(at: Int64)
        case busy
    }

    let life: ProcessLife
    let push: PushWorld
    private let asks: PeerAsks
    private let partitions: PartitionClient
    let polls: PushPolls
    private var dispatcher: PushDispatcher
    var lanes: [LaneName: Lane] = [:]
    var flights: [UInt64: Flight] = [:]
    private var prepared: [PushTarget: Prepared] = [:]
    private var led: [GroupID: (term: Term, applied: LogIndex)] = [:]
    private var credentials: [String: (principal: Principal, readAt: MonotonicTime)] = [:]
    var count: UInt64 = 0
    private static let judgingPatience = Duration.seconds(2)

    init(_ life: ProcessLife, _ push: PushWorld) {
        self.life = life
        self.push = push
        self.asks = PeerAsks(life) { push.draw($0) }
        self.partitions = PartitionClient(self.asks, in: life.node.world)
        self.polls = PushPolls(life, push)
        self.dispatcher = PushDispatcher(push.dispatcherBounds, bugs: push.bugs)
    }

    var world: SimulatedWorld { self.life.node.world }

    // MARK: A process

    func start() {
        let (life, push) = (self.life, self.push)
        life.keepDoing {
            while !life.isGone {
                await life.sleep(for: .milliseconds(20 + push.draw(40)))
                life.node.push?.listen()
            }
        }
        life.keepDoing {
            while !life.isGone {
                await life.sleep(for: .milliseconds(100))
                life.node.push?.tick()
            }
        }
        self.polls.start()
        for number in 0..<2 {
            life.keepDoing { await PushWorker(life, push, number: number).run() }
        }
    }

    func end() {
        self.life.end()
        self.asks.end()
        self.polls.end()
    }

    func hear(_ response: PeerResponse, from _: NodeID) {
        self.asks.answer(response.number, response.answer)
    }

    func hear(_ question: NodeQuestion, _ number: UInt64) { self.polls.hear(question, number) }

    /// What a node hears of its partitions: that something was applied, or who leads.
    private func listen() {
        guard !self.life.isGone else { return }
        for group in self.life.simulation.clientGroups {
            let replica = self.life.node.host?.replica(of: group)
            guard let replica, replica.raft.role == .leader else {
                if self.led.removeValue(forKey: group) != nil { self.handle(.lost(group)) }
                continue
            }
            let now = (replica.raft.term, replica.state.applied)
            if let known = self.led[group], known == now { continue }
            self.led[group] = now
            self.handle(.news(group))
        }
    }

    private func tick() {
        guard !self.life.isGone else { return }
        let now = self.world.now
        if let wake = self.dispatcher.wake, now >= wake { self.handle(.woke) }
        for name in self.lanes.keys.sorted() {
            if let time = self.lanes[name]?.wakeAt, now >= time { self.tell(name, .woke) }
        }
    }

    // MARK: The dispatcher

    func handle(_ event: PushDispatcher.Event) {
        for action in self.dispatcher.handle(event, at: self.world.now) {
            switch action {
            case .scan(let group, let number, let after):
                self.life.spawn { await self.scan(group, number, after) }
            case .ask(let target, let after):
                self.life.spawn { await self.ask(target, after) }
            case .send(let target, let lane): self.begin(target, lane)
            case .settle(let target):
                let push = self.prepared.removeValue(forKey: target)
                self.life.spawn { await self.settle(target, push) }
            case .giveUp(let target):
                guard let push = self.prepared[target] else { continue }
                self.push.giveUp(push.hit, push.name, of: target.group)
            }
        }
    }

    private func scan(_ group: GroupID, _ number: UInt64, _ after: Bytes?) async {
        await self.life.sleep(for: .milliseconds(self.push.draw(4)))
        guard !self.life.isGone else { return }
        let ask = WaitingDevicesAsk {
            $0.after = after
            $0.limit = UInt32(1 + self.push.draw(4))
        }
        let query = ask.enveloped(as: RecordWorld.system)
        let answer = try? self.life.node.partitions[group]?.store.answer(query)
        guard let answer, let found = try? WaitingDevicesAsk.answer(decoding: answer.body)
        else { return self.handle(.scanned(group, number: number, nil, next: nil)) }
        let waiting = found.followers.map { follower in
            PushDispatcher.Waiting(
                PushTarget(
                    group: group, database: follower.database, subscriber: follower.subscriber,
                    token: follower.token), through: follower.through)
        }
        self.handle(.scanned(group, number: number, waiting, next: found.next))
    }

    private func ask(_ target: PushTarget, _ after: UInt64?) async {
        let look = await self.look(for: target, after: after)
        guard !self.life.isGone else { return }
        let found: PushDispatcher.Found
        switch look {
        case .nothing(let through)?: found = .nothing(through: through)
        case .push(let push)?:
            self.prepared[target] = push
            found = .push(push.lane)
        case .gone?: found = .gone
        case nil: found = .failed
        }
        self.handle(.asked(target, found))
        if !self.dispatcher.works(on: target) { self.prepared[target] = nil }
    }

    private func settle(_ target: PushTarget, _ push: Prepared?) async {
        var isDone = false
        if let push {
            isDone = await self.follow(
                push.name, target.subscriber, in: target.group, as: .device,
                .advance(
                    from: push.from, to: push.to, spent: push.spent, told: push.hit.told))
        }
        if !self.life.isGone { self.handle(.settled(target, isDone)) }
    }

    func ended(_ target: PushTarget, _ ending: PushDispatcher.Ending) {
        self.handle(.ended(target, ending))
        self.prepared[target] = nil
    }

    func replace(_ push: Prepared) { self.prepared[push.target] = push }
    func prepared(for target: PushTarget) -> Prepared? { self.prepared[target] }

    // MARK: Looking

    /// Who asks, as of at most a second ago.
    func principal(of user: String) -> Principal {
        let now = self.world.now
        if let known = self.credentials[user], now - known.readAt < .seconds(1) {
            return known.principal
        }
        let principal = self.push.principal(of: user)
        self.credentials[user] = (principal, now)
        return principal
    }

    /// The device's next push. Nil: its partition or its home did not answer.
    func look(for target: PushTarget, after: UInt64?) async -> Look? {
        // The row of the device, from its home.
        await self.life.sleep(for: .milliseconds(self.push.draw(6)))
        guard !self.life.isGone, self.push.draw(40) > 0 || self.life.simulation.isQuiet else {
            return nil
        }
        let name = PushLedger.FollowerName(database: target.database, token: target.token)
        guard let row = self.push.devices[target.token], let registeredAt = row.registeredAt,
            row.user == target.subscriber
        else {
            let isGone = await self.follow(
                name, target.subscriber, in: target.group, as: .device, .leave)
            return isGone ? .gone : nil
        }
        let judgedAt = self.world.now
        let principal = self.principal(of: row.user)
        var position = after.map { NewsPosition(number: $0) }
        for _ in 0..<16 {
            guard
                let news = await self.news(
                    of: name, in: target.group, as: .device, principal, after: position)
            else { return nil }
            guard let follower = news.follower else { return .gone }
            position = news.position
            if let hit = news.hit {
                let identity =
                    self.push.bugs.contains(.nidDrawnAtSend)
                    ? self.world.random() : PushWorld.identity(of: hit, target.token)
                return .push(
                    Prepared(
                        target: target, hit: hit, from: follower, to: news.position,
                        judgedAt: judgedAt, registeredAt: registeredAt, identity: identity,
                        lane: LaneName(
                            .apns, "provider\(PushWorld.provider(of: target.token))")))
            }
            if !news.hasMore { return .nothing(through: news.position.number) }
        }
        return nil
    }

    /// A look as its model sees it. Nil: no answer.
    func news(
        of name: PushLedger.FollowerName, in group: GroupID, as follower: NewsFollower,
        _ principal: Principal, after: NewsPosition?
    ) async -> News? {
        guard !self.life.isGone,
            let start = self.push.ledgers[group]?.start(
                of: name, applied: self.life.simulation.appliedByLeaders(of: group))
        else { return nil }
        let ask = NewsAsk(name.database) {
            $0.follower = follower
            $0.token = name.token
            $0.after = after
        }
        let answer: News?
        if self.push.bugs.contains(.newsOfDeposed),
            let peeked = try? self.life.node.partitions[group]?.store.answer(
                ask.enveloped(as: principal))
        {
            answer = try? NewsAsk.answer(decoding: peeked.body)
        } else {
            answer = try? await self.partitions.ask(ask, at: .group(group), as: Caller(principal))
        }
        guard !self.life.isGone, let news = answer else { return nil }
        self.push.count("looks")
        let problem = self.push.ledgers[group]?.problem(news, of: name, principal, since: start)
        if let problem {
            self.life.simulation.report(push: "\(group) \(name.token[0...1]): \(problem)")
        }
        return news
    }

    // MARK: Commands

    /// - Returns: nil where it was refused too.
    func submit<Operation: Submittable>(
        _ operation: Operation, as principal: Principal, to group: GroupID
    ) async -> Operation.Response? {
        do throws(PartitionError<Operation.Refusal>) {
            let outcome = try await self.partitions.submit(
                operation, at: .group(group), as: Caller(principal, in: RecordWorld.container),
                within: AssetWorld.commandLife)
            return self.life.isGone ? nil : outcome
        } catch { return nil }
    }

    /// - Returns: whether it was decided.
    func follow(
        _ name: PushLedger.FollowerName, _ user: String, in group: GroupID,
        as follower: NewsFollower, _ step: FollowNews.Step
    ) async -> Bool {
        let follow = FollowNews(name.database) {
            $0.subscriber = user
            $0.token = name.token
            $0.follower = follower
            $0.step = step
        }
        return await self.submit(follow, as: RecordWorld.system, to: group) != nil
    }
}
