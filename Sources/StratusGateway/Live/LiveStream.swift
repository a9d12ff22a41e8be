import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime

/// The body of one live stream. It is a position and nothing else: it waits until something may
/// have changed, reads a page of a feed, writes it, and waits until the client has taken it.
///
/// So a client that reads slowly has no queue here, and many changes are one page. `@unchecked`:
/// pulled by one task at a time.
final class LiveStream: ResponseBody, @unchecked Sendable {
    private let kernel: GatewayKernel
    private let request: LiveRequest
    private let seat: PollSeat
    private let place: HeldPlace
    private let end: MonotonicTime
    private var exchange: Exchange
    private var places: [LiveRequest.Place]
    private var news: LiveNews?
    /// Holds what the last event was made of, until the client has taken it.
    private var room: AnswerRoom?
    private var hasBegun = false
    private var isOver = false
    /// The feed that is looked at first, so that a busy one keeps no other waiting for ever.
    private var first = 0
    private var nextBeat: MonotonicTime
    private var judgedAt: MonotonicTime

    init(
        _ exchange: Exchange, _ request: LiveRequest, news: LiveNews?, seat: PollSeat,
        place: HeldPlace
    ) {
        self.kernel = exchange.kernel
        self.exchange = exchange
        self.request = request
        self.places = request.places
        self.news = news
        self.seat = seat
        self.place = place
        let now = exchange.kernel.world.now
        self.end = now + LiveService.length
        self.nextBeat = now + LiveService.beat
        self.judgedAt = now
    }

    private var now: MonotonicTime { self.kernel.world.now }

    func next() async throws -> Bytes? {
        self.room = nil
        if !self.hasBegun {
            self.hasBegun = true
            return Bytes("retry: 1000\n\n".utf8)
        }
        while !self.isOver, !Task.isCancelled, self.now < self.end {
            if self.seat.isTold {
                self.isOver = true
                return Bytes(LiveService.farewell.utf8)
            }
            let found = await inChildTask { await self.look() }
            if let event = found.event {
                self.nextBeat = self.now + LiveService.beat
                return event
            }
            if self.isOver { break }
            if self.now >= self.nextBeat {
                self.nextBeat = self.now + LiveService.beat
                return Bytes(":\n\n".utf8)
            }
            if found.hasMore { continue }
            let interval = PollService.interval(watchCount: self.kernel.seats.watchCount)
            await self.seat.wait(for: min(interval, self.nextBeat - self.now, self.end - self.now))
        }
        self.isOver = true
        return nil
    }

    // MARK: Looking

    /// The first feed that has something to tell.
    private func look() async -> (event: Bytes?, hasMore: Bool) {
        var hasMore = false
        if self.isJudgementDue {
            if let refused = await self.judge() { return (refused, false) }
            if self.isOver { return (nil, false) }
        }
        let first = self.first
        for step in 0..<self.places.count {
            let index = (first + step) % self.places.count
            guard self.places[index] != .ended else { continue }
            // Feeds that are slow to read must not keep back what is due: it goes on here.
            if step > 0, self.now >= self.nextBeat || self.isJudgementDue {
                self.first = index
                return (nil, true)
            }
            self.exchange = self.exchange.again(within: LiveService.readPatience)
            do {
                let told: Told?
                switch self.request.feeds[index] {
                case .zone(let name): told = try await self.zone(name, at: index)
                case .zones: told = try await self.zones(at: index)
                case .notifications:
                    told = try await self.notification()
                    hasMore = hasMore || self.news?.poll.hasMore == true
                }
                self.exchange.turn.leave()
                guard let told else { continue }
                if let refused = await self.judge() { return (refused, false) }
                if self.isOver { return (nil, false) }
                return (self.event(told, at: index), false)
            } catch {
                self.exchange.turn.leave()
                if let event = self.ended(index, by: error) { return (event, false) }
                // A partition that is away is asked again.
            }
        }
        return (nil, hasMore)
    }

    private var isJudgementDue: Bool {
        self.now >= self.judgedAt + LiveService.judgement
    }

    private struct Told {
        var name: String
        var data: Bytes
        var place: LiveRequest.Place
        var isLast = false
    }

    private func token(at index: Int) -> String? {
        if case .after(let token) = self.places[index] { token } else { nil }
    }

    private func zone(_ name: String, at index: Int) async throws -> Told? {
        let page = try await FeedService(exchange: self.exchange).livePage(
            ofZone: name, after: self.token(at: index))
        return page.map { Told(name: "changes", data: $0.data, place: .after($0.token)) }
    }

    private func zones(at index: Int) async throws -> Told? {
        let page = try await FeedService(exchange: self.exchange).livePage(
            after: self.token(at: index))
        return page.map { Told(name: "zones", data: $0.data, place: .after($0.token)) }
    }

    private func notification() async throws -> Told? {
        guard var news = self.news else { return nil }
        defer { self.news = news }
        guard !news.poll.isNobodys else {
            throw ClientError(.notFound, "the token is not one that the caller has registered")
        }
        guard let found = try await news.poll.look(until: self.exchange.deadline) else {
            return nil
        }
        let taken = news.poll.stream?.taken ?? TakenNews()
        let text = taken.text(
            at: LiveService.place(of: self.exchange), of: news.token.name,
            sealedWith: self.kernel.tokens)
        var data = found.payload
        if data.last == UInt8(ascii: "\n") { data.removeLast() }
        // What fires once is deleted when the client shows that it has taken it: by connecting
        // again.
        return Told(
            name: "notification", data: data, place: .after(text), isLast: found.spent != nil)
    }

    // MARK: Writing

    private func event(_ told: Told, at index: Int) -> Bytes? {
        self.places[index] = told.place
        self.first = index + 1
        if told.isLast { self.isOver = true }
        return self.write(told.name, told.data, hasID: true)
    }

    /// The error ends its feed. The stream ends with its last feed. Nil: it says nothing about the
    /// feed.
    private func ended(_ index: Int, by error: any Error) -> Bytes? {
        let error = ClientError(error)
        guard FeedService.isAboutOneZone(error) else {
            self.kernel.note(error, uuid: "live", cause: error)
            return nil
        }
        self.places[index] = .ended
        if self.places.allSatisfy({ $0 == .ended }) { self.isOver = true }
        var writer = self.exchange.writer()
        writer.object {
            switch self.request.feeds[index] {
            case .zone(let name):
                $0.key("zoneID")
                $0.writeZoneID(ZoneID(name: name, owner: self.exchange.holder.database.owner))
            case .zones: $0.member("feed", "zones")
            case .notifications: $0.member("feed", "notifications")
            }
            $0.writeMembers(of: error)
        }
        return self.write("refused", writer.finish(), hasID: true)
    }

    private func write(_ name: String, _ data: Bytes, hasID: Bool) -> Bytes? {
        var head = "event: \(name)\n"
        if hasID { head += "id: \(LiveRequest.id(of: self.places))\n" }
        head += "data: "
        // JSON as it is written here has no line end.
        let event = Bytes(head.utf8) + data + [0x0A, 0x0A]
        do throws(RouteError) { try self.exchange.room.settle(event.count) } catch {
            // No memory for it now. The client connects again and reads on from its last event.
            self.isOver = true
            return nil
        }
        self.room = self.exchange.room
        return event
    }

    // MARK: Who listens

    /// Judges the credentials as they stand now. What was read before is told only if they are
    /// good. Else the stream is over, and the event says why.
    private func judge() async -> Bytes? {
        do {
            try await self.exchange.judgeAgain()
            self.judgedAt = self.now
            return nil
        } catch {
            self.isOver = true
            let error = ClientError(error)
            // Nobody knows whether they are good: the client is judged when it connects again.
            if error.code == .tryAgainLater { return nil }
            var writer = self.exchange.writer()
            writer.object { $0.writeMembers(of: error) }
            self.exchange = self.exchange.again()
            return self.write("refused", writer.finish(), hasID: false)
        }
    }
}
