import CSpawn
import Glibc

/// A pipe that no child inherits unless it is told to. Ends that are still open go with the last reference.
///
/// Used by one thread at a time: first by the one that spawns, then by the watcher.
final class PipeEnds: @unchecked Sendable {
    // Sendable because it is handed over once, to the thread that watches the child.
    private(set) var reading: Int32
    private(set) var writing: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        let result = spawn_pipe(&ends)
        guard result == 0 else {
            throw ChildProcess.Failure("no pipe: \(String(cString: strerror(result)))")
        }
        self.reading = ends[0]
        self.writing = ends[1]
    }

    deinit {
        self.closeReading()
        self.closeWriting()
    }

    func closeReading() {
        if self.reading >= 0 { close(self.reading) }
        self.reading = -1
    }

    func closeWriting() {
        if self.writing >= 0 { close(self.writing) }
        self.writing = -1
    }
}
