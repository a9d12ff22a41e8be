import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

extension RecordState {
    /// `records/query`: a page of one zone, or of every zone of the database.
    mutating func page(
        _ ask: QueryPageAsk, _ principal: Principal, within time: ReadTime?, _ meter: ReadMeter,
        over rows: RowView
    ) throws(StoreError) -> Bytes {
        func refused(_ refusal: RequestRefusal) -> Bytes { RecordAnswer.refused(refusal).encoded() }
        if ask.predicate.recordType == Self.userType {
            return refused(
                RequestRefusal(.queryInvalid, "Records of type \(Self.userType) cannot be queried"))
        }
        let container = ask.database.container
        let schema = try self.cache.schema(container, over: rows) ?? IndexedSchema()
        if schema.schema.version < ask.schemaVersion {
            return refused(RequestRefusal(.schemaBehind))
        }
        let type = schema.schema.type(named: ask.predicate.recordType)
        if let name = ask.zone, let refusal = Self.check(ask.database, holds: name) {
            return refused(refusal)
        }
        var scopes: [ZoneScope] = []
        var summary: ZoneSummary?
        var after = ask.after
        var incarnation: ZoneIncarnation?
        if let name = ask.zone {
            if let zone = try self.liveZone(name, of: ask.database, over: rows) {
                summary = zone.summary(name: name)
                scopes = [self.scope(of: zone, name, in: ask.database)]
                incarnation = zone.incarnation
            } else if name != ZoneID.defaultName {
                return refused(RequestRefusal(.zoneNotFound, name))
            }
        } else {
            // Every one of their rows is read before the page begins.
            let most = UInt64(max(8, ask.touchCountMax))
            if let database = try self.cache.database(ask.database, over: rows),
                database.zoneCount > most
            {
                let refusal = QueryRefusal.tooManyZones(toAsk: Int(clamping: most))
                return refused(RequestRefusal(.queryInvalid, refusal.reason))
            }
            for (name, zone) in try self.liveZones(of: ask.database, over: rows) {
                scopes.append(self.scope(of: zone, name, in: ask.database))
            }
        }
        // One zone's pages go on in that very zone: one made again under its name has other
        // records.
        if ask.zone != nil, ask.placed == .none, let given = after {
            guard let rest = Self.cursor(in: given, of: incarnation) else {
                return refused(RequestRefusal(.queryInvalid, QueryRefusal.markerInvalid.reason))
            }
            after = rest
        }
        let limit = ask.limit <= 0 ? Self.pageCountMax : min(ask.limit, Self.pageCountMax)
        let before = meter.work.touchCount
        var request = QueryPageRequest(
            ask.predicate, zones: scopes, limit: limit, after: after,
            touchCountMax: ask.touchCountMax, requiresIndexes: ask.requiresIndexes)
        request.part = ask.part
        request.wantsPlaces = ask.placed != .none
        let answer = try QueryExecutor(schema, StoredRecords()).page(
            request, over: copy rows, within: time,
            visible: AccessRules.visible(type, in: ask.database, principal))
        switch answer {
        case .success(let found):
            // The rows as they are stored: what was decoded to be asked need not be encoded again.
            if ask.placed != .none, found.isSorted {
                return Self.placed(found, withRecords: ask.placed == .withRecords)
            }
            var writer = AnswerWriter(reserving: found.rows.reduce(1_024) { $0 + $1.count + 64 })
            writer.begin(.page)
            writer.bytes.write(flag: false)
            writer.bytes.write(count: found.records.count)
            for (record, row) in zip(found.records, found.rows) {
                writer.write(row: row, name: record.name, zone: record.zone)
            }
            writer.bytes.write(flag: found.next != nil)
            if let next = found.next {
                writer.bytes.write(prefixed: Self.marker(next, of: incarnation))
            }
            writer.write(summary)
            writer.bytes.write(count: before + found.counters.work.touchCount)
            return writer.bytes.bytes
        case .failure(.typeUnknown(let type)):
            return refused(RequestRefusal(.typeUnknown, type))
        case .failure(.indexBuilding):
            return refused(RequestRefusal(.indexBuilding))
        case .failure(let refusal):
            return refused(RequestRefusal(.queryInvalid, refusal.reason))
        }
    }

    private static func placed(_ found: QueryResult, withRecords: Bool) -> Bytes {
        var writer = AnswerWriter()
        writer.begin(.page)
        writer.bytes.write(flag: true)
        writer.bytes.write(count: found.places.count)
        for place in found.places { writer.bytes.write(place) }
        writer.bytes.write(count: withRecords ? found.records.count : 0)
        if withRecords {
            for (record, row) in zip(found.records, found.rows) {
                writer.write(row: row, name: record.name, zone: record.zone)
            }
        }
        writer.bytes.write(flag: found.end != nil)
        if let end = found.end { writer.bytes.write(end) }
        return writer.bytes.bytes
    }

    /// A page's end as its asker carries it: eight bytes of the zone's incarnation, where one zone
    /// was asked, and the executor's own.
    private static func marker(_ cursor: Bytes, of incarnation: ZoneIncarnation?) -> Bytes {
        guard let incarnation else { return cursor }
        var writer = ByteWriter(reserving: cursor.count + 8)
        writer.write(fixed: incarnation.raw)
        writer.write(raw: cursor)
        return writer.bytes
    }

    /// Nil: of another zone, or none of ours.
    private static func cursor(in marker: Bytes, of incarnation: ZoneIncarnation?) -> Bytes? {
        var reader = ByteReader(marker)
        guard let raw = try? reader.fixed64(), ZoneIncarnation(raw) == incarnation else {
            return nil
        }
        return Bytes(marker[8...])
    }

    private func scope(of zone: ZoneRow, _ name: String, in database: DatabaseID) -> ZoneScope {
        ZoneScope(
            id: ZoneID(name: name, owner: database.owner), prefix: Keys.zoneStart(zone.number))
    }
}

/// The record table as queries read it.
struct StoredRecords: RecordSource {
    func typeAndCreator(of row: Bytes) throws(StoreError) -> (type: String, creator: String)? {
        guard try RecordRow.isLive(row) else { return nil }
        return try decodingRow("record") { () throws(DecodingError) in
            var reader = ByteReader(row)
            return try reader.recordTypeAndCreator()
        }
    }

    func record(_ row: Bytes, name: String, zone: ZoneID, wanted: WantedParts)
        throws(StoreError) -> Record?
    {
        guard try RecordRow.isLive(row) else { return nil }
        return try decodingRow("record") { () throws(DecodingError) in
            var reader = ByteReader(row)
            let record = try reader.recordBody(name: name, zone: zone, wanted: wanted)
            try reader.finish()
            return record
        }
    }
}
