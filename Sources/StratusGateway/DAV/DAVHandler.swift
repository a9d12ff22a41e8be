import StratusAssets
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
    let kernel: GatewayKernel
    /// Nil where nothing keeps assets.
    let assets: AssetKit?
    let counters: DAVCounters

    static let reading: Set<String> = ["OPTIONS", "GET", "HEAD", "PROPFIND"]
    static let methods: Set<String> = Self.reading.union([
        "PUT", "DELETE", "MKCOL", "COPY", "MOVE", "PROPPATCH", "LOCK", "UNLOCK",
    ])
    static let allowed =
        "OPTIONS, GET, HEAD, PROPFIND, PUT, DELETE, MKCOL, COPY, MOVE, PROPPATCH, LOCK, UNLOCK"

    /// - Parameter fileSizeMax: the largest asset; nil: nothing keeps assets.
    static func bodyLimit(_ method: String, fileSizeMax: UInt64?) -> ByteCount {
        guard method == "PUT" else { return .kibibytes(256) }
        return ByteCount(
            max(DocumentFiles.inlineSizeMax, fileSizeMax.map { Int(clamping: $0) } ?? 0))
    }

    /// A body that took less time needs no second judgement of who sent it.
    private static let judgedFor = Duration.seconds(1)

    static func patience(_ method: String) -> RequestPatience {
        method == "PUT" || method == "GET" ? .transfer : .usual
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
        } catch let failure as AssetFailure {
            self.kernel.note(failure.error, uuid: request.identity.uuid, cause: failure)
            response = DAVFailure(failure).response()
        } catch let failure as BodyFailure {
            response = DAVFailure(AssetFailure(failure)).response()
        } catch {
            let known = ClientError(error)
            self.kernel.note(known, uuid: request.identity.uuid, cause: error)
            response = DAVFailure(known).response()
        }
        if response.status == 401 {
            response.headers.set(
                "WWW-Authenticate", "Basic realm=\"Stratus documents\", charset=\"UTF-8\"")
        }
        response.headers.set("DAV", "1, 2")
        response.headers.set("Cross-Origin-Resource-Policy", "same-origin")
        self.counters.note(request.head.method, response.status)
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
        try self.kernel.rates.check(address: request.peer, at: self.kernel.world.now)
        guard let route = DAVRoute(path: request.head.path) else {
            // Some clients look for every folder above their own, and make those that they miss.
            if DAVRoute.isAboveStores(request.head.path) {
                throw DAVFailure(403, "a store is at /dav/<container>/<environment>/")
            }
            throw DAVFailure(404, "there is nothing at this address")
        }
        let authentication = try await self.authenticate(request, route)
        try self.kernel.rates.check(
            authentication.principal, request.head, from: request.peer, route.container,
            at: self.kernel.world.now)
        guard authentication.principal.kind == .user else {
            throw DAVFailure(403, "only people have documents")
        }
        let password = authentication.appPassword
        if password?.isReadOnly == true, !Self.reading.contains(method) {
            throw DAVFailure(403, "this app password is for reading only")
        }
        var share = BodyBudget.Share(of: self.kernel.bodies)
        let files = DocumentFiles(self.assets, self.kernel)
        let turn = LongWork.Turn(at: request.longWork, for: "\(route.container.container) dav")
        defer { turn.leave() }
        let room = AnswerRoom(of: self.kernel.answers)
        var head = request.head
        // A name of the request would stand for every path that has the same body.
        head.headers.remove("X-Stratus-Request-ID")
        // Each has a deadline of its own, counted from here.
        func service(
            _ body: Bytes, _ content: DocumentContent?, over first: DAVService.Found? = nil
        ) throws -> DAVService {
            let exchange = Exchange(
                kernel: self.kernel, assets: self.assets,
                route: Route(route.container, .private, Self.operation),
                authentication: authentication, head: head, body: body,
                isSecure: request.isSecure, room: room, turn: turn)
            return DAVService(
                documents: DocumentService(exchange: exchange), route: route,
                showsAll: password?.showsAll ?? true, content: content, first: first,
                files: files)
        }
        let began = self.kernel.world.now
        let (body, rest) = try await self.body(request, &share, files)
        var content: DocumentContent?
        var first: DAVService.Found?
        let isStreamed = rest != nil
        if let rest, let files {
            let checks = try service([], nil)
            await turn.take(for: 0)
            let found = try await checks.checkPut()
            first = found
            turn.leave()
            content = try await files.store(
                ResumedBody(body, rest, holding: share), of: Self.length(of: request.head),
                in: checks.exchange.homeDatabase, by: checks.exchange.caller,
                freeing: found.item?.size ?? 0
            ) {
                try await self.judgeAgain(request, route, authentication)
                try await checks.checkWaiting(over: found)
            }
        } else if method == "PUT" {
            content = .inline(body)
            if self.kernel.world.now - began >= Self.judgedFor {
                try await self.judgeAgain(request, route, authentication)
            }
        }
        await turn.take(for: isStreamed ? 0 : body.count)
        var response = try await service(
            isStreamed ? [] : body, content, over: first
        ).respond()
        // A file that is read holds its own room.
        if response.held == nil { response.held = room }
        return response
    }

    private static func length(of head: RequestHead) -> UInt64? {
        head.headers["Content-Length"].flatMap { UInt64($0) }
    }

    /// Reads a body, whole unless it is a file that is too large for a record.
    ///
    /// - Returns: what was read, and what is left of a file.
    private func body(
        _ request: HTTPRequest, _ share: inout BodyBudget.Share, _ files: DocumentFiles?
    ) async throws -> (bytes: Bytes, rest: (any RequestBody)?) {
        let isFile = request.head.method == "PUT"
        let limit = isFile ? DocumentFiles.inlineSizeMax : Self.bodyLimit("", fileSizeMax: nil).raw
        if isFile, let files, let length = Self.length(of: request.head), length > limit {
            guard length <= files.sizeMax else { throw Self.tooLarge(files.sizeMax) }
            return ([], request.body)
        }
        var whole: Bytes = []
        do {
            while let more = try await self.kernel.next(of: request.body) {
                guard share.grow(by: more.count) else { throw InputRefusal.noRoomForBody }
                if whole.isEmpty { whole = more } else { whole += more }
                if whole.count > limit {
                    guard isFile, files != nil else { throw Self.tooLarge(UInt64(limit)) }
                    return (whole, request.body)
                }
            }
        } catch InputRefusal.bodyTooLarge {
            throw Self.tooLarge(files?.sizeMax ?? UInt64(limit))
        }
        return (whole, nil)
    }

    private static func tooLarge(_ limit: UInt64) -> DAVFailure {
        DAVFailure(413, "a file has at most \(limit) bytes here")
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
            return try await self.kernel.authenticator.authenticate(presented)
        }
        guard request.isSecure || self.kernel.settings.takesPlainPasswords else {
            throw DAVFailure(403, "passwords are taken over TLS only")
        }
        guard request.head.headers.values(of: "Authorization").count == 1,
            let password = Self.password(field)
        else { throw DAVFailure(401, "give an app password") }
        return try await self.kernel.authenticator.authenticate(
            presented, password: password, from: SignInService.place(of: request.peer))
    }

    /// Refuses a caller whose app password was withdrawn while the body came.
    private func judgeAgain(
        _ request: HTTPRequest, _ route: DAVRoute, _ first: Authentication
    ) async throws {
        guard first.appPassword != nil else { return }
        let now = try await self.authenticate(request, route)
        guard now.principal.userRecordName == first.principal.userRecordName,
            now.appPassword == first.appPassword
        else { throw DAVFailure(401, "the app password is not good any more") }
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
