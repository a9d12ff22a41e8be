import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords

/// Feeds of what changed, in zones and in databases. The public database has none.
struct FeedService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation("records/changes", in: [.private, .shared], needs: .user) {
            try await FeedService(exchange: $0).recordChanges($1)
        },
        GatewayOperation("changes/zone", in: [.private, .shared], needs: .user) {
            try await FeedService(exchange: $0).zoneChanges($1)
        },
        GatewayOperation("changes/database", in: [.private, .shared], needs: .user) {
            try await FeedService(exchange: $0).databaseChanges($1, as: .database)
        },
        GatewayOperation("zones/changes", in: [.private, .shared], needs: .user) {
            try await FeedService(exchange: $0).databaseChanges($1, as: .meta)
        },
    ]

    /// A client's request about one zone of `changes/zone`, or all of `records/changes`.
    fileprivate struct ChangesRequest {
        var address: ZoneAddress
        var shape: AnswerShape
        /// Nil: from the beginning. Empty: caught up, which is not the same.
        var token: String?
        var limit: Int
        var reverse: Bool
        var recordTypes: [String]?
    }

    fileprivate struct ChangesPage {
        var place: ZonePlace
        var zone: ZoneID { self.place.zone }
        var changes: [ZoneChangesPage.Change]
        var token: String
        var moreComing: Bool

        var records: [Record] {
            self.changes.compactMap { change in
                if case .changed(let record) = change { record } else { nil }
            }
        }
    }

    /// `changes/zone`. Each zone has its own page or its own error.
    func zoneChanges(_ input: Input) async throws -> Bytes {
        let maximum = self.exchange.kernel.limits.operationCountMax
        let shape = try AnswerShape(input)
        let limit = try input.resultsLimit(max: maximum) ?? maximum
        let reverse = try input.flag("reverse") ?? false
        let recordTypes = try input.names("desiredRecordTypes", limit: 1_000)
        var requests: [ChangesRequest] = []
        for element in try input.requiredElements("zones", limit: maximum) {
            let item = try Input(element, at: "zones")
            guard let given = item["zoneID"] else { throw InputRefusal.missingKey("zoneID") }
            requests.append(
                ChangesRequest(
                    address: try ZoneAddress(given, key: "zoneID"),
                    shape: try shape.overridden(by: item), token: try item.string("syncToken"),
                    limit: try item.resultsLimit(max: maximum) ?? limit,
                    reverse: try item.flag("reverse") ?? reverse,
                    recordTypes: try item.names("desiredRecordTypes", limit: 1_000)
                        ?? recordTypes))
        }
        var writer = self.exchange.writer(reserving: 4_096)
        writer.beginObject()
        writer.key("zones")
        writer.beginArray()
        for request in requests {
            do {
                // An answer that is large already has no room: an empty page, and more to come.
                let page = try await self.page(
                    request, isSkipped: writer.count > Self.answerSizeMax.raw)
                let parts = try await self.parts(of: page)
                writer.object {
                    $0.key("zoneID")
                    $0.writeZoneID(page.zone)
                    $0.writeMembers(of: page, request.shape, parts)
                }
            } catch {
                guard let item = self.itemError(error) else { throw error }
                writer.object {
                    $0.key("zoneID")
                    $0.writeZoneID(
                        self.exchange.place(request.address)?.zone
                            ?? self.exchange.echo(request.address))
                    $0.writeMembers(of: item)
                    if self.exchange.kernel.settings.changesErrorsCarryTokens {
                        $0.member("syncToken", "")
                        $0.member("moreComing", false)
                    }
                }
            }
        }
        writer.endArray()
        writer.endObject()
        return writer.finish()
    }

    /// `records/changes`: one zone, and its error is the request's.
    func recordChanges(_ input: Input) async throws -> Bytes {
        let maximum = self.exchange.kernel.limits.operationCountMax
        let address = try input["zoneID"].map { value throws(InputRefusal) in
            try ZoneAddress(value, key: "zoneID")
        }
        let request = ChangesRequest(
            address: address ?? .defaultZone, shape: try AnswerShape(input),
            token: try input.string("syncToken"),
            limit: try input.resultsLimit(max: maximum) ?? maximum,
            reverse: try input.flag("reverse") ?? false,
            recordTypes: try input.names("desiredRecordTypes", limit: 1_000))
        let page = try await self.page(request, isSkipped: false)
        let parts = try await self.parts(of: page)
        var writer = self.exchange.writer(reserving: 4_096)
        writer.object { $0.writeMembers(of: page, request.shape, parts) }
        return writer.finish()
    }

    /// What stands in a page beside its records.
    fileprivate struct PageParts {
        var links: AssetLinks?
        var opened: OpenedFields
        var shares: ShownShares
    }

    /// The encrypted fields of a page, and what is shown of its shares.
    ///
    /// A key that is gone fails the page: a rotation has sealed the record anew since it was read.
    /// That changes no feed, so a client that went past the record would never get it.
    private func parts(of page: ChangesPage) async throws -> PageParts {
        let records = page.records
        let opened = try await self.exchange.opened(records)
        if opened.lacksKeys { throw RouteError.notExecuted(retryAfter: .seconds(1)) }
        return PageParts(
            links: self.exchange.assetLinks, opened: opened,
            shares: try await self.exchange.shownShares(of: records, at: page.place))
    }

    /// Once an answer has this size, further zones of it get an empty page.
    private static let answerSizeMax = ByteCount.mebibytes(16)

    /// - Throws: what the zone is refused for.
    private func page(_ request: ChangesRequest, isSkipped: Bool) async throws -> ChangesPage {
        guard let place = self.exchange.place(request.address) else {
            throw InputRefusal.zoneNotFound
        }
        guard !place.zone.isDefault else { throw InputRefusal.changesInDefaultZone }
        if self.exchange.isShared, let denial = try await self.exchange.denial(at: place) {
            throw denial
        }
        if request.token == "" {
            guard let zone = try await self.exchange.summary(of: place) else {
                throw InputRefusal.zoneNotFound
            }
            return ChangesPage(
                place: place, changes: [],
                token: self.exchange.token(zone.position, in: place.zone),
                moreComing: false)
        }
        let after = try request.token.map { token throws(InputRefusal) in
            try self.exchange.position(token, in: place.zone)
        }
        if isSkipped {
            guard let zone = try await self.exchange.summary(of: place) else {
                throw InputRefusal.zoneNotFound
            }
            let start = FeedPosition(incarnation: zone.incarnation, tag: ChangeTag(0))
            return ChangesPage(
                place: place, changes: [],
                token: self.exchange.token(after ?? start, in: place.zone), moreComing: true)
        }
        let answer = try await self.exchange.ask(
            .zoneChanges(
                ZoneChangesAsk(
                    database: place.database, zone: place.zone.name, after: after,
                    limit: request.limit, reverse: request.reverse,
                    recordTypes: request.recordTypes)),
            at: place.key)
        switch answer {
        case .zoneChanges(let page):
            return ChangesPage(
                place: place, changes: page.changes,
                token: self.exchange.token(page.position, in: place.zone),
                moreComing: page.moreComing)
        case .zoneRefused(let refusal): throw ClientError(refusal)
        default: throw RouteError.otherKind
        }
    }

    /// Returns the error if it concerns one zone only; nil if it concerns the whole request.
    private func itemError(_ error: any Error) -> ClientError? {
        let error = ClientError(error)
        return Self.isAboutOneZone(error) ? error : nil
    }

    static func isAboutOneZone(_ error: ClientError) -> Bool {
        switch error.code {
        case .zoneNotFound, .badRequest, .accessDenied, .notFound: return true
        case .atomicError, .authenticationFailed, .authenticationRequired, .conflict, .exists,
            .internalError, .quotaExceeded, .throttled, .tryAgainLater,
            .validatingReferenceError:
            return false
        }
    }

    // MARK: Databases

    /// `changes/database`, and `zones/changes` under its older names.
    func databaseChanges(_ input: Input, as kind: FeedToken.Kind) async throws -> Bytes {
        let tokenKey = kind == .meta ? "metaSyncToken" : "syncToken"
        let maximum = self.exchange.kernel.limits.operationCountMax
        let limit = try input.resultsLimit(max: maximum) ?? maximum
        let token = try input.string(tokenKey)
        if self.exchange.isShared {
            return try await self.sharedChanges(after: token, as: kind, limit: limit)
        }
        return self.written(try await self.page(after: token, as: kind, limit: limit), as: kind)
    }

    private struct ZonesPage {
        var changes: [DatabaseChangesPage.Change]
        var token: String
        var moreComing: Bool
    }

    private func page(
        after token: String?, as kind: FeedToken.Kind, limit: Int
    ) async throws -> ZonesPage {
        if let database = self.exchange.holder.spread {
            let page = try await self.page(of: database, after: token, as: kind, limit: limit)
            return ZonesPage(
                changes: page.changes, token: self.exchange.token(page.position, as: kind),
                moreComing: page.moreComing)
        }
        let page = try await self.databasePage(after: token, as: kind, limit: limit)
        return ZonesPage(
            changes: page.changes, token: self.exchange.token(page.position, as: kind),
            moreComing: page.moreComing)
    }

    private func written(_ page: ZonesPage, as kind: FeedToken.Kind) -> Bytes {
        var writer = self.exchange.writer()
        writer.object {
            $0.key("zones")
            $0.array { array in
                for change in page.changes { self.write(change, as: kind, to: &array) }
            }
            $0.member(kind == .meta ? "metaSyncToken" : "syncToken", page.token)
            $0.member("moreComing", page.moreComing)
        }
        return writer.finish()
    }

    // MARK: Live

    /// A page of a zone as an event has it: an entry of `changes/zone`. Nil: nothing has changed.
    ///
    /// A stream that stands nowhere yet gets a page in any case: so its client has a place to go
    /// on from.
    func livePage(
        ofZone name: String, after token: String?
    ) async throws -> (data: Bytes, token: String)? {
        let request = ChangesRequest(
            address: ZoneAddress(name: name, owner: nil), shape: AnswerShape(), token: token,
            limit: self.exchange.kernel.limits.operationCountMax, reverse: false)
        let page = try await self.page(request, isSkipped: false)
        let isPlaced = token.map { !$0.isEmpty } ?? false
        guard !isPlaced || page.moreComing || !page.changes.isEmpty else { return nil }
        let parts = try await self.parts(of: page)
        var writer = self.exchange.writer(reserving: 4_096)
        writer.object {
            $0.key("zoneID")
            $0.writeZoneID(page.zone)
            $0.writeMembers(of: page, request.shape, parts)
        }
        return (writer.finish(), page.token)
    }

    /// The same of the database: an answer of `changes/database`.
    func livePage(after token: String?) async throws -> (data: Bytes, token: String)? {
        let page = try await self.page(
            after: token, as: .database, limit: self.exchange.kernel.limits.operationCountMax)
        let isPlaced = token.map { !$0.isEmpty } ?? false
        guard !isPlaced || page.moreComing || !page.changes.isEmpty else { return nil }
        return (self.written(page, as: .database), page.token)
    }

    private func databasePage(
        after token: String?, as kind: FeedToken.Kind, limit: Int
    ) async throws -> DatabaseChangesPage {
        if token == "" { return try await self.caughtUpPage(as: kind) }
        let after = try token.map { token throws(InputRefusal) in
            try self.exchange.databasePosition(token, as: kind)
        }
        return try Self.page(try await self.databaseAnswer(after: after, limit: limit))
    }

    private func databaseAnswer(
        after: DatabasePosition?, limit: Int
    ) async throws -> RecordAnswer {
        try await self.exchange.ask(
            .databaseChanges(
                DatabaseChangesAsk(
                    database: self.exchange.holder.database, after: after, limit: limit)),
            at: .database(self.exchange.holder.database))
    }

    static func page(_ answer: RecordAnswer) throws -> DatabaseChangesPage {
        switch answer {
        case .databaseChanges(let page): return page
        case .zoneRefused(let refusal): throw ClientError(refusal)
        default: throw RouteError.otherKind
        }
    }

    /// How often a walk to a feed's end begins again.
    static let restartCountMax = 8

    /// No changes, and the feed's end.
    ///
    /// A position on the way may expire, as any may. The client named none, so it is not told: the
    /// walk begins again.
    private func caughtUpPage(as kind: FeedToken.Kind) async throws -> DatabaseChangesPage {
        var page = DatabaseChangesPage(changes: [], position: .start, moreComing: false)
        var after: DatabasePosition?
        var restartCount = 0
        repeat {
            let answer = try await self.databaseAnswer(
                after: after, limit: self.exchange.kernel.limits.operationCountMax)
            if after != nil, case .zoneRefused(.positionExpired) = answer {
                guard restartCount < Self.restartCountMax else {
                    throw ClientError(
                        .tryAgainLater, "the database is changing too fast, try again later",
                        retryAfter: 1)
                }
                restartCount += 1
                after = nil
                continue
            }
            page = try Self.page(answer)
            // A page that does not move would be asked for for ever.
            if page.position == after { break }
            after = page.position
        } while page.moreComing
        page.changes = []
        page.moreComing = false
        return page
    }

    private func write(
        _ change: DatabaseChangesPage.Change, as kind: FeedToken.Kind, to writer: inout JSONWriter
    ) {
        let id = ZoneID(name: change.name, owner: self.exchange.holder.database.owner)
        if kind == .meta {
            if let zone = change.zone, !change.isDeleted {
                writer.writeZone(
                    zone, id: id, token: self.exchange.zoneToken(zone),
                    deletedBefore: change.deletedBefore)
            } else {
                writer.writeDeletedZone(id, change.deletion)
            }
            return
        }
        writer.object {
            $0.key(known: "zoneID")
            $0.writeZoneID(id)
            // A client may hand these entries straight to changes/zone, so the token is not the
            // newest but the one from which nothing is missed.
            if let zone = change.zone, !change.isDeleted {
                let start = FeedPosition(incarnation: zone.incarnation, tag: ChangeTag(0))
                $0.member(known: "syncToken", self.exchange.token(change.since ?? start, in: id))
            } else {
                $0.member("syncToken", "")
            }
            $0.member(known: "deleted", change.isDeleted)
            $0.writeReason(change.deletion, "deletionReason")
            $0.writeReason(change.deletedBefore, "deletedBefore")
        }
    }
}

extension JSONWriter {
    /// Always all three: clients need the records even where there are none.
    fileprivate mutating func writeMembers(
        of page: FeedService.ChangesPage, _ shape: AnswerShape, _ parts: FeedService.PageParts
    ) {
        self.key("records")
        self.array { array in
            for change in page.changes {
                switch change {
                // Its tombstone lies further on.
                case .changed(let record) where parts.shares.isGone(record): continue
                case .changed(let record):
                    array.writeRead(record, shape, parts.links, parts.opened, parts.shares)
                case .deleted(let name, let tag):
                    array.writeTombstone(name, tag: tag, in: page.zone)
                }
            }
        }
        self.member("syncToken", page.token)
        self.member("moreComing", page.moreComing)
    }
}
