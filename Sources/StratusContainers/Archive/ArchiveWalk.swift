import StratusModel
import StratusRecords

/// Pages of records, one step after the other.
struct ArchiveWalk: Sendable {
    enum Step: Sendable {
        case feed(DatabaseID, zone: String, after: FeedPosition?, restartCount: Int)
        case type(DatabaseID, String, after: Bytes?, creator: String?)
        case record(DatabaseID, name: String)
        case subscriptions(DatabaseID, isShared: Bool, user: String)
        case keyValues(DatabaseID, after: FeedPosition?)
        case documents(DatabaseID, after: FeedPosition?, restartCount: Int)
        case versions(DatabaseID, document: String)
        case contents(DatabaseID, document: String, [DocumentVersion], isCurrent: Bool)
    }

    enum Piece: Sendable {
        case records([Record], DatabaseID)
        case subscriptions([Subscription], DatabaseScope)
        case keyValues([KeyValuesPage.Entry], DatabaseScope)
        case documents([DocumentChangesPage.Change], DatabaseScope)
        case content(ArchivedContent, DatabaseID)
        /// The walk of the zone has begun again: discard what it returned before, since everything
        /// follows again.
        case begunAgain(ZoneID, DatabaseScope)
        /// Records of the zone are missing.
        case incomplete(ZoneID, DatabaseScope)
    }

    let reader: ArchiveReader
    var steps: [Step]

    /// The next page with the database it is of; nil at the end.
    mutating func next() async throws -> Piece? {
        guard let step = self.steps.first else { return nil }
        switch step {
        case .feed(let database, let zone, let after, let restartCount):
            return try await self.changes(
                in: zone, of: database, after: after, restartCount: restartCount)
        case .type(let database, let type, let after, let creator):
            let page = try await self.reader.page(of: type, in: database, after: after)
            if let next = page.next {
                self.steps[0] = .type(database, type, after: next, creator: creator)
            } else {
                self.steps.removeFirst()
            }
            let records = page.records.filter {
                creator == nil || $0.created.userRecordName == creator
            }
            return .records(records, database)
        case .record(let database, let name):
            self.steps.removeFirst()
            return .records(try await self.reader.record(name, in: database), database)
        case .subscriptions(let database, let isShared, let user):
            self.steps.removeFirst()
            var found = try await self.reader.subscriptions(
                of: user, in: database, isShared: isShared)
            // Those of all zones are in every part, and the home tells of them.
            if database.zoneBucket != nil { found.removeAll { $0.zone == nil } }
            return .subscriptions(found, isShared ? .shared : database.scope)
        case .keyValues(let database, let after):
            let page = try await self.reader.keyValues(of: database, after: after)
            if page.moreComing {
                self.steps[0] = .keyValues(database, after: page.position)
            } else {
                self.steps.removeFirst()
            }
            return .keyValues(page.entries, database.scope)
        case .documents(let database, let after, let restartCount):
            return try await self.documents(of: database, after, restartCount)
        case .versions(let database, let document):
            return try await self.versions(of: document, in: database)
        case .contents(let database, let document, let versions, let isCurrent):
            return try await self.content(of: document, in: database, versions, isCurrent)
        }
    }

    private mutating func changes(
        in zone: String, of database: DatabaseID, after: FeedPosition?, restartCount: Int
    ) async throws -> Piece {
        let id = ZoneID(name: zone, owner: database.owner)
        switch try await self.reader.changes(in: zone, of: database, after: after) {
        case .page(let page):
            if page.moreComing {
                self.steps[0] = .feed(
                    database, zone: zone, after: page.position, restartCount: restartCount)
            } else {
                self.steps.removeFirst()
            }
            let records = page.changes.compactMap { change -> Record? in
                if case .changed(let record) = change { record } else { nil }
            }
            return .records(records, database)
        case .deleted:
            self.steps.removeFirst()
            return .records([], database)
        case .expired where restartCount < UserArchive.restartCountMax:
            self.steps[0] = .feed(
                database, zone: zone, after: nil, restartCount: restartCount + 1)
            return .begunAgain(id, database.scope)
        case .expired:
            self.steps.removeFirst()
            return .incomplete(id, database.scope)
        }
    }
}
