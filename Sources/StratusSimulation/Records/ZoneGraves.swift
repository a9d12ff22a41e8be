import StratusModel

/// The deleted zones that a model of records remembers: a new zone of the same name has tags that
/// differ from all of theirs.
struct ZoneGraves {
    private struct Grave {
        var zone: String
        var lastTag: UInt64
    }

    /// How many a database remembers.
    private let countMax: UInt64
    /// Those that are not forgotten, in the order in which they went.
    private var graves: [DatabaseID: [Grave]] = [:]
    /// The first tags of zones made in a database that was erased, or has forgotten other zones.
    private var floors: [DatabaseID: UInt64] = [:]

    init(countMax: UInt64) { self.countMax = countMax }

    func floor(of database: DatabaseID) -> UInt64 { self.floors[database] ?? 0 }

    func remember(_ database: DatabaseID) -> Bool { self.graves[database]?.isEmpty == false }

    mutating func bury(_ place: RecordModel.Place, lastTag: UInt64) {
        var graves = self.graves[place.database] ?? []
        graves.append(Grave(zone: place.zone, lastTag: lastTag))
        // The one that goes is never the one that is forgotten.
        if graves.count > self.countMax, graves.count > 1 {
            self.raise(place.database, to: graves.removeFirst().lastTag)
        }
        self.graves[place.database] = graves
    }

    /// - Returns: the tag above which a zone begins that is made there.
    mutating func reopen(_ place: RecordModel.Place) -> UInt64 {
        var graves = self.graves[place.database] ?? []
        var tag = self.floor(of: place.database)
        if let index = graves.firstIndex(where: { $0.zone == place.zone }) {
            tag = max(tag, graves.remove(at: index).lastTag)
        }
        self.graves[place.database] = graves
        return tag
    }

    /// - Parameter lastTags: of the zones that are still there.
    mutating func erase(_ database: DatabaseID, lastTags: [UInt64]) {
        let graves = self.graves.removeValue(forKey: database) ?? []
        let tag = (lastTags + graves.map(\.lastTag)).max()
        self.raise(database, to: tag ?? 0)
    }

    private mutating func raise(_ database: DatabaseID, to tag: UInt64) {
        self.floors[database] = max(self.floor(of: database), tag)
    }
}
