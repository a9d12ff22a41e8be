package import StratusModel

/// Reports a trouble with a peer once, and while it goes on how often it came back, once a minute.
/// A refused node tries again every second until somebody fixes the cause.
package struct TroubleFold: Sendable {
    private struct Trouble: Hashable {
        var peer: String
        var what: String
    }

    private struct Telling {
        var at: MonotonicTime
        var unsaidCount = 0
    }

    package static let pause = Duration.seconds(60)
    /// The number of different troubles remembered. Beyond it the one reported longest ago is
    /// forgotten, because strangers that open connections decide how many there are.
    package static let countMax = 64

    private var tellings: [Trouble: Telling] = [:]

    package init() {}

    /// - Parameter peer: without what differs from one connection to the next.
    /// - Returns: what to tell; nil where it was told lately.
    package mutating func tell(_ what: String, of peer: String, at now: MonotonicTime) -> String? {
        let trouble = Trouble(peer: peer, what: what)
        guard var telling = self.tellings[trouble] else {
            if self.tellings.count >= Self.countMax,
                let oldest = self.tellings.min(by: { $0.value.at < $1.value.at })
            {
                self.tellings[oldest.key] = nil
            }
            self.tellings[trouble] = Telling(at: now)
            return what
        }
        guard now - telling.at >= Self.pause else {
            telling.unsaidCount += 1
            self.tellings[trouble] = telling
            return nil
        }
        let count = telling.unsaidCount
        self.tellings[trouble] = Telling(at: now)
        return count == 0 ? what : "\(what) (and \(count) more times since the last such line)"
    }
}
