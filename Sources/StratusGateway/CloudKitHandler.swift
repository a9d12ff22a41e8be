import StratusCluster
package import StratusHTTP
import StratusIdentity
package import StratusModel
package import StratusRuntime

/// CloudKit Web Services: takes a request apart, asks who sends it, and turns it into commands and
/// reads for the partitions.
///
/// Keeps nothing between requests but caches of what partitions say, so any node can answer any
/// request, and one client's mistake stays in its own answer.
package final class CloudKitHandler: HTTPHandler {
    package let kernel: GatewayKernel
    let operations: OperationTable
    private let needs: GatewayNeeds
    private let dav: DAVHandler
    private let published: PublishedHandler
    private let polls: PollService

    /// - Parameter operations: nil: those that the program serves.
    package init(
        _ kernel: GatewayKernel, _ needs: GatewayNeeds = GatewayNeeds(),
        operations: OperationTable? = nil
    ) {
        self.kernel = kernel
        self.needs = needs
        self.operations = operations ?? .standard(needs, kernel.settings)
        self.dav = DAVHandler(
            kernel: kernel, assets: needs.assets, counters: needs.davCounters)
        self.published = PublishedHandler(kernel, assets: needs.assets)
        self.polls = PollService(kernel: kernel)
    }

    package func bodyLimit(for head: RequestHead) -> ByteCount {
        if self.needs.people != nil, SignInService.isPage(head.path) {
            return SignInService.bodySizeMax
        }
        if PollService.isPoll(head.path) { return PollService.bodySizeMax }
        if DAVRoute.isPath(head.path) {
            return DAVHandler.bodyLimit(
                head.method, fileSizeMax: self.needs.assets?.settings.sizeMax)
        }
        // What goes nowhere need not be read.
        return self.operations.operation(at: head.path)?.bodySizeMax(self.kernel.limits)
            ?? .kibibytes(64)
    }

    package func patience(for head: RequestHead) -> RequestPatience {
        if PollService.isPoll(head.path) { return .held }
        if DAVRoute.isPath(head.path) { return DAVHandler.patience(head.method) }
        if PublishedHandler.isPath(head.path) { return .transfer }
        return self.operations.operation(at: head.path)?.patience ?? .usual
    }

    /// Leaves the work to others: a poll that is held keeps this function's frame too.
    package func respond(to request: HTTPRequest) async -> HTTPResponse {
        let path = request.head.path
        if let people = self.needs.people, SignInService.isPage(path) {
            var page = await people.respond(to: request)
            page.headers.set("X-Apple-Request-UUID", request.identity.uuid)
            return page
        }
        if DAVRoute.isPath(path) {
            return Self.finished(await self.dav.respond(to: request), request)
        }
        if PublishedHandler.isPath(path) {
            return Self.finished(
                await self.published.respond(to: request), request)
        }
        var response: HTTPResponse
        if request.head.method == "OPTIONS" {
            response = CrossOrigin.preflight()
            response.headers.set("X-Apple-Request-UUID", request.identity.uuid)
        } else if PollService.isPoll(path) {
            response = Self.finished(
                await self.polls.respond(to: request), request)
        } else {
            response = Self.finished(await self.answer(request), request)
        }
        CrossOrigin.allow(request.head, in: &response.headers)
        return response
    }

    @inline(never)
    private static func finished(_ response: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
        var response = response
        // What one person was told is nobody else's to keep.
        response.headers.set("Cache-Control", "no-store")
        response.headers.set("X-Apple-Request-UUID", request.identity.uuid)
        return response
    }

    @inline(never)
    private func answer(_ request: HTTPRequest) async -> HTTPResponse {
        var response: HTTPResponse
        // Known once the credentials were found good; then its token comes back with errors too.
        var token: String?
        let room = AnswerRoom(of: self.kernel.answers)
        do {
            var answer: GatewayAnswer
            if request.patience.isHeld {
                // In a child task: what all of this takes of memory is free while it is held.
                let begun = await inChildTask { await self.begun(request, room) }
                token = begun.token
                answer = try begun.answer.get()
            } else {
                answer = try await self.answer(request, token: &token, room)
            }
            if case .later(let later) = answer { answer = try await later() }
            response = try self.response(answer, room)
        } catch {
            response = self.failure(ClientError(error), uuid: request.identity.uuid, cause: error)
        }
        if let token { Self.returnUserToken(token, in: &response) }
        response.headers.set(
            response.headers.contains("Content-Type") ? Self.version : Self.versionOfJSON)
        if let policy = self.kernel.rates.policy {
            response.headers.set("RateLimit-Policy", policy)
        }
        return response
    }

    private static let version: HeaderFields = ["X-Apple-CloudKit-Version": "1.0"]
    private static let versionOfJSON: HeaderFields = [
        "Content-Type": "application/json; charset=UTF-8", "X-Apple-CloudKit-Version": "1.0",
    ]

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        let uuid = self.kernel.world.drawIdentity().uuid
        var writer = JSONWriter()
        writer.writeFailure(ClientError(refusal), uuid: uuid)
        let headers: HeaderFields = [
            "Content-Type": "application/json; charset=UTF-8", "X-Apple-Request-UUID": uuid,
            "Access-Control-Allow-Origin": "*", "Cache-Control": "no-store",
        ]
        return (headers, writer.finish())
    }

    private func begun(
        _ request: HTTPRequest, _ room: AnswerRoom
    ) async -> (answer: Result<GatewayAnswer, any Error>, token: String?) {
        var token: String?
        do {
            return (.success(try await self.answer(request, token: &token, room)), token)
        } catch {
            return (.failure(error), token)
        }
    }

    private func answer(
        _ request: HTTPRequest, token: inout String?, _ room: AnswerRoom
    ) async throws -> GatewayAnswer {
        try self.kernel.rates.check(address: request.peer, at: self.kernel.world.now)
        let route = try self.operations.route(of: request.head.path)
        let operation = route.operation
        guard operation.methods.contains(named: request.head.method) else {
            throw InputRefusal.wrongMethod(operation.label, method: request.head.method)
        }
        let needsBody = self.kernel.authenticator.needsBody(request.head)
        var share = BodyBudget.Share(of: self.kernel.bodies)
        var body = needsBody ? try await self.kernel.collect(request.body, &share) : []
        let authentication = try await self.kernel.authenticator.authenticate(
            PresentedRequest(
                head: request.head, body: body, container: route.container, scope: route.scope,
                isSecure: request.isSecure))
        token = authentication.webAuthToken
        try self.kernel.rates.check(
            authentication.principal, request.head, from: request.peer, route.container,
            at: self.kernel.world.now)
        guard operation.scopes.has(route.scope) else {
            throw InputRefusal.operationNotInDatabase(operation.label, route.scope)
        }
        let turn = LongWork.Turn(at: request.longWork, for: route.tenant)
        defer { turn.leave() }
        switch operation.action {
        case .collected(let run):
            if !needsBody { body = try await self.kernel.collect(request.body, &share) }
            let exchange = Exchange(
                kernel: self.kernel, assets: self.needs.assets, route: route,
                authentication: authentication, head: request.head,
                body: body, isSecure: request.isSecure, mayWait: request.mayWait, room: room,
                turn: turn)
            await turn.take(for: body.count)
            let input = try self.input(body)
            if operation.need == .user { try await exchange.requireUser() }
            return try await run(exchange, input)
        case .pulled(_, let run):
            let exchange = Exchange(
                kernel: self.kernel, assets: self.needs.assets, route: route,
                authentication: authentication, head: request.head,
                body: body, isSecure: request.isSecure, mayWait: request.mayWait, room: room,
                turn: turn)
            if operation.need == .user { try await exchange.requireUser() }
            return try await run(exchange, needsBody ? CollectedBody(body) : request.body)
        }
    }

    private func response(
        _ answer: GatewayAnswer, _ room: AnswerRoom
    ) throws(RouteError) -> HTTPResponse {
        var response: HTTPResponse
        switch answer {
        case .json(let bytes):
            try room.settle(bytes.count)
            response = HTTPResponse(status: 200, body: .bytes(bytes))
        case .file(let bytes, let headers):
            try room.settle(bytes.count)
            response = HTTPResponse(status: 200, headers: headers, body: .bytes(bytes))
        case .whole(let whole):
            if case .bytes(let bytes) = whole.body { try room.settle(bytes.count) }
            response = whole
        case .stream(let body, let length, let contentType):
            response = HTTPResponse(
                status: 200, headers: ["Content-Type": contentType],
                body: .stream(body, length: length))
        case .events(let body):
            response = HTTPResponse(
                status: 200,
                headers: [
                    "Content-Type": "text/event-stream",
                    // Proxies that would collect an answer must not.
                    "X-Accel-Buffering": "no",
                ], body: .stream(body, length: nil))
        case .nothing: response = HTTPResponse(status: 204)
        case .later: preconditionFailure("what comes later has not come")
        }
        response.held = room
        return response
    }

    /// The body as an object, whatever its Content-Type says it is. None at all is an empty one.
    private func input(_ body: Bytes) throws(InputRefusal) -> Input {
        let document: JSONDocument
        var limits = JSONLimits()
        do throws(JSONError) {
            // One field's broken value is that operation's error, not the request's.
            limits.keepsUnreadable = true
            document = try JSONDocument(
                parsing: body.isEmpty ? Bytes("{}".utf8) : body, limits: limits)
        } catch {
            // It may well be JSON.
            if error.kind == .tooManyValues { throw .tooManyValues(limit: limits.valueCountMax) }
            throw .unreadableJSON(offset: error.offset)
        }
        guard let object = document.root.object else { throw .unreadableJSON(offset: 0) }
        return Input(object)
    }

    private func failure(_ error: ClientError, uuid: String, cause: any Error) -> HTTPResponse {
        self.kernel.note(error, uuid: uuid, cause: cause)
        var writer = JSONWriter()
        writer.writeFailure(error, uuid: uuid)
        var response = HTTPResponse(status: error.code.status, body: .bytes(writer.finish()))
        // Some clients read the header, others the body.
        if let retryAfter = error.retryAfter {
            response.headers.set("Retry-After", String(retryAfter))
        }
        return response
    }

    /// Every answer to a signed-in caller brings the token for the next request, under both of its
    /// names.
    private static func returnUserToken(_ token: String, in response: inout HTTPResponse) {
        response.headers.set("X-Apple-CloudKit-Web-Auth-Token", token)
        response.headers.set("X-Apple-CloudKit-Session", token)
    }
}
