package import StratusModel

/// The last lines of a log, kept in memory for whoever looks into a problem: the newest of all
/// lines, and the newest warnings and errors, which many lines of requests do not push out.
package struct LogMemory: Sendable {
    /// A text of whole lines that keeps its newest part.
    package struct Tail: Sendable {
        private let sizeMax: Int
        private var bytes = Bytes()

        package init(sizeMax: Int) { self.sizeMax = sizeMax }

        /// - Parameter lines: whole lines. Up to twice the bound is held, so that cutting is rare.
        package mutating func append(_ lines: some Collection<UInt8>) {
            self.bytes += lines
            if self.bytes.count > 2 * self.sizeMax { self.bytes = self.newest }
        }

        /// The newest whole lines that fit.
        package var newest: Bytes {
            guard self.bytes.count > self.sizeMax else { return self.bytes }
            let newline = UInt8(ascii: "\n")
            // One byte more shows whether the cut is at the beginning of a line.
            let rest = self.bytes.suffix(self.sizeMax + 1)
            guard let end = rest.firstIndex(of: newline) else { return [] }
            return Bytes(rest[(end + 1)...])
        }
    }

    private static let sizeMax = 256 << 10
    private static let graveSizeMax = 64 << 10

    private var lines = Tail(sizeMax: LogMemory.sizeMax)
    private var graveLines = Tail(sizeMax: LogMemory.graveSizeMax)

    package init() {}

    package mutating func append(_ line: some Collection<UInt8>, _ level: LogLevel) {
        self.lines.append(line)
        if level >= .warning { self.graveLines.append(line) }
    }

    /// The newest lines of any level, 256 KiB at most.
    package var newest: Bytes { self.lines.newest }
    /// The newest warnings and errors, 64 KiB at most.
    package var newestGrave: Bytes { self.graveLines.newest }
}
