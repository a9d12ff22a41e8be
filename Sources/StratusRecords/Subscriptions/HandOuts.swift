import StratusModel

/// Which notification a leader has given to which poll of a token.
///
/// A poll that follows another one at another node may ask before the other's answer is settled. It
/// waits for that, so the same notification is not told twice. It proves nothing, though: the
/// answer may be lost. So it waits for a while only, and what was not settled is told again.
///
/// This is a memory of one leader and no part of what is replicated: without it a notification is
/// told twice under one `nid`.
struct HandOuts: Sendable {
    /// How many are remembered. The oldest are forgotten.
    static let countMax = 10_000
    /// How long one counts.
    static let life = Duration.seconds(5)

    struct HandOut: Sendable {
        var poll: UInt64
        /// Where the follower stood. Once it has moved, the notification is settled.
        var from: NewsPosition
        var to: NewsPosition
        fileprivate var at: MonotonicTime
    }

    private let countMax: Int
    private var known: [Bytes: HandOut] = [:]
    /// In the order of their times. Some are of hand-outs that were replaced.
    private var order: [(follower: Bytes, at: MonotonicTime)] = []
    /// Those before this one are done with.
    private var first = 0

    init(countMax: Int = Self.countMax) { self.countMax = countMax }

    var count: Int { self.known.count }

    /// What was given to another poll and may arrive yet. Nil: nothing.
    ///
    /// - Parameter follower: the key of its row.
    func pending(
        _ follower: Bytes, at position: NewsPosition, besides poll: UInt64, now: MonotonicTime
    ) -> HandOut? {
        guard let given = self.known[follower], given.poll != poll, given.from == position,
            now < given.at + Self.life
        else { return nil }
        return given
    }

    mutating func give(
        _ follower: Bytes, from: NewsPosition, to: NewsPosition, to poll: UInt64,
        at now: MonotonicTime
    ) {
        while self.first < self.order.count {
            let oldest = self.order[self.first]
            let isOver = now >= oldest.at + Self.life
            guard isOver || self.order.count - self.first >= self.countMax else { break }
            if self.known[oldest.follower]?.at == oldest.at { self.known[oldest.follower] = nil }
            self.first += 1
        }
        if self.first > self.countMax {
            self.order.removeFirst(self.first)
            self.first = 0
        }
        self.known[follower] = HandOut(poll: poll, from: from, to: to, at: now)
        self.order.append((follower, now))
    }
}
