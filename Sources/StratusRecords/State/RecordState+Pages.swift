import StratusCoding
import StratusModel

extension RecordState {
    /// `records/query`: a page of one zone, or of every zone of the database.
    mutating func page(
        _ ask: QueryPageAsk, _ principal: Principal, over rows: borrowing some RowReader
    ) throws(StoreError) -> RecordAnswer {
        if ask.predicate.recordType == Self.userType {
            return .refused(
                RequestRefusal(.queryInvalid, "Records of type \(Self.userType) cannot be queried"))
        }
        let container = ask.database.container
        let schema = try self.cache.schema(container, over: rows) ?? IndexedSchema()
        let type = schema.schema.type(named: ask.predicate.recordType)
        var scopes: [ZoneScope] = []
        var summary: ZoneSummary?
        if let name = ask.zone {
            if let zone = try self.liveZone(name, of: ask.database, over: rows) {
                summary = zone.summary(name: name)
                scopes = [self.scope(of: zone, name, in: ask.database)]
            } else if name != ZoneID.defaultName {
                return .refused(RequestRefusal(.zoneNotFound, name))
            }
        } else {
            for (name, zone) in try self.liveZones(of: ask.database, over: rows) {
                scopes.append(self.scope(of: zone, name, in: ask.database))
            }
        }
        let limit = ask.limit <= 0 ? Self.pageCountMax : min(ask.limit, Self.pageCountMax)
        let request = QueryPageRequest(
            ask.predicate, zones: scopes, limit: limit, after: ask.after,
            touchCountMax: ask.touchCountMax, requiresIndexes: ask.requiresIndexes)
        let answer = try QueryExecutor(schema, StoredRecords()).page(request, over: copy rows) {
            AccessRules.allows(
                .read, type, creator: $0.created.userRecordName, in: ask.database, principal)
        }
        switch answer {
        case .success(let found):
            return .page(
                QueryPage(
                    records: found.records, next: found.next, zone: summary,
                    touchCount: found.counters.indexRowCount + found.counters.recordCount))
        case .failure(.typeUnknown(let type)):
            return .refused(RequestRefusal(.typeUnknown, type))
        case .failure(let refusal):
            return .refused(RequestRefusal(.queryInvalid, refusal.reason))
        }
    }

    private func scope(of zone: ZoneRow, _ name: String, in database: DatabaseID) -> ZoneScope {
        ZoneScope(
            id: ZoneID(name: name, owner: database.owner), prefix: Keys.zoneStart(zone.number))
    }
}

/// The record table as queries read it.
struct StoredRecords: RecordSource {
    func record(_ row: Bytes, name: String, zone: ZoneID) throws(StoreError) -> Record? {
        try decodingRow("record") { () throws(DecodingError) in
            try RecordRow(decoding: row, name: name, zone: zone)
        }.live
    }
}
