package import StratusModel
import Synchronization

/// Takes copies to the nodes of a cluster and brings them, by messages that may be lost, repeated
/// or late. This node's own copies are a call away.
///
/// Promises:
/// - A call returns by its deadline, once ``expire()`` is called now and then.
/// - What is under way to one node is bounded. Beyond the bound a call waits for its turn, by its
///   deadline; beyond the bound of those that wait a put is *busy*, and a fetch is not answered.
/// - An answer counts only from the node that was asked, and only for what was asked.
package final class CopyCourier: CopyCarrier {
    package struct Limits: Sendable, Equatable {
        /// Bytes of puts that a node has not answered.
        package var windowSize = ByteCount.mebibytes(8)
        /// Fetches that a node has not answered. Each may bring a mebibyte.
        package var fetchCountMax = 8
        /// Fetches of one other node that are read here at a time.
        package var servedCountMax = 16
        /// Calls that wait for their turn, of all nodes.
        package var waitingCountMax = 4_096
        package init() {}
    }

    /// What came of a question.
    private enum Answer {
        case copy(CopyAnswer)
        case fetched(CopyFetch)
    }

    private enum Kind { case put, confirm, fetch }

    private struct Pending {
        var node: NodeID
        var kind: Kind
        /// Bytes of the window that it takes.
        var size: Int
        var deadline: MonotonicTime
        var answer: CheckedContinuation<Answer, Never>
    }

    /// A call that waits because as much is under way to its node as may be.
    private struct Turn {
        var node: NodeID
        var isPut: Bool
        var deadline: MonotonicTime
        /// Whether to try again.
        var goesOn: CheckedContinuation<Bool, Never>
    }

    private struct Traffic {
        var size = 0
        var fetchCount = 0
        var servedCount = 0
    }

    private struct State {
        /// The number of the last question.
        var number: UInt64
        var isStopped = false
        var pending: [UInt64: Pending] = [:]
        var traffic: [NodeID: Traffic] = [:]
        /// In the order in which they came.
        var turns: [Turn] = []
    }

    private let own: NodeID
    private let keeper: CopyKeeper
    private let limits: Limits
    /// Whether the message was taken.
    private let send: @Sendable (CopyMessage, NodeID) -> Bool
    private let now: @Sendable () -> MonotonicTime
    /// Where tasks begin; nil: anywhere.
    private let executor: (any TaskExecutor)?
    private let state: Mutex<State>

    /// - Parameter number: from a random draw. Answers come over other links than questions, so an
    ///   answer to this node's previous process may arrive, and must not match a question of this.
    package init(
        _ keeper: CopyKeeper, as own: NodeID, after number: UInt64, limits: Limits = Limits(),
        now: @escaping @Sendable () -> MonotonicTime, on executor: (any TaskExecutor)? = nil,
        send: @escaping @Sendable (CopyMessage, NodeID) -> Bool
    ) {
        self.keeper = keeper
        self.own = own
        self.limits = limits
        self.now = now
        self.executor = executor
        self.send = send
        self.state = Mutex(State(number: number >> 1))
    }

    // MARK: CopyCarrier

    package func put(
        _ copy: StoredCopy, of group: GroupID, on node: NodeID, deadline: MonotonicTime
    ) async -> CopyAnswer {
        if node == self.own { return await self.keeper.put(copy, of: group) }
        let answer = await self.ask(node, .put, size: copy.bytes.count, deadline) {
            .put(number: $0, group: group, copy: copy)
        }
        guard case .copy(let answer)? = answer else { return .refused(.busy) }
        return answer
    }

    package func fetch(
        _ name: CopyName, of group: GroupID, from node: NodeID, deadline: MonotonicTime
    ) async -> CopyFetch {
        if node == self.own { return await self.keeper.fetch(name, of: group) }
        let answer = await self.ask(node, .fetch, size: 0, deadline) {
            .fetch(number: $0, group: group, name: name)
        }
        guard case .fetched(let fetched)? = answer else { return .silent }
        return fetched
    }

    package func confirm(
        _ body: BodyID, chunkCount: UInt32, of group: GroupID, on node: NodeID,
        deadline: MonotonicTime
    ) async -> CopyAnswer {
        if node == self.own {
            return await self.keeper.confirm(body, chunkCount: chunkCount, of: group)
        }
        let answer = await self.ask(node, .confirm, size: 0, deadline) {
            .confirm(number: $0, group: group, body: body, chunkCount: chunkCount)
        }
        guard case .copy(let answer)? = answer else { return .refused(.busy) }
        return answer
    }

    package func drop(_ body: BodyID, of group: GroupID, on node: NodeID) {
        guard node == self.own else {
            // Unsent, the copies go as orphans do.
            _ = self.send(.drop(group: group, body: body), node)
            return
        }
        let keeper = self.keeper
        Task(executorPreference: self.executor) { await keeper.drop(body, of: group) }
    }

    // MARK: What happens

    /// A message of another node.
    ///
    /// - Parameter settled: called once nothing of the message is in memory here any more. A sender
    ///   may have only so much that is not settled.
    package func receive(
        _ message: CopyMessage, from node: NodeID, settled: @escaping @Sendable () -> Void = {}
    ) {
        switch message {
        case .put(let number, let group, let copy):
            Task(executorPreference: self.executor) {
                self.reply(await self.keeper.put(copy, of: group), number, to: node)
                settled()
            }
        case .confirm(let number, let group, let body, let count):
            Task(executorPreference: self.executor) {
                let answer = await self.keeper.confirm(body, chunkCount: count, of: group)
                self.reply(answer, number, to: node)
                settled()
            }
        case .fetch(let number, let group, let name):
            settled()
            guard self.enterServed(node) else {
                _ = self.send(.refused(number: number, .busy), node)
                return
            }
            Task(executorPreference: self.executor) {
                let answer: CopyMessage =
                    switch await self.keeper.fetch(name, of: group) {
                    case .found(let bytes): .fetched(number: number, bytes: bytes)
                    case .absent: .fetched(number: number, bytes: nil)
                    // The one who asks may try another node, and does not take it for gone.
                    case .silent: .refused(number: number, .failed)
                    }
                if !self.send(answer, node) { _ = self.send(.refused(number: number, .busy), node) }
                self.state.withLock { $0.traffic[node]?.servedCount -= 1 }
            }
        case .stored(let number, let index):
            settled()
            self.resolve(number, by: node) { kind in
                kind == .fetch ? nil : .copy(.stored(at: index))
            }
        case .refused(let number, let refusal):
            settled()
            self.resolve(number, by: node) { kind in
                kind == .fetch ? .fetched(.silent) : .copy(.refused(refusal))
            }
        case .fetched(let number, let bytes):
            settled()
            self.resolve(number, by: node) { kind in
                kind == .fetch ? .fetched(bytes.map { .found($0) } ?? .absent) : nil
            }
        case .drop(let group, let body):
            let keeper = self.keeper
            Task(executorPreference: self.executor) {
                await keeper.drop(body, of: group)
                settled()
            }
        }
    }

    /// The link to a node broke: what it was asked is not answered any more.
    package func lost(_ node: NodeID) {
        self.giveUp { $0.node == node }
        // Those find out by themselves whether there is another link.
        self.endTurns(goingOn: true) { $0.node == node }
    }

    /// Answers what is past its deadline. To be called several times a second.
    package func expire() {
        let now = self.now()
        self.giveUp { $0.deadline <= now }
        self.endTurns(goingOn: false) { $0.deadline <= now }
    }

    /// Answers what is under way, and asks nothing more.
    package func stop() {
        self.state.withLock { $0.isStopped = true }
        self.giveUp { _ in true }
        self.endTurns(goingOn: false) { _ in true }
    }

    /// Calls that wait for their turn.
    package var waitingCount: Int { self.state.withLock { $0.turns.count } }

    /// Questions under way.
    package var pendingCount: Int { self.state.withLock { $0.pending.count } }

    // MARK: Asking

    /// - Returns: nil where as much is under way as may be.
    private func ask(
        _ node: NodeID, _ kind: Kind, size: Int, _ deadline: MonotonicTime,
        _ message: @Sendable (UInt64) -> CopyMessage
    ) async -> Answer? {
        guard let number = await self.enter(node, kind, size, deadline) else { return nil }
        return await withCheckedContinuation { continuation in
            self.state.withLock {
                $0.pending[number] = Pending(
                    node: node, kind: kind, size: size, deadline: deadline, answer: continuation)
            }
            if !self.send(message(number), node) {
                self.giveUp(number)
            }
        }
    }

    /// Waits for its turn.
    private func enter(
        _ node: NodeID, _ kind: Kind, _ size: Int, _ deadline: MonotonicTime
    ) async -> UInt64? {
        while true {
            if let number = self.enter(node, kind, size) { return number }
            let goesOn = await withCheckedContinuation { continuation in
                let isTaken = self.state.withLock { state in
                    guard !state.isStopped, state.turns.count < self.limits.waitingCountMax,
                        // Room may have come since.
                        !Self.hasRoom(for: kind, size, at: node, state, self.limits)
                    else { return false }
                    state.turns.append(
                        Turn(
                            node: node, isPut: kind == .put, deadline: deadline,
                            goesOn: continuation))
                    return true
                }
                if !isTaken {
                    let mayEnter = self.state.withLock {
                        !$0.isStopped
                            && Self.hasRoom(for: kind, size, at: node, $0, self.limits)
                    }
                    continuation.resume(returning: mayEnter)
                }
            }
            guard goesOn else { return nil }
            if self.now() >= deadline {
                self.passTurn(of: node, isPut: kind == .put)
                return nil
            }
        }
    }

    private static func hasRoom(
        for kind: Kind, _ size: Int, at node: NodeID, _ state: State, _ limits: Limits
    ) -> Bool {
        let traffic = state.traffic[node] ?? Traffic()
        return kind == .put
            ? traffic.size + size <= limits.windowSize.raw
            : traffic.fetchCount < limits.fetchCountMax
    }

    private func enter(_ node: NodeID, _ kind: Kind, _ size: Int) -> UInt64? {
        self.state.withLock { state in
            guard !state.isStopped, Self.hasRoom(for: kind, size, at: node, state, self.limits)
            else { return nil }
            if kind == .put {
                state.traffic[node, default: Traffic()].size += size
            } else {
                state.traffic[node, default: Traffic()].fetchCount += 1
            }
            state.number += 1
            return state.number
        }
    }

    /// Something is under way to the node no more: the first that waits for that may try.
    private func passTurn(of node: NodeID, isPut: Bool) {
        let next = self.state.withLock { state -> Turn? in
            let first = state.turns.firstIndex { $0.node == node && $0.isPut == isPut }
            return first.map { state.turns.remove(at: $0) }
        }
        next?.goesOn.resume(returning: true)
    }

    private func endTurns(goingOn: Bool, where isMeant: (Turn) -> Bool) {
        let ended = self.state.withLock { state -> [Turn] in
            let ended = state.turns.filter(isMeant)
            if !ended.isEmpty { state.turns.removeAll(where: isMeant) }
            return ended
        }
        for turn in ended { turn.goesOn.resume(returning: goingOn) }
    }

    private func enterServed(_ node: NodeID) -> Bool {
        self.state.withLock { state in
            var traffic = state.traffic[node] ?? Traffic()
            guard traffic.servedCount < self.limits.servedCountMax else { return false }
            traffic.servedCount += 1
            state.traffic[node] = traffic
            return true
        }
    }

    private func reply(_ answer: CopyAnswer, _ number: UInt64, to node: NodeID) {
        switch answer {
        case .stored(let index): _ = self.send(.stored(number: number, at: index), node)
        case .refused(let refusal): _ = self.send(.refused(number: number, refusal), node)
        case .silent: break
        }
    }

    /// - Parameter answer: nil where the message answers another kind of question.
    private func resolve(
        _ number: UInt64, by node: NodeID, _ answer: (Kind) -> Answer?
    ) {
        let resolved = self.state.withLock { state -> (Pending, Answer)? in
            guard let pending = state.pending[number], pending.node == node,
                let answer = answer(pending.kind)
            else { return nil }
            Self.leave(number, pending, &state)
            return (pending, answer)
        }
        guard let (pending, answer) = resolved else { return }
        pending.answer.resume(returning: answer)
        self.passTurn(of: node, isPut: pending.kind == .put)
    }

    private func giveUp(_ number: UInt64) {
        let pending = self.state.withLock { state -> Pending? in
            guard let pending = state.pending[number] else { return nil }
            Self.leave(number, pending, &state)
            return pending
        }
        guard let pending else { return }
        pending.answer.resume(returning: Self.silence(pending.kind))
        self.passTurn(of: pending.node, isPut: pending.kind == .put)
    }

    private func giveUp(where isHopeless: (Pending) -> Bool) {
        let numbers = self.state.withLock { state in
            state.pending.filter { isHopeless($0.value) }.map(\.key).sorted()
        }
        for number in numbers { self.giveUp(number) }
    }

    private static func silence(_ kind: Kind?) -> Answer {
        kind == .fetch ? .fetched(.silent) : .copy(.silent)
    }

    private static func leave(_ number: UInt64, _ pending: Pending, _ state: inout State) {
        state.pending[number] = nil
        if pending.kind == .put {
            state.traffic[pending.node]?.size -= pending.size
        } else {
            state.traffic[pending.node]?.fetchCount -= 1
        }
    }
}
