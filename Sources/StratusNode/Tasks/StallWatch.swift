import StratusModel

/// Tells when a thread has been busy with one thing for too long, and when that is over: each once.
struct StallWatch {
    /// The present work of a thread.
    struct Busy {
        var thread: String
        var since: MonotonicTime
        /// Asked only where there is something to tell.
        var what: () -> String
    }

    struct Stall: Equatable {
        var thread: String
        var since: MonotonicTime
        var what: String
    }

    enum News: Equatable {
        case began(Stall)
        case ended(Stall)
    }

    /// Nothing that a node does at once takes so long.
    static let patience = Duration.seconds(2)

    /// In the order in which they were noticed.
    private(set) var stalls: [Stall] = []
    private(set) var count = 0

    mutating func look(_ busy: [Busy], at now: MonotonicTime) -> [News] {
        var news: [News] = []
        self.stalls.removeAll { stall in
            if busy.contains(where: { $0.thread == stall.thread && $0.since == stall.since }) {
                return false
            }
            news.append(.ended(stall))
            return true
        }
        for work in busy where now - work.since >= Self.patience {
            if self.stalls.contains(where: { $0.thread == work.thread }) { continue }
            let stall = Stall(thread: work.thread, since: work.since, what: work.what())
            self.stalls.append(stall)
            self.count += 1
            news.append(.began(stall))
        }
        return news
    }

    /// The text for `/readyz` and `doctor`; nil: nothing is stuck.
    func text(at now: MonotonicTime) -> String? {
        if self.stalls.isEmpty { return nil }
        return self.stalls.map { stall in
            let seconds = (now - stall.since).clampedNanoseconds / 1_000_000_000
            return "the thread '\(stall.thread)' has been busy for \(seconds) s with \(stall.what)"
        }.joined(separator: "; ")
    }
}
