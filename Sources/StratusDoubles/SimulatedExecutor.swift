package import StratusModel
import Synchronization

/// Runs every task and actor that stands on it in one thread, in an order drawn from a seed.
///
/// The same seed and the same tasks give the same order, always. Start tasks with
/// `Task(executorPreference:)`, give actors this executor, then call ``run()``.
///
/// An optimised build leaves out most of the steps by which a task passes from one isolation to
/// another. So a task that is enqueued by itself goes on at once and without a draw: an order is
/// drawn only where a task has waited, which is the same in every build.
package final class SimulatedExecutor: TaskExecutor, SerialExecutor {
    private struct Sleeper {
        let time: MonotonicTime
        let order: UInt64
        let continuation: CheckedContinuation<Void, Never>
    }
    private struct State {
        var ready: [UnownedJob] = []
        /// What runs now, and whether it has enqueued itself.
        var running: (job: UnownedJob, isAgain: Bool)?
        var sleepers: [Sleeper] = []
        var sleepCount: UInt64 = 0
        var random: SeededGenerator
    }

    private let world: SimulatedWorld
    private let state: Mutex<State>

    package init(world: SimulatedWorld, seed: UInt64) {
        self.world = world
        self.state = Mutex(State(random: SeededGenerator(seed: seed)))
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        self.state.withLock { state in
            if let running = state.running?.job, Self.isSame(running, job) {
                state.running?.isAgain = true
            } else {
                state.ready.append(job)
            }
        }
    }

    /// Whether both are the same task, of which one is alive.
    private static func isSame(_ one: UnownedJob, _ other: UnownedJob) -> Bool {
        unsafeBitCast(one, to: UInt.self) == unsafeBitCast(other, to: UInt.self)
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor {
        UnownedTaskExecutor(ordinary: self)
    }

    /// Suspends until the world's clock, which ``run()`` moves, has come so far.
    package func sleep(for duration: Duration) async {
        let time = self.world.now + duration
        await withCheckedContinuation { continuation in
            self.state.withLock {
                $0.sleepCount += 1
                $0.sleepers.append(
                    Sleeper(time: time, order: $0.sleepCount, continuation: continuation))
            }
        }
    }

    /// Whether nothing is ready to run.
    package var isIdle: Bool { self.state.withLock { $0.ready.isEmpty } }

    /// Runs until nothing is ready and nobody sleeps.
    ///
    /// - Parameter limit: or until all that is left would happen later than this.
    package func run(until limit: MonotonicTime? = nil) {
        while true {
            let job = self.state.withLock { state -> UnownedJob? in
                guard !state.ready.isEmpty else { return nil }
                let position = Int(state.random.next() % UInt64(state.ready.count))
                return state.ready.remove(at: position)
            }
            if let job {
                self.run(job)
                continue
            }
            let next = self.state.withLock { state -> Sleeper? in
                let first = state.sleepers.indices.min { one, other in
                    (state.sleepers[one].time, state.sleepers[one].order)
                        < (state.sleepers[other].time, state.sleepers[other].order)
                }
                if let first, let limit, state.sleepers[first].time > limit { return nil }
                return first.map { state.sleepers.remove(at: $0) }
            }
            guard let next else { return }
            self.world.advance(to: next.time)
            next.continuation.resume()
        }
    }

    /// Runs a task until it waits or ends.
    private func run(_ job: UnownedJob) {
        repeat {
            self.state.withLock { $0.running = (job, false) }
            job.runSynchronously(
                isolatedTo: self.asUnownedSerialExecutor(),
                taskExecutor: self.asUnownedTaskExecutor())
        } while self.state.withLock { state in
            defer { state.running = nil }
            return state.running?.isAgain == true
        }
    }
}
