package import StratusCoding
package import StratusModel
package import StratusRows

/// Asks what of a key-value store has changed since a position.
package struct KeyValuesAsk: SingleQuestion, DatabaseQuestion, Equatable {
    package static let number: UInt8 = 17
    /// One entry, which may be as large as a store.
    package static let bound = WorkBound.page(step: 4_500)
    /// Bytes of values after which a page ends.
    private static let pageSizeMax = 1 << 20

    package var database = DatabaseID()
    /// Nil: from the beginning. So is a position that has expired.
    package var after: FeedPosition?
    /// Rows that one page passes over.
    package var limit: UInt32 = 500
    /// Keys whose state the page tells in any case, behind what has changed.
    package var keys: [String] = []

    package init() {}

    package var payer: Payer { .owner(of: self.database) }
    package var need: AccessNeed { .owner }

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.database)
        try form.lay(&self.after)
        try form.lay(&self.limit)
        // One more than it takes is told so.
        try form.lay(&self.keys, atMost: KeyValueStore.changeCountMax + 1)
    }

    package func answer(
        in state: inout RecordState, to asker: Principal, _ cost: ReadCost, over view: RowView
    ) throws(StoreError) -> Result<KeyValuesPage, RequestRefusal> {
        guard self.database.scope == .private else {
            return .failure(RequestRefusal(.accessDenied))
        }
        guard self.keys.count <= KeyValueStore.changeCountMax else {
            return .failure(RequestRefusal(.tooManyItems, String(KeyValueStore.changeCountMax)))
        }
        guard let zone = try KeyValueStore.zone(of: self.database, &state.cache, over: view) else {
            return .success(self.pageOfNothing)
        }
        var page = KeyValuesPage()
        page.use = try KeyValueStore.use(of: zone.number, over: view)
        // First, so that what changed leaves off where they have taken much. Each once, however
        // often it is named: a value may have a megabyte.
        var told: [KeyValuesPage.Entry] = []
        var names: Set<Bytes> = []
        for key in self.keys where names.insert(Bytes(key.utf8)).inserted {
            told.append(try self.entry(key, in: zone, over: view))
        }
        try self.addChanges(in: zone, to: &page, cost.meter, over: view)
        page.entries += told
        return .success(page)
    }

    /// Who has seen a store knows what is gone; who has seen none has missed nothing.
    private var pageOfNothing: KeyValuesPage {
        KeyValuesPage { page in
            page.isFromStart = self.after.map { $0.incarnation.raw != 0 } ?? true
            page.entries = self.keys.map { key in KeyValuesPage.Entry { $0.key = key } }
        }
    }

    private func addChanges(
        in zone: ZoneRow, to page: inout KeyValuesPage, _ meter: ReadMeter, over view: RowView
    ) throws(StoreError) {
        var after = self.after
        let hasSeenNone = after?.incarnation.raw == 0
        if let position = after,
            position.incarnation != zone.incarnation || position.tag.raw > zone.lastTag
                || !zone.honours(position)
        {
            after = nil
        }
        let start = Keys.zoneStart(zone.number)
        let limit = min(max(1, Int(self.limit)), RecordState.pageTouchMax)
        let found = try view.rows(
            .feed, from: after.map { Keys.feed(zone.number, ChangeTag($0.tag.raw + 1)) } ?? start,
            to: Keys.end(of: start), limit: limit + 1)
        var size = 0
        var last = after?.tag ?? ChangeTag(zone.baseTag)
        var takenCount = 0
        for (key, row) in found.prefix(limit) {
            if takenCount > 0, size >= Self.pageSizeMax || meter.isSpent { break }
            takenCount += 1
            last = ChangeTag(try Keys.number(key, at: 4))
            let feed = try decodingRow("feed") { () throws(DecodingError) in
                try FeedRow(decoding: row)
            }
            guard let name = KeyValueKeys.key(ofRecord: feed.name) else {
                throw StoreError(.corrupt, "a key-value record's name")
            }
            let entry = try self.entry(name, in: zone, over: view)
            size += entry.value?.count ?? 0
            // Who begins from nothing needs no removals.
            if after == nil, entry.value == nil { continue }
            page.entries.append(entry)
        }
        page.moreComing = takenCount < found.count
        if !page.moreComing { last = ChangeTag(zone.lastTag) }
        page.isFromStart = after == nil && !hasSeenNone
        page.position = Self.position(last, after: after, in: zone)
    }

    /// A position that deletions before the fetch began do not expire.
    private static func position(
        _ last: ChangeTag, after: FeedPosition?, in zone: ZoneRow
    ) -> FeedPosition {
        var floor = after?.floor ?? ChangeTag(zone.lastTag)
        if floor <= last { floor = ChangeTag(0) }
        return FeedPosition(incarnation: zone.incarnation, tag: last, floor: floor)
    }

    private func entry(
        _ key: String, in zone: ZoneRow, over view: RowView
    ) throws(StoreError) -> KeyValuesPage.Entry {
        let id = ZoneID(name: ZoneID.keyValueName, owner: self.database.owner)
        let row = try StoredRows.record(
            KeyValueKeys.recordName(key), of: zone.number, in: id, over: view
        ).row
        var entry = KeyValuesPage.Entry()
        entry.key = key
        if let record = row?.live {
            let content = try KeyValueRecord(record)
            entry.value = content.value
            entry.device = content.device
            entry.batch = content.batch
        }
        return entry
    }
}

/// Part of the answer to a ``KeyValuesAsk``.
package struct KeyValuesPage: FormValue, Sendable, Equatable {
    package struct Entry: FormValue, Sendable, Equatable {
        package var key = ""
        /// Nil: it was removed.
        package var value: Bytes?
        /// The batch that it came with; the device is empty where nobody remembers it.
        package var device = ""
        package var batch: UInt64 = 0

        package init() {}

        package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
            try form.lay(&self.key)
            try form.lay(&self.value)
            try form.lay(&self.device)
            try form.lay(&self.batch)
        }
    }

    /// The page begins at the store's beginning. Then it tells of no removed keys.
    package var isFromStart = false
    package var entries: [Entry] = []
    package var position = FeedPosition(incarnation: ZoneIncarnation(0), tag: ChangeTag(0))
    package var moreComing = false
    package var use = KeyValueUse()

    package init() {}

    package mutating func lay<F: Form>(in form: inout F) throws(F.Problem) {
        try form.lay(&self.isFromStart)
        try form.lay(
            &self.entries, atMost: RecordState.pageTouchMax + KeyValueStore.changeCountMax)
        try form.lay(&self.position)
        try form.lay(&self.moreComing)
        try form.lay(&self.use)
    }
}
