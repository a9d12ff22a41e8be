import StratusCoding
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusRows
import Testing

/// The system partition's answers and refusals.
@Suite struct SystemStateTests {
    @Test func `M-18 O-14 a cluster is formed once, whoever says it and how often`() throws {
        var bench = SystemBench()
        #expect(
            try bench.refusal(.drain(NodeID(1), leavesWhenEmpty: false, acceptedReplicaCount: nil))
                == .notFormed)
        #expect(try bench.ask(.view) == .view(nil))
        let formation = SystemBench.formation()
        #expect(try bench.apply(.form(formation)) == .done(revision: 1))
        let rows = bench.rows.contents
        #expect(try bench.apply(.form(formation)) == .done(revision: 1))
        var other = formation
        other.cluster = ClusterID(high: 1, low: 1)
        #expect(try bench.refusal(.form(other)) == .alreadyFormed)
        #expect(bench.rows.contents == rows)
        let view = try bench.view
        #expect(view.table.epoch == 1 && view.systemReplicas.count == 3)
        #expect(view.table.partitions.allSatisfy { view.table.replicas(of: $0).count == 3 })
    }

    static let senseless: [(name: String, change: @Sendable (inout Formation) -> Void)] = [
        ("no nodes", { $0.nodes = [] }),
        ("a node twice", { $0.nodes[1] = $0.nodes[0] }),
        ("a name twice", { $0.nodes[1].name = "n1" }),
        ("an address twice", { $0.nodes[1].address = $0.nodes[0].address }),
        ("no replicas", { $0.replicaCount = 0 }),
        ("too many replicas", { $0.replicaCount = 8 }),
        ("no weight", { $0.nodes[0].weight = 0 }),
        ("no name", { $0.nodes[0].name = "" }),
    ]

    @Test func `a formation that cannot be meant is refused`() throws {
        for (name, change) in Self.senseless {
            var bench = SystemBench()
            var formation = SystemBench.formation()
            change(&formation)
            #expect(try bench.refusal(.form(formation)) == .badRequest, "\(name)")
            #expect(bench.rows.contents == Rows().contents, "\(name)")
        }
    }

    @Test func `only administrators and the cluster itself may change it`() throws {
        var bench = try SystemBench(formed: 3)
        for kind in [Principal.Kind.anonymous, .user, .serverKey] {
            #expect(try bench.refusal(.undrain(NodeID(1)), as: kind) == .notAllowed)
        }
        #expect(try bench.refusal(.undrain(NodeID(1)), as: .administrator) == nil)
    }

    @Test func `X-18 a token opens once, and a lost answer is given again`() throws {
        var bench = try SystemBench(formed: 3)
        let node = SystemBench.newcomer(9)
        let token = SystemBench.token
        #expect(try bench.refusal(.join(node, tokenHash: token)) == .tokenUnknown)
        let expires = bench.milliseconds + 1_000
        try bench.apply(.addToken(hash: token, expiresMilliseconds: expires))
        let joined = try bench.apply(.join(node, tokenHash: token))
        #expect(joined == .joined(NodeID(4), revision: 2))
        #expect(try bench.apply(.join(node, tokenHash: token)) == joined)
        #expect(try bench.refusal(.join(SystemBench.newcomer(10), tokenHash: token)) == .tokenUsed)
        #expect(try bench.view.node(NodeID(4))?.state == .joining)
        // Said again, it does not open again.
        try bench.apply(.addToken(hash: token, expiresMilliseconds: expires))
        #expect(try bench.refusal(.join(SystemBench.newcomer(10), tokenHash: token)) == .tokenUsed)

        var late = token
        late[0] = 1
        try bench.apply(.addToken(hash: late, expiresMilliseconds: bench.milliseconds + 15))
        bench.milliseconds += 100
        #expect(
            try bench.refusal(.join(SystemBench.newcomer(10), tokenHash: late)) == .tokenExpired)
        try bench.apply(.revokeToken(hash: late))
        #expect(
            try bench.refusal(.join(SystemBench.newcomer(10), tokenHash: late)) == .tokenUnknown)
    }

    @Test func `a certificate is withdrawn and restored (security audit 9)`() throws {
        var bench = try SystemBench(formed: 3)
        let one = Bytes(repeating: 1, count: 32)
        let two = Bytes(repeating: 2, count: 32)
        #expect(try bench.view.withdrawn == [])
        #expect(try bench.refusal(.withdrawCertificate(one), as: .user) == .notAllowed)
        #expect(try bench.refusal(.withdrawCertificate([1, 2])) == .badRequest)
        #expect(try bench.apply(.withdrawCertificate(two)) == .done(revision: 2))
        #expect(try bench.apply(.withdrawCertificate(one)) == .done(revision: 3))
        // Repeated, it changes nothing.
        #expect(try bench.apply(.withdrawCertificate(one)) == .done(revision: 3))
        #expect(try bench.view.withdrawn == [one, two])
        // The rows say the same as the memory.
        bench.state.forget()
        #expect(try bench.view.withdrawn == [one, two])
        #expect(try ClusterView(decoding: bench.view.encoded()) == bench.view)
        #expect(try bench.apply(.restoreCertificate(two)) == .done(revision: 4))
        #expect(try bench.apply(.restoreCertificate(two)) == .done(revision: 4))
        bench.state.forget()
        #expect(try bench.view.withdrawn == [one])
        for number in 0..<(ClusterView.withdrawnCountMax - 1) {
            let fingerprint =
                [UInt8(number >> 8), UInt8(number & 0xFF)] + Bytes(repeating: 9, count: 30)
            #expect(try bench.refusal(.withdrawCertificate(fingerprint)) == nil)
        }
        #expect(try bench.refusal(.withdrawCertificate(two)) == .tooMany)
    }

    @Test func `M-17 a name, address or key that is taken is refused`() throws {
        var bench = try SystemBench(formed: 3)
        try bench.apply(.addToken(hash: SystemBench.token, expiresMilliseconds: .max))
        var node = SystemBench.newcomer(9)
        node.name = "n2"
        #expect(try bench.refusal(.join(node, tokenHash: SystemBench.token)) == .nameTaken)
        node.name = "n9"
        node.address = SystemBench.peer(2).address
        #expect(try bench.refusal(.join(node, tokenHash: SystemBench.token)) == .addressTaken)
        node.key = []
        #expect(try bench.refusal(.join(node, tokenHash: SystemBench.token)) == .badRequest)
    }

    @Test func `M-07 a node that lost its directory is not taken for the one it was`() throws {
        var bench = try SystemBench(formed: 3)
        var node = SystemBench.peer(2)
        node.directory = 77
        node.incarnation = NodeIncarnation(1)
        #expect(try bench.refusal(.announce(node)) == nil)
        node.incarnation = NodeIncarnation(2)
        #expect(try bench.refusal(.announce(node)) == nil)
        node.directory = 78
        #expect(try bench.refusal(.announce(node)) == .anotherDirectory)
        node.directory = 0
        #expect(try bench.refusal(.announce(node)) == .badRequest)
        #expect(try bench.view.node(NodeID(2))?.incarnation == NodeIncarnation(2))
    }

    @Test func `M-23 an address moves with its node, and to no address that is taken`() throws {
        var bench = try SystemBench(formed: 3)
        var node = SystemBench.peer(2)
        node.directory = 5
        node.address = "10.9.9.9:7400"
        #expect(try bench.refusal(.announce(node)) == nil)
        #expect(try bench.view.node(NodeID(2))?.address == "10.9.9.9:7400")
        node.address = SystemBench.peer(1).address
        #expect(try bench.refusal(.announce(node)) == .addressTaken)
    }

    @Test func `M-20 O-14 a drain that leaves too few is refused, unless the number is named`()
        throws
    {
        var bench = try SystemBench(formed: 3)
        func drain(_ node: UInt32, _ accepted: Int?) -> SystemCommand {
            .drain(NodeID(node), leavesWhenEmpty: false, acceptedReplicaCount: accepted)
        }
        #expect(
            try bench.apply(drain(1, nil))
                == .refused(SystemRefusal(.tooFewNodes, count: 2, limit: 3)))
        #expect(try bench.refusal(drain(1, 1)) == .tooFewNodes)
        #expect(try bench.refusal(drain(1, 2)) == nil)
        #expect(try bench.refusal(drain(2, 1)) == nil)
        #expect(try bench.refusal(drain(3, 0)) == .lastNode)
        #expect(try bench.refusal(drain(9, nil)) == .unknownNode)
        #expect(try bench.refusal(.undrain(NodeID(1))) == nil)
        #expect(try bench.view.node(NodeID(1))?.state == .active)
    }

    @Test func `M-20 O-14 a removal that costs a majority needs the number it costs`() throws {
        var bench = try SystemBench(formed: 3)
        func remove(_ node: UInt32, _ accepted: Int?) -> SystemCommand {
            .remove(NodeID(node), acceptedLossCount: accepted)
        }
        // 8 partitions and the system's group.
        #expect(
            try bench.apply(remove(1, nil))
                == .refused(SystemRefusal(.holdsReplicas, count: 9, limit: 0)))
        #expect(try bench.refusal(remove(1, 0)) == nil)
        #expect(try bench.refusal(remove(1, nil)) == nil, "said again")
        #expect(
            try bench.apply(remove(2, 0))
                == .refused(SystemRefusal(.holdsReplicas, count: 9, limit: 9)))
        #expect(try bench.view.groupsLost(without: NodeID(2)).count == 9)
        #expect(try bench.refusal(remove(2, 9)) == nil)
        #expect(try bench.refusal(remove(3, 9)) == .lastNode)
        var node = SystemBench.peer(1)
        node.directory = 1
        #expect(try bench.refusal(.announce(node)) == .nodeRemoved)
        #expect(try bench.refusal(.undrain(NodeID(1))) == .nodeRemoved)
    }

    @Test func `a removed node's name and address may be used again, its identifier never`() throws
    {
        var bench = try SystemBench(formed: 4)
        let first = try bench.join(9)
        #expect(try bench.refusal(.remove(first, acceptedLossCount: nil)) == nil)
        var token = SystemBench.token
        token[0] = 200
        try bench.apply(.addToken(hash: token, expiresMilliseconds: .max))
        #expect(try bench.refusal(.join(SystemBench.newcomer(9), tokenHash: token)) == .nodeRemoved)
        var again = SystemBench.newcomer(9)
        again.key = Bytes(repeating: 99, count: 32)
        #expect(
            try bench.apply(.join(again, tokenHash: token))
                == .joined(NodeID(first.raw + 1), revision: try bench.view.settings.revision))
    }

    @Test func `moves begin, are fenced and end in order, and late words do nothing`() throws {
        var bench = try SystemBench(formed: 3)
        let id = try bench.join(4)
        let group = GroupID(1)
        let move = ReplicaMove(group, from: NodeID(1), to: id, fence: LogIndex(5))
        #expect(try bench.refusal(.beginMove(move)) == nil)
        let begun = try #require(try bench.view.move(of: group))
        #expect(begun.number == (try bench.view.table.epoch) && begun.fence == LogIndex(5))
        #expect(try bench.refusal(.beginMove(move)) == nil, "said again")
        #expect(
            try bench.refusal(.beginMove(ReplicaMove(group, from: NodeID(2), to: id)))
                == .moveInProgress)
        #expect(try bench.view.groups(keptBy: id) == [group])
        // At the fence a step may still be on its way.
        #expect(
            try bench.refusal(.abandonMove(group, number: begun.number, at: LogIndex(5)))
                == .moveInProgress)
        #expect(
            try bench.refusal(.fenceMove(group, number: begun.number, at: LogIndex(6))) == nil)
        #expect(try bench.view.move(of: group)?.fence == LogIndex(6))
        #expect(
            try bench.refusal(.fenceMove(group, number: begun.number + 1, at: LogIndex(9)))
                == .noSuchMove)
        let before = try bench.view
        #expect(try bench.refusal(.finishMove(group, number: begun.number - 1)) == nil)
        #expect(try bench.view == before, "a number that is over")
        #expect(try bench.refusal(.finishMove(group, number: begun.number)) == nil)
        let after = try bench.view
        #expect(after.replicas(of: group) == [NodeID(2), NodeID(3), id])
        #expect(after.moves.isEmpty && after.table.epoch > before.table.epoch)
        #expect(try bench.refusal(.finishMove(group, number: begun.number)) == nil)
        #expect(
            try bench.refusal(.abandonMove(group, number: begun.number, at: LogIndex(9))) == nil)
        #expect(try bench.view == after, "said again")
    }

    static let impossible: [(name: String, move: ReplicaMove)] = [
        ("from where nothing is", ReplicaMove(GroupID(1), from: NodeID(9), to: NodeID(4))),
        ("to where one is", ReplicaMove(GroupID(1), from: NodeID(1), to: NodeID(2))),
        ("to a stranger", ReplicaMove(GroupID(1), from: NodeID(1), to: NodeID(77))),
        ("of a group that is not", ReplicaMove(GroupID(9), from: NodeID(1), to: NodeID(4))),
        ("of nothing", ReplicaMove(GroupID(1), from: nil, to: nil)),
    ]

    @Test func `a move that cannot be is refused`() throws {
        for (name, move) in Self.impossible {
            var bench = try SystemBench(formed: 3)
            _ = try bench.join(4)
            #expect(try bench.refusal(.beginMove(move)) == .moveImpossible, "\(name)")
        }
        var bench = try SystemBench(formed: 1)
        let last = ReplicaMove(GroupID(1), from: NodeID(1), to: nil)
        #expect(try bench.refusal(.beginMove(last)) == .moveImpossible, "the last replica")
    }

    @Test func `M-22 the feature level rises when all can read it, and keeps older ones out`()
        throws
    {
        var bench = try SystemBench(formed: 3)
        #expect(
            try bench.apply(.raiseFeatureLevel(2))
                == .refused(SystemRefusal(.featureLevelTooLow, count: 1, limit: 2)))
        for number in 1...3 as ClosedRange<UInt32> {
            var node = SystemBench.peer(number)
            node.directory = 1
            node.featureLevel = 2
            try bench.apply(.announce(node))
        }
        #expect(try bench.refusal(.raiseFeatureLevel(2)) == nil)
        var old = SystemBench.peer(1)
        old.directory = 1
        #expect(try bench.refusal(.announce(old)) == .featureLevelTooLow)
    }

    @Test func `notices come in order, are bounded, and a gap is told`() throws {
        var bench = try SystemBench(formed: 3)
        for number in 0..<5_000 {
            let weight: UInt32 = number.isMultiple(of: 2) ? 200 : 100
            try bench.apply(.configure(NodeID(1), weight: weight, rack: nil))
        }
        guard case .notices(let page) = try bench.ask(.notices(after: 0, limit: 10_000)) else {
            Issue.record("no notices")
            return
        }
        #expect(page.next == 5_002)
        #expect(page.first == page.next - UInt64(Notice.countMax))
        #expect(page.notices.count == SystemQuery.noticeCountMax)
        #expect(page.notices.first?.sequence == page.first)
        guard case .notices(let tail) = try bench.ask(.notices(after: 5_000, limit: 10)) else {
            return
        }
        #expect(tail.notices.map(\.sequence) == [5_001])
        #expect(tail.notices.first?.payload == [0x89, 0x13, 0, 0, 0, 0, 0, 0])
    }

    @Test func `every change of the view is told, and nothing else raises its revision`() throws {
        var bench = try SystemBench(formed: 3)
        try bench.apply(.configure(NodeID(1), weight: 200, rack: "a"))
        try bench.apply(.configure(NodeID(1), weight: 200, rack: "a"))
        #expect(try bench.view.settings.revision == 2)
        #expect(try bench.refusal(.configure(NodeID(1), weight: 0, rack: nil)) == .badRequest)
        guard case .notices(let page) = try bench.ask(.notices(after: 0, limit: 10)) else { return }
        #expect(page.notices.map(\.kind) == [.view, .view])
    }

    @Test func `a state that forgot reads the same from its rows`() throws {
        var bench = try SystemBench(formed: 4)
        let id = try bench.join(9)
        try bench.apply(.beginMove(ReplicaMove(GroupID(2), from: nil, to: id, fence: LogIndex(1))))
        try bench.apply(.drain(NodeID(1), leavesWhenEmpty: true, acceptedReplicaCount: nil))
        let before = try bench.view
        bench.state.forget()
        #expect(try bench.view == before)
        try bench.apply(.undrain(NodeID(1)))
        bench.state.forget()
        #expect(try bench.view.node(NodeID(1))?.state == .active)
        #expect(try ClusterView(decoding: before.encoded()) == before)
    }

    @Test func `what cannot be read changes nothing`() throws {
        var bench = try SystemBench(formed: 3)
        let rows = bench.rows.contents
        let good = SystemCommand.join(SystemBench.newcomer(9), tokenHash: SystemBench.token)
        var random = SeededGenerator(seed: 5)
        for _ in 0..<2_000 {
            var body = good.encoded()
            if Bool.random(using: &random) {
                body.removeLast(Int.random(in: 1..<body.count, using: &random))
            } else {
                body[Int.random(in: body.indices, using: &random)] ^= UInt8.random(
                    in: 1...255, using: &random)
            }
            let command = Command(
                kind: .system, identity: RequestIdentity(high: 1, low: 1),
                deadlineMilliseconds: .max,
                container: ContainerReference(container: "", environment: .production),
                schemaVersion: 0, principal: Principal(kind: .user), body: body)
            let position = EntryPosition(
                index: LogIndex(99), time: HybridTime(milliseconds: 1_800_000_000_000))
            _ = try bench.state.apply(command, at: position, over: bench.rows)
            #expect(bench.rows.contents == rows)
        }
    }
}
