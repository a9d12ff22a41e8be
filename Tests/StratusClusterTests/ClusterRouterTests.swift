import StratusCluster
import StratusModel
import StratusSimulation
import Testing

struct ClusterRouterTests {
    @Test("What was asked of a leader that hangs is asked of the next one as soon as there is one")
    func hangingLeader() throws {
        let seed = UInt64.random(in: 0...1 << 32)
        print("seed \(seed)")
        let three = try ThreeNodes(seed: seed)
        let leader = try #require(three.leader())
        let other = try #require(three.nodes.first { $0.id != leader.id })
        // It learns whom to ask.
        let deadline = three.clock.now + .seconds(50)
        let first = three.command([1], [1])
        let known = three.get {
            try? await other.router.submit(first, to: ThreeNodes.group, deadline: deadline)
        }
        #expect(known??.verdict == .decided)

        three.hang(leader)
        let second = three.command([1], [2])
        let begun = three.clock.now
        let outcome = three.get {
            try? await other.router.submit(second, to: ThreeNodes.group, deadline: deadline)
        }
        #expect(outcome??.verdict == .decided)
        #expect(three.value([1], at: other) == [2])
        // An election, and no more: the router itself would have waited for a minute.
        #expect(three.clock.now - begun < .seconds(3))
    }
}
