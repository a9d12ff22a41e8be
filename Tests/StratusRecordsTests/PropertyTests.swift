import Foundation
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import StratusSimulation
import Testing

/// Random operations of every kind over several zones, compared with a dictionary that knows the
/// rules. They run once over rows in memory, and once over the store that partitions have, on a
/// failing disk.
@Suite struct PropertyTests {
    static let stepCount = Int(ProcessInfo.processInfo.environment["STRATUS_STEPS"] ?? "") ?? 600
    static let seeds: Range<UInt64> =
        0..<(UInt64(ProcessInfo.processInfo.environment["STRATUS_SEEDS"] ?? "") ?? 3)

    @Test(arguments: Self.seeds)
    func `the state answers as a dictionary would, through crashes, and its feeds miss nothing`(
        seed: UInt64
    ) throws {
        try Self.run(seed, over: nil)
    }

    @Test(arguments: Self.seeds)
    func `a partition's store answers as a dictionary would, through crashes of process and power`(
        seed: UInt64
    ) throws {
        try Self.run(seed, over: try PropertyStore(seed: seed))
    }

    private static func run(_ seed: UInt64, over store: PropertyStore?) throws {
        var run = Run(seed: seed, over: store)
        do { try run.start() } catch { Issue.record("seed \(seed) at the start: \(error)") }
        for step in 0..<Self.stepCount {
            do { try run.step() } catch {
                Issue.record("seed \(seed) step \(step): \(error)")
                return
            }
        }
        do { try run.finish() } catch { Issue.record("seed \(seed) at the end: \(error)") }
        let kinds = run.counts.keys.sorted()
        #expect(Self.stepCount < 5_000 || kinds.count == 15, "seed \(seed): \(kinds)")
    }
}

private struct Run {
    private static let zoneNames = ["A", "B", "C"]
    private static let users = [Bench.owner, "_reader"]

    private var bench = Bench()
    private var model = RecordModel()
    private var random: SeededGenerator
    /// Even seeds drop tombstones early: feeds may then expire, and must say so.
    private let rules: RecordRules
    private let dropsTombstones: Bool
    private var mirrors: [String: Mirror] = [:]
    private var databaseMirror = DatabaseMirror()
    /// The rows that a crash goes back to, and the entries replayed after it.
    private var committed = Rows()
    private var tail: [(command: Command, position: EntryPosition, outcome: Outcome)] = []
    private var all: [(Command, EntryPosition)] = []
    private var last: (command: Command, outcome: Outcome)?

    /// Nil: rows in memory.
    private let store: PropertyStore?
    private var schema = Schema(version: 1, types: [Self.type("Book"), Self.type("Loan")])
    /// How often each kind of step was taken.
    private(set) var counts: [String: Int] = [:]

    /// A client that follows a zone's feed.
    private struct Mirror {
        var position: FeedPosition?
        var records: [String: Record] = [:]
    }

    /// A client that follows the database's feed and fetches what it names from where it says.
    private struct DatabaseMirror {
        var position: DatabasePosition?
        var zones: [String: [String: Record]] = [:]
    }

    init(seed: UInt64, over store: PropertyStore?) {
        self.random = SeededGenerator(seed: seed)
        self.store = store
        if let store { self.bench.reader = { try store.answer($0) } }
        self.dropsTombstones = seed.isMultiple(of: 2)
        self.rules = RecordRules(
            deleteSelfReferrerCountMax: 6,
            tombstoneCountMin: self.dropsTombstones ? 6 : 1_000_000)
    }

    /// The types at the beginning; indexes come and go.
    private static func type(_ name: String) -> RecordType {
        var fields = ["a", "b", "c"].map {
            FieldDefinition(
                name: $0, type: FieldType(.int64),
                indexes: $0 == "a" ? [.queryable, .sortable] : []
            )
        }
        for name in ["r", "s"] {
            fields.append(FieldDefinition(name: name, type: FieldType(.reference)))
        }
        return RecordType(name: name, fields: fields)
    }

    mutating func start() throws { try self.install() }

    mutating func step() throws {
        switch Int.random(in: 0..<1_000, using: &self.random) {
        case 0..<690: try self.count("modify") { try $0.modifyRecords() }
        case 690..<730: try self.count("zones") { try $0.modifyZones() }
        case 730..<790: try self.count("jobs") { try $0.continueJobs() }
        case 790..<835: try self.count("feed") { try $0.followFeed() }
        case 835..<865: try self.count("database feed") { try $0.followDatabase() }
        case 865..<900: try self.count("lookups") { try $0.checkLookups() }
        case 900..<925: try self.count("query") { try $0.checkQuery() }
        case 925..<931: try self.count("schema") { try $0.changeSchema() }
        case 931..<935: try self.count("erase") { try $0.erase() }
        case 935..<940: try self.count("repeat") { try $0.repeatCommand() }
        case 940..<960: try self.count("commit") { try $0.commit() }
        case 960..<965: try self.count("checkpoint") { try $0.store?.checkpoint() }
        case 965..<975: try self.count("crash") { try $0.crash() }
        case 975..<985:
            self.counts["forget", default: 0] += 1
            self.bench.state.forget()
        default: try self.count("whole feed") { try $0.checkFeeds() }
        }
    }

    private mutating func count(_ kind: String, _ step: (inout Self) throws -> Void) throws {
        self.counts[kind, default: 0] += 1
        do { try step(&self) } catch let error as BenchError { throw error } catch {
            throw BenchError("\(kind): \(error)")
        }
    }

    mutating func finish() throws {
        try self.checkFeeds()
        for _ in 0..<8 { try self.followFeed() }
        try self.followDatabase()
        if let store { return try store.finish() }
        // A replica that has seen nothing else gets the same rows from the same commands.
        let rows = Rows()
        var state = DataState()
        for (command, position) in self.all {
            _ = try state.apply(command, at: position, over: rows)
        }
        #expect(rows.contents == self.bench.rows.contents)
    }

    // MARK: Commands

    private mutating func submit(_ command: RecordCommand, as principal: Principal) throws
        -> RecordOutcome
    {
        self.bench.index += 1
        // Now and then the clock of a new leader is behind.
        let drift = Int64.random(in: -3...20, using: &self.random)
        self.bench.time = self.bench.time.successor(
            wallMilliseconds: self.bench.time.milliseconds + drift)
        let envelope = command.enveloped(
            container: Bench.container,
            identity: RequestIdentity(high: 1, low: self.bench.index),
            deadlineMilliseconds: self.bench.time.milliseconds + 30_000, schemaVersion: 0,
            principal: principal)
        let outcome = try self.apply(envelope)
        guard outcome.verdict == .decided else { throw BenchError("\(outcome.verdict)") }
        return try RecordOutcome(decoding: outcome.body, detail: outcome.detail)
    }

    private mutating func apply(_ envelope: Command) throws -> Outcome {
        let position = EntryPosition(index: LogIndex(self.bench.index), time: self.bench.time)
        if let store {
            let outcome = try store.apply(envelope, at: position)
            self.last = (envelope, outcome)
            return outcome
        }
        let outcome = try self.bench.state.apply(envelope, at: position, over: self.bench.rows)
        self.tail.append((envelope, position, outcome))
        self.all.append((envelope, position))
        return outcome
    }

    /// A command that comes once more is answered as it was and does nothing.
    private mutating func repeatCommand() throws {
        guard self.store != nil, let last else { return }
        self.bench.index += 1
        let again = try self.apply(last.command)
        guard again.body == last.outcome.body, again.verdict == .decided else {
            throw BenchError("a repeated command: \(again)")
        }
        self.last = nil
    }

    private mutating func install() throws {
        let outcome = try self.submit(.schema(.install(self.schema)), as: Bench.system)
        guard outcome == .schema(version: self.schema.version) else {
            throw BenchError("\(outcome)")
        }
    }

    /// An index comes or goes; jobs build and drop it.
    private mutating func changeSchema() throws {
        self.schema.version += 1
        for position in self.schema.types.indices {
            for field in ["a", "b"] {
                guard
                    let index = self.schema.types[position].fields.firstIndex(where: {
                        $0.name == field
                    })
                else { continue }
                self.schema.types[position].fields[index].indexes =
                    Bool.random(using: &self.random) ? [.queryable, .sortable] : []
            }
        }
        try self.install()
    }

    private mutating func erase() throws {
        let database =
            Bool.random(using: &self.random) ? Bench.privateDatabase : Bench.publicDatabase
        let expected = self.model.erase(database)
        var count = 0
        for _ in 0..<100 {
            let outcome = try self.submit(
                .eraseDatabase(
                    EraseDatabase(
                        database: database, zoneCount: .random(in: 1...3, using: &self.random))),
                as: Bench.system)
            guard case .erased(let progress) = outcome else { throw BenchError("\(outcome)") }
            count += Int(progress.recordCount)
            if !progress.hasMore { break }
        }
        guard count == expected else { throw BenchError("\(count) erased, not \(expected)") }
    }

    private mutating func modifyRecords() throws {
        let isPublic = Int.random(in: 0..<6, using: &self.random) == 0
        let database = isPublic ? Bench.publicDatabase : Bench.privateDatabase
        let zone =
            isPublic || Int.random(in: 0..<6, using: &self.random) == 0
            ? ZoneID.defaultName : Self.zoneNames.randomElement(using: &self.random)!
        let user = isPublic ? Self.users.randomElement(using: &self.random)! : Bench.owner
        let principal = Principal(kind: .user, userRecordName: user)
        let place = RecordModel.Place(database: database, zone: zone)
        let count = Int.random(in: 1...6, using: &self.random)
        let operations = (0..<count).map { _ in self.operation(in: place) }
        let modify = ModifyRecords(
            database: database, zone: zone,
            isAtomic: Int.random(in: 0..<3, using: &self.random) == 0,
            drawnIncarnation: ZoneIncarnation(self.random.next()), rules: self.rules,
            operations: operations)
        let outcome = try self.submit(.modifyRecords(modify), as: principal)
        let expected = self.model.apply(
            modify, by: principal, at: self.bench.time.milliseconds)
        switch (outcome, expected) {
        case (.refused, nil): break
        case (.records(let modified), .some(let expected)):
            let results = modified.results.map { result -> RecordModel.Result in
                switch result {
                case .saved(let saved): .saved(saved.record!)
                case .deleted(let tag): .deleted(tag)
                case .left: .deleted(nil)
                case .refused(let refusal): .refused(refusal.reason)
                }
            }
            guard results == expected else {
                throw BenchError("\(modify)\n\(results)\nexpected\n\(expected)")
            }
            guard modified.zone.lastTag.raw == self.model.zones[place]?.lastTag ?? 0,
                modified.zone.recordCount
                    == UInt64(self.model.zones[place]?.records.count ?? 0)
            else { throw BenchError("zone \(modified.zone)") }
        default:
            throw BenchError("\(modify)\n\(outcome)\nexpected\n\(String(describing: expected))")
        }
    }

    private mutating func operation(in place: RecordModel.Place) -> RecordOperation {
        let name = self.name()
        let kind = RecordOperation.Kind.allCases.randomElement(using: &self.random)!
        var tag: String?
        switch Int.random(in: 0..<5, using: &self.random) {
        case 0: tag = nil
        case 1: tag = "stale"
        default: tag = self.model.zones[place]?.records[name]?.tag.text
        }
        let types: [String?] = ["Book", "Book", "Book", "Book", "Loan", nil]
        var fields: [Field] = []
        if !kind.isDelete {
            for field in ["a", "b", "c"] where Bool.random(using: &self.random) {
                fields.append(number(field, .random(in: -9...9, using: &self.random)))
            }
            if Int.random(in: 0..<3, using: &self.random) == 0 {
                let action: Reference.Action = [.none, .deleteSelf, .deleteSelf, .validate]
                    .randomElement(using: &self.random)!
                fields.append(
                    reference(
                        ["r", "s"].randomElement(using: &self.random)!, to: self.name(), action,
                        zone: place.zone, owner: place.database.owner))
            }
        }
        let parents: [RecordOperation.ParentChange] = [
            .unmentioned, .unmentioned, .unmentioned, .unmentioned, .cleared, .set(self.name()),
        ]
        return RecordOperation(
            kind, recordName: name, recordType: types.randomElement(using: &self.random)!,
            changeTag: tag, fields: fields,
            clearedFields: ["a", "r", "s"].filter { _ in
                Int.random(in: 0..<4, using: &self.random) == 0
            },
            parent: kind.isDelete ? .unmentioned : parents.randomElement(using: &self.random)!)
    }

    private mutating func name() -> String {
        let number = Int.random(in: 0..<24, using: &self.random)
        return number == 0 ? "_bad" : "r\(number)"
    }

    private mutating func modifyZones() throws {
        let operations = (0..<Int.random(in: 1...2, using: &self.random)).map { _ in
            ModifyZones.Operation(
                [.create, .create, .delete].randomElement(using: &self.random)!,
                zone: (Self.zoneNames + ["_bad"]).randomElement(using: &self.random)!,
                drawnIncarnation: ZoneIncarnation(self.random.next()))
        }
        let modify = ModifyZones(database: Bench.privateDatabase, operations: operations)
        let outcome = try self.submit(.modifyZones(modify), as: Bench.user)
        let expected = self.model.apply(modify)
        guard case .zones(let results) = outcome else { throw BenchError("\(outcome)") }
        let succeeded = results.map { if case .refused = $0 { false } else { true } }
        guard succeeded == expected else { throw BenchError("\(modify) \(results)") }
    }

    private mutating func continueJobs() throws {
        let budget = Int.random(in: 1...40, using: &self.random)
        _ = try self.submit(.continueJobs(ContinueJobs(budget: budget)), as: Bench.system)
    }

    // MARK: Crashes

    private mutating func commit() throws {
        try self.store?.commit()
        self.committed = self.bench.rows.copied()
        self.tail = []
    }

    /// Rows go back to the last commit; the log brings them forward again.
    private mutating func crash() throws {
        if let store { return try store.crash() }
        let before = self.bench.rows.contents
        self.bench.replaceRows(by: self.committed.copied())
        self.bench.state.forget()
        for entry in self.tail {
            let outcome = try self.bench.state.apply(
                entry.command, at: entry.position, over: self.bench.rows)
            guard outcome == entry.outcome else { throw BenchError("another outcome in replay") }
        }
        guard self.bench.rows.contents == before else {
            throw BenchError("other rows after replay")
        }
    }

    // MARK: Reads

    private mutating func followFeed() throws {
        let zone = Self.zoneNames.randomElement(using: &self.random)!
        let place = RecordModel.Place(database: Bench.privateDatabase, zone: zone)
        var mirror = self.mirrors[zone] ?? Mirror()
        while true {
            let answer = try self.bench.ask(
                .zoneChanges(
                    ZoneChangesAsk(
                        database: Bench.privateDatabase, zone: zone, after: mirror.position,
                        limit: .random(in: 1...9, using: &self.random))))
            switch answer {
            case .zoneRefused(.positionExpired):
                guard mirror.position != nil else { throw BenchError("nothing cannot expire") }
                mirror = Mirror()
                continue
            case .zoneRefused(.notFound):
                guard self.model.zones[place] == nil else { throw BenchError("zone lost") }
                self.mirrors[zone] = nil
                return
            case .zoneChanges(let page):
                for change in page.changes {
                    switch change {
                    case .changed(let record): mirror.records[record.name] = record
                    case .deleted(let name, _): mirror.records[name] = nil
                    }
                }
                mirror.position = page.position
                if page.moreComing { continue }
            default: throw BenchError("\(answer)")
            }
            break
        }
        guard mirror.records == self.model.zones[place]?.records else {
            throw BenchError("a client that followed the feed of \(zone) has other records")
        }
        self.mirrors[zone] = mirror
    }

    private mutating func followDatabase() throws {
        var mirror = self.databaseMirror
        while true {
            let answer = try self.bench.ask(
                .databaseChanges(
                    DatabaseChangesAsk(
                        database: Bench.privateDatabase, after: mirror.position,
                        limit: .random(in: 1...3, using: &self.random))))
            if answer == .zoneRefused(.positionExpired), mirror.position != nil {
                mirror = DatabaseMirror()
                continue
            }
            guard case .databaseChanges(let page) = answer else { throw BenchError("\(answer)") }
            for change in page.changes {
                if change.isDeleted {
                    mirror.zones[change.name] = nil
                } else {
                    // The plainest client: it hands on the token it was given, the zone's beginning
                    // where the gateway was told none, and forgets only when told to.
                    guard let zone = change.zone else { throw BenchError("a zone without itself") }
                    let start = FeedPosition(incarnation: zone.incarnation, tag: ChangeTag(0))
                    mirror.zones[change.name] = try self.records(
                        of: change.name, from: mirror.zones[change.name] ?? [:],
                        after: change.since ?? start)
                }
            }
            mirror.position = page.position
            if !page.moreComing { break }
        }
        var expected: [String: [String: Record]] = [:]
        for (place, zone) in self.model.zones where place.zone != ZoneID.defaultName {
            expected[place.zone] = zone.records
        }
        guard mirror.zones == expected else {
            throw BenchError("a client that followed the database's feed has other records")
        }
        self.databaseMirror = mirror
    }

    /// The records that `known` becomes by the feed after `position`.
    private func records(
        of zone: String, from known: [String: Record], after position: FeedPosition?
    ) throws -> [String: Record] {
        var records = known
        var position = position
        while true {
            let answer = try self.bench.ask(
                .zoneChanges(
                    ZoneChangesAsk(
                        database: Bench.privateDatabase, zone: zone, after: position, limit: 7)))
            if answer == .zoneRefused(.positionExpired), position != nil {
                (records, position) = ([:], nil)
                continue
            }
            guard case .zoneChanges(let page) = answer else { throw BenchError("\(answer)") }
            for change in page.changes {
                switch change {
                case .changed(let record): records[record.name] = record
                case .deleted(let name, _): records[name] = nil
                }
            }
            position = page.position
            if !page.moreComing { return records }
        }
    }

    private func checkFeeds() throws {
        for zone in Self.zoneNames {
            let place = RecordModel.Place(database: Bench.privateDatabase, zone: zone)
            guard self.model.zones[place] != nil else { continue }
            var changes: [ZoneChangesPage.Change] = []
            var page = try self.bench.changes(in: zone)
            changes += page.changes
            while page.moreComing {
                page = try self.bench.changes(in: zone, after: page.position)
                changes += page.changes
            }
            let expected = self.model.feed(place)
            let live = expected.compactMap(\.record)
            let found = changes.compactMap { change in
                if case .changed(let record) = change { record } else { nil }
            }
            guard found == live else { throw BenchError("feed of \(zone)") }
            if !self.dropsTombstones, changes.map(\.name) != expected.map(\.name) {
                throw BenchError("tombstones of \(zone)")
            }
            let reversed = try self.bench.changes(in: zone, limit: 200, reverse: true)
            guard reversed.changes == Array(changes.reversed().prefix(200)) else {
                throw BenchError("reverse feed of \(zone)")
            }
        }
    }

    /// By an index or without one, page by page.
    private mutating func checkQuery() throws {
        let place = RecordModel.Place(
            database: Bench.privateDatabase,
            zone: (Self.zoneNames + [ZoneID.defaultName]).randomElement(using: &self.random)!)
        let type = ["Book", "Loan"].randomElement(using: &self.random)!
        let field = ["a", "b", "c"].randomElement(using: &self.random)!
        let least = Int64.random(in: -9...9, using: &self.random)
        let isDescending = Bool.random(using: &self.random)
        var names: [String] = []
        var after: Bytes?
        repeat {
            let answer = try self.bench.ask(
                .page(
                    QueryPageAsk(
                        database: place.database, zone: place.zone,
                        predicate: RecordPredicate(
                            recordType: type,
                            filters: [
                                RecordFilter(
                                    field: .field(field), comparator: .greaterThanOrEquals,
                                    operand: .scalar(.int64(least)))
                            ],
                            sorts: [
                                RecordSort(field: .field(field), ascending: !isDescending)
                            ]),
                        limit: .random(in: 1...9, using: &self.random), after: after,
                        requiresIndexes: false)))
            if case .refused(let refusal) = answer, refusal.reason == .zoneNotFound {
                guard self.model.zones[place] == nil else { throw BenchError("\(answer)") }
                return
            }
            guard case .page(let page) = answer else { throw BenchError("\(answer)") }
            names += page.records.map(\.name)
            after = page.next
        } while after != nil
        let expected = self.model.query(
            place, type, field, least: least, descending: isDescending)
        guard names == expected else {
            throw BenchError("\(type).\(field) >= \(least): \(names), not \(expected)")
        }
    }

    private mutating func checkLookups() throws {
        for place in self.model.zones.keys {
            let name = self.name()
            let found = try self.bench.lookup(name, in: place.zone, database: place.database)
            guard found == self.model.zones[place]?.records[name] else {
                throw BenchError("look-up of \(name) in \(place.zone)")
            }
        }
    }
}
