import StratusCluster
import StratusModel
import StratusPlacement
import Testing

/// M-19: which partitions go on, and where.
@Suite struct RecoveryPlanTests {
    private static func nodes(_ numbers: [UInt32]) -> [NodeID] { numbers.map { NodeID($0) } }

    private static func view(nodes: Int, partitions: Int = 16) throws -> ClusterView {
        try #require(
            ClusterView.formed(
                by: Formation(
                    cluster: ClusterID(high: 1, low: 2), partitionCount: partitions,
                    nodes: (1...nodes).map {
                        ClusterNode(
                            id: NodeID(UInt32($0)), name: "n\($0)", address: "10.0.0.\($0):7400")
                    })))
    }

    /// The plan of a node that holds every replica the view gives it.
    private static func plan(
        _ view: ClusterView, at own: UInt32, lost: [UInt32], keep: UInt32? = nil,
        but changes: [GroupID: Configuration?] = [:]
    ) -> RecoveryPlan {
        var held: [GroupID: Configuration] = [:]
        for group in view.groups(keptBy: NodeID(own)) {
            held[group] = Configuration(voters: view.replicas(of: group))
        }
        for (group, configuration) in changes { held[group] = configuration }
        return RecoveryPlan(
            for: view, at: NodeID(own), lost: Self.nodes(lost), keep: keep.map { NodeID($0) },
            configurations: held)
    }

    @Test func `of three nodes the last goes on with everything`() throws {
        let view = try Self.view(nodes: 3)
        let plan = Self.plan(view, at: 1, lost: [2, 3])
        #expect(plan.here == view.groups && plan.undecided.isEmpty && plan.begunAnew.isEmpty)
        let well = Self.plan(view, at: 1, lost: [2])
        #expect(well.here.isEmpty && well.groups { $0 == .lives } == view.groups)
    }

    @Test func `every partition goes on in one place, whoever of the survivors is asked`() throws {
        for count in 4...7 {
            let view = try Self.view(nodes: count)
            let all = (1...UInt32(count)).map { $0 }
            for lostCount in 2..<count {
                let lost = Array(all.suffix(lostCount))
                let left = Array(all.dropLast(lostCount))
                let plans = left.map { Self.plan(view, at: $0, lost: lost, keep: left[0]) }
                for (position, group) in view.groups.enumerated() {
                    let fates = plans.map { $0.lines[position].fate }
                    let here = zip(left, fates).filter { $0.1 == .here }.map(\.0)
                    if fates.contains(.lives) {
                        #expect(fates.allSatisfy { $0 == .lives }, "\(count) \(lost) \(group)")
                    } else {
                        #expect(here.count == 1, "\(count) \(lost) \(group) \(fates)")
                        for fate in fates where fate != .here {
                            #expect(fate == .there(NodeID(here[0])))
                        }
                    }
                }
            }
        }
    }

    @Test func `several minorities and nothing at all wait for a word`() throws {
        let view = try Self.view(nodes: 5)
        let plan = Self.plan(view, at: 1, lost: [3, 4, 5])
        #expect(plan.undecided.contains(.system))
        let whole = view.groups.filter { group in
            view.replicas(of: group).allSatisfy { $0.raw >= 3 }
        }
        #expect(plan.gone == whole)
        let kept = Self.plan(view, at: 1, lost: [3, 4, 5], keep: 1)
        #expect(kept.undecided.isEmpty && kept.begunAnew == whole)
        #expect(Self.plan(view, at: 2, lost: [3, 4, 5], keep: 1).begunAnew == whole)
        #expect(!Self.plan(view, at: 2, lost: [3, 4, 5], keep: 1).here.contains(whole[0]))
    }

    @Test func `what stands in the log counts, not what the view remembers`() throws {
        let view = try Self.view(nodes: 5)
        let group = try #require(
            view.groups.first { $0 != .system && view.replicas(of: $0).contains(NodeID(1)) })
        let others = Self.nodes([4, 5])
        // Joint, between {1, 4, 5} and {1, 2, 4}: both want a majority.
        let joint = Configuration(
            voters: [NodeID(1)] + others, incoming: Self.nodes([1, 2, 4]))
        let plan = Self.plan(view, at: 1, lost: [4, 5], but: [group: joint])
        let fate = try #require(plan.lines.first { $0.group == group }).fate
        #expect(fate == .undecided(Self.nodes([1, 2])))
        // A replica whose state or log is damaged is none.
        let damaged = Self.plan(
            try Self.view(nodes: 3), at: 1, lost: [2, 3], but: [group: Configuration?.none])
        #expect(damaged.gone == [group])
    }
}
