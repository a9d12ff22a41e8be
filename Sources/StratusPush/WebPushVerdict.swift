package import StratusHTTP
import StratusModel

/// The meaning of a Web Push service's answer (RFC 8030 §5, P-11).
package enum WebPushVerdict: Sendable, Equatable {
    case accepted
    /// The browser has left: the endpoint is removed.
    case gone
    case tooLarge
    /// The service does not believe our VAPID token or its key.
    case tokenRefused(status: Int)
    case dropped(status: Int)
    /// Too many messages for this browser: the service itself goes on.
    case deviceBusy(after: Duration?)
    case unavailable(status: Int, after: Duration?)

    /// - Parameter now: seconds since 1970.
    package init(_ head: ResponseHead, at now: Int64) {
        let after = RetryAfter.duration(head.headers["retry-after"], at: now)
        switch head.status {
        case 200, 201, 202, 204: self = .accepted
        case 404, 410: self = .gone
        case 413: self = .tooLarge
        case 401, 403: self = .tokenRefused(status: head.status)
        case 429: self = .deviceBusy(after: after)
        case 500...599: self = .unavailable(status: head.status, after: after)
        // Redirects too: they are never followed (P-10).
        default: self = .dropped(status: head.status)
        }
    }
}
