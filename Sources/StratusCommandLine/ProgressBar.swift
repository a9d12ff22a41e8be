/// Decides what a person sees of a long operation. It is pure: the shell passes the time in and
/// writes the text that comes out.
///
/// On a terminal it shows nothing for the first second, so that quick operations stay quiet; then
/// one line that rewrites itself, at most ten times a second. At the end the line is cleared.
/// Without a terminal it is one whole line each ten seconds, for the log of a script.
package struct ProgressBar: Sendable {
    private static let lineMilliseconds: Int64 = 10_000

    private let title: String
    private let isTerminal: Bool
    private let width: Int
    private var lastMilliseconds: Int64 = 0
    private var isShown = false

    package init(_ title: String, isTerminal: Bool, width: Int = 80) {
        self.title = title
        self.isTerminal = isTerminal
        self.width = width
    }

    /// - Parameters:
    ///   - total: nil where nobody knows; the bar then shows what is done so far.
    ///   - elapsed: since the work began.
    /// - Returns: what to write now; nil for nothing.
    package mutating func update(
        done: Int, total: Int?, unit: String, elapsed: Duration
    ) -> String? {
        let parts = elapsed.components
        let milliseconds = parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000
        guard self.isTerminal else {
            guard milliseconds - self.lastMilliseconds >= Self.lineMilliseconds else { return nil }
            self.lastMilliseconds = milliseconds
            let counts = total.map { "\(done) of \($0)" } ?? "\(done)"
            return "\(self.title): \(counts) \(unit), after \(milliseconds / 1_000) s\n"
        }
        guard milliseconds >= 1_000, !self.isShown || milliseconds - self.lastMilliseconds >= 100
        else { return nil }
        self.lastMilliseconds = milliseconds
        self.isShown = true
        var line = self.title + " "
        if let total, total > 0 {
            let held = min(max(done, 0), total)
            let percent = "\(Int(Double(held) / Double(total) * 100))%"
            let counts =
                " \(percent) \(held)/\(total) \(unit)" + Self.left(held, total, milliseconds)
            let room = min(30, max(0, self.width - line.count - counts.count - 3))
            let filled = Int(Double(room) * Double(held) / Double(total))
            line += "[" + String(repeating: "#", count: filled)
            line += String(repeating: "-", count: room - filled) + "]" + counts
        } else {
            line += "\(done) \(unit), \(milliseconds / 1_000) s"
        }
        return "\r" + line.prefix(max(1, self.width - 1)) + "\u{1B}[K"
    }

    /// Clears the line, if there is one.
    package mutating func finish() -> String? {
        defer { self.isShown = false }
        return self.isShown ? "\r\u{1B}[K" : nil
    }

    private static func left(_ done: Int, _ total: Int, _ milliseconds: Int64) -> String {
        guard done > 0, done < total else { return "" }
        let left = Double(milliseconds) * Double(total - done) / Double(done) / 1_000
        return left < 359_999 ? ", \(Int(left.rounded(.up))) s left" : ""
    }
}
