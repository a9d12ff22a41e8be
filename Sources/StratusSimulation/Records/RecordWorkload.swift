import StratusModel
import StratusRecords

/// Draws the work of clients.
struct RecordWorkload {
    let registerCount: Int
    let valueSizeMax: Int
    let longValueOneIn: UInt64
    /// Groups in which some client has made sure of a schema, and then of zones.
    var schooled: Set<GroupID> = []
    /// Nil where nobody has documents.
    var documents: DocumentWorkload?
    var prepared: Set<GroupID> = []
    var deepened: Set<GroupID> = []
    private var nextNumber = 1
    private var schemaVersion: UInt64 = 0

    init(_ options: SimulationOptions) {
        self.registerCount = options.registerCount
        self.valueSizeMax = options.valueSizeMax.raw
        self.longValueOneIn = options.longValueOneIn
        self.documents = options.holdsDocuments ? DocumentWorkload() : nil
    }

    private static let childCount = 10

    static func rules(_ group: GroupID, cascadeCountMax: Int = 2_000) -> RecordRules {
        RecordRules(
            deleteSelfReferrerCountMax: 6, cascadeCountMax: cascadeCountMax,
            tombstoneCountMin: RecordWorld.forgetsDeletions(group) ? 6 : 1_000_000)
    }

    /// The client's next operation in `group`.
    mutating func work(
        in group: GroupID, for client: RecordClient, using random: inout SeededGenerator
    ) -> RecordWork {
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        if self.documents != nil, draw(3) > 0, let work = self.documents?.work(using: &random) {
            return work
        }
        if !self.schooled.contains(group) { return self.newSchema() }
        guard self.prepared.contains(group) else {
            return Self.zone(.create, RecordWorld.shelves, using: &random)
        }
        guard self.deepened.contains(group) else {
            return Self.zone(.create, RecordWorld.deep, using: &random)
        }
        let place = Self.place(using: &random)
        switch draw(32) {
        case 0..<9: return self.modify(place, in: group, for: client, using: &random)
        case 9..<12, 30: return self.deepen(in: group, using: &random)
        case 12..<14:
            let names = (0..<(1 + draw(4))).map { _ in self.name(using: &random) }
            return Self.lookup(names, in: place)
        case 14..<18:
            let zones = [
                RecordWorld.shelves, RecordWorld.shelves, RecordWorld.deep,
                RecordWorld.scratches[draw(RecordWorld.scratches.count)],
            ]
            let zone = zones[draw(4)]
            let mirror = client.mirrors[RecordClient.Feed(group: group, place: zone)]
            return Self.changes(zone, after: mirror?.position, limit: 1 + draw(9))
        case 18..<20:
            return Self.page(
                place, RecordWorld.indexed[draw(2)], least: Int64(draw(19) - 9),
                descending: draw(2) == 0)
        case 20: return self.newSchema()
        case 21..<24:
            let kind: ModifyZones.Kind = draw(2) == 0 ? .delete : .create
            let zone = RecordWorld.scratches[draw(RecordWorld.scratches.count)]
            return Self.zone(kind, zone, using: &random)
        case 24..<29:
            let database = RecordWorld.followed[draw(4) == 0 ? 1 : 0]
            let feed = RecordClient.DatabaseFeed(group: group, database: database)
            if let zone = client.owedZones(of: feed).first {
                let mirror = client.mirrors[RecordClient.Feed(group: group, place: zone)]
                return Self.changes(zone, after: mirror?.position, limit: 1 + draw(20))
            }
            return Self.changes(
                database, after: client.databases[feed]?.position, limit: 1 + draw(3))
        case 29 where draw(2) == 0:
            return .command(
                .eraseDatabase(EraseDatabase(database: RecordWorld.leaverDatabase)),
                RecordWorld.system)
        default: return Self.jobs(budget: 1 + draw(40))
        }
    }

    private static func place(using random: inout SeededGenerator) -> RecordModel.Place {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: RecordWorld.publicDefault
        case 1: RecordWorld.ownDefault
        case 2...3: RecordWorld.scratches.randomElement(using: &random)!
        default: RecordWorld.shelves
        }
    }

    // MARK: Records

    /// Every name that is ever written, but for those of the zone of long cascades.
    var names: [String] {
        (0..<self.registerCount).map(RecordWorld.registerName)
            + (0..<Self.childCount).map { "c\($0)" }
    }

    private func name(using random: inout SeededGenerator) -> String {
        if Int.random(in: 0..<3, using: &random) > 0 {
            return RecordWorld.registerName(
                Int.random(in: 0..<self.registerCount, using: &random))
        }
        return "c\(Int.random(in: 0..<Self.childCount, using: &random))"
    }

    mutating func modify(
        _ place: RecordModel.Place, in group: GroupID, for client: RecordClient,
        using random: inout SeededGenerator
    ) -> RecordWork {
        let isPublic = place.database.scope == .public
        let principal =
            isPublic
            ? RecordWorld.users[Int.random(in: 0..<2, using: &random)]
            : RecordWorld.user(of: place.database)
        let count =
            Int.random(in: 0..<3, using: &random) == 0 ? Int.random(in: 2...5, using: &random) : 1
        var names: [String] = []
        for _ in 0..<count {
            let name = self.name(using: &random)
            if !names.contains(name) { names.append(name) }
        }
        var operations: [RecordOperation] = []
        for name in names {
            let known = client.sightings[.init(group: group, place: place, record: name)]
            operations.append(self.operation(name, known, in: place, using: &random))
        }
        let isAtomic = Int.random(in: 0..<3, using: &random) == 0
        return .command(
            .modifyRecords(
                ModifyRecords(
                    database: place.database, zone: place.zone,
                    isAtomic: isAtomic && place.zone != ZoneID.defaultName,
                    drawnIncarnation: ZoneIncarnation(random.next()), rules: Self.rules(group),
                    operations: operations)), principal)
    }

    private mutating func operation(
        _ name: String, _ known: RecordClient.Sighting?, in place: RecordModel.Place,
        using random: inout SeededGenerator
    ) -> RecordOperation {
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        let kind: RecordOperation.Kind
        var tag: String?
        switch draw(12) {
        case 0..<5:
            kind = known == nil ? .create : draw(4) == 0 ? .replace : .update
            tag = known?.tag
        case 5:
            kind = .update
            tag = "stale"
        case 6: kind = .create
        case 7..<9: kind = .forceUpdate
        case 9: kind = .forceReplace
        case 10:
            kind = .delete
            tag = known?.tag ?? "stale"
        default: kind = .forceDelete
        }
        if kind.isDelete { return RecordOperation(kind, recordName: name, changeTag: tag) }
        var fields = self.fields(using: &random)
        var parent = RecordOperation.ParentChange.unmentioned
        // Others refer to registers, and registers to nothing.
        if name.hasPrefix("c") {
            if draw(2) == 0 {
                let actions: [Reference.Action] = [.none, .deleteSelf, .deleteSelf, .validate]
                fields.append(
                    Self.reference(
                        ["r", "s"][draw(2)], to: self.name(using: &random), actions[draw(4)],
                        in: place))
            }
            if draw(6) == 0 {
                parent = draw(3) == 0 ? .cleared : .set(self.name(using: &random))
            }
        }
        return RecordOperation(
            kind, recordName: name, recordType: RecordWorld.type, changeTag: tag, fields: fields,
            clearedFields: ["a", "r", "s"].filter { _ in draw(5) == 0 }, parent: parent)
    }

    mutating func fields(using random: inout SeededGenerator) -> [Field] {
        func number(_ name: String, _ value: Int64) -> Field {
            Field(name: name, value: .scalar(.int64(value)))
        }
        defer { self.nextNumber += 1 }
        var fields = [number(RecordWorld.number, Int64(self.nextNumber))]
        for name in RecordWorld.indexed where Bool.random(using: &random) {
            fields.append(number(name, .random(in: -9...9, using: &random)))
        }
        if self.valueSizeMax > 8, random.next() % self.longValueOneIn == 0 {
            let size = Int.random(in: 0...self.valueSizeMax, using: &random)
            let value = Bytes(repeating: UInt8(truncatingIfNeeded: self.nextNumber), count: size)
            fields.append(Field(name: "v", value: .scalar(.bytes(value))))
        }
        return fields
    }

    static func reference(
        _ field: String, to name: String, _ action: Reference.Action, in place: RecordModel.Place
    ) -> Field {
        let zone = ZoneID(name: place.zone, owner: place.database.owner)
        return Field(
            name: field,
            value: .scalar(.reference(Reference(recordName: name, zone: zone, action: action))))
    }

    /// Saves records whose names and sort keys others have in other zones.
    mutating func saveTied(
        in place: RecordModel.Place, of group: GroupID, using random: inout SeededGenerator
    ) -> RecordWork {
        let tied = Field(name: "b", value: .scalar(.int64(.random(in: 8...9, using: &random))))
        let operations = (0..<3).map { number in
            RecordOperation(
                .forceUpdate, recordName: "c\(number)", recordType: RecordWorld.type,
                fields: self.fields(using: &random).filter { $0.name != "b" } + [tied])
        }
        return .command(
            .modifyRecords(
                ModifyRecords(
                    database: place.database, zone: place.zone,
                    drawnIncarnation: ZoneIncarnation(random.next()), rules: Self.rules(group),
                    operations: operations)), RecordWorld.user(of: place.database))
    }

    /// The last write to a group.
    mutating func lastWrite(in group: GroupID, using random: inout SeededGenerator) -> RecordWork {
        .command(
            .modifyRecords(
                ModifyRecords(
                    database: RecordWorld.shelves.database, zone: RecordWorld.shelves.zone,
                    drawnIncarnation: ZoneIncarnation(random.next()), rules: Self.rules(group),
                    operations: [
                        RecordOperation(
                            .forceUpdate, recordName: RecordWorld.registerName(0),
                            recordType: RecordWorld.type, fields: self.fields(using: &random))
                    ])), RecordWorld.users[0])
    }

    // MARK: The rest

    private static func zone(
        _ kind: ModifyZones.Kind, _ place: RecordModel.Place,
        using random: inout SeededGenerator
    ) -> RecordWork {
        .command(
            .modifyZones(
                ModifyZones(
                    database: place.database,
                    operations: [
                        ModifyZones.Operation(
                            kind, zone: place.zone,
                            drawnIncarnation: ZoneIncarnation(random.next()))
                    ])), RecordWorld.user(of: place.database))
    }

    mutating func newSchema() -> RecordWork {
        self.schemaVersion += 1
        return .command(
            .schema(.install(RecordWorld.schema(version: self.schemaVersion))),
            RecordWorld.system)
    }

    static func jobs(budget: Int) -> RecordWork {
        .command(.continueJobs(ContinueJobs(budget: budget)), RecordWorld.system)
    }

    static func changes(_ place: RecordModel.Place, after: FeedPosition?, limit: Int)
        -> RecordWork
    {
        .query(
            .zoneChanges(
                ZoneChangesAsk(
                    database: place.database, zone: place.zone, after: after, limit: limit)),
            RecordWorld.user(of: place.database))
    }

    static func changes(_ database: DatabaseID, after: DatabasePosition?, limit: Int)
        -> RecordWork
    {
        .query(
            .databaseChanges(
                DatabaseChangesAsk(database: database, after: after, limit: limit)),
            RecordWorld.user(of: database))
    }

    static func lookup(_ names: [String], in place: RecordModel.Place) -> RecordWork {
        .query(
            .lookup(RecordLookup(database: place.database, zone: place.zone, names: names)),
            RecordWorld.user(of: place.database))
    }

    /// All that has `least` or more in an integer field, by that field.
    static func page(
        _ place: RecordModel.Place, _ field: String, least: Int64, descending: Bool
    ) -> RecordWork {
        .query(
            .page(
                QueryPageAsk(
                    database: place.database, zone: place.zone,
                    predicate: RecordPredicate(
                        recordType: RecordWorld.type,
                        filters: [
                            RecordFilter(
                                field: .field(field), comparator: .greaterThanOrEquals,
                                operand: .scalar(.int64(least)))
                        ], sorts: [RecordSort(field: .field(field), ascending: !descending)]),
                    limit: RecordState.pageCountMax, requiresIndexes: false)),
            RecordWorld.user(of: place.database))
    }
}
