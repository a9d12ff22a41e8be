import StratusGateway
import StratusRuntime
import Testing

@testable import StratusNode

/// What the metrics say of the places of a node.
@Suite struct PlaceMetricsTests {
    @Test func `places are told by their kinds`() {
        let metrics = Metrics()
        let connections = PlaceFigures(kind: "connection", size: { 3 }, endedCount: { 2 })
        NodeMetrics.register(HeldRequests().figures + [connections], in: metrics)
        let text = String(decoding: metrics.exposition(), as: UTF8.self)
        #expect(text.contains("stratus_places{kind=\"connection\"} 3\n"))
        #expect(text.contains("stratus_places_ended_total{kind=\"connection\"} 2\n"))
        for kind in ["wait", "stream", "stranger"] {
            #expect(text.contains("stratus_places{kind=\"\(kind)\"} 0\n"), "\(text)")
            #expect(text.contains("stratus_places_ended_total{kind=\"\(kind)\"} 0\n"))
        }
    }
}
