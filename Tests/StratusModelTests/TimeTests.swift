import StratusModel
import Testing

@Suite struct TimeTests {
    typealias Row = (name: String, last: HybridTime, wall: Int64, next: HybridTime)

    static let rows: [Row] = [
        ("the wall moved on", .init(milliseconds: 5, count: 3), 6, .init(milliseconds: 6)),
        ("the wall stands", .init(milliseconds: 5, count: 3), 5, .init(milliseconds: 5, count: 4)),
        ("the wall went back", .init(milliseconds: 5), 1, .init(milliseconds: 5, count: 1)),
        (
            "the counter is full", .init(milliseconds: 5, count: .max), 5,
            .init(milliseconds: 6)
        ),
    ]

    @Test(arguments: rows)
    func `the next entry is always later`(row: Row) {
        let next = row.last.successor(wallMilliseconds: row.wall)
        #expect(next == row.next, "\(row.name)")
        #expect(row.last < next)
    }

    @Test func `a time far in the future saturates`() {
        let now = MonotonicTime(nanoseconds: .max - 5)
        #expect((now + .seconds(10)).nanoseconds == .max)
        #expect(Duration.seconds(Int64.max).clampedNanoseconds == .max)
        #expect(Duration.seconds(-Int64.max).clampedNanoseconds == .min)
    }

    @Test func `a digest takes out what it took in, in any order`() {
        let rows = (1...20 as ClosedRange<UInt64>).map {
            StateDigest(high: $0 &* 0x9E37_79B9_7F4A_7C15, low: .max - $0)
        }
        var digest = StateDigest.empty
        for row in rows { digest.add(row) }
        #expect(digest != .empty)
        for row in rows.reversed() { digest.subtract(row) }
        #expect(digest == .empty)
    }
}
