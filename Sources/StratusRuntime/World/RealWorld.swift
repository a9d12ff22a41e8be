package import StratusModel

/// The real world outside: the machine's clocks, the kernel's random numbers, a directory on disk.
package final class RealWorld: World {
    package let files: any Files
    private let source = RealRandom()

    /// The data directory is made when it is absent.
    package init(dataDirectory: String) throws(DiskError) {
        self.files = try RealFiles(directory: dataDirectory)
    }

    /// - Parameter files: of a data directory, or what stands on them.
    package init(files: any Files) { self.files = files }

    package var now: MonotonicTime { RealClock.now }
    package var wallMilliseconds: Int64 { RealClock.wallMilliseconds }
    package func random() -> UInt64 { self.source.next() }
}
