import StratusCoding
import StratusDoubles
import StratusModel
import StratusPlacement
import Testing

/// M-19: how the system partition takes what survivors say of a cluster that has lost a majority.
@Suite struct RecoveryTests {
    static let name = ClusterID(high: 0xAB, low: 0xCD)

    static func recovery(
        _ node: UInt32, lost: [UInt32], groups: [UInt16], cluster: ClusterID = Self.name
    ) -> ClusterRecovery {
        ClusterRecovery(
            cluster: cluster, node: NodeID(node), lost: lost.map { NodeID($0) },
            groups: groups.map { GroupID($0) })
    }

    @Test func `the lost are removed for ever, and what is left is where it is left`() throws {
        var bench = try SystemBench(formed: 5)
        let before = try bench.view
        let replicas = before.replicas(of: GroupID(2))
        let newcomer = before.nodes.map(\.id).first { !replicas.contains($0) }
        try bench.apply(.beginMove(ReplicaMove(GroupID(2), from: replicas[0], to: newcomer)))
        let outcome = try bench.apply(
            .recover(Self.recovery(1, lost: [3, 4, 5], groups: [0, 2, 5])))
        let view = try bench.view
        #expect(outcome == .done(revision: view.settings.revision))
        #expect(view.settings.cluster == Self.name)
        #expect(view.nodes.map(\.isMember) == [true, true, false, false, false])
        for group in [GroupID(0), GroupID(2), GroupID(5)] {
            #expect(view.replicas(of: group) == [NodeID(1)])
        }
        #expect(view.move(of: GroupID(2)) == nil)
        #expect(view.replicas(of: GroupID(1)) == before.replicas(of: GroupID(1)))
        // Nothing that others may know from lost entries is given again.
        #expect(view.settings.revision > 1 << 32 && view.settings.epoch > 1 << 32)
        #expect(view.settings.nextNode >= 4_096)
        guard case .notices(let page) = try bench.ask(.notices(after: 0, limit: 10)) else {
            Issue.record("no notices")
            return
        }
        #expect(page.first > 1 << 31 && page.notices.map(\.kind) == [.view])
        #expect(try bench.join(9).raw >= 4_096)
        #expect(try bench.refusal(.announce(SystemBench.peer(3))) == .nodeRemoved)
    }

    @Test func `each survivor says it once, and late repetitions take nothing back`() throws {
        var bench = try SystemBench(formed: 5)
        try bench.apply(.recover(Self.recovery(1, lost: [3, 4, 5], groups: [2])))
        try bench.apply(.recover(Self.recovery(2, lost: [3, 4, 5], groups: [5])))
        #expect(try bench.view.replicas(of: GroupID(2)) == [NodeID(1)])
        #expect(try bench.view.replicas(of: GroupID(5)) == [NodeID(2)])
        // Group 2 gets a second replica; then the first survivor repeats itself.
        try bench.apply(.beginMove(ReplicaMove(GroupID(2), from: nil, to: NodeID(2))))
        let number = try #require(try bench.view.move(of: GroupID(2))).number
        try bench.apply(.finishMove(GroupID(2), number: number))
        let rows = bench.rows.contents
        try bench.apply(.recover(Self.recovery(1, lost: [3, 4, 5], groups: [2])))
        #expect(bench.rows.contents == rows)
        // Of a later loss it is heard again.
        try bench.apply(
            .recover(
                Self.recovery(
                    1, lost: [2], groups: [2, 5], cluster: ClusterID(high: 1, low: 1))))
        #expect(try bench.view.replicas(of: GroupID(5)) == [NodeID(1)])
    }

    @Test func `a group that another goes on with alone is left to it`() throws {
        var bench = try SystemBench(formed: 5)
        try bench.apply(.recover(Self.recovery(1, lost: [3, 4, 5], groups: [2])))
        try bench.apply(.recover(Self.recovery(2, lost: [3, 4, 5], groups: [2])))
        #expect(try bench.view.replicas(of: GroupID(2)) == [NodeID(1)])
    }

    @Test func `what cannot be meant changes nothing`() throws {
        var bench = try SystemBench(formed: 3)
        let rows = bench.rows.contents
        for (recovery, reason) in [
            (Self.recovery(9, lost: [2], groups: [1]), SystemRefusal.Reason.unknownNode),
            (Self.recovery(1, lost: [1, 2], groups: [1]), .badRequest),
            (Self.recovery(1, lost: [2, 9], groups: [1]), .badRequest),
            (Self.recovery(1, lost: [2, 3], groups: [0, 9]), .badRequest),
        ] {
            #expect(try bench.refusal(.recover(recovery)) == reason)
        }
        #expect(
            try bench.refusal(
                .recover(Self.recovery(1, lost: [2, 3], groups: [1])), as: .administrator)
                == .notAllowed)
        #expect(bench.rows.contents == rows)
    }
}
