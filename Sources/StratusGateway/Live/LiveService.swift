import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// Live streams: changes of zones, of the database, and notifications, as Server-Sent Events.
struct LiveService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation(
            "live", methods: .get, in: .all, needs: .user, patience: .held,
            // A stream holds its exchange as long as it lasts: it must hold no body.
            .pulled(sizeMax: .kibibytes(1)) { exchange, _ in
                try await LiveService(exchange: exchange).open()
            })
    ]

    /// Nothing lasts for ever: whoever is still there connects again, where its events end.
    static let length: Duration = .seconds(3_600)
    /// A comment goes out when nothing else did for so long.
    static let beat: Duration = .seconds(20)
    /// Credentials that were judged longer ago are judged again.
    static let judgement: Duration = .seconds(30)
    /// The last words of a stream whose place went to another: come back, and not at once.
    static let farewell = "retry: 30000\n\n"
    /// How long one feed may be read. One that takes longer is read again in its turn.
    static let readPatience: Duration = .seconds(5)

    func open() async throws -> GatewayAnswer {
        guard let query = URLQuery(self.exchange.head.query) else {
            throw InputRefusal.unexpectedInput(key: "query")
        }
        let request = try LiveRequest(
            query, lastEventID: self.exchange.head.headers["Last-Event-ID"])
        try self.check(request)
        // A browser then connects no more.
        if request.places.allSatisfy({ $0 == .ended }) { return .nothing }
        let kernel = self.exchange.kernel
        guard let seat = await kernel.seats.take(kernel.seatName()) else {
            throw RouteError.notExecuted(retryAfter: .seconds(1))
        }
        let place = try self.enter(seat)
        let databases = self.databases(of: request)
        let news = try await self.news(request, seat, besides: databases)
        if news == nil { seat.watch(databases, questionCount: request.feeds.count) }
        return .events(
            LiveStream(self.exchange, request, news: news, seat: seat, place: place))
    }

    /// Only the private database has feeds of changes to follow.
    private func check(_ request: LiveRequest) throws {
        if self.exchange.route.scope == .private { return }
        for feed in request.feeds {
            switch feed {
            case .zone: throw InputRefusal.unexpectedInput(key: "zone")
            case .zones: throw InputRefusal.unexpectedInput(key: "database")
            case .notifications: break
            }
        }
    }

    private func enter(_ seat: PollSeat) throws -> HeldPlace {
        let (kernel, route) = (self.exchange.kernel, self.exchange.route)
        let settings = kernel.settings
        let user =
            self.exchange.sender.account.map(String.init(describing:))
            ?? "\(route.tenant) \(self.exchange.sender.name)"
        do throws(Places.Refusal) {
            return try kernel.held.streams.enter(
                PlaceHolder(route.container, user), within: settings.streamBounds, seat)
        } catch {
            switch error {
            case .full:
                throw ClientError(
                    .tryAgainLater, "the node has as many live streams as it may",
                    retryAfter: 30)
            case .most:
                throw ClientError(
                    .throttled,
                    "\(settings.userLiveStreamCountMax) live streams are the most of one user "
                        + "at one node",
                    retryAfter: 30)
            }
        }
    }

    /// The databases whose changes wake the stream.
    private func databases(of request: LiveRequest) -> Set<DatabaseID> {
        var databases: Set<DatabaseID> = []
        for feed in request.feeds where self.exchange.route.scope == .private {
            switch feed {
            case .zone(let name):
                let address = ZoneAddress(name: name, owner: nil)
                if let place = self.exchange.place(address) { databases.insert(place.database) }
            case .zones:
                databases.formUnion(self.exchange.holder.spread?.parts ?? [])
                databases.insert(self.exchange.holder.home)
            case .notifications: break
            }
        }
        return databases
    }

    /// Notifications are the same, whichever database the path names.
    static func place(of exchange: Exchange) -> FeedPlace {
        FeedPlace(container: exchange.route.container, scope: .private, owner: exchange.sender.name)
    }

    /// The same for a token of somebody else and for one that nobody drew: nobody learns which
    /// tokens are genuine.
    private static let unknownToken = ClientError(
        .notFound, "the token is not one that the caller has registered")

    /// The notifications of a token that the caller has registered in this container.
    private func news(
        _ request: LiveRequest, _ seat: PollSeat, besides databases: Set<DatabaseID>
    ) async throws -> LiveNews? {
        guard case .notifications(let text)? = request.feeds.last,
            let place = request.places.last, place != .ended
        else { return nil }
        let kernel = self.exchange.kernel
        guard let token = PollToken(text: text, kernel.tokens) else {
            throw Self.unknownToken
        }
        var taken = TakenNews()
        if case .after(let text) = place {
            taken = try TakenNews(
                text: text, at: Self.place(of: self.exchange),
                of: token.name, openedWith: kernel.tokens)
        }
        var poll = PollService.Poll(kernel: kernel, token: token, seat: seat)
        poll.stream = PollService.Poll.Stream(
            container: self.exchange.route.container, userRecordName: self.exchange.sender.name,
            besides: databases, feedCount: request.feeds.count - 1, taken: taken)
        guard try await poll.open(until: self.exchange.deadline) else {
            throw Self.unknownToken
        }
        return LiveNews(poll: poll, token: token)
    }
}

/// The notifications of one live stream.
struct LiveNews: Sendable {
    var poll: PollService.Poll
    let token: PollToken
}
