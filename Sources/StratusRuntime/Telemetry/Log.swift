import Glibc
package import StratusModel
import Synchronization

/// The log of a process: typed lines, written by a thread of its own.
///
/// - Logging never waits for the terminal, the pipe or the disk behind it. A line is put into a
///   bounded buffer under a lock held for the length of an append; formatting and writing happen
///   elsewhere.
/// - If the buffer is full, or the sink refuses bytes, lines are lost and counted, and a later line
///   tells how many.
/// - Lines are written in the order logged. ``flush()`` returns once every line logged before is
///   written.
/// - A line below the level costs one load: its fields are not even made.
package final class Log: Sendable {
    /// What waits, in the order logged.
    private enum Waiting {
        case record(LogRecord)
        /// Lines that their writers have put together, one after the other in ``Buffer/lines``.
        case lines(count: Int, size: Int, level: LogLevel)
    }

    private struct Buffer {
        var waiting: [Waiting] = []
        var lines = Bytes()
        /// How many lines wait.
        var count = 0
        var droppedCount: UInt64 = 0
        /// Lines ever taken into the buffer, and lines ever written out.
        var loggedCount: UInt64 = 0
        var writtenCount: UInt64 = 0
        var isClosing = false
    }

    /// Lines that wait at most; at a few hundred bytes each this is a few megabytes.
    private let capacity: Int
    private let minimum: Atomic<UInt8>
    private let dropped = Atomic<UInt64>(0)
    private let buffer: Mutex<Buffer>
    private let kept = Mutex(LogMemory())
    private let work = Signal()
    private let progress = Signal()
    private let wall: @Sendable () -> Int64
    /// Whether a line is an object of JSON, which a caller may put together itself.
    package let writesJSON: Bool

    /// - Parameters:
    ///   - capacity: lines that may wait before new ones are dropped.
    ///   - wall: milliseconds since 1970, for the stamps.
    ///   - sink: takes lines, on the log's own thread; may block. Returns how many bytes it took.
    package init(
        level: LogLevel, format: LogFormat, capacity: Int = 8_192,
        wall: @escaping @Sendable () -> Int64 = WallTime.now,
        sink: @escaping @Sendable (Bytes) -> Int
    ) {
        precondition(capacity > 0, "a log that keeps nothing drops everything")
        self.capacity = capacity
        self.minimum = Atomic(level.rawValue)
        self.buffer = Mutex(Buffer())
        self.wall = wall
        self.writesJSON = format == .json
        let log = self
        OwnedThread.start(named: "log") { log.run(format: format, sink: sink) }
    }

    /// A log on a file descriptor: for people when it is a terminal, otherwise JSON lines.
    package convenience init(level: LogLevel, descriptor: Int32, format: LogFormat? = nil) {
        let isTerminal = isatty(descriptor) == 1
        let colour = isTerminal && getenv("NO_COLOR") == nil
        self.init(
            level: level, format: format ?? (isTerminal ? .terminal(colour: colour) : .json),
            sink: { LogOutput.write($0, to: descriptor) })
    }

    /// A log that nobody reads: no thread, and every line is below its level.
    package static func silent() -> Log { Log() }

    private init() {
        self.capacity = 0
        self.minimum = Atomic(.max)
        self.buffer = Mutex(Buffer())
        self.wall = { 0 }
        self.writesJSON = false
    }

    /// May change while the process runs.
    package var level: LogLevel {
        get { LogLevel(rawValue: self.minimum.load(ordering: .relaxed)) ?? .info }
        set { self.minimum.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// Lines lost since the start: the buffer was full, or the sink did not take them.
    package var droppedCount: UInt64 { self.dropped.load(ordering: .relaxed) }

    package func debug(_ text: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        self.write(.debug, text, fields)
    }
    package func info(_ text: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        self.write(.info, text, fields)
    }
    package func warning(_ text: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        self.write(.warning, text, fields)
    }
    package func error(_ text: StaticString, _ fields: @autoclosure () -> LogFields = [:]) {
        self.write(.error, text, fields)
    }

    @inline(__always)
    package func write(_ level: LogLevel, _ text: StaticString, _ fields: () -> LogFields) {
        guard level.rawValue >= self.minimum.load(ordering: .relaxed) else { return }
        self.take(
            LogRecord(
                wallMilliseconds: self.wall(), level: level, text: text, fields: fields()))
    }

    /// Whether a line of this level is written.
    package func takes(_ level: LogLevel) -> Bool {
        level.rawValue >= self.minimum.load(ordering: .relaxed)
    }

    /// Takes a whole line of JSON as its writer has put it together, for lines that every request
    /// has: see ``AccessLine``.
    ///
    /// - Parameter write: appends the line, given the time to stamp it with.
    func write(_ level: LogLevel, line write: (Int64, inout Bytes) -> Void) {
        var line = Bytes()
        line.reserveCapacity(640)
        write(self.wall(), &line)
        self.take { buffer in
            buffer.lines.append(contentsOf: line)
            if case .lines(let count, let size, level)? = buffer.waiting.last {
                buffer.waiting[buffer.waiting.count - 1] = .lines(
                    count: count + 1, size: size + line.count, level: level)
            } else {
                buffer.waiting.append(.lines(count: 1, size: line.count, level: level))
            }
        }
    }

    private func take(_ record: LogRecord) { self.take { $0.waiting.append(.record(record)) } }

    private func take(_ append: (inout Buffer) -> Void) {
        let wasEmpty = self.buffer.withLock { buffer in
            guard buffer.count < self.capacity, !buffer.isClosing else {
                buffer.droppedCount += 1
                self.dropped.add(1, ordering: .relaxed)
                return false
            }
            append(&buffer)
            buffer.count += 1
            buffer.loggedCount += 1
            return buffer.count == 1
        }
        if wasEmpty { self.work.raise() }
    }

    /// The last lines that were written. Lines that still wait to be written are not among them.
    package var memory: LogMemory { self.kept.withLock { $0 } }

    /// Waits until the sink has every line logged before this call. For the end of the process and
    /// for tests; never on an event loop.
    package func flush() {
        let target = self.buffer.withLock { $0.loggedCount }
        self.work.raise()
        while self.buffer.withLock({ $0.writtenCount < target }) {
            self.progress.wait(milliseconds: 10)
        }
    }

    /// Writes what waits and ends the thread. Lines logged later are dropped.
    package func close() {
        self.flush()
        self.buffer.withLock { $0.isClosing = true }
        self.work.raise()
    }

    private func run(format: LogFormat, sink: (Bytes) -> Int) {
        var batch: [Waiting] = []
        var lines = Bytes()
        var outgoing = Outgoing()
        // Lines that the sink did not take and that no line has reported yet. The next line that
        // arrives reports them.
        var untold: UInt64 = 0
        while true {
            let (count, dropped, isClosing) = self.buffer.withLock { buffer in
                batch.removeAll(keepingCapacity: true)
                lines.removeAll(keepingCapacity: true)
                swap(&batch, &buffer.waiting)
                swap(&lines, &buffer.lines)
                defer { (buffer.droppedCount, buffer.count) = (0, 0) }
                return (buffer.count, buffer.droppedCount, buffer.isClosing)
            }
            if batch.isEmpty && dropped == 0 {
                if isClosing { return }
                self.work.wait()
                continue
            }
            var at = 0
            for waiting in batch {
                let start = outgoing.bytes.count
                let level: LogLevel
                switch waiting {
                case .record(let record):
                    format.write(record, into: &outgoing.bytes)
                    level = record.level
                case .lines(_, let size, let itsLevel):
                    outgoing.bytes += lines[at..<(at + size)]
                    at += size
                    level = itsLevel
                }
                self.kept.withLock { $0.append(outgoing.bytes[start...], level) }
                if outgoing.bytes.count >= 1 << 16 { untold += self.hand(&outgoing, to: sink) }
            }
            untold += self.hand(&outgoing, to: sink) + dropped
            if untold > 0 {
                format.write(
                    LogRecord(
                        wallMilliseconds: self.wall(), level: .warning, text: "log lines were lost",
                        fields: ["count": .integer(Int64(clamping: untold))]),
                    into: &outgoing.bytes)
                if outgoing.hand(to: sink) == 0 { untold = 0 }
            }
            self.buffer.withLock { $0.writtenCount += UInt64(count) }
            self.progress.raise()
            // Lines logged in the next moments go out together: one wake and one write for all.
            if !isClosing { usleep(2_000) }
        }
    }

    private func hand(_ outgoing: inout Outgoing, to sink: (Bytes) -> Int) -> UInt64 {
        let lost = UInt64(outgoing.hand(to: sink))
        if lost > 0 { self.dropped.add(lost, ordering: .relaxed) }
        return lost
    }

    /// Lines on their way to the sink.
    private struct Outgoing {
        var bytes = Bytes()
        /// The sink took a part of a line last: what follows it begins a new one.
        private var isMidLine = false

        /// Returns how many lines the sink did not take whole.
        mutating func hand(to sink: (Bytes) -> Int) -> Int {
            if self.bytes.isEmpty { return 0 }
            defer { self.bytes.removeAll(keepingCapacity: true) }
            let newline = UInt8(ascii: "\n")
            let start = self.isMidLine ? 1 : 0
            if self.isMidLine { self.bytes.insert(newline, at: 0) }
            let taken = sink(self.bytes)
            if taken > 0 { self.isMidLine = self.bytes[taken - 1] != newline }
            return self.bytes[max(taken, start)...].count { $0 == newline }
        }
    }
}
