import StratusHTTP
package import StratusModel

/// The results of a load.
package struct LoadReport: Sendable {
    /// One second of it.
    package struct Second: Sendable {
        package var done = 0
        package var again = 0
        package var failed = 0
        package var latencies = Latencies()

        package init() {}
    }

    /// Something that was done to the servers meanwhile.
    package struct Mark: Sendable, Equatable {
        /// Since the load began.
        package var seconds: Double
        package var text: String

        package init(seconds: Double, text: String) {
            self.seconds = seconds
            self.text = text
        }
    }

    package var target: String
    package var workload: String
    /// The number of clients of a closed load, each waiting for its answer. An open load sends
    /// requests at the rate, even if answers are late.
    package var clientCount: Int
    package var rate: Double?
    package var seconds: [Second] = []
    package var latencies = Latencies()
    package var kinds: [(kind: Step.Kind, latencies: Latencies)] = []
    package var failures: [(reason: String, count: Int)] = []
    package var marks: [Mark] = []
    package var startedMilliseconds: Int64 = 0
    package var elapsed: Double = 0

    package init(target: String, workload: String, clientCount: Int, rate: Double?) {
        self.target = target
        self.workload = workload
        self.clientCount = clientCount
        self.rate = rate
    }

    package var doneCount: Int { self.seconds.reduce(0) { $0 + $1.done } }
    package var againCount: Int { self.seconds.reduce(0) { $0 + $1.again } }
    package var failedCount: Int { self.seconds.reduce(0) { $0 + $1.failed } }
    package var perSecond: Double {
        self.elapsed > 0 ? Double(self.doneCount) / self.elapsed : 0
    }

    /// The longest time without a single operation done, in seconds of the load.
    package var longestSilence: Int {
        var longest = 0
        var now = 0
        for second in self.seconds {
            now = second.done == 0 ? now + 1 : 0
            longest = max(longest, now)
        }
        return longest
    }

    package static let quantiles = [0.5, 0.9, 0.99, 0.999]

    package var json: Bytes {
        var json = JSONWriter(reserving: 4_096)
        json.object {
            $0.member("target", self.target)
            $0.member("workload", self.workload)
            $0.member("clients", self.clientCount)
            if let rate = self.rate { $0.member("rate", rate) }
            $0.member("startedMilliseconds", self.startedMilliseconds)
            $0.member("elapsedSeconds", self.elapsed)
            $0.member("operations", self.doneCount)
            $0.member("operationsPerSecond", self.perSecond)
            $0.member("triedAgain", self.againCount)
            $0.member("failed", self.failedCount)
            $0.key("latencyMicroseconds")
            $0.object { Self.write(self.latencies, to: &$0) }
            $0.key("kinds")
            $0.object { json in
                for (kind, latencies) in self.kinds {
                    json.key(kind.rawValue)
                    json.object { Self.write(latencies, to: &$0) }
                }
            }
            $0.key("failures")
            $0.object { for (reason, count) in self.failures { $0.member(reason, count) } }
            $0.member("marks", objects: self.marks) { json, mark in
                json.member("second", mark.seconds)
                json.member("text", mark.text)
            }
            $0.member("seconds", objects: self.seconds) { json, second in
                json.member("done", second.done)
                json.member("again", second.again)
                json.member("failed", second.failed)
                json.member("p50", Int64(second.latencies.microseconds(at: 0.5)))
                json.member("p99", Int64(second.latencies.microseconds(at: 0.99)))
            }
        }
        return json.finish()
    }

    private static func write(_ latencies: Latencies, to json: inout JSONWriter) {
        json.member("count", latencies.count)
        json.member("mean", latencies.meanMicroseconds)
        for quantile in Self.quantiles {
            json.member(Self.name(of: quantile), Int64(latencies.microseconds(at: quantile)))
        }
        json.member("max", Int64(clamping: latencies.largestMicroseconds))
    }

    /// `p50`, `p99.9`.
    package static func name(of quantile: Double) -> String {
        let tenths = Int((quantile * 1_000).rounded())
        return tenths % 10 == 0 ? "p\(tenths / 10)" : "p\(tenths / 10).\(tenths % 10)"
    }
}
