import StratusModel
import StratusPlacement
import Testing

/// The controller of moves: alone on single situations, and against worlds that lie in wait.
@Suite struct MembershipControllerTests {
    @Test(arguments: 0..<UInt64(16))
    func
        `M-05 M-13 M-25 whatever is lost, repeated or late, every replica arrives and none is lost`(
            seed: UInt64
        ) throws
    {
        var world = try MovingWorld(seed: seed, nodes: 3 + Int(seed % 4))
        for round in 0..<160 {
            if round % 5 == 0 { try world.disturb() }
            // Two leaders of the system group, for a while: both decide.
            let steps = try world.decide()
            let others = Bool.random(using: &world.random) ? try world.decide() : []
            try world.turn()
            try world.carryOutCarelessly(steps)
            try world.carryOutCarelessly(others)
            try world.turn()
            guard world.violations.isEmpty else { break }
        }
        #expect(world.violations.isEmpty, "seed \(seed): \(world.violations.prefix(3))")

        // The faults stop; what was on its way still arrives, late as it is.
        world.down = []
        world.gone = []
        for step in world.late { try world.carryOut(step) }
        world.late = []
        var rounds = 0
        var quiet = 0
        while rounds < 3_000, quiet < 20 {
            let steps = try world.decide()
            quiet = steps.isEmpty ? quiet + 1 : 0
            for step in steps { try world.carryOut(step) }
            try world.turn()
            rounds += 1
        }
        #expect(world.violations.isEmpty, "seed \(seed): \(world.violations.prefix(3))")
        try Self.expectSettled(world, "seed \(seed) after \(rounds) rounds")
        #expect(world.changeCount > 0, "seed \(seed) moved nothing")
    }

    static func expectSettled(_ world: MovingWorld, _ note: String) throws {
        let view = try world.bench.view
        #expect(view.moves.isEmpty, "\(note): \(view.moves)")
        #expect(MembershipController.wanted(for: view).isEmpty, "\(note)")
        var leads: [NodeID: Int] = [:]
        for id in view.groups {
            let group = try #require(world.groups[id])
            #expect(
                group.configuration == Configuration(voters: view.replicas(of: id)),
                "\(note): \(id) \(group.configuration)")
            #expect(group.complete.isSuperset(of: view.replicas(of: id)), "\(note): \(id)")
            if let leader = group.leader { leads[leader, default: 0] += 1 }
        }
        for node in view.nodes where node.state != .active {
            #expect(view.groups(keptBy: node.id).isEmpty, "\(note): \(node.id) is \(node.state)")
            #expect(leads[node.id] == nil, "\(note)")
            #expect(!node.leavesWhenEmpty || node.state == .removed, "\(note): \(node.id)")
        }
    }

    /// Three nodes, one to join or leave, and nothing that goes wrong: how it looks to an operator.
    private func settle(_ world: inout MovingWorld, _ each: (MovingWorld) throws -> Void) throws {
        var quiet = 0
        for _ in 0..<1_000 where quiet < 20 {
            let steps = try world.decide()
            quiet = steps.isEmpty ? quiet + 1 : 0
            for step in steps { try world.carryOut(step) }
            try world.turn()
            try each(world)
        }
        if quiet == 20 { return }
        Issue.record("did not settle")
    }

    @Test func `a node that joins gets its share, a few replicas at a time`() throws {
        var world = try MovingWorld(seed: 1, nodes: 3, partitionCount: 16)
        let id = try world.bench.join(9)
        try self.settle(&world) { world in
            let view = try world.bench.view
            #expect(view.moves.count { $0.to == id } <= 2)
            #expect(view.moves.count <= 3)
        }
        #expect(try world.bench.view.table.partitions(on: id).count == 12)
        try Self.expectSettled(world, "joined")
        #expect(world.violations.isEmpty)
    }

    @Test func `M-21 leaderships leave a draining node before its replicas do`() throws {
        var world = try MovingWorld(seed: 2, nodes: 4)
        try world.bench.apply(
            .drain(NodeID(1), leavesWhenEmpty: true, acceptedReplicaCount: nil))
        let led = world.groups.filter { $0.value.leader == NodeID(1) }.map(\.key)
        #expect(!led.isEmpty)
        let steps = try world.decide()
        let begun = Set(
            steps.compactMap {
                if case .command(.beginMove(let move)) = $0 { move.group } else { nil }
            })
        let handedOver = steps.compactMap {
            if case .transfer(let group, NodeID(1), _) = $0 { group } else { nil }
        }
        #expect(Set(handedOver).union(begun).isSuperset(of: led))
        try self.settle(&world) { world in
            for (id, group) in world.groups where group.configuration.isJoint {
                // Whoever leads a group into its change stays in it.
                #expect(
                    group.leader.map { group.configuration.incoming.contains($0) } ?? true, "\(id)")
            }
        }
        #expect(try world.bench.view.node(NodeID(1))?.state == .removed)
        #expect(world.violations.isEmpty)
    }

    @Test func `M-11 a dead node is replaced while every group keeps a majority`() throws {
        var world = try MovingWorld(seed: 3, nodes: 4)
        world.gone = [NodeID(2)]
        try world.turn()
        try world.bench.apply(
            .drain(NodeID(2), leavesWhenEmpty: true, acceptedReplicaCount: nil))
        try self.settle(&world) { _ in }
        #expect(try world.bench.view.node(NodeID(2))?.state == .removed)
        try Self.expectSettled(world, "replaced")
        #expect(world.violations.isEmpty)
    }

    @Test func `M-16 a silent node moves nothing by itself`() throws {
        var world = try MovingWorld(seed: 4, nodes: 5)
        world.down = [NodeID(3)]
        for _ in 0..<10 { try world.turn() }
        for step in try world.decide() {
            if case .command(let command) = step { Issue.record("\(command)") }
        }
    }

    @Test
    func `M-11 what counts a removed node as a voter is mended before anything of it is moved`()
        throws
    {
        var mended = 0
        for number in 1...5 as ClosedRange<UInt32> {
            for silent in 1...3 as ClosedRange<UInt32> {
                let gone = NodeID(number)
                var world = try MovingWorld(seed: 1, nodes: 5)
                _ = try world.bench.join(6)
                _ = try world.bench.join(7)
                world.gone = [gone]
                try world.bench.apply(.remove(gone, acceptedLossCount: 0))
                // The newcomer that the plan has for some group cannot be had.
                world.down = [NodeID(silent)]
                for _ in 0..<3 { try world.turn() }
                let view = try world.bench.view
                for case .command(.beginMove(let move)) in try world.decide()
                where view.replicas(of: move.group).contains(gone) {
                    #expect(move.from == gone, "\(gone) is gone, \(silent) is silent: \(move)")
                    #expect(move.to != NodeID(silent))
                    mended += 1
                }
            }
        }
        #expect(mended > 0)
    }

    /// A group has one move at a time. One that drops a replica and waits for the majority of those
    /// who stay would keep the dead node among them from being replaced, and would wait for it for
    /// ever (seed 7913).
    @Test func `M-11 no drop begins while those who would stay have no majority`() throws {
        var drops = 0
        for dead in 1...3 as ClosedRange<UInt32> {
            for silent in 4...5 as ClosedRange<UInt32> {
                var world = try MovingWorld(seed: 1, nodes: 5)
                for (node, accepted) in [(1, nil), (2, nil), (3, 2)] as [(UInt32, Int?)] {
                    try world.bench.apply(
                        .drain(
                            NodeID(node), leavesWhenEmpty: true, acceptedReplicaCount: accepted))
                }
                // The newcomer that would replace the dead node cannot be had now.
                world.gone = [NodeID(dead)]
                world.down = [NodeID(silent)]
                for _ in 0..<3 { try world.turn() }
                let view = try world.bench.view
                for case .command(.beginMove(let move)) in try world.decide() where move.to == nil {
                    let stay = view.replicas(of: move.group).filter { $0 != move.from }
                    #expect(
                        stay.count { world.isUp($0) } >= stay.count / 2 + 1,
                        "\(dead) is dead, \(silent) is silent: \(move)")
                    drops += 1
                }
                world.down = []
                try self.settle(&world) { _ in }
                try Self.expectSettled(world, "\(dead) is dead, \(silent) was silent")
                #expect(world.violations.isEmpty)
            }
        }
        #expect(drops > 0)
    }

    @Test func `M-11 a drop is given up when those who would stay lose their majority for good`()
        throws
    {
        var world = try MovingWorld(seed: 8, nodes: 5)
        let group = GroupID(1)
        let voters = try world.bench.view.replicas(of: group)
        try world.bench.apply(
            .beginMove(ReplicaMove(group, from: voters[0], to: nil, fence: LogIndex(1))))
        world.gone = [voters[1]]
        try world.turn()
        try world.bench.apply(
            .drain(voters[1], leavesWhenEmpty: true, acceptedReplicaCount: nil))
        try self.settle(&world) { _ in }
        #expect(try world.bench.view.node(voters[1])?.state == .removed)
        #expect(try world.bench.view.replicas(of: group).contains(voters[0]))
        try Self.expectSettled(world, "given up")
        #expect(world.violations.isEmpty)
    }

    @Test func `M-08 a newcomer that has not caught up is not made a voter`() throws {
        var world = try MovingWorld(seed: 5, nodes: 3)
        let id = try world.bench.join(9)
        var learners = 0
        for _ in 0..<60 {
            for step in try world.decide() {
                if case .configure(_, _, _, let voters, let added) = step {
                    #expect(!voters.contains(id))
                    if added.contains(id) { learners += 1 }
                }
                try world.carryOut(step)
            }
            try world.turn()
            for group in world.groups.keys.sorted() { world.groups[group]?.complete.remove(id) }
        }
        #expect(learners > 0)
    }

    /// A leader that was filled by a snapshot knows its configuration by the snapshot's index; the
    /// next one may know the same by an index before the fence.
    @Test
    func `M-05 a move goes on when the next leader knows its configuration by an older index`()
        throws
    {
        var world = try MovingWorld(seed: 7, nodes: 3)
        let id = try world.bench.join(9)
        world.groups[GroupID(1)]?.configurationIndex = LogIndex(5)
        world.groups[GroupID(1)]?.last = LogIndex(5)
        for _ in 0..<50 where try world.bench.view.move(of: GroupID(1)) == nil {
            for step in try world.decide() { try world.carryOut(step) }
            try world.turn()
        }
        let move = try #require(try world.bench.view.move(of: GroupID(1)))
        #expect(move.fence == LogIndex(5) && move.to == id)
        world.groups[GroupID(1)]?.configurationIndex = LogIndex(1)
        world.groups[GroupID(1)]?.configuration = Configuration(
            voters: try world.bench.view.replicas(of: GroupID(1)))
        try self.settle(&world) { _ in }
        try Self.expectSettled(world, "by another index")
        #expect(world.violations.isEmpty)
    }

    @Test func `M-12 M-13 a step that was decided before the fence rose changes nothing`() throws {
        var world = try MovingWorld(seed: 6, nodes: 3)
        let id = try world.bench.join(9)
        let begin = try world.decide().first {
            if case .command(.beginMove) = $0 { true } else { false }
        }
        try world.carryOut(try #require(begin))
        let move = try #require(try world.bench.view.moves.first)
        let addLearner = try #require(
            try world.decide().first {
                if case .configure(move.group, _, _, _, _) = $0 { true } else { false }
            })
        // The newcomer is lost before that is carried out, and the move given up.
        world.gone = [id]
        try world.bench.apply(.drain(id, leavesWhenEmpty: true, acceptedReplicaCount: nil))
        for _ in 0..<20 where try !world.bench.view.moves.isEmpty {
            for step in try world.decide() where step != addLearner { try world.carryOut(step) }
            for _ in 0..<4 { try world.turn() }
        }
        #expect(try world.bench.view.moves.isEmpty)
        let before = world.groups[move.group]?.configuration
        try world.carryOut(addLearner)
        #expect(world.groups[move.group]?.configuration == before)
    }
}
