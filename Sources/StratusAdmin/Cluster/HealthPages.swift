import StratusAdminModel
package import StratusRuntime

/// `/healthz` and `/readyz`: on the administrators' listener with reasons, on the clients' one
/// without.
///
/// A load balancer asks the port it sends requests to, so both listeners have them. Internal
/// troubles are for administrators only.
package enum HealthPages {
    package static let healthPath = "/healthz"
    package static let readyPath = "/readyz"

    /// Answers that the process runs and its loop works: otherwise nobody would answer. A node that
    /// merely cannot serve must not be restarted for it.
    package static func alive() -> HTTPResponse {
        AdminAnswer.text(200, "\(Self.aliveText)")
    }

    package static let aliveText: StaticString = "alive\n"
    /// The head of ``alive()``, as it is sent.
    package static let lines: StaticString =
        "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\n"

    package static func ready(_ health: Health, withReasons: Bool) -> HTTPResponse {
        let reasons = health.reasons
        var text = reasons.isEmpty ? "ready\n" : "not ready\n"
        if withReasons {
            for reason in reasons + health.warnings {
                text += "\(reason.component): \(reason.text)\n"
            }
        }
        return AdminAnswer.text(reasons.isEmpty ? 200 : 503, text)
    }
}
