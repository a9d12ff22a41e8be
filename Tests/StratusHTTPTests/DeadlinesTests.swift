import StratusHTTP
import StratusModel
import Testing

/// Times are in seconds from the connection's beginning.
@Suite struct DeadlinesTests {
    static let timeouts: HTTPTimeouts = {
        var timeouts = HTTPTimeouts()
        timeouts.header = .seconds(10)
        timeouts.idle = .seconds(60)
        timeouts.total = .seconds(300)
        timeouts.grace = .seconds(5)
        timeouts.bodyRateMin = 100
        timeouts.sendRateMin = 100
        return timeouts
    }()

    typealias Step = (ConnectionDeadlines.Event, at: Int)
    typealias Row = (
        name: String, steps: [Step], expiresAt: Int, with: ConnectionDeadlines.Expiry
    )

    static let rows: [Row] = [
        ("nothing is ever sent", [], 60, .idle),
        ("G-15: a head without an end", [(.headBegan, 7)], 17, .headersTooSlow),
        ("no byte of a body", [(.headBegan, 0), (.headEnded(total: nil), 1)], 6, .bodyTooSlow),
        (
            "G-15: a body too slow by a little",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.bodyReceived(100), 2),
                (.bodyReceived(199), 4),
            ], 7, .bodyTooSlow
        ),
        (
            "a fast start does not pay for a crawl",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.bodyReceived(1_000_000_000), 1),
            ], 6, .bodyTooSlow
        ),
        (
            "we do not read, so the client is not slow",
            [(.headBegan, 0), (.headEnded(total: nil), 0), (.readingPaused, 4)], 300, .total
        ),
        (
            "reading goes on with the time that was left",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.readingPaused, 4),
                (.readingResumed, 100),
            ], 101, .bodyTooSlow
        ),
        (
            "pausing twice is pausing once",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.readingPaused, 1),
                (.readingPaused, 3), (.readingResumed, 11), (.readingResumed, 12),
            ], 15, .bodyTooSlow
        ),
        (
            "the handler takes its time",
            [(.headBegan, 2), (.headEnded(total: nil), 3), (.bodyEnded, 4)], 302, .total
        ),
        (
            "a route may take longer",
            [(.headBegan, 2), (.headEnded(total: .seconds(1000)), 3), (.bodyEnded, 4)], 1002, .total
        ),
        (
            "G-15: a reader that does not read",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.bodyEnded, 0),
                (.sendingBlocked, 20),
            ], 25, .readerTooSlow
        ),
        (
            "a reader that reads just enough",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.bodyEnded, 0),
                (.sendingBlocked, 20), (.sent(200), 24), (.sendingBlocked, 24),
            ], 27, .readerTooSlow
        ),
        (
            "everything was taken after all",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.bodyEnded, 0),
                (.sendingBlocked, 20), (.sendingDrained, 24),
            ], 300, .total
        ),
        (
            "between requests",
            [(.headBegan, 0), (.headEnded(total: nil), 0), (.bodyEnded, 0), (.requestEnded, 40)],
            100, .idle
        ),
        (
            "a second request has its own time",
            [
                (.headBegan, 0), (.headEnded(total: nil), 0), (.bodyEnded, 0),
                (.requestEnded, 40), (.headBegan, 50),
            ], 60, .headersTooSlow
        ),
    ]

    @Test(arguments: rows)
    func `expires when it should, and says with what`(row: Row) {
        var deadlines = ConnectionDeadlines(Self.timeouts, connectedAt: Self.time(0))
        for (event, at) in row.steps {
            #expect(deadlines.expiry(at: Self.time(at)) == nil, "\(row.name): before \(event)")
            deadlines.handle(event, at: Self.time(at))
        }
        let expected =
            row.name.contains("a little")
            ? MonotonicTime(nanoseconds: 7_990_000_000)
            : Self.time(row.expiresAt)
        #expect(deadlines.wake == expected, "\(row.name)")
        let before = MonotonicTime(nanoseconds: expected.nanoseconds - 1)
        #expect(deadlines.expiry(at: before) == nil, "\(row.name)")
        #expect(deadlines.expiry(at: expected) == row.with, "\(row.name)")
    }

    @Test func `huge counts and far times do not overflow`() {
        var timeouts = Self.timeouts
        timeouts.total = .seconds(Int64.max)
        var deadlines = ConnectionDeadlines(timeouts, connectedAt: Self.time(0))
        deadlines.handle(.headBegan, at: MonotonicTime(nanoseconds: .max - 1))
        deadlines.handle(.headEnded(total: nil), at: MonotonicTime(nanoseconds: .max - 1))
        deadlines.handle(.bodyReceived(ByteCount(.max)), at: MonotonicTime(nanoseconds: .max - 1))
        #expect(deadlines.wake == MonotonicTime(nanoseconds: .max))
    }

    private static func time(_ seconds: Int) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds) * 1_000_000_000)
    }
}
