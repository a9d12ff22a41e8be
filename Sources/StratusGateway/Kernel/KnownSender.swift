import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// What was proved of the sender of a request, for requests that look the same: see
/// ``KnownCaller``.
final class KnownSender: Sendable {
    let authentication: Authentication
    /// Whom its requests count against.
    let counted: RequestRates.Counted
    /// The head of an answer with JSON; nil where it cannot be written once for many.
    let lines: ReadyLines?

    init(
        _ authentication: Authentication, _ counted: RequestRates.Counted, _ lines: ReadyLines?
    ) {
        self.authentication = authentication
        self.counted = counted
        self.lines = lines
    }
}
