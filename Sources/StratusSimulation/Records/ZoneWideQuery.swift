import StratusCoding
import StratusModel
import StratusQuery
import StratusRecords

/// A sorted query over all zones of a database in parts, from its first page to its last, as a
/// gateway asks it: each page takes two looks (``BucketMerge``).
struct ZoneWideQuery {
    /// A record as it stands on a page.
    struct Item: Hashable {
        var zone: String
        var record: String
        var tag: UInt64
    }

    enum Progress { case goesOn, done, stuck }

    /// The home is part 0, and the buckets follow.
    static let numbers = 0...SimulatedZones.database.bucketCount

    private let predicate: RecordPredicate
    private let limit: Int
    private let bugs: PlantedBugs
    private var marker: Bytes?
    private var first: [PlacedPage?] = []
    private var second: [PlacedPage?] = []
    private var merge: BucketMerge?
    /// How often each record was on a page.
    private(set) var seen: [Item: Int] = [:]
    /// What there was when it began.
    let before: Set<Item>

    init(least: Int64, descending: Bool, limit: Int, before: Set<Item>, bugs: PlantedBugs) {
        self.predicate = RecordPredicate(
            recordType: RecordWorld.type,
            filters: [
                RecordFilter(
                    field: .field("b"), comparator: .greaterThanOrEquals,
                    operand: .scalar(.int64(least)))
            ], sorts: [RecordSort(field: .field("b"), ascending: !descending)])
        self.limit = limit
        self.before = before
        self.bugs = bugs
        self.beginLook()
    }

    private mutating func beginLook() {
        self.first = Self.numbers.map { _ in nil }
        self.second = self.first
        self.merge = nil
    }

    static func part(_ number: Int) -> DatabaseID {
        SimulatedZones.database.part(number == 0 ? nil : number - 1)
    }

    // MARK: Looking

    /// The parts that the look asks which have not answered.
    var open: [Int] {
        guard let merge else { return Self.numbers.filter { self.first[$0] == nil } }
        return Self.numbers.filter { merge.counts[$0] > 0 && self.second[$0] == nil }
    }

    func ask(_ number: Int) -> RecordQuery.Ask {
        var ask = QueryPageAsk(
            database: Self.part(number), zone: nil, predicate: self.predicate,
            limit: self.merge?.counts[number] ?? self.limit, after: self.marker,
            requiresIndexes: false)
        ask.schemaVersion = 1
        ask.placed = self.merge == nil ? .only : .withRecords
        if !self.bugs.contains(.tieIgnoresBucket) { ask.part = UInt8(number) }
        return .page(ask)
    }

    /// - Returns: false: the part cannot sort, or has no schema yet.
    mutating func take(_ answer: RecordAnswer, of number: Int) -> Bool {
        let page: PlacedPage
        switch answer {
        case .placedPage(let placed): page = placed
        case .page(let empty) where empty.records.isEmpty && empty.next == nil:
            page = PlacedPage(places: [], records: [], end: nil)
        default: return false
        }
        if self.merge == nil { self.first[number] = page } else { self.second[number] = page }
        return true
    }

    /// Everybody has answered.
    mutating func endLook() -> Progress {
        func parts(_ pages: [PlacedPage?]) -> [BucketMerge.Part] {
            pages.map { .init(places: $0?.places ?? [], end: $0?.end) }
        }
        guard let merge else {
            self.merge = BucketMerge(parts(self.first), limit: self.limit)
            return self.open.isEmpty ? self.endLook() : .goesOn
        }
        let page = merge.page(parts(self.second))
        if page.isStuck {
            self.beginLook()
            return .stuck
        }
        for taken in page.taken {
            guard let record = self.second[taken.part]?.records[taken.position] else { continue }
            let item = Item(
                zone: record.zone.name, record: record.name, tag: record.tag.raw)
            self.seen[item, default: 0] += 1
        }
        self.marker = page.next?.marker
        self.beginLook()
        return self.marker == nil ? .done : .goesOn
    }

    /// Z7: what has stood still is on exactly one page.
    ///
    /// - Parameter after: what there is now.
    func problem(after: Set<Item>) -> String? {
        for item in self.before.intersection(after).sorted(by: { $0.text < $1.text }) {
            let count = self.seen[item] ?? 0
            if count != 1 { return "\(item.text) is on \(count) pages" }
        }
        return nil
    }
}

extension ZoneWideQuery.Item {
    fileprivate var text: String { "\(self.record) in \(self.zone) at \(self.tag)" }
}

extension SimulatedRecords {
    /// The records of a database in parts that have `least` or more in their indexed field.
    func spreadItems(least: Int64) -> Set<ZoneWideQuery.Item> {
        guard let zones = self.zones else { return [] }
        var items: Set<ZoneWideQuery.Item> = []
        let places =
            SimulatedZones.names.map {
                RecordModel.Place(database: SimulatedZones.database.part(of: $0), zone: $0)
            } + [SimulatedZones.homeDefault]
        for place in places {
            let ledger = self.ledger(of: zones.group(of: place.database))
            for record in (ledger.records(in: place) ?? [:]).values {
                guard case .scalar(.int64(let value))? = record.value(of: "b"), value >= least
                else { continue }
                items.insert(
                    .init(zone: place.zone, record: record.name, tag: record.tag.raw))
            }
        }
        return items
    }
}
