import StratusModel

/// One turn of work: so many pieces, and none begun after so long. The first always is.
struct WorkTurn {
    private var left: Int
    private let timeMax: Duration
    private let clock: (() -> MonotonicTime)?
    private var end: MonotonicTime?

    /// - Parameter clock: nil: pieces are counted only.
    init(countMax: Int, timeMax: Duration, clock: (() -> MonotonicTime)?) {
        self.left = max(1, countMax)
        self.timeMax = timeMax
        self.clock = clock
    }

    /// - Returns: whether another piece may begin, which is then counted.
    mutating func begins() -> Bool {
        guard self.left > 0 else { return false }
        if let clock {
            let now = clock()
            if let end, now >= end { return false }
            self.end = self.end ?? now + self.timeMax
        }
        self.left -= 1
        return true
    }
}
