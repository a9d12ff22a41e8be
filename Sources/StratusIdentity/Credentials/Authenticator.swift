package import StratusHTTP
package import StratusModel

/// Establishes who is asking. Everything it needs arrives with the call.
package protocol Authenticator: Sendable {
    /// Whether the credentials in this head can be judged only together with the body, because
    /// signatures cover its hash. Otherwise a stranger's body is not read: it is not worth the
    /// memory.
    func needsBody(_ head: RequestHead) -> Bool

    func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication

    /// The answer to an anonymous caller if a user is needed: some operations on a database that is
    /// open to everybody need one.
    func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal

    /// Judges the name and password of a request to WebDAV. A wrong password counts as a try to
    /// sign in from `place`, where the request came from without its port.
    func authenticate(
        _ request: PresentedRequest, password: String, from place: String
    ) async throws(AuthenticationRefusal) -> Authentication

    /// How a container's databases are spread, for who has no request in it.
    func layout(of container: ContainerReference) async throws -> ContainerLayout

    /// Rises whenever this node withdraws credentials. Nil: nothing that it proves may be kept.
    var epoch: CredentialEpoch? { get }

    /// Who may be told of changes under a registration, as credentials stand now. Nil: nobody any
    /// more.
    func listener(
        _ registration: Device.Registration
    ) async throws -> (principal: Principal, isRestricted: Bool)?

    /// Whether people may use what this user shares: not while the owner is restricted or disabled.
    func maySharesBeUsed(of owner: String, in container: ContainerReference) async throws -> Bool
}

extension Authenticator {
    package func authenticate(
        _ request: PresentedRequest, password: String, from place: String
    ) async throws(AuthenticationRefusal) -> Authentication { throw .wrong }

    package func layout(of container: ContainerReference) async throws -> ContainerLayout {
        ContainerLayout()
    }

    package var epoch: CredentialEpoch? { nil }

    package func maySharesBeUsed(
        of owner: String, in container: ContainerReference
    ) async throws -> Bool { true }

    package func listener(
        _ registration: Device.Registration
    ) async throws -> (principal: Principal, isRestricted: Bool)? {
        (
            Principal(
                kind: registration.isServerKey ? .serverKey : .user,
                userRecordName: registration.userRecordName), false
        )
    }
}

/// A request as far as it matters to who sent it.
package struct PresentedRequest: Sendable {
    package var head: RequestHead
    /// The exact bytes received, where ``Authenticator/needsBody(_:)`` asked for them; else empty.
    package var body: Bytes
    package var container: ContainerReference
    package var scope: DatabaseScope
    /// Whether it came over TLS.
    package var isSecure: Bool

    package init(
        head: RequestHead, body: Bytes = [], container: ContainerReference, scope: DatabaseScope,
        isSecure: Bool = false
    ) {
        self.head = head
        self.body = body
        self.container = container
        self.scope = scope
        self.isSecure = isSecure
    }
}

/// The sender of a request, and what its answer carries back.
package struct Authentication: Sendable, Equatable {
    package var principal: Principal
    /// The person behind a user; nil for the development users and for server-to-server keys.
    package var account: AccountID?
    /// The token for the next request; nil where the caller brought none.
    package var webAuthToken: String?
    /// Whether the app may receive people's names.
    package var receivesNames: Bool
    /// The identity of a signed request and its deadline: a replay has the same identity.
    package var signed: Signed?
    /// What the app password is good for by which the caller got in; nil: it was none.
    package var appPassword: Session.AppPassword?
    /// How the container's databases are spread, from the same descriptor by which the credentials
    /// were judged.
    package var layout = ContainerLayout()
    /// How long a request with the same credentials has the same sender, if nothing is withdrawn
    /// before. Nil: it must be asked again each time.
    package var provedUntil: MonotonicTime?

    package var publicBucketCount: Int {
        get { self.layout.publicBucketCount }
        set { self.layout.publicBucketCount = newValue }
    }

    package struct Signed: Sendable, Equatable {
        /// Equal for every copy of the request.
        package var identity: Bytes
        package var deadlineMilliseconds: Int64

        package init(identity: Bytes, deadlineMilliseconds: Int64) {
            self.identity = identity
            self.deadlineMilliseconds = deadlineMilliseconds
        }
    }

    package init(
        principal: Principal, account: AccountID? = nil, webAuthToken: String? = nil,
        receivesNames: Bool = false, signed: Signed? = nil
    ) {
        self.principal = principal
        self.account = account
        self.webAuthToken = webAuthToken
        self.receivesNames = receivesNames
        self.signed = signed
    }
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
    /// Too many wrong passwords: 429.
    case limited(retryAfter: Duration)
}

extension AuthenticationRefusal {
    /// The one answer to wrong credentials, whatever is wrong with them.
    package static let wrong = AuthenticationRefusal.failed(reason: "Authentication failed")
    package static let wrongDate = AuthenticationRefusal.failed(
        reason: "Authentication failed: \(SignedRequest.dateForm)")
    package static let none = AuthenticationRefusal.failed(reason: "no auth method found")
}
