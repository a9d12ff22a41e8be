package import StratusModel
import Synchronization

/// Runs every task and actor that stands on it in one thread, in an order drawn from a seed.
///
/// The same seed and the same tasks give the same order, always. Start tasks with
/// `Task(executorPreference:)`, give actors this executor, then call ``run()``.
package final class SimulatedExecutor: TaskExecutor, SerialExecutor {
    private struct Sleeper {
        let time: MonotonicTime
        let order: UInt64
        let continuation: CheckedContinuation<Void, Never>
    }
    private struct State {
        var ready: [UnownedJob] = []
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
        self.state.withLock { $0.ready.append(job) }
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
                job.runSynchronously(
                    isolatedTo: self.asUnownedSerialExecutor(),
                    taskExecutor: self.asUnownedTaskExecutor())
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
}
