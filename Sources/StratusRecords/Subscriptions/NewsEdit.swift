import StratusCoding
import StratusModel
import StratusRows

/// Writes a database's events beside the changes of one command: marks of zones, and changes of
/// records that some subscription may want.
///
/// A database that nobody watches costs one look into ``RowCache``.
struct NewsEdit {
    /// Events that a database holds. The oldest give way.
    static let eventCountMax: UInt64 = 4_096
    /// A field beyond this is left out of the event, and so is what would pass the second.
    static let fieldSizeMax = 2 << 10
    static let recordSizeMax = 12 << 10

    private let database: DatabaseNumber
    private let bugs: PlantedBugs
    private var watch: WatchRow

    /// Nil: nobody watches.
    init?(
        _ database: DatabaseNumber, cache: inout RowCache, bugs: PlantedBugs,
        over rows: RowView
    ) throws(StoreError) {
        let watch = try cache.watch(of: database, over: rows)
        guard watch.subscriptionCount > 0 else { return nil }
        self.database = database
        self.bugs = bugs
        self.watch = watch
    }

    /// Changed records of one zone, in the order of their tags.
    mutating func write(
        _ changes: [(before: Record?, after: Record?, tag: ChangeTag)],
        into rows: Rows
    ) throws(StoreError) {
        var interests: [String: InterestRow?] = [:]
        for (before, after, tag) in changes {
            let reason: Subscription.Reasons =
                after == nil ? .deleted : before == nil ? .created : .updated
            guard let record = after ?? before else { continue }
            if interests[record.type] == nil {
                interests[record.type] = .some(
                    try StoredRows.interest(record.type, in: self.database, over: rows.view))
            }
            guard let interest = interests[record.type] ?? nil, interest.wants(reason) else {
                continue
            }
            var (kept, omitted) = Self.reduced(record, to: interest)
            // A deletion has a tag of its own.
            kept.tag = tag
            if reason == .deleted, self.bugs.contains(.deletionMatchedAfter) { kept.fields = [] }
            try self.append(.record(reason, kept, omitted: omitted), into: rows)
        }
    }

    /// The zone has changed through this tag: takes the place of its last mark.
    mutating func mark(
        _ zone: String, _ through: UInt64, into rows: Rows
    ) throws(StoreError) {
        var tag = through
        guard self.watch.zoneWatcherCount > 0, zone != ZoneID.defaultName else { return }
        let key = Keys.mark(self.database, zone)
        if let row = try rows.row(.subscription, key) {
            let mark = try decodingRow("mark") { () throws(DecodingError) in
                try MarkRow(decoding: row)
            }
            if self.bugs.contains(.markClearedThoughNewer) {
                return try rows.put(
                    .event, Keys.event(self.database, mark.number),
                    NewsEvent.zone(zone, ChangeTag(tag)).encoded())
            }
            if self.bugs.contains(.oldestKeptWhenCoalesced),
                let row = try rows.row(.event, Keys.event(self.database, mark.number)),
                case .zone(_, let older)? = try? NewsEvent(decoding: row, owner: "")
            {
                tag = older.raw
            }
            try rows.remove(.event, Keys.event(self.database, mark.number))
        }
        try rows.put(.subscription, key, MarkRow(number: self.watch.nextEvent).encoded())
        try self.append(.zone(zone, ChangeTag(tag)), into: rows)
    }

    private mutating func append(
        _ event: NewsEvent, into rows: Rows
    ) throws(StoreError) {
        try rows.put(.event, Keys.event(self.database, self.watch.nextEvent), event.encoded())
        self.watch.nextEvent += 1
        while self.watch.nextEvent - self.watch.oldestEvent > Self.eventCountMax {
            try rows.remove(.event, Keys.event(self.database, self.watch.oldestEvent))
            self.watch.oldestEvent += 1
        }
    }

    func flush(into rows: Rows, cache: inout RowCache) throws(StoreError) {
        try rows.put(.subscription, Keys.watch(self.database), self.watch.encoded())
        cache.remember(self.watch, of: self.database)
    }

    /// The record with the fields that are wanted and fit.
    static func reduced(
        _ record: Record, to interest: InterestRow
    ) -> (record: Record, omitted: [String]) {
        var fields: [Field] = []
        var omitted: [String] = []
        var size = 0
        for field in record.fields where interest.wants(field: field.name) {
            let fieldSize = field.storedSize
            if fieldSize > Self.fieldSizeMax || size + fieldSize > Self.recordSizeMax {
                omitted.append(field.name)
            } else {
                size += fieldSize
                fields.append(field)
            }
        }
        var reduced = record
        reduced.fields = fields
        return (reduced, omitted)
    }
}

extension Field {
    /// Bytes of the value as rows have it.
    fileprivate var storedSize: Int {
        var writer = ByteWriter(reserving: 64)
        writer.write(self.value)
        return writer.bytes.count
    }
}
