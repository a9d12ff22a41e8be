import Glibc
import StratusConsensus
import StratusModel

extension Benchmark {
    /// `stratus-bench consensus [--entries N] [--groups N] [--seconds N]`
    static let consensus = Benchmark(
        name: "consensus", summary: "CPU time per committed entry, and of idle groups"
    ) { arguments in
        let entries = Int(Self.option("entries", in: arguments) ?? "") ?? 200_000
        let groups = Int(Self.option("groups", in: arguments) ?? "") ?? 4_096
        let seconds = Int(Self.option("seconds", in: arguments) ?? "") ?? 10
        print("what\tbatch\tCPU ns/entry (median of 5, all three replicas)")
        for batch in [1, 8, 64] {
            var runs: [Double] = []
            for _ in 0..<5 {
                var room = ConsensusRoom(nodes: 3)
                room.elect()
                let start = ConsensusRoom.processorNanoseconds
                for _ in 0..<(entries / batch) { room.propose(batch) }
                runs.append(
                    Double(ConsensusRoom.processorNanoseconds - start) / Double(entries))
            }
            runs.sort()
            print("commit 1 KiB\t\(batch)\t\(Int(runs[2]))")
        }
        ConsensusRoom.idle(groups: groups, seconds: seconds)
    }
}

/// Replicas of one group with instant messages and disks, so that only the cost of deciding
/// remains.
struct ConsensusRoom {
    private var groups: [RaftGroup]
    private var now = MonotonicTime(nanoseconds: 0)
    private var events: [(Int, RaftGroup.Event)] = []
    private var actions: [RaftGroup.Action] = []
    private let payload = Bytes(repeating: 7, count: 1_024)

    init(nodes: Int, group: UInt16 = 0) {
        let voters = (1...nodes).map { NodeID(UInt32($0)) }
        let snapshot = SnapshotIdentity(
            index: .zero, term: .zero, configuration: Configuration(voters: voters), digest: .empty)
        self.groups = voters.map {
            RaftGroup(
                group: GroupID(group), node: $0,
                recovered: .init(
                    hardState: HardState(term: .zero, vote: nil), snapshot: snapshot),
                seed: UInt64($0.raw))
        }
    }

    static var processorNanoseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    mutating func elect() {
        for position in self.groups.indices { self.events.append((position, .started)) }
        self.drain()
        self.now = self.now + .seconds(1)
        self.events.append((0, .woke))
        self.drain()
        precondition(self.groups[0].role == .leader, "nobody was elected")
    }

    mutating func propose(_ count: Int) {
        let proposals = (0..<count).map {
            RaftGroup.Proposal(
                token: .init(UInt64($0)), payload: self.payload, wallMilliseconds: 1)
        }
        self.now = self.now + .microseconds(100)
        self.events.append((0, .proposed(proposals)))
        self.drain()
        // Releases the entries that an applied state would release, so that memory does not grow.
        for position in self.groups.indices {
            let handed = self.groups[position].handed
            guard handed.raw % 1_024 < UInt64(count) else { continue }
            self.events.append((position, .released(through: handed)))
        }
        self.drain()
    }

    private mutating func drain() {
        var next = 0
        while next < self.events.count {
            let (position, event) = self.events[next]
            next += 1
            self.actions.removeAll(keepingCapacity: true)
            self.groups[position].handle(event, at: self.now, into: &self.actions)
            let from = self.groups[position].node
            for action in self.actions {
                switch action {
                case .send(let message, let to):
                    self.events.append((Int(to.raw) - 1, .received(message, from: from)))
                case .persist(let write):
                    let log = self.groups[position].log
                    let point =
                        write.entries.last.map { LogPoint(index: $0.index, term: $0.term) }
                        ?? log.lastPoint
                    self.events.append(
                        (
                            position,
                            .durable(
                                through: point.index, term: point.term,
                                hardState: self.groups[position].hardState)
                        ))
                default: break
                }
            }
        }
        self.events.removeAll(keepingCapacity: true)
    }

    /// A node's watch over two peers, with all its groups following a healthy leader: only
    /// heartbeats happen, whatever the number of groups.
    static func idle(groups count: Int, seconds: Int) {
        var rooms = (0..<count).map { ConsensusRoom(nodes: 3, group: UInt16($0)) }
        for position in rooms.indices { rooms[position].elect() }
        var watch = NodeLiveness(
            incarnation: NodeIncarnation(1), peers: [NodeID(2), NodeID(3)],
            at: MonotonicTime(nanoseconds: 0))
        var actions: [NodeLiveness.Action] = []
        let vitals = NodeLiveness.Vitals(wallMilliseconds: 0, unsyncedMilliseconds: 0)
        let start = Self.processorNanoseconds
        var told = 0
        for beat in 0..<(seconds * 10) {
            let now = MonotonicTime(nanoseconds: Int64(beat) * 100_000_000)
            for peer in [NodeID(2), NodeID(3)] {
                let heartbeat = NodeHeartbeat(
                    incarnation: NodeIncarnation(UInt64(peer.raw)), sequence: UInt64(beat),
                    unsyncedMilliseconds: 0, wallMilliseconds: 0, declinesLeadership: false,
                    resigned: [])
                watch.handle(.heartbeat(heartbeat, from: peer, vitals), at: now, into: &actions)
            }
            watch.handle(.woke(vitals), at: now, into: &actions)
            for action in actions {
                switch action {
                case .suspect, .noteEnded, .trust, .restarted, .declined, .recovered, .inhibit,
                    .permit:
                    told += count
                case .send, .wake, .leaderResigned: break
                }
            }
            actions.removeAll(keepingCapacity: true)
        }
        let used = Self.processorNanoseconds - start
        let share = Double(used) / Double(seconds) / 1e9 * 100
        print("idle\t\(count) groups, \(seconds) s\t\(share) % of a core, \(told) events to groups")

        // A peer falls silent: every group is told once.
        let fall = Self.processorNanoseconds
        var out: [RaftGroup.Action] = []
        for position in rooms.indices {
            rooms[position].groups[0].handle(
                .suspected(NodeID(2)), at: rooms[position].now, into: &out)
            out.removeAll(keepingCapacity: true)
        }
        print(
            "one node falls silent\t\(count) groups\t"
                + "\((Self.processorNanoseconds - fall) / 1_000) µs in all")
    }
}
