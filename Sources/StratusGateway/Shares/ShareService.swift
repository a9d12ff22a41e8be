import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

/// The links of shares: resolved and accepted.
///
/// A link that is unknown, one that was withdrawn, one of another container and one that is not for
/// the caller have one answer, after the same reads: a link tells nothing to whom it is not for.
struct ShareService: Sendable {
    let exchange: Exchange
    /// Links that are asked for, by caller.
    let uses: RequestThrottle?

    /// The device of changes that a gateway makes.
    static let deviceID = "2"

    static func operations(_ settings: GatewaySettings) -> [GatewayOperation] {
        let uses = settings.userLookUpRateMax.map { RequestThrottle($0, in: .seconds(60)) }
        return [
            GatewayOperation("records/resolve", in: .public, needs: .user) {
                try await ShareService(exchange: $0, uses: uses).answer($1, accepts: false)
            },
            GatewayOperation("records/accept", in: .public, needs: .user) {
                try await ShareService(exchange: $0, uses: uses).answer($1, accepts: true)
            },
        ]
    }

    /// A link as a client sent it.
    private struct Asked {
        var guid: String
        var fetchesRoot = true

        init(_ element: JSONValue) throws(InputRefusal) {
            if let text = element.string {
                self.guid = text
                return
            }
            let input = try Input(element, at: "shortGUIDs")
            self.guid = try input.requiredString("value")
            self.fetchesRoot = try input.flag("shouldFetchRootRecord") ?? true
        }
    }

    /// A share as the caller is shown it.
    private struct Found: Sendable {
        var zone: ZoneID
        var record: Record
        var detail: ShareDetail
    }

    func answer(_ input: Input, accepts: Bool) async throws -> Bytes {
        guard self.exchange.sender.principal.kind == .user else {
            throw AuthenticationRefusal.failed(reason: "links of shares are for users")
        }
        let asked = try input.requiredElements(
            "shortGUIDs", limit: self.exchange.kernel.limits.operationCountMax
        ).map { element throws(InputRefusal) in try Asked(element) }
        try self.count(asked.count)
        var results: [String: Result<Found, ClientError>] = [:]
        var writer = self.exchange.writer()
        var restedAt = 0
        writer.beginObject()
        writer.key("results")
        writer.beginArray()
        for ask in asked {
            var result = Result<Found, ClientError>.failure(Self.later)
            // What has no room is asked for again. Nobody has joined what is not answered.
            if writer.count < Self.answerSizeMax {
                result = await self.known(ask.guid, accepts: accepts, &results)
            }
            if asked.count == 1, case .failure(let error) = result, error.code == .notFound {
                throw error
            }
            writer.object { self.write(result, of: ask, to: &$0) }
            // Whatever has come in meanwhile is done first.
            if writer.count - restedAt >= Self.pieceSize {
                restedAt = writer.count
                await Task.yield()
            }
        }
        writer.endArray()
        writer.endObject()
        return writer.finish()
    }

    /// Bytes of an answer behind which no share is rendered any more: the record of a share may
    /// hold a picture of nearly a megabyte.
    private static let answerSizeMax = 4 << 20
    /// The bytes that are written before the loop does something else.
    private static let pieceSize = 256 << 10

    private static let later = ClientError(
        .tryAgainLater, "the answer is full, ask for this link again", retryAfter: 1)

    /// A link that is asked for twice is looked for once.
    private func known(
        _ guid: String, accepts: Bool, _ results: inout [String: Result<Found, ClientError>]
    ) async -> Result<Found, ClientError> {
        if let known = results[guid] { return known }
        let result = await self.result(guid, accepts: accepts)
        results[guid] = result
        return result
    }

    private func count(_ count: Int) throws(ClientError) {
        let container = self.exchange.route.container
        let caller =
            "\(self.exchange.sender.name) \(container.environment.name) \(container.container)"
        let now = self.exchange.kernel.world.now
        guard count > 0, let wait = self.uses?.wait(of: caller, at: now, count: count) else {
            return
        }
        throw ClientError(
            .throttled, "too many links of shares were asked for, retry later",
            retryAfter: ClientError.seconds(wait))
    }

    // MARK: One link

    private static let unknown = ClientError(InputRefusal.unknownShortGUID)

    private func result(_ guid: String, accepts: Bool) async -> Result<Found, ClientError> {
        do {
            guard let link = ShareLink(text: guid) else { return .failure(Self.unknown) }
            let database = self.database(of: link)
            // Only what is there is accepted: a stranger writes nothing into anybody's log.
            guard var found = try await self.find(link, in: database) else {
                return .failure(Self.unknown)
            }
            if accepts {
                guard try await self.accept(link, in: database),
                    let joined = try await self.find(link, in: database)
                else { return .failure(Self.unknown) }
                found = joined
            }
            return .success(found)
        } catch {
            return .failure(ClientError(error))
        }
    }

    /// The part of the owner's database that a link leads to. Every link leads to one, so that
    /// one that nobody made takes as long as any other: no part beyond the last knows of it either.
    private func database(of link: ShareLink) -> DatabaseID {
        let container = self.exchange.route.container
        let place = self.exchange.kernel.identities.shareLinks(of: container).open(link)
        let database = self.exchange.holder.layout.privateDatabase(of: place.owner, in: container)
        let count = database.isSpread ? database.bucketCount : 0
        let isHome = place.part == 0 || place.part > count
        return database.part(isHome ? nil : place.part - 1)
    }

    /// The caller joins, and the caller's own list has the zone before the answer leaves. If it
    /// cannot be written the caller may accept again.
    ///
    /// - Returns: false: the link is not for the caller.
    private func accept(_ link: ShareLink, in database: DatabaseID) async throws -> Bool {
        var command = JoinShare()
        command.database = database
        command.link = link
        var draws = self.exchange.draws()
        command.drawnID = max(1, draws.name())
        command.deviceID = Self.deviceID
        let joined: JoinedShare
        do throws(RecordsError) {
            joined = try await self.exchange.kernel.partitions.submit(
                command, at: .key(.database(database)), as: self.exchange.caller,
                identity: self.exchange.identity(attempt: 0, part: link.bytes))
        } catch {
            if case .refused(let refusal) = error, refusal.reason == .shareNotFound {
                return false
            }
            throw ClientError.told(error)
        }
        self.exchange.kernel.stirred(database)
        if !joined.isOwner {
            let place = ZonePlace(
                zone: ZoneID(name: joined.note.zone, owner: database.owner), database: database)
            try await self.list(joined.note, of: place)
        }
        return true
    }

    /// Who has accepted as many zones as one person may stays out of this one.
    private func list(_ note: SharedZoneNote, of place: ZonePlace) async throws {
        do { try await self.exchange.note(note, ownedBy: place.zone.owner) } catch {
            let told = ClientError(error)
            if told.finer == .limitExceeded { _ = try await self.exchange.leave(place) }
            throw told
        }
    }

    /// Nil: there is no such share, or it is not for the caller.
    private func find(_ link: ShareLink, in database: DatabaseID) async throws -> Found? {
        var ask = ShareByLinkAsk()
        ask.database = database
        ask.link = link
        let answer: SharedLink?
        do throws(RecordsError) {
            answer = try await self.exchange.kernel.partitions.ask(
                ask, at: .key(.database(database)), as: self.exchange.caller)
        } catch { throw ClientError.told(error) }
        guard let answer, let record = answer.record else { return nil }
        let isOwner = database.owner == self.exchange.sender.name
        if !isOwner, try await self.exchange.isClosed(ownedBy: database.owner) { return nil }
        let zone = ZoneID(name: answer.zone, owner: database.owner)
        var found = Found(zone: zone, record: record, detail: answer.detail)
        if answer.detail.caller.status == .accepted {
            // Who is in it sees more of the others.
            let place = ZonePlace(zone: zone, database: database)
            guard let detail = try await self.exchange.shareDetail(at: place) else { return nil }
            found.detail = detail
        }
        return found
    }

    // MARK: Answering

    private func write(
        _ result: Result<Found, ClientError>, of ask: Asked, to writer: inout JSONWriter
    ) {
        writer.key("shortGUID")
        switch result {
        case .failure(let error):
            writer.object { $0.member("value", ask.guid) }
            writer.writeMembers(of: error)
        case .success(let found):
            writer.object {
                $0.member("value", ask.guid)
                $0.member("shouldFetchRootRecord", ask.fetchesRoot)
            }
            self.write(found, to: &writer)
        }
    }

    private func write(_ found: Found, to writer: inout JSONWriter) {
        let (route, caller) = (self.exchange.route, found.detail.caller)
        let receivesNames = self.exchange.sender.receivesNames
        writer.member("containerIdentifier", route.container.container)
        writer.member("environment", route.container.environment.name)
        writer.member("databaseScope", caller.role == .owner ? "PRIVATE" : "SHARED")
        writer.key("zoneID")
        writer.writeZoneID(found.zone)
        writer.key("share")
        writer.writeRecord(
            found.record, AnswerShape(), nil, .none,
            ShownShares(found.detail, in: found.zone, receivesNames: receivesNames))
        if let owner = found.detail.participants.first(where: { $0.role == .owner }) {
            writer.key("ownerIdentity")
            writer.writeIdentity(of: owner, receivesNames: receivesNames)
        }
        writer.member("participantType", JSONWriter.word(caller.role))
        writer.member("participantStatus", JSONWriter.word(caller.status))
        writer.member("participantPermission", JSONWriter.word(caller.permission))
        writer.key("potentialMatchList")
        writer.array { _ in }
    }
}
