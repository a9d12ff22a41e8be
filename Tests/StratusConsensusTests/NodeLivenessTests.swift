import StratusConsensus
import StratusModel
import Testing

/// Which nodes are well, by the rules of the pair heartbeats.
@Suite struct NodeLivenessTests {
    /// A watch over nodes 2 and 3, from node 1, and what it orders.
    private struct Watch {
        var liveness: NodeLiveness
        var vitals = NodeLiveness.Vitals(wallMilliseconds: 1_000_000, unsyncedMilliseconds: 0)
        var milliseconds: Int64 = 0

        init(peers: [NodeID] = [NodeID(2), NodeID(3)]) {
            self.liveness = NodeLiveness(
                incarnation: NodeIncarnation(7), peers: peers,
                at: MonotonicTime(nanoseconds: 0))
        }

        var now: MonotonicTime { MonotonicTime(nanoseconds: self.milliseconds * 1_000_000) }

        /// The ordered actions, except heartbeats and wakes.
        mutating func handle(_ event: NodeLiveness.Event) -> [NodeLiveness.Action] {
            self.all(event).filter {
                switch $0 {
                case .send, .wake: false
                default: true
                }
            }
        }

        mutating func all(_ event: NodeLiveness.Event) -> [NodeLiveness.Action] {
            var actions: [NodeLiveness.Action] = []
            self.liveness.handle(event, at: self.now, into: &actions)
            return actions
        }

        mutating func wake(at milliseconds: Int64) -> [NodeLiveness.Action] {
            self.vitals.wallMilliseconds &+= milliseconds - self.milliseconds
            self.milliseconds = milliseconds
            return self.handle(.woke(self.vitals))
        }

        mutating func hear(
            from node: UInt32, incarnation: UInt64 = 1, unsynced: UInt32 = 0, clock: Int64 = 0,
            declines: Bool = false, resigned: [ResignedGroup] = []
        ) -> [NodeLiveness.Action] {
            self.handle(
                .heartbeat(
                    NodeHeartbeat(
                        incarnation: NodeIncarnation(incarnation), sequence: 1,
                        unsyncedMilliseconds: unsynced,
                        wallMilliseconds: self.vitals.wallMilliseconds &+ clock,
                        declinesLeadership: declines, resigned: resigned),
                    from: NodeID(node), self.vitals))
        }
    }

    @Test func `a node that is silent too long is suspected once, and trusted when heard`() {
        var watch = Watch()
        #expect(watch.wake(at: 500) == [])
        #expect(watch.wake(at: 501) == [.suspect(NodeID(2)), .suspect(NodeID(3))])
        #expect(watch.wake(at: 900) == [])
        #expect(watch.handle(.heard(from: NodeID(3))) == [.trust(NodeID(3))])
        #expect(watch.handle(.heard(from: NodeID(3))) == [])
        #expect(watch.liveness.isSuspect(NodeID(2)))
        #expect(!watch.liveness.isSuspect(NodeID(3)))
    }

    @Test func `a node whose process has ended is suspected at once, and trusted when heard`() {
        var watch = Watch()
        #expect(watch.handle(.ended(NodeID(2))) == [.noteEnded(NodeID(2))])
        #expect(watch.handle(.ended(NodeID(2))) == [])
        #expect(watch.handle(.ended(NodeID(9))) == [], "a stranger")
        #expect(watch.wake(at: 501) == [.suspect(NodeID(3))])
        #expect(watch.hear(from: 2, incarnation: 2) == [.trust(NodeID(2))])
    }

    @Test func `any frame counts, not heartbeats alone`() {
        var watch = Watch()
        for time in stride(from: 100 as Int64, through: 2_000, by: 100) {
            watch.milliseconds = time
            _ = watch.handle(.heard(from: NodeID(2)))
            _ = watch.handle(.heard(from: NodeID(3)))
            #expect(watch.wake(at: time) == [], "\(time)")
        }
    }

    @Test func `C-36 one heartbeat a peer and interval, whatever is asked in between`() {
        var watch = Watch()
        func beats(_ actions: [NodeLiveness.Action]) -> Int {
            actions.count { if case .send = $0 { true } else { false } }
        }
        // The one in the middle comes too early.
        for (time, count) in [(0, 2), (50, 0), (100, 2)] as [(Int64, Int)] {
            watch.milliseconds = time
            let actions = watch.all(.woke(watch.vitals))
            #expect(beats(actions) == count, "\(time)")
        }
    }

    @Test func `C-16 S-33 a peer whose disk hangs declines leadership until it is well`() {
        var watch = Watch()
        #expect(watch.hear(from: 2, unsynced: 500) == [])
        #expect(watch.hear(from: 2, unsynced: 501) == [.declined(NodeID(2))])
        #expect(watch.hear(from: 2, unsynced: 2_000, declines: true) == [])
        #expect(watch.hear(from: 2) == [.recovered(NodeID(2))])
    }

    @Test func `C-16 S-33 the own disk hangs: all groups are inhibited until it is well again`() {
        var watch = Watch()
        watch.vitals.unsyncedMilliseconds = 1_000
        #expect(watch.wake(at: 100) == [])
        watch.vitals.unsyncedMilliseconds = 1_001
        #expect(watch.wake(at: 200) == [.inhibit(.log)])
        watch.vitals.unsyncedMilliseconds = 700
        #expect(watch.wake(at: 300) == [], "not between the two bounds: it would flap")
        watch.vitals.unsyncedMilliseconds = 0
        #expect(watch.wake(at: 400) == [.permit(.log)])
    }

    @Test(arguments: [
        ("all agree", [0, 0] as [Int64], 0 as Int64, false),
        ("one of three is off", [900, 0], 0, false),
        ("the own clock is off", [900, 900], -900, true),
        ("off, but not too far", [500, 500], -500, false),
        ("the others are behind", [-501, -600], 501, true),
        ("the others part", [900, -900], 0, false), ("a hostile clock", [.max, .min], 0, false),
        ("of two, one is off", [900], 0, false),
    ])
    func `C-42 a clock too far from the median does not lead`(
        name: String, offsets: [Int64], lead: Int64, isOff: Bool
    ) {
        var watch = Watch()
        for (position, offset) in offsets.enumerated() {
            _ = watch.hear(from: UInt32(position) + 2, clock: offset)
        }
        #expect(watch.wake(at: 100) == (isOff ? [.inhibit(.clock)] : []), "\(name)")
        #expect(watch.liveness.clockLeadMilliseconds == lead, "\(name)")
        #expect(watch.liveness.isClockOff == isOff, "\(name)")
    }

    @Test
    func `C-41 a new incarnation is news once, and an overtaken message of the old one is not`() {
        var watch = Watch()
        #expect(watch.hear(from: 2, incarnation: 1) == [])
        #expect(watch.hear(from: 2, incarnation: 2) == [.restarted(NodeID(2))])
        #expect(watch.hear(from: 2, incarnation: 2) == [])
        #expect(watch.hear(from: 2, incarnation: 1, unsynced: 9_000) == [])
        #expect(watch.hear(from: 2, incarnation: 3) == [.restarted(NodeID(2))])
    }

    @Test func `a resignation is told with every beat for two seconds, the newest of a group only`()
    {
        var watch = Watch(peers: [NodeID(2)])
        func resigned(_ actions: [NodeLiveness.Action]) -> [ResignedGroup] {
            for case .send(let heartbeat, _) in actions { return heartbeat.resigned }
            return []
        }
        _ = watch.handle(.resigned(GroupID(4), term: Term(2)))
        _ = watch.handle(.resigned(GroupID(4), term: Term(3)))
        for time in [100, 1_900] as [Int64] {
            watch.milliseconds = time
            let actions = watch.all(.woke(watch.vitals))
            #expect(
                resigned(actions) == [ResignedGroup(group: GroupID(4), term: Term(3))], "\(time)")
        }
        watch.milliseconds = 2_100
        let actions = watch.all(.woke(watch.vitals))
        #expect(resigned(actions) == [])
    }

    @Test func `what a peer has resigned reaches that group, each time it is told`() {
        var watch = Watch()
        let resigned = [ResignedGroup(group: GroupID(9), term: Term(5))]
        for _ in 0..<2 {
            #expect(
                watch.hear(from: 3, resigned: resigned)
                    == [.leaderResigned(NodeID(3), GroupID(9), term: Term(5))])
        }
    }

    @Test func `a stranger's heartbeat is nobody's, and a peer that is gone is forgotten`() {
        var watch = Watch()
        #expect(watch.hear(from: 9, declines: true) == [])
        // Its groups must not wait for it: it is removed, and nobody hears it any more.
        #expect(
            watch.handle(.peersChanged([NodeID(3), NodeID(4)]))
                == [.suspect(NodeID(2)), .trust(NodeID(4))])
        #expect(watch.hear(from: 2, declines: true) == [])
        #expect(watch.wake(at: 600) == [.suspect(NodeID(3)), .suspect(NodeID(4))])
    }

    /// Core audit 3.7: heartbeats that wait say nothing of clocks.
    @Test func `C-42 a heartbeat that comes late is no offset of clocks`() {
        var watch = Watch()
        func hear(late delay: Int64) -> [NodeLiveness.Action] {
            watch.vitals.wallMilliseconds = 1_000_000 + watch.milliseconds
            return watch.hear(from: 2, clock: -delay) + watch.hear(from: 3, clock: -delay)
        }
        for time in stride(from: 0 as Int64, through: 2_000, by: 100) {
            watch.milliseconds = time
            #expect(hear(late: time % 300 == 0 ? 0 : 700) == [])
            #expect(watch.liveness.clockLeadMilliseconds == 0, "\(time)")
        }
        // This node's thread hangs for three seconds, and then hears all that has come meanwhile.
        for late in stride(from: 3_000 as Int64, through: 0, by: -100) {
            watch.milliseconds = 5_000 + (3_000 - late) / 100
            #expect(hear(late: late) == [])
            #expect(watch.handle(.woke(watch.vitals)) == [], "\(late)")
        }
    }

    @Test func `C-42 a clock that is behind is noticed within two seconds, the own jump at once`() {
        var watch = Watch()
        func hear(at time: Int64, clock: Int64) {
            watch.milliseconds = time
            watch.vitals.wallMilliseconds = 1_000_000 + time
            for node in [2, 3] as [UInt32] { _ = watch.hear(from: node, clock: clock) }
        }
        for time in stride(from: 0 as Int64, through: 1_000, by: 100) { hear(at: time, clock: 0) }
        for time in stride(from: 1_100 as Int64, through: 3_000, by: 100) {
            hear(at: time, clock: -3_600_000 + time % 3)
        }
        #expect(watch.liveness.isClockOff)
        #expect((3_599_990...3_600_000).contains(watch.liveness.clockLeadMilliseconds))
        var three = Watch()
        for node in [2, 3] as [UInt32] { _ = three.hear(from: node, clock: 0) }
        three.vitals.wallMilliseconds += 3_600_000
        #expect(three.wake(at: 1) == [.inhibit(.clock)])
        #expect(three.liveness.clockLeadMilliseconds == 3_600_000)
    }
}
