package import StratusModel
package import StratusStorage
import Synchronization

/// Routes everything to one ``StratusStorage/LocalReplica`` of this process.
///
/// Commands wait in a bounded queue; whatever waits when the replica is free shares one commit. The
/// replica is touched only on `executor`, which may block: a thread of its own in a node, the
/// deterministic executor in a simulation.
package actor LocalRouter<State: ReplicatedState>: PartitionRouter {
    private struct Waiting {
        let command: Command
        let deadline: MonotonicTime
        let size: Int
        let continuation: CheckedContinuation<Result<Outcome, RouteError>, Never>
    }

    private struct Queue {
        var waiting: [Waiting] = []
        var size = 0
        var isDraining = false
        /// How long the last batch took: what a refused client is told to wait, at least.
        var lastBatch = Duration.milliseconds(10)
        var isStopped = false
    }

    private let replica: LocalReplica<State>
    private let world: any World
    private let limits: Limits
    private let executor: any SerialExecutor & TaskExecutor
    private let queue = Mutex(Queue())

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        self.executor.asUnownedSerialExecutor()
    }

    package init(
        _ replica: sending LocalReplica<State>, in world: any World, limits: Limits = Limits(),
        on executor: any SerialExecutor & TaskExecutor
    ) {
        self.replica = replica
        self.world = world
        self.limits = limits
        self.executor = executor
    }

    package nonisolated func submit(
        _ command: Command, to key: ShardKey, deadline: MonotonicTime
    ) async throws(RouteError) -> Outcome {
        let latest = self.world.wallMilliseconds + self.limits.commandDeadlineMax.milliseconds
        guard command.deadlineMilliseconds <= latest else {
            throw .refused("the command's deadline is too far away")
        }
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Outcome, RouteError>, Never>) in
            let waiting = Waiting(
                command: command, deadline: deadline, size: command.body.count + 256,
                continuation: continuation)
            let (refusal, mustDrain) = self.queue.withLock { queue -> (RouteError?, Bool) in
                guard !queue.isStopped else {
                    return (.notExecuted(retryAfter: .seconds(1)), false)
                }
                guard queue.waiting.count < self.limits.pendingCommandCountMax,
                    queue.size + waiting.size <= self.limits.pendingCommandSizeMax.raw
                else {
                    let batches = queue.waiting.count / self.limits.batchCommandCountMax + 1
                    return (.notExecuted(retryAfter: queue.lastBatch * batches), false)
                }
                queue.waiting.append(waiting)
                queue.size += waiting.size
                defer { queue.isDraining = true }
                return (nil, !queue.isDraining)
            }
            if let refusal { continuation.resume(returning: .failure(refusal)) }
            if mustDrain { Task(executorPreference: self.executor) { await self.drain() } }
        }
        return try result.get()
    }

    package func read(_ query: Query, at key: ShardKey, deadline: MonotonicTime)
        async throws(RouteError) -> QueryAnswer
    {
        guard self.world.now <= deadline else { throw .notExecuted(retryAfter: .seconds(1)) }
        do throws(StoreError) { return try self.replica.answer(query) } catch {
            throw .notExecuted(retryAfter: .seconds(1))
        }
    }

    /// Why nothing can be written any more, if so: a sync failed. What `/readyz` answers.
    package var fault: StoreError? { self.replica.fault }

    /// The last command that reads see.
    package var applied: LogIndex { self.replica.applied }

    /// Refuses what comes from now on, carries out what waits, and leaves a database without a WAL to
    /// recover.
    package func stop() {
        self.queue.withLock { $0.isStopped = true }
        while !self.drain() {}
        self.replica.checkpoint()
    }

    /// Carries out one batch. Returns whether that was all.
    ///
    /// One batch and no more: reads wait for the same executor, and a steady stream of commands must not
    /// starve them.
    @discardableResult
    private func drain() -> Bool {
        let (batch, isLast) = self.queue.withLock { queue -> ([Waiting], Bool) in
            let batch = Array(queue.waiting.prefix(self.limits.batchCommandCountMax))
            queue.waiting.removeFirst(batch.count)
            queue.size -= batch.reduce(0) { $0 + $1.size }
            return (batch, batch.isEmpty)
        }
        self.carryOut(batch)
        let mustGoOn = self.queue.withLock { queue in
            queue.isDraining = !queue.waiting.isEmpty
            return queue.isDraining
        }
        if mustGoOn { Task(executorPreference: self.executor) { await self.drain() } }
        return isLast
    }

    private func carryOut(_ batch: [Waiting]) {
        let start = self.world.now
        let inTime = batch.filter { $0.deadline >= start }
        for late in batch where late.deadline < start {
            late.continuation.resume(
                returning: .failure(.notExecuted(retryAfter: .milliseconds(100))))
        }
        if inTime.isEmpty { return }
        let results = self.replica.apply(inTime.map(\.command))
        let took = self.world.now - start
        self.queue.withLock { $0.lastBatch = max(took, .milliseconds(1)) }
        for (waiting, result) in zip(inTime, results) {
            let answer = result.mapError { failure -> RouteError in
                switch failure {
                case .notExecuted: .notExecuted(retryAfter: .seconds(1))
                case .outcomeUnknown: .outcomeUnknown
                }
            }
            waiting.continuation.resume(returning: answer)
        }
    }
}

extension Duration {
    fileprivate var milliseconds: Int64 { self.clampedNanoseconds / 1_000_000 }
}
