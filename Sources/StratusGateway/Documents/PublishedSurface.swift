import StratusAssets
import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Answers published links: one content for whoever has the link, and nothing else.
///
/// Credentials on such a request are ignored. What is answered is somebody's file on this origin:
/// it is to be saved, and no browser runs it.
struct PublishedSurface: Surface {
    let kernel: GatewayKernel
    /// Nil where nothing keeps assets: then there are no links.
    let assets: AssetKit?
    /// Of each published link.
    private let reads = RequestThrottle(ratePerSecond: Self.rateMax)

    init(_ kernel: GatewayKernel, assets: AssetKit?) {
        self.kernel = kernel
        self.assets = assets
    }

    static let root = "/published/"
    /// Requests a second with one link at this node, whoever sends them.
    static let rateMax = 20
    /// The rest of the path is a permission: never in a log.
    private static let label = RouteLabel("published")

    var roots: [SurfaceRoot] { [.prefix(Self.root)] }

    /// The target is the text of the link.
    func plan(_ head: RequestHead) -> SurfacePlan<String> {
        var admission = AdmissionPlan()
        admission.isRated = true
        if !["GET", "HEAD"].contains(head.method) {
            admission.refusal = AssetFailure.wrongMethod("GET, HEAD")
        }
        return SurfacePlan(
            RequestRoute(Self.label), patience: .transfer, admission: admission,
            target: String(head.path.dropFirst(Self.root.count).prefix { $0 != "/" }))
    }

    func respond(_ task: TaskRequest<String>) async -> HTTPResponse {
        var response: HTTPResponse
        do { response = try await self.answer(task) } catch {
            response = self.failure(error, of: task.http)
        }
        response.headers.set("Cross-Origin-Resource-Policy", "same-origin")
        response.headers.set("Referrer-Policy", "no-referrer")
        response.headers.set("X-Robots-Tag", "noindex")
        return response.finished(task.http)
    }

    private func answer(_ task: TaskRequest<String>) async throws -> HTTPResponse {
        let request = task.http
        try self.kernel.enter(request, by: task.plan.admission)
        let now = self.kernel.world.now
        guard let kit = self.assets else { throw AssetFailure.notFound }
        try await kit.keepUp()
        let link: PublishedLink
        do throws(AssetTextRefusal) {
            link = try PublishedLink(
                task.target, openedWith: kit.ciphers.links,
                at: self.kernel.world.wallMilliseconds)
        } catch {
            throw error == .expired ? AssetFailure.gone("the link has ended") : .notFound
        }
        let secret = RequestIdentity(
            high: UInt64(truncatingIfNeeded: link.secret >> 64),
            low: UInt64(truncatingIfNeeded: link.secret)
        ).description
        if let wait = self.reads.wait(of: secret, at: now) {
            throw ClientError(
                .throttled, "too many requests with this link, retry later",
                retryAfter: ClientError.seconds(wait))
        }
        guard try await kit.isOpen(link.database.container, link.database.owner) else {
            throw AssetFailure.notFound
        }
        let room = AnswerRoom(of: self.kernel.answers)
        var caller = Caller.system()
        caller.room = room
        let ask = DocumentsAsk(
            database: link.database, .published(slot: link.slot, secret: secret))
        guard
            case .documents(.content(let item, let version, let content)) =
                try await self.kernel.partitions.plain.ask(
                    RecordQuery.Ask.documents(ask), at: .database(link.database), as: caller)
        else { throw AssetFailure.broken }
        // Withdrawn, or its file is gone: the same answer as for a link that never was.
        guard let item, let version else { throw AssetFailure.notFound }
        let tag = "\"\(String(version.contentTag, radix: 36))\""
        var headers = DocumentFiles.headers(tag: tag)
        headers.set("Content-Disposition", Self.attachment(item.name))
        if let known = request.head.headers["If-None-Match"], AssetSurface.matches(known, tag) {
            return HTTPResponse(status: 304, headers: headers)
        }
        var response = try await DocumentFiles.answer(
            content, request.head, headers, tag: tag, of: link.database,
            in: DocumentFiles(self.assets, self.kernel),
            by: "\(SocketAddress.site(of: request.peer)) published")
        if response.held == nil { response.held = room }
        return response
    }

    /// To be saved, whatever its kind.
    private static func attachment(_ name: String) -> String {
        let field = ContentDisposition(name: name).field
        return field.hasPrefix("inline") ? "attachment" + field.dropFirst("inline".count) : field
    }

    func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        let known: ClientError
        var status: Int
        var headers: HeaderFields = [
            "Content-Type": "text/plain; charset=UTF-8", "X-Content-Type-Options": "nosniff",
        ]
        if let error = error as? ClientError {
            known = error
            status = error.code.status
        } else {
            let failure = AssetFailure(error)
            known = failure.error
            status = failure.status
            if case .wrongMethod(let methods) = failure { headers.set("Allow", methods) }
            if case .unsatisfiable(let size) = failure {
                headers.set("Content-Range", ByteRange.contentRange(unsatisfiedOf: size))
            }
        }
        if status >= 500 { self.kernel.note(known, uuid: request.identity.uuid, cause: error) }
        if let retryAfter = known.retryAfter {
            headers.set("Retry-After", String(retryAfter))
            if status < 500 { status = 429 }
        }
        return HTTPResponse(
            status: status, headers: headers, body: .bytes(Bytes((known.reason + "\n").utf8)))
    }
}
