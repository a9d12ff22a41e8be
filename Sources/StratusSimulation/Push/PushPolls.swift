import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRecords

/// The polls that one process holds, and the real attendance between nodes.
///
/// `Sendable` is unchecked: a simulation and all that belongs to it run in one thread.
final class PushPolls: @unchecked Sendable {
    private final class Seat: @unchecked Sendable {
        let databases: [DatabaseID]
        let since: Int64
        /// When a change of each database last woke it, simulated nanoseconds.
        var wokenAt: [DatabaseID: Int64] = [:]
        var isWoken = false
        var waiter: CheckedContinuation<Void, Never>?

        init(_ databases: [DatabaseID], at now: Int64) {
            self.databases = databases
            self.since = now
        }
    }

    /// What one node has said. Links keep its order, which the simulated network does not.
    private struct Words {
        /// The number of the newest word that was whole.
        var whole: UInt64 = 0
        /// The words since, by their numbers.
        var later: [UInt64: [UInt64]] = [:]
    }

    private static let repeatInterval = Duration.seconds(5)
    /// So long after its start a process has heard of every poll of the others. Clocks drift by a
    /// tenth.
    static let ignorance: Int64 = 6_000_000_000
    /// A change has woken the polls of other nodes by then. It is far more than a message takes.
    static let wakingTime = Duration.milliseconds(300)

    private let life: ProcessLife
    private let push: PushWorld
    private var attendance: Attendance
    private var seats: [Bytes: Seat] = [:]
    private var messageCount: UInt64
    private var words: [NodeID: Words] = [:]
    private let startedAt: Int64

    init(_ life: ProcessLife, _ push: PushWorld) {
        self.life = life
        self.push = push
        self.attendance = Attendance(bugs: push.bugs)
        self.messageCount = life.number << 40
        self.startedAt = life.simulation.now
    }

    func start() {
        let (life, push) = (self.life, self.push)
        for number in 0..<PushWorld.pollCount {
            let token = PushWorld.token(number, isPoll: true)
            life.keepDoing {
                while !life.isGone {
                    await life.sleep(
                        for: .milliseconds(
                            life.simulation.isQuiet ? 5 + push.draw(20) : 20 + push.draw(300)))
                    // A page may be open in a second window, at another node.
                    guard !life.isGone,
                        push.claims[token]?.isGone ?? true
                            || (life.simulation.options.opensTwoWindows && push.draw(8) == 0)
                    else { continue }
                    push.claims[token] = life
                    await life.node.push?.polls.hold(token)
                    if push.claims[token] === life { push.claims[token] = nil }
                }
            }
        }
        life.keepDoing {
            while !life.isGone {
                life.node.push?.polls.sayAll()
                await life.sleep(for: Self.repeatInterval)
            }
        }
    }

    func end() {
        for seat in self.orderedSeats {
            seat.waiter?.resume()
            seat.waiter = nil
        }
        self.seats = [:]
    }

    // MARK: Attendance

    private var others: [NodeID] {
        self.life.simulation.nodes.map(\.id).filter { $0 != self.life.node.id }
    }

    private func say(_ question: NodeQuestion, to node: NodeID) {
        self.messageCount += 1
        let request = PeerRequest(
            number: self.messageCount, group: .system, epoch: 0, remainingMilliseconds: 1_000,
            body: .node(question.encoded()))
        _ = self.life.simulation.send(.request(request), from: self.life.node, to: node)
    }

    private func names(_ databases: [DatabaseID]) -> [UInt64] {
        Set(databases.map { Attendance.name(of: $0) }).sorted()
    }

    private func sayAll() {
        guard !self.life.isGone else { return }
        let all = self.names(self.seats.values.flatMap(\.databases))
        for node in self.others {
            self.say(
                .attend(node: self.life.node.id, databases: all, isWhole: true), to: node)
        }
    }

    func hear(_ question: NodeQuestion, _ number: UInt64) {
        switch question {
        case .attend(let node, let databases, let isWhole):
            self.hear(databases, isWhole: isWhole, number, from: node)
        case .stirred(let names):
            for seat in self.orderedSeats {
                for database in seat.databases where names.contains(Attendance.name(of: database)) {
                    self.wake(seat, for: database)
                }
            }
        default: break
        }
    }

    private func hear(_ databases: [UInt64], isWhole: Bool, _ number: UInt64, from node: NodeID) {
        var words = self.words[node] ?? Words()
        guard number > words.whole, words.later[number] == nil else { return }
        if isWhole {
            words.whole = number
            words.later = words.later.filter { $0.key > number }
        } else {
            words.later[number] = databases
        }
        self.words[node] = words
        let now = self.life.node.world.now
        self.attendance.heard(from: node, databases, isWhole: isWhole, at: now)
        guard isWhole else { return }
        for (_, databases) in words.later.sorted(by: { $0.key < $1.key }) {
            self.attendance.heard(from: node, databases, isWhole: false, at: now)
        }
    }

    /// Whether the other nodes have said all that they must have, since this process began.
    var isInformed: Bool { self.life.simulation.now >= self.startedAt + Self.ignorance }

    /// A database has changed by way of this node.
    func changed(_ database: DatabaseID) {
        let name = Attendance.name(of: database)
        for seat in self.orderedSeats where seat.databases.contains(database) {
            self.wake(seat, for: database)
        }
        let listeners = self.attendance.listeners(of: name, at: self.life.node.world.now)
        for node in listeners where node != self.life.node.id {
            self.say(.stirred([name]), to: node)
        }
        if self.isInformed { self.life.simulation.expectWaking(by: database) }
    }

    /// In an order that is the same in every run.
    private var orderedSeats: [Seat] {
        self.seats.keys.sorted { $0.lexicographicallyPrecedes($1) }.compactMap { self.seats[$0] }
    }

    private func wake(_ seat: Seat, for database: DatabaseID) {
        seat.isWoken = true
        seat.wokenAt[database] = self.life.simulation.now
        seat.waiter?.resume()
        seat.waiter = nil
    }

    /// The polls that have waited for a while and follow this database.
    func waiting(for database: DatabaseID) -> [Bytes] {
        let before = self.life.simulation.now - 200_000_000
        return self.seats.filter {
            $0.value.since < before && $0.value.databases.contains(database)
        }
        .keys.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Whether a poll still waits that no change of this database has woken since. A change of
    /// another one does not count: most polls wait for several.
    func sleeps(_ token: Bytes, through database: DatabaseID, since time: Int64) -> Bool {
        guard let seat = self.seats[token] else { return false }
        return seat.since < time && seat.wokenAt[database] ?? 0 < time && seat.waiter != nil
    }

    // MARK: Polls

    private func wait(_ seat: Seat, for patience: Duration) async {
        let life = self.life
        life.spawn {
            await life.sleep(for: patience)
            seat.waiter?.resume()
            seat.waiter = nil
        }
        await withCheckedContinuation { continuation in
            if life.isGone || seat.isWoken { return continuation.resume() }
            seat.waiter = continuation
        }
        seat.isWoken = false
    }

    private func hold(_ token: Bytes) async {
        guard let shells = self.life.node.push else { return }
        let user = PushWorld.user(of: token)
        let databases = PushWorld.databases(of: user)
        let simulation = self.life.simulation
        // A page of a browser is registered before it polls.
        for group in simulation.clientGroups {
            guard self.push.prepared.contains(group) else { return }
            for database in databases {
                let name = PushLedger.FollowerName(database: database, token: token)
                if self.push.ledgers[group]?.followers[name] != nil { continue }
                guard await shells.follow(name, user, in: group, as: .poll, .begin) else { return }
            }
        }
        guard !self.life.isGone else { return }
        let seat = Seat(databases, at: simulation.now)
        self.seats[token] = seat
        defer { self.seats[token] = nil }
        for node in self.others {
            self.say(
                .attend(
                    node: self.life.node.id, databases: self.names(databases), isWhole: false),
                to: node)
        }
        // A page that is loaded again and again: its node says each time what it waits for.
        let isRestless = token[1] == 1
        let patience: Int64 = isRestless ? 700 : simulation.isQuiet ? 8_000 : 2_500
        let end = simulation.now + patience * 1_000_000
        while !self.life.isGone, simulation.now < end {
            for group in simulation.clientGroups {
                for database in databases {
                    let name = PushLedger.FollowerName(database: database, token: token)
                    if await self.look(name, user, in: group, shells) { return }
                }
            }
            // Seldom at the end: then a poll is woken, or told late.
            await self.wait(
                seat,
                for: simulation.isQuiet && !isRestless ? .seconds(4) : .milliseconds(400))
        }
    }

    /// - Returns: whether the poll was answered.
    private func look(
        _ name: PushLedger.FollowerName, _ user: String, in group: GroupID, _ shells: PushShells
    ) async -> Bool {
        var position: NewsPosition?
        for _ in 0..<16 {
            let principal = shells.principal(of: user)
            guard !self.life.isGone,
                let news = await shells.news(
                    of: name, in: group, as: .poll, principal, after: position),
                let follower = news.follower
            else { return false }
            position = news.position
            if let hit = news.hit {
                // Judged by the roles of now, before anything leaves.
                if shells.principal(of: user) != principal {
                    position = nil
                    continue
                }
                await self.answer(hit, name, user, in: group, follower, news.position, shells)
                return true
            }
            if !news.hasMore { return false }
        }
        return false
    }

    private func answer(
        _ hit: News.Hit, _ name: PushLedger.FollowerName, _ user: String, in group: GroupID,
        _ from: NewsPosition, _ to: NewsPosition, _ shells: PushShells
    ) async {
        let simulation = self.life.simulation
        // A look may have taken until its end.
        if let problem = self.push.leaves(hit, in: name.database, for: user, at: simulation.now) {
            simulation.report(push: problem)
        }
        if simulation.options.opensTwoWindows, !simulation.isQuiet, self.push.draw(4) == 0 {
            // One window is slower than the other.
            await self.life.sleep(for: .milliseconds(self.push.draw(500)))
            guard !self.life.isGone else { return }
            self.push.count("slow pages")
        }
        // The client goes away before it has all bytes.
        let isTaken = self.push.draw(6) > 0 || simulation.isQuiet
        if isTaken {
            let problem = self.push.tell(
                hit, name, of: group, identity: PushWorld.identity(of: hit, name.token))
            if let problem { simulation.report(push: problem) }
        } else {
            self.push.count("polls cut")
        }
        guard isTaken || self.push.bugs.contains(.handedCountsAsTaken) else { return }
        _ = await shells.follow(
            name, user, in: group, as: .poll,
            .advance(
                from: from, to: to,
                spent: hit.subscription.firesOnce ? hit.subscription.id : nil, told: hit.told))
    }
}
