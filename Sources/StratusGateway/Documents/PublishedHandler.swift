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
package struct PublishedHandler: Sendable {
    let kernel: GatewayKernel
    /// Nil where nothing keeps assets: then there are no links.
    let assets: AssetKit?
    /// Of each published link.
    private let reads = RequestThrottle(ratePerSecond: Self.rateMax)

    init(_ kernel: GatewayKernel, assets: AssetKit?) {
        self.kernel = kernel
        self.assets = assets
    }

    package static let root = "/published/"
    /// Requests a second with one link at this node, whoever sends them.
    static let rateMax = 20

    package static func isPath(_ path: String) -> Bool { path.hasPrefix(Self.root) }

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        var response: HTTPResponse
        do {
            response = try await self.answer(request)
        } catch {
            response = self.failure(error, of: request)
        }
        response.headers.set("Cross-Origin-Resource-Policy", "same-origin")
        response.headers.set("Referrer-Policy", "no-referrer")
        response.headers.set("X-Robots-Tag", "noindex")
        return response
    }

    private func answer(_ request: HTTPRequest) async throws -> HTTPResponse {
        guard ["GET", "HEAD"].contains(request.head.method) else {
            throw AssetFailure.wrongMethod("GET, HEAD")
        }
        let now = self.kernel.world.now
        try self.kernel.rates.check(address: request.peer, at: now)
        guard let kit = self.assets else { throw AssetFailure.notFound }
        try await kit.keepUp()
        let text = request.head.path.dropFirst(Self.root.count).prefix { $0 != "/" }
        let link: PublishedLink
        do throws(AssetTextRefusal) {
            link = try PublishedLink(
                String(text), openedWith: kit.ciphers.links,
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
        let query = RecordQuery(
            principal: Principal(kind: .system),
            .documents(
                DocumentsAsk(database: link.database, .published(slot: link.slot, secret: secret))))
        var read = try await self.kernel.router.read(
            query.enveloped(), at: .database(link.database),
            deadline: now + self.kernel.limits.commandDeadline)
        try room.keep(&read)
        guard
            case .documents(.content(let item, let version, let content)) = try RecordAnswer(
                decoding: read.body)
        else { throw AssetFailure.broken }
        // Withdrawn, or its file is gone: the same answer as for a link that never was.
        guard let item, let version else { throw AssetFailure.notFound }
        let tag = "\"\(String(version.contentTag, radix: 36))\""
        var headers = DocumentFiles.headers(tag: tag)
        headers.set("Content-Disposition", Self.attachment(item.name))
        if let known = request.head.headers["If-None-Match"], AssetHandler.matches(known, tag) {
            return HTTPResponse(status: 304, headers: headers)
        }
        var response = try await DocumentFiles.answer(
            content, request.head, headers, tag: tag, of: link.database,
            in: DocumentFiles(self.assets, self.kernel),
            by: "\(SignInService.place(of: request.peer)) published")
        if response.held == nil { response.held = room }
        return response
    }

    /// To be saved, whatever its kind.
    private static func attachment(_ name: String) -> String {
        let field = ContentDisposition(name: name).field
        return field.hasPrefix("inline") ? "attachment" + field.dropFirst("inline".count) : field
    }

    private func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
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
