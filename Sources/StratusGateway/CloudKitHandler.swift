package import StratusCluster
package import StratusHTTP
package import StratusIdentity
package import StratusModel
package import StratusRuntime
package import StratusSealing

/// CloudKit Web Services: takes a request apart, asks who sends it, and turns it into commands and
/// reads for the partitions.
///
/// Keeps nothing between requests but caches of what partitions say, so any node can answer any
/// request, and one client's mistake stays in its own answer.
package final class CloudKitHandler: HTTPHandler {
    let router: any PartitionRouter
    let authenticator: any Authenticator
    let world: any World
    let cipher: TokenCipher
    let settings: GatewaySettings
    let limits: Limits
    let log: Log
    let operations: OperationTable
    /// The sign-in service; nil where nobody can sign in (tests of everything else).
    let people: SignInService?
    /// Nil where nothing keeps assets (tests of everything else).
    let assets: AssetKit?
    /// Of each published link.
    let publishedReads: RequestThrottle
    /// What encrypted fields are sealed under. Nil where there are none (tests of everything else).
    let keys: DatabaseKeys?
    let schemas = SchemaCache()
    let taughtSchemas = TaughtSchemas()
    let bucketUses = BucketUses()
    let readyQueries = ReadyQueries()
    let zoneBuckets = ZoneBucketCache()
    /// The polls that are held at this node.
    let seats: PollSeats
    /// The live streams of this node.
    let live: LiveStreams
    /// Nil where nothing is sent to push providers.
    let push: PushRegistry?
    /// What poll tokens are proved by: the same for as long as the installation lives.
    let tokens: TokenCipher
    /// Look-ups that need more than one answer of a partition. This many keep the storage thread
    /// and the loops busy.
    let longReads = LongWork(4)
    let bodies: BodyBudget
    let answers: AnswerBudget
    let rates: RequestRates?
    /// Look-ups of people, by caller.
    let userLookUps: RequestThrottle?
    /// Nil where nobody counts (tests of everything else).
    let keyValueCounters: KeyValueCounters?
    let davCounters: DAVCounters?
    /// Syncs of key-value stores that bring changes, by user.
    let keyValueSyncs: RequestThrottle?

    /// - Parameter tokenKey: 32 secret bytes, the same on every node and over every restart: what
    ///   clients' sync tokens are sealed with.
    /// - Parameter feeds: what seals them instead, where its keys change; made with `tokenKey`.
    /// - Parameter bodies: shared by every handler of a node, so that one that follows another
    ///   counts what the other still holds; nil: one of its own, by the limits.
    /// - Parameter polls: the same of polls.
    /// - Parameter answers: the same of answers, shared with the node's replicas.
    package init(
        router: any PartitionRouter, authenticator: any Authenticator, world: any World,
        tokenKey: Bytes, feeds: TokenCipher? = nil, settings: GatewaySettings = GatewaySettings(),
        limits: Limits = Limits(), bodies: BodyBudget? = nil, answers: AnswerBudget? = nil,
        people: SignInService? = nil, assets: AssetKit? = nil,
        keys: DatabaseKeys? = nil, operations: OperationTable = .standard,
        polls: HeldPolls = HeldPolls(),
        push: PushRegistry? = nil, keyValueCounters: KeyValueCounters? = nil,
        davCounters: DAVCounters? = nil, log: Log = .silent()
    ) {
        self.bodies = bodies ?? BodyBudget(limits.bufferedBodySizeMax)
        self.answers = answers ?? AnswerBudget(limits.bufferedAnswerSizeMax)
        self.seats = polls.seats
        self.live = polls.live
        self.push = push
        self.tokens = TokenCipher(key: tokenKey)
        self.router = router
        self.authenticator = authenticator
        self.world = world
        self.cipher = feeds ?? TokenCipher(key: tokenKey)
        self.settings = settings
        self.rates = RequestRates(settings)
        self.userLookUps = settings.userLookUpRateMax.map { RequestThrottle($0, in: .seconds(60)) }
        self.publishedReads = RequestThrottle(ratePerSecond: PublishedHandler.rateMax)
        self.keyValueCounters = keyValueCounters
        self.davCounters = davCounters
        self.keyValueSyncs = settings.keyValueRateMax.map { RequestThrottle($0, in: .seconds(60)) }
        self.limits = limits
        self.people = people
        self.assets = assets
        self.keys = keys ?? assets?.keys
        self.operations = operations
        self.log = log
    }

    package func bodyLimit(for head: RequestHead) -> ByteCount {
        if self.people != nil, SignInService.isPage(head.path) { return SignInService.bodySizeMax }
        if PollService.isPoll(head.path) { return PollService.bodySizeMax }
        if DAVRoute.isPath(head.path) {
            return DAVHandler.bodyLimit(head.method, fileSizeMax: self.assets?.settings.sizeMax)
        }
        // What goes nowhere need not be read.
        return self.operations.operation(at: head.path)?.bodySizeMax(self.limits) ?? .kibibytes(64)
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
        if let people, SignInService.isPage(path) {
            var page = await people.respond(to: request)
            page.headers.set("X-Apple-Request-UUID", request.identity.uuid)
            return page
        }
        if DAVRoute.isPath(path) {
            return Self.finished(await DAVHandler(handler: self).respond(to: request), request)
        }
        if PublishedHandler.isPath(path) {
            return Self.finished(
                await PublishedHandler(handler: self).respond(to: request), request)
        }
        var response: HTTPResponse
        if request.head.method == "OPTIONS" {
            response = CrossOrigin.preflight()
            response.headers.set("X-Apple-Request-UUID", request.identity.uuid)
        } else if PollService.isPoll(path) {
            response = Self.finished(
                await PollService(handler: self).respond(to: request), request)
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
        let room = AnswerRoom(of: self.answers)
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
        if let rates { response.headers.set("RateLimit-Policy", rates.policy) }
        return response
    }

    private static let version: HeaderFields = ["X-Apple-CloudKit-Version": "1.0"]
    private static let versionOfJSON: HeaderFields = [
        "Content-Type": "application/json; charset=UTF-8", "X-Apple-CloudKit-Version": "1.0",
    ]

    package func form(of refusal: HTTPRefusal) -> (headers: HeaderFields, body: Bytes)? {
        let uuid = self.world.drawIdentity().uuid
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
        try self.rates?.check(address: request.peer, at: self.world.now)
        let route = try self.operations.route(of: request.head.path)
        let operation = route.operation
        guard operation.methods.contains(named: request.head.method) else {
            throw InputRefusal.wrongMethod(operation.label, method: request.head.method)
        }
        let needsBody = self.authenticator.needsBody(request.head)
        var share = BodyBudget.Share(of: self.bodies)
        var body = needsBody ? try await self.collect(request.body, &share) : []
        let authentication = try await self.authenticator.authenticate(
            PresentedRequest(
                head: request.head, body: body, container: route.container, scope: route.scope,
                isSecure: request.isSecure))
        token = authentication.webAuthToken
        try self.rates?.check(
            authentication.principal, request.head, from: request.peer, route.container,
            at: self.world.now)
        guard operation.scopes.has(route.scope) else {
            throw InputRefusal.operationNotInDatabase(operation.label, route.scope)
        }
        let turn = LongWork.Turn(at: request.longWork, for: route.tenant)
        defer { turn.leave() }
        switch operation.action {
        case .collected(let run):
            if !needsBody { body = try await self.collect(request.body, &share) }
            let exchange = Exchange(
                handler: self, route: route, authentication: authentication, head: request.head,
                body: body, isSecure: request.isSecure, mayWait: request.mayWait, room: room,
                turn: turn)
            await turn.take(for: body.count)
            let input = try self.input(body)
            if operation.need == .user { try await exchange.requireUser() }
            return try await run(exchange, input)
        case .pulled(_, let run):
            let exchange = Exchange(
                handler: self, route: route, authentication: authentication, head: request.head,
                body: body, isSecure: request.isSecure, mayWait: request.mayWait, room: room,
                turn: turn)
            if operation.need == .user { try await exchange.requireUser() }
            return try await run(exchange, needsBody ? CollectedBody(body) : request.body)
        }
    }

    /// Wakes the polls that follow a database, here and at other nodes.
    func stirred(_ database: DatabaseID) { self.seats.changed(database, at: self.world.now) }

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

    /// Reads a body whole. A signature covers all of it, so a signed request's body is read here
    /// even for an operation that pulls its body. It may then be no larger than any other.
    func collect(
        _ body: any RequestBody, _ share: inout BodyBudget.Share
    ) async throws(InputRefusal) -> Bytes {
        var whole: Bytes = []
        while let more = try await self.next(of: body) {
            guard whole.count + more.count <= self.limits.requestSizeMax.raw else {
                throw .bodyTooLarge(self.limits.requestSizeMax)
            }
            guard share.grow(by: more.count) else { throw .noRoomForBody }
            // The common case is a body in one piece: it stays where it lies.
            if whole.isEmpty { whole = more } else { whole += more }
        }
        return whole
    }

    func next(of body: any RequestBody) async throws(InputRefusal) -> Bytes? {
        do throws(RequestBodyError) { return try await body.next() } catch {
            switch error {
            case .tooLarge: throw .bodyTooLarge(self.limits.requestSizeMax)
            case .cutShort: throw .bodyCutShort
            }
        }
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

    /// Logs why a request failed, if clients are not told.
    func note(_ error: ClientError, uuid: String, cause: any Error) {
        guard error.code == .internalError else { return }
        self.log.error(
            "a request failed inside",
            ["request": .text(uuid), "cause": .text(String(describing: cause))])
    }

    private func failure(_ error: ClientError, uuid: String, cause: any Error) -> HTTPResponse {
        self.note(error, uuid: uuid, cause: cause)
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
