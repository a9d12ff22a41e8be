package import StratusRuntime

/// Counts requests of WebDAV clients, by method and by the first digit of the answer.
package struct DAVCounters: Sendable {
    private let counters: [String: [Counter]]

    package init(_ metrics: Metrics) {
        var counters: [String: [Counter]] = [:]
        for method in DAVSurface.methods.sorted() + ["other"] {
            counters[method] = (1...5).map {
                metrics.counter(
                    "stratus_dav_requests_total",
                    "Requests of WebDAV clients, by method and class of the answer",
                    ["method": method, "class": "\($0)xx"])
            }
        }
        self.counters = counters
    }

    func note(_ method: String, _ status: Int) {
        let counters = self.counters[method] ?? self.counters["other"] ?? []
        guard (100..<600).contains(status), counters.count == 5 else { return }
        counters[status / 100 - 1].add()
    }
}
