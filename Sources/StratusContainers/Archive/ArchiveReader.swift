import StratusCluster
import StratusCoding
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows

/// Reads and writes for archives and erasures, as Stratus itself, by the same commands as any
/// client.
struct ArchiveReader: Sendable {
    let store: IdentityStore

    private func ask(_ ask: RecordQuery.Ask, of database: DatabaseID) async throws -> RecordAnswer {
        try await self.store.plain.ask(ask, at: .database(database))
    }

    func schema(of container: ContainerReference) async throws -> Schema {
        try await self.store.schema(of: container)
    }

    /// What a user is subscribed to.
    func subscriptions(
        of user: String, in database: DatabaseID, isShared: Bool
    ) async throws -> [Subscription] {
        let answer = try await self.store.plain.ask(
            SubscriptionsAsk(database) { $0.isShared = isShared }, at: .database(database),
            as: Caller(Principal(kind: .user, userRecordName: user)))
        return answer.found.compactMap(\.self)
    }

    /// A page of a key-value store.
    func keyValues(of database: DatabaseID, after: FeedPosition?) async throws -> KeyValuesPage {
        try await self.ask(KeyValuesAsk(database) { $0.after = after })
    }

    /// The devices that have changed a key-value store.
    func keyValueDevices(of database: DatabaseID) async throws -> [KeyValueDevice] {
        var devices: [KeyValueDevice] = []
        while true {
            let after = devices.last?.device
            let page = try await self.ask(KeyValueDevicesAsk(database) { $0.after = after })
            devices += page.devices
            if !page.hasMore || page.devices.isEmpty { return devices }
        }
    }

    /// An answer about documents.
    func documents(
        _ question: DocumentsAsk.Question, of database: DatabaseID
    ) async throws -> DocumentsAnswer {
        guard
            case .documents(let answer) = try await self.ask(
                .documents(DocumentsAsk(database: database, question)), of: database)
        else { throw RouteError.otherKind }
        return answer
    }

    /// Removes all that a user is subscribed to in a database that is not the user's own.
    func forgetSubscriptions(of user: String, in database: DatabaseID) async throws {
        let forget = FollowNews(database) {
            $0.subscriber = user
            $0.step = .forget
        }
        _ = try await self.submit(forget)
    }

    /// Files that are lost, in the partition of a database.
    func lostFiles(after place: LostFilesPlace?, near database: DatabaseID) async throws
        -> LostFiles
    {
        try await self.store.plain.ask(
            LostFilesAsk { $0.after = place }, at: .database(database))
    }

    /// The bodies of a database's files.
    func files(of database: DatabaseID, after asset: AssetID?) async throws -> DatabaseFiles {
        try await self.ask(DatabaseFilesAsk(database) { $0.after = asset })
    }

    /// What the rows of files contradict, in the partition of a database.
    func assetRows(after place: AssetRowsPlace?, near database: DatabaseID) async throws
        -> AssetRowFaults
    {
        try await self.store.plain.ask(
            AssetRowsAsk { $0.after = place }, at: .database(database))
    }

    func ask<Question: DatabaseQuestion>(_ question: Question) async throws -> Question.Answer {
        try await self.store.plain.ask(question, at: .database(question.database))
    }

    /// - Throws: where it is refused, too.
    func submit<Operation: DatabaseOperation<RecordState>>(_ operation: Operation) async throws
        -> Operation.Outcome
    {
        try await self.store.plain.submit(operation, at: .database(operation.database))
    }

    func zones(of database: DatabaseID) async throws -> [String] {
        var names: [String] = []
        var after: String?
        while true {
            guard
                case .zonePage(let page, let next) = try await self.ask(
                    .zonePage(database, after: after, limit: 2_000), of: database)
            else { throw RouteError.otherKind }
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
        switch try await self.ask(.zoneChanges(ask), of: database) {
        case .zoneChanges(let page): return .page(page)
        case .zoneRefused(.notFound): return .deleted
        case .zoneRefused(.positionExpired): return .expired
        default: throw RouteError.otherKind
        }
    }

    /// - Parameter limit: 0: as many as a page may have.
    func page(
        of type: String, in database: DatabaseID, after: Bytes?, limit: Int = 0
    ) async throws -> QueryPage {
        let ask = QueryPageAsk(
            database: database, predicate: RecordPredicate(recordType: type), limit: limit,
            after: after, requiresIndexes: false)
        do throws(PartitionError<RequestRefusal>) {
            guard
                case .page(let page) = try await self.store.partitions.ask(
                    RecordQuery.Ask.page(ask), at: .database(database), as: .system())
            else { throw .otherKind }
            return page
        } catch {
            // A partition that never saw the type has no records of it.
            if case .refused(let refusal) = error, refusal.reason == .typeUnknown {
                return QueryPage(records: [], next: nil, zone: nil, touchCount: 0)
            }
            throw RouteError(error)
        }
    }

    func record(_ name: String, in database: DatabaseID) async throws -> [Record] {
        let ask = RecordLookup(database: database, names: [name])
        guard
            case .lookup(let found) = try await self.ask(
                .lookup(ask), of: database)
        else { throw RouteError.otherKind }
        return found.items.compactMap { item in
            if case .found(let record) = item { record } else { nil }
        }
    }

    /// False: others' VALIDATE references keep the record where it is.
    func delete(_ name: String, in database: DatabaseID) async throws -> Bool {
        let outcome = try await self.store.plain.submit(
            RecordCommand.modifyRecords(
                ModifyRecords(
                    database: database, drawnIncarnation: ZoneIncarnation(0),
                    operations: [RecordOperation(.forceDelete, recordName: name)])),
            at: .database(database))
        guard case .records(let modified) = outcome, let result = modified.results.first else {
            throw RouteError.otherKind
        }
        switch result {
        case .saved, .deleted, .left: return true
        case .refused(let refusal) where refusal.reason == .referenced: return false
        case .refused: throw RouteError.notExecuted(retryAfter: .seconds(1))
        }
    }
}
