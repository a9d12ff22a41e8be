import StratusModel
import Synchronization

/// What a request is called in the log and the metrics, with everything that differs from request
/// to request taken out.
package struct RequestRoute: Sendable {
    package let label: RouteLabel
    /// The fields that may be logged about this request: the container, the database. They are
    /// made when a line is written.
    package let fields: @Sendable () -> LogFields
    /// The level of the request's line while all is well: what a balancer asks every second need
    /// not be read.
    package let level: LogLevel
    /// The fields as they stand in a line of JSON, where they were written for many requests.
    let members: Bytes?

    package init(
        _ label: RouteLabel, level: LogLevel = .info,
        fields: @autoclosure @escaping @Sendable () -> LogFields = [:]
    ) {
        self.label = label
        self.level = level
        self.fields = fields
        self.members = nil
    }

    private init(_ route: RequestRoute, members: Bytes) {
        self.label = route.label
        self.level = route.level
        self.fields = route.fields
        self.members = members
    }

    /// The same route, for many requests that differ in nothing of it.
    package var written: RequestRoute {
        var members = Bytes()
        LogFormat.appendMembers(self.fields(), into: &members)
        return RequestRoute(self, members: members)
    }
}

/// A name of requests, `records/modify`, with the latencies that are recorded under it. One of a
/// fixed set: it becomes a label, so it is never a name that a client made up.
///
/// Whoever names requests keeps its labels, so that a request finds its latencies with its name.
package final class RouteLabel: Sendable {
    package let template: String
    /// By the first digit of the status; other statuses share the first place.
    private let latencies = Mutex<(of: Metrics?, each: [LatencyHistogram?])>(
        (nil, Array(repeating: nil, count: 6)))

    /// As it stands in a line of JSON.
    let member: Bytes

    package init(_ template: String) {
        self.template = template
        var member = Bytes()
        LogFormat.appendMembers(["route": .text(template)], into: &member)
        self.member = member
    }

    /// The latencies of answers with such a status, among these metrics.
    ///
    /// - Parameter make: registers them; called with the text of the status.
    func latency(
        _ status: Int, in metrics: Metrics, _ make: (_ status: String) -> LatencyHistogram
    ) -> LatencyHistogram {
        let digit = status / 100
        let place = (1...5).contains(digit) ? digit : 0
        return self.latencies.withLock { latencies in
            if latencies.of !== metrics {
                latencies = (metrics, Array(repeating: nil, count: 6))
            }
            if let known = latencies.each[place] { return known }
            let made = make(place == 0 ? "other" : "\(place)xx")
            latencies.each[place] = made
            return made
        }
    }
}
