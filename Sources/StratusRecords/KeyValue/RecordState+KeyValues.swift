import StratusCoding
import StratusModel
import StratusRows

extension RecordState {
    /// The tombstones that a store keeps for clients that follow it.
    private static let keyValueTombstoneCountMin = 4_096
    /// Bytes of values after which a page ends.
    private static let keyValuePageSizeMax = 1 << 20

    mutating func apply(
        _ modify: ModifyKeyValues, of command: Command, at time: HybridTime,
        over rows: Rows
    ) throws(StoreError) -> RecordOutcome {
        guard modify.database.scope == .private else {
            return .refused(RequestRefusal(.accessDenied))
        }
        if modify.changes.isEmpty { return .refused(RequestRefusal(.empty)) }
        guard modify.changes.count <= KeyValueStore.changeCountMax else {
            return .refused(
                RequestRefusal(.tooManyItems, String(KeyValueStore.changeCountMax)))
        }
        guard KeyValueStore.isDevice(modify.device) else {
            return .refused(RequestRefusal(.queryInvalid, "device"))
        }
        var numbers = NumberDraw()
        let place = try self.place(
            of: ZoneID.keyValueName, in: modify.database, drawn: modify.drawnIncarnation,
            &numbers, over: rows.view)
        let number = place.zone.number
        let device = try Self.device(modify.device, of: number, over: rows.view)
        if let device, device.lastBatch >= modify.batch, !self.bugs.contains(.batchTakenAgain) {
            return .keyValues(
                ModifiedKeyValues(
                    isRepeat: true, results: [],
                    refused: device.lastBatch == modify.batch ? device.refused : []))
        }
        let zone = ZoneEdit(
            ZoneID.keyValueName, of: modify.database, database: place.database, zone: place.zone,
            at: time, bugs: self.bugs)
        var edit = KeyValueEdit(
            modify, zone: zone, principal: command.principal,
            use: try Self.keyValueUse(of: number, over: rows.view))
        let results = try edit.run(over: rows.view)
        let modified = ModifiedKeyValues(
            isRepeat: false, results: results, refused: edit.refused)
        // Where everything was refused before there was a zone, a repeat is refused as well.
        guard place.isKnown || edit.zone.hasChanges else { return .keyValues(modified) }
        if numbers.isDrawn {
            try numbers.write(into: rows)
            try rows.put(.database, Keys.database(modify.database), place.database.encoded())
            self.cache.remember(place.database, of: modify.database)
        }
        try edit.flush(isNew: device == nil, into: rows)
        try edit.zone.flush(
            into: rows, cache: &self.cache, schema: nil,
            tombstoneCountMin: min(
                Self.keyValueTombstoneCountMin, max(1, modify.rules.removedCountMax)))
        return .keyValues(modified)
    }

    /// The row of a reserved zone and of its database, made where there are none.
    mutating func place(
        of name: String, in id: DatabaseID, drawn incarnation: ZoneIncarnation,
        _ numbers: inout NumberDraw, over rows: RowView
    ) throws(StoreError) -> (database: DatabaseRow, zone: ZoneRow, isKnown: Bool) {
        let database: DatabaseRow
        if let known = try self.cache.database(id, over: rows) {
            database = known
        } else {
            database = try numbers.database(over: rows)
        }
        if let known = try self.cache.zone(name, in: database.number, over: rows),
            !known.isDeleted
        {
            return (database, known, true)
        }
        // Above every tag of a zone that was erased.
        let zone = ZoneRow(
            number: try numbers.zone(over: rows), incarnation: incarnation,
            baseTag: database.tagFloor)
        return (database, zone, false)
    }

    private static func device(
        _ device: String, of zone: ZoneNumber, over rows: RowView
    ) throws(StoreError) -> KeyValueDeviceRow? {
        guard let row = try rows.row(.reference, KeyValueKeys.device(zone, device)) else {
            return nil
        }
        return try decodingRow("key-value device") { () throws(DecodingError) in
            try KeyValueDeviceRow(decoding: row)
        }
    }

    private static func keyValueUse(
        of zone: ZoneNumber, over rows: RowView
    ) throws(StoreError) -> KeyValueUse {
        guard let row = try rows.row(.reference, KeyValueKeys.use(zone)) else {
            return KeyValueUse()
        }
        return try decodingRow("key-value counters") { () throws(DecodingError) in
            try KeyValueUse(decoding: row)
        }
    }

    // MARK: Reading

    /// The zone of a key-value store; nil: nothing was ever written.
    private mutating func keyValueZone(
        of id: DatabaseID, over rows: RowView
    ) throws(StoreError) -> ZoneRow? {
        guard let database = try self.cache.database(id, over: rows),
            let zone = try self.cache.zone(
                ZoneID.keyValueName, in: database.number, over: rows), !zone.isDeleted
        else { return nil }
        return zone
    }

    mutating func keyValues(
        _ ask: KeyValuesAsk, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard ask.database.scope == .private else {
            return .refused(RequestRefusal(.accessDenied))
        }
        guard ask.keys.count <= KeyValueStore.changeCountMax else {
            return .refused(RequestRefusal(.tooManyItems, String(KeyValueStore.changeCountMax)))
        }
        guard let zone = try self.keyValueZone(of: ask.database, over: rows) else {
            // Who has seen a store knows what is gone; who has seen none has missed nothing.
            let hasSeen = ask.after.map { $0.incarnation.raw != 0 } ?? true
            return .keyValues(
                KeyValuesPage(
                    isFromStart: hasSeen,
                    entries: ask.keys.map {
                        KeyValuesPage.Entry(key: $0, value: nil, device: "", batch: 0)
                    },
                    position: FeedPosition(incarnation: ZoneIncarnation(0), tag: ChangeTag(0)),
                    moreComing: false, use: KeyValueUse()))
        }
        let use = try Self.keyValueUse(of: zone.number, over: rows)
        var after = ask.after
        let hasSeenNone = after?.incarnation.raw == 0
        if let position = after,
            position.incarnation != zone.incarnation || position.tag.raw > zone.lastTag
                || !zone.honours(position)
        {
            after = nil
        }
        let start = Keys.zoneStart(zone.number)
        let found = try rows.rows(
            .feed, from: after.map { Keys.feed(zone.number, ChangeTag($0.tag.raw + 1)) } ?? start,
            to: Keys.end(of: start), limit: min(max(1, ask.limit), Self.pageTouchMax) + 1)
        var entries: [KeyValuesPage.Entry] = []
        var size = 0
        var last = after?.tag ?? ChangeTag(zone.baseTag)
        var takenCount = 0
        for (key, row) in found.prefix(min(max(1, ask.limit), Self.pageTouchMax))
        where size < Self.keyValuePageSizeMax {
            takenCount += 1
            last = ChangeTag(try Keys.number(key, at: 4))
            let feed = try decodingRow("feed") { () throws(DecodingError) in
                try FeedRow(decoding: row)
            }
            guard let name = KeyValueKeys.key(ofRecord: feed.name) else {
                throw StoreError(.corrupt, "a key-value record's name")
            }
            let entry = try self.entry(name, in: zone, ask.database, over: rows)
            size += entry.value?.count ?? 0
            // Who begins from nothing needs no removals.
            if after == nil, entry.value == nil { continue }
            entries.append(entry)
        }
        // Each once, however often it is named: a value may have a megabyte.
        var told: Set<Bytes> = []
        for key in ask.keys where told.insert(Bytes(key.utf8)).inserted {
            entries.append(try self.entry(key, in: zone, ask.database, over: rows))
        }
        let isAtEnd = takenCount == found.count
        if isAtEnd { last = ChangeTag(zone.lastTag) }
        return .keyValues(
            KeyValuesPage(
                isFromStart: after == nil && !hasSeenNone, entries: entries,
                position: Self.position(last, after: after, in: zone), moreComing: !isAtEnd,
                use: use))
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
        _ key: String, in zone: ZoneRow, _ database: DatabaseID,
        over rows: RowView
    ) throws(StoreError) -> KeyValuesPage.Entry {
        let id = ZoneID(name: ZoneID.keyValueName, owner: database.owner)
        let row = try StoredRows.record(
            KeyValueKeys.recordName(key), of: zone.number, in: id, over: rows
        ).row
        guard let record = row?.live else {
            return KeyValuesPage.Entry(key: key, value: nil, device: "", batch: 0)
        }
        let content = try KeyValueRecord(record)
        return KeyValuesPage.Entry(
            key: key, value: content.value, device: content.device, batch: content.batch)
    }

    /// The devices that have sent changes, by name.
    mutating func keyValueDevices(
        of id: DatabaseID, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        guard id.scope == .private else { return .refused(RequestRefusal(.accessDenied)) }
        guard let zone = try self.keyValueZone(of: id, over: rows) else {
            return .keyValueDevices([])
        }
        let start = KeyValueKeys.devices(zone.number)
        let use = try Self.keyValueUse(of: zone.number, over: rows)
        var devices: [KeyValueDevice] = []
        for (key, row) in try rows.rows(
            .reference, from: start, to: Keys.end(of: start),
            limit: Int(clamping: use.deviceCount))
        {
            guard let name = String(validating: key.dropFirst(start.count), as: UTF8.self) else {
                throw StoreError(.unreadable, "key-value device")
            }
            let row = try decodingRow("key-value device") { () throws(DecodingError) in
                try KeyValueDeviceRow(decoding: row)
            }
            devices.append(
                KeyValueDevice(
                    device: name, lastBatch: row.lastBatch,
                    lastSeenMilliseconds: row.lastSeenMilliseconds))
        }
        return .keyValueDevices(devices)
    }
}
