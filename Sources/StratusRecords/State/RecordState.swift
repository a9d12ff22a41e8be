import StratusModel
import StratusQuery
import StratusRows

/// The replicated state of records: what a command does to rows, and what a query reads from them.
///
/// - Applying reads no clock and draws nothing: the entry's time and the command's draws are all it
///   has. The same commands over the same rows give the same rows and outcomes on every replica.
/// - A command reads first, decides everything, then writes.
/// - A command that cannot be read, or asks for what may not be, changes nothing.
package struct RecordState: Sendable {
    /// Operations in one `records/modify`, names in one look-up.
    package static let operationCountMax = 200
    /// Record, zone and type names.
    package static let nameLengthMax = 255
    /// The record type of users' own records, there without being in a schema.
    package static let userType = RecordType.usersName

    /// The limits of one entry in bytes, beside its limits in rows. They are equal on every
    /// replica, because the outcome of a command depends on them.
    package struct Bounds: Sendable, Equatable {
        /// Stored bytes that one `records/modify` reads and writes: more than the largest request
        /// whose every record replaces one of the same size. A small request can name large
        /// records.
        package var modifySizeMax = 48 << 20
        /// Stored bytes of records that one slice of a job touches; the record that passes it is
        /// the last.
        package var jobSizeMax = 512 << 10
        /// Deleted zones that a database's feed remembers.
        package var deletedZoneCountMax: UInt64 = 10_000
        /// Partitions of the cluster: fixed when it is formed. By it a state knows whom it writes
        /// to.
        package var partitionCount = 256
        /// The limits of a partition's outbox.
        package var outbox = PostOffice.Bounds()

        package init() {}
    }

    let bounds: Bounds
    let bugs: PlantedBugs
    var office: PostOffice { PostOffice(bounds: self.bounds.outbox, bugs: self.bugs) }
    var cache = RowCache()
    /// Of a leader alone.
    var handOuts = HandOuts()
    /// Not yet taken by ``takeBodyChanges()``.
    var bodyChanges = BodyChanges()
    /// Not yet taken by ``takeErased()``.
    var hasErased = false

    init(bounds: Bounds, bugs: PlantedBugs) {
        self.bounds = bounds
        self.bugs = bugs
    }

    mutating func forget() {
        self.bodyChanges.forget()
        self.hasErased = false
        self.handOuts = HandOuts()
        if self.bugs.contains(.rowCacheKept) { return }
        self.cache.forget()
    }

    mutating func takeBodyChanges() -> [BodyChange] { self.bodyChanges.take() }

    mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        if let row = Self.operations.row(of: command.body) {
            let entry = EntryContext(command, at: position, bugs: self.bugs)
            return try row.apply(command, in: &self, at: entry, over: rows)
        }
        guard
            let body = try? RecordCommand(decoding: command.body, container: command.container)
        else { return Outcome(.unreadable) }
        let refusal = try Self.refusal(
            of: command.principal, needing: body.need, in: body.database, over: rows.view)
        if let refusal { return Self.refused(refusal) }
        let outcome: RecordOutcome
        switch body {
        case .modifyRecords(let modify):
            // Stratus itself deletes records only of somebody who is being erased.
            if command.principal.kind == .system,
                modify.operations.contains(where: { $0.kind == .forceDelete })
            {
                self.hasErased = true
            }
            return try self.apply(modify, of: command, at: position.time, over: rows)
        case .continueJobs(let jobs):
            var mended = MendedLinks(0)
            let progress = try self.apply(
                jobs, of: command, at: position, mended: &mended, over: rows)
            return Outcome(
                .decided, body: progress.encoded(of: body.kind), detail: mended.detail)
        case .modifyZones(let modify):
            outcome = try self.apply(modify, of: command, at: position.time, over: rows)
        case .schema(let change): outcome = try self.apply(change, of: command, over: rows)
        case .eraseDatabase(let erase):
            outcome = try self.apply(erase, of: command, over: rows)
        case .reserveReferences(let reserve):
            outcome = try self.apply(reserve, of: command, over: rows)
        case .recover: outcome = try self.recover(command, over: rows)
        case .auditLinks(let audit): outcome = try self.apply(audit, of: command, over: rows)
        case .modifyDocuments(let modify):
            outcome = try self.apply(modify, of: command, at: position.time, over: rows)
        // Whoever applies commands does it.
        case .forgetOutcomes: outcome = .jobs(JobProgress(rowCount: 0, hasMore: false))
        case .noteBuckets(let note): outcome = try self.apply(note, of: command, over: rows)
        }
        return Outcome(.decided, body: outcome.encoded(of: body.kind))
    }

    // MARK: records/modify

    private mutating func apply(
        _ modify: ModifyRecords, of command: Command, at time: HybridTime,
        over rows: Rows
    ) throws(StoreError) -> Outcome {
        let schema = try self.cache.schema(command.container, over: rows.view)
        if let refusal = Self.check(modify, command.schemaVersion, schema) {
            return Self.refused(refusal)
        }
        var numbers = NumberDraw()
        let (place, known) = try self.edit(of: modify, at: time, numbers: &numbers, over: rows.view)
        guard let edit = place else {
            return Self.refused(RequestRefusal(.zoneNotFound, modify.zone))
        }
        var batch = RecordBatch(
            modify, edit: edit, schema: schema?.schema, principal: command.principal,
            sizeMax: self.bounds.modifySizeMax,
            room: try self.room(for: modify, in: edit, over: rows.view))
        batch.deadlineMilliseconds = command.deadlineMilliseconds
        batch.standing = try ShareAccess.standing(
            of: command.principal, in: modify.zone, of: modify.database, over: rows.view)
        if modify.database.recordBucket != nil {
            batch.hasOutboxRoom = try self.office.hasRoom(over: rows.view)
        }
        let isKept = try batch.run(over: rows.view)
        let isChanged = isKept && batch.edit.hasEffect
        if isChanged {
            for text in modify.words {
                batch.edit.words[text.recordName, default: [:]][text.field] = text.words
            }
            if numbers.isDrawn {
                try numbers.write(into: rows)
                try rows.put(.database, Keys.database(modify.database), edit.database.encoded())
                self.cache.remember(edit.database, of: modify.database)
            }
            try batch.edit.flush(
                into: rows, cache: &self.cache, schema: schema,
                tombstoneCountMin: modify.rules.tombstoneCountMin)
            try self.post(batch.edit.mails, at: time, into: rows)
        }
        let after = isChanged ? batch.edit.zone : known ?? .unwritten
        let outcome = RecordOutcome.records(
            ModifiedRecords(
                zone: after.summary(name: modify.zone), results: batch.finalResults()))
        return Outcome(
            .decided, body: outcome.encoded(of: .modifyRecords),
            detail: isKept ? batch.encodedDetail() : [])
    }

    /// Writes an edit that needs no more than the schema held here.
    mutating func flush(
        _ edit: inout ZoneEdit, of database: DatabaseID, over rows: Rows
    ) throws(StoreError) {
        let schema = try self.cache.schema(database.container, over: rows.view)
        try edit.flush(
            into: rows, cache: &self.cache, schema: schema,
            tombstoneCountMin: RecordRules.standard.tombstoneCountMin)
    }

    /// The edit of the zone that `modify` names, nil where there is none, and its row as it is
    /// stored.
    private mutating func edit(
        of modify: ModifyRecords, at time: HybridTime, numbers: inout NumberDraw,
        over rows: RowView
    ) throws(StoreError) -> (edit: ZoneEdit?, known: ZoneRow?) {
        let database: DatabaseRow
        if let known = try self.cache.database(modify.database, over: rows) {
            database = known
        } else {
            database = try numbers.database(over: rows)
        }
        let zone: ZoneRow
        if ZoneID.isReserved(modify.zone) { return (nil, nil) }
        let known = try self.cache.zone(modify.zone, in: database.number, over: rows)
        if let known, !known.isDeleted {
            zone = known
        } else if modify.zone == ZoneID.defaultName {
            // Above every tag of a default zone that was erased.
            zone = ZoneRow(
                number: try numbers.zone(over: rows), incarnation: modify.drawnIncarnation,
                baseTag: max(database.tagFloor, modify.tagFloor))
        } else {
            return (nil, known)
        }
        let edit = ZoneEdit(
            modify.zone, of: modify.database, database: database, zone: zone, at: time,
            bugs: self.bugs)
        return (edit, known)
    }

    /// Judges a batch without changing anything. When another partition has refused an operation of
    /// an atomic batch, the client still learns what else is wrong with it. Where the schema is to
    /// grow before the batch is carried out, the batch is judged by the schema as it will be.
    mutating func judge(
        _ ask: JudgeAsk, _ principal: Principal, over rows: RowView
    ) throws(StoreError) -> RecordAnswer {
        let modify = ask.modify
        let schema = try self.cache.schema(modify.database.container, over: rows)
        if let refusal = Self.check(modify, ask.schemaVersion, schema) {
            return .refused(refusal)
        }
        var numbers = NumberDraw()
        let place = try self.edit(of: modify, at: .zero, numbers: &numbers, over: rows).edit
        guard let edit = place else {
            return .refused(RequestRefusal(.zoneNotFound, modify.zone))
        }
        var batch = RecordBatch(
            modify, edit: edit, schema: Self.schema(schema?.schema, grownBy: ask.growth),
            principal: principal, sizeMax: self.bounds.modifySizeMax,
            room: try self.room(for: modify, in: edit, over: rows))
        batch.standing = try ShareAccess.standing(
            of: principal, in: modify.zone, of: modify.database, over: rows)
        _ = try batch.run(over: rows)
        return .judged(
            batch.finalResults().map { result in
                guard case .refused(let refusal) = result, refusal.reason != .atomicFailure else {
                    return nil
                }
                return refusal
            })
    }

    /// A growth that is refused changes nothing.
    private static func schema(_ schema: Schema?, grownBy growth: [RecordType]) -> Schema? {
        guard !growth.isEmpty, let schema,
            case .success(let grown) = SchemaRules.extending(schema, with: growth)
        else { return schema }
        return grown
    }

    /// Returns the refusal of the whole request, if there is one.
    private static func check(
        _ modify: ModifyRecords, _ version: UInt64, _ schema: IndexedSchema?
    ) -> RequestRefusal? {
        if let refusal = Self.check(version, schema) { return refusal }
        if modify.operations.isEmpty { return RequestRefusal(.empty) }
        if modify.operations.count > Self.operationCountMax {
            return RequestRefusal(.tooManyItems, String(Self.operationCountMax))
        }
        if modify.isAtomic, modify.zone == ZoneID.defaultName,
            !modify.rules.flags.contains(.batchesInDefaultZoneMayBeAtomic)
        {
            return RequestRefusal(.atomicInDefaultZone)
        }
        if let refusal = Self.check(modify.database, holds: modify.zone) { return refusal }
        if let bucket = modify.database.recordBucket {
            if modify.zone != ZoneID.defaultName {
                return RequestRefusal(.zoneNotFound, modify.zone)
            }
            for operation in modify.operations where !bucket.holds(operation.recordName) {
                return RequestRefusal(.otherBucket, operation.recordName)
            }
        }
        if modify.operations.count > 1 {
            var names: Set<String> = []
            for operation in modify.operations
            where !names.insert(operation.recordName).inserted {
                return RequestRefusal(.duplicateRecord, operation.recordName)
            }
        }
        return nil
    }

    /// A bucket of zones refuses a zone that is in another.
    static func check(_ database: DatabaseID, holds zone: String) -> RequestRefusal? {
        guard let bucket = database.zoneBucket else { return nil }
        if zone != ZoneID.defaultName, bucket.holds(zone) { return nil }
        return RequestRefusal(.zoneElsewhere, zone)
    }

    static func check(_ version: UInt64, _ schema: IndexedSchema?) -> RequestRefusal? {
        let held = schema?.schema.version ?? 0
        return version > held ? RequestRefusal(.schemaBehind, String(held)) : nil
    }

    static func refused(_ refusal: RequestRefusal) -> Outcome {
        Outcome(.decided, body: RecordOutcome.encoded(refusal))
    }
}

/// Draws the numbers that stand in keys, when a database or zone is new to the partition.
struct NumberDraw {
    private var counters: PartitionCounters?
    var isDrawn: Bool { self.counters != nil }

    mutating func database(over rows: RowView) throws(StoreError) -> DatabaseRow {
        var counters = try self.load(over: rows)
        var database = DatabaseRow(number: DatabaseNumber(counters.nextDatabase))
        database.tagFloor = counters.tagFloor
        database.turn = counters.turnFloor
        database.oldestTurn = counters.turnFloor
        counters.nextDatabase += 1
        self.counters = counters
        return database
    }

    mutating func zone(over rows: RowView) throws(StoreError) -> ZoneNumber {
        var counters = try self.load(over: rows)
        let number = counters.nextZone
        counters.nextZone += 1
        self.counters = counters
        return ZoneNumber(number)
    }

    private func load(over rows: RowView) throws(StoreError) -> PartitionCounters {
        if let counters = self.counters { return counters }
        return try StoredRows.counters(over: rows)
    }

    func write(into rows: Rows) throws(StoreError) {
        guard let counters = self.counters else { return }
        try rows.put(.database, Keys.counters, counters.encoded())
    }
}

extension ZoneRow {
    /// A default zone before its first write.
    static let unwritten = ZoneRow(
        number: ZoneNumber(0), incarnation: ZoneIncarnation(0), baseTag: 0)
}
