import StratusCluster
import StratusModel
import Testing

/// The courier's decisions, one conversation at a time.
@Suite struct MailCourierTests {
    private let sender = GroupID(1)
    private var courier: MailCourier
    private var now = MonotonicTime(nanoseconds: 0)

    init() {
        var tuning = MailCourier.Tuning()
        tuning.underWayCountMax = 2
        tuning.mailCountMax = 3
        tuning.pauseMin = .milliseconds(10)
        tuning.pauseMax = .milliseconds(40)
        self.courier = MailCourier(tuning: tuning)
    }

    private mutating func handle(_ event: MailCourier.Event) -> [MailCourier.Action] {
        var actions: [MailCourier.Action] = []
        self.courier.handle(event, at: self.now, into: &actions)
        return actions
    }

    private func ask(except: [UInt16] = [], bags: Int = 2) -> OutboxAsk {
        OutboxAsk(except: except.map { GroupID($0) }, bagCountMax: bags, mailCountMax: 3)
    }

    private func mails(_ numbers: UInt64...) -> [Mail] {
        numbers.map { Mail(sequence: $0, sentAt: .zero, body: []) }
    }

    private func outbox(_ piles: [(UInt16, [Mail])], hasMore: Bool = false) -> Outbox {
        Outbox(
            piles: piles.map { Outbox.Pile(GroupID($0), $1) },
            waitingCount: 1, hasMore: hasMore)
    }

    private func route(_ receiver: UInt16) -> MailRoute {
        MailRoute(from: self.sender, to: GroupID(receiver))
    }

    private func received(_ through: UInt64) -> MailOutcome {
        .received(through: through, at: HybridTime(milliseconds: 5))
    }

    @Test mutating func `what is found is delivered, then let go, then looked for again`() {
        #expect(self.handle(.news(self.sender)) == [.look(self.sender, self.ask())])
        #expect(
            self.handle(.found(self.sender, self.outbox([(2, self.mails(4, 5))])))
                == [.deliver(MailBag(self.route(2), self.mails(4, 5)))])
        // While it is under way its receiver is not looked at.
        #expect(
            self.handle(.news(self.sender))
                == [.look(self.sender, self.ask(except: [2], bags: 1))])
        #expect(self.handle(.found(self.sender, self.outbox([]))) == [])
        // Another courier had come further.
        #expect(
            self.handle(.delivered(self.route(2), self.received(6)))
                == [
                    .release(
                        MailReceipt(
                            self.route(2), through: 6, at: HybridTime(milliseconds: 5)))
                ])
        #expect(
            self.handle(.released(self.route(2), .released))
                == [.look(self.sender, self.ask())])
        #expect(self.courier.isBusy)
        #expect(self.handle(.found(self.sender, nil)) == [])
        #expect(!self.courier.isBusy)
    }

    @Test mutating func `a look under way is repeated, not doubled`() {
        #expect(self.handle(.news(self.sender)).count == 1)
        #expect(self.handle(.news(self.sender)) == [])
        #expect(self.handle(.news(self.sender)) == [])
        #expect(
            self.handle(.found(self.sender, self.outbox([])))
                == [.look(self.sender, self.ask())])
        #expect(self.handle(.found(self.sender, self.outbox([]))) == [])
    }

    @Test mutating func `a route that fails rests longer each time, and holds up no other`() {
        _ = self.handle(.news(self.sender))
        _ = self.handle(
            .found(self.sender, self.outbox([(2, self.mails(1)), (3, self.mails(1))])))
        var pauses: [Duration] = []
        for _ in 0..<4 {
            let wakes = self.handle(.delivered(self.route(2), nil))
            guard case .wake(let time)? = wakes.first, wakes.count == 1 else {
                Issue.record("\(wakes)")
                return
            }
            pauses.append(time - self.now)
            #expect(self.handle(.woke) == [.wake(at: time)], "woken early: once more, then")
            self.now = time
            #expect(
                self.handle(.woke) == [.look(self.sender, self.ask(except: [3], bags: 1))])
            #expect(
                self.handle(.found(self.sender, self.outbox([(2, self.mails(1))])))
                    == [.deliver(MailBag(self.route(2), self.mails(1)))])
        }
        #expect(
            pauses == [.milliseconds(10), .milliseconds(20), .milliseconds(40), .milliseconds(40)])
        // The other one was under way all the time.
        #expect(self.handle(.delivered(self.route(3), self.received(1))).count == 1)
        // And what works is patient no longer.
        _ = self.handle(.delivered(self.route(2), self.received(1)))
        _ = self.handle(.released(self.route(2), .released))
        _ = self.handle(.found(self.sender, self.outbox([(2, self.mails(2))])))
        #expect(
            self.handle(.delivered(self.route(2), nil))
                == [.wake(at: self.now + .milliseconds(10))])
    }

    @Test mutating func `so much is under way at once, and what was held up follows`() {
        let other = GroupID(7)
        _ = self.handle(.news(self.sender))
        #expect(
            self.handle(
                .found(
                    self.sender,
                    self.outbox([(2, self.mails(1)), (3, self.mails(1))], hasMore: true))
            ).count == 2)
        #expect(self.handle(.news(other)) == [])
        _ = self.handle(.delivered(self.route(2), self.received(1)))
        // Its sender is looked at because it was let go; nobody else has room yet.
        #expect(
            self.handle(.released(self.route(2), .released))
                == [
                    .look(self.sender, self.ask(except: [3], bags: 1)),
                    .look(other, self.ask(bags: 1)),
                ])
    }

    @Test mutating func `what no waiting mends is said once`() {
        let cases: [(MailOutcome, MailCourier.Trouble)] = [
            (self.received(2), .gap(through: 2, first: 5)), (self.received(4), .refused),
            (.refused, .refused),
        ]
        for (number, (outcome, trouble)) in cases.enumerated() {
            let receiver = UInt16(number + 10)
            for round in 0..<2 {
                _ = self.handle(.news(self.sender))
                _ = self.handle(
                    .found(self.sender, self.outbox([(receiver, self.mails(5))])))
                let actions = self.handle(.delivered(self.route(receiver), outcome))
                let alarms = actions.filter { if case .alarm = $0 { true } else { false } }
                #expect(alarms == (round == 0 ? [.alarm(self.route(receiver), trouble)] : []))
                self.now = self.now + .seconds(1)
                for action in self.handle(.woke) {
                    if case .look = action { _ = self.handle(.found(self.sender, nil)) }
                }
            }
        }
    }

    @Test mutating func `what fails is known until it works, or others carried it`() {
        let start = self.now
        _ = self.handle(.news(self.sender))
        _ = self.handle(
            .found(self.sender, self.outbox([(2, self.mails(1)), (3, self.mails(1))])))
        #expect(self.courier.failing.isEmpty)
        _ = self.handle(.delivered(self.route(2), nil))
        self.now = self.now + .seconds(1)
        _ = self.handle(.delivered(self.route(3), .refused))
        #expect(
            self.courier.failing == [
                self.route(2): .init(since: start),
                self.route(3): .init(since: self.now, trouble: .refused),
            ])
        // Received, and still not let go: it does not begin anew.
        #expect(self.handle(.woke).contains { if case .look = $0 { true } else { false } })
        _ = self.handle(.found(self.sender, self.outbox([(2, self.mails(1))])))
        _ = self.handle(.delivered(self.route(2), self.received(1)))
        _ = self.handle(.released(self.route(2), nil))
        #expect(self.courier.failing[self.route(2)]?.since == start)
        // The other was resting, and not asked for: that it was not found says nothing.
        #expect(self.courier.failing[self.route(3)] != nil)
        self.now = self.now + .seconds(1)
        _ = self.handle(.woke)
        _ = self.handle(.found(self.sender, self.outbox([])))
        #expect(self.courier.failing.isEmpty)
    }

    @Test func `a node says what does not get through, where it is asked to carry it`() {
        let watch = MailWatch()
        let route = self.route(2)
        watch.saw(failing: [route: .init(since: self.now, trouble: .refused)])
        #expect(watch.stuck(at: self.now + .seconds(29)).isEmpty)
        #expect(
            watch.stuck(at: self.now + .seconds(31))
                == [.init(route: route, duration: .seconds(31), trouble: .refused)])
        let words = watch.stuck(at: self.now + .seconds(31)).map(\.description)
        #expect(
            words == [
                "mail from partition 0 to partition 1 has waited for 31 s: the receiver "
                    + "cannot read it"
            ])
        var outbox = self.outbox([(2, self.mails(1, 2))])
        outbox.waitingCount = 2
        outbox.waitingSize = 500
        watch.saw(outbox, of: self.sender)
        watch.saw(outbox, of: GroupID(9))
        #expect(watch.waitingCount == 4 && watch.waitingSize == 1_000)
        watch.lost([GroupID(9)])
        #expect(watch.waitingCount == 2 && watch.waitingSize == 500)
        #expect(watch.stuck(at: self.now + .seconds(31)).count == 1)
        watch.saw(nil, of: self.sender)
        #expect(watch.waitingCount == 0)
        #expect(watch.stuck(at: self.now + .seconds(31)).isEmpty)
    }

    @Test mutating func `answers nobody waits for change nothing`() {
        #expect(self.handle(.found(self.sender, self.outbox([(2, self.mails(1))]))) == [])
        #expect(self.handle(.delivered(self.route(2), self.received(1))) == [])
        #expect(self.handle(.released(self.route(2), .released)) == [])
        #expect(self.handle(.woke) == [])
        #expect(!self.courier.isBusy)
    }
}
