import StratusPush
import StratusRuntime
import Synchronization

/// What a node has sent, for metrics and administrators.
final class PushFigures: Sendable {
    struct Standing: Sendable {
        var activeCount = 0
        var restingCount = 0
        /// Lanes by the name of their state.
        var lanes: [String: Int] = [:]
    }

    static let states = [
        "idle", "connecting", "probing", "open", "resting", "refused", "paused",
    ]
    private static let verdicts = ["accepted", "dropped", "gone"]

    private let counters: [String: Counter]
    private let repeated: [LaneName.Provider: Counter]
    private let standing = Mutex(Standing())

    init(_ metrics: Metrics) {
        var counters: [String: Counter] = [:]
        var repeated: [LaneName.Provider: Counter] = [:]
        for provider in [LaneName.Provider.apns, .webPush] {
            for verdict in Self.verdicts {
                counters["\(provider.rawValue) \(verdict)"] = metrics.counter(
                    "stratus_push_sent_total",
                    "Pushes that a provider has judged: accepted, dropped, or their device is gone",
                    ["provider": provider.rawValue, "verdict": verdict])
            }
            repeated[provider] = metrics.counter(
                "stratus_push_put_back_total",
                "Pushes that wait for their lane or their device and are looked for again",
                ["provider": provider.rawValue])
        }
        self.counters = counters
        self.repeated = repeated
    }

    /// Registers what is read at each scrape.
    func register(in metrics: Metrics) {
        metrics.gauge(
            "stratus_push_active", "Devices that are asked about, sent to or settled now"
        ) { Double(self.now.activeCount) }
        metrics.gauge(
            "stratus_push_parked", "Devices that wait for a time or for their provider"
        ) { Double(self.now.restingCount) }
        for state in Self.states {
            metrics.gauge(
                "stratus_push_lanes", "Ways to providers, by state", ["state": state]
            ) { Double(self.now.lanes[state] ?? 0) }
        }
    }

    var now: Standing { self.standing.withLock { $0 } }

    func stand(_ standing: Standing) { self.standing.withLock { $0 = standing } }

    func sent(_ provider: LaneName.Provider, _ verdict: String) {
        self.counters["\(provider.rawValue) \(verdict)"]?.add(1)
    }

    func putBack(_ provider: LaneName.Provider) { self.repeated[provider]?.add(1) }
}

extension PushLane.State {
    /// The name in metrics and for administrators.
    var name: String {
        switch self {
        case .idle: "idle"
        case .connecting: "connecting"
        case .probing: "probing"
        case .open: "open"
        case .resting: "resting"
        case .refused: "refused"
        case .paused: "paused"
        }
    }
}
