import StratusCluster
import StratusCoding
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// Partitions that write to each other, and couriers that lose, repeat, delay, mix up and die.
///
/// Everything is drawn from one seed. Partitions have clocks that disagree. Their applied entries
/// are kept, so that any of them can be restored to any time.
struct LetterWorld {
    struct Partition {
        let group: GroupID
        let skew: Int64
        var rows = Rows()
        var time = HybridTime.zero
        var log: [(command: Command, position: EntryPosition)] = []
    }

    /// The request of a courier, on its way.
    private struct Pending {
        let courier: Int
        let action: MailCourier.Action
    }

    var random: SeededGenerator
    var state: LetterState
    var partitions: [Partition] = []
    private var couriers: [MailCourier] = []
    private var pending: [Pending] = []
    /// Commands of which somebody gave up hope. They may still arrive, any number of times.
    private var late: [(GroupID, MailCommand)] = []
    private var wakes: [(at: MonotonicTime, courier: Int)] = []
    private var news: Set<GroupID> = []
    private(set) var now = MonotonicTime(nanoseconds: 0)
    private var identityCount: UInt64 = 0
    private(set) var refusedCount = 0
    private(set) var alarms: [MailCourier.Trouble] = []
    private(set) var deliveredTwiceCount = 0
    var hasFaults = true
    var wallMilliseconds: Int64 { 1_000_000 + self.now.nanoseconds / 1_000_000 }

    init(seed: UInt64, courierCount: Int = 2) {
        self.random = SeededGenerator(seed: seed)
        self.state = LetterState(countMax: UInt64.random(in: 1...6, using: &self.random))
        let count = Int.random(in: 1...4, using: &self.random)
        for number in 0..<count {
            self.partitions.append(
                Partition(
                    group: GroupID(UInt16(number * 100 + 1)),
                    skew: Int64.random(in: -400...400, using: &self.random)))
        }
        self.couriers = (0..<courierCount).map { _ in Self.courier }
    }

    private static var courier: MailCourier {
        var tuning = MailCourier.Tuning()
        tuning.underWayCountMax = 2
        tuning.mailCountMax = 3
        return MailCourier(tuning: tuning)
    }

    // MARK: Partitions

    @discardableResult
    mutating func apply(_ command: Command, to group: GroupID, after: HybridTime = .zero)
        throws -> Outcome
    {
        let number = try #require(self.partitions.firstIndex { $0.group == group })
        let before = max(self.partitions[number].time, after)
        let time = before.successor(
            wallMilliseconds: self.wallMilliseconds + self.partitions[number].skew)
        let position = EntryPosition(
            index: LogIndex(UInt64(self.partitions[number].log.count + 1)), time: time)
        self.partitions[number].time = time
        self.partitions[number].log.append((command, position))
        self.news.insert(group)
        return try self.state.apply(command, at: position, over: self.partitions[number].rows)
    }

    private mutating func apply(_ mail: MailCommand, to group: GroupID) throws -> MailOutcome? {
        // Bytes as on the wire, and the time that the leader's consensus would give it.
        let command = try MailCommand(decoding: mail.encoded())
        let outcome = try self.apply(
            command.enveloped(identity: self.draw(), deadlineMilliseconds: 0), to: group,
            after: command.after)
        return try? MailOutcome(decoding: outcome.body)
    }

    private mutating func draw() -> RequestIdentity {
        self.identityCount += 1
        return RequestIdentity(high: 0, low: self.identityCount)
    }

    mutating func write() throws {
        let sender = self.partitions.randomElement(using: &self.random)!.group
        let lines = (0..<Int.random(in: 1...2, using: &self.random)).map { number in
            let isQuestion = Bool.random(using: &self.random)
            return LetterState.Wish.Line(
                receiver: self.partitions.randomElement(using: &self.random)!.group,
                text: "\(isQuestion ? "ask" : "tell") \(self.identityCount).\(number)")
        }
        let outcome = try self.apply(
            LetterState.command(.write(lines), self.draw()), to: sender)
        if outcome.body == LetterState.full { self.refusedCount += 1 }
    }

    mutating func work() throws {
        for group in self.partitions.map(\.group) {
            try self.apply(LetterState.command(.work, self.draw()), to: group)
        }
    }

    // MARK: Couriers

    mutating func step() throws {
        self.now = self.now + .milliseconds(Int64.random(in: 0...20, using: &self.random))
        let isUnlucky = self.hasFaults && Int.random(in: 0..<20, using: &self.random) == 0
        if isUnlucky { try self.strike() }
        for courier in self.couriers.indices {
            // Each of them hears of it, as an old leader and a new one may.
            for group in self.news.sorted() {
                self.tell(courier, .news(group))
            }
        }
        self.news = []
        for wake in self.wakes where wake.at <= self.now { self.tell(wake.courier, .woke) }
        self.wakes.removeAll { $0.at <= self.now }
        guard !self.pending.isEmpty else { return }
        let next = self.pending.remove(
            at: Int.random(in: 0..<self.pending.count, using: &self.random))
        try self.carryOut(next)
    }

    /// Something that only happens on bad days.
    private mutating func strike() throws {
        if Bool.random(using: &self.random), let (group, mail) = self.late.popLast() {
            if Bool.random(using: &self.random) { self.late.insert((group, mail), at: 0) }
            _ = try self.apply(mail, to: group)
        } else {
            // A courier's process ends. What it had sent may arrive.
            let number = Int.random(in: 0..<self.couriers.count, using: &self.random)
            for pending in self.pending where pending.courier == number {
                if let (group, mail) = Self.command(pending.action) {
                    self.late.append((group, mail))
                }
            }
            self.pending.removeAll { $0.courier == number }
            self.wakes.removeAll { $0.courier == number }
            self.couriers[number] = Self.courier
            self.news.formUnion(self.partitions.map(\.group))
        }
    }

    private static func command(_ action: MailCourier.Action) -> (GroupID, MailCommand)? {
        switch action {
        case .deliver(let bag): (bag.route.receiver, .deliver(bag))
        case .release(let receipt): (receipt.route.sender, .release(receipt))
        case .look, .wake, .alarm: nil
        }
    }

    private mutating func carryOut(_ pending: Pending) throws {
        let luck = self.hasFaults ? Int.random(in: 0..<12, using: &self.random) : 11
        switch pending.action {
        case .look(let group, let ask):
            guard luck > 0 else { return self.tell(pending.courier, .found(group, nil)) }
            let partition = try #require(self.partitions.first { $0.group == group })
            let answer = try self.state.answer(ask.enveloped(), over: partition.rows.view)
            self.tell(
                pending.courier, .found(group, try Outbox(decoding: answer.body)))
        case .deliver, .release:
            guard let (group, mail) = Self.command(pending.action) else { return }
            var outcome: MailOutcome?
            switch luck {
            case 0: break
            case 1: self.late.append((group, mail))
            case 2: _ = try self.apply(mail, to: group)
            case 3:
                self.deliveredTwiceCount += 1
                _ = try self.apply(mail, to: group)
                outcome = try self.apply(mail, to: group)
            default: outcome = try self.apply(mail, to: group)
            }
            switch pending.action {
            case .deliver(let bag): self.tell(pending.courier, .delivered(bag.route, outcome))
            case .release(let receipt):
                self.tell(pending.courier, .released(receipt.route, outcome))
            default: break
            }
        case .wake, .alarm: break
        }
    }

    private mutating func tell(_ courier: Int, _ event: MailCourier.Event) {
        var actions: [MailCourier.Action] = []
        self.couriers[courier].handle(event, at: self.now, into: &actions)
        for action in actions {
            switch action {
            case .wake(let time): self.wakes.append((time, courier))
            case .alarm(_, let trouble): self.alarms.append(trouble)
            default: self.pending.append(Pending(courier: courier, action: action))
            }
        }
    }

    /// No more faults: everything arrives, unless something is stuck for ever.
    mutating func settle() throws {
        self.hasFaults = false
        self.news.formUnion(self.partitions.map(\.group))
        for _ in 0..<2_000 {
            for _ in 0..<20 { try self.step() }
            if try self.isQuiet() { return }
            // Jobs that waited for room, and couriers' rests.
            try self.work()
            self.now = self.now + .milliseconds(500)
        }
        Issue.record("mail that never arrives")
    }

    private func isQuiet() throws -> Bool {
        for partition in self.partitions {
            if partition.rows.count(.job) > 0 { return false }
            if try self.state.office.waitingCount(over: partition.rows.view) > 0 { return false }
        }
        return true
    }

    // MARK: Restoring

    /// Restores all partitions to `time`. Couriers and their mail belong to the life before: that was
    /// another cluster, whose links nobody accepts.
    mutating func restore(to time: HybridTime) throws {
        self.pending = []
        self.late = []
        self.wakes = []
        self.couriers = self.couriers.map { _ in Self.courier }
        for number in self.partitions.indices {
            let log = self.partitions[number].log.filter { $0.position.time <= time }
            self.partitions[number].log = log
            self.partitions[number].rows = Rows()
            for (command, position) in log {
                _ = try self.state.apply(
                    command, at: position, over: self.partitions[number].rows)
            }
        }
    }

    // MARK: What must hold

    /// Everything that was posted was received, once, in its order; and nothing else.
    func expectAllArrived(_ situation: String) throws {
        var count = 0
        for sender in self.partitions {
            for receiver in self.partitions {
                let posted = try LetterState.posted(to: receiver.group, over: sender.rows.view)
                let received = try LetterState.received(
                    from: sender.group, over: receiver.rows.view)
                #expect(
                    posted == received, "\(situation): \(sender.group) to \(receiver.group)")
                count += posted.count
            }
            let office = try self.state.office.outbox(OutboxAsk(), over: sender.rows.view)
            #expect(
                office.waitingCount == 0 && office.waitingSize == 0 && office.piles.isEmpty,
                "\(situation): \(sender.group) keeps \(office)")
        }
        #expect(count > 0, "\(situation): nobody wrote anything")
    }

    /// At any time: what was received is the beginning of what was posted.
    func expectNothingOutOfOrder(_ situation: String) throws {
        for sender in self.partitions {
            for receiver in self.partitions {
                let posted = try LetterState.posted(to: receiver.group, over: sender.rows.view)
                let received = try LetterState.received(
                    from: sender.group, over: receiver.rows.view)
                #expect(
                    Array(posted.prefix(received.count)) == received,
                    "\(situation): \(sender.group) to \(receiver.group)")
            }
        }
    }
}
