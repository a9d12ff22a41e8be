import StratusModel
import StratusRecords

/// A client's operation on a group that holds records.
enum RecordWork: Equatable {
    case command(RecordCommand, Principal)
    case query(RecordQuery.Ask, Principal)

    var isWrite: Bool {
        if case .command = self { true } else { false }
    }

    /// The zone it is about; nil for what is about none, or several.
    var place: RecordModel.Place? {
        switch self {
        case .command(.modifyRecords(let modify), _):
            RecordModel.Place(database: modify.database, zone: modify.zone)
        case .query(.lookup(let ask), _):
            RecordModel.Place(database: ask.database, zone: ask.zone)
        case .query(.zoneChanges(let ask), _):
            RecordModel.Place(database: ask.database, zone: ask.zone)
        case .query(.databaseChanges(let ask), _): .feed(of: ask.database)
        case .query(.page(let ask), _):
            ask.zone.map { RecordModel.Place(database: ask.database, zone: $0) }
        default: nil
        }
    }
}

extension RecordCommand {
    /// The one whose zones it changes.
    var changedDatabase: DatabaseID? {
        switch self {
        case .modifyRecords, .modifyZones, .eraseDatabase, .modifyDocuments:
            self.database
        case .schema, .continueJobs, .reserveReferences, .recover, .auditLinks,
            .forgetOutcomes, .noteBuckets:
            nil
        }
    }
}

extension RecordModel.Place {
    /// No zone, but the feed of a database: what is counted there are its turns.
    static func feed(of database: DatabaseID) -> Self { Self(database: database, zone: "") }
}

/// The knowledge of one client about records.
struct RecordClient {
    struct Name: Hashable {
        var group: GroupID
        var place: RecordModel.Place
        var record: String
    }

    struct Sighting {
        var tag: String
        var number: Int?
    }

    struct Feed: Hashable {
        var group: GroupID
        var place: RecordModel.Place
    }

    struct DatabaseFeed: Hashable {
        var group: GroupID
        var database: DatabaseID
    }

    /// Records as it last saw them: what its updates expect.
    var sightings: [Name: Sighting] = [:]
    var mirrors: [Feed: RecordMirror] = [:]
    var databases: [DatabaseFeed: DatabaseMirror] = [:]

    /// Takes in a page of a database's feed, and hands the tokens that it names on to the zones.
    ///
    /// - Returns: what is wrong with the page by itself; nil: nothing.
    mutating func take(_ page: DatabaseChangesPage, of feed: DatabaseFeed) -> String? {
        // A client that starts a database's feed from nothing forgets what it learned by asking for
        // single zones.
        if self.databases[feed] == nil { self.forget(feed) }
        var mirror = self.databases[feed] ?? DatabaseMirror()
        let problem = mirror.take(page)
        self.databases[feed] = mirror
        for change in page.changes {
            self.pass(
                change,
                to: Feed(
                    group: feed.group,
                    place: RecordModel.Place(database: feed.database, zone: change.name)))
        }
        return problem
    }

    /// Hands the token that a database's feed names on to the zone.
    mutating func pass(_ change: DatabaseChangesPage.Change, to zone: Feed) {
        guard let summary = change.zone, !change.isDeleted else {
            self.mirrors[zone] = nil
            return
        }
        // As the gateway says where the state says nothing.
        let start = FeedPosition(incarnation: summary.incarnation, tag: ChangeTag(0))
        self.mirrors[zone, default: RecordMirror()].restart(at: change.since ?? start)
    }

    /// The zones of a database that are to be fetched before its next page.
    func owedZones(of feed: DatabaseFeed) -> [RecordModel.Place] {
        self.mirrors.filter {
            $0.key.group == feed.group && $0.key.place.database == feed.database && $0.value.isOwed
        }.map(\.key.place).sorted { $0.zone < $1.zone }
    }

    /// A position in a zone is good no more: the zone begins from nothing.
    ///
    /// - Parameter isSpread: whether the client knows the zone from the feed of a database in
    ///   buckets.
    mutating func beginAgain(_ zone: Feed, isSpread: Bool = false) {
        let feed = DatabaseFeed(group: zone.group, database: zone.place.database)
        let isKnown = isSpread || self.databases[feed]?.zones[zone.place.zone] != nil
        self.mirrors[zone] = isKnown ? RecordMirror(isOwed: true) : nil
    }

    /// Begins a database from nothing.
    mutating func forget(_ feed: DatabaseFeed) {
        self.databases[feed] = nil
        for zone in self.mirrors.keys
        where zone.group == feed.group && zone.place.database == feed.database {
            self.mirrors[zone] = nil
        }
    }
}
