import CSpawn
import Glibc

/// A pipe that no child inherits unless it is told to. Who has it closes its ends.
struct PipeEnds {
    let reading: Int32
    let writing: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        let result = spawn_pipe(&ends)
        guard result == 0 else {
            throw ChildProcess.Failure("no pipe: \(String(cString: strerror(result)))")
        }
        self.reading = ends[0]
        self.writing = ends[1]
    }

    func close() {
        Glibc.close(self.reading)
        Glibc.close(self.writing)
    }
}
