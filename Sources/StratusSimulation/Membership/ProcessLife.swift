import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel

/// The base of one process' asynchronous parts: sleep, its own replicas, the network. Once the
/// process has ended every call returns at once and has no effect, so that running tasks finish.
///
/// `Sendable` is unchecked: a simulation and all that belongs to it run in one thread.
final class ProcessLife: @unchecked Sendable {
    unowned let simulation: Simulation
    let node: SimulatedNode
    let number: UInt64
    let executor: SimulatedExecutor
    /// With whom there are links, by the view that the node goes by.
    var peers: [NodeID] = []
    private(set) var isOver = false
    private var tasks: [Task<Void, Never>] = []
    private var sleepers: [UInt64: CheckedContinuation<Void, Never>] = [:]
    private var askers: [RaftGroup.RequestToken: CheckedContinuation<PeerResponse.Answer, Never>] =
        [:]
    private var sleepCount: UInt64 = 0

    init(of node: SimulatedNode, in simulation: Simulation, on executor: SimulatedExecutor) {
        self.node = node
        self.simulation = simulation
        self.number = node.incarnation
        self.executor = executor
    }

    /// The process may have ended inside the last operation of its disk, and nobody has looked yet.
    var isGone: Bool { self.isOver || self.node.files.isCrashed }

    /// A text for people who look for the cause of a standstill.
    var text: String {
        "has links to \(self.peers), \(self.sleepers.count) sleep, \(self.askers.count) ask, "
            + "\(self.executor.isIdle ? "nothing" : "something") is ready"
    }

    // MARK: Tasks

    /// Something that goes on until the process ends.
    func keepDoing(_ body: @escaping @Sendable () async -> Void) {
        self.tasks.append(Task(executorPreference: self.executor, operation: body))
    }

    func spawn(_ body: @escaping @Sendable () async -> Void) {
        Task(executorPreference: self.executor, operation: body)
    }

    func end() {
        self.isOver = true
        for task in self.tasks { task.cancel() }
        self.tasks = []
        for number in self.sleepers.keys.sorted() { self.wake(number) }
        for token in self.askers.keys.sorted(by: { $0.raw < $1.raw }) {
            self.answer(token, .outcomeUnknown)
        }
    }

    // MARK: Time

    func sleep(for duration: Duration) async {
        await self.sleep(until: self.node.world.now + duration)
    }

    func sleep(until time: MonotonicTime) async {
        await withCheckedContinuation { continuation in
            // Here, not before: it may have ended between the call and its turn.
            if self.isOver { return continuation.resume() }
            self.sleepCount += 1
            self.sleepers[self.sleepCount] = continuation
            self.simulation.queue.add(
                .process(.resume(sleep: self.sleepCount), self.node.id, life: self.number),
                at: max(self.simulation.now, self.node.global(time)))
        }
    }

    func wake(_ sleep: UInt64) { self.sleepers.removeValue(forKey: sleep)?.resume() }

    // MARK: The own replicas

    func ask(_ body: PeerRequest.Body, of group: GroupID, deadline: MonotonicTime) async
        -> PeerResponse.Answer
    {
        await withCheckedContinuation { continuation in
            if self.isOver { return continuation.resume(returning: .outcomeUnknown) }
            let token = self.simulation.drawToken()
            self.askers[token] = continuation
            // Nobody is asked any more; the end answers.
            if self.isGone { return }
            self.simulation.take(
                body, of: group, as: token, for: .here(self), deadline: deadline, on: self.node)
        }
    }

    func answer(_ token: RaftGroup.RequestToken, _ answer: PeerResponse.Answer) {
        self.askers.removeValue(forKey: token)?.resume(returning: answer)
    }
}
