import StratusModel
import StratusPlacement
import StratusRecords

/// A private database whose custom zones lie in four buckets, in different groups. It does the work
/// of the gateways: each client has one of its own, which may die between any two steps of a
/// request.
struct SimulatedZones {
    static let database = PrivateDatabase(
        of: RecordWorld.spreadOwner, in: RecordWorld.container, bucketCount: 4)
    static let names = (0..<8).map { "Z\($0)" }
    static let homeDefault = RecordModel.Place(
        database: Self.database.home, zone: ZoneID.defaultName)
    /// The number that a zone's name has among the registers of its group.
    static let registerBase = 1_000

    let bugs: PlantedBugs
    private let groups: [GroupID]
    private let partitionCount: Int
    /// The bits that the home has committed.
    private(set) var noted = BucketMask()
    /// The bits that somebody was told of.
    private(set) var told = BucketMask()
    /// The requests under way, by client.
    var requests: [Int: ZoneRequest] = [:]
    /// The buckets that each client's gateway knows to be in use.
    private var known: [Int: BucketMask] = [:]
    var mirrors: [Int: SpreadMirror] = [:]

    /// - Returns: nil where no database is spread.
    init?(_ options: SimulationOptions, groups: [GroupID], bugs: PlantedBugs) {
        guard options.zoneBucketCount > 1, !groups.isEmpty else { return nil }
        var count = 1
        while count * 2 <= groups.count { count *= 2 }
        self.groups = Array(groups.suffix(count))
        self.partitionCount = count
        self.bugs = bugs
    }

    // MARK: Where things are

    func group(of part: DatabaseID) -> GroupID {
        self.groups[
            Int(
                PlacementTable.partition(of: .database(part), among: self.partitionCount).raw)]
    }

    func part(of zone: String) -> DatabaseID {
        if self.bugs.contains(.zoneHashedByOwner), let number = Self.database.number(of: zone) {
            return Self.database.part((number + 1) % Self.database.bucketCount)
        }
        return Self.database.part(of: zone)
    }

    func place(of zone: String) -> RecordModel.Place {
        RecordModel.Place(database: self.part(of: zone), zone: zone)
    }

    func feed(_ part: DatabaseID) -> RecordClient.DatabaseFeed {
        RecordClient.DatabaseFeed(group: self.group(of: part), database: part)
    }

    func feed(_ zone: String) -> RecordClient.Feed {
        let place = self.place(of: zone)
        return RecordClient.Feed(group: self.group(of: place.database), place: place)
    }

    static func isPart(_ database: DatabaseID?) -> Bool {
        database?.whole == Self.database.home
    }

    static func register(of zone: String) -> Int? {
        Self.names.firstIndex(of: zone).map { Self.registerBase + $0 }
    }

    // MARK: Bits

    /// The buckets that the client's gateway would ask without a question.
    func known(to client: Int) -> BucketMask { self.known[client] ?? BucketMask() }

    mutating func learn(_ mask: BucketMask, by client: Int) {
        self.known[client] = self.known(to: client).union(mask)
        self.told = self.told.union(mask)
    }

    /// The home has committed a note.
    mutating func note(_ mask: BucketMask) { self.noted = self.noted.union(mask) }

    /// A gateway ends in the middle of what it does.
    mutating func die(_ client: Int, forgets: Bool) {
        self.requests[client] = nil
        if forgets { self.known[client] = nil }
    }
}
