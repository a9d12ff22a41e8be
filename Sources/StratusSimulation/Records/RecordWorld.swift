import StratusModel
import StratusRecords

/// The databases and zones of a simulated group, the same in each.
enum RecordWorld {
    static let container = ContainerReference(
        container: "iCloud.simulation", environment: .development)
    static let owner = "_owner"
    static let users = [Self.owner, "_reader"].map { Principal(kind: .user, userRecordName: $0) }
    static let system = Principal(kind: .system)
    static let privateDatabase = DatabaseID(
        container: Self.container, scope: .private, owner: Self.owner)
    /// The database whose cascades are left to jobs.
    static let deepDatabase = DatabaseID(
        container: Self.container, scope: .private, owner: "_deep")
    /// Erased now and then.
    static let leaverDatabase = DatabaseID(
        container: Self.container, scope: .private, owner: "_leaver")
    /// The owner of the database whose zones lie in buckets: ``SimulatedZones``.
    static let spreadOwner = "_spread"
    /// Those whose feeds clients follow.
    static let followed = [Self.privateDatabase, Self.leaverDatabase]
    static let publicDatabase = DatabaseID(container: Self.container, scope: .public, owner: "")

    /// The place with most writes; made first, never deleted.
    static let shelves = RecordModel.Place(database: Self.privateDatabase, zone: "Shelves")
    /// Made and deleted again and again.
    static let scratches =
        (0..<4).map { RecordModel.Place(database: Self.privateDatabase, zone: "Scratch\($0)") }
        + (0..<2).map { RecordModel.Place(database: Self.leaverDatabase, zone: "Attic\($0)") }
    /// The place where cascades are longer than one entry, so that jobs continue them.
    static let deep = RecordModel.Place(database: Self.deepDatabase, zone: "Deep")
    static let ownDefault = RecordModel.Place(
        database: Self.privateDatabase, zone: ZoneID.defaultName)
    static let publicDefault = RecordModel.Place(
        database: Self.publicDatabase, zone: ZoneID.defaultName)
    static let all =
        [Self.shelves, Self.deep, Self.ownDefault, Self.publicDefault] + Self.scratches

    /// The user that reads a database, and writes to a private one.
    static func user(of database: DatabaseID) -> Principal {
        Principal(
            kind: .user, userRecordName: database.owner.isEmpty ? Self.owner : database.owner)
    }

    /// Whether the group forgets deletions early, of records and of zones, so that feeds may have
    /// to begin again: true for odd numbers.
    static func forgetsDeletions(_ group: GroupID) -> Bool { group.raw % 2 == 1 }

    static func deletedZoneCountMax(of group: GroupID) -> UInt64 {
        Self.forgetsDeletions(group) ? 1 : RecordState.Bounds().deletedZoneCountMax
    }

    /// Elsewhere jobs and mail change what no command names.
    static func isModelled(_ place: RecordModel.Place) -> Bool {
        place != Self.deep && place.database.recordBucket == nil
    }

    /// Whether the zone is made and deleted again and again.
    static func comesAndGoes(_ place: RecordModel.Place) -> Bool {
        Self.scratches.contains(place) || place.database.owner == Self.spreadOwner
    }

    static let type = "Book"
    /// Every save writes another number, so that a number tells which save one sees.
    static let number = "n"
    static let indexed = ["a", "b"]
    /// In the zone of long cascades the field of what takes its referrers with it.
    static let reference = "r"

    /// The index of `b` is always there, that of `a` comes and goes.
    static func schema(version: UInt64) -> Schema {
        func field(_ name: String, _ type: ScalarType, _ indexes: FieldIndexes = [])
            -> FieldDefinition
        {
            FieldDefinition(name: name, type: FieldType(type), indexes: indexes)
        }
        let both: FieldIndexes = [.queryable, .sortable]
        let book = RecordType(
            name: Self.type,
            fields: [
                field("a", .int64, version.isMultiple(of: 2) ? [] : both), field("b", .int64, both),
                field(Self.number, .int64), field("r", .reference), field("s", .reference),
                field("v", .bytes),
            ])
        return Schema(version: version, types: [book])
    }

    /// Records that nothing but a command that names them changes: each is a register.
    static func registerName(_ number: Int) -> String { "r\(number)" }

    static func register(_ name: String, in place: RecordModel.Place) -> Int? {
        place == Self.shelves && name.hasPrefix("r") ? Int(name.dropFirst()) : nil
    }

    static func number(of record: Record) -> Int? {
        guard case .scalar(.int64(let number))? = record.value(of: Self.number) else { return nil }
        return Int(number)
    }
}
