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
struct DAVSurface: Surface {
    let kernel: GatewayKernel
    /// Nil where nothing keeps assets.
    let assets: AssetKit?
    let counters: DAVCounters

    init(_ kernel: GatewayKernel, assets: AssetKit?, counters: DAVCounters) {
        self.kernel = kernel
        self.assets = assets
        self.counters = counters
    }

    var roots: [SurfaceRoot] { [.prefix(DAVRoute.root)] }

    /// The rest of the path is a person's: never in a log.
    private static let label = RouteLabel("dav")

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

    /// - Returns: without a target for a path that names no place in a store.
    func plan(_ head: RequestHead) -> SurfacePlan<DAVRoute?> {
        let route = DAVRoute(path: head.path)
        var admission = AdmissionPlan()
        admission.isRated = true
        admission.refusal = Self.refusal(head.method, route, head.path)
        admission.credentials = .password
        admission.container = route?.container
        admission.tenant = "\(route?.container.container ?? "") dav"
        return SurfacePlan(
            RequestRoute(Self.label), patience: Self.patience(head.method),
            bodySizeMax: Self.bodyLimit(
                head.method, fileSizeMax: self.assets?.settings.sizeMax),
            admission: admission, target: route)
    }

    private static func refusal(
        _ method: String, _ route: DAVRoute?, _ path: String
    ) -> DAVFailure? {
        guard Self.methods.contains(method) else {
            var failure = DAVFailure(405, "WebDAV has no method '\(ClientError.quoted(method))'")
            failure.headers.set("Allow", Self.allowed)
            return failure
        }
        guard route == nil else { return nil }
        // Some clients look for every folder above their own, and make those that they miss.
        return DAVRoute.isAboveStores(path)
            ? DAVFailure(403, "a store is at /dav/<container>/<environment>/")
            : DAVFailure(404, "there is nothing at this address")
    }

    func respond(_ task: TaskRequest<DAVRoute?>) async -> HTTPResponse {
        let request = task.http
        var response: HTTPResponse
        if request.head.method == "OPTIONS" {
            // Clients ask before they show who they are, and learn nothing of any store.
            response = HTTPResponse(
                status: 200, headers: ["Allow": Self.allowed, "MS-Author-Via": "DAV"])
        } else {
            do { response = try await self.answer(task) } catch {
                response = self.failure(error, of: request)
            }
        }
        if response.status == 401 {
            response.headers.set(
                "WWW-Authenticate", "Basic realm=\"Stratus documents\", charset=\"UTF-8\"")
        }
        response.headers.set("DAV", "1, 2")
        response.headers.set("Cross-Origin-Resource-Policy", "same-origin")
        self.counters.note(request.head.method, response.status)
        return response.finished(request)
    }

    func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        let uuid = request.identity.uuid
        switch error {
        case let failure as DAVFailure: return failure.response()
        case let failure as AssetFailure:
            self.kernel.note(failure.error, uuid: uuid, cause: failure)
            return DAVFailure(failure).response()
        case let failure as BodyFailure: return DAVFailure(AssetFailure(failure)).response()
        default:
            let known = ClientError(error)
            self.kernel.note(known, uuid: uuid, cause: error)
            return DAVFailure(known).response()
        }
    }

    private func answer(_ task: TaskRequest<DAVRoute?>) async throws -> HTTPResponse {
        let request = task.http
        let method = request.head.method
        guard let route = task.target else {
            try self.kernel.enter(request, by: task.plan.admission)
            preconditionFailure("a path that names no place is refused")
        }
        var share = BodyBudget.Share(of: self.kernel.bodies)
        var token: String?
        let admission = try await self.kernel.admit(
            request, by: task.plan.admission, &share, token: &token)
        let (authentication, turn) = (admission.authentication, admission.turn)
        defer { turn.leave() }
        guard authentication.principal.kind == .user else {
            throw DAVFailure(403, "only people have documents")
        }
        let password = authentication.appPassword
        if password?.isReadOnly == true, !Self.reading.contains(method) {
            throw DAVFailure(403, "this app password is for reading only")
        }
        let files = DocumentFiles(self.assets, self.kernel)
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
                route: Route(route.container, .private, "dav"),
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
                in: checks.exchange.holder.home, by: checks.exchange.sender.name,
                freeing: found.item?.size ?? 0
            ) {
                try await self.judgeAgain(request, route.container, authentication)
                try await checks.checkWaiting(over: found)
            }
        } else if method == "PUT" {
            content = .inline(body)
            if self.kernel.world.now - began >= Self.judgedFor {
                try await self.judgeAgain(request, route.container, authentication)
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

    /// Refuses a caller whose app password was withdrawn while the body came.
    private func judgeAgain(
        _ request: HTTPRequest, _ container: ContainerReference, _ first: Authentication
    ) async throws {
        guard first.appPassword != nil else { return }
        let now = try await self.kernel.authenticateByPassword(request, in: container)
        guard now.principal.userRecordName == first.principal.userRecordName,
            now.appPassword == first.appPassword
        else { throw DAVFailure(401, "the app password is not good any more") }
    }
}

extension GatewayKernel {
    /// Judges an app password of WebDAV, or tokens where none is shown.
    func authenticateByPassword(
        _ request: HTTPRequest, in container: ContainerReference
    ) async throws -> Authentication {
        let presented = PresentedRequest(
            head: request.head, container: container, scope: .private,
            isSecure: request.isSecure)
        guard let field = request.head.headers["Authorization"] else {
            guard TokenCredentials(query: request.head.query).apiToken != nil else {
                throw DAVFailure(401, "give an app password")
            }
            return try await self.authenticator.authenticate(presented)
        }
        guard request.isSecure || self.settings.takesPlainPasswords else {
            throw DAVFailure(403, "passwords are taken over TLS only")
        }
        guard request.head.headers.values(of: "Authorization").count == 1,
            let password = Self.password(field)
        else { throw DAVFailure(401, "give an app password") }
        return try await self.authenticator.authenticate(
            presented, password: password, from: SocketAddress.site(of: request.peer))
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
