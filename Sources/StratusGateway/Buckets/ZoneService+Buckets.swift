import StratusCluster
import StratusModel
import StratusRecords

/// Zones of a private database whose custom zones lie in buckets.
extension ZoneService {
    /// All live zones: those of the home, and of each bucket in use.
    func zones(of database: PrivateDatabase) async throws -> [ZoneSummary] {
        let (answers, home) = try await self.exchange.askBuckets(of: database) {
            try await self.allZones(in: database.part($0))
        }
        var zones: [ZoneSummary] = []
        for (_, found) in answers {
            // A bucket has no default zone; it says what every database says of one.
            for case .zone(let zone) in found where !zone.isDefault { zones.append(zone) }
        }
        if let zone = home.zone { zones.append(zone) }
        zones.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        if home.zone == nil {
            zones.insert(
                ZoneSummary(
                    name: ZoneID.defaultName, incarnation: ZoneIncarnation(0),
                    lastTag: ChangeTag(0)), at: 0)
        }
        return zones
    }

    /// Looks names up where they are, in their order. A part that cannot be reached fails its own
    /// names.
    func zones(
        named names: [String], of database: PrivateDatabase
    ) async -> [Result<ZoneAnswer, ClientError>] {
        await Self.inParts(names.map { database.part(of: $0) }) { part, positions in
            try await self.zones(names: positions.map { names[$0] }, in: part)
        }
    }

    /// Carries operations out where their zones are, and answers in their order. A part that cannot
    /// be reached fails its own operations.
    func modify(
        _ operations: [ModifyZones.Operation], of database: PrivateDatabase
    ) async -> [Result<ZoneResult, ClientError>] {
        let wanted = BucketMask(
            of: operations.filter { $0.kind == .create }.compactMap {
                database.number(of: $0.zone)
            })
        // The bit comes before the zone.
        let unnoted = await self.failureToNote(wanted, of: database)
        let known = self.exchange.knownBuckets(of: database)
        let parts = operations.map { database.part(of: $0.zone) }
        return await Self.inParts(parts) { part, positions in
            let own = positions.map { operations[$0] }
            if own.contains(where: { $0.kind == .create }) {
                if let unnoted, let bucket = part.bucket, !known.contains(Int(bucket.number)) {
                    throw unnoted
                }
                try await self.teachSchema(to: part)
            }
            return try await self.submit(own, to: part)
        }
    }

    /// Nil: the home knows of the buckets.
    private func failureToNote(
        _ wanted: BucketMask, of database: PrivateDatabase
    ) async -> ClientError? {
        do { try await self.exchange.note(wanted, of: database) } catch {
            return ClientError(error)
        }
        return nil
    }

    /// Parts that one request asks at the same time: all that a private database has.
    private static let partCountMax = Bucket.countMax

    /// Runs `body` for each of the parts with the positions that it has, many at the same time.
    static func inParts<Item: Sendable>(
        _ databases: [DatabaseID],
        _ body: @escaping @Sendable (DatabaseID, _ positions: [Int]) async throws -> [Item]
    ) async -> [Result<Item, ClientError>] {
        var positions: [DatabaseID: [Int]] = [:]
        for (position, database) in databases.enumerated() {
            positions[database, default: []].append(position)
        }
        let parts = positions.sorted {
            ($0.key.owner, $0.key.bucket?.number ?? 0) < ($1.key.owner, $1.key.bucket?.number ?? 0)
        }
        // Both are arrays: release builds of Swift 6.3.1 lost the first part of a tuple whose
        // second was a `Result` of several words, and the node crashed.
        return await withTaskGroup(of: ([Int], [Result<Item, ClientError>]).self) { tasks in
            for (part, positions) in parts.prefix(Self.partCountMax) {
                tasks.addTask { (positions, await Self.items(of: part, positions, body)) }
            }
            var rest = parts.dropFirst(Self.partCountMax)
            var results: [Result<Item, ClientError>] = databases.map { _ in
                .failure(ClientError(RouteError.outcomeUnknown))
            }
            for await (positions, items) in tasks {
                for (position, item) in zip(positions, items) { results[position] = item }
                if let (part, positions) = rest.popFirst() {
                    tasks.addTask { (positions, await Self.items(of: part, positions, body)) }
                }
            }
            return results
        }
    }

    /// The answers of a part, one for each position.
    private static func items<Item: Sendable>(
        of part: DatabaseID, _ positions: [Int],
        _ body: @Sendable (DatabaseID, _ positions: [Int]) async throws -> [Item]
    ) async -> [Result<Item, ClientError>] {
        do {
            return try await body(part, positions).map { .success($0) }
        } catch {
            let failure = ClientError(error)
            return positions.map { _ in .failure(failure) }
        }
    }
}
