import StratusCluster
import StratusCoding
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// `records/query`, by itself and in batches.
struct QueryService: Sendable {
    let exchange: Exchange

    static let operations = [
        GatewayOperation("records/query", in: .all, needs: .reader) {
            try await QueryService(exchange: $0).query($1)
        },
        // Not part of the public interface; web clients of Photos send it.
        GatewayOperation("internal/records/query/batch", in: .all, needs: .reader) {
            try await QueryService(exchange: $0).queryInBatch($1)
        },
    ]

    /// `records/query`.
    func query(_ input: Input) async throws -> Bytes {
        let request = try QueryRequest(input, limits: self.exchange.kernel.limits)
        try Self.requireQueryable(request.recordType)
        guard request.zone != nil || !request.zoneWide || !self.exchange.isShared
        else { return try await self.querySharedZones(request) }
        let found = try await self.found(request)
        return try await self.queryAnswer(
            records: found.records, marker: found.marker, zone: found.zone, request: request)
    }

    /// A page of records, and where the next one begins.
    struct FoundPage {
        var records: [Record]
        var marker: String?
        /// Nil: of all zones.
        var zone: (ZoneSummary?, ZoneID)?
    }

    /// A page of one zone, or of all zones of the caller's own database.
    func found(_ request: QueryRequest) async throws -> FoundPage {
        let target = try self.target(of: request)
        if self.exchange.isShared, let denial = try await self.exchange.denial(at: target.place) {
            throw denial
        }
        let (predicate, schema) = try await self.predicate(of: request, at: target)
        // A marker goes on with exactly the query that it came from.
        var writer = ByteWriter()
        writer.write(predicate)
        writer.write(flag: target.isZoneWide)
        let place = self.exchange.feedPlace(target.zone.name, target.zone.owner)
        let ask = QueryPageAsk(
            database: target.database, zone: target.isZoneWide ? nil : target.zone.name,
            predicate: predicate, limit: request.limit,
            after: try request.marker.map { marker throws(InputRefusal) in
                try ContinuationMarker.cursor(
                    marker, of: writer.bytes, at: place, openedWith: self.exchange.cipher)
            },
            touchCountMax: self.exchange.kernel.limits.queryTouchCountMax,
            requiresIndexes: self.exchange.kernel.settings.requiresIndexes(
                in: self.exchange.route.container.environment))
        let page = try await self.page(ask, of: target, schema: schema)
        let marker = page.next.map {
            ContinuationMarker.text(
                $0, of: writer.bytes, at: place, sealedWith: self.exchange.cipher)
        }
        return FoundPage(
            records: page.records, marker: marker,
            zone: target.isZoneWide ? nil : (page.zone, target.zone))
    }

    /// The query of a subscription, found good as `records/query` finds it.
    /// - Returns: the predicate, the one zone it is limited to, and its record type.
    func subscribed(
        _ request: QueryRequest
    ) async throws -> (predicate: RecordPredicate, zone: String?, type: RecordType) {
        let target = try self.target(of: request)
        try Self.requireQueryable(request.recordType)
        var (predicate, schema) = try await self.predicate(of: request, at: target)
        predicate.sorts = []
        _ = try await self.page(
            QueryPageAsk(
                // One bucket knows as well as all of them whether the query can be asked.
                database: target.buckets == nil ? target.database : target.place.home,
                zone: target.isZoneWide ? nil : target.zone.name,
                predicate: predicate, limit: 1, touchCountMax: 1,
                requiresIndexes: self.exchange.kernel.settings.requiresIndexes(
                    in: self.exchange.route.container.environment)), schema: schema)
        guard let type = schema.type(named: request.recordType) else {
            throw ClientError(
                StratusRecords.RequestRefusal(.typeUnknown, request.recordType))
        }
        return (predicate, request.zone == nil ? nil : target.zone.name, type)
    }

    private static func requireQueryable(_ type: String) throws(InputRefusal) {
        switch type {
        case "Users": throw .usersQueried
        case ShareNames.type: throw .sharesQueried
        default: return
        }
    }

    /// `internal/records/query/batch`: queries side by side, each with its own answer or error.
    func queryInBatch(_ input: Input) async throws -> Bytes {
        var answers: [Bytes] = []
        var size = 0
        for element in try input.requiredElements("batch", limit: Self.batchCountMax) {
            do {
                // Each has pages to go on with; all of them together are held at once.
                guard size < Self.batchAnswerSizeMax else {
                    throw RouteError.notExecuted(retryAfter: .seconds(1))
                }
                answers.append(try await self.query(try Input(element, at: "batch")))
                size += answers.last?.count ?? 0
            } catch {
                var writer = JSONWriter(
                    hasExtensions: self.exchange.kernel.settings.hasExtensions)
                writer.writeFailure(
                    ClientError(error), uuid: self.exchange.kernel.world.drawIdentity().uuid)
                answers.append(writer.finish())
            }
        }
        var writer = JSONWriter(reserving: answers.reduce(64) { $0 + $1.count })
        writer.object {
            $0.key("batch")
            $0.array { array in for answer in answers { array.write(raw: answer) } }
        }
        return writer.finish()
    }

    private static let batchCountMax = 20
    private static let batchAnswerSizeMax = 32 << 20

    private struct Target {
        var zone: ZoneID
        var database: DatabaseID
        var isZoneWide: Bool
        var buckets: Bucket?
        var place: ZonePlace
    }

    private func target(of request: QueryRequest) throws(InputRefusal) -> Target {
        // A zone that is named counts, whatever zoneWide says.
        if request.zone == nil, request.zoneWide {
            // The public database has one zone.
            let place = try self.exchange.requiredPlace(.defaultZone)
            return Target(
                zone: place.zone, database: place.database,
                isZoneWide: self.exchange.route.scope == .private, buckets: place.buckets,
                place: place)
        }
        let place = try self.exchange.requiredPlace(request.zone ?? .defaultZone)
        return Target(
            zone: place.zone, database: place.database, isZoneWide: false, buckets: place.buckets,
            place: place)
    }

    /// A zone that is not there is told first, as by `records/modify` and `records/lookup`: clients
    /// make their zone on that answer.
    private func predicate(
        of request: QueryRequest, at target: Target
    ) async throws -> (RecordPredicate, Schema) {
        do {
            return try await self.predicate(of: request, in: target)
        } catch {
            // Nobody without a user is told more than that one is needed.
            if !target.isZoneWide, self.exchange.route.scope != .public {
                _ = try await self.exchange.summary(of: target.place)
            }
            throw error
        }
    }

    /// Compiles the clauses by the schema as it is in memory, and once more by the schema as it is
    /// where that one knows no such type or field.
    private func predicate(
        of request: QueryRequest, in target: Target
    ) async throws -> (RecordPredicate, Schema) {
        var zone = target.zone
        // In a query of all zones an operand without a zone means the zone of each record.
        if target.isZoneWide { zone.name = "" }
        let fields = FieldReader(
            zone: zone, scope: self.exchange.route.scope, caller: self.exchange.sender.name)
        var schema = try await self.exchange.schema()
        if !self.knows(request, schema) { schema = try await self.exchange.schema(fresh: true) }
        guard let type = schema.type(named: request.recordType) else {
            throw ClientError(
                StratusRecords.RequestRefusal(.typeUnknown, request.recordType))
        }
        try await self.requireUserFor(type)
        let reader = PredicateReader(
            type: type, fields: fields,
            operandCountMax: self.exchange.kernel.limits.queryOperandCountMax)
        return (try reader.predicate(request), schema)
    }

    /// Refuses a caller who has only an API token, if signing in could help: the world may not read
    /// the type, and somebody may.
    private func requireUserFor(_ type: RecordType) async throws {
        let readers = AccessRules.roles(that: .read, type)
        if self.exchange.route.scope == .public, !readers.isEmpty, !readers.contains("_world") {
            try await self.exchange.requireUser()
        }
    }

    private func knows(_ request: QueryRequest, _ schema: Schema) -> Bool {
        guard let type = schema.type(named: request.recordType) else { return false }
        return (request.filters + request.sorts).allSatisfy { clause in
            guard let name = clause["fieldName"]?.string else { return true }
            return type.field(named: name) != nil || PredicateReader.systemField(name) != nil
        }
    }

    /// A partition that never saw the type learns it first: the answer is then "none", not
    /// "unknown".
    func answer(_ ask: QueryPageAsk, schema: Schema) async throws -> RecordAnswer {
        let key = ShardKey.database(ask.database)
        try await self.exchange.teach(schema, to: ask.database)
        var ask = ask
        ask.schemaVersion = schema.version
        var hasInstalled = false
        while true {
            let refusal: StratusRecords.RequestRefusal
            do throws(RecordsError) {
                return try await self.exchange.kernel.partitions.ask(
                    RecordQuery.Ask.page(ask), at: .key(key), as: self.exchange.caller)
            } catch {
                guard case .refused(let why) = error else { throw RouteError(error) }
                refusal = why
            }
            switch refusal.reason {
            case .schemaBehind:
                // What it has against the newer one, saves are told; reads are answered by the one
                // it has.
                if hasInstalled { throw ClientError(refusal) }
                do { try await self.exchange.install(schema, at: key) } catch is ClientError {
                    ask.schemaVersion = 0
                }
                hasInstalled = true
            case .typeUnknown where !hasInstalled:
                try await self.exchange.install(schema, at: key)
                hasInstalled = true
            case .queryInvalid where !hasInstalled:
                // It may be a field or an index that the partition has not been told of: nothing
                // was saved there since.
                guard try await self.exchange.isBehind(schema, at: key) else {
                    throw ClientError(refusal)
                }
                try await self.exchange.install(schema, at: key)
                hasInstalled = true
            default: throw ClientError(refusal)
            }
        }
    }

    func page(_ ask: QueryPageAsk, schema: Schema) async throws -> QueryPage {
        guard case .page(let page) = try await self.answer(ask, schema: schema) else {
            throw RouteError.otherKind
        }
        return page
    }

    /// A page of the whole zone, or of all zones, wherever its records are.
    private func page(_ ask: QueryPageAsk, of target: Target, schema: Schema) async throws
        -> QueryPage
    {
        if let buckets = target.buckets {
            let parts = SpreadParts(ask.database, bucketCount: Int(buckets.count))
            return try await BucketQuery(
                queries: self, ask: ask, parts: parts, mask: .all, schema: schema
            ).page()
        }
        guard target.isZoneWide, let database = self.exchange.holder.spread else {
            return try await self.page(ask, schema: schema)
        }
        let mask = try await self.exchange.buckets(of: database).mask
        return try await BucketQuery(
            queries: self, ask: ask, parts: SpreadParts(database), mask: mask, schema: schema
        ).page()
    }

    func queryAnswer(
        records: [Record], marker: String?, zone: (ZoneSummary?, ZoneID)?, request: QueryRequest
    ) async throws -> Bytes {
        let opened = try await self.exchange.opened(records)
        var writer = JSONWriter(reserving: 1_024 * (records.count + 1))
        let links = self.exchange.assetLinks
        writer.object {
            $0.key("records")
            $0.array { array in
                for record in records { array.writeRead(record, request.shape, links, opened) }
            }
            // Absent on the last page: one client goes on for as long as the key exists.
            if let marker { $0.member("continuationMarker", marker) }
            if let (summary, id) = zone {
                self.exchange.writeSyncToken(of: summary, in: id, to: &$0)
            }
        }
        return writer.finish()
    }
}
