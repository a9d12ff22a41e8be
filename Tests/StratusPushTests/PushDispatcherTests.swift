import StratusModel
import Testing

@testable import StratusPush

@Suite struct PushDispatcherTests {
    private static let container = ContainerReference(
        container: "iCloud.a", environment: .development)

    private static func target(_ number: UInt8, group: Int = 1) -> PushTarget {
        PushTarget(
            group: GroupID(UInt16(group)),
            database: DatabaseID(container: Self.container, scope: .private, owner: "_u"),
            subscriber: "_u", token: Bytes(repeating: number, count: 16))
    }

    private static let lane = LaneName(.apns, "a")
    private static let other = LaneName(.webPush, "b")
    private static let start = MonotonicTime(nanoseconds: 0)

    /// A dispatcher whose first scan has found these devices.
    private func found(
        _ targets: [PushTarget], _ bounds: PushDispatcher.Bounds = PushDispatcher.Bounds()
    ) -> (PushDispatcher, [PushDispatcher.Action]) {
        var dispatcher = PushDispatcher(bounds)
        let group = targets[0].group
        #expect(
            dispatcher.handle(.news(group), at: Self.start) == [
                .scan(group, number: 1, after: nil)
            ])
        let actions = dispatcher.handle(
            .scanned(
                group, number: 1, targets.map { PushDispatcher.Waiting($0, through: 5) },
                next: nil), at: Self.start)
        return (dispatcher, actions)
    }

    @Test func `P-01: a row moves after the verdict, and then the device is asked about again`() {
        let one = Self.target(1)
        var (dispatcher, actions) = self.found([one])
        #expect(actions == [.ask(one, after: nil)])
        actions = dispatcher.handle(.asked(one, .push(Self.lane)), at: Self.start)
        #expect(actions == [.send(one, Self.lane)])
        // News meanwhile begin nothing beside it.
        #expect(
            dispatcher.handle(.news(one.group), at: Self.start) == [
                .scan(one.group, number: 2, after: nil)
            ])
        actions = dispatcher.handle(
            .scanned(one.group, number: 2, [.init(one, through: 6)], next: nil), at: Self.start)
        #expect(actions == [])
        actions = dispatcher.handle(.ended(one, .settle), at: Self.start)
        #expect(actions == [.settle(one)])
        actions = dispatcher.handle(.settled(one, true), at: Self.start)
        #expect(actions == [.ask(one, after: nil)])
        actions = dispatcher.handle(.asked(one, .nothing(through: 6)), at: Self.start)
        #expect(actions == [] && dispatcher.activeCount == 0)
        // What was looked at in vain is not looked at again.
        _ = dispatcher.handle(.news(one.group), at: Self.start)
        actions = dispatcher.handle(
            .scanned(one.group, number: 3, [.init(one, through: 6)], next: nil), at: Self.start)
        #expect(actions == [])
    }

    @Test func `an event that comes while a device is asked about is not missed`() {
        let one = Self.target(1)
        var (dispatcher, _) = self.found([one])
        _ = dispatcher.handle(.news(one.group), at: Self.start)
        _ = dispatcher.handle(
            .scanned(one.group, number: 2, [.init(one, through: 9)], next: nil), at: Self.start)
        let actions = dispatcher.handle(.asked(one, .nothing(through: 5)), at: Self.start)
        #expect(actions == [.ask(one, after: 5)])
    }

    @Test func `a settlement that fails makes the same push come again`() {
        let one = Self.target(1)
        var (dispatcher, _) = self.found([one])
        _ = dispatcher.handle(.asked(one, .push(Self.lane)), at: Self.start)
        _ = dispatcher.handle(.ended(one, .settle), at: Self.start)
        #expect(dispatcher.handle(.settled(one, false), at: Self.start) == [])
        #expect(dispatcher.restingCount == 1 && dispatcher.wake == Self.start + .seconds(1))
        let actions = dispatcher.handle(.woke, at: Self.start + .seconds(1))
        #expect(actions == [.ask(one, after: nil)])
    }

    @Test func `P-08: devices of a lane that rests take no room, and come back when it opens`() {
        var bounds = PushDispatcher.Bounds()
        bounds.activeCountMax = 2
        let (one, two, three) = (Self.target(1), Self.target(2), Self.target(3))
        var (dispatcher, actions) = self.found([one, two, three], bounds)
        #expect(actions == [.ask(one, after: nil), .ask(two, after: nil)])
        for target in [one, two] {
            _ = dispatcher.handle(.asked(target, .push(Self.lane)), at: Self.start)
        }
        _ = dispatcher.handle(.ended(one, .park(Self.lane)), at: Self.start)
        // There is room now, so the page is read again.
        actions = dispatcher.handle(.ended(two, .park(Self.lane)), at: Self.start)
        #expect(dispatcher.activeCount == 0 && dispatcher.restingCount == 2)
        let all = [one, two, three].map { PushDispatcher.Waiting($0, through: 5) }
        actions = dispatcher.handle(
            .scanned(one.group, number: 2, all, next: nil), at: Self.start)
        #expect(actions == [.ask(three, after: nil)])
        _ = dispatcher.handle(.asked(three, .push(Self.other)), at: Self.start)
        _ = dispatcher.handle(.ended(three, .settle), at: Self.start)
        _ = dispatcher.handle(.settled(three, true), at: Self.start)
        _ = dispatcher.handle(.asked(three, .nothing(through: 5)), at: Self.start)
        #expect(dispatcher.handle(.laneOpened(Self.other), at: Self.start) == [])
        #expect(
            dispatcher.handle(.laneOpened(Self.lane), at: Self.start) == [
                .ask(one, after: nil), .ask(two, after: nil),
            ])
    }

    @Test func `P-08: a dead lane with more devices than may rest delays nobody else`() {
        var bounds = PushDispatcher.Bounds()
        bounds.restingCountMax = 1
        bounds.leftOutCountPerPause = 2
        let dead = (1...3).map { Self.target(UInt8($0)) }
        let other = Self.target(4)
        var (dispatcher, _) = self.found(dead, bounds)
        func park(_ targets: [PushTarget], at now: MonotonicTime) {
            for target in targets {
                _ = dispatcher.handle(.asked(target, .push(Self.lane)), at: now)
                _ = dispatcher.handle(.ended(target, .park(Self.lane)), at: now)
            }
        }
        park(dead, at: Self.start)
        #expect(dispatcher.restingCount == 1 && dispatcher.activeCount == 0)
        // Two are not kept. Another look would find them again, so it waits for a pause each.
        var now = Self.start + .milliseconds(1_999)
        #expect(dispatcher.handle(.news(other.group), at: now) == [])
        now = Self.start + .seconds(2)
        #expect(
            dispatcher.handle(.woke, at: now) == [.scan(other.group, number: 2, after: nil)])
        let all = (dead + [other]).map { PushDispatcher.Waiting($0, through: 5) }
        let asks = dispatcher.handle(
            .scanned(other.group, number: 2, all, next: nil), at: now)
        #expect(asks == [dead[1], dead[2], other].map { .ask($0, after: nil) })
        // However late they are found to wait, nobody else waits for longer.
        now = now + .seconds(60)
        park([dead[1], dead[2]], at: now)
        #expect(
            dispatcher.handle(.news(other.group), at: now) == [
                .scan(other.group, number: 3, after: nil)
            ])
        _ = dispatcher.handle(.scanned(other.group, number: 3, all, next: nil), at: now)
        park([dead[1], dead[2]], at: now)
        // Who was not kept is looked for without news, too, once the lane is open.
        _ = dispatcher.handle(.laneOpened(Self.lane), at: now)
        #expect(
            dispatcher.handle(.woke, at: now + .seconds(2)) == [
                .scan(other.group, number: 4, after: nil)
            ])
    }

    @Test
    func `P-13: of 100,000 devices no more than the bounds are held, and all are asked about`() {
        var dispatcher = PushDispatcher()
        let bounds = dispatcher.bounds
        let group = GroupID(1)
        let count = 100_000
        let page = 500
        func target(_ number: Int) -> PushTarget {
            var target = Self.target(0)
            target.token =
                withUnsafeBytes(of: UInt64(number).bigEndian) { Bytes($0) }
                + Bytes(repeating: 1, count: 8)
            return target
        }
        var waiting = Array(repeating: true, count: count)
        var actions = dispatcher.handle(.news(group), at: Self.start)
        var most = 0
        var asked = 0
        while let action = actions.popLast() {
            switch action {
            case .scan(_, let number, let after):
                let first = after.map { $0.reduce(0) { $0 << 8 | Int($1) } } ?? 0
                let found = (first..<min(count, first + page)).filter { waiting[$0] }.map {
                    PushDispatcher.Waiting(target($0), through: 1)
                }
                let next = first + page < count ? first + page : nil
                let mark = next.map { next in
                    withUnsafeBytes(of: UInt64(next).bigEndian) { Bytes($0) }
                }
                actions.insert(
                    contentsOf: dispatcher.handle(
                        .scanned(group, number: number, found, next: mark), at: Self.start), at: 0)
            case .ask(let target, _):
                asked += 1
                waiting[target.token.prefix(8).reduce(0) { $0 << 8 | Int($1) }] = false
                actions.insert(
                    contentsOf: dispatcher.handle(
                        .asked(target, .nothing(through: 1)), at: Self.start), at: 0)
            default: Issue.record("\(action)")
            }
            most = max(most, dispatcher.activeCount)
        }
        #expect(asked == count && !waiting.contains(true))
        #expect(most <= bounds.activeCountMax && dispatcher.restingCount == 0)
    }

    @Test func `P-03: a device that is gone is forgotten, and one of its name begins anew`() {
        let one = Self.target(1)
        var (dispatcher, _) = self.found([one])
        _ = dispatcher.handle(.asked(one, .nothing(through: 5)), at: Self.start)
        _ = dispatcher.handle(.news(one.group), at: Self.start)
        _ = dispatcher.handle(
            .scanned(one.group, number: 2, [.init(one, through: 6)], next: nil), at: Self.start)
        _ = dispatcher.handle(.asked(one, .gone), at: Self.start)
        #expect(dispatcher.activeCount == 0)
        // Its database was erased meanwhile: numbers begin anew.
        _ = dispatcher.handle(.news(one.group), at: Self.start)
        let actions = dispatcher.handle(
            .scanned(one.group, number: 3, [.init(one, through: 1)], next: nil), at: Self.start)
        #expect(actions == [.ask(one, after: nil)])
    }

    @Test func `a push that its device refuses again and again is given up`() {
        let one = Self.target(1)
        var (dispatcher, _) = self.found([one])
        var now = Self.start
        for round in 1...dispatcher.bounds.attemptCountMax {
            _ = dispatcher.handle(.asked(one, .push(Self.lane)), at: now)
            let actions = dispatcher.handle(.ended(one, .retry(after: .seconds(1))), at: now)
            if round == dispatcher.bounds.attemptCountMax {
                #expect(actions == [.giveUp(one), .settle(one)])
            } else {
                #expect(actions == [])
                now = now + .seconds(1)
                #expect(dispatcher.handle(.woke, at: now) == [.ask(one, after: nil)])
            }
        }
    }

    @Test func `a partition that is led elsewhere begins nothing, and settles what has left`() {
        let (one, two, three) = (Self.target(1), Self.target(2), Self.target(3))
        var bounds = PushDispatcher.Bounds()
        bounds.askCountMax = 2
        var (dispatcher, actions) = self.found([one, two, three], bounds)
        _ = dispatcher.handle(.asked(one, .push(Self.lane)), at: Self.start)
        _ = dispatcher.handle(.lost(one.group), at: Self.start)
        #expect(dispatcher.handle(.asked(two, .push(Self.lane)), at: Self.start) == [])
        #expect(dispatcher.activeCount <= 2)
        actions = dispatcher.handle(.ended(one, .settle), at: Self.start)
        #expect(actions == [.settle(one)])
        #expect(dispatcher.handle(.settled(one, true), at: Self.start) == [])
        // An answer to a scan of the reign that has ended says nothing.
        _ = dispatcher.handle(.news(one.group), at: Self.start)
        _ = dispatcher.handle(.lost(one.group), at: Self.start)
        #expect(
            dispatcher.handle(.news(one.group), at: Self.start) == [
                .scan(one.group, number: 3, after: nil)
            ])
        #expect(
            dispatcher.handle(
                .scanned(one.group, number: 2, [], next: nil), at: Self.start) == [])
        #expect(
            dispatcher.handle(
                .scanned(one.group, number: 3, [.init(one, through: 9)], next: nil),
                at: Self.start) == [.ask(one, after: nil)])
    }

    /// Partitions with devices, a provider for each of two lanes, and faults of every kind.
    private struct Town {
        var dispatcher: PushDispatcher
        var random: SeededGenerator
        var now = PushDispatcherTests.start
        let targets: [PushTarget]
        /// The last event of each device's database, and what it was told.
        var events: [PushTarget: UInt64] = [:]
        var positions: [PushTarget: UInt64] = [:]
        var sent: [PushTarget: Set<UInt64>] = [:]
        var underWay: Set<PushTarget> = []
        var isDown: Set<LaneName> = []
        var led: Set<GroupID> = []
        var hasFaults = true
        var due: [(at: MonotonicTime, event: PushDispatcher.Event)] = []
        var problems: [String] = []

        init(seed: UInt64, _ targets: [PushTarget], _ bounds: PushDispatcher.Bounds) {
            self.dispatcher = PushDispatcher(bounds)
            self.random = SeededGenerator(seed: seed)
            self.targets = targets
        }

        func lane(_ target: PushTarget) -> LaneName {
            target.token[0] % 2 == 0 ? PushDispatcherTests.lane : PushDispatcherTests.other
        }

        mutating func draw(_ limit: UInt64) -> UInt64 { self.random.next() % limit }
        mutating func fails(_ one: UInt64) -> Bool { self.hasFaults && self.draw(one) == 0 }

        mutating func later(_ event: PushDispatcher.Event) {
            let delay = Duration.milliseconds(Int64(self.draw(200)))
            self.due.append((self.now + delay, event))
        }

        mutating func handle(_ event: PushDispatcher.Event) {
            for action in self.dispatcher.handle(event, at: self.now) { self.carryOut(action) }
            let bounds = self.dispatcher.bounds
            if self.dispatcher.activeCount > bounds.activeCountMax
                || self.dispatcher.restingCount > bounds.restingCountMax
            {
                self.problems.append("a bound is passed")
            }
        }

        mutating func carryOut(_ action: PushDispatcher.Action) {
            switch action {
            case .scan(let group, let number, let after):
                if self.fails(5) {
                    return self.later(.scanned(group, number: number, nil, next: nil))
                }
                let from = after.map { Int($0[0]) } ?? 0
                let all = self.targets.filter { $0.group == group }
                let page = all.dropFirst(from).prefix(3)
                let next = from + 3 < all.count ? [UInt8(from + 3)] : nil
                let waiting = page.filter { self.positions[$0] ?? 0 < self.events[$0] ?? 0 }
                    .map { PushDispatcher.Waiting($0, through: self.events[$0] ?? 0) }
                self.later(.scanned(group, number: number, waiting, next: next))
            case .ask(let target, let after):
                if self.fails(6) { return self.later(.asked(target, .failed)) }
                if self.fails(20) { return self.later(.asked(target, .held(.seconds(5)))) }
                let end = self.events[target] ?? 0
                let place = max(self.positions[target] ?? 0, after ?? 0)
                // Every third event fires.
                let hit = (place..<end).map { $0 + 1 }.first { $0 % 3 == 0 }
                self.later(
                    .asked(target, hit == nil ? .nothing(through: end) : .push(self.lane(target))))
            case .send(let target, let lane):
                if lane != self.lane(target) { self.problems.append("another lane") }
                if !self.underWay.insert(target).inserted {
                    self.problems.append("two pushes of one device")
                }
                if self.isDown.contains(lane) { return self.later(.ended(target, .park(lane))) }
                if self.fails(8) { return self.later(.ended(target, .retry(after: .seconds(2)))) }
                if self.fails(8) { return self.later(.ended(target, .busy)) }
                let place = self.positions[target] ?? 0
                self.sent[target, default: []].insert((place / 3 + 1) * 3)
                self.later(.ended(target, .settle))
            case .settle(let target):
                if self.fails(6) { return self.later(.settled(target, false)) }
                let place = self.positions[target] ?? 0
                self.positions[target] = (place / 3 + 1) * 3
                self.later(.settled(target, true))
            case .giveUp: if !self.hasFaults { self.problems.append("given up") }
            }
        }

        mutating func step() {
            self.now = self.now + .milliseconds(50)
            let ready = self.due.enumerated().filter { $0.element.at <= self.now }
            for (index, item) in ready.reversed() {
                self.due.remove(at: index)
                if case .ended(let target, _) = item.event { self.underWay.remove(target) }
                self.handle(item.event)
            }
            if let wake = self.dispatcher.wake, self.now >= wake { self.handle(.woke) }
        }

        mutating func stir() {
            guard let target = self.targets.randomElement(using: &self.random) else { return }
            switch self.draw(10) {
            case 0:
                let group = target.group
                if self.led.remove(group) != nil {
                    self.handle(.lost(group))
                } else {
                    self.led.insert(group)
                    self.handle(.news(group))
                }
            case 1:
                let lane = self.lane(target)
                if self.isDown.remove(lane) == nil {
                    self.isDown.insert(lane)
                } else {
                    self.handle(.laneOpened(lane))
                }
            default:
                self.events[target, default: 0] += 1 + self.draw(4)
                if self.led.contains(target.group) { self.handle(.news(target.group)) }
            }
        }

        mutating func settleDown() {
            self.hasFaults = false
            for lane in self.isDown.sorted() { self.handle(.laneOpened(lane)) }
            self.isDown = []
            for group in Set(self.targets.map(\.group)).sorted() {
                self.led.insert(group)
                self.handle(.news(group))
            }
            for _ in 0..<12_000 { self.step() }
        }
    }

    @Test(arguments: 1...60)
    func `P-02, P-08: in random histories every device is told of everything that fires`(
        seed: UInt64
    ) {
        var bounds = PushDispatcher.Bounds()
        bounds.activeCountMax = 4
        bounds.askCountMax = 2
        bounds.restingCountMax = 3
        bounds.seenCountMax = 5
        bounds.laneWait = .seconds(30)
        let targets = (1...12).map { Self.target(UInt8($0), group: 1 + $0 % 3) }
        var town = Town(seed: seed, targets, bounds)
        for group in [1, 2] { town.led.insert(GroupID(UInt16(group))) }
        for _ in 0..<400 {
            if town.draw(3) == 0 { town.stir() }
            town.step()
        }
        town.settleDown()
        #expect(town.problems == [], "seed \(seed)")
        for target in targets {
            let end = town.events[target] ?? 0
            let place = town.positions[target] ?? 0
            #expect(place == end / 3 * 3, "seed \(seed), device \(target.token[0])")
        }
        #expect(town.dispatcher.activeCount == 0, "seed \(seed)")
    }
}
