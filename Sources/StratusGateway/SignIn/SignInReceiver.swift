import StratusHTTP
import StratusIdentity
import StratusModel

/// The receiver of a user's token after sign-in. Pure.
enum SignInReceiver: Equatable {
    /// The browser goes there, with the token.
    case callback(String)
    /// The window that opened the page hears it, if its origin is one of these.
    case origins([String])
    /// The window that opened the page hears it, whatever its origin is: in development only.
    case opener
    /// Nobody: the page shows the token, and the person copies it.
    case page

    /// Nil: the token does not let this origin in any more.
    ///
    /// - Parameter token: nil for one that is not stored, which development takes.
    init?(of link: SignInLink, _ token: APIToken?) {
        guard token?.allows(origin: link.origin) != false else { return nil }
        if let callback = token?.callbackURL {
            self = .callback(callback)
        } else if let origin = link.origin.flatMap({ WebOrigin($0) }) {
            self = .origins([origin.text])
        } else if let origins = token?.origins, !origins.isEmpty {
            self = .origins(origins)
        } else {
            self = link.container.environment == .development ? .opener : .page
        }
    }

    /// Whether it is a window that opened the page. A page that was opened from an e-mail has none.
    var isWindow: Bool {
        switch self {
        case .origins, .opener: true
        case .callback, .page: false
        }
    }
}
