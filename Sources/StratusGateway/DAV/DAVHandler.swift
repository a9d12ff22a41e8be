import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Answers WebDAV (RFC 4918, class 1 and 2) over the documents of the caller.
///
/// A client shows an app password with every request, as `Basic`. API and web-auth tokens work too.
/// Nothing of another origin is allowed in: no answer has the headers of CORS, and `POST` is
/// refused.
struct DAVHandler: Sendable {
    let handler: CloudKitHandler

    static let reading: Set<String> = ["OPTIONS", "GET", "HEAD", "PROPFIND"]
    static let methods: Set<String> = Self.reading.union([
        "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "PROPPATCH", "LOCK", "UNLOCK",
    ])
    static let allowed =
        "OPTIONS, GET, HEAD, PROPFIND, PUT, DELETE, MKCOL, COPY, MOVE, PROPPATCH, LOCK, UNLOCK"

    static func bodyLimit(_ method: String) -> ByteCount {
        method == "PUT" ? .kibibytes(512) : .kibibytes(256)
    }

    /// What stands in an exchange for the operation. It is in no table: WebDAV has methods instead.
    private static let operation = GatewayOperation(
        "dav", of: .dav, label: "dav", in: .private, needs: .user,
        .collected { _, _ in throw RouteError.refused("not an operation") })

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        var response: HTTPResponse
        do {
            response = try await self.answer(request)
        } catch let failure as DAVFailure {
            response = failure.response()
        } catch {
            let known = ClientError(error)
            self.handler.note(known, uuid: request.identity.uuid, cause: error)
            response = DAVFailure(known).response()
        }
        if response.status == 401 {
            response.headers.set(
                "WWW-Authenticate", "Basic realm=\"Stratus documents\", charset=\"UTF-8\"")
        }
        response.headers.set("DAV", "1, 2")
        response.headers.set("Cross-Origin-Resource-Policy", "same-origin")
        self.handler.davCounters?.note(request.head.method, response.status)
        return response
    }

    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        let method = request.head.method
        guard Self.methods.contains(method) else {
            var failure = DAVFailure(405, "WebDAV has no method '\(ClientError.quoted(method))'")
            failure.headers.set("Allow", Self.allowed)
            throw failure
        }
        if method == "OPTIONS" {
            // Clients ask before they show who they are, and learn nothing of any store.
            return HTTPResponse(
                status: 200, headers: ["Allow": Self.allowed, "MS-Author-Via": "DAV"])
        }
        try self.handler.rates?.check(address: request.peer, at: self.handler.world.now)
        guard let route = DAVRoute(path: request.head.path) else {
            throw DAVFailure(404, "there is nothing at this address")
        }
        let authentication = try await self.authenticate(request, route)
        try self.handler.rates?.check(
            authentication.principal, request.head, from: request.peer, route.container,
            at: self.handler.world.now)
        guard authentication.principal.kind == .user else {
            throw DAVFailure(403, "only people have documents")
        }
        let password = authentication.appPassword
        if password?.isReadOnly == true, !Self.reading.contains(method) {
            throw DAVFailure(403, "this app password is for reading only")
        }
        var share = BodyBudget.Share(of: self.handler.bodies)
        let body = try await self.body(request, &share)
        let turn = LongWork.Turn(at: request.longWork, for: "\(route.container.container) dav")
        defer { turn.leave() }
        let room = AnswerRoom(of: self.handler.answers)
        var head = request.head
        // A name of the request would stand for every path that has the same body.
        head.headers.remove("X-Stratus-Request-ID")
        let exchange = Exchange(
            handler: self.handler, route: Route(route.container, .private, Self.operation),
            authentication: authentication, head: head, body: body, isSecure: request.isSecure,
            room: room, turn: turn)
        try exchange.requireLevel(.two)
        await turn.take(for: body.count)
        let service = DAVService(
            documents: DocumentService(exchange: exchange), route: route,
            showsAll: password?.showsAll ?? true)
        var response = try await service.respond()
        response.held = room
        return response
    }

    private func body(
        _ request: HTTPRequest, _ share: inout BodyBudget.Share
    ) async throws -> Bytes {
        do throws(InputRefusal) {
            let body = try await self.handler.collect(request.body, &share)
            guard body.count <= Self.bodyLimit(request.head.method).raw else {
                throw InputRefusal.bodyTooLarge(Self.bodyLimit(request.head.method))
            }
            return body
        } catch {
            guard case .bodyTooLarge(let limit) = error else { throw error }
            throw DAVFailure(413, "a file has at most \(limit.raw) bytes here")
        }
    }

    // MARK: Who asks

    private func authenticate(
        _ request: HTTPRequest, _ route: DAVRoute
    ) async throws -> Authentication {
        let presented = PresentedRequest(
            head: request.head, container: route.container, scope: .private,
            isSecure: request.isSecure)
        guard let field = request.head.headers["Authorization"] else {
            guard TokenCredentials(query: request.head.query).apiToken != nil else {
                throw DAVFailure(401, "give an app password")
            }
            return try await self.handler.authenticator.authenticate(presented)
        }
        guard request.isSecure || self.handler.settings.takesPlainPasswords else {
            throw DAVFailure(403, "passwords are taken over TLS only")
        }
        guard request.head.headers.values(of: "Authorization").count == 1,
            let password = Self.password(field)
        else { throw DAVFailure(401, "give an app password") }
        return try await self.handler.authenticator.authenticate(
            presented, password: password, from: SignInService.place(of: request.peer))
    }

    /// The password of `Basic`. The name before it may be any: the password says whose it is.
    private static func password(_ field: String) -> String? {
        let parts = field.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "basic",
            let bytes = Base64.decode(String(parts[1])), bytes.count <= 1_024,
            let colon = bytes.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        return String(validating: bytes[(colon + 1)...], as: UTF8.self)
    }
}
