import StratusCluster
import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

/// Gateways and leaders refuse commands above the cluster's level, and a replica that meets one all
/// the same stops.
@Suite struct ClusterLevelTests {
    private static func newer(_ nodes: ThreeNodes, _ value: String) -> Command {
        var command = nodes.command(Bytes("r".utf8), [])
        command.body = RegisterCommand.write(Bytes("r".utf8), value: Bytes(value.utf8))
            .encoded(for: .next)
        return command
    }

    private static func ask(_ nodes: ThreeNodes, _ command: Command) throws -> PeerResponse.Answer?
    {
        let leader = try #require(nodes.leader())
        let deadline = nodes.clock.now + .seconds(20)
        return nodes.get {
            await leader.replicas.ask(.command(command), of: ThreeNodes.group, deadline: deadline)
        }
    }

    @Test func `O-05 a leader appends nothing above the cluster's level`() throws {
        let level = Shared(FeatureLevel.one)
        let nodes = try ThreeNodes(seed: 11) { setup in
            setup.level = ClusterLevel { level.withLock { $0 } }
        } build: { _ in
            .next
        }
        let leader = try #require(nodes.leader())
        let before = try #require(nodes.status(of: leader)).applied
        #expect(
            try Self.ask(nodes, Self.newer(nodes, "early"))
                == .notExecuted(retryAfterMilliseconds: 5_000))
        #expect(nodes.write(Bytes("s".utf8), Bytes("as ever".utf8)))
        #expect(nodes.value(Bytes("r".utf8), at: leader) == nil)
        #expect(try #require(nodes.status(of: leader)).applied == before.next)
        level.withLock { $0 = .next }
        guard case .outcome(let outcome)? = try Self.ask(nodes, Self.newer(nodes, "late")) else {
            Issue.record("refused at its level")
            return
        }
        #expect(outcome.verdict == .decided)
    }

    @Test func `O-05 a replica of an older build stops, says so, and the others go on`() throws {
        let stopped = Shared<[NewerEntry]>([])
        let nodes = try ThreeNodes(seed: 12) { setup in
            setup.level = .fixed(.next)
            guard setup.node == NodeID(3) else { return }
            setup.events.stopped = { _, newer in stopped.withLock { $0.append(newer) } }
        } build: {
            $0 == NodeID(3) ? .one : .next
        }
        // Where the old build leads, its successor is another one after the first such entry.
        let first = try Self.ask(nodes, Self.newer(nodes, "one"))
        nodes.run(for: .seconds(5))
        if case .outcome? = first {} else { _ = try Self.ask(nodes, Self.newer(nodes, "two")) }
        #expect(nodes.write(Bytes("s".utf8), Bytes("after".utf8)))
        nodes.run(for: .seconds(5))
        let old = try #require(nodes.nodes.first { $0.id == NodeID(3) })
        let status = try #require(nodes.status(of: old))
        let newer = try #require(stopped.withLock { $0.first })
        #expect(stopped.withLock { $0.count } == 1)
        #expect(status.applied.next == newer.index && status.role != .leader)
        #expect(status.problem == newer.description)
        #expect(old.replicas.stoppedReplicaCount == 1)
        #expect(nodes.alarms.withLock { $0 }.contains { $0.contains("which a newer build wrote") })
        for node in nodes.nodes where node.id != NodeID(3) {
            #expect(nodes.value(Bytes("s".utf8), at: node) == Bytes("after".utf8))
        }
        #expect(nodes.value(Bytes("s".utf8), at: old) == nil)
    }

    @Test func `a gateway refuses to make what is above the cluster's level`() throws {
        let node = try OneNode(seed: 13)
        let held = Shared<RouteError?>(nil)
        var command = node.command(.remove([1]), RequestIdentity(high: 1, low: 1))
        command.kind = .records
        command.body = [1, 200]
        let sent = command
        Task(executorPreference: node.executor) {
            do throws(RouteError) {
                _ = try await node.router.submit(
                    sent, to: .key(OneNode.key), deadline: node.deadline)
            } catch { held.withLock { $0 = error } }
        }
        node.settle()
        #expect(held.withLock { $0 } == .upgrading)
    }

    @Test func `M-22 a build below the cluster's level is refused by its name and the release`() {
        #expect(PeerGreeting.refusal(of: "c", build: .next, in: .next) == nil)
        #expect(PeerGreeting.refusal(of: "c", build: .next, in: .one) == nil)
        let refusal = PeerGreeting.refusal(of: "c", build: .one, in: .next)
        #expect(refusal?.text.contains("c runs a build of feature level 1") == true)
        #expect(refusal?.text.contains("install the others' release on c") == true)
        let older = PeerGreeting.refusal(of: "c", build: FeatureLevel(0), in: .one)
        #expect(older?.text.contains("install release 0.1.0 or a later one on c") == true)
        // Level 1 must be able to read why.
        #expect(
            NumberFamily.peerRefusal.level(of: refusal?.reason.rawValue ?? 0) == .one)
    }
}
