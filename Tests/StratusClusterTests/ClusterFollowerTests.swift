import StratusCluster
import StratusDoubles
import StratusModel
import StratusPlacement
import Synchronization
import Testing

/// A node follows the views of its cluster, whatever its own copy of the system partition knows.
@Suite struct ClusterFollowerTests {
    /// Replicas that know what the test says, and do nothing.
    final class Replicas: MemberReplicas {
        struct State {
            var leader: NodeID? = NodeID(2)
            var mayDiscard = true
            var discarded: [[GroupID]] = []
        }
        let state = Mutex(State())

        var node: NodeID { NodeID(1) }
        func leader(of group: GroupID) -> NodeID? { self.state.withLock { $0.leader } }
        func ask(_ body: PeerRequest.Body, of group: GroupID, deadline: MonotonicTime) async
            -> PeerResponse.Answer
        { .notLeader(nil) }
        func peek(_ query: Query, in group: GroupID) async -> QueryAnswer? { nil }
        func observations() async -> [GroupObservation] { [] }
        func wake(_ groups: [GroupID]) async {}
        func configure(
            _ group: GroupID, at index: LogIndex, voters: [NodeID], learners: [NodeID]
        ) async -> Bool { false }
        func transfer(_ group: GroupID, to node: NodeID) async -> Bool { false }
        func setPeers(_ nodes: [NodeID]) async {}
        func retire(keeping keeps: @Sendable (GroupID) -> Bool) async -> [GroupID] {
            [GroupID(1), GroupID(2)].filter { !keeps($0) }
        }
        func nodeRemains() async -> NodeRemains { NodeRemains() }
        func discard(_ groups: [GroupID]) async throws(StoreError) {
            let isDone = self.state.withLock { state in
                state.discarded.append(groups)
                return state.mayDiscard
            }
            if !isDone { throw StoreError(.io, "the disk refuses") }
        }
    }

    /// Another node that answers every question for a view with the one that counts.
    final class Peer: PeerSender {
        let view: Mutex<ClusterView>
        let router = Mutex<ClusterRouter?>(nil)
        init(_ view: ClusterView) { self.view = Mutex(view) }

        func send(_ message: PeerMessage, to node: NodeID) -> Bool {
            guard case .request(let request) = message, case .node(let bytes) = request.body,
                case .view(let known)? = try? NodeQuestion(decoding: bytes)
            else { return false }
            let view = self.view.withLock { $0 }
            let isNewer = view.settings.revision > known
            let reply = NodeReply.view(
                revision: view.settings.revision, isNewer ? view : nil)
            self.router.withLock { $0 }?.receive(
                PeerResponse(
                    number: request.number, answer: .answer(QueryAnswer(body: reply.encoded()))),
                from: node)
            return true
        }
    }

    struct Bench {
        let world = SimulatedWorld(seed: 1)
        let executor: SimulatedExecutor
        let replicas = Replicas()
        let peer: Peer
        let directory: ClusterDirectory
        let follower: ClusterFollower

        init(_ founding: ClusterView) throws {
            let executor = SimulatedExecutor(world: self.world, seed: 1)
            self.executor = executor
            self.peer = Peer(founding)
            let directory = try ClusterDirectory(NodeID(1), founding: founding, in: self.world)
            let world = self.world
            let router = ClusterRouter(
                self.replicas, sender: self.peer, in: world, on: executor,
                place: { directory.place(of: $0) }, placeOfGroup: { directory.place(of: $0) },
                sleep: { await executor.sleep(for: max(.zero, $0 - world.now)) })
            self.peer.router.withLock { $0 = router }
            self.directory = directory
            self.follower = ClusterFollower(
                directory, replicas: self.replicas, router: router, events: .init(), on: executor,
                sleep: { await executor.sleep(for: $0) })
        }

        func run(for duration: Duration, _ body: @escaping @Sendable () async -> Void) {
            Task(executorPreference: self.executor, operation: body)
            self.executor.run(until: self.world.now + duration)
        }
    }

    private func committed() throws -> (ClusterDirectoryTests.Committed, founding: ClusterView) {
        let committed = try ClusterDirectoryTests.Committed()
        return (committed, try committed.view())
    }

    /// Simulation, seed 9: this node still knew a leader of the system group, which led when the
    /// node was dropped.
    @Test
    func `M-12 a node whose copy of the system partition hears nothing asks when told of more`()
        throws
    {
        var (committed, founding) = try self.committed()
        let bench = try Bench(founding)
        try committed.run(.configure(NodeID(2), weight: 300, rack: nil))
        let view = try committed.view()
        bench.peer.view.withLock { $0 = view }
        let follower = bench.follower
        bench.run(for: .seconds(1)) { await follower.heard(of: view.settings.revision) }
        #expect(bench.directory.revision == view.settings.revision)
    }

    @Test func `M-12 it asks of itself now and then`() throws {
        var (committed, founding) = try self.committed()
        let bench = try Bench(founding)
        try committed.run(.configure(NodeID(2), weight: 300, rack: nil))
        let view = try committed.view()
        bench.peer.view.withLock { $0 = view }
        let follower = bench.follower
        bench.run(for: .seconds(5)) { await follower.run() }
        #expect(bench.directory.revision == view.settings.revision)
    }

    @Test func `M-13 what could not be deleted and has come back is not deleted`() throws {
        var (committed, founding) = try self.committed()
        let bench = try Bench(founding)
        bench.replicas.state.withLock { $0.mayDiscard = false }
        try committed.admitFourth()
        // Node 1 gives group 1 to node 4, and gets it back.
        try committed.run(.beginMove(ReplicaMove(GroupID(1), from: NodeID(1), to: NodeID(4))))
        let number = try #require(try committed.view().move(of: GroupID(1))?.number)
        try committed.run(.finishMove(GroupID(1), number: number))
        let without = try committed.view()
        let follower = bench.follower
        bench.run(for: .seconds(1)) { await follower.take(without) }
        #expect(bench.replicas.state.withLock { $0.discarded } == [[GroupID(1)]])
        try committed.run(.beginMove(ReplicaMove(GroupID(1), from: NodeID(4), to: NodeID(1))))
        let with = try committed.view()
        bench.replicas.state.withLock { $0.mayDiscard = true }
        bench.run(for: .seconds(1)) { await follower.take(with) }
        #expect(bench.directory.keeps(GroupID(1)))
        #expect(bench.replicas.state.withLock { $0.discarded } == [[GroupID(1)]])
    }
}
