import StratusModel
import StratusRecords

/// What groups of records gave out before their majority was lost for good. After the recovery none
/// of it may fit anything.
struct LostHistory {
    struct ZoneToken: Hashable {
        var group: GroupID
        var place: RecordModel.Place
        var position: FeedPosition
    }

    struct DatabaseToken: Hashable {
        var group: GroupID
        var database: DatabaseID
        var position: DatabasePosition
    }

    struct Tag: Hashable {
        var group: GroupID
        var place: RecordModel.Place
        var record: String
        var tag: ChangeTag
    }

    /// The mail of one group for another.
    struct Route: Hashable {
        var sender: GroupID
        var receiver: GroupID
    }

    /// In the order in which they were given, each once.
    private(set) var zones: [ZoneToken] = []
    private(set) var databases: [DatabaseToken] = []
    private(set) var tags: [Tag] = []
    /// The last tag that was given in a place.
    private(set) var lastTags: [GroupID: [RecordModel.Place: UInt64]] = [:]
    /// The last number that was given to a mail, or received.
    private(set) var mails: [Route: UInt64] = [:]

    private var known: Set<ZoneToken> = []
    private var knownDatabases: Set<DatabaseToken> = []

    /// Tokens of one kind and group that are kept: the newest.
    static let countMax = 64

    mutating func give(_ token: ZoneToken) {
        self.raise(token.place, in: token.group, to: token.position.tag.raw)
        // The start of a feed is no secret of anybody's.
        guard token.position.tag.raw > 0, self.known.insert(token).inserted else { return }
        self.zones.append(token)
        if self.zones.count > Self.countMax { self.zones.removeFirst() }
    }

    mutating func give(_ token: DatabaseToken) {
        guard token.position.turn > 0, self.knownDatabases.insert(token).inserted else { return }
        self.databases.append(token)
        if self.databases.count > Self.countMax { self.databases.removeFirst() }
    }

    mutating func give(_ tag: Tag) {
        self.raise(tag.place, in: tag.group, to: tag.tag.raw)
        self.tags.append(tag)
        if self.tags.count > Self.countMax { self.tags.removeFirst() }
    }

    mutating func raise(_ place: RecordModel.Place, in group: GroupID, to tag: UInt64) {
        let before = self.lastTags[group]?[place] ?? 0
        self.lastTags[group, default: [:]][place] = max(before, tag)
    }

    mutating func mail(_ route: Route, _ number: UInt64) {
        self.mails[route] = max(self.mails[route] ?? 0, number)
    }
}
