package import StratusModel
import Synchronization

/// The place of a shard key's partition, by one version of the placement table.
package struct PlacedPartition: Sendable, Equatable {
    package var group: GroupID
    package var replicas: [NodeID]
    package var epoch: UInt64

    package init(group: GroupID, replicas: [NodeID], epoch: UInt64) {
        self.group = group
        self.replicas = replicas
        self.epoch = epoch
    }
}

/// Takes commands and reads to the leader of their partition: on this node by a call, elsewhere by
/// one message.
///
/// Promises, beside those of ``PartitionRouter``:
/// - `.notExecuted` only if no copy of the command can ever be applied.
/// - A command whose outcome is in doubt is sent again under the same identity until its deadline:
///   the replica that applied it first remembers the outcome. So a leader that dies costs its
///   clients time, not an error.
/// - If no leader is known, a request waits for one for `patience` at most.
/// - A read that may still be running somewhere is not sent again, so it costs its work only once.
///   The router waits for the asked node until the read's deadline, as long as that node sends
///   heartbeats. If the heartbeats stop, the read is `.notExecuted`. It is sent again if it was
///   refused or the link broke.
/// - A command may be too late by its partition's time but not for its sender, because some clock
///   is or was wrong. It is sent again with a later deadline. No copy with the earlier one can be
///   applied any more. Commands that follow it to the same partition get the later deadline at once,
///   until real time has caught up.
package final class ClusterRouter: PartitionRouter {
    package struct Tuning: Sendable {
        /// Changes of address in a row, each by the word of the last one asked.
        package var forwardCountMax = 3
        /// Without an answer from a node for so long, it is taken for lost.
        package var answerPatience: Duration = .seconds(1)
        package var patience: Duration = .seconds(4)
        package var pauseMin: Duration = .milliseconds(10)
        package var pauseMax: Duration = .milliseconds(100)
        /// How often a command may come too late for its partition's time.
        package var lateCountMax = 3
        /// Requests to other nodes that may be under way at once.
        package var pendingCountMax = 8_192
        package init() {}
    }

    private struct Pending {
        let node: NodeID
        /// Nil for what is asked of the node itself.
        let group: GroupID?
        /// When silence is looked into.
        var until: MonotonicTime
        let deadline: MonotonicTime
        let isRead: Bool
        let continuation: CheckedContinuation<Reply, Never>
    }

    /// The result of a request to another node.
    private enum Reply {
        case answer(PeerResponse.Answer)
        /// The link broke: a process that has ended runs nothing.
        case cutOff
        /// Nothing came: it may be running.
        case silence
    }

    private struct State {
        /// The number of the last request. It begins at random, so that an answer to this node's
        /// last process matches none.
        var number: UInt64
        var isSweeping = false
        var pending: [UInt64: Pending] = [:]
        /// The leaders that the last answers named: better than the table's order, but no more than
        /// a guess.
        var leaders: [GroupID: NodeID] = [:]
        var isStopped = false
        /// The times of partitions for which a command came too late, as long as they are ahead of
        /// the own clock. One for each partition at most.
        var latest: [GroupID: Int64] = [:]
        /// Since when, and for how long at most, a request waits although its deadline is later.
        var hurry: (since: MonotonicTime, patience: Duration)?

        /// Real time has passed some of them.
        mutating func forgetLeads(at now: Int64) {
            if self.latest.isEmpty { return }
            self.latest = self.latest.filter { $0.value > now }
        }
    }

    private static let sweepInterval = Duration.milliseconds(200)

    private let replicas: any LocalReplicas
    private let sender: any PeerSender
    private let world: any World
    private let limits: Limits
    private let tuning: Tuning
    package let level: ClusterLevel
    private let place: @Sendable (ShardKey) -> PlacedPartition
    private let placeOfGroup: @Sendable (GroupID) -> PlacedPartition?
    private let sleep: @Sendable (MonotonicTime) async -> Void
    private let bugs: PlantedBugs
    /// The executor for background work; nil for the default one.
    private let executor: (any TaskExecutor)?
    private let state: Mutex<State>

    package init(
        _ replicas: any LocalReplicas, sender: any PeerSender, in world: any World,
        limits: Limits = Limits(), tuning: Tuning = Tuning(), level: ClusterLevel = .build,
        bugs: PlantedBugs = PlantedBugs(), on executor: (any TaskExecutor)? = nil,
        place: @escaping @Sendable (ShardKey) -> PlacedPartition,
        placeOfGroup: @escaping @Sendable (GroupID) -> PlacedPartition?,
        sleep: @escaping @Sendable (MonotonicTime) async -> Void
    ) {
        self.replicas = replicas
        self.sender = sender
        self.world = world
        self.limits = limits
        self.tuning = tuning
        self.level = level
        self.bugs = bugs
        self.place = place
        self.placeOfGroup = placeOfGroup
        self.sleep = sleep
        self.executor = executor
        self.state = Mutex(State(number: world.random() >> 1))
    }

    // MARK: PartitionRouter

    package func group(of key: ShardKey) -> GroupID? { self.place(key).group }

    package func hasPartition(_ group: GroupID) -> Bool {
        group != .system && self.placeOfGroup(group) != nil
    }

    package func submit(
        _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
        mayRunLater: Bool
    ) async throws(RouteError) -> Outcome {
        try await self.submit(
            command, to: try self.place(of: address), deadline: deadline, mayRunLater: mayRunLater)
    }

    package func read(_ query: Query, at address: PartitionAddress, deadline: MonotonicTime)
        async throws(RouteError) -> QueryAnswer
    { try await self.read(query, at: try self.place(of: address), deadline: deadline) }

    private func place(of address: PartitionAddress) throws(RouteError) -> PlacedPartition {
        switch address {
        case .key(let key): return self.place(key)
        case .group(let group):
            guard let place = self.placeOfGroup(group) else {
                throw .refused("there is no partition \(group)")
            }
            return place
        }
    }

    private func submit(
        _ command: Command, to place: PlacedPartition, deadline: MonotonicTime, mayRunLater: Bool
    ) async throws(RouteError) -> Outcome {
        if case .newer = command.reading.asSeen(by: self.level.now),
            !self.bugs.contains(.newKindUngated)
        {
            throw .upgrading
        }
        let begun = self.world.now
        let lifeMax = self.limits.commandDeadlineMax.clampedNanoseconds / 1_000_000
        let life = command.deadlineMilliseconds &- self.world.wallMilliseconds
        guard life &- (mayRunLater ? 0 : self.leadMilliseconds) <= lifeMax else {
            throw .refused("the command's deadline is too far away")
        }
        var command = command
        if mayRunLater, life >= 0 { command.deadlineMilliseconds &+= self.lead(of: place.group) }
        var lateCount = 0
        while true {
            let (answer, wasInDoubt) = try await self.route(
                .command(command), to: place, deadline: deadline)
            guard case .outcome(let outcome) = answer else { throw .outcomeUnknown }
            guard outcome.verdict == .expired else { return outcome }
            // A copy that came too late says nothing about the one before it.
            if wasInDoubt { throw .outcomeUnknown }
            lateCount += 1
            let elapsed = (self.world.now - begun).clampedNanoseconds / 1_000_000
            let left = min(life, lifeMax) - elapsed
            guard let time = outcome.expiredAtMilliseconds,
                !self.bugs.contains(.lateCommandNotRepeated)
            else { return outcome }
            self.state.withLock {
                $0.latest[place.group] = max($0.latest[place.group] ?? time, time)
            }
            guard mayRunLater, left > 0, lateCount < self.tuning.lateCountMax else {
                return outcome
            }
            command.deadlineMilliseconds = time &+ left
        }
    }

    package var leadMilliseconds: Int64 {
        let now = self.world.wallMilliseconds
        return self.state.withLock { state in
            state.forgetLeads(at: now)
            return state.latest.values.reduce(0) { max($0, $1 &- now) }
        }
    }

    package func leadMilliseconds(at key: ShardKey) -> Int64 {
        self.lead(of: self.place(key).group)
    }

    /// What is ahead of one partition says nothing of the others.
    private func lead(of group: GroupID) -> Int64 {
        let now = self.world.wallMilliseconds
        return self.state.withLock { state in
            state.forgetLeads(at: now)
            return state.latest[group].map { $0 &- now } ?? 0
        }
    }

    private func read(_ query: Query, at place: PlacedPartition, deadline: MonotonicTime)
        async throws(RouteError) -> QueryAnswer
    {
        do throws(RouteError) {
            let (answer, _) = try await self.route(.query(query), to: place, deadline: deadline)
            if case .answer(let answer) = answer { return answer }
        } catch {
            // A read changes nothing, whatever became of it.
            guard case .outcomeUnknown = error else { throw error }
        }
        throw .notExecuted(retryAfter: .seconds(1))
    }

    // MARK: The way to the leader

    private func route(
        _ body: PeerRequest.Body, to place: PlacedPartition, deadline: MonotonicTime
    ) async throws(RouteError) -> (PeerResponse.Answer, wasInDoubt: Bool) {
        let start = self.world.now
        let impatientAt = start + self.tuning.patience
        var place = place
        var attempt = Attempt(place, own: self.replicas.node, known: self.leader(of: place.group))
        var isInDoubt = false
        var pause = self.tuning.pauseMin
        while true {
            let deadline = self.end(of: start, deadline)
            guard self.world.now < deadline, !self.state.withLock({ $0.isStopped }) else {
                self.despair()
                throw isInDoubt ? .outcomeUnknown : .notExecuted(retryAfter: .milliseconds(100))
            }
            let reply = await self.ask(body, place, attempt.target, deadline: deadline)
            let answer: PeerResponse.Answer
            switch reply {
            case .answer(let given): answer = given
            case .cutOff: answer = .outcomeUnknown
            case .silence:
                answer = .outcomeUnknown
                if case .query = body {
                    self.forget(attempt.target, leads: place.group)
                    throw .notExecuted(retryAfter: .seconds(1))
                }
            }
            switch answer {
            case .outcome, .answer:
                self.note(attempt.target, leads: place.group)
                return (answer, isInDoubt)
            case .refused(let reason):
                if isInDoubt { throw .outcomeUnknown }
                throw .refused(reason)
            case .notExecuted(let milliseconds):
                // That holds for this copy; an earlier one may still be applied.
                if !isInDoubt { throw .notExecuted(retryAfter: .milliseconds(Int(milliseconds))) }
            case .outcomeUnknown:
                if case .command = body { isInDoubt = true }
                self.forget(attempt.target, leads: place.group)
            case .notLeader(let leader):
                self.forget(attempt.target, leads: place.group)
                if attempt.follow(leader, forwardCountMax: self.tuning.forwardCountMax) { continue }
            }
            if !isInDoubt, self.world.now >= impatientAt {
                throw .notExecuted(retryAfter: .seconds(1))
            }
            await self.sleep(min(self.world.now + pause, deadline))
            pause = min(pause * 2, self.tuning.pauseMax)
            let known = self.leader(of: place.group)
            if let moved = self.placeOfGroup(place.group), moved.replicas != place.replicas {
                // The partition lives elsewhere since: those who left would not know who leads.
                place = moved
                attempt = Attempt(place, own: self.replicas.node, known: known)
            } else {
                attempt.next(known: known)
            }
        }
    }

    private func end(of start: MonotonicTime, _ deadline: MonotonicTime) -> MonotonicTime {
        guard let hurry = self.state.withLock({ $0.hurry }) else { return deadline }
        return min(deadline, max(start, hurry.since) + hurry.patience)
    }

    /// Shortens the patience of all requests once one has waited without an answer, if the router
    /// is in a hurry: a client's request is several of these, one after the other.
    private func despair() {
        self.state.withLock { state in
            guard let patience = state.hurry?.patience else { return }
            state.hurry?.patience = min(patience, Self.patienceWithoutHope)
        }
    }

    private static let patienceWithoutHope = Duration.milliseconds(300)

    /// The next node to ask, while no leader is known.
    private struct Attempt {
        /// The own replica first: it costs nothing to ask, and it knows who leads.
        private let candidates: [NodeID]
        private var position = 0
        private var forwardCount = 0
        private(set) var target: NodeID

        init(_ place: PlacedPartition, own: NodeID, known: NodeID?) {
            var candidates = place.replicas
            if let position = candidates.firstIndex(of: own), position > 0 {
                candidates.remove(at: position)
                candidates.insert(own, at: 0)
            }
            self.candidates = candidates
            self.target = known ?? self.candidates.first ?? own
        }

        /// - Returns: false when the word of the last one leads nowhere.
        mutating func follow(_ leader: NodeID?, forwardCountMax: Int) -> Bool {
            guard let leader, leader != self.target, self.forwardCount < forwardCountMax else {
                return false
            }
            self.forwardCount += 1
            self.target = leader
            return true
        }

        mutating func next(known: NodeID?) {
            self.forwardCount = 0
            if let known, known != self.target {
                self.target = known
                return
            }
            guard !self.candidates.isEmpty else { return }
            self.position += 1
            self.target = self.candidates[self.position % self.candidates.count]
        }
    }

    private func leader(of group: GroupID) -> NodeID? {
        self.replicas.leader(of: group) ?? self.state.withLock { $0.leaders[group] }
    }

    private func note(_ node: NodeID, leads group: GroupID) {
        self.state.withLock { $0.leaders[group] = node }
    }

    private func forget(_ node: NodeID, leads group: GroupID) {
        self.state.withLock { if $0.leaders[group] == node { $0.leaders[group] = nil } }
    }

    /// A question for another node itself, whatever it leads.
    /// - Returns: nil when it did not answer in time.
    package func ask(_ question: NodeQuestion, of node: NodeID, within patience: Duration) async
        -> NodeReply?
    {
        guard self.level.allows(question.level) else { return nil }
        let place = PlacedPartition(group: .system, replicas: [node], epoch: 0)
        let reply = await self.ask(
            .node(question.encoded()), place, node, deadline: self.world.now + patience)
        guard case .answer(.answer(let answer)) = reply else { return nil }
        return try? NodeReply(decoding: answer.body)
    }

    private func ask(
        _ body: PeerRequest.Body, _ place: PlacedPartition, _ node: NodeID,
        deadline: MonotonicTime
    ) async -> Reply {
        if node == self.replicas.node {
            return .answer(await self.replicas.ask(body, of: place.group, deadline: deadline))
        }
        let now = self.world.now
        let until = min(deadline, now + self.tuning.answerPatience)
        var group: GroupID? = place.group
        var isRead = false
        // A read may take its node as long as its asker waits.
        var end = until
        switch body {
        case .node: group = nil
        case .query: (isRead, end) = (true, deadline)
        case .command: break
        }
        let remaining = max(0, (end - now).clampedNanoseconds / 1_000_000)
        return await withCheckedContinuation { [group, isRead] continuation in
            let (number, mustSweep) = self.state.withLock { state -> (UInt64?, Bool) in
                guard !state.isStopped, state.pending.count < self.tuning.pendingCountMax else {
                    return (nil, false)
                }
                state.number += 1
                state.pending[state.number] = Pending(
                    node: node, group: group, until: until, deadline: deadline, isRead: isRead,
                    continuation: continuation)
                defer { state.isSweeping = true }
                return (state.number, !state.isSweeping)
            }
            if mustSweep {
                Task(executorPreference: self.executor) { [weak self] in await self?.sweep() }
            }
            guard let number else {
                return continuation.resume(
                    returning: .answer(.notExecuted(retryAfterMilliseconds: 1_000)))
            }
            let request = PeerRequest(
                number: number, group: place.group, epoch: place.epoch,
                remainingMilliseconds: UInt32(clamping: remaining), body: body)
            if !self.sender.send(.request(request), to: node) {
                // Certainly not sent: as good as a node that does not lead.
                let pending = self.state.withLock { $0.pending.removeValue(forKey: number) }
                pending?.continuation.resume(returning: .answer(.notLeader(nil)))
            }
        }
    }

    /// While requests are under way: gives up those that nobody answers in time.
    private func sweep() async {
        while true {
            await self.sleep(self.world.now + Self.sweepInterval)
            let now = self.world.now
            let (late, goesOn) = self.state.withLock { state -> ([Pending], Bool) in
                var numbers = state.pending.filter { $0.value.until < now }.keys.sorted()
                numbers.removeAll { number in
                    guard let pending = state.pending[number], pending.isRead,
                        pending.deadline > now, self.replicas.hears(pending.node)
                    else { return false }
                    state.pending[number]?.until = min(
                        pending.deadline, now + self.tuning.answerPatience)
                    return true
                }
                let late = numbers.compactMap { state.pending.removeValue(forKey: $0) }
                state.isSweeping = !state.pending.isEmpty
                return (late, state.isSweeping)
            }
            for pending in late { pending.continuation.resume(returning: .silence) }
            if !goesOn { return }
        }
    }

    // MARK: News of the links

    package func receive(_ response: PeerResponse, from node: NodeID) {
        let pending = self.state.withLock { state -> Pending? in
            guard state.pending[response.number]?.node == node else { return nil }
            return state.pending.removeValue(forKey: response.number)
        }
        pending?.continuation.resume(returning: .answer(response.answer))
    }

    /// A link to or from the node broke, or its own has just come: what was asked may be lost, and
    /// so may the answer.
    package func lost(_ node: NodeID) { self.giveUp(as: .cutOff) { $0.node == node } }

    /// Notes a group's leader. The node asked before no longer leads and may never answer: a node
    /// that hangs, or that nobody hears, keeps its links.
    package func leads(_ leader: NodeID, _ group: GroupID) {
        // A read has its one attempt there: who is heard answers it, or says that it leads no more.
        self.giveUp(as: .silence) { pending in
            pending.group == group && pending.node != leader
                && !(pending.isRead && self.replicas.hears(pending.node))
        }
    }

    private func giveUp(as reply: Reply, where isHopeless: (Pending) -> Bool) {
        let hopeless = self.state.withLock { state -> [Pending] in
            let numbers = state.pending.filter { isHopeless($0.value) }.keys.sorted()
            return numbers.compactMap { state.pending.removeValue(forKey: $0) }
        }
        for pending in hopeless { pending.continuation.resume(returning: reply) }
    }

    /// Limits the wait of every request here to `patience`, including those that wait already: the
    /// node is about to stop, and its peers may be as well. Requests to this node's own replicas
    /// are answered by the deadline they were given.
    package func hurry(within patience: Duration) {
        self.state.withLock { $0.hurry = (self.world.now, patience) }
    }

    package func stop() {
        let all = self.state.withLock { state -> [Pending] in
            state.isStopped = true
            defer { state.pending = [:] }
            return state.pending.keys.sorted().compactMap { state.pending[$0] }
        }
        for pending in all { pending.continuation.resume(returning: .silence) }
    }
}
