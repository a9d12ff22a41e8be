import StratusModel
import Testing

@testable import StratusPush

@Suite struct PushLaneTests {
    /// One lane, a provider behind it, and a clock.
    private struct Stage {
        enum Provider {
            case well
            /// Nobody answers the call.
            case dead
            /// 503 to everything.
            case unavailable
            /// Takes pushes and answers a byte a second: never whole in time.
            case crawling
            case refusing
        }

        var lane: PushLane
        var provider: Provider
        var now = MonotonicTime(nanoseconds: 0)
        var settled: [UInt64] = []
        var parked: [UInt64] = []
        var dropped: [UInt64] = []
        var sentAt: [(identity: UInt64, time: MonotonicTime)] = []
        var connects: [MonotonicTime] = []
        var renewals = 0
        var openedCount = 0
        var reasons: [String] = []
        private var wakes: MonotonicTime?
        private var due: [PushLane.Event] = []
        private var random = SeededGenerator(seed: 1)

        init(_ provider: Provider, bounds: PushLane.Bounds = PushLane.Bounds()) {
            self.lane = PushLane(bounds)
            self.provider = provider
        }

        mutating func handle(_ event: PushLane.Event) {
            self.due.append(event)
            while !self.due.isEmpty {
                let event = self.due.removeFirst()
                self.wakes = nil
                for action in self.lane.handle(event, at: self.now, draw: self.random.next()) {
                    self.carryOut(action)
                }
            }
        }

        private mutating func carryOut(_ action: PushLane.Action) {
            switch action {
            case .connect:
                self.connects.append(self.now)
                self.due.append(self.provider == .dead ? .connectFailed : .connected)
            case .disconnect: break
            case .send(let identity):
                self.sentAt.append((identity, self.now))
                switch self.provider {
                case .well: self.due.append(.answered(identity: identity, .accepted))
                case .unavailable:
                    self.due.append(.answered(identity: identity, .unavailable(after: nil)))
                case .refusing:
                    self.due.append(
                        .answered(identity: identity, .tokenRefused(reason: "InvalidProviderToken"))
                    )
                case .crawling, .dead: break
                }
            case .park(let identity): self.parked.append(identity)
            case .settle(let identity): self.settled.append(identity)
            case .drop(let identity): self.dropped.append(identity)
            case .renewToken:
                self.renewals += 1
                self.due.append(.tokenRenewed)
            case .refused(let reason): self.reasons.append(reason)
            case .opened: self.openedCount += 1
            case .wake(let time): self.wakes = time
            }
        }

        /// Lets time pass, waking the lane when it asked for that.
        mutating func pass(_ duration: Duration) {
            let end = self.now + duration
            while let wake = self.wakes, wake <= end {
                self.now = max(self.now, wake)
                self.handle(.woke)
            }
            self.now = end
        }

        mutating func push(_ identities: Range<UInt64>) {
            for identity in identities { self.handle(.push(.init(identity: identity))) }
        }
    }

    @Test func `pushes go out, one first and then as many as there are`() {
        var stage = Stage(.well)
        stage.push(0..<100)
        #expect(stage.settled == Array(0..<100))
        #expect(stage.lane.state == .open && stage.openedCount == 1 && stage.connects.count == 1)
    }

    @Test func `until the first is accepted one is under way`() {
        var stage = Stage(.crawling)
        stage.push(0..<50)
        #expect(stage.lane.flightCount == 1 && stage.sentAt.count == 1)
        stage.handle(.answered(identity: 0, .accepted))
        #expect(stage.lane.flightCount == 49)
    }

    @Test func `P-08: a provider that is dead keeps one push and parks the rest after ten seconds`()
    {
        var stage = Stage(.dead)
        stage.push(0..<1_000)
        stage.pass(.seconds(9))
        #expect(stage.parked.isEmpty)
        stage.pass(.seconds(2))
        #expect(stage.parked.count == 999 && stage.lane.queueCount == 1)
        stage.pass(.seconds(3_600))
        // 1, 2, 4 … 256, then every five minutes, less what was drawn.
        #expect((15...30).contains(stage.connects.count))
        stage.push(2_000..<2_010)
        #expect(stage.parked.count == 1_009)
        stage.provider = .well
        stage.pass(.seconds(301))
        #expect(stage.settled == [0] && stage.openedCount == 1)
        #expect(stage.lane.queueCount + stage.lane.flightCount == 0)
    }

    @Test func `P-09: 503 for ever is tried ever more rarely, with the same identity`() {
        var stage = Stage(.unavailable)
        stage.push(0..<500)
        stage.pass(.seconds(3_600))
        #expect(stage.sentAt.count <= 30)
        #expect(Set(stage.sentAt.map(\.identity)).count <= 2)
        #expect(stage.parked.count == 499 && stage.dropped.isEmpty)
        let pauses = zip(stage.sentAt, stage.sentAt.dropFirst()).map { $1.time - $0.time }
        #expect(pauses.last! > .seconds(190) && pauses.last! <= .seconds(301))
    }

    @Test func `P-09: Retry-After is a pause of at least that`() {
        var stage = Stage(.crawling)
        stage.push(0..<1)
        stage.handle(.answered(identity: 0, .unavailable(after: .seconds(90))))
        stage.pass(.seconds(89))
        #expect(stage.sentAt.count == 1)
        stage.pass(.seconds(2))
        #expect(stage.sentAt.count == 2 && stage.sentAt[1].identity == 0)
    }

    @Test func `P-08: an answer that comes a byte a second ends its connection`() {
        var stage = Stage(.crawling)
        stage.push(0..<10)
        stage.pass(.seconds(14))
        #expect(stage.lane.state == .probing)
        stage.pass(.seconds(1))
        guard case .resting = stage.lane.state else {
            Issue.record("\(stage.lane.state)")
            return
        }
        #expect(stage.parked.count == 9)
    }

    @Test func `P-08: what one provider does costs no other a moment`() {
        let providers: [Stage.Provider] = [.well, .dead, .unavailable, .crawling, .refusing, .well]
        var stages = providers.map { Stage($0) }
        for round in 0..<600 as Range<UInt64> {
            for index in stages.indices {
                stages[index].push(round * 10..<round * 10 + 10)
                stages[index].pass(.seconds(1))
            }
        }
        for (provider, stage) in zip(providers, stages) {
            // None holds more than its bounds, whatever came.
            #expect(stage.lane.queueCount + stage.lane.flightCount <= 120, "\(provider)")
            let left = stage.settled.count + stage.parked.count + stage.dropped.count
            #expect(
                left + stage.lane.queueCount + stage.lane.flightCount == 6_000, "\(provider)")
            if provider == .well {
                #expect(stage.settled.count == 6_000)
                // Each left in the second it came in.
                #expect(
                    stage.sentAt.allSatisfy {
                        $0.time.nanoseconds / 1_000_000_000 == Int64($0.identity / 10)
                    })
            }
        }
    }

    @Test func `P-06: a token is renewed once, then an operator is asked`() {
        var stage = Stage(.refusing)
        stage.push(0..<3)
        #expect(stage.renewals == 1 && stage.reasons == ["InvalidProviderToken"])
        #expect(stage.lane.state == .refused(reason: "InvalidProviderToken"))
        #expect(stage.parked.count == 3)
        stage.push(10..<12)
        stage.pass(.seconds(86_400))
        #expect(stage.sentAt.count == 2 && stage.parked.count == 5)
        // P-18: another key, and it goes on without a restart.
        stage.provider = .well
        stage.handle(.keyChanged)
        stage.push(20..<22)
        #expect(stage.settled == [20, 21])
    }

    @Test func `P-06: two thousand refusals at once are one renewal`() {
        var stage = Stage(.well)
        stage.push(0..<1)
        stage.provider = .crawling
        stage.push(1..<1_001)
        #expect(stage.lane.flightCount == 1_000)
        stage.provider = .well
        for identity in 1..<1_001 as Range<UInt64> {
            stage.handle(
                .answered(identity: identity, .tokenRefused(reason: "ExpiredProviderToken")))
        }
        #expect(stage.renewals == 1 && stage.settled.count == 1_001)
    }

    @Test func `P-07: what a connection leaves unanswered is sent again under its identity`() {
        var stage = Stage(.well)
        stage.push(0..<1)
        stage.provider = .crawling
        stage.push(1..<11)
        stage.handle(.answered(identity: 3, .unanswered))
        stage.provider = .well
        stage.handle(.disconnected)
        #expect(Set(stage.settled) == Set(0..<11))
        #expect(stage.settled.count == 11 && stage.connects.count == 2)
    }

    @Test func `a push that an open lane cannot send is given up at last`() {
        var stage = Stage(.well)
        stage.push(0..<1)
        stage.provider = .crawling
        stage.push(1..<2)
        // The provider hangs up whenever it gets push 1, and takes all others.
        for other in 2..<60 as Range<UInt64> where stage.dropped.isEmpty {
            stage.push(other..<other + 1)
            for _ in 0..<3 {
                stage.handle(.answered(identity: 1, .unanswered))
                for identity in 2...other { stage.handle(.answered(identity: identity, .accepted)) }
            }
            stage.pass(.seconds(2))
        }
        #expect(stage.dropped == [1])
        #expect(stage.sentAt.filter { $0.identity == 1 }.count >= 8)
    }

    @Test func `a provider that hangs up is called at growing intervals`() {
        var stage = Stage(.crawling)
        stage.push(0..<1)
        for _ in 0..<200 {
            if stage.lane.flightCount > 0 {
                stage.handle(.answered(identity: 0, .unanswered))
            }
            stage.pass(.seconds(1))
        }
        #expect(stage.dropped.isEmpty)
        #expect((5...12).contains(stage.sentAt.count), "\(stage.sentAt.count)")
    }

    @Test func `P-18: a token that nobody could make says nothing about the key`() {
        var stage = Stage(.crawling)
        stage.push(0..<1)
        stage.handle(.answered(identity: 0, .tokenRefused(reason: "ExpiredProviderToken")))
        stage.handle(.answered(identity: 0, .unanswered))
        stage.handle(.tokenNotRenewed)
        #expect(stage.reasons.isEmpty)
        stage.provider = .well
        stage.pass(.seconds(600))
        #expect(stage.settled == [0])
    }

    @Test func `paused sends nothing and takes nothing in, resumed it goes on`() {
        var stage = Stage(.well)
        stage.handle(.pause)
        stage.push(0..<5)
        #expect(stage.parked.count == 5 && stage.sentAt.isEmpty)
        stage.handle(.resume)
        stage.push(5..<6)
        #expect(stage.settled == [5])
    }

    @Test func `every push leaves once, whatever happens`() {
        for seed in 1...60 as ClosedRange<UInt64> {
            var random = SeededGenerator(seed: seed)
            var bounds = PushLane.Bounds()
            bounds.queueCountMax = 20
            bounds.flightCountMax = 8
            var lane = PushLane(bounds)
            var now = MonotonicTime(nanoseconds: 0)
            var inside: Set<UInt64> = []
            var underWay: Set<UInt64> = []
            var isConnected = false
            var isCalling = false
            var next: UInt64 = 0
            for step in 0..<2_000 {
                let event: PushLane.Event
                switch random.next() % 14 {
                case 0...4:
                    next += 1
                    inside.insert(next)
                    event = .push(.init(identity: next))
                case 5 where isCalling: event = random.next() % 3 == 0 ? .connectFailed : .connected
                case 6...9:
                    let identity = underWay.sorted().randomElement(using: &random) ?? 0
                    let answers: [PushLane.Answer] = [
                        .accepted, .accepted, .final, .tokenRefused(reason: "x"),
                        .unavailable(after: .seconds(3)), .unanswered,
                    ]
                    event = .answered(identity: identity, answers.randomElement(using: &random)!)
                case 10 where isConnected: event = .disconnected
                case 11: event = .tokenRenewed
                case 12:
                    event = ([.pause, .resume, .keyChanged] as [PushLane.Event])
                        .randomElement(using: &random)!
                default:
                    now = now + .milliseconds(Int(random.next() % 4_000))
                    event = .woke
                }
                if event == .connected { isConnected = true }
                if event == .disconnected { isConnected = false; underWay = [] }
                if event == .connectFailed || event == .connected { isCalling = false }
                if case .answered(let identity, _) = event { underWay.remove(identity) }
                for action in lane.handle(event, at: now, draw: random.next()) {
                    switch action {
                    case .connect: isCalling = true
                    case .disconnect: isConnected = false; isCalling = false; underWay = []
                    case .send(let identity):
                        #expect(inside.contains(identity), "seed \(seed), step \(step)")
                        underWay.insert(identity)
                    case .park(let identity), .settle(let identity), .drop(let identity):
                        let removed = inside.remove(identity)
                        #expect(
                            removed != nil, "seed \(seed), step \(step): \(identity) left twice")
                    case .renewToken, .refused, .opened, .wake: break
                    }
                }
                #expect(lane.flightCount <= 8, "seed \(seed)")
                // What comes back from flight stands beside what waits.
                #expect(lane.queueCount <= 20 + 8 + 1, "seed \(seed)")
                #expect(
                    inside.count == lane.queueCount + lane.flightCount, "seed \(seed), step \(step)"
                )
            }
        }
    }
}
