import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows

/// Reads and writes for archives and erasures, as Stratus itself, by the same commands as any
/// client.
struct ArchiveReader: Sendable {
    let store: IdentityStore
    private static let patience = Duration.seconds(30)

    /// - Parameter principal: on whose behalf.
    private func ask(
        _ ask: RecordQuery.Ask, at key: ShardKey,
        as principal: Principal = Principal(kind: .system)
    ) async throws -> RecordAnswer {
        let query = RecordQuery(principal: principal, ask)
        let answer = try await self.store.router.read(
            query.enveloped(), at: key, deadline: self.store.world.now + Self.patience)
        return try RecordAnswer(decoding: answer.body)
    }

    func schema(of container: ContainerReference) async throws -> Schema {
        guard
            case .schema(let schema) = try await self.ask(
                .schema(container), at: .container(container))
        else { throw RouteError.refused("no schema where one was asked for") }
        return schema ?? Schema()
    }

    /// What a user is subscribed to.
    func subscriptions(
        of user: String, in database: DatabaseID, isShared: Bool
    ) async throws -> [Subscription] {
        guard
            case .subscriptions(let found) = try await self.ask(
                .subscriptions(database, isShared: isShared, names: nil), at: .database(database),
                as: Principal(kind: .user, userRecordName: user))
        else { throw RouteError.refused("no subscriptions where some were asked for") }
        return found.compactMap(\.self)
    }

    /// A page of a key-value store.
    func keyValues(of database: DatabaseID, after: FeedPosition?) async throws -> KeyValuesPage {
        let ask = KeyValuesAsk(database: database, after: after)
        guard
            case .keyValues(let page) = try await self.ask(
                .keyValues(ask), at: .database(database))
        else { throw RouteError.refused("no key values where some were asked for") }
        return page
    }

    /// The devices that have changed a key-value store.
    func keyValueDevices(of database: DatabaseID) async throws -> [KeyValueDevice] {
        guard
            case .keyValueDevices(let devices) = try await self.ask(
                .keyValueDevices(database), at: .database(database))
        else { throw RouteError.refused("no devices where some were asked for") }
        return devices
    }

    /// An answer about documents.
    func documents(
        _ question: DocumentsAsk.Question, of database: DatabaseID
    ) async throws -> DocumentsAnswer {
        guard
            case .documents(let answer) = try await self.ask(
                .documents(DocumentsAsk(database: database, question)), at: .database(database))
        else { throw RouteError.refused("no documents where some were asked for") }
        return answer
    }

    /// Removes all that a user is subscribed to in a database that is not the user's own.
    func forgetSubscriptions(of user: String, in database: DatabaseID) async throws {
        _ = try await self.store.submit(
            .followNews(
                FollowNews(
                    database: database, subscriber: user,
                    token: Bytes(repeating: 0, count: FollowNews.tokenLength), .forget)),
            to: database)
    }

    /// Files that are lost, in the partition of a database.
    func lostFiles(after asset: AssetID?, near database: DatabaseID) async throws -> LostFiles {
        guard
            case .lostFiles(let lost) = try await self.ask(
                .lostFiles(LostFilesAsk(after: asset)), at: .database(database))
        else { throw RouteError.refused("no files where some were asked for") }
        return lost
    }

    /// The bodies of a database's files.
    func files(of database: DatabaseID, after asset: AssetID?) async throws -> DatabaseFiles {
        guard
            case .databaseFiles(let page) = try await self.ask(
                .databaseFiles(DatabaseFilesAsk(database, after: asset)), at: .database(database))
        else { throw RouteError.refused("no files where some were asked for") }
        return page
    }

    /// What the rows of files contradict, in the partition of a database.
    func assetRows(after place: Bytes?, near database: DatabaseID) async throws -> AssetRowFaults {
        guard
            case .assetRows(let page) = try await self.ask(
                .assetRows(AssetRowsAsk(after: place)), at: .database(database))
        else { throw RouteError.refused("no rows of files where some were asked for") }
        return page
    }

    func ask<Question: DatabaseQuestion>(_ question: Question) async throws -> Question.Answer {
        try await self.store.ask(question, within: Self.patience)
    }

    /// - Throws: where it is refused, too.
    func submit<Operation: DatabaseOperation<RecordState>>(_ operation: Operation) async throws
        -> Operation.Outcome
    {
        switch try await self.store.submit(operation, within: Self.patience) {
        case .success(let outcome): return outcome
        case .failure(let refusal): throw RouteError.refused("\(refusal.reason)")
        }
    }

    func zones(of database: DatabaseID) async throws -> [String] {
        var names: [String] = []
        var after: String?
        while true {
            guard
                case .zonePage(let page, let next) = try await self.ask(
                    .zonePage(database, after: after, limit: 2_000), at: .database(database))
            else { throw RouteError.refused("no zones where some were asked for") }
            for case .zone(let summary) in page { names.append(summary.name) }
            after = next
            if after == nil { return names }
        }
    }

    enum Changes {
        case page(ZoneChangesPage)
        /// There is no such zone any more: nothing of it is left to tell.
        case deleted
        /// Nothing goes on from that position: only the beginning is whole.
        case expired
    }

    func changes(in zone: String, of database: DatabaseID, after: FeedPosition?) async throws
        -> Changes
    {
        let ask = ZoneChangesAsk(database: database, zone: zone, after: after)
        switch try await self.ask(.zoneChanges(ask), at: .database(database)) {
        case .zoneChanges(let page): return .page(page)
        case .zoneRefused(.notFound): return .deleted
        case .zoneRefused(.positionExpired): return .expired
        default: throw RouteError.refused("no changes where some were asked for")
        }
    }

    /// - Parameter limit: 0: as many as a page may have.
    func page(
        of type: String, in database: DatabaseID, after: Bytes?, limit: Int = 0
    ) async throws -> QueryPage {
        let ask = QueryPageAsk(
            database: database, predicate: RecordPredicate(recordType: type), limit: limit,
            after: after, requiresIndexes: false)
        switch try await self.ask(.page(ask), at: .database(database)) {
        case .page(let page): return page
        // A partition that never saw the type has no records of it.
        case .refused(let refusal) where refusal.reason == .typeUnknown:
            return QueryPage(records: [], next: nil, zone: nil, touchCount: 0)
        default: throw RouteError.refused("no page where one was asked for")
        }
    }

    func record(_ name: String, in database: DatabaseID) async throws -> [Record] {
        let ask = RecordLookup(database: database, names: [name])
        guard
            case .lookup(let found) = try await self.ask(
                .lookup(ask), at: .database(database))
        else { throw RouteError.refused("no record where one was asked for") }
        return found.items.compactMap { item in
            if case .found(let record) = item { record } else { nil }
        }
    }

    /// False: others' VALIDATE references keep the record where it is.
    func delete(_ name: String, in database: DatabaseID) async throws -> Bool {
        let outcome = try await self.store.submit(
            .modifyRecords(
                ModifyRecords(
                    database: database, drawnIncarnation: ZoneIncarnation(0),
                    operations: [RecordOperation(.forceDelete, recordName: name)])),
            to: database)
        guard case .records(let modified) = outcome, let result = modified.results.first else {
            throw RouteError.refused("an outcome of another kind")
        }
        switch result {
        case .saved, .deleted: return true
        case .refused(let refusal) where refusal.reason == .referenced: return false
        case .refused: throw RouteError.notExecuted(retryAfter: .seconds(1))
        }
    }
}
