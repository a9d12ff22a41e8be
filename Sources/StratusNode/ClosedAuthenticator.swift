package import StratusHTTP
package import StratusIdentity
package import StratusModel

/// Lets nobody in: what a node does that is not for development, while this version has no accounts and
/// no keys of its own. A door without a lock stays shut.
package struct ClosedAuthenticator: Authenticator {
    package init() {}

    package func authenticate(
        _ head: RequestHead, body: Bytes, container: ContainerReference, scope: DatabaseScope
    ) async throws(AuthenticationRefusal) -> Principal {
        throw .failed(reason: "Authentication failed")
    }

    package func refusalWithoutUser(_ head: RequestHead, container: ContainerReference) async
        -> AuthenticationRefusal
    { .failed(reason: "Authentication failed") }
}
