import StratusContainers
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// The audit trail.
enum AuditPages {
    static let routes: [AdminRoute] = [
        AdminRoute(
            "GET", "/v1/audit",
            answer: "the newest entries (limit=N), or whether the chain of all is whole (verify=1)"
        ) { try await Self.audit($0) }
    ]

    private static func audit(_ exchange: AdminExchange) async throws -> HTTPResponse {
        let trail = AuditTrail(store: try exchange.store)
        let query = exchange.query
        var json = JSONWriter()
        if ["1", "true"].contains(query?["verify"]) {
            let (count, broken) = try await trail.verify()
            json.object {
                $0.member("entries", count)
                $0.member("whole", broken == nil)
                if let broken { $0.member("brokenAt", Int64(clamping: broken)) }
            }
            return AdminAnswer.json(json.finish())
        }
        let limit = query?["limit"].flatMap { Int($0) } ?? 100
        let entries = try await trail.entries(limit: max(1, min(1_000, limit)))
        json.object {
            $0.member("entries", objects: entries) { json, entry in
                json.member("number", Int64(clamping: entry.number))
                json.member("at", WallTime.text(entry.milliseconds))
                json.member("actor", entry.actor)
                json.member("action", entry.action)
                json.member("subject", entry.subject)
            }
        }
        return AdminAnswer.json(json.finish())
    }
}
