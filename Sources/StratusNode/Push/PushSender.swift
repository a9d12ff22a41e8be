import StratusAdmin
import StratusCluster
import StratusCoding
import StratusGateway
import StratusIdentity
import StratusModel
import StratusPush
import StratusRecords
import StratusRows
import StratusRuntime

/// Sends pushes for the partitions that this node leads: the shell around ``PushDispatcher`` and
/// the lanes.
///
/// It decides nothing of its own and keeps nothing that must last. When it ends, in whatever way,
/// the devices' rows say what was not told, and the next leader's sender goes on.
actor PushSender {
    struct Lane {
        var machine: PushLane
        var connection: (any PushConnection)?
        /// Connections and what was sent over them, in order. What comes of an older one says
        /// nothing.
        var connectionNumber: UInt64 = 0
        var wakeAt: MonotonicTime?
        var usedAt: MonotonicTime
        /// Whether its connection was told that nothing is sent for now.
        var isAtRest = false
        /// Since when it takes nothing although something waits.
        var stuckSince: MonotonicTime?
        /// The last answer that was not an acceptance.
        var trouble: String?
        var sentCount = 0
        /// APNs: whose key it sends with, and the token of it.
        var container: ContainerReference
        var apnsKey: PushKeys.APNsKey?
        var token: ProviderToken?
        /// When the next token was last asked for.
        var tokenAskedAt: MonotonicTime?
        /// Web Push: tokens by the number of their key and their container.
        var vapid: [String: VAPIDToken] = [:]
    }

    struct Flight {
        var push: PreparedPush
        var lane: LaneName
        /// Which sending of it is under way.
        var sending: UInt64 = 0
        var sentAtMilliseconds: Int64 = 0
        var verdict: PushAnswer.Verdict?
    }

    /// Between two looks at the clock.
    private static let tick = Duration.milliseconds(250)
    /// What one question or command to a partition may take.
    static let patience = Duration.seconds(10)
    /// The same while the push holds a place of its lane.
    private static let judgingPatience = Duration.seconds(2)
    static let laneCountMax = 512
    private static let laneLife = Duration.seconds(600)
    private static let restAfter = Duration.seconds(5)
    private static let alarmAfter = Duration.seconds(60)

    let desk: PushDesk
    let connector: PushConnector
    let replicas: NodeReplicas
    let world: any World
    let log: Log
    let health: Health
    let figures: PushFigures
    private var dispatcher = PushDispatcher()
    private(set) var lanes: [LaneName: Lane] = [:]
    private var flights: [UInt64: Flight] = [:]
    /// The push that was found for a device, until it is settled.
    private var prepared: [PushTarget: PreparedPush] = [:]
    /// Partitions that this node has worked for.
    private var led: Set<GroupID> = []
    private var count: UInt64 = 0
    private var isAlarmed = false
    /// Recent pushes, for administrators.
    private(set) var trail = PushTrail()

    init(
        _ desk: PushDesk, _ connector: PushConnector, _ replicas: NodeReplicas,
        in world: any World, log: Log, health: Health, figures: PushFigures
    ) {
        self.desk = desk
        self.connector = connector
        self.replicas = replicas
        self.world = world
        self.log = log
        self.health = health
        self.figures = figures
    }

    /// Sends until its task is cancelled.
    nonisolated func run() async {
        await withTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                while !Task.isCancelled {
                    await self.replicas.waitForEventNews()
                    await self.hear()
                }
            }
            tasks.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(for: Self.tick)
                    await self.look()
                }
            }
        }
        await self.end()
    }

    private func hear() async {
        let news = await self.replicas.groupsWithEventNews()
        for group in news.others where self.led.remove(group) != nil { self.handle(.lost(group)) }
        for group in news.led {
            self.led.insert(group)
            self.handle(.news(group))
        }
    }

    private func end() async {
        for lane in self.lanes.values { await lane.connection?.close() }
        self.lanes = [:]
    }

    // MARK: The dispatcher

    private func handle(_ event: PushDispatcher.Event) {
        for action in self.dispatcher.handle(event, at: self.world.now) {
            switch action {
            case .scan(let group, let number, let after):
                Task { await self.scan(group, number, after) }
            case .ask(let target, let after): Task { await self.ask(target, after) }
            case .send(let target, let lane): self.begin(target, lane)
            case .settle(let target):
                let push = self.prepared.removeValue(forKey: target)
                Task { await self.settle(target, push) }
            case .giveUp(let target):
                guard let push = self.prepared[target] else { continue }
                self.note(push, "dropped", "its device refuses it again and again")
            }
        }
    }

    private func scan(_ group: GroupID, _ number: UInt64, _ after: Bytes?) async {
        let query = WaitingDevicesAsk { $0.after = after }.enveloped(
            as: Principal(kind: .system))
        // What is applied here is near enough: what is applied later is news again.
        let answer = await self.replicas.peek(query, in: group)
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
        let found: PushDispatcher.Found
        do {
            switch try await self.desk.look(
                for: target, after: after, until: self.world.now + Self.patience)
            {
            case .nothing(let through): found = .nothing(through: through)
            case .push(let push):
                self.prepared[target] = push
                self.trail.matched(
                    push.change, target, lane: "\(push.lane)", at: self.world.wallMilliseconds)
                found = .push(push.lane)
            case .held(let pause): found = .held(pause)
            case .gone: found = .gone
            }
        } catch { found = .failed }
        self.handle(.asked(target, found))
        // Its partition was lost meanwhile.
        if !self.dispatcher.works(on: target) { self.prepared[target] = nil }
    }

    private func settle(_ target: PushTarget, _ push: PreparedPush?) async {
        var isDone = push != nil
        if let push {
            do {
                try await self.desk.settle(push, until: self.world.now + Self.patience)
                self.trail.settled(target, at: self.world.wallMilliseconds)
            } catch { isDone = false }
        }
        self.handle(.settled(target, isDone))
    }

    private func ended(_ target: PushTarget, _ ending: PushDispatcher.Ending) {
        self.handle(.ended(target, ending))
        self.prepared[target] = nil
    }

    // MARK: Lanes

    private func begin(_ target: PushTarget, _ name: LaneName) {
        guard let push = self.prepared[target] else { return self.ended(target, .busy) }
        if self.lanes[name] == nil {
            // Each kind apart: anybody may name services of Web Push.
            if self.isFull(name.provider) {
                self.dropIdleLanes(unusedFor: .zero, of: name.provider)
            }
            if self.isFull(name.provider), name.provider == .webPush { self.dropStuckLane() }
            guard !self.isFull(name.provider) else { return self.ended(target, .busy) }
            var bounds = PushLane.Bounds()
            bounds.queueCountMax = 1_000
            if name.provider == .webPush {
                // Requests of HTTP/1.1: a connection each.
                bounds.flightCountMax = WebPushConnection.flightCountMax
                bounds.queueCountMax = 256
            }
            self.lanes[name] = Lane(
                machine: PushLane(bounds), usedAt: self.world.now,
                container: target.database.container)
        }
        if case .apns(_, let key, _) = push.way { self.use(key, in: name, push) }
        self.count += 1
        let identity = self.count
        self.flights[identity] = Flight(push: push, lane: name)
        self.lanes[name]?.usedAt = self.world.now
        self.lanes[name]?.isAtRest = false
        self.tell(name, .push(PushLane.Push(identity: identity)))
    }

    /// The key that pushes of the lane bring: as their container has it now.
    private func use(_ key: PushKeys.APNsKey, in name: LaneName, _ push: PreparedPush) {
        let known = self.lanes[name]?.apnsKey
        self.lanes[name]?.apnsKey = key
        guard let known, known.revision != key.revision else { return }
        self.lanes[name]?.container = push.target.database.container
        self.lanes[name]?.token = nil
        self.tell(name, .keyChanged)
        Task { await self.renew(name) }
    }

    private func tell(_ name: LaneName, _ event: PushLane.Event) {
        let actions = self.lanes[name]?.machine.handle(
            event, at: self.world.now, draw: self.world.random())
        guard let actions else { return }
        self.lanes[name]?.wakeAt = nil
        for action in actions { self.carryOut(action, in: name) }
    }

    private func carryOut(_ action: PushLane.Action, in name: LaneName) {
        switch action {
        case .connect:
            guard var lane = self.lanes[name], let push = self.anyPush(of: name) else {
                return self.tell(name, .connectFailed)
            }
            lane.connectionNumber += 1
            self.lanes[name] = lane
            Task { await self.connect(name, lane.connectionNumber, push) }
        case .disconnect:
            guard let connection = self.lanes[name]?.connection else { return }
            self.lanes[name]?.connection = nil
            self.lanes[name]?.connectionNumber += 1
            Task { await connection.close() }
        case .send(let identity): self.transmit(identity)
        case .park(let identity):
            guard let flight = self.flights.removeValue(forKey: identity) else { return }
            self.figures.putBack(name.provider)
            let isOpen = self.lanes[name]?.machine.state == .open
            self.ended(flight.push.target, isOpen ? .busy : .park(name))
        case .settle(let identity):
            guard let flight = self.flights.removeValue(forKey: identity) else { return }
            self.conclude(flight)
            // It answers, and nothing is left by which to find out more.
            if let machine = self.lanes[name]?.machine, machine.state == .probing,
                machine.queueCount == 0
            {
                self.handle(.laneOpened(name))
            }
        case .drop(let identity):
            guard let flight = self.flights.removeValue(forKey: identity) else { return }
            self.note(flight.push, "dropped", "sent as often as is allowed")
            self.ended(flight.push.target, .settle)
        case .renewToken: Task { await self.renew(name) }
        case .refused(let reason):
            self.lanes[name]?.trouble = reason
            self.log.error(
                "a push provider does not believe the key",
                ["lane": .text("\(name)"), "reason": .text(reason)])
        case .opened: self.handle(.laneOpened(name))
        case .wake(let time): self.lanes[name]?.wakeAt = time
        }
    }

    private func anyPush(of name: LaneName) -> PreparedPush? {
        let identity = self.flights.filter { $0.value.lane == name }.keys.min()
        return identity.flatMap { self.flights[$0]?.push }
    }

    private func connect(_ name: LaneName, _ number: UInt64, _ push: PreparedPush) async {
        var connection: (any PushConnection)?
        do {
            if name.provider == .apns, self.lanes[name]?.token == nil {
                try await self.fetchToken(name)
            }
            connection = try await self.connector.connect(for: push)
        } catch {
            self.lanes[name]?.trouble = "no connection: \(error)"
        }
        guard self.lanes[name]?.connectionNumber == number else {
            await connection?.close()
            return
        }
        self.lanes[name]?.connection = connection
        self.tell(name, connection == nil ? .connectFailed : .connected)
    }

    // MARK: Tokens

    /// The token that all nodes show.
    /// - Parameter refused: one that APNs does not believe.
    private func fetchToken(_ name: LaneName, refused: ProviderToken? = nil) async throws {
        guard let lane = self.lanes[name], let key = lane.apnsKey else { return }
        let now = self.world.wallMilliseconds / 1_000
        let token = try await self.desk.keys.providerToken(
            of: key, in: lane.container,
            isDue: { issuedAt in
                let known = ProviderToken(text: "", issuedAt: issuedAt)
                if known.isDue(at: now) { return true }
                return refused.map { $0.issuedAt >= issuedAt && known.mayBeReplaced(at: now) }
                    ?? false
            },
            make: { now in
                ProviderToken(team: key.team, key: key.key, signing: key.signing, at: now).text
            })
        self.lanes[name]?.token = ProviderToken(text: token.text, issuedAt: token.issuedAt)
    }

    private func renew(_ name: LaneName) async {
        guard let lane = self.lanes[name] else { return }
        self.lanes[name]?.vapid = [:]
        if name.provider == .apns {
            do { try await self.fetchToken(name, refused: lane.token) } catch {
                self.lanes[name]?.trouble = "no token: \(error)"
                return self.tell(name, .tokenNotRenewed)
            }
        }
        self.tell(name, .tokenRenewed)
    }

    private func authorization(for push: PreparedPush, in name: LaneName) -> String? {
        switch push.way {
        case .apns: return self.lanes[name]?.token?.header
        case .webPush(let place, _, _, let key, _):
            let owner = push.target.database.container
            let id = "\(owner.container) \(owner.environment.name) \(key.number)"
            let now = self.world.wallMilliseconds / 1_000
            if let known = self.lanes[name]?.vapid[id], !known.isDue(at: now) {
                return known.header
            }
            let token = VAPIDToken(
                origin: place.origin, contact: key.contact, signing: key.signing, at: now)
            // One for each container that has browsers there.
            if self.lanes[name]?.vapid.count ?? 0 >= 256 { self.lanes[name]?.vapid = [:] }
            self.lanes[name]?.vapid[id] = token
            return token.header
        }
    }

    // MARK: Sending

    private func transmit(_ identity: UInt64) {
        guard var flight = self.flights[identity] else { return }
        self.count += 1
        flight.sending = self.count
        flight.sentAtMilliseconds = self.world.wallMilliseconds
        self.flights[identity] = flight
        let sending = flight.sending
        if PushRules.mustJudgeAgain(judgedAt: flight.push.preparedAt, now: self.world.now) {
            Task { await self.judgeAgain(identity, sending) }
        } else {
            self.send(identity, sending)
        }
    }

    /// It has waited: what it says must still be true, and its owner still be allowed to know.
    private func judgeAgain(_ identity: UInt64, _ sending: UInt64) async {
        guard let flight = self.flights[identity] else { return }
        let target = flight.push.target
        let look = try? await self.desk.look(
            for: target, after: nil, until: self.world.now + Self.judgingPatience)
        guard self.flights[identity]?.sending == sending else { return }
        if case .push(let push)? = look, push.isSame(as: flight.push) {
            self.prepared[target] = push
            self.flights[identity]?.push = push
            return self.send(identity, sending)
        }
        self.flights[identity] = nil
        self.tell(flight.lane, .withdraw(identity: identity))
        if case .gone? = look {
            self.ended(target, .gone)
        } else {
            self.ended(target, .busy)
        }
    }

    private func send(_ identity: UInt64, _ sending: UInt64) {
        guard let flight = self.flights[identity], let lane = self.lanes[flight.lane],
            let connection = lane.connection,
            let authorization = self.authorization(for: flight.push, in: flight.lane)
        else {
            // The connection has gone meanwhile.
            if let name = self.flights[identity]?.lane {
                self.tell(name, .answered(identity: identity, .unavailable(after: nil)))
            }
            return
        }
        self.trail.sent(flight.push.target, at: self.world.wallMilliseconds)
        Task {
            let answer = await connection.send(flight.push, authorization: authorization)
            self.answered(identity, sending, answer)
        }
    }

    private func answered(_ identity: UInt64, _ sending: UInt64, _ answer: PushAnswer) {
        guard let flight = self.flights[identity], flight.sending == sending else { return }
        let name = flight.lane
        self.flights[identity]?.verdict = answer.verdict
        self.trail.judged(flight.push.target, answer.words, at: self.world.wallMilliseconds)
        self.lanes[name]?.sentCount += 1
        switch answer.lane {
        case .accepted: self.lanes[name]?.trouble = nil
        case .final: break
        case .tokenRefused(let reason): self.lanes[name]?.trouble = reason
        case .unavailable: self.lanes[name]?.trouble = "unavailable"
        case .unanswered: self.lanes[name]?.trouble = "the connection ended"
        }
        self.tell(name, .answered(identity: identity, answer.lane))
    }

    // MARK: Verdicts

    private func conclude(_ flight: Flight) {
        let push = flight.push
        switch flight.verdict {
        case .accepted?:
            self.figures.sent(push.lane.provider, "accepted")
            self.ended(push.target, .settle)
        case .dropped(let reason)?:
            self.note(push, "dropped", reason)
            self.ended(push.target, .settle)
        case .gone(let moment)?:
            Task { await self.remove(push, goneAt: moment ?? flight.sentAtMilliseconds) }
        case .unknownDevice? where push.hostIsGuessed:
            Task {
                try? await self.desk.exchangeHost(
                    of: push, until: self.world.now + Self.patience)
                self.ended(push.target, .retry(after: .zero))
            }
        case .unknownDevice?: Task { await self.remove(push, goneAt: .max) }
        case .busy(let pause)?:
            self.figures.putBack(push.lane.provider)
            self.ended(push.target, .retry(after: pause ?? .seconds(30)))
        case nil: self.ended(push.target, .busy)
        }
    }

    private func remove(_ push: PreparedPush, goneAt moment: Int64) async {
        let isRemoved = try? await self.desk.remove(
            push, goneAt: moment, until: self.world.now + Self.patience)
        if isRemoved == true {
            self.note(push, "gone", "its provider says that the device is gone")
            self.ended(push.target, .gone)
        } else {
            // It was registered since, or its home did not answer.
            self.ended(push.target, .retry(after: .seconds(1)))
        }
    }

    /// Says what became of a push, without a word of where it went or what it says.
    private func note(_ push: PreparedPush, _ verdict: String, _ reason: String) {
        self.figures.sent(push.lane.provider, verdict)
        self.trail.judged(
            push.target, "\(verdict): \(reason)", at: self.world.wallMilliseconds)
        self.log.warning(
            "a push was not delivered",
            [
                "lane": .text("\(push.lane)"), "verdict": .text(verdict),
                "reason": .text(reason), "user": .text(push.target.subscriber),
            ])
    }

    // MARK: Time

    private func look() async {
        let now = self.world.now
        if let wake = self.dispatcher.wake, now >= wake { self.handle(.woke) }
        for name in self.lanes.keys.sorted() {
            if let time = self.lanes[name]?.wakeAt, now >= time { self.tell(name, .woke) }
            self.watch(name, now)
        }
        self.dropIdleLanes(unusedFor: Self.laneLife)
        self.alarm(now)
        var standing = PushFigures.Standing(
            activeCount: self.dispatcher.activeCount, restingCount: self.dispatcher.restingCount)
        for lane in self.lanes.values { standing.lanes[lane.machine.state.name, default: 0] += 1 }
        self.figures.stand(standing)
    }

    private func watch(_ name: LaneName, _ now: MonotonicTime) {
        guard let lane = self.lanes[name] else { return }
        switch lane.machine.state {
        case .resting, .refused: self.lanes[name]?.stuckSince = lane.stuckSince ?? now
        case .idle, .open, .paused: self.lanes[name]?.stuckSince = nil
        case .connecting, .probing: break
        }
        if !lane.isAtRest, lane.machine.flightCount == 0, now - lane.usedAt > Self.restAfter {
            self.lanes[name]?.isAtRest = true
            if let connection = lane.connection { Task { await connection.rest() } }
        }
        if name.provider == .apns, let token = lane.token,
            token.isDue(at: self.world.wallMilliseconds / 1_000),
            lane.tokenAskedAt.map({ now - $0 > Self.patience }) ?? true
        {
            self.lanes[name]?.tokenAskedAt = now
            Task { try? await self.fetchToken(name) }
        }
        // A key that was exchanged counts a second later (P-18).
        if lane.machine.isRefused { Task { await self.lookForKey(name) } }
    }

    private func lookForKey(_ name: LaneName) async {
        guard let lane = self.lanes[name], let key = lane.apnsKey,
            let known = try? await self.desk.keys.known(of: lane.container),
            self.lanes[name]?.machine.isRefused == true
        else { return }
        let found = known.apns.first { $0.team == key.team && $0.key == key.key }
        guard let now = found else {
            // It was removed, and with it what an operator had to look at.
            self.lanes[name] = nil
            return self.handle(.laneOpened(name))
        }
        guard now.revision != key.revision else { return }
        self.lanes[name]?.apnsKey = now
        self.lanes[name]?.token = nil
        try? await self.fetchToken(name)
        self.tell(name, .keyChanged)
    }

    private func isFull(_ provider: LaneName.Provider) -> Bool {
        self.lanes.keys.count { $0.provider == provider } >= Self.laneCountMax
    }

    /// - Parameter provider: nil: of every kind.
    private func dropIdleLanes(unusedFor life: Duration, of provider: LaneName.Provider? = nil) {
        let now = self.world.now
        for name in self.lanes.keys.sorted() where provider ?? name.provider == name.provider {
            guard let lane = self.lanes[name], lane.machine.queueCount == 0,
                lane.machine.flightCount == 0, !lane.machine.isRefused,
                now - lane.usedAt > life
            else { continue }
            self.lanes[name] = nil
            if let connection = lane.connection { Task { await connection.close() } }
        }
    }

    /// Whoever registers endpoints that never answer must not take the lanes of those that do.
    private func dropStuckLane() {
        let resting = self.lanes.filter { name, lane in
            guard name.provider == .webPush else { return false }
            if case .resting = lane.machine.state { return true }
            return false
        }
        let oldest = resting.min { one, other in
            (one.value.usedAt, one.key) < (other.value.usedAt, other.key)
        }
        guard let name = oldest?.key, let lane = self.lanes.removeValue(forKey: name) else {
            return
        }
        if let connection = lane.connection { Task { await connection.close() } }
        for identity in self.flights.filter({ $0.value.lane == name }).keys.sorted() {
            guard let flight = self.flights.removeValue(forKey: identity) else { continue }
            self.ended(flight.push.target, .park(name))
        }
    }

    private func alarm(_ now: MonotonicTime) {
        let stuck = self.lanes.keys.sorted().filter { name in
            self.lanes[name]?.stuckSince.map { now - $0 >= Self.alarmAfter } ?? false
        }
        if let name = stuck.first {
            let reason = self.lanes[name]?.trouble ?? "no answer"
            self.health.warn(
                "push",
                "\(name) takes no pushes: \(reason)"
                    + (stuck.count > 1 ? "; \(stuck.count - 1) others neither" : ""))
        } else if self.isAlarmed {
            self.health.dropWarning("push")
        }
        self.isAlarmed = !stuck.isEmpty
    }
}
