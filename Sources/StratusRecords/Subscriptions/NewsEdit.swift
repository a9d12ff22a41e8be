import StratusCoding
import StratusModel
import StratusRows

/// Writes a database's events beside the changes of one command: changes of records that some
/// subscription may want, and marks of zones.
///
/// A mark keeps its number, so it is told in its turn however often the zone changes. While nobody
/// has come as far as the zone's newest mark, a change renews its tag. Otherwise the zone gets
/// another one.
///
/// A database that nobody watches costs one look into ``RowCache``.
struct NewsEdit {
    /// Events of records that a database holds. The oldest give way. Marks do not count.
    static let eventCountMax: UInt64 = 4_096
    /// Marks of zones that a database holds. The oldest give way, those of zones that went long ago
    /// among them.
    static let markCountMax: UInt64 = 4_096
    /// Rows that one change of a zone passes where marks give way. The rest waits for the next one.
    private static let passedCountMax = 64
    /// A field beyond this is left out of the event, and so is what would pass the second.
    static let fieldSizeMax = 2 << 10
    static let recordSizeMax = 12 << 10
    /// Rows that are read at once where some give way.
    private static let trimPage = 32

    private let database: DatabaseNumber
    private let eventCountMax: UInt64
    private let markCountMax: UInt64
    private let bugs: PlantedBugs
    private var watch: WatchRow

    /// Nil: nobody watches.
    init?(
        _ database: DatabaseNumber, cache: inout RowCache, bugs: PlantedBugs,
        eventCountMax: UInt64 = Self.eventCountMax, markCountMax: UInt64 = Self.markCountMax,
        over rows: RowView
    ) throws(StoreError) {
        let watch = try cache.watch(of: database, over: rows)
        guard watch.subscriptionCount > 0 else { return nil }
        self.database = database
        self.eventCountMax = eventCountMax
        self.markCountMax = markCountMax
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
            self.watch.eventCount += 1
        }
        try self.trim(over: rows)
    }

    private mutating func append(_ event: NewsEvent, into rows: Rows) throws(StoreError) {
        try rows.put(.event, Keys.event(self.database, self.watch.nextEvent), event.encoded())
        self.watch.nextEvent += 1
    }

    /// Removes the oldest events of records. Marks stand between them and stay.
    private mutating func trim(over rows: Rows) throws(StoreError) {
        if self.bugs.contains(.windowCountsNumbers) { return try self.trimNumbers(over: rows) }
        let end = Keys.event(self.database, self.watch.nextEvent)
        while self.watch.eventCount > self.eventCountMax {
            let oldest = try rows.view.rows(
                .event, from: Keys.event(self.database, self.watch.oldestEvent), to: end,
                limit: Self.trimPage)
            if oldest.isEmpty { return }
            for (key, row) in oldest where self.watch.eventCount > self.eventCountMax {
                self.watch.oldestEvent = try Keys.number(key, at: 4) + 1
                if NewsEvent.isMark(row) { continue }
                try rows.remove(.event, key)
                self.watch.eventCount -= 1
            }
        }
    }

    /// Planted: what was a mark fills the window too.
    private mutating func trimNumbers(over rows: Rows) throws(StoreError) {
        while self.watch.nextEvent - self.watch.oldestEvent > self.eventCountMax {
            try rows.remove(.event, Keys.event(self.database, self.watch.oldestEvent))
            self.watch.oldestEvent += 1
        }
    }

    // MARK: Marks

    /// The zone has changed through this tag.
    mutating func mark(
        _ zone: String, _ through: UInt64, into rows: Rows
    ) throws(StoreError) {
        guard self.watch.zoneWatcherCount > 0, zone != ZoneID.defaultName else { return }
        var marks = try StoredRows.marks(of: zone, in: self.database, over: rows.view)
        if self.bugs.contains(.markMoves), let last = marks.numbers.popLast() {
            try rows.remove(.event, Keys.event(self.database, last))
            self.watch.markCount -= 1
        }
        let isOpen = (marks.numbers.last ?? 0) > self.watch.front
        if let newest = marks.numbers.last,
            isOpen || self.bugs.contains(.markClearedThoughNewer)
        {
            if self.bugs.contains(.oldestKeptWhenCoalesced) { return }
            return try rows.put(
                .event, Keys.event(self.database, newest),
                NewsEvent.zone(zone, ChangeTag(through)).encoded())
        }
        try self.begin(ChangeTag(through), of: zone, after: &marks, into: rows)
    }

    /// A follower has come to a place in the events, or a live stream tells what stands there.
    ///
    /// - Parameter told: of a mark: the tag with which it was told. The zone may have changed since
    ///   then, so the newest mark may have a newer tag by now. That is news again.
    mutating func settle(
        through number: UInt64, told: ChangeTag?, into rows: Rows
    ) throws(StoreError) {
        // Whoever begins to watch a zone lifts the front.
        guard self.watch.zoneWatcherCount > 0 else { return }
        self.watch.front = max(self.watch.front, number)
        guard let told, !self.bugs.contains(.renewedMarkSettled) else { return }
        let key = Keys.event(self.database, number)
        guard let row = try rows.row(.event, key),
            case .zone(let zone, let tag) = try StoredRows.event(decoding: row), tag != told
        else { return }
        var marks = try StoredRows.marks(of: zone, in: self.database, over: rows.view)
        guard marks.numbers.last == number else { return }
        try rows.put(.event, key, NewsEvent.zone(zone, told).encoded())
        try self.begin(tag, of: zone, after: &marks, into: rows)
    }

    /// Gives the zone another mark, and merges those before it that nobody needs apart.
    private mutating func begin(
        _ tag: ChangeTag, of zone: String, after marks: inout ZoneMarksRow, into rows: Rows
    ) throws(StoreError) {
        marks.numbers.append(self.watch.nextEvent)
        try self.append(.zone(zone, tag), into: rows)
        self.watch.markCount += 1
        let kept = try self.needed(of: marks.numbers, over: rows.view)
        // What a mark is merged with is told there: with the tag of the last one.
        for (place, first) in kept.enumerated() {
            let last = (place + 1 < kept.count ? kept[place + 1] : marks.numbers.count) - 1
            guard last > first,
                let row = try rows.row(.event, Keys.event(self.database, marks.numbers[last]))
            else { continue }
            try rows.put(.event, Keys.event(self.database, marks.numbers[first]), row)
        }
        for (index, number) in marks.numbers.enumerated() where !kept.contains(index) {
            try rows.remove(.event, Keys.event(self.database, number))
            self.watch.markCount -= 1
        }
        marks.numbers = kept.map { marks.numbers[$0] }
        try rows.put(.subscription, Keys.mark(self.database, zone), marks.encoded())
        try self.trimMarks(over: rows)
    }

    /// Removes the oldest marks. Events of records stand between them and stay.
    private mutating func trimMarks(over rows: Rows) throws(StoreError) {
        guard self.watch.markCount > self.markCountMax else { return }
        let oldest = try rows.view.rows(
            .event, from: Keys.event(self.database, self.watch.oldestMark),
            to: Keys.event(self.database, self.watch.nextEvent), limit: Self.passedCountMax,
            sizeMax: Self.recordSizeMax)
        for (key, row) in oldest where self.watch.markCount > self.markCountMax {
            let number = try Keys.number(key, at: 4)
            self.watch.oldestMark = number + 1
            guard case .zone(let zone, _) = try StoredRows.event(decoding: row) else { continue }
            var marks = try StoredRows.marks(of: zone, in: self.database, over: rows.view)
            marks.numbers.removeAll { $0 == number }
            if marks.numbers.isEmpty {
                try rows.remove(.subscription, Keys.mark(self.database, zone))
            } else {
                try rows.put(.subscription, Keys.mark(self.database, zone), marks.encoded())
            }
            try rows.remove(.event, key)
            self.watch.markCount -= 1
        }
    }

    /// The places of the newest mark, of the first one behind each follower, and of the one at which
    /// it stands; ascending.
    ///
    /// Only private databases have zones with marks, so these are the followers of one owner.
    private func needed(of numbers: [UInt64], over rows: RowView) throws(StoreError) -> [Int] {
        guard numbers.count > 1 else { return Array(numbers.indices) }
        var needed: Set = [numbers.count - 1]
        for kind in [Keys.SubscriptionKind.follower, .deviceFollower] {
            let start = Keys.subscriptionRows(kind, of: self.database)
            let found = try rows.rows(
                .subscription, from: start, to: Keys.end(of: start),
                limit: RecordState.followerCountMax)
            for (_, row) in found {
                let position = try StoredRows.follower(decoding: row).position
                // It may have more to take of the mark at which it stands.
                needed.formUnion(numbers.indices.filter { numbers[$0] == position.number })
                if let next = numbers.firstIndex(where: { $0 > position.number }) {
                    needed.insert(next)
                }
            }
        }
        return needed.sorted()
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
