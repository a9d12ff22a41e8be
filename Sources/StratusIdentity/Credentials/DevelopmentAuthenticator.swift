package import StratusHTTP
package import StratusModel

/// The authenticator of `stratus dev`. It accepts any well-formed API token in any container's
/// development environment, and takes any web-auth token for the development user.
///
/// Never use it where others can reach it: it keeps no secret and checks none.
package struct DevelopmentAuthenticator: Authenticator {
    package struct Settings: Sendable, Equatable {
        /// Whether an API token alone signs in as the development user too. Off, so that developers
        /// meet the 421 that clients must handle before they ship.
        package var signsInWithoutUserToken = false
        /// The address that a 421 sends people to; nil: `/signin` at the host that the request came
        /// to.
        package var signInURL: String?

        /// Only the tokens of development users are good: ``userToken`` and those that begin with
        /// ``otherUserPrefix``. Off: any text is the development user's.
        package var isStrict = false

        package init() {}
    }

    /// The token of the development user, as `stratus dev` prints it.
    package static let userToken = "development"
    /// The token of a second one.
    package static let otherUserToken = "stratus-user-2"

    /// The beginning of a web-auth token that stands for a further user, named by the rest: tests
    /// of permissions need two people.
    package static let otherUserPrefix = "stratus-user-"

    package var settings: Settings

    package init(settings: Settings = Settings()) { self.settings = settings }

    /// No: all its credentials stand in the query string.
    package func needsBody(_ head: RequestHead) -> Bool { false }

    package func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    {
        try await self.authenticate(request, TokenCredentials(query: request.head.query))
    }

    /// Whether a web-auth token stands for a development user.
    func takes(_ token: String) -> Bool {
        !self.settings.isStrict || token == Self.userToken
            || (token.hasPrefix(Self.otherUserPrefix) && token.utf8.count <= 255)
    }

    /// For a caller that has read the credentials already.
    func authenticate(_ request: PresentedRequest, _ credentials: TokenCredentials)
        async throws(AuthenticationRefusal) -> Authentication
    {
        guard let apiToken = credentials.apiToken else { throw .none }
        guard TokenCredentials.isWellFormed(apiToken: apiToken),
            request.container.environment == .development
        else { throw .wrong }
        if let token = credentials.webAuthToken {
            guard self.takes(token) else { throw await self.refusalWithoutUser(request) }
            return Authentication(
                principal: Principal(
                    kind: .user,
                    userRecordName: Self.userRecordName(for: token, in: request.container)),
                webAuthToken: Self.mayStandInAHeader(token) ? token : nil)
        }
        if self.settings.signsInWithoutUserToken {
            return Authentication(
                principal: Principal(
                    kind: .user,
                    userRecordName: Self.userRecordName(
                        for: Self.userToken, in: request.container)))
        }
        if request.scope == .public {
            return Authentication(principal: Principal(kind: .anonymous))
        }
        throw await self.refusalWithoutUser(request)
    }

    package func authenticate(
        _ request: PresentedRequest, password: String, from place: String
    ) async throws(AuthenticationRefusal) -> Authentication {
        guard request.container.environment == .development, self.takes(password) else {
            throw .wrong
        }
        var authentication = Authentication(
            principal: Principal(
                kind: .user,
                userRecordName: Self.userRecordName(for: password, in: request.container)))
        authentication.appPassword = Session.AppPassword(label: "development")
        return authentication
    }

    package func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        .required(
            redirectURL: self.settings.signInURL
                ?? "http://\(request.head.headers["Host"] ?? "127.0.0.1:8080")/signin")
    }

    private static func mayStandInAHeader(_ token: String) -> Bool {
        token.utf8.count <= 4_096 && token.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }

    /// The record name of whom a token stands for: another one in each container, as everybody has.
    package static func userRecordName(
        for token: String, in container: ContainerReference
    ) -> String {
        var name = Bytes(container.container.utf8)
        // Every token but those of further users is the development user's.
        if token.hasPrefix(Self.otherUserPrefix) {
            name.append(0)
            name += token.utf8.dropFirst(Self.otherUserPrefix.utf8.count)
        }
        var seed: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name { seed = (seed ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        var generator = SeededGenerator(seed: seed)
        return "_\(RequestIdentity(high: generator.next(), low: generator.next()))"
    }
}
