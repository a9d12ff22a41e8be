import CShims
import Glibc

/// A thread of its own for work that may block longer than a millisecond: syncs, checkpoints, long
/// scans, name lookups.
///
/// An actor whose `unownedExecutor` is a worker runs there and may call the disk; a task whose
/// preference it is runs its nonisolated code there. Jobs run one at a time in the order submitted.
///
/// A worker lives until ``stop()``. Work submitted before that runs; work submitted later never
/// does. So stop a worker only when nothing will use it again.
package final class WorkerThread: SerialExecutor, TaskExecutor, WakeableThread {
    package let name: String
    private let yields: Bool
    private let times: PieceTimes?
    private let isBulk: Bool
    private let inbox = Inbox()
    private let signal = WakeSignal(blocking: true)
    private let stopping = Flag()
    private let identity = ThreadIdentity()

    /// - Parameters:
    ///   - yields: for long computations that nobody's save waits for. When the processors are
    ///     busy, other threads of the process run first.
    ///   - isBulk: no request waits for this thread; nil: as it yields. For `times` alone.
    package init(
        name: String, yields: Bool = false, isBulk: Bool? = nil,
        times: PieceTimes? = .ofProcess
    ) {
        self.name = name
        self.yields = yields
        self.isBulk = isBulk ?? yields
        self.times = times
        OwnedThread.start(named: name) { [self] in self.run() }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        if self.inbox.submit(.job(UnownedJob(job))) { HeldWakes.wake(self) }
    }

    /// Runs `block` on the worker, without a task around it.
    package func submit(_ block: @escaping @Sendable () -> Void) {
        if self.inbox.submit(.block(block)) { HeldWakes.wake(self) }
    }

    /// Runs `body` on the worker and answers with its result.
    package func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            self.submit { continuation.resume(returning: body()) }
        }
    }

    package var isCurrent: Bool { self.identity.isCurrent }

    package func isIsolatingCurrentContext() -> Bool? { self.isCurrent }
    package func checkIsolated() {
        precondition(self.isCurrent, "not on the worker thread \(self.name)")
    }
    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }
    package func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        UnownedTaskExecutor(ordinary: self)
    }

    /// Ends the thread once everything submitted has run.
    package func stop() {
        guard !self.stopping.raise() else { return }
        self.signal.raise()
    }

    func rouse() { self.signal.raise() }

    private func run() {
        self.identity.claim()
        // Without the right to do so it runs like the others.
        if self.yields { _ = stratus_lower_this_thread(10) }
        let pieces = self.times?.join(self.name, isBulk: self.isBulk)
        defer { self.times?.leave() }
        var queue: [Inbox.Work] = []
        while true {
            self.inbox.take(into: &queue)
            for work in queue {
                switch work {
                case .job(let job):
                    pieces?.begin(job)
                    job.runSynchronously(
                        isolatedTo: self.asUnownedSerialExecutor(),
                        taskExecutor: self.asUnownedTaskExecutor())
                case .block(let block):
                    pieces?.begin("a block")
                    block()
                }
                pieces?.end()
            }
            let wasEmpty = queue.isEmpty
            queue.removeAll(keepingCapacity: true)
            guard wasEmpty else { continue }
            if self.stopping.isRaised {
                if self.inbox.close() { return }
                continue
            }
            if self.inbox.park() { self.signal.lower() }
        }
    }
}
