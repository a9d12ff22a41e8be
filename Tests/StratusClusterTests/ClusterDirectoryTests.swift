import StratusCluster
import StratusCoding
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusRows
import StratusStorage
import Testing

/// A node's knowledge of its cluster, over restarts, and its consequences.
@Suite struct ClusterDirectoryTests {
    static func node(_ number: UInt32) -> ClusterNode {
        ClusterNode(
            id: NodeID(number), name: "node-\(number)", address: "10.0.0.\(number):7400",
            directory: UInt64(number))
    }

    /// The system partition's state, and the views it goes through.
    struct Committed {
        let rows = Rows()
        var state = SystemState()
        var index: UInt64 = 0

        init() throws {
            try self.run(
                .form(
                    Formation(
                        cluster: ClusterID(high: 1, low: 2), partitionCount: 4, replicaCount: 3,
                        nodes: (1...3).map { ClusterDirectoryTests.node($0) })))
        }

        mutating func run(_ command: SystemCommand) throws {
            self.index += 1
            let outcome = try self.state.apply(
                command.enveloped(
                    identity: RequestIdentity(high: 0, low: self.index),
                    deadlineMilliseconds: .max, principal: Principal(kind: .administrator)),
                at: EntryPosition(
                    index: LogIndex(self.index), time: HybridTime(milliseconds: 1)),
                over: self.rows)
            if case .refused(let refusal) = try SystemOutcome(decoding: outcome.body) {
                throw refusal
            }
        }

        func view() throws -> ClusterView {
            let query = Query(kind: .system, body: SystemQuery.view.encoded())
            guard
                case .view(let view?) = try SystemAnswer(
                    decoding: self.state.answer(query, over: self.rows.view).body)
            else { throw SystemRefusal(.notFormed) }
            return view
        }

        /// Node 4 joins and is heard of.
        mutating func admitFourth() throws {
            var four = ClusterDirectoryTests.node(4)
            four.key = [4]
            try self.run(.addToken(hash: Bytes(repeating: 7, count: 32), expiresMilliseconds: 99))
            try self.run(.join(four, tokenHash: Bytes(repeating: 7, count: 32)))
            try self.run(.announce(four))
        }
    }

    @Test func `a view counts once it is on disk, and an older one never again`() throws {
        let world = SimulatedWorld(seed: 1)
        var committed = try Committed()
        let founding = try committed.view()
        let directory = try ClusterDirectory(NodeID(1), founding: founding, in: world)
        try committed.admitFourth()
        let newer = try committed.view()
        world.simulatedFiles.setCapacity(ByteCount(0))
        #expect(throws: DiskError.self) { try directory.adopt(newer) }
        #expect(directory.view == founding, "what could not be kept is not followed")
        world.simulatedFiles.setCapacity(nil)
        #expect(try directory.adopt(newer))
        #expect(try !directory.adopt(founding))
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        let again = try ClusterDirectory(NodeID(1), founding: founding, in: world)
        #expect(again.view == newer)
        #expect(again.peers.map(\.node) == [NodeID(2), NodeID(3), NodeID(4)])
        #expect(again.peers.last?.host == "10.0.0.4" && again.peers.last?.port == 7_400)
    }

    @Test func `a founder's first voters are the founders, a newcomer begins with nobody`() throws {
        let world = SimulatedWorld(seed: 2)
        var committed = try Committed()
        let group = PartitionID(2).group
        let founding = try committed.view()
        let founder = try ClusterDirectory(NodeID(1), founding: founding, in: world)
        #expect(
            founder.firstConfiguration(of: group)
                == Configuration(voters: [NodeID(1), NodeID(2), NodeID(3)]))
        #expect(founder.firstConfiguration(of: GroupID(9)) == nil, "there is no such partition")

        try committed.admitFourth()
        let other = SimulatedWorld(seed: 3)
        try ClusterDirectory.keep(try committed.view(), in: other)
        let newcomer = try ClusterDirectory(NodeID(4), founding: nil, in: other)
        #expect(newcomer.firstConfiguration(of: group) == nil)
        try committed.run(
            .beginMove(
                ReplicaMove(group, from: NodeID(1), to: NodeID(4), fence: LogIndex(17))))
        #expect(try newcomer.adopt(try committed.view()))
        #expect(newcomer.firstConfiguration(of: group) == Configuration(voters: []))
        #expect(newcomer.silentThrough(of: group) == LogIndex(17))
        #expect(try founder.adopt(try committed.view()))
        #expect(founder.keeps(group), "until the move is finished")

        let number = try #require(try committed.view().move(of: group)).number
        try committed.run(.finishMove(group, number: number))
        #expect(try founder.adopt(try committed.view()) && !founder.keeps(group))
        #expect(founder.firstConfiguration(of: group) == nil)
        #expect(try newcomer.adopt(try committed.view()))
        #expect(newcomer.keeps(group) && newcomer.silentThrough(of: group) == .zero)

        // And back: what the founder deleted, it knows nothing of.
        try committed.run(
            .beginMove(
                ReplicaMove(group, from: NodeID(4), to: NodeID(1), fence: LogIndex(40))))
        #expect(try founder.adopt(try committed.view()))
        #expect(founder.firstConfiguration(of: group) == Configuration(voters: []))
        #expect(founder.silentThrough(of: group) == LogIndex(40))
    }

    @Test func `a damaged file keeps the node from starting, and says what to do`() throws {
        let world = SimulatedWorld(seed: 4)
        let view = try Committed().view()
        let whole = ClusterDirectory.encode(view)
        #expect(try ClusterDirectory.decode(whole) == view)
        for position in 0..<whole.count * 8 {
            var damaged = whole
            damaged[position / 8] ^= 1 << (position % 8)
            #expect(throws: DecodingError.self) { try ClusterDirectory.decode(damaged) }
        }
        try world.files.replace(ClusterDirectory.path, with: Bytes(whole.dropLast()))
        let refusal = #expect(throws: ClusterDirectory.Refusal.self) {
            try ClusterDirectory(NodeID(1), founding: view, in: world)
        }
        #expect(refusal?.description.contains("VIEW") == true)
        // A node that joined has nothing else to go by.
        #expect(throws: ClusterDirectory.Refusal.self) {
            try ClusterDirectory(NodeID(4), founding: nil, in: SimulatedWorld(seed: 5))
        }
    }

    @Test func `who joined is written down, and read back`() throws {
        let world = SimulatedWorld(seed: 6)
        #expect(try ClusterFormation.kept(in: world) == nil)
        let joined = ClusterFormation(
            joined: ClusterID(high: 1, low: 2), as: NodeID(4), name: "d", partitionCount: 16)
        try joined.keep(in: world)
        world.simulatedFiles.restart(after: .powerLossLosingAll)
        let kept = try #require(try ClusterFormation.kept(in: world))
        #expect(kept == joined && kept.name == "d" && !kept.isFounder)
        let whole = joined.encoded()
        for position in 0..<whole.count * 8 {
            var damaged = whole
            damaged[position / 8] ^= 1 << (position % 8)
            #expect(throws: DecodingError.self) { try ClusterFormation(decoding: damaged) }
        }
    }

    @Test func `M-07 M-17 a name that was removed and given to another node is met anew`() throws {
        let memory = try PeerMemory(in: SimulatedWorld(seed: 7))
        var committed = try Committed()
        try committed.admitFourth()
        let (old, new) = (RequestIdentity(high: 4, low: 1), RequestIdentity(high: 8, low: 2))
        let three = RequestIdentity(high: 3, low: 9)
        #expect(memory.meet("node-4", old) == .known && memory.meet("node-3", three) == .known)
        #expect(memory.hear("node-4", NodeStarts(first: NodeIncarnation(1))) == .known)
        #expect(memory.hear("node-3", NodeStarts(first: NodeIncarnation(1))) == .known)
        try memory.follow(try committed.view())
        #expect(memory.meet("node-4", new) == .other(known: old, said: new), "it is a member")

        try committed.run(.remove(NodeID(4), acceptedLossCount: nil))
        var other = Self.node(4)
        other.key = [5]
        try committed.run(.addToken(hash: Bytes(repeating: 8, count: 32), expiresMilliseconds: 99))
        try committed.run(.join(other, tokenHash: Bytes(repeating: 8, count: 32)))
        // Nobody has heard of the new one yet: it must be heard to be heard of.
        try memory.follow(try committed.view())
        #expect(memory.meet("node-4", new) == .known)
        #expect(
            memory.hear("node-4", NodeStarts(first: NodeIncarnation(2))) == .known,
            "another directory has other starts")
        #expect(memory.start(of: "node-3")?.incarnation == NodeIncarnation(1))
        #expect(memory.meet("node-4", old) == .other(known: new, said: old))
        #expect(
            memory.meet("node-3", new) == .other(known: three, said: new), "the others stay")
        try memory.follow(try committed.view())
        #expect(memory.meet("node-4", new) == .known)
    }

    @Test func `questions and replies read as they were written, and damage never traps`() throws {
        let seen = GroupObservation(
            group: GroupID(3), leader: NodeID(2),
            configuration: Configuration(
                voters: [NodeID(1), NodeID(2)], incoming: [NodeID(2), NodeID(4)],
                learners: [NodeID(5)]), configurationIndex: LogIndex(9), isCommitted: true,
            caughtUp: [NodeID(2), NodeID(4)], isTroubled: true)
        var health = NodeHealth()
        health.version = "1"
        health.complaints = [.init(component: "storage", reason: "full")]
        health.ledCount = 300
        let questions: [NodeQuestion] = [
            .view(newerThan: 7), .observe(waking: [GroupID(1), GroupID(4_096)]),
            .configure(
                GroupID(3), at: LogIndex(9), voters: [NodeID(1)], learners: [NodeID(4)]),
            .transfer(GroupID(3), to: NodeID(4)), .changed(revision: 1 << 40), .health,
            .offer(try Committed().view()),
        ]
        for question in questions {
            #expect(try NodeQuestion(decoding: question.encoded()) == question)
            Self.damage(question.encoded()) { try? NodeQuestion(decoding: $0) }
        }
        let replies: [NodeReply] = [
            .view(revision: 7, nil), .view(revision: 8, try Committed().view()),
            .observed([seen]), .done(true), .health(health),
        ]
        for reply in replies {
            #expect(try NodeReply(decoding: reply.encoded()) == reply)
            Self.damage(reply.encoded()) { try? NodeReply(decoding: $0) }
        }
    }

    private static func damage<Value>(_ bytes: Bytes, _ read: (Bytes) -> Value?) {
        for count in 0..<bytes.count {
            #expect(read(Bytes(bytes[..<count])) == nil)
        }
        for position in 0..<bytes.count * 8 {
            var damaged = bytes
            damaged[position / 8] ^= 1 << (position % 8)
            _ = read(damaged)
        }
    }
}
