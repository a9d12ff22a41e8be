import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing
import Synchronization

/// The web courier: a poll is answered with the oldest notification that its token has not taken,
/// or held until there is one.
///
/// It has no credentials but the token. A notification counts as taken when all of its bytes were
/// given to the connection; what a client did not get before it went away, its next poll gets.
struct PollService: Surface {
    static let path = "/aps"
    static let bodySizeMax: ByteCount = .kibibytes(1)
    /// How long a poll is held that has nothing to tell.
    static let hold: Duration = .seconds(240)
    /// How long the answer to an unknown token takes: clients ask again after 10 ms.
    static let unknownHold: Duration = .seconds(30)
    /// Changes that came by way of this node are told at once. All others are looked for every half
    /// second while few polls are held, and less often the more there are: the node's polls ask
    /// some 2,000 questions a second.
    static func interval(watchCount: Int) -> Duration {
        .milliseconds(min(60_000, max(500, watchCount / 2)))
    }
    /// How long one question to a partition may take.
    private static let patience: Duration = .seconds(5)
    /// How often, and after which pause, a poll asks again for what another poll of its token was
    /// given and has not settled: 250 ms in all.
    static let pendingCountMax = 10
    static let pendingPause: Duration = .milliseconds(25)
    /// Events that a follower may have looked at in vain before it is moved.
    private static let idleEventCountMax: UInt64 = 1_000

    let kernel: GatewayKernel

    /// A method that polls do not have.
    private struct WrongMethod: Error {}

    private static let label = RouteLabel(Self.path)

    var roots: [SurfaceRoot] { [.path(Self.path)] }

    /// Polls of one address are not counted: their tokens are, and those that are unknown wait.
    func plan(_ head: RequestHead) -> SurfacePlan<Void> {
        var admission = AdmissionPlan()
        if !["GET", "HEAD"].contains(head.method) { admission.refusal = WrongMethod() }
        return SurfacePlan(
            RequestRoute(Self.label), patience: .held, bodySizeMax: Self.bodySizeMax,
            admission: admission, target: ())
    }

    /// Leaves the work to others: a poll that is held keeps this function's frame too.
    func respond(_ task: TaskRequest<Void>) async -> HTTPResponse {
        let request = task.http
        if request.head.method == "OPTIONS" { return CrossOrigin.preflight(request) }
        var response: HTTPResponse
        do {
            try self.kernel.enter(request, by: task.plan.admission)
            response = await self.answer(request).finished(request)
        } catch {
            response = self.failure(error, of: request).finished(request)
        }
        CrossOrigin.allow(request.head, in: &response.headers)
        return response
    }

    func failure(_ error: any Error, of request: HTTPRequest) -> HTTPResponse {
        HTTPResponse(status: 405, headers: ["Allow": "GET, HEAD"])
    }

    private func answer(_ request: HTTPRequest) async -> HTTPResponse {
        guard let text = URLQuery(request.head.query)?["tok"],
            let token = PollToken(text: text, self.kernel.tokens)
        else { return await self.unknown(request) }
        guard let seat = await self.kernel.seats.take(token.bytes) else { return Self.nothing() }
        return await self.hold(
            Poll(kernel: self.kernel, token: token, seat: seat), for: request)
    }

    /// Asks in child tasks, so that a poll that waits takes little memory.
    private func hold(_ opening: Poll, for request: HTTPRequest) async -> HTTPResponse {
        let end = self.kernel.world.now + Self.hold
        let soon = self.soon
        var poll: Poll
        switch await inChildTask({ await opening.opened(until: soon) }) {
        case .success(let known?): poll = known
        case .success(nil): return await self.unknown(request)
        case .failure: return Self.failed()
        }
        guard
            let place = try? self.kernel.held.waits.enter(
                poll.placeHolder, size: poll.placeCount,
                within: self.kernel.settings.waitBounds, poll.seat)
        else { return self.crowded(request) }
        // An answer that leaves holds no place.
        defer { place.leave() }
        while !Task.isCancelled, !poll.seat.isTold, self.kernel.world.now < end {
            let (before, soon) = (poll, self.soon)
            let found: Poll.Found?
            (found, poll) = await inChildTask { await before.looked(until: soon) }
            if let found { return self.answer(found, poll) }
            if poll.hasMore { continue }
            let interval = Self.interval(watchCount: self.kernel.seats.watchCount)
            await poll.seat.wait(for: min(interval, end - self.kernel.world.now))
        }
        return Self.nothing()
    }

    private var soon: MonotonicTime { self.kernel.world.now + Self.patience }

    private func answer(_ found: Poll.Found, _ poll: Poll) -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: ["Content-Type": "application/json; charset=UTF-8"],
            body: .stream(
                PolledBody(found, poll, patience: Self.patience), length: found.payload.count))
    }

    /// JSON, so that no parser fails, and no object, so that nobody takes it for a notification.
    private static func nothing() -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: ["Content-Type": "application/json; charset=UTF-8"],
            body: .bytes(Bytes("null\n".utf8)))
    }

    private static func failed() -> HTTPResponse {
        HTTPResponse(status: 503, headers: ["Retry-After": "5"])
    }

    /// The node has no place to hold the poll in.
    private func crowded(_ request: HTTPRequest) -> HTTPResponse {
        let error = ClientError(InputRefusal.noRoomToWait)
        var writer = JSONWriter(hasExtensions: self.kernel.settings.hasExtensions)
        writer.writeFailure(error, uuid: request.identity.uuid)
        return HTTPResponse(
            status: error.code.status,
            headers: [
                "Content-Type": "application/json; charset=UTF-8",
                "Retry-After": "\(error.retryAfter ?? 30)",
            ], body: .bytes(writer.finish()))
    }

    /// A stranger's poll waits as others do, in places of its own.
    private func unknown(_ request: HTTPRequest) async -> HTTPResponse {
        if let seat = await self.kernel.seats.take(self.kernel.seatName()) {
            let holder = PlaceHolder(nil, SocketAddress.site(of: request.peer))
            let place = try? self.kernel.held.strangers.enter(
                holder, within: GatewaySettings.strangerBounds, seat)
            if let place {
                await seat.wait(for: Self.unknownHold)
                place.leave()
            }
        }
        return HTTPResponse(status: 410)
    }

    /// One poll, as far as it has looked.
    struct Poll: Sendable {
        struct Place: Sendable {
            var registration: Device.Registration
            var database: DatabaseID
            /// Who asks, with the roles that were last read. Nil: nobody any more.
            var principal: Principal?
            var position: NewsPosition?
            /// Whether this poll has made a follower where there was none.
            var hasBegun = false
        }

        struct Found: Sendable {
            var payload: Bytes
            var place: Place
            var from: NewsPosition
            var to: NewsPosition
            var spent: String?
            /// Of a zone's change.
            var told: ChangeTag?
            /// The badge that it tells; nil: none.
            var badge: UInt64?
        }

        let kernel: GatewayKernel
        let token: PollToken
        let seat: PollSeat
        private var places: [Place] = []
        /// Tells it from the other polls of its token.
        private let number: UInt64
        /// Where a look begins. It is drawn for each poll, so that a busy database keeps no other
        /// one's news waiting for ever.
        private var first = 0
        /// How often the token's containers were read.
        private var openings = 0
        private(set) var hasMore = false
        /// Some place's rights or layout could not be read: the next look opens the poll again.
        private var isPartial = false
        /// Nil: it is a poll, which tells one notification.
        var stream: Stream?

        /// What a live stream adds: it tells many notifications, and its client says which it has
        /// taken when it connects again.
        struct Stream: Sendable {
            /// Whose notifications: of one container and one user.
            var container: ContainerReference
            var userRecordName: String
            /// Databases that wake it beside those of the token.
            var besides: Set<DatabaseID>
            /// Feeds that each look reads beside the notifications.
            var feedCount: Int
            var taken: TakenNews
            /// The databases whose followers stand behind what the client has taken.
            var unsettled: Set<UInt64>

            init(
                container: ContainerReference, userRecordName: String, besides: Set<DatabaseID>,
                feedCount: Int, taken: TakenNews
            ) {
                self.container = container
                self.userRecordName = userRecordName
                self.besides = besides
                self.feedCount = feedCount
                self.taken = taken
                self.unsettled = Set(taken.positions.keys)
            }

            func tells(_ registration: Device.Registration) -> Bool {
                registration.container == self.container
                    && registration.userRecordName == self.userRecordName
            }
        }

        /// Whose place it takes: the user's who registered the token first.
        var placeHolder: PlaceHolder {
            let first = self.places[0].registration
            let container = first.container
            return PlaceHolder(
                container,
                "\(container.container) \(container.environment.name) \(first.userRecordName)")
        }

        /// One that follows a private and a public database takes one place. Where a look asks more
        /// questions, it takes more, and a quarter of a user's share at most.
        var placeCount: Int {
            min(GatewaySettings.userWaitCount / 4, max(1, self.places.count / 2))
        }

        /// Whether nobody is told any more.
        var isNobodys: Bool { self.places.isEmpty }

        init(kernel: GatewayKernel, token: PollToken, seat: PollSeat) {
            self.kernel = kernel
            self.token = token
            self.seat = seat
            self.number = kernel.world.random()
        }

        /// - Returns: false for a token that is not known any more, or is nobody's.
        mutating func open(until deadline: MonotonicTime) async throws -> Bool {
            let devices = DeviceStore(partitions: self.kernel.partitions)
            guard
                let stored = try await devices.device(self.token.device, until: deadline)
            else { return false }
            self.openings += 1
            self.places = []
            var failure: (any Error)?
            for registration in stored.device.registrations {
                if let stream, !stream.tells(registration) { continue }
                let layout: ContainerLayout
                do {
                    layout = try await self.kernel.authenticator.layout(
                        of: registration.container)
                } catch {
                    failure = error
                    layout = ContainerLayout()
                }
                for database in registration.databases(layout) {
                    var place = Place(registration: registration, database: database)
                    place.position = self.stream?.taken.positions[Attendance.name(of: database)]
                    do { place.principal = try await self.principal(place, until: deadline) } catch
                    {
                        // The news of the other containers do not wait for this one.
                        failure = error
                    }
                    self.places.append(place)
                }
            }
            guard self.places.contains(where: { $0.principal != nil }) else {
                if let failure { throw failure }
                // Where every session has ended, the token has too.
                return false
            }
            let left = stored.expiresAtMilliseconds - self.kernel.world.wallMilliseconds
            if left < PollToken.life.clampedNanoseconds / 1_000_000 {
                // Used for the first time in an hour.
                try await devices.change(self.token.device, until: deadline) {
                    .put($0 ?? stored.device, life: PollToken.life + PollToken.margin)
                }
            }
            self.isPartial = failure != nil
            self.first = Int(self.kernel.world.random() % UInt64(self.places.count))
            self.seat.watch(
                Set(self.places.map(\.database)).union(self.stream?.besides ?? []),
                questionCount: self.places.count + (self.stream?.feedCount ?? 0))
            return true
        }

        /// - Returns: the poll once it is open; nil for a token that nobody is told by.
        func opened(until deadline: MonotonicTime) async -> Result<Poll?, any Error> {
            var poll = self
            do { return .success(try await poll.open(until: deadline) ? poll : nil) } catch {
                return .failure(error)
            }
        }

        /// What a look finds, and the poll as it is then.
        func looked(until deadline: MonotonicTime) async -> (Found?, Poll) {
            var poll = self
            do { return (try await poll.look(until: deadline), poll) } catch {
                // A partition that is away is asked again.
                poll.hasMore = false
                return (nil, poll)
            }
        }

        /// The first notification there is, from one database on through all of them. One that
        /// does not answer is passed over.
        mutating func look(until deadline: MonotonicTime) async throws -> Found? {
            self.hasMore = false
            if self.isPartial {
                var whole = self
                // What is known goes on where the rest cannot be read yet.
                if (try? await whole.open(until: deadline)) == true { self = whole }
            }
            let (count, openings) = (self.places.count, self.openings)
            let first = self.unsettledOnce ?? self.first
            for step in 0..<count {
                do {
                    let index = (first + step) % count
                    if let found = try await self.look(at: index, until: deadline) { return found }
                } catch { continue }
                if self.openings != openings { break }
            }
            return nil
        }

        /// The place whose subscription that fires once has been told and is still to be deleted.
        /// What is told next takes its place in the stream's ID.
        private var unsettledOnce: Int? {
            guard let stream, let spent = stream.taken.spent,
                stream.unsettled.contains(spent.database)
            else { return nil }
            return self.places.firstIndex { Attendance.name(of: $0.database) == spent.database }
        }

        private mutating func look(at index: Int, until deadline: MonotonicTime) async throws
            -> Found?
        {
            var place = self.places[index]
            guard var news = try await self.news(place, until: deadline) else {
                if place.principal != nil, !place.hasBegun {
                    // A reset took the follower, or many newer tokens of its owner did.
                    self.places[index].hasBegun = true
                    self.forget(place.database, at: index)
                    try await self.follow(place, .begin, until: deadline)
                }
                return nil
            }
            if news.hit != nil {
                // Judged by the roles of now, before anything leaves.
                let now = try await self.principal(place, until: deadline)
                if now != place.principal {
                    place.principal = now
                    self.places[index] = place
                    guard let again = try await self.news(place, until: deadline) else {
                        return nil
                    }
                    news = again
                }
            }
            guard var follower = news.follower else { return nil }
            var settlements = 0
            while try await self.settle(place, follower, until: deadline) {
                settlements += 1
                // Nothing is told before it is settled: the next look tries again.
                guard settlements <= Self.settlementCountMax else { return nil }
                // What has fired once is deleted now, and must not be found again. Somebody else
                // may have moved the follower meanwhile, and then nothing was settled.
                guard let again = try await self.news(place, until: deadline),
                    let now = again.follower
                else { return nil }
                (news, follower) = (again, now)
            }
            place.position = news.position
            if let hit = news.hit {
                // Somebody else may have taken the token over while the poll was held.
                let devices = DeviceStore(partitions: self.kernel.partitions)
                let device = try await devices.device(self.token.device, until: deadline)?.device
                guard let device, device.registrations.contains(place.registration) else {
                    self.hasMore = try await self.open(until: deadline)
                    if !self.hasMore { self.places = [] }
                    return nil
                }
                self.places[index] = place
                let badge = device.badge(of: place.registration) + 1
                let found = self.found(hit, follower, news, place, badge: badge)
                if self.stream != nil {
                    try await self.close(found, until: deadline)
                    try await self.raiseBadge(found, until: deadline)
                }
                self.stream?.tell(found)
                return found
            }
            self.places[index] = place
            self.hasMore = self.hasMore || news.hasMore
            if self.stream == nil,
                news.position.number >= follower.number + PollService.idleEventCountMax
            {
                try await self.advance(place, follower, news.position, nil, until: deadline)
            }
            return nil
        }

        /// How often one look tries to settle what somebody else moves at the same time.
        private static let settlementCountMax = 4

        /// Moves a follower to what the stream's client has taken. Somebody else may have moved it
        /// meanwhile: then this changes nothing, so a further look at the follower must show it.
        ///
        /// - Returns: whether the follower stood before what was taken.
        private mutating func settle(
            _ place: Place, _ follower: NewsPosition, until deadline: MonotonicTime
        ) async throws -> Bool {
            let name = Attendance.name(of: place.database)
            guard let stream, stream.unsettled.contains(name) else { return false }
            if let taken = stream.taken.positions[name], follower < taken {
                let spent = stream.taken.spent.flatMap {
                    $0.database == name ? $0.subscription : nil
                }
                try await self.advance(place, follower, taken, spent, until: deadline)
                return true
            }
            self.stream?.unsettled.remove(name)
            if stream.taken.spent?.database == name { self.stream?.taken.spent = nil }
            return false
        }

        /// The database's events begin anew, and so does the stream there.
        private mutating func forget(_ database: DatabaseID, at index: Int) {
            self.places[index].position = nil
            self.stream?.taken.positions[Attendance.name(of: database)] = nil
            self.stream?.unsettled.remove(Attendance.name(of: database))
        }

        /// Nil: nobody follows.
        private func news(_ place: Place, until deadline: MonotonicTime) async throws -> News? {
            guard let principal = place.principal else { return nil }
            var ask = NewsAsk(place.database) {
                $0.token = self.token.name
                $0.after = place.position
            }
            if self.stream == nil { ask.poll = self.number }
            for count in 0...PollService.pendingCountMax {
                // What was not settled for so long is told again.
                ask.waits = count < PollService.pendingCountMax
                let news = try await self.kernel.partitions.plain.ask(
                    ask, at: .database(place.database),
                    as: Caller(principal, until: deadline))
                guard news.follower != nil else { return nil }
                guard news.isPending else { return news }
                try await Task.sleep(for: PollService.pendingPause)
            }
            return nil
        }

        private func found(
            _ hit: News.Hit, _ follower: NewsPosition, _ news: News, _ place: Place,
            badge: UInt64
        ) -> Found {
            let payload = PushPayload(
                container: place.registration.container, database: place.database,
                subscriber: place.registration.userRecordName,
                nid: PushPayload.nid(
                    of: hit.event, in: place.database, self.kernel.tokens), hit: hit,
                badge: badge)
            return Found(
                payload: payload.bytes(), place: place, from: follower, to: news.position,
                spent: hit.subscription.firesOnce ? hit.subscription.id : nil, told: hit.told,
                badge: payload.raisesBadge ? badge : nil)
        }

        func raiseBadge(_ found: Found, until deadline: MonotonicTime) async throws {
            guard let badge = found.badge else { return }
            try await DeviceStore(partitions: self.kernel.partitions)
                .raiseBadge(
                    self.token.device, of: found.place.registration, to: badge, until: deadline)
        }

        /// Who is told, with the roles of now. Nil: nobody any more.
        private func principal(
            _ place: Place, until deadline: MonotonicTime
        ) async throws -> Principal? {
            let registration = place.registration
            guard let listener = try await self.kernel.authenticator.listener(registration),
                !(listener.isRestricted && place.database.scope == .private)
            else { return nil }
            return listener.principal
        }

        /// What changes in the zone from here on is news again, though no follower moves.
        private mutating func close(_ found: Found, until deadline: MonotonicTime) async throws {
            guard let told = found.told else { return }
            try await self.follow(
                found.place, .close(mark: found.to.number, told: told), until: deadline)
        }

        /// - Parameter told: of a zone's change, the tag that was told.
        func advance(
            _ place: Place, _ from: NewsPosition, _ to: NewsPosition, _ spent: String?,
            told: ChangeTag? = nil, until deadline: MonotonicTime
        ) async throws {
            if let spent {
                let layout = try await self.kernel.authenticator.layout(
                    of: place.registration.container)
                try await SpentCopies(partitions: self.kernel.partitions)
                    .delete(
                        spent, firedIn: place.database, of: place.registration, layout,
                        until: deadline)
            }
            try await self.follow(
                place, .advance(from: from, to: to, spent: spent, told: told), until: deadline)
        }

        private func follow(
            _ place: Place, _ step: FollowNews.Step, until deadline: MonotonicTime
        ) async throws {
            let follow = FollowNews(place.database) {
                $0.subscriber = place.registration.userRecordName
                $0.token = self.token.name
                $0.step = step
            }
            _ = try await self.kernel.partitions.plain.submit(
                follow, at: .database(place.database), as: .system(until: deadline))
        }
    }
}

extension PollService.Poll.Stream {
    /// A notification is written, so the next event's ID names it.
    fileprivate mutating func tell(_ found: PollService.Poll.Found) {
        let name = Attendance.name(of: found.place.database)
        self.taken.positions[name] = found.to
        self.taken.spent = found.spent.map { TakenNews.Spent(database: name, subscription: $0) }
    }
}

/// One notification as an answer's body: settled when the connection has taken it.
private final class PolledBody: ResponseBody {
    private let found: PollService.Poll.Found
    private let poll: PollService.Poll
    private let patience: Duration
    private let isGiven = Atomic(false)

    init(_ found: PollService.Poll.Found, _ poll: PollService.Poll, patience: Duration) {
        self.found = found
        self.poll = poll
        self.patience = patience
    }

    func next() async throws -> Bytes? {
        if !self.isGiven.exchange(true, ordering: .relaxed) { return self.found.payload }
        // Where this fails, the next poll brings it again under the same identity.
        let deadline = self.poll.kernel.world.now + self.patience
        // First: the next poll may be answered as soon as the follower moves.
        try? await self.poll.raiseBadge(self.found, until: deadline)
        try? await self.poll.advance(
            self.found.place, self.found.from, self.found.to, self.found.spent,
            told: self.found.told, until: deadline)
        return nil
    }
}
