package import StratusHTTP
package import StratusModel

/// The authenticator of `stratus dev`: everybody with a well-formed API token is welcome in any
/// container's development environment, and whoever brings a web-auth token, whatever it says, is the
/// development user.
///
/// Never for anything that others can reach: it keeps no secret and checks none.
package struct DevelopmentAuthenticator: Authenticator {
    package struct Settings: Sendable, Equatable {
        /// An API token alone signs in as the development user too. Off, so that the 421 a client must
        /// cope with is seen before it is shipped.
        package var signsInWithoutUserToken = false
        /// Where a 421 sends people; nil: `/signin` at the host that the request came to.
        package var signInURL: String?

        package init() {}
    }

    /// Whom every web-auth token stands for.
    package static let userRecordName = "_de7e109e12de7e109e12de7e109e1200"
    /// A web-auth token that starts so stands for a further user, named by the rest: tests of who may
    /// see what need two people.
    package static let otherUserPrefix = "stratus-user-"

    package var settings: Settings

    package init(settings: Settings = Settings()) { self.settings = settings }

    package func authenticate(
        _ head: RequestHead, body: Bytes, container: ContainerReference, scope: DatabaseScope
    ) async throws(AuthenticationRefusal) -> Principal {
        let credentials = TokenCredentials(query: head.query)
        guard let apiToken = credentials.apiToken else {
            throw .failed(reason: "no auth method found")
        }
        guard TokenCredentials.isWellFormed(apiToken: apiToken),
            container.environment == .development
        else { throw .failed(reason: "Authentication failed") }
        if let token = credentials.webAuthToken {
            return Principal(kind: .user, userRecordName: Self.userRecordName(for: token))
        }
        if self.settings.signsInWithoutUserToken {
            return Principal(kind: .user, userRecordName: Self.userRecordName)
        }
        if scope == .public { return Principal(kind: .anonymous) }
        throw await self.refusalWithoutUser(head, container: container)
    }

    package func refusalWithoutUser(_ head: RequestHead, container: ContainerReference) async
        -> AuthenticationRefusal
    {
        .required(
            redirectURL: self.settings.signInURL
                ?? "http://\(head.headers["Host"] ?? "127.0.0.1:8080")/signin")
    }

    /// 128 bits of a name, in the form of a user's record name.
    package static func userRecordName(for token: String) -> String {
        guard token.hasPrefix(Self.otherUserPrefix) else { return Self.userRecordName }
        var high: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in token.utf8.dropFirst(Self.otherUserPrefix.utf8.count) {
            high = (high ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
        }
        var generator = SeededGenerator(seed: high)
        return "_\(RequestIdentity(high: generator.next(), low: generator.next()))"
    }
}
