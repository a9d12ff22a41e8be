package import StratusModel

/// Decides when one connection has taken too long, and with what.
///
/// Facts go in through ``handle(_:at:)``; ``wake`` says when to ask ``expiry(at:)`` next. A slow
/// body counts against the client only while we read it, and slow reading only while there is
/// something to read: our own back-pressure is not the client's fault.
package struct ConnectionDeadlines: Sendable, Equatable {
    package enum Event: Sendable, Equatable {
        /// The first byte of a request.
        case headBegan
        /// The head is complete. `total`: from the head's first byte; nil for the usual one.
        case headEnded(total: Duration?)
        case bodyReceived(ByteCount)
        /// We stop reading, for want of room or because nobody asks for the body.
        case readingPaused
        case readingResumed
        case bodyEnded
        /// There is something to send that the socket did not take.
        case sendingBlocked
        case sent(ByteCount)
        /// Everything handed over was taken.
        case sendingDrained
        /// The answer is complete and sent; the connection waits for a next request.
        case requestEnded
    }

    package enum Expiry: Sendable, Equatable {
        /// Nothing was asked: close without a word.
        case idle
        /// Answer 408, then close.
        case headersTooSlow
        /// Answer 408 if no answer has begun, then close.
        case bodyTooSlow
        /// Cut the connection: whoever does not read cannot be told.
        case readerTooSlow
        /// The request took longer than it may: cancel its handler and cut the connection.
        case total
    }

    private enum Phase: Sendable, Equatable { case idle, head, body, response }

    /// Progress against a least rate: each byte buys time, up to the grace and no further, so that
    /// a fast start does not pay for an endless crawl.
    private struct Budget: Sendable, Equatable {
        var deadline: MonotonicTime
        var pausedAt: MonotonicTime?

        mutating func pay(
            _ count: ByteCount, rate: ByteCount, grace: Duration, at now: MonotonicTime
        ) {
            // Whole seconds and the rest apart, so that a large count cannot overflow.
            let rate = max(1, rate.raw)
            let (seconds, rest) = max(0, count.raw).quotientAndRemainder(dividingBy: rate)
            let bought =
                self.deadline + .seconds(seconds)
                + .nanoseconds(Int64(Double(rest) / Double(rate) * 1e9))
            self.deadline = min(bought, (self.pausedAt ?? now) + grace)
        }

        mutating func pause(at now: MonotonicTime) {
            if self.pausedAt == nil { self.pausedAt = now }
        }

        mutating func resume(at now: MonotonicTime) {
            guard let pausedAt else { return }
            self.pausedAt = nil
            self.deadline = self.deadline + (now - pausedAt)
        }
    }

    private let timeouts: HTTPTimeouts
    private var phase = Phase.idle
    /// The deadline of the phase `idle` or `head`.
    private var phaseDeadline: MonotonicTime
    private var totalDeadline: MonotonicTime?
    private var requestBegan: MonotonicTime
    private var body: Budget?
    private var sending: Budget?

    package init(_ timeouts: HTTPTimeouts, connectedAt now: MonotonicTime) {
        self.timeouts = timeouts
        self.phaseDeadline = now + timeouts.idle
        self.requestBegan = now
    }

    package mutating func handle(_ event: Event, at now: MonotonicTime) {
        switch event {
        case .headBegan:
            self.phase = .head
            self.requestBegan = now
            self.phaseDeadline = now + self.timeouts.header
            self.totalDeadline = now + self.timeouts.total
        case .headEnded(let total):
            self.phase = .body
            self.totalDeadline = self.requestBegan + (total ?? self.timeouts.total)
            self.body = Budget(deadline: now + self.timeouts.grace)
        case .bodyReceived(let count):
            self.body?.pay(
                count, rate: self.timeouts.bodyRateMin, grace: self.timeouts.grace, at: now)
        case .readingPaused:
            self.body?.pause(at: now)
        case .readingResumed:
            self.body?.resume(at: now)
        case .bodyEnded:
            // A drained body's end may come after its answer's.
            if self.phase == .body { self.phase = .response }
            self.body = nil
        case .sendingBlocked:
            if self.sending == nil { self.sending = Budget(deadline: now + self.timeouts.grace) }
        case .sent(let count):
            self.sending?.pay(
                count, rate: self.timeouts.sendRateMin, grace: self.timeouts.grace, at: now)
        case .sendingDrained:
            self.sending = nil
        case .requestEnded:
            self.phase = .idle
            self.body = nil
            self.totalDeadline = nil
            self.phaseDeadline = now + self.timeouts.idle
        }
    }

    /// The earliest moment at which something may expire.
    package var wake: MonotonicTime {
        var wake = self.totalDeadline ?? .distantFuture
        if self.phase == .idle || self.phase == .head { wake = min(wake, self.phaseDeadline) }
        if let body, body.pausedAt == nil { wake = min(wake, body.deadline) }
        if let sending { wake = min(wake, sending.deadline) }
        return wake
    }

    /// The deadline that has expired, the most specific first; nil if none has.
    package func expiry(at now: MonotonicTime) -> Expiry? {
        if let sending, now >= sending.deadline { return .readerTooSlow }
        if self.phase == .head, now >= self.phaseDeadline { return .headersTooSlow }
        if let body, body.pausedAt == nil, now >= body.deadline { return .bodyTooSlow }
        if let totalDeadline, now >= totalDeadline { return .total }
        // An answer that is still going out holds the connection open by itself.
        if self.phase == .idle, self.sending == nil, now >= self.phaseDeadline { return .idle }
        return nil
    }
}

extension MonotonicTime {
    fileprivate static let distantFuture = Self(nanoseconds: .max)
}
