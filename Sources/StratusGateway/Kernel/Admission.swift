import StratusHTTP
import StratusIdentity
package import StratusModel
import StratusRuntime

/// What a request is checked for before its surface works: a surface says it of the head alone.
package struct AdmissionPlan: Sendable {
    /// How a caller says who it is.
    package enum Credentials: Sendable {
        /// Nobody is asked; the path itself may be a permission.
        case none
        /// Tokens in the query, or a signature over the body.
        case tokens
        /// An app password, or tokens.
        case password
    }

    /// Whether it counts against the rate of its address.
    package var isRated = false
    /// What the head alone is refused for: its path leads nowhere, or not by this method.
    package var refusal: (any Error)?
    package var credentials = Credentials.none
    /// Where the credentials must be good, and what rates count.
    package var container: ContainerReference?
    package var scope = DatabaseScope.private
    /// What a caller with good credentials is refused for: not every database has each operation.
    package var scopeRefusal: (any Error)?
    /// Whether the body is read whole before the surface works.
    package var collectsBody = false
    /// Who shares the loop's long work with others.
    package var tenant = ""

    package init() {}
}

/// A request whose sender is known.
struct Admission: Sendable {
    let authentication: Authentication
    /// Nil where the surface reads it itself.
    let body: Bytes?
    /// Not taken: it is left again where something is waited for.
    let turn: LongWork.Turn
}

/// The order of checks, for all surfaces. Each may refuse a request before a dearer one begins, and
/// a stranger uses up nobody's share.
extension GatewayKernel {
    /// The checks of the head: the address's rate, the route, the method.
    func enter(_ request: HTTPRequest, by plan: AdmissionPlan) throws {
        if plan.isRated { try self.rates.check(address: request.peer, at: self.world.now) }
        if let refusal = plan.refusal { throw refusal }
    }

    /// The checks of the head; then credentials, the rates of container, token and caller, the
    /// scope, and the body.
    ///
    /// - Parameters:
    ///   - share: counts what is read of the body.
    ///   - token: the caller's next token, once the credentials were found good: it comes back with
    ///     errors too.
    func admit(
        _ request: HTTPRequest, by plan: AdmissionPlan, _ share: inout BodyBudget.Share,
        token: inout String?
    ) async throws -> Admission {
        try self.enter(request, by: plan)
        guard let container = plan.container else {
            preconditionFailure("credentials are good for a container")
        }
        var body: Bytes?
        let authentication: Authentication
        switch plan.credentials {
        case .none: preconditionFailure("a surface that asks nobody only enters")
        case .tokens:
            if self.authenticator.needsBody(request.head) {
                body = try await self.collect(request.body, &share)
            }
            authentication = try await self.authenticator.authenticate(
                PresentedRequest(
                    head: request.head, body: body ?? [], container: container,
                    scope: plan.scope, isSecure: request.isSecure))
        case .password:
            authentication = try await self.authenticateByPassword(request, in: container)
        }
        token = authentication.webAuthToken
        try self.rates.check(
            authentication.principal, request.head, from: request.peer, container,
            at: self.world.now)
        if let refusal = plan.scopeRefusal { throw refusal }
        let turn = LongWork.Turn(at: request.longWork, for: plan.tenant)
        if plan.collectsBody, body == nil {
            body = try await self.collect(request.body, &share)
        }
        return Admission(authentication: authentication, body: body, turn: turn)
    }

    /// The same checks for a sender who was proved a moment ago: of the credentials nothing is left
    /// to check, and all rates count.
    func admit(
        _ request: HTTPRequest, by plan: AdmissionPlan, of known: KnownSender,
        _ share: inout BodyBudget.Share, token: inout String?
    ) async throws -> Admission {
        let now = self.world.now
        let isCounted = request.callers?.bugs.contains(.rateNotCountedWhenKnown) != true
        if isCounted { try self.rates.checkAddress(known.counted, at: now) }
        token = known.authentication.webAuthToken
        if isCounted { try self.rates.check(known.counted, at: now) }
        let turn = LongWork.Turn(at: request.longWork, for: plan.tenant)
        var body: Bytes?
        if plan.collectsBody { body = try await self.collect(request.body, &share) }
        return Admission(authentication: known.authentication, body: body, turn: turn)
    }
}
