import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import Testing

/// Records that one may not read cost the same work whatever they hold (security audit 3).
@Suite struct QueryVisibilityTests {
    /// Alice's records, whose values Bob may not read, and none of his.
    private static func shelf(
        _ value: (Int) -> String, schema: IndexedSchema = QueryLibrary.schema, own: Int = 0
    ) -> QueryShelf {
        var shelf = QueryShelf(schema, owner: "")
        for number in 0..<600 {
            let fields = [
                Field(name: "tags", value: .list(.string, [.string(value(number))])),
                Field(name: "title", value: .scalar(.string(value(number)))),
            ]
            let record = QueryWorkTests.record(
                "n\(number)", fields, by: number < own ? "_bob" : "_alice",
                zone: shelf.zones[0].id)
            shelf.set(record.name, to: record, zone: 0)
        }
        return shelf
    }

    /// A type that its creator alone reads, without a queryable field that says who that is.
    private static let ownOnly: IndexedSchema = {
        var type = QueryLibrary.type
        type.fields.removeAll { $0.name == SystemField.createdUserRecordName.mappedName }
        type.grants = [
            Grant(role: "_creator", permissions: [.write]),
            Grant(role: "_icloud", permissions: [.create]),
        ]
        return IndexedSchema(
            schema: Schema(version: 1, types: [type, QueryLibrary.schema.schema.types[1]]))
    }()

    private static func filters(_ prefix: String) -> [RecordFilter] {
        [
            RecordFilter(
                field: .field("title"), comparator: .beginsWith,
                operand: .scalar(.string(prefix))),
            RecordFilter(
                field: .field("title"), comparator: .equals, operand: .scalar(.string(prefix))),
            RecordFilter(
                field: .field("title"), comparator: .lessThan,
                operand: .scalar(.string(prefix))),
            RecordFilter(
                field: .field("title"), comparator: .containsAnyTokens,
                operand: .scalar(.string(prefix))),
            RecordFilter(
                field: .field("tags"), comparator: .listContains,
                operand: .scalar(.string(prefix))),
            RecordFilter(
                field: .field("tags"), comparator: .listMemberBeginsWith,
                operand: .scalar(.string(prefix))),
        ]
    }

    @Test(arguments: [true, false], [0, 20])
    func `values that one may not read take the same work as values that nobody has`(
        isQueryable: Bool, own: Int
    ) throws {
        let schema = isQueryable ? QueryLibrary.schema : Self.ownOnly
        let shelf = Self.shelf({ "hunter\(1_000 + $0)" }, schema: schema, own: own)
        let sorts: [[RecordSort]] = [[], [RecordSort(field: .field("title"))]]
        for sorts in sorts {
            for (there, absent) in zip(Self.filters("hunter"), Self.filters("zunter")) {
                let one = try QueryWorkTests.work(
                    there, sorts: sorts, over: shelf, visible: .created(by: "_carol"))
                let two = try QueryWorkTests.work(
                    absent, sorts: sorts, over: shelf, visible: .created(by: "_carol"))
                #expect(one == two, "\(there.comparator)")
                #expect(one.touchCount < 5)
            }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `noise of others changes neither answer nor units`(seed: UInt64) throws {
        var library = QueryLibrary(seed: seed)
        var quiet = QueryShelf(Self.ownOnly, owner: "")
        var noisy = quiet
        let home = quiet.zones[0].id
        for number in 0..<40 {
            var record = library.record("n\(number)", zone: home)
            record.created.userRecordName = "_bob"
            quiet.set(record.name, to: record, zone: 0)
            noisy.set(record.name, to: record, zone: 0)
        }
        for number in 100..<400 {
            var record = library.record(
                "n\(number)", zone: home, type: library.chance(50) ? "Noise" : "Book")
            record.created.userRecordName = "_alice"
            if library.chance(20) {
                record.fields.removeAll { $0.name == "title" }
                let text = String(repeating: "long", count: 2_000)
                record.fields.append(Field(name: "title", value: .scalar(.string(text))))
            }
            noisy.set(record.name, to: record, zone: 0)
        }
        for round in 0..<40 {
            let predicate = library.predicate(home: home, names: ["n1", "n2", "n200", "n301"])
            let (limit, budget) = (library.pick([1, 3, 50]), library.pick([1, 10, 10_000]))
            var after: Bytes?
            repeat {
                let request = QueryPageRequest(
                    predicate, zones: quiet.zones, limit: limit, after: after,
                    touchCountMax: budget, requiresIndexes: round % 2 == 0)
                let pages = try [quiet, noisy].map { shelf in
                    try QueryExecutor(shelf.schema, shelf.source).page(
                        request, over: shelf.rows.view, visible: .created(by: "_bob"))
                }
                #expect(pages[0] == pages[1], "seed \(seed) round \(round): \(predicate)")
                after = try? pages[0].get().next
            } while after != nil
        }
    }

    @Test func `hundreds of one's own records are sorted among any number of others`() throws {
        let shelf = Self.shelf({ "hunter\(1_000 + $0)" }, schema: Self.ownOnly, own: 600)
        let request = QueryPageRequest(
            RecordPredicate(
                recordType: "Book", filters: [], sorts: [RecordSort(field: .field("title"))]),
            zones: shelf.zones, touchCountMax: 1)
        let page = try QueryExecutor(shelf.schema, shelf.source)
            .page(request, over: shelf.rows.view, visible: .created(by: "_bob")).get()
        #expect(page.records.count == 200)
    }

    @Test func `one's own records are found, and no others`() throws {
        let shelf = Self.shelf({ "hunter\(1_000 + $0)" }, own: 20)
        for sorts in [[], [RecordSort(field: .field("title"), ascending: false)]] {
            for visible in [VisibleRecords.created(by: "_bob"), .none, .all] {
                let request = QueryPageRequest(
                    RecordPredicate(
                        recordType: "Book", filters: [Self.filters("hunter")[0]], sorts: sorts),
                    zones: shelf.zones)
                let page = try QueryExecutor(shelf.schema, shelf.source)
                    .page(request, over: shelf.rows.view, visible: visible).get()
                switch visible {
                case .created: #expect(page.records.count == 20)
                case .none:
                    #expect(page.records.isEmpty)
                    #expect(page.counters.work == ReadWork())
                case .all: #expect(page.records.count == 200)
                }
                if case .created = visible {
                    let own = Set((0..<20).map { "n\($0)" })
                    #expect(Set(page.records.map(\.name)) == own)
                }
            }
        }
    }

    /// The audit's experiment: four digits of one invisible record were read digit by digit.
    @Test func `digits of an invisible value cannot be told from the work`() throws {
        for secret in ["0417", "9956", "3333"] {
            let shelf = Self.shelf { $0 == 300 ? "pin\(secret)" : "other\($0)" }
            for position in 0..<4 {
                let known = "pin" + secret.prefix(position)
                let works = try (0..<10).map { digit in
                    try QueryWorkTests.work(
                        Self.filters("\(known)\(digit)")[0], over: shelf,
                        visible: .created(by: "_bob"))
                }
                #expect(works.allSatisfy { $0 == works[0] })
            }
        }
    }

    // MARK: Who reads

    @Test func `who may write a type reads it, for whoever asks (semantics audit 6)`() {
        let database = DatabaseID(
            container: ContainerReference(container: "c", environment: .production),
            scope: .public, owner: "")
        func type(_ grants: [Grant]) -> RecordType {
            RecordType(name: "T", fields: [], grants: grants)
        }
        let user = Principal(kind: .user, userRecordName: "_bob", roles: ["editor"])
        let nobody = Principal(kind: .anonymous)
        let written = type([Grant(role: "_creator", permissions: [.write])])
        let both = type([Grant(role: "_creator", permissions: [.read, .write])])
        for type in [written, both] {
            #expect(AccessRules.roles(that: .read, type) == ["_creator"])
            #expect(AccessRules.visible(type, in: database, user) == .created(by: "_bob"))
            #expect(AccessRules.visible(type, in: database, nobody) == .none)
        }
        let edited = type([Grant(role: "editor", permissions: [.write])])
        #expect(AccessRules.visible(edited, in: database, user) == .all)
        let other = type([Grant(role: "other", permissions: [.write])])
        #expect(AccessRules.visible(other, in: database, user) == .none)
        #expect(AccessRules.visible(nil, in: database, nobody) == .all)
    }
}
