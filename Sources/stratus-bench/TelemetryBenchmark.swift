import Glibc
import StratusHTTP
import StratusModel
import StratusRuntime
import Synchronization

extension Benchmark {
    /// `stratus-bench telemetry [--repeat COUNT]`
    static let telemetry = Benchmark(
        name: "telemetry",
        summary: "what metrics and lines of the access log cost a request; --repeat COUNT"
    ) { arguments in
        let count = Self.option("repeat", in: arguments).flatMap { Int($0) } ?? 100_000
        print("\(count) times each, nanoseconds of CPU time, median of 5 (least, most)")
        await TelemetryBench(count: count).run()
    }
}

/// Each part by itself, then a handler that answers at once, bare and watched.
private struct TelemetryBench {
    let count: Int

    private struct Bare: HTTPHandler {
        let label = RouteLabel("records/modify")

        func plan(for head: RequestHead) -> RequestPlan {
            RequestPlan(
                RequestRoute(
                    self.label,
                    fields: [
                        "container": .text("iCloud.org.example.app"),
                        "environment": .text("production"), "database": .text("private"),
                    ]), bodySizeMax: .mebibytes(1)
            ) { _ in HTTPResponse(status: 200, headers: [:], body: .empty) }
        }
    }

    private enum Clock {
        case thread, process

        var seconds: Double {
            var time = timespec()
            clock_gettime(
                self == .thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
        }
    }

    func run() async {
        let metrics = Metrics()
        let counter = metrics.counter("bench_total", "A counter")
        let gauge = metrics.gauge("bench_now", "A gauge")
        let histogram = metrics.histogram("bench_seconds", "A histogram")
        await self.measure("a counter") { counter.add() }
        await self.measure("a gauge, up and down") {
            gauge.add(1)
            gauge.add(-1)
        }
        await self.measure("a latency into a histogram") { histogram.record(nanoseconds: 183_000) }
        await self.measure("the clock, read once") { Self.swallow(RealClock.now) }

        let silent = Log(level: .info, format: .json) { $0.count }
        await self.measure("a line below the level") {
            silent.debug("request", ["status": .count(200)])
        }
        silent.close()

        let plain = Bare()
        let bare = await self.measure("a handler that answers at once", prints: false) { request in
            _ = await plain.respond(to: request)
        }
        for (name, lines, format) in [
            ("metrics of a request", false, LogFormat.json),
            ("metrics and a line, JSON", true, .json),
            ("metrics and a line, for a terminal", true, .terminal(colour: false)),
        ] {
            let written = Atomic<Int>(0)
            let log = Log(level: .info, format: format, capacity: 1 << 20) { bytes in
                written.add(bytes.count, ordering: .relaxed)
                return bytes.count
            }
            let observed = ObservedHandler(
                Bare(), listener: "client", log: log, metrics: Metrics(), writesLines: lines,
                now: { RealClock.now })
            let onLoop = await self.measure(name, less: bare) { request in
                _ = await observed.respond(to: request)
            }
            log.flush()
            if lines {
                // With the log's own thread, which formats and would write.
                let all = await self.measure("", clock: .process, prints: false) { request in
                    _ = await observed.respond(to: request)
                } finally: {
                    log.flush()
                }
                let whole = all - bare
                print(
                    "  of all threads together: \(Int(whole)) ns, "
                        + "\(Int(max(0, whole - onLoop))) of them off the loop")
            }
            log.close()
        }
    }

    private static func swallow(_ now: MonotonicTime) { if now.nanoseconds == 0 { print("never") } }

    private func measure(_ name: String, _ once: () -> Void) async {
        _ = await self.measure(name) { (_: HTTPRequest) in once() }
    }

    /// - Returns: the median, in nanoseconds.
    @discardableResult
    private func measure(
        _ name: String, less base: Double = 0, clock: Clock = .thread, prints: Bool = true,
        _ once: (HTTPRequest) async -> Void, finally: () -> Void = {}
    ) async -> Double {
        let request = HTTPRequest(
            head: RequestHead(
                method: "POST",
                path: "/database/1/iCloud.org.example.app/production/private/records/modify",
                query: nil, headers: [:]),
            body: CollectedBody([]), peer: "192.0.2.7:50000",
            identity: RequestIdentity(high: 1, low: 2))
        var times: [Double] = []
        for _ in 0..<5 {
            let start = clock.seconds
            for _ in 0..<self.count { await once(request) }
            finally()
            times.append((clock.seconds - start) * 1e9 / Double(self.count) - base)
        }
        times.sort()
        if prints {
            print(
                "\(name): \(Self.text(times[2])) ns (\(Self.text(times[0])), \(Self.text(times[4])))"
            )
        }
        return times[2]
    }

    private static func text(_ nanoseconds: Double) -> String {
        "\(Double(Int(nanoseconds * 10)) / 10)"
    }
}
