package import StratusHTTP
package import StratusModel

/// Establishes who is asking. Everything it needs arrives with the call.
package protocol Authenticator: Sendable {
    /// - Parameter body: the exact bytes received: signatures cover their hash.
    func authenticate(
        _ head: RequestHead, body: Bytes, container: ContainerReference, scope: DatabaseScope
    ) async throws(AuthenticationRefusal) -> Principal

    /// What a caller whose principal is anonymous is told where a user is needed: some operations on
    /// a database that is open to everybody need one.
    func refusalWithoutUser(_ head: RequestHead, container: ContainerReference) async
        -> AuthenticationRefusal
}

/// Why a request has no principal, in the terms of CloudKit's answers.
package enum AuthenticationRefusal: Error, Sendable, Equatable {
    /// No credentials where some are needed: 421, with the page to sign in at.
    case required(redirectURL: String)
    /// Credentials that are wrong: 401.
    case failed(reason: String)
    /// Right credentials of a kind this database does not take: 403.
    case denied(reason: String)
    /// The node cannot judge now: 503.
    case unavailable(retryAfter: Duration)
}
