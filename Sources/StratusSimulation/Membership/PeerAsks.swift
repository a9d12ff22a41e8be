import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel

/// The requests of one process' asynchronous parts to replicas, its own and those of others, over
/// the simulated network.
///
/// `Sendable` is unchecked: a simulation and all that belongs to it run in one thread.
final class PeerAsks: @unchecked Sendable {
    private let life: ProcessLife
    private let draw: (Int) -> Int
    private var asks: [UInt64: CheckedContinuation<PeerResponse.Answer, Never>] = [:]
    private var lastNumber: UInt64

    /// - Parameter draw: returns a number below its argument.
    init(_ life: ProcessLife, draw: @escaping (Int) -> Int) {
        self.life = life
        self.draw = draw
        // An answer to the process before must not match a question of this one.
        self.lastNumber = UInt64(life.node.incarnation) << 32
    }

    func end() { for number in self.asks.keys.sorted() { self.answer(number, .outcomeUnknown) } }

    /// Asks a node once.
    func ask(
        _ body: PeerRequest.Body, of group: GroupID, at node: NodeID, patience: Duration
    ) async -> PeerResponse.Answer {
        let life = self.life
        let deadline = life.node.world.now + patience
        if node == life.node.id { return await life.ask(body, of: group, deadline: deadline) }
        return await withCheckedContinuation { continuation in
            if life.isGone { return continuation.resume(returning: .outcomeUnknown) }
            self.lastNumber += 1
            let number = self.lastNumber
            self.asks[number] = continuation
            let request = PeerRequest(
                number: number, group: group, epoch: 0,
                remainingMilliseconds: UInt32(patience.clampedNanoseconds / 1_000_000), body: body)
            guard life.simulation.send(.request(request), from: life.node, to: node) else {
                return self.answer(number, .notLeader(nil))
            }
            life.spawn {
                await life.sleep(until: deadline + .milliseconds(200))
                self.answer(number, .outcomeUnknown)
            }
        }
    }

    /// Goes on to the next node while nobody leads. A write that may have been appended is said
    /// again under its identity.
    func lead(_ body: PeerRequest.Body, of group: GroupID) async -> PeerResponse.Answer {
        let nodes = self.life.simulation.nodes.map(\.id)
        var target = self.life.node.host?.replica(of: group)?.raft.leader
        var last = PeerResponse.Answer.outcomeUnknown
        var mayBeAppended = false
        for _ in 0..<12 {
            if self.life.isGone { return last }
            let node = target ?? nodes[self.draw(nodes.count)]
            last = await self.ask(body, of: group, at: node, patience: .milliseconds(1_500))
            target = nil
            switch last {
            case .outcome, .answer, .refused: return last
            case .notLeader(let hint): target = hint
            case .notExecuted: if !mayBeAppended { return last }
            case .outcomeUnknown: mayBeAppended = true
            }
            await self.life.sleep(for: .milliseconds(20 + self.draw(60)))
        }
        return mayBeAppended ? .outcomeUnknown : last
    }

    func answer(_ number: UInt64, _ answer: PeerResponse.Answer) {
        self.asks.removeValue(forKey: number)?.resume(returning: answer)
    }
}

/// Workers know groups by their numbers, and each asks once under one identity.
extension PeerAsks: PartitionRouter {
    func submit(
        _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
        mayRunLater: Bool
    ) async throws(RouteError) -> Outcome {
        guard case .group(let group) = address else { throw .refused("a worker knows no keys") }
        switch await self.lead(.command(command), of: group) {
        case .outcome(let outcome): return outcome
        case .notExecuted(let milliseconds):
            throw .notExecuted(retryAfter: .milliseconds(Int(milliseconds)))
        case .refused(let why): throw .refused(why)
        case .answer, .notLeader, .outcomeUnknown: throw .outcomeUnknown
        }
    }

    func read(_ query: Query, at address: PartitionAddress, deadline: MonotonicTime)
        async throws(RouteError) -> QueryAnswer
    {
        guard case .group(let group) = address,
            case .answer(let answer) = await self.lead(.query(query), of: group)
        else { throw .notExecuted(retryAfter: .seconds(1)) }
        return answer
    }

    func hasPartition(_ group: GroupID) -> Bool { group != .system }
}
