package import StratusModel
import Synchronization

/// The outside world of one simulated node: a clock that moves when told, random draws from a seed,
/// a disk in memory.
package final class SimulatedWorld: World {
    private struct State {
        var now = MonotonicTime(nanoseconds: 0)
        var wallOffset: Int64
        var random: SeededGenerator
    }

    private let state: Mutex<State>
    private let disk: SimulatedFiles

    /// - Parameter wallMilliseconds: what the wall shows at monotonic time zero.
    package init(seed: UInt64, wallMilliseconds: Int64 = 1_700_000_000_000) {
        var random = SeededGenerator(seed: seed)
        self.disk = SimulatedFiles(seed: random.next())
        self.state = Mutex(State(wallOffset: wallMilliseconds, random: random))
    }

    package var now: MonotonicTime { self.state.withLock { $0.now } }
    package var wallMilliseconds: Int64 {
        self.state.withLock { $0.wallOffset + $0.now.nanoseconds / 1_000_000 }
    }
    package func random() -> UInt64 { self.state.withLock { $0.random.next() } }
    package var files: any Files { self.disk }
    /// The same disk, with the handles a test turns.
    package var simulatedFiles: SimulatedFiles { self.disk }

    package func advance(by duration: Duration) {
        self.state.withLock { $0.now = $0.now + duration }
    }
    /// Moves to `time`, unless it is past already.
    package func advance(to time: MonotonicTime) {
        self.state.withLock { $0.now = max($0.now, time) }
    }
    /// The wall clock is set, forwards or back; the monotonic one does not notice.
    package func jumpWall(milliseconds: Int64) {
        self.state.withLock { $0.wallOffset += milliseconds }
    }
}
