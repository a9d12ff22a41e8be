import StratusModel
import StratusRuntime
import Testing

@Suite struct MetricsTests {
    @Test func `the exposition is what Prometheus reads`() {
        let metrics = Metrics()
        metrics.counter("b_total", "Counts \\ things\nhere", ["kind": "a\"b\\c\nd"]).add(3)
        metrics.counter("b_total", "Counts \\ things\nhere", ["kind": "plain"]).add()
        metrics.gauge("a_now", "Level").set(-2)
        metrics.gauge("c_now", "Asked") { 1.5 }
        #expect(
            String(decoding: metrics.exposition(), as: UTF8.self) == #"""
                # HELP a_now Level
                # TYPE a_now gauge
                a_now -2
                # HELP b_total Counts \\ things\nhere
                # TYPE b_total counter
                b_total{kind="a\"b\\c\nd"} 3
                b_total{kind="plain"} 1
                # HELP c_now Asked
                # TYPE c_now gauge
                c_now 1.5

                """#)
    }

    @Test func `a histogram's buckets are cumulative and end at all of them`() {
        let metrics = Metrics()
        let histogram = metrics.histogram("t_seconds", "Time", ["route": "x"])
        for microseconds in [0, 63, 64, 1_000, 500_000_000] {
            histogram.record(.microseconds(microseconds))
        }
        let text = String(decoding: metrics.exposition(), as: UTF8.self)
        for line in [
            #"t_seconds_bucket{route="x",le="6.4e-05"} 2"#,
            #"t_seconds_bucket{route="x",le="0.000128"} 3"#,
            #"t_seconds_bucket{route="x",le="0.001024"} 4"#,
            #"t_seconds_bucket{route="x",le="134.217728"} 4"#,
            #"t_seconds_bucket{route="x",le="+Inf"} 5"#,
            #"t_seconds_sum{route="x"} 500.001127"#,
            #"t_seconds_count{route="x"} 5"#,
        ] {
            #expect(text.contains(line + "\n"), "\(line)")
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `a quantile is never too low and at most a quarter too high`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let histogram = LatencyHistogram()
        // Spread over all magnitudes, in whole microseconds: below one the buckets make no
        // difference.
        let values = (0..<500).map { _ in
            Int64.random(in: 1...(1 << Int64.random(in: 1...31, using: &random)), using: &random)
        }
        for value in values { histogram.record(.microseconds(value)) }
        let sorted = values.sorted()
        for fraction in [0.01, 0.5, 0.9, 0.99, 1] {
            let exact = sorted[max(0, Int((500 * fraction).rounded(.up)) - 1)]
            let read = try #require(histogram.snapshot().quantile(fraction))
            let microseconds = Double(read.clampedNanoseconds) / 1_000
            #expect(microseconds > Double(exact), "seed \(seed), \(fraction)")
            #expect(microseconds <= 1.25 * Double(exact) + 1, "seed \(seed), \(fraction)")
        }
    }

    @Test func `durations at the ends are counted and do not trap`() {
        let histogram = LatencyHistogram()
        for duration in [Duration.zero, .seconds(-1), .seconds(Int64.max), .nanoseconds(1)] {
            histogram.record(duration)
        }
        #expect(histogram.snapshot().count == 4)
        #expect(LatencyHistogram().snapshot().quantile(0.5) == nil)
    }

    @Test func `O-20 more label values than the bound are counted together`() {
        let metrics = Metrics()
        for number in 0..<(Metrics.seriesCountMax + 100) {
            metrics.counter("n_total", "N", ["user": "\(number)"]).add()
        }
        let text = String(decoding: metrics.exposition(), as: UTF8.self)
        #expect(text.split(separator: "\n").count == Metrics.seriesCountMax + 3)
        #expect(text.contains(#"n_total{user="other"} 100"#))
    }

    @Test func `additions from many threads are all there`() async {
        let counter = Counter()
        let histogram = LatencyHistogram()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<1_000 {
                        counter.add()
                        histogram.record(.microseconds(5))
                    }
                }
            }
        }
        #expect(counter.value == 8_000)
        #expect(histogram.snapshot().count == 8_000)
    }

    @Test func `the same name and labels are the same metric`() {
        let metrics = Metrics()
        #expect(metrics.counter("x_total", "X") === metrics.counter("x_total", "X"))
    }

    @Test func `one name as two kinds stops the process`() async {
        await #expect(processExitsWith: .failure) {
            let metrics = Metrics()
            _ = metrics.counter("x_total", "X")
            _ = metrics.gauge("x_total", "X")
        }
    }
}
