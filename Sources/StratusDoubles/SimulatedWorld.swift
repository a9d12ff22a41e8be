package import StratusModel
package import StratusSealing
import Synchronization

/// The outside world of one simulated node: a clock that moves when told, random draws from a seed,
/// a disk in memory.
package final class SimulatedWorld: World {
    private struct State {
        var now = MonotonicTime(nanoseconds: 0)
        var wallOffset: Int64
        var random: SeededGenerator
        var masters: FileMasters?
        /// The sealed files of one life of the disk: a process that ended leaves handles behind.
        var sealed: (life: Int, files: SealedFiles)?
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
    package var files: any Files {
        self.state.withLock { state -> any Files in
            guard let masters = state.masters else { return self.disk }
            let life = self.disk.life
            if let sealed = state.sealed, sealed.life == life { return sealed.files }
            let random = Mutex(SeededGenerator(seed: UInt64(life) ^ 0x5365_616C))
            let files = SealedFiles(self.disk, masters: masters) {
                random.withLock { $0.next() }
            }
            state.sealed = (life, files)
            return files
        }
    }
    /// Seals every file from now on; to be called before there is one.
    package func seal(under masters: FileMasters) {
        self.disk.failWholeSectors()
        self.state.withLock { $0.masters = masters }
    }
    /// The disk, with the handles a test turns. A node's own code uses ``files``.
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
