import StratusCluster
import StratusDoubles
import StratusModel
import Synchronization
import Testing

struct ClusterRouterTests {
    /// Two that take each other for the leader, for ever.
    private final class Circle: PeerSender {
        let router = Mutex<ClusterRouter?>(nil)
        let asked = Mutex<[MonotonicTime]>([])
        private let world: any World

        init(_ world: any World) { self.world = world }

        func send(_ message: PeerMessage, to node: NodeID) -> Bool {
            guard case .request(let request) = message else { return false }
            self.asked.withLock { $0.append(self.world.now) }
            let other = NodeID(node.raw == 2 ? 3 : 2)
            self.router.withLock { $0 }?.receive(
                PeerResponse(number: request.number, answer: .notLeader(other)), from: node)
            return true
        }
    }

    @Test("G-28 Two that take each other for the leader are asked a few times, and never for ever")
    func circle() throws {
        let world = SimulatedWorld(seed: 1)
        let executor = SimulatedExecutor(world: world, seed: 1)
        let circle = Circle(world)
        let replicas = ClusterFollowerTests.Replicas()
        let place = PlacedPartition(
            group: ThreeNodes.group, replicas: [NodeID(1), NodeID(2), NodeID(3)], epoch: 1)
        let router = ClusterRouter(
            replicas, sender: circle, in: world, on: executor, place: { _ in place },
            placeOfGroup: { _ in place },
            sleep: { time in await executor.sleep(for: max(.zero, time - world.now)) })
        circle.router.withLock { $0 = router }
        let failure = Shared<RouteError?>(nil)
        let begun = world.now
        Task(executorPreference: executor) {
            do throws(RouteError) {
                _ = try await router.read(
                    RegisterQuery.value([1]).query, at: .group(ThreeNodes.group),
                    deadline: world.now + .seconds(30))
            } catch { failure.withLock { $0 = error } }
        }
        executor.run(until: begun + .seconds(6))
        guard case .notExecuted(let retryAfter)? = failure.withLock({ $0 }), retryAfter > .zero
        else {
            Issue.record("\(String(describing: failure.withLock { $0 }))")
            return
        }
        // Four in a row, then a pause.
        let times = circle.asked.withLock { $0 }
        var counts: [MonotonicTime: Int] = [:]
        for time in times { counts[time, default: 0] += 1 }
        #expect(counts.values.allSatisfy { $0 <= 4 } && counts.values.contains(4))
        #expect(times.count < 250)
    }

    /// Takes every request and answers none; a node of which heartbeats arrive, or do not.
    private final class Silent: PeerSender, LocalReplicas {
        let asked = Mutex<[NodeID]>([])
        let isHeard: Bool

        init(isHeard: Bool) { self.isHeard = isHeard }

        var node: NodeID { NodeID(1) }
        func leader(of group: GroupID) -> NodeID? { nil }
        func hears(_ node: NodeID) -> Bool { self.isHeard }
        func ask(
            _ body: PeerRequest.Body, of group: GroupID, deadline: MonotonicTime
        ) async -> PeerResponse.Answer { .notLeader(NodeID(2)) }
        func send(_ message: PeerMessage, to node: NodeID) -> Bool {
            if case .request = message { self.asked.withLock { $0.append(node) } }
            return true
        }
    }

    private enum News: CaseIterable {
        case none, otherLeader, linkLost
    }

    @Test(arguments: [true, false])
    func `a read that may be running is not sent again (security audit 1d)`(isHeard: Bool) {
        for news in News.allCases {
            let world = SimulatedWorld(seed: 1)
            let executor = SimulatedExecutor(world: world, seed: 1)
            let silent = Silent(isHeard: isHeard)
            let place = PlacedPartition(
                group: ThreeNodes.group, replicas: [NodeID(1), NodeID(2), NodeID(3)], epoch: 1)
            let router = ClusterRouter(
                silent, sender: silent, in: world, on: executor, place: { _ in place },
                placeOfGroup: { _ in place },
                sleep: { time in await executor.sleep(for: max(.zero, time - world.now)) })
            let failedAt = Shared<MonotonicTime?>(nil)
            let begun = world.now
            Task(executorPreference: executor) {
                do throws(RouteError) {
                    _ = try await router.read(
                        RegisterQuery.value([1]).query, at: .group(ThreeNodes.group),
                        deadline: begun + .seconds(30))
                } catch { failedAt.withLock { $0 = world.now } }
            }
            executor.run(until: begun + .milliseconds(500))
            #expect(silent.asked.withLock { $0 } == [NodeID(2)])
            switch news {
            case .none: break
            case .otherLeader: router.leads(NodeID(3), ThreeNodes.group)
            case .linkLost: router.lost(NodeID(2))
            }
            executor.run(until: begun + .seconds(10))
            let asked = silent.asked.withLock { $0 }
            if news == .linkLost {
                // A process that has ended runs nothing.
                #expect(asked.count > 1)
                continue
            }
            #expect(asked == [NodeID(2)], "\(news)")
            #expect((failedAt.withLock { $0 } == nil) == isHeard, "\(news)")
            executor.run(until: begun + .seconds(32))
            #expect(failedAt.withLock { $0 } != nil)
            #expect(silent.asked.withLock { $0 } == [NodeID(2)])
        }
    }

    @Test("G-28 What was asked of a leader that hangs is asked of the next one once there is one")
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
            try? await other.router.submit(first, to: .group(ThreeNodes.group), deadline: deadline)
        }
        #expect(known??.verdict == .decided)

        three.hang(leader)
        let second = three.command([1], [2])
        let begun = three.clock.now
        let outcome = three.get {
            try? await other.router.submit(second, to: .group(ThreeNodes.group), deadline: deadline)
        }
        #expect(outcome??.verdict == .decided)
        #expect(three.value([1], at: other) == [2])
        // An election, and no more: the router itself would have waited for a minute.
        #expect(three.clock.now - begun < .seconds(3))
    }

    @Test
    func `O-07 an hour that was written by a wrong clock does not keep saves out for that hour`()
        throws
    {
        let node = try OneNode(seed: 1)
        func write(_ value: UInt8) -> Result<Outcome, RouteError>? {
            let identity = node.world.drawIdentity()
            let result = Shared<Result<Outcome, RouteError>?>(nil)
            Task(executorPreference: node.executor) {
                let answer = await node.submit(.write([1], value: [value]), identity)
                result.withLock { $0 = answer }
            }
            node.executor.run(until: node.world.now + .seconds(2))
            return result.withLock { $0 }
        }
        #expect(try write(1)?.get().verdict == .decided)
        node.world.jumpWall(milliseconds: 3_600_000)
        #expect(try write(2)?.get().verdict == .decided)
        #expect(node.router.leadMilliseconds == 0)
        node.world.jumpWall(milliseconds: -3_600_000)
        // The time of entries never goes back.
        #expect(try write(3)?.get().verdict == .decided)
        let lead = node.router.leadMilliseconds
        #expect((3_590_000...3_600_000).contains(lead), "\(lead)")
        // A deadline that says until when a copy may come stays what it is.
        let fixed = node.command(.write([2], value: [1]), node.world.drawIdentity())
        let verdict = Shared<Outcome.Verdict?>(nil)
        Task(executorPreference: node.executor) {
            let outcome = try? await node.router.submit(
                fixed, to: .key(OneNode.key), deadline: node.deadline, mayRunLater: false)
            verdict.withLock { $0 = outcome?.verdict }
        }
        node.executor.run(until: node.world.now + .seconds(2))
        #expect(verdict.withLock { $0 } == .expired)
        // The wall clock catches up.
        node.world.jumpWall(milliseconds: 3_600_000)
        #expect(node.router.leadMilliseconds == 0)
        #expect(try write(4)?.get().verdict == .decided)
    }

    @Test func `core audit 3.4: what is ahead of one partition is not ahead of another`() throws {
        let node = try OneNode(seed: 2, groupCount: 2)
        func write(_ key: ShardKey) -> (verdict: Outcome.Verdict?, expired: Int64?) {
            let identity = node.world.drawIdentity()
            let result = Shared<Outcome?>(nil)
            Task(executorPreference: node.executor) {
                let answer = await node.submit(.write([1], value: [1]), identity, to: key)
                result.withLock { $0 = try? answer.get() }
            }
            node.executor.run(until: node.world.now + .seconds(2))
            return result.withLock { ($0?.verdict, $0?.expiredAtMilliseconds) }
        }
        let (wrong, sound) = (ShardKey.account("0"), ShardKey.account("1"))
        node.world.jumpWall(milliseconds: 3_600_000)
        #expect(write(wrong).verdict == .decided)
        node.world.jumpWall(milliseconds: -3_600_000)
        #expect(write(wrong).verdict == .decided)
        #expect(write(sound).verdict == .decided)
        #expect(node.router.leadMilliseconds(at: wrong) > 3_500_000)
        #expect(node.router.leadMilliseconds(at: sound) == 0)
        #expect(node.router.leadMilliseconds > 3_500_000)
        node.world.jumpWall(milliseconds: 3_600_000)
        #expect(node.router.leadMilliseconds == 0)
    }

    @Test
    func
        `O-07 through a node whose clock is an hour behind saves are made, and late ones are late`()
        throws
    {
        let seed = UInt64.random(in: 0...1 << 32)
        print("seed \(seed)")
        let three = try ThreeNodes(seed: seed)
        let leader = try #require(three.leader())
        let other = try #require(three.nodes.first { $0.id != leader.id })
        let deadline = three.clock.now + .seconds(50)
        func submit(_ value: Bytes, life: Int64) -> Outcome.Verdict? {
            var command = three.command([1], value)
            command.deadlineMilliseconds = other.world.wallMilliseconds + life
            let submitted = command
            return three.get {
                try? await other.router.submit(
                    submitted, to: .group(ThreeNodes.group), deadline: deadline)
            }??.verdict
        }
        // Its clock is right: what comes too late is refused, however long somebody waits for it.
        #expect(submit([1], life: -1) == .expired)
        other.world.leadMilliseconds.withLock { $0 = -3_600_000 }
        three.run(for: .seconds(1))
        #expect(other.replicas.ownState.isClockOff)
        #expect(submit([2], life: 30_000) == .decided)
        #expect(submit([3], life: -1) == .expired)
        #expect(three.value([1], at: leader) == [2])
    }

    @Test func `O-07 a leader whose clock jumps by an hour and back costs nobody an hour`() throws {
        let seed = UInt64.random(in: 0...1 << 32)
        print("seed \(seed)")
        let three = try ThreeNodes(seed: seed)
        let leader = try #require(three.leader())
        func submit(_ value: Bytes, through node: ThreeNodes.Node) -> Outcome.Verdict? {
            var command = three.command([1], value)
            command.deadlineMilliseconds = node.world.wallMilliseconds + 30_000
            let (submitted, deadline) = (command, three.clock.now + .seconds(30))
            return three.get {
                try? await node.router.submit(
                    submitted, to: .group(ThreeNodes.group), deadline: deadline)
            }??.verdict
        }
        leader.world.leadMilliseconds.withLock { $0 = 3_600_000 }
        #expect(submit([1], through: leader) == .decided)
        three.run(for: .seconds(2))
        #expect(leader.replicas.ownState.isClockOff)
        #expect(try #require(three.leader()).id != leader.id)
        leader.world.leadMilliseconds.withLock { $0 = 0 }
        three.run(for: .seconds(1))
        for node in three.nodes {
            #expect(submit([2], through: node) == .decided)
            #expect(node.router.leadMilliseconds > 3_500_000)
        }
    }
}
