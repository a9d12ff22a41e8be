package import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

extension RecordState {
    /// Bytes of rows in one answer. What does not fit is asked for again.
    static let answerSizeMax = 16 << 20
    /// The same for a look-up. One answer is one piece of the storage thread's work, and everybody
    /// else waits for it.
    static let lookupSizeMax = 1 << 20
    /// The work, as ``ReadWork`` counts it, after which a read that comes in pages ends its page.
    package static let readTouchCountMax = 10_000

    /// - Parameter meter: counts what the answer costs. The pages of queries bring a bound of their
    ///   own, and end it by `time`.
    mutating func answer(
        _ query: Query, within time: ReadTime?, _ meter: ReadMeter,
        over rows: RowView
    ) throws(StoreError) -> QueryAnswer {
        var reader = ByteReader(query.body)
        guard query.kind == .records, let head = try? QuestionHead(from: &reader) else {
            return QueryAnswer(body: RecordAnswer.refused(Self.unreadable).encoded())
        }
        if let row = Self.questions.row(head.number) {
            let cost = ReadCost(meter, at: time?.now)
            return try row.answer(&reader, to: head.principal, in: &self, cost, over: rows)
        }
        guard let query = try? RecordQuery(head, from: &reader) else {
            return QueryAnswer(body: RecordAnswer.refused(Self.unreadable).encoded())
        }
        let refusal = try Self.refusal(
            of: query.principal, needing: query.ask.need, in: query.database, over: rows)
        if let refusal { return QueryAnswer(body: query.ask.answer(to: refusal).encoded()) }
        switch query.ask {
        case .lookup(let ask):
            return QueryAnswer(body: try self.lookup(ask, query.principal, meter, over: rows))
        case .zones(let database, let names):
            return QueryAnswer(
                body: try self.zones(
                    of: database, names: names, to: query.principal, over: rows
                ).encoded())
        case .zonePage(let database, let after, let limit):
            let page = try self.zonePage(
                of: database, after: after, limit: limit, meter, over: rows)
            return QueryAnswer(body: page.encoded())
        case .zoneChanges(let ask):
            return QueryAnswer(body: try self.zoneChanges(ask, meter, over: rows))
        case .databaseChanges(let ask):
            return QueryAnswer(body: try self.databaseChanges(ask, meter, over: rows).encoded())
        case .page(let ask):
            return QueryAnswer(
                body: try self.page(ask, query.principal, within: time, meter, over: rows))
        case .judge(let ask):
            return QueryAnswer(
                body: try self.judge(ask, query.principal, over: rows).encoded())
        case .use(let database):
            return QueryAnswer(
                body: try self.use(of: database, query.principal, over: rows).encoded())
        case .schema(let container):
            let schema = try self.cache.schema(container, over: rows)
            return QueryAnswer(body: RecordAnswer.schema(schema?.schema).encoded())
        case .jobs:
            let isWaiting = try self.nextJob(over: rows) != nil
            return QueryAnswer(body: RecordAnswer.jobs(isWaiting: isWaiting).encoded())
        case .buckets(let ask):
            return QueryAnswer(body: try self.buckets(ask, over: rows).encoded())
        case .documents(let ask):
            return QueryAnswer(body: try self.documents(ask, over: rows).encoded())
        case .heldRecords(let ask):
            return QueryAnswer(
                body: try self.heldRecords(ask, query.principal, over: rows).encoded())
        case .work(let time):
            return QueryAnswer(body: try self.work(at: time, over: rows).encoded())
        }
    }

    // MARK: records/lookup

    private mutating func lookup(
        _ ask: RecordLookup, _ principal: Principal, _ meter: ReadMeter,
        over rows: RowView
    ) throws(StoreError) -> Bytes {
        func refused(_ refusal: RequestRefusal) -> Bytes {
            RecordAnswer.refused(refusal).encoded()
        }
        if ask.names.count > Self.operationCountMax {
            return refused(RequestRefusal(.tooManyItems, String(Self.operationCountMax)))
        }
        if let refusal = Self.check(ask.database, holds: ask.zone) { return refused(refusal) }
        let zone = try self.liveZone(ask.zone, of: ask.database, over: rows)
        if zone == nil, ask.zone != ZoneID.defaultName {
            return refused(RequestRefusal(.zoneNotFound, ask.zone))
        }
        let schema =
            ask.database.scope == .public
            ? try self.cache.schema(ask.database.container, over: rows) : nil
        let id = ZoneID(name: ask.zone, owner: ask.database.owner)
        let hides = AccessRules.hidesTypes(of: schema?.schema, in: ask.database, principal)
        // Where each name was answered first. By bytes: names that are equivalent are not equal.
        var written: [Bytes: Range<Int>] = [:]
        var writer = AnswerWriter()
        writer.begin(.lookup)
        writer.bytes.write(count: ask.names.count)
        for (position, name) in ask.names.enumerated() {
            // Rows that the caller may not see are read, too, and are in no answer.
            guard
                position == 0
                    || writer.bytes.bytes.count < Self.lookupSizeMax && !meter.isSpent
            else {
                writer.bytes.write(3 as UInt8)
                continue
            }
            // A name that is repeated is read once: many reads of one row would tell by their time
            // whether it is there.
            let bytes = ask.names.count > 1 ? Bytes(name.utf8) : nil
            if let bytes, let known = written[bytes] {
                writer.bytes.write(raw: Bytes(writer.bytes.bytes[known]))
                continue
            }
            let start = writer.bytes.bytes.count
            defer { if let bytes { written[bytes] = start..<writer.bytes.bytes.count } }
            var row: Bytes?
            if let zone {
                row = try Self.visibleRow(
                    Keys.record(zone.number, name), hides: hides, in: ask.database, principal,
                    schema?.schema, over: rows)
            }
            guard let row else {
                writer.bytes.write(2 as UInt8)
                writer.bytes.write(RecordRefusal(.notFound))
                continue
            }
            writer.bytes.write(1 as UInt8)
            writer.write(row: row, name: name, zone: id)
        }
        writer.write(zone?.summary(name: ask.zone))
        return writer.bytes.bytes
    }

    /// The row of a live record that the caller may read.
    ///
    /// - Parameter hides: whether the caller may not read some record. What is not visible is then
    ///   read no further than its head, so that its size does not show.
    private static func visibleRow(
        _ key: Bytes, hides: Bool, in database: DatabaseID, _ principal: Principal,
        _ schema: Schema?, over rows: RowView
    ) throws(StoreError) -> Bytes? {
        if hides {
            guard let head = try rows.head(.record, key, sizeMax: VisibleRecords.headSizeMax),
                try RecordRow.isLive(head), try Self.mayRead(head, in: database, principal, schema)
            else { return nil }
            if head.count < VisibleRecords.headSizeMax { return head }
        }
        guard let row = try rows.row(.record, key), try RecordRow.isLive(row) else { return nil }
        if !hides, try !Self.mayRead(row, in: database, principal, schema) { return nil }
        return row
    }

    /// Whether `principal` may read the record of this row. Only a public database asks.
    private static func mayRead(
        _ row: Bytes, in database: DatabaseID, _ principal: Principal, _ schema: Schema?
    ) throws(StoreError) -> Bool {
        if database.scope != .public { return true }
        let (type, creator) = try decodingRow("record") { () throws(DecodingError) in
            var reader = ByteReader(row)
            return try reader.recordTypeAndCreator()
        }
        return AccessRules.allows(
            .read, schema?.type(named: type), creator: creator, in: database, principal)
    }

    /// Nil for reserved zones too.
    mutating func liveZone(_ name: String, of id: DatabaseID, over rows: RowView)
        throws(StoreError) -> ZoneRow?
    {
        guard !ZoneID.isReserved(name), let database = try self.cache.database(id, over: rows),
            let zone = try self.cache.zone(name, in: database.number, over: rows), !zone.isDeleted
        else { return nil }
        return zone
    }

    /// Every live zone of a database but the reserved ones, by name.
    func liveZones(of id: DatabaseID, over rows: RowView) throws(StoreError)
        -> [(name: String, zone: ZoneRow)]
    {
        guard let database = try StoredRows.database(id, over: rows) else { return [] }
        let prefix = Keys.zonePrefix(database.number)
        var zones: [(name: String, zone: ZoneRow)] = []
        for (key, row) in try rows.rows(
            .zone, from: prefix, to: Keys.end(of: prefix), limit: .max)
        {
            let zone = try StoredRows.zone(decoding: row)
            guard let name = String(validating: key[prefix.count...], as: UTF8.self) else {
                throw StoreError(.unreadable, "zone key")
            }
            if !zone.isDeleted, !ZoneID.isReserved(name) { zones.append((name, zone)) }
        }
        return zones
    }

    // MARK: zones/list, zones/lookup

    /// The live zones of a database after a name, by name; the default zone first, whether or not
    /// it was ever written.
    private func zonePage(
        of id: DatabaseID, after: String?, limit: Int, _ meter: ReadMeter,
        over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        var zones: [ZoneAnswer] = []
        var last = after
        let database = try StoredRows.database(id, over: rows)
        if after == nil {
            var zone: ZoneRow?
            if let database {
                zone = try StoredRows.zone(ZoneID.defaultName, in: database.number, over: rows)
            }
            let isLive = zone.map { !$0.isDeleted } ?? false
            zones.append(
                .zone((isLive ? zone ?? .unwritten : .unwritten).summary(name: ZoneID.defaultName)))
        }
        guard let database else { return .zonePage(zones, next: nil) }
        let prefix = Keys.zonePrefix(database.number)
        let most = min(max(1, limit), Self.pageTouchMax)
        var isFirst = true
        while zones.count < most, isFirst || !meter.isSpent {
            isFirst = false
            let start = last.map { prefix + $0.utf8 + [0] } ?? prefix
            let count = min(most - zones.count, meter.restCount)
            let found = try rows.rows(.zone, from: start, to: Keys.end(of: prefix), limit: count)
            for (key, row) in found {
                guard let name = String(validating: key[prefix.count...], as: UTF8.self) else {
                    throw StoreError(.unreadable, "zone key")
                }
                last = name
                let zone = try StoredRows.zone(decoding: row)
                if !zone.isDeleted, name != ZoneID.defaultName {
                    zones.append(.zone(zone.summary(name: name)))
                }
            }
            if found.count < count { return .zonePage(zones, next: nil) }
        }
        // Behind the default zone alone every name follows.
        return .zonePage(zones, next: last ?? "")
    }

    private func zones(
        of id: DatabaseID, names: [String]?, to asker: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        if let names {
            let database = try StoredRows.database(id, over: rows)
            if names.count > Self.operationCountMax {
                return .refused(
                    RequestRefusal(.tooManyItems, String(Self.operationCountMax)))
            }
            var answers: [ZoneAnswer] = []
            for name in names {
                var zone: ZoneRow?
                let standing = try ShareAccess.standing(of: asker, in: name, of: id, over: rows)
                if !standing.mayRead {
                    answers.append(.refused(.notFound))
                    continue
                }
                if let database, !ZoneID.isReserved(name) {
                    zone = try StoredRows.zone(name, in: database.number, over: rows)
                }
                if let zone, !zone.isDeleted {
                    answers.append(.zone(zone.summary(name: name)))
                } else if name == ZoneID.defaultName {
                    answers.append(.zone(ZoneRow.unwritten.summary(name: name)))
                } else {
                    answers.append(.refused(.notFound))
                }
            }
            return .zones(answers)
        }
        var zones: [ZoneSummary] = []
        for (name, zone) in try self.liveZones(of: id, over: rows) {
            zones.append(zone.summary(name: name))
        }
        if !zones.contains(where: \.isDefault) {
            zones.insert(ZoneRow.unwritten.summary(name: ZoneID.defaultName), at: 0)
        }
        return .zones(zones.map { .zone($0) })
    }
}

extension RecordQuery {
    /// The database asked about; nil for questions about a container or a partition.
    var database: DatabaseID? {
        switch self.ask {
        case .lookup(let ask): ask.database
        case .zones(let database, _), .zonePage(let database, _, _): database
        case .zoneChanges(let ask): ask.database
        case .databaseChanges(let ask): ask.database
        case .page(let ask): ask.database
        case .judge(let ask): ask.modify.database
        case .use(let database): database
        case .buckets(let ask): ask.database
        case .documents(let ask): ask.database
        case .schema, .jobs, .work, .heldRecords: nil
        }
    }
}

extension ByteReader {
    /// The first part of a record body, as far as permissions need it.
    package mutating func recordTypeAndCreator() throws(DecodingError) -> (
        type: String, creator: String
    ) {
        try self.format(RecordRow.liveFormat)
        _ = try self.byte()
        _ = try self.varint()
        let type = try self.text()
        _ = try self.signed()
        return (type, try self.text())
    }
}
