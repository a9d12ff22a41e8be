package import StratusCoding
package import StratusModel
import StratusQuery

// Record command, format 1: the body of a `Command` of kind `.records` whose operation is no
// `PartitionOperation` yet. The container is the envelope's.
//
// | bytes  | what                                                                          |
// | ------ | ----------------------------------------------------------------------------- |
// | 1      | format, 1                                                                     |
// | 1      | number of the operation: see `RecordCommand.Kind`                             |
// | 1      | flags: 1 a database follows, 2 a tag floor follows                            |
// | …      | the database, without its container                                           |
// | varint | tag floor, never 0                                                            |
// | …      | the fields of the operation                                                   |
//
// Modify records: flags (1 assets are resolved, 2 the words of long texts follow), text zone, flag
// atomic, text device, 8 bytes drawn incarnation, rules, count of operations. An operation:
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | kind                                                                           |
// | 1     | presence bits: 1 record type, 2 change tag, 4 parent set, 8 parent cleared,     |
// |       | 16 short GUID, 32 reservations, 64 a share                                     |
// | texts | record name, then the present ones: type, tag, parent                          |
// | …     | short GUID: 16 bytes, 1, 16; share: a `ShareDraft`                              |
// | …     | count of reservations, each text target, 1 action, 8 + 8 identity, signed deadline |
// | …     | fields as in a record row; count of cleared fields, each a text                 |
//
// Words of long texts: 1 version of the text tables, count of texts, each text record name, text
// field, 1 form: 1 count of index keys, bytes each; 2 bytes, a word summary.
//
// Rules: 1 standard; or 2, then varints flags, record size, DELETE_SELF referrers, cascade,
// tombstones, database size. Modify zones: rules, count of operations, each 1 kind, text zone, 8
// bytes incarnation, 1 encryption scope or 0, 1 reason. Install schema: a schema. Extend schema:
// record types as in a schema. Continue jobs: varint budget. Erase database: varint zones. Reserve references: 8 bytes drawn incarnation,
// varint referrers, count of wishes, each text target, 1 action, text referrer. Note buckets: 1
// count, varint mask, varint tag floor. Nothing follows recover, audit links and forget outcomes.
// Documents: `DocumentCoding.swift`.

extension RecordCommand {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(self.number)
        let (database, tagFloor) = (self.database, self.tagFloor)
        writer.write((database == nil ? 0 : 1) | (tagFloor == 0 ? 0 : 2) as UInt8)
        if let database { writer.write(partOf: database) }
        if tagFloor != 0 { writer.write(varint: tagFloor) }
        self.write(to: &writer)
        return writer.bytes
    }

    /// The fields of the operation.
    private func write(to writer: inout ByteWriter) {
        switch self {
        case .modifyRecords(let modify): modify.write(to: &writer)
        case .modifyZones(let modify): modify.write(to: &writer)
        case .schema(.install(let schema)): writer.write(schema)
        case .schema(.extend(let types)): writer.write(recordTypes: types)
        case .continueJobs(let jobs): writer.write(count: max(0, jobs.budget))
        case .eraseDatabase(let erase): writer.write(count: max(0, erase.zoneCount))
        case .reserveReferences(let reserve): reserve.write(to: &writer)
        case .recover, .auditLinks, .forgetOutcomes: break
        case .noteBuckets(let note): writer.write(note.buckets)
        case .modifyDocuments(let modify): modify.write(to: &writer)
        }
    }

    /// - Parameter container: the envelope's.
    package init(decoding bytes: Bytes, container: ContainerReference) throws(DecodingError) {
        var reader = ByteReader(bytes)
        try reader.format(1)
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: 1)
        }
        let flags = try reader.byte()
        guard flags < 4 else { throw DecodingError(.malformed, at: 2) }
        let database =
            flags & 1 == 0 ? nil : try reader.databasePart(container: container)
        let tagFloor = flags & 2 == 0 ? 0 : try reader.varint()
        guard flags & 2 == 0 || (kind.takesFloor && tagFloor != 0),
            database?.zoneBucket == nil || !kind.isOfWholeDatabases
        else { throw DecodingError(.malformed, at: 2) }
        if let database {
            try self.init(kind, in: database, from: &reader)
        } else {
            try self.init(kind, from: &reader)
        }
        self.tagFloor = tagFloor
        try reader.finish()
    }

    /// A command about one database.
    private init(
        _ kind: Kind, in database: DatabaseID, from reader: inout ByteReader
    ) throws(DecodingError) {
        switch kind {
        case .modifyRecords:
            self = .modifyRecords(try ModifyRecords(from: &reader, in: database))
        case .modifyZones: self = .modifyZones(try ModifyZones(from: &reader, in: database))
        case .eraseDatabase:
            self = .eraseDatabase(
                EraseDatabase(database: database, zoneCount: try reader.boundedInt()))
        case .reserveReferences:
            self = .reserveReferences(try ReserveReferences(from: &reader, in: database))
        case .auditLinks: self = .auditLinks(AuditLinks(database: database))
        case .noteBuckets:
            guard database.scope == .private, database.bucket == nil else {
                throw DecodingError(.malformed, at: 3)
            }
            self = .noteBuckets(
                NoteBuckets(database: database, buckets: try reader.zoneBuckets()))
        case .modifyDocuments:
            self = .modifyDocuments(try ModifyDocuments(from: &reader, in: database))
        case .installSchema, .extendSchema, .continueJobs, .recover, .forgetOutcomes:
            throw DecodingError(.malformed, at: 2)
        }
    }

    /// A command about a container or a partition.
    private init(_ kind: Kind, from reader: inout ByteReader) throws(DecodingError) {
        switch kind {
        case .installSchema: self = .schema(.install(try reader.schema()))
        case .extendSchema: self = .schema(.extend(try reader.recordTypes()))
        case .continueJobs: self = .continueJobs(ContinueJobs(budget: try reader.boundedInt()))
        case .recover: self = .recover
        case .forgetOutcomes: self = .forgetOutcomes
        default: throw DecodingError(.malformed, at: 2)
        }
    }
}

extension ModifyRecords {
    /// Whether a field names an asset by its identity.
    fileprivate var namesAssets: Bool {
        self.operations.contains { operation in
            operation.fields.contains { !$0.value.assets.isEmpty }
        }
    }

    func write(to writer: inout ByteWriter) {
        let hasWords = !self.words.isEmpty
        writer.write((self.resolvesAssets ? 1 : 0) | (hasWords ? 2 : 0) as UInt8)
        writer.write(text: self.zone)
        writer.write(flag: self.isAtomic)
        writer.write(text: self.deviceID)
        writer.write(fixed: self.drawnIncarnation.raw)
        writer.write(self.rules)
        writer.write(count: self.operations.count)
        for operation in self.operations { operation.write(to: &writer) }
        if hasWords { self.writeWords(to: &writer) }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let start = reader.offset
        let flags = try reader.byte()
        guard flags < 4 else { throw DecodingError(.malformed, at: start) }
        let zone = try reader.text()
        let isAtomic = try reader.flag()
        let deviceID = try reader.text()
        let incarnation = ZoneIncarnation(try reader.fixed64())
        let rules = try reader.recordRules()
        var operations: [RecordOperation] = []
        let count = try reader.count(minimumSize: 5)
        operations.reserveCapacity(min(count, 256))
        for _ in 0..<count { operations.append(try RecordOperation(from: &reader)) }
        self.init(
            database: database, zone: zone, isAtomic: isAtomic, deviceID: deviceID,
            drawnIncarnation: incarnation, rules: rules, operations: operations)
        self.resolvesAssets = flags & 1 != 0
        // An asset that nobody looks for would be held by nothing.
        guard self.resolvesAssets || !self.namesAssets else {
            throw DecodingError(.malformed, at: start)
        }
        if flags & 2 != 0 { try self.readWords(from: &reader) }
    }
}

extension ModifyRecords {
    fileprivate func writeWords(to writer: inout ByteWriter) {
        writer.write(TextFolding.version)
        writer.write(count: self.words.count)
        for text in self.words {
            writer.write(text: text.recordName)
            writer.write(text: text.field)
            switch text.words {
            case .few(let keys):
                writer.write(1 as UInt8)
                writer.write(count: keys.count)
                for key in keys { writer.write(prefixed: key) }
            case .many(let summary):
                writer.write(2 as UInt8)
                writer.write(prefixed: summary.row)
            }
        }
    }

    /// Words that were cut by other tables are read and left out: the state cuts them by its own.
    fileprivate mutating func readWords(from reader: inout ByteReader) throws(DecodingError) {
        let isOwn = try reader.byte() == TextFolding.version
        for _ in 0..<(try reader.count(minimumSize: 4)) {
            let name = try reader.text()
            let field = try reader.text()
            let start = reader.offset
            let words: TextWords
            switch try reader.byte() {
            case 1:
                var keys: [Bytes] = []
                for _ in 0..<(try reader.count()) {
                    let key = try reader.prefixed()
                    if let last = keys.last, !Bytes.isOrdered(last, before: key) {
                        throw DecodingError(.malformed, at: start)
                    }
                    keys.append(key)
                }
                guard keys.count <= IndexMaintenance.rowCountMax else {
                    throw DecodingError(.malformed, at: start)
                }
                words = .few(keys)
            case 2: words = .many(try WordSummary(decoding: try reader.prefixed()))
            default: throw DecodingError(.malformed, at: start)
            }
            if isOwn {
                self.words.append(CutText(recordName: name, field: field, words: words))
            }
        }
    }
}

extension RecordOperation {
    func write(to writer: inout ByteWriter) {
        var presence: UInt8 = 0
        if self.recordType != nil { presence |= 1 }
        if self.changeTag != nil { presence |= 2 }
        switch self.parent {
        case .unmentioned: break
        case .set: presence |= 4
        case .cleared: presence |= 8
        }
        if self.drawnShortGUID != nil { presence |= 16 }
        if self.share != nil { presence |= 64 }
        if !self.reservations.isEmpty { presence |= 32 }
        writer.write(self.kind.rawValue)
        writer.write(presence)
        writer.write(text: self.recordName)
        if let type = self.recordType { writer.write(text: type) }
        if let tag = self.changeTag { writer.write(text: tag) }
        if case .set(let parent) = self.parent { writer.write(text: parent) }
        if let shortGUID = self.drawnShortGUID { writer.write(form: shortGUID) }
        if let share = self.share { writer.write(form: share) }
        if !self.reservations.isEmpty {
            writer.write(count: self.reservations.count)
            for reservation in self.reservations { writer.write(reservation) }
        }
        writer.write(fields: self.fields)
        writer.write(count: self.clearedFields.count)
        for name in self.clearedFields { writer.write(text: name) }
    }

    init(from reader: inout ByteReader) throws(DecodingError) {
        let start = reader.offset
        guard let kind = Kind(rawValue: try reader.byte()) else {
            throw DecodingError(.malformed, at: start)
        }
        let presence = try reader.byte()
        guard presence < 128, presence & 12 != 12 else {
            throw DecodingError(.malformed, at: start + 1)
        }
        let recordName = try reader.text()
        let type = presence & 1 != 0 ? try reader.text() : nil
        let tag = presence & 2 != 0 ? try reader.text() : nil
        var parent = presence & 8 != 0 ? ParentChange.cleared : .unmentioned
        if presence & 4 != 0 { parent = .set(try reader.text()) }
        let shortGUID = presence & 16 != 0 ? try reader.form(ShareLink.self) : nil
        let share = presence & 64 != 0 ? try reader.form(ShareDraft.self) : nil
        var reservations: [ReferenceReservation] = []
        if presence & 32 != 0 {
            for _ in 0..<(try reader.count(minimumSize: 19)) {
                reservations.append(try reader.reservation())
            }
            if reservations.isEmpty { throw DecodingError(.malformed, at: start) }
        }
        let fields = try reader.fields()
        var cleared: [String] = []
        for _ in 0..<(try reader.count()) {
            let name = try reader.text()
            if let last = cleared.last, last >= name {
                throw DecodingError(.malformed, at: start)
            }
            cleared.append(name)
        }
        self.init(
            kind, recordName: recordName, recordType: type, changeTag: tag, fields: fields,
            clearedFields: cleared, parent: parent, drawnShortGUID: shortGUID, share: share,
            reservations: reservations)
    }
}

extension ModifyZones {
    func write(to writer: inout ByteWriter) {
        writer.write(self.rules)
        writer.write(count: self.operations.count)
        for operation in self.operations {
            writer.write(operation.kind.rawValue)
            writer.write(text: operation.zone)
            writer.write(fixed: operation.drawnIncarnation.raw)
            writer.write(operation.scope?.rawValue ?? 0)
            writer.write(operation.reason.rawValue)
        }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let rules = try reader.recordRules()
        var operations: [Operation] = []
        for _ in 0..<(try reader.count(minimumSize: 12)) {
            guard let kind = Kind(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            let zone = try reader.text()
            var operation = Operation(
                kind, zone: zone, drawnIncarnation: ZoneIncarnation(try reader.fixed64()))
            operation.scope = try reader.encryptionScope()
            guard let reason = try reader.deletionReason() else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            operation.reason = reason
            operations.append(operation)
        }
        self.init(database: database, rules: rules, operations: operations)
    }
}

extension ByteReader {
    /// Nil: 0, the client did not say.
    fileprivate mutating func encryptionScope() throws(DecodingError) -> EncryptionScope? {
        let number = try self.byte()
        if number == 0 { return nil }
        guard let scope = EncryptionScope(rawValue: number) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return scope
    }
}

extension ByteWriter {
    mutating func write(_ rules: RecordRules) {
        if rules == .standard { return self.write(1 as UInt8) }
        self.write(2 as UInt8)
        self.write(varint: UInt64(rules.flags.rawValue))
        self.write(count: rules.recordSizeMax)
        self.write(count: rules.deleteSelfReferrerCountMax)
        self.write(count: rules.cascadeCountMax)
        self.write(count: rules.tombstoneCountMin)
        self.write(varint: rules.databaseSizeMax)
    }
}

extension ByteReader {
    mutating func recordRules() throws(DecodingError) -> RecordRules {
        let start = self.offset
        let form = try self.byte()
        if form == 1 { return .standard }
        guard form == 2 else { throw DecodingError(.malformed, at: start) }
        guard let flags = UInt32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        let recordSize = try self.boundedInt()
        let referrers = try self.boundedInt()
        let cascade = try self.boundedInt()
        var rules = RecordRules(
            flags: RecordRules.Flags(rawValue: flags), recordSizeMax: recordSize,
            deleteSelfReferrerCountMax: referrers, cascadeCountMax: cascade,
            tombstoneCountMin: try self.boundedInt())
        rules.databaseSizeMax = try self.varint()
        return rules
    }

    /// A number that is no count of bytes that follow: at most 2³¹ - 1.
    mutating func boundedInt() throws(DecodingError) -> Int {
        let start = self.offset
        guard let value = Int32(exactly: try self.varint()) else {
            throw DecodingError(.malformed, at: start)
        }
        return Int(value)
    }
}

extension ReserveReferences {
    func write(to writer: inout ByteWriter) {
        writer.write(fixed: self.drawnIncarnation.raw)
        writer.write(count: max(0, self.referrerCountMax))
        writer.write(count: self.wishes.count)
        for wish in self.wishes {
            writer.write(text: wish.target)
            writer.write(wish.action.rawValue)
            writer.write(text: wish.referrer)
        }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let incarnation = ZoneIncarnation(try reader.fixed64())
        let referrers = try reader.boundedInt()
        var wishes: [Wish] = []
        for _ in 0..<(try reader.count(minimumSize: 3)) {
            let target = try reader.text()
            let action = try reader.action()
            wishes.append(Wish(target: target, action: action, referrer: try reader.text()))
        }
        self.init(
            database: database, drawnIncarnation: incarnation, referrerCountMax: referrers,
            wishes: wishes)
    }
}

extension ByteWriter {
    fileprivate mutating func write(_ reservation: ReferenceReservation) {
        self.write(text: reservation.target)
        self.write(reservation.action.rawValue)
        self.write(reservation.identity)
        self.write(signed: reservation.deadlineMilliseconds)
    }
}

extension ByteReader {
    fileprivate mutating func reservation() throws(DecodingError) -> ReferenceReservation {
        let target = try self.text()
        let action = try self.action()
        let identity = try self.identity()
        return ReferenceReservation(
            target: target, action: action, identity: identity,
            deadlineMilliseconds: try self.signed())
    }
}
