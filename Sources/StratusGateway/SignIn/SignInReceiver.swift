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

    /// The sentence on the sign-in page that tells a person which receiver the link is for.
    var sentence: (before: String, name: String, after: String) {
        switch self {
        case .callback(let url):
            ("This signs you in to ", String(url.prefix { $0 != "?" && $0 != "#" }), ".")
        case .origins(let origins):
            ("This signs you in to ", origins.joined(separator: ", "), ".")
        case .opener: ("This signs you in to ", "the page that opened this window", ".")
        case .page: ("You get a token to copy. ", "Give it only", " to the app that you use.")
        }
    }
}
