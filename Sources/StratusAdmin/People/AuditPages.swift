import StratusAdminModel
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
        if ["1", "true"].contains(query?["verify"]) {
            let (count, broken) = try await trail.verify()
            return AdminAnswer.json(
                AuditCheck {
                    $0.entries = Int64(count)
                    $0.isWhole = broken == nil
                    $0.brokenAt = broken.map { Int64(clamping: $0) }
                })
        }
        let limit = query?["limit"].flatMap { Int($0) } ?? 100
        let entries = try await trail.entries(limit: max(1, min(1_000, limit)))
        return AdminAnswer.json(
            Listing(
                entries.map { entry in
                    AuditRow {
                        $0.number = Int64(clamping: entry.number)
                        $0.at = WallTime.text(entry.milliseconds)
                        $0.actor = entry.actor
                        $0.action = entry.action
                        $0.subject = entry.subject
                    }
                }))
    }
}
