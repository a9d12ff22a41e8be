import StratusCluster
package import StratusHTTP
import StratusIdentity
import StratusModel
package import StratusRuntime
import Synchronization

/// CloudKit Web Services, and all else whose operations stand in ``OperationTable``: takes a request
/// apart, asks who sends it, and turns it into commands and reads for the partitions.
///
/// Answers paths that are no surface's, too: there is no such endpoint.
package struct WebServices: Surface {
    private let kernel: GatewayKernel
    /// Nil where nothing keeps assets.
    private let assets: AssetKit?
    let operations: OperationTable
    /// Whether there are pages where people sign in.
    private let hasPeople: Bool
    /// Another one for each that is made, so for each set of settings.
    private let version: UInt64

    private static let versions = Atomic<UInt64>(0)
    private static let other = RouteLabel("other")

    init(
        _ kernel: GatewayKernel, assets: AssetKit?, hasPeople: Bool = false,
        _ operations: OperationTable
    ) {
        self.kernel = kernel
        self.hasPeople = hasPeople
        self.assets = assets
        self.operations = operations
        self.version = Self.versions.wrappingAdd(1, ordering: .relaxed).newValue
    }

    package var roots: [SurfaceRoot] {
        self.operations.services.map { .prefix($0.service.root) }
    }

    /// What a request asks for.
    package struct Asked: Sendable {
        let route: Route
        let operation: GatewayOperation
    }

    /// - Returns: without a target for a path that leads nowhere. Its body need not be read.
    package func plan(_ head: RequestHead) -> SurfacePlan<Asked?> {
        var admission = AdmissionPlan()
        admission.isRated = true
        let (route, operation): (Route, GatewayOperation)
        do throws(InputRefusal) {
            (route, operation) = try self.operations.route(of: head.path)
        } catch {
            admission.refusal = error
            if error == .unknownPath, let place = NoPage(head, isFront: head.path == "/") {
                admission.refusal = place
            }
            return SurfacePlan(RequestRoute(Self.other), admission: admission, target: nil)
        }
        if !operation.methods.contains(named: head.method) {
            admission.refusal = InputRefusal.wrongMethod(operation.label, method: head.method)
        }
        admission.credentials = .tokens
        admission.container = route.container
        admission.scope = route.scope
        if !operation.scopes.has(route.scope) {
            admission.scopeRefusal = InputRefusal.operationNotInDatabase(
                operation.label, route.scope)
        }
        if case .collected = operation.action { admission.collectsBody = true }
        admission.tenant = route.tenant
        return SurfacePlan(
            // The container says whose app it is; in the log that is what somebody looks for first.
            RequestRoute(
                operation.named,
                fields: [
                    "container": .text(route.container.container),
                    "environment": .text(route.container.environment.name),
                    "database": .text(route.scope.name),
                ]),
            patience: operation.patience, bodySizeMax: operation.bodySizeMax(self.kernel.limits),
            admission: admission, target: Asked(route: route, operation: operation))
    }

    package func respond(_ task: TaskRequest<Asked?>) async -> HTTPResponse {
        await self.respond(task, from: nil)
    }

    private func respond(
        _ task: TaskRequest<Asked?>, from known: KnownSender?
    ) async -> HTTPResponse {
        if task.http.head.method == "OPTIONS" { return CrossOrigin.preflight(task.http) }
        var response = await self.answer(task, from: known)
        if response.ready != nil { return response }
        response = response.finished(task.http)
        CrossOrigin.allow(task.http.head, in: &response.headers)
        return response
    }

    @inline(never)
    private func answer(
        _ task: TaskRequest<Asked?>, from known: KnownSender?
    ) async -> HTTPResponse {
        var response: HTTPResponse
        // Known once the credentials were found good; then its token comes back with errors too.
        var token: String?
        let room = AnswerRoom(of: self.kernel.answers)
        do {
            var answer: GatewayAnswer
            if task.http.patience.isHeld {
                // In a child task: what all of this takes of memory is free while it is held.
                let begun = await inChildTask { await self.begun(task, room) }
                token = begun.token
                answer = try begun.answer.get()
            } else {
                answer = try await self.answer(task, from: known, token: &token, room)
            }
            if case .later(let later) = answer { answer = try await later() }
            if case .json(let bytes) = answer, let lines = known?.lines {
                try room.settle(bytes.count)
                response = HTTPResponse(status: 200, ready: lines, body: .bytes(bytes))
                response.held = room
                return response
            }
            response = try self.response(answer, room)
        } catch let place as NoPage {
            response = self.page(place, task.http)
        } catch {
            response = self.failure(error, of: task.http)
        }
        if let token { Self.returnUserToken(token, in: &response) }
        self.setVersion(in: &response)
        return response
    }

    /// A person typed an address that leads nowhere.
    private struct NoPage: Error {
        let isFront: Bool

        /// Nil: a program asks.
        init?(_ head: RequestHead, isFront: Bool) {
            guard ["GET", "HEAD"].contains(head.method),
                head.headers.values(of: "Accept").contains(where: { $0.contains("text/html") })
            else { return nil }
            self.isFront = isFront
        }
    }

    private func page(_ place: NoPage, _ request: HTTPRequest) -> HTTPResponse {
        guard place.isFront else {
            var html = PeoplePage(nonce: request.identity.uuid)
            html.choose(nil, request.head)
            return html.message(404, html.text.page.notFound)
        }
        return PeoplePage(nonce: request.identity.uuid, at: "/", request.head)
            .front(hasPeople: self.hasPeople)
    }

    private static let version: HeaderFields = ["X-Apple-CloudKit-Version": "1.0"]
    private static let versionOfJSON: HeaderFields = [
        "Content-Type": "application/json; charset=UTF-8", "X-Apple-CloudKit-Version": "1.0",
    ]

    /// The form of what the server refuses by itself, whatever the request was about.
    func form(
        of error: ClientError, _ identity: RequestIdentity? = nil
    ) -> (headers: HeaderFields, body: Bytes)? {
        let uuid = (identity ?? self.kernel.world.drawIdentity()).uuid
        var writer = JSONWriter(hasExtensions: self.kernel.settings.hasExtensions)
        writer.writeFailure(error, uuid: uuid)
        let headers: HeaderFields = [
            "Content-Type": "application/json; charset=UTF-8", "X-Apple-Request-UUID": uuid,
            "Access-Control-Allow-Origin": "*", "Cache-Control": "no-store",
        ]
        return (headers, writer.finish())
    }

    private func begun(
        _ task: TaskRequest<Asked?>, _ room: AnswerRoom
    ) async -> (answer: Result<GatewayAnswer, any Error>, token: String?) {
        var token: String?
        do {
            let answer = try await self.answer(task, from: nil, token: &token, room)
            return (.success(answer), token)
        } catch {
            return (.failure(error), token)
        }
    }

    private func answer(
        _ task: TaskRequest<Asked?>, from known: KnownSender?, token: inout String?,
        _ room: AnswerRoom
    ) async throws -> GatewayAnswer {
        let request = task.http
        guard let target = task.target else {
            try self.kernel.enter(request, by: task.plan.admission)
            preconditionFailure("a path that leads nowhere is refused")
        }
        let operation = target.operation
        var share = BodyBudget.Share(of: self.kernel.bodies)
        let admission: Admission
        if let known {
            admission = try await self.kernel.admit(
                request, by: task.plan.admission, of: known, &share, token: &token)
        } else {
            // Before the proof: what is withdrawn meanwhile ends it.
            let epoch = self.kernel.authenticator.epoch?.current
            admission = try await self.kernel.admit(
                request, by: task.plan.admission, &share, token: &token)
            if let epoch { self.remember(task, target, admission.authentication, since: epoch) }
        }
        defer { admission.turn.leave() }
        let exchange = Exchange(
            kernel: self.kernel, assets: self.assets, route: target.route,
            authentication: admission.authentication, head: request.head,
            body: admission.body ?? [], isSecure: request.isSecure, room: room, turn: admission.turn
        )
        switch operation.action {
        case .collected(let run):
            await admission.turn.take(for: exchange.body.count)
            let input = try self.input(exchange.body)
            if operation.need == .user { try await exchange.requireUser() }
            return try await run(exchange, input)
        case .pulled(_, let run):
            if operation.need == .user { try await exchange.requireUser() }
            return try await run(exchange, admission.body.map { CollectedBody($0) } ?? request.body)
        }
    }

    // MARK: Known callers

    /// The plan of a request that looks like one whose sender was proved a moment ago.
    func knownPlan(
        _ view: RequestView, _ bytes: Span<UInt8>, _ call: SurfaceCall
    ) -> RequestPlan? {
        guard
            let caller = call.callers.caller(of: view, bytes, isSecure: call.isSecure)
        else { return nil }
        let bugs = call.callers.bugs
        guard caller.version == self.version,
            caller.epoch == self.kernel.authenticator.epoch?.current
                || bugs.contains(.knownCallerIgnoresEpoch),
            self.kernel.world.now < caller.goodUntil || bugs.contains(.knownCallerNeverExpires)
        else {
            call.callers.forget(caller)
            return nil
        }
        // A signature is judged each time: it covers the body.
        return SignedRequest.isPresent(in: view, bytes) ? nil : caller.plan
    }

    /// Keeps what was proved of a sender for the next requests of the connection.
    private func remember(
        _ task: TaskRequest<Asked?>, _ target: Asked, _ authentication: Authentication,
        since epoch: UInt64
    ) {
        let (request, plan) = (task.http, task.plan)
        guard let callers = request.callers, let end = authentication.provedUntil,
            authentication.signed == nil, !plan.patience.isHeld,
            case .collected = target.operation.action, self.kernel.world.now < end
        else { return }
        let sender = KnownSender(
            authentication,
            self.kernel.rates.kept(
                authentication.principal, request.head, from: request.peer,
                target.route.container, at: self.kernel.world.now),
            self.lines(of: authentication, request))
        let known = RequestPlan(
            plan.route.written, bodySizeMax: plan.bodySizeMax, patience: plan.patience
        ) { await self.respond(TaskRequest($0, plan), from: sender) }
        callers.keep(
            KnownCaller(
                of: request.head, isSecure: request.isSecure, goodUntil: end, epoch: epoch,
                version: self.version, plan: known))
    }

    /// What stands in each answer with JSON to this sender.
    private func lines(
        of authentication: Authentication, _ request: HTTPRequest
    ) -> ReadyLines? {
        var first = HTTPResponse(status: 200)
        if let token = authentication.webAuthToken { Self.returnUserToken(token, in: &first) }
        self.setVersion(in: &first)
        first.headers.set("Cache-Control", "no-store")
        var last = HeaderFields()
        CrossOrigin.allow(request.head, in: &last)
        guard ReadyLines.holds(first.headers), ReadyLines.holds(last) else { return nil }
        return ReadyLines(first.headers, identity: "X-Apple-Request-UUID", last)
    }

    private func setVersion(in response: inout HTTPResponse) {
        response.headers.set(
            response.headers.contains("Content-Type") ? Self.version : Self.versionOfJSON)
        if let policy = self.kernel.rates.policy {
            response.headers.set("RateLimit-Policy", policy)
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

    package func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        let (cause, uuid) = (error, request.identity.uuid)
        let error = ClientError(error)
        self.kernel.note(error, uuid: uuid, cause: cause)
        var writer = JSONWriter(hasExtensions: self.kernel.settings.hasExtensions)
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
