import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// A page sorted by distance is bounded where it begins, too: the cells that cross the distance at
/// which it begins must be opened before its first record is certain (security audit 1, 6).
@Suite struct QueryDistanceTests {
    private static let centre = Location(latitude: 0, longitude: 0)

    /// Places all about as far from the centre, none just as far as another: whoever wants a page
    /// to be dear chooses them so.
    private static func ring(_ count: Int) -> QueryShelf {
        var shelf = QueryShelf(QueryLibrary.schema)
        for number in 0..<count {
            let t = Double(2 * number - count) / Double(count)
            let reach = 10 + Double(number * 7_919 % count) / Double(count) / 100
            let place = Location(
                latitude: reach * (1 - t * t) / (1 + t * t),
                longitude: reach * 2 * t / (1 + t * t))
            let fields = [Field(name: "place", value: .scalar(.location(place)))]
            let record = QueryWorkTests.record("n\(number)", fields, zone: shelf.zones[0].id)
            shelf.set(record.name, to: record, zone: 0)
        }
        return shelf
    }

    private static func page(
        _ predicate: RecordPredicate, over shelf: QueryShelf, limit: Int = 10, after: Bytes? = nil,
        bound: Int, begin: Int
    ) throws -> (page: Result<QueryResult, QueryRefusal>, touchCount: Int) {
        var request = QueryPageRequest(
            predicate, zones: shelf.zones, limit: limit, after: after, touchCountMax: bound)
        request.beginTouchCountMax = begin
        // A refusal counts nothing itself.
        let meter = ReadMeter(touchCountMax: .max)
        let page = try QueryExecutor(shelf.schema, shelf.source)
            .page(request, over: RowView(shelf.rows, meter: meter))
        return (page, meter.work.touchCount)
    }

    private static func sorted(
        _ filters: [RecordFilter] = [], ascending: Bool = true, by place: Location = Self.centre
    ) -> RecordPredicate {
        RecordPredicate(
            recordType: "Book", filters: filters,
            sorts: [
                RecordSort(
                    field: .field("place"), ascending: ascending, relativeLocation: place)
            ])
    }

    @Test(arguments: [true, false])
    func `to begin among places at one distance costs what they are, and no more than its bound`(
        ascending: Bool
    ) throws {
        var costs: [Int] = []
        for count in [250, 500, 1_000, 2_000] {
            let shelf = Self.ring(count)
            let predicate = Self.sorted(ascending: ascending)
            let free = try Self.page(predicate, over: shelf, bound: 1 << 40, begin: 1)
            #expect(try free.page.get().records.count == 10)
            costs.append(free.touchCount)
            // A quarter for the page itself, and the cell that passes the bound.
            for bound in [50, 200, 400] {
                let (page, touchCount) = try Self.page(
                    predicate, over: shelf, bound: bound, begin: bound)
                #expect(touchCount <= bound + bound / 4 + 60, "\(count) places, bound \(bound)")
                if count >= 1_000 { #expect(page == .failure(.tooManyPlaces)) }
            }
        }
        for (one, two) in zip(costs, costs.dropFirst()) {
            #expect(two <= 2 * one + one / 4 + 200, "\(costs)")
        }
        #expect(costs[3] > 1_000, "the test's places are not dear: \(costs)")
    }

    @Test func `places all over the world cost a page little, wherever it begins`() throws {
        var library = QueryLibrary(seed: 77)
        var shelf = QueryShelf(QueryLibrary.schema)
        for number in 0..<2_000 {
            let place = Location(
                latitude: Double.random(in: -60...60, using: &library.generator),
                longitude: Double.random(in: -180..<180, using: &library.generator))
            let fields = [Field(name: "place", value: .scalar(.location(place)))]
            let record = QueryWorkTests.record("n\(number)", fields, zone: shelf.zones[0].id)
            shelf.set(record.name, to: record, zone: 0)
        }
        var after: Bytes?
        var count = 0
        repeat {
            let (page, touchCount) = try Self.page(
                Self.sorted(), over: shelf, limit: 200, after: after, bound: 10_000, begin: 10_000)
            count += try page.get().records.count
            after = try page.get().next
            #expect(touchCount <= 6_000, "at \(count)")
        } while after != nil
        #expect(count == 2_000)
    }

    @Test func `a filter with few records is sorted although the walk cannot begin`() throws {
        var shelf = Self.ring(1_000)
        for number in 0..<120 {
            var record = QueryWorkTests.record(
                "few\(number)",
                [
                    Field(name: "flag", value: .scalar(.int64(7))),
                    Field(
                        name: "place",
                        value: .scalar(
                            .location(Location(latitude: 10, longitude: Double(number) / 1e4)))),
                ], zone: shelf.zones[0].id)
            record.fields.sort { $0.name < $1.name }
            shelf.set(record.name, to: record, zone: 0)
        }
        let filter = RecordFilter(
            field: .field("flag"), comparator: .equals, operand: .scalar(.int64(7)))
        let (page, touchCount) = try Self.page(
            Self.sorted([filter]), over: shelf, limit: 50, bound: 400, begin: 400)
        #expect(try page.get().records.count == 50)
        #expect(touchCount <= 1_000)
        let alone = try Self.page(Self.sorted(), over: shelf, limit: 50, bound: 400, begin: 400)
        #expect(alone.page == .failure(.tooManyPlaces))
    }

    @Test(arguments: 1...8 as ClosedRange<UInt64>)
    func `whatever the bounds, a page keeps them, goes on or says that it cannot`(
        seed: UInt64
    ) throws {
        var library = QueryLibrary(seed: seed &+ 900)
        let zoneCount = library.pick([1, 1, 2, 3])
        var shelf = QueryPropertyTests.shelf(&library, count: 60, zones: zoneCount)
        for number in 0..<120 {
            let place = Location(
                latitude: Double.random(in: -1...1, using: &library.generator),
                longitude: Double.random(in: 12...14, using: &library.generator))
            let fields = [Field(name: "place", value: .scalar(.location(place)))]
            let zone = number % zoneCount
            let record = QueryWorkTests.record("p\(number)", fields, zone: shelf.zones[zone].id)
            shelf.set(record.name, to: record, zone: zone)
        }
        var (endCount, refusedCount) = (0, 0)
        for round in 0..<12 {
            var predicate = library.predicate(
                home: shelf.zones[0].id, names: ["n1", "n2", "p3", "n40"])
            let sort = RecordSort(
                field: .field("place"), ascending: library.chance(50),
                relativeLocation: library.pick(QueryLibrary.places))
            // First, or within groups of the sorts before it.
            predicate.sorts.removeAll { $0.relativeLocation != nil }
            predicate.sorts.insert(
                sort, at: library.pick([0, 0, min(1, predicate.sorts.count)]))
            let bounds = library.pick([[1, 20, 100, 2_000], [100], [400]])
            let begin = library.pick([1, 60, 200, 2_000])
            let note = "seed \(seed) round \(round) \(bounds) begin \(begin) \(predicate)"
            var found: [Record] = []
            var after: Bytes?
            pages: for number in 0...20_000 {
                guard number < 20_000 else { Issue.record("without end: \(note)"); break }
                let bound = library.pick(bounds)
                let (page, touchCount) = try Self.page(
                    predicate, over: shelf, limit: library.pick([1, 7, 50]), after: after,
                    bound: bound, begin: begin)
                // To begin; then the page or the attempt to gather; and a cell and a group of
                // records in each zone.
                #expect(
                    touchCount <= max(bound, begin) + 2 * bound + 400 * zoneCount, "\(note)")
                switch page {
                case .failure(.tooManyPlaces):
                    refusedCount += 1
                    break pages
                case .failure(let refusal): throw refusal
                case .success(let result):
                    for (record, row) in zip(result.records, result.rows) {
                        var reader = ByteReader(row)
                        found.append(
                            try reader.recordBody(name: record.name, zone: record.zone))
                    }
                    #expect(result.next != after || after == nil, "\(note)")
                    after = result.next
                    if after == nil {
                        endCount += 1
                        try QueryPropertyTests.check(found, against: shelf, predicate, note)
                        break pages
                    }
                }
            }
        }
        #expect(endCount > 0, "seed \(seed)")
        #expect(endCount + refusedCount == 12, "seed \(seed)")
    }
}
