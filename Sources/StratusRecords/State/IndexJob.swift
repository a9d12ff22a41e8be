import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

// Index job row, format 1. Keys: 1 kind (4 fill, 5 drop, 10 clear), 1 environment, container; a drop adds
// 0x00 and the first index's number, 4 bytes big-endian.
//
// | bytes  | what                                                                       |
// | ------ | -------------------------------------------------------------------------- |
// | 1      | format, 1                                                                  |
// | bytes  | the key of the database it has come to; empty before the first             |
// | bytes  | the key of the zone                                                        |
// | bytes  | the last record looked at; empty before the first                          |
// | count  | drop: the numbers of the indexes, varint each                              |

/// Work on indexes that a change of the schema left to be done in bounded slices, zone after zone.
struct IndexJob: Equatable {
    enum Kind: UInt8 {
        /// Write the rows of every index that is `building`, then call it ready.
        case fill = 4
        /// Remove the rows of indexes that are no more.
        case drop = 5
        /// Clear the values of fields that have another type now than the records hold.
        case clear = 10
    }

    /// How far a job has come in a partition's zones.
    struct Place: Equatable {
        var database: Bytes = []
        var zone: Bytes = []
        var record: Bytes = []
    }

    var kind: Kind
    var container: ContainerReference
    var numbers: [UInt32] = []
    var place = Place()

    var key: Bytes {
        var key: Bytes = [self.kind.rawValue, self.container.environment.rawValue]
        key.append(contentsOf: self.container.container.utf8)
        if self.kind == .drop {
            key.append(0)
            key += Keys.bytes(self.numbers.first ?? 0, reserving: 0)
        }
        return key
    }

    func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 64)
        writer.write(1 as UInt8)
        writer.write(prefixed: self.place.database)
        writer.write(prefixed: self.place.zone)
        writer.write(prefixed: self.place.record)
        if self.kind == .drop {
            writer.write(count: self.numbers.count)
            for number in self.numbers { writer.write(varint: UInt64(number)) }
        }
        return writer.bytes
    }

    init(_ kind: Kind, _ container: ContainerReference, numbers: [UInt32] = []) {
        self.kind = kind
        self.container = container
        self.numbers = numbers
    }

    /// Nil where the key is another kind's.
    init?(key: Bytes, row: Bytes) throws(DecodingError) {
        guard let first = key.first, let kind = Kind(rawValue: first) else { return nil }
        var name = key.dropFirst(2)
        if kind == .drop { name = name.dropLast(5) }
        guard key.count > 2, let environment = Environment(rawValue: key[1]),
            let container = String(validating: name, as: UTF8.self)
        else { throw DecodingError(.malformed, at: 0) }
        self.init(kind, ContainerReference(container: container, environment: environment))
        var reader = ByteReader(row)
        try reader.format(1)
        self.place.database = try reader.prefixed()
        self.place.zone = try reader.prefixed()
        self.place.record = try reader.prefixed()
        if kind == .drop {
            for _ in 0..<(try reader.count()) { self.numbers.append(try reader.number32()) }
        }
        try reader.finish()
    }
}

extension RecordState {
    /// Goes on with an index job.
    ///
    /// - Returns: the rows it read and wrote, `budget` and a little more at most.
    mutating func run(
        _ job: IndexJob, budget: Int, over rows: Rows
    ) throws(StoreError) -> JobWork {
        guard let schema = try self.cache.schema(job.container, over: rows.view) else {
            try rows.remove(.job, job.key)
            return JobWork()
        }
        var job = job
        var work = JobWork()
        while work.rowCount < budget, work.size < self.bounds.jobSizeMax {
            guard let zone = try Self.zone(job, over: rows.view) else {
                try self.finish(job, schema, over: rows)
                return work
            }
            if zone.key != job.place.zone { job.place.record = [] }
            job.place.database = zone.database
            job.place.zone = zone.key
            let limit = min(budget - work.rowCount, 200)
            let isDone: Bool
            switch job.kind {
            case .fill:
                isDone = try self.fill(&job.place, schema, zone.scope, limit, &work, over: rows)
            case .clear: preconditionFailure("it changes records")
            case .drop:
                let (touched, isEmpty) = try Self.drop(job, zone.scope, limit, over: rows)
                work.rowCount += max(1, touched)
                isDone = isEmpty
            }
            // The next zone is the first one after this.
            if isDone {
                job.place.zone += [0]
                job.place.record = []
            }
        }
        try rows.put(.job, job.key, job.encoded())
        return work
    }

    /// Goes on with clearing fields that came back with another type. A record that loses a value
    /// is changed by it: clients hear of it as of any change.
    mutating func clear(
        _ job: IndexJob, budget: Int, at time: HybridTime, over rows: Rows
    ) throws(StoreError) -> JobWork {
        guard let schema = try self.cache.schema(job.container, over: rows.view),
            let place = try Self.zone(job, over: rows.view),
            let database = Keys.database(decoding: place.database),
            let known = try self.cache.database(database, over: rows.view),
            let zone = try self.cache.zone(place.scope.id.name, in: known.number, over: rows.view)
        else {
            try rows.remove(.job, job.key)
            return JobWork()
        }
        var job = job
        if place.key != job.place.zone { job.place.record = [] }
        job.place.database = place.database
        job.place.zone = place.key
        var edit = ZoneEdit(
            place.scope.id.name, of: database, database: known, zone: zone, at: time,
            bugs: self.bugs)
        let limit = min(budget, 200)
        let prefix = place.scope.prefix
        let found = try rows.view.rows(
            .record, from: prefix + (job.place.record.isEmpty ? [] : job.place.record + [0]),
            to: Keys.end(of: prefix), limit: limit, sizeMax: self.bounds.jobSizeMax)
        var size = 0
        var isCut = false
        for (key, row) in found {
            isCut = edit.touchedSize >= self.bounds.jobSizeMax || edit.assets.isFull
            if isCut { break }
            size += row.count
            let name = String(decoding: key[prefix.count...], as: UTF8.self)
            if let record = try edit.record(name, over: rows.view) {
                try Self.clear(record, by: schema.schema, in: &edit, over: rows.view)
            }
            job.place.record = Bytes(key[prefix.count...])
        }
        // The next zone is the first one after this.
        if !isCut, found.count < limit, size < self.bounds.jobSizeMax {
            job.place.zone += [0]
            job.place.record = []
        }
        try rows.put(.job, job.key, job.encoded())
        try edit.flush(
            into: rows, cache: &self.cache, schema: schema,
            tombstoneCountMin: RecordRules.standard.tombstoneCountMin)
        try self.post(edit.mails, at: time, into: rows)
        return JobWork(rowCount: max(1, found.count), size: size)
    }

    private static func clear(
        _ record: Record, by schema: Schema, in edit: inout ZoneEdit, over rows: RowView
    ) throws(StoreError) {
        guard let type = schema.type(named: record.type) else { return }
        func isOther(_ field: Field) -> Bool {
            type.field(named: field.name).map { $0.type != field.value.type } ?? false
                // What such a reference leads to may be told in another bucket: the next save of
                // the field does that.
                && !(edit.id.owner.isEmpty && [field].actingReferences.isEmpty == false)
        }
        guard record.fields.contains(where: isOther) else { return }
        var cleared = record
        cleared.fields = record.fields.filter { !isOther($0) }
        // It went along with a parent that a cascade has taken, and stays now.
        if edit.hasCascades, let link = TreeLink(of: record), link.goesAlong,
            TreeLink(of: cleared)?.goesAlong == false,
            try edit.record(link.parent, over: rows) == nil
        {
            cleared.parent = nil
        }
        cleared.tag = edit.nextTag
        cleared.modified.milliseconds = edit.milliseconds
        var writer = ByteWriter(reserving: 512)
        writer.write(recordHead: cleared)
        writer.write(fields: cleared.fields)
        try edit.save(
            cleared, encoded: writer.bytes, addedReferences: [],
            removedReferences: ActingReference.subtract(
                cleared.actingReferences, from: record.actingReferences),
            restatedReferences: [], reservations: [:], over: rows)
    }

    private mutating func finish(
        _ job: IndexJob, _ schema: IndexedSchema, over rows: Rows
    ) throws(StoreError) {
        try rows.remove(.job, job.key)
        guard job.kind == .fill else { return }
        // A schema that brought another index on the way started the job again: it has seen all.
        var schema = schema
        schema.markReady(schema.building.map(\.number))
        try rows.put(.schema, Keys.schema(job.container), schema.encoded())
        self.cache.remember(schema, of: job.container)
    }

    /// - Returns: whether the zone is done.
    private func fill(
        _ place: inout IndexJob.Place, _ schema: IndexedSchema, _ zone: ZoneScope, _ limit: Int,
        _ work: inout JobWork, over rows: Rows
    ) throws(StoreError) -> Bool {
        let building = schema.building
        let start = zone.prefix + (place.record.isEmpty ? [] : place.record + [0])
        let sizeMax = self.bounds.jobSizeMax - work.size
        let found = try rows.view.rows(
            .record, from: start, to: Keys.end(of: zone.prefix), limit: limit, sizeMax: sizeMax)
        var size = 0
        work.rowCount += max(1, found.count)
        for (key, row) in found {
            size += row.count
            place.record = Bytes(key[zone.prefix.count...])
            let name = String(decoding: place.record, as: UTF8.self)
            let stored = try decodingRow("record") { () throws(DecodingError) in
                try RecordRow(decoding: row, name: name, zone: zone.id)
            }
            guard let record = stored.live else { continue }
            // What a save wrote meanwhile is written again as it is: the rows follow from the
            // record.
            let new = IndexMaintenance.rows(
                of: record, for: building.filter { $0.recordType == record.type }, zone: zone)
            for row in new { try rows.put(.index, row.key, row.row) }
            work.rowCount += new.count
        }
        work.size += size
        return found.count < limit && size < sizeMax
    }

    private static func drop(
        _ job: IndexJob, _ zone: ZoneScope, _ limit: Int, over rows: Rows
    ) throws(StoreError) -> (touched: Int, isDone: Bool) {
        var touched = 0
        for number in job.numbers {
            let start = IndexKey.start(zone, number)
            let found = try rows.view.keys(
                .index, from: start, to: Keys.end(of: start), limit: limit - touched)
            for key in found { try rows.remove(.index, key) }
            touched += found.count
            if touched == limit { return (touched, false) }
        }
        return (touched, true)
    }

    /// The live zone at or after the job's place.
    private static func zone(
        _ job: IndexJob, over rows: RowView
    ) throws(StoreError) -> (database: Bytes, key: Bytes, scope: ZoneScope)? {
        for scope in [DatabaseScope.public, .private] {
            let prefix = Keys.databases(of: job.container, scope)
            var start =
                Bytes.isOrdered(prefix, before: job.place.database) ? job.place.database : prefix
            while let (key, row) = try rows.rows(
                .database, from: start, to: Keys.end(of: prefix), limit: 1
            ).first {
                let database = try decodingRow("database") { () throws(DecodingError) in
                    try DatabaseRow(decoding: row)
                }
                // Behind the owner there may be a bucket.
                let owner = Keys.database(decoding: key)?.owner ?? ""
                let zones = Keys.zonePrefix(database.number)
                var from =
                    key == job.place.database && !job.place.zone.isEmpty ? job.place.zone : zones
                while let (zoneKey, zoneRow) = try rows.rows(
                    .zone, from: from, to: Keys.end(of: zones), limit: 1
                ).first {
                    let zone = try StoredRows.zone(decoding: zoneRow)
                    if !zone.isDeleted {
                        let name = String(decoding: zoneKey[zones.count...], as: UTF8.self)
                        return (
                            key, zoneKey,
                            ZoneScope(
                                id: ZoneID(name: name, owner: owner),
                                prefix: Keys.zoneStart(zone.number))
                        )
                    }
                    from = zoneKey + [0]
                }
                start = key + [0]
            }
        }
        return nil
    }
}
