package import StratusCoding
package import StratusModel
import StratusQuery

// Record command, format 1: the body of a `Command` of kind `.records`. The container is the
// envelope's.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | 1     | kind: 1 modify records, 2 modify zones, 3 install schema, 4 extend schema,      |
// |       | 5 continue jobs, 6 erase database, 7 reserve references, 8 recover (nothing follows), |
// |       | 9 reserve references, of the second edition, 10 audit links,                    |
// |       | 11 recover, of the second edition (nothing follows), 12 modify subscriptions,    |
// |       | 13 follow news (`SubscriptionCoding.swift`),                                    |
// |       | 20…25 about assets: see `AssetCommandCoding.swift`,                              |
// |       | 28 modify records whose assets are resolved: else as 1,                          |
// |       | 40 modify key values: see `KeyValueCoding.swift`,                                |
// |       | 44 modify documents: see `DocumentCoding.swift`,                                 |
// |       | 50 placed: 1 number and 1 count of a bucket of a private database's zones, or 0  |
// |       | and 0; varint tag floor; then the kind and the rest of one of 1, 2, 6, 7, 9, 12, |
// |       | 13, 20, 21, 22, 28, 60, 61, 110, 120, 151, 152 as the whole database gets it,   |
// |       | 51 note buckets: database, 1 count, varint mask, varint tag floor,               |
// |       | 60 modify records whose long texts are cut, 61 the same and assets are resolved, |
// |       | 62 install schema, 63 extend schema, both with indexes of long texts,            |
// |       | 110 reseal fields: see `ResealCoding.swift`,                                     |
// |       | 120 rewrap key: see `RewrapCoding.swift`,                                        |
// |       | 122 forget outcomes (nothing follows),                                           |
// |       | 151 replace body, 152 retire keys: see `ReplaceBodyCoding.swift`                 |
//
// A database: 1 scope, text owner; or 1 byte 3, 1 bucket's number, 1 count of buckets: a bucket of
// a public one. In rows and questions also 1 byte 4, text owner, 1 number, 1 count: a bucket of a
// private one. Modify records: database, text zone, flag atomic, text device, 8 bytes drawn
// incarnation, rules, count of operations. An operation:
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | kind                                                                           |
// | 1     | presence bits: 1 record type, 2 change tag, 4 parent set, 8 parent cleared,     |
// |       | 16 short GUID, 32 reservations                                                 |
// | texts | record name, then the present ones: type, tag, parent, short GUID               |
// | …     | count of reservations, each text target, 1 action, 8 + 8 identity, signed deadline |
// | …     | fields as in a record row; count of cleared fields, each a text                 |
//
// Modify records whose long texts are cut: as 1, then 1 version of the text tables, count of texts,
// each text record name, text field, 1 form: 1 count of index keys, bytes each; 2 bytes, a word
// summary.
//
// Rules: 1 byte. Of the first edition 1 standard; 0: varints flags, record size, DELETE_SELF
// referrers, cascade, tombstones; 2: the same and a varint database size. Of the second 3 standard;
// 4: as 2. Modify zones: database, rules, count of operations, each 1 kind, text zone, 8 bytes
// incarnation. Install schema: a schema. Extend schema: record types as in a schema. Continue jobs:
// varint budget. Erase database: database, varint zones. Audit links: database. Reserve references:
// database, 8 bytes drawn incarnation, varint referrers, count of wishes, each text target, 1
// action, text referrer.

extension RecordCommand {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        guard self.isPlaced else {
            self.write(to: &writer)
            return writer.bytes
        }
        writer.write(Command.placedKind)
        let bucket = self.database?.zoneBucket
        writer.write(bucket?.number ?? 0)
        writer.write(bucket?.count ?? 0)
        writer.write(varint: self.tagFloor)
        self.unplaced.write(to: &writer)
        return writer.bytes
    }

    /// The kind and what follows it.
    private func write(to writer: inout ByteWriter) {
        switch self {
        case .modifyRecords(let modify):
            writer.write(self.number)
            modify.write(to: &writer)
            if !modify.words.isEmpty { modify.writeWords(to: &writer) }
        case .modifyZones(let modify):
            writer.write(2 as UInt8)
            modify.write(to: &writer)
        case .schema(.install(let schema, _)):
            writer.write(self.number)
            writer.write(schema)
        case .schema(.extend(let types, _)):
            writer.write(self.number)
            writer.write(recordTypes: types)
        case .continueJobs(let jobs):
            writer.write(5 as UInt8)
            writer.write(count: max(0, jobs.budget))
        case .eraseDatabase(let erase):
            writer.write(6 as UInt8)
            writer.write(partOf: erase.database)
            writer.write(count: max(0, erase.zoneCount))
        case .reserveReferences(let reserve):
            writer.write((reserve.edition == .first ? 7 : 9) as UInt8)
            reserve.write(to: &writer)
        case .recover, .forgetOutcomes: writer.write(self.number)
        case .auditLinks(let audit):
            writer.write(10 as UInt8)
            writer.write(partOf: audit.database)
        case .modifySubscriptions(let modify):
            writer.write(12 as UInt8)
            modify.write(to: &writer)
        case .followNews(let follow):
            writer.write(13 as UInt8)
            follow.write(to: &writer)
        case .pinAsset(let pin):
            writer.write(20 as UInt8)
            pin.write(to: &writer)
        case .holdAssets(let hold):
            writer.write(21 as UInt8)
            hold.write(to: &writer)
        case .putKey(let put):
            writer.write(22 as UInt8)
            put.write(to: &writer)
        case .loseBody(let lose):
            writer.write(25 as UInt8)
            writer.write(body: lose.body)
        case .findBody(let find):
            writer.write(150 as UInt8)
            find.write(to: &writer)
        case .noteBuckets(let note):
            writer.write(51 as UInt8)
            writer.write(partOf: note.database)
            writer.write(note.buckets)
        case .modifyKeyValues(let modify):
            writer.write(40 as UInt8)
            modify.write(to: &writer)
        case .modifyDocuments(let modify):
            writer.write(44 as UInt8)
            modify.write(to: &writer)
        case .resealFields(let reseal):
            writer.write(110 as UInt8)
            reseal.write(to: &writer)
        case .replaceBody(let replace):
            writer.write(self.number)
            replace.write(to: &writer)
        case .retireKeys(let retire):
            writer.write(self.number)
            retire.write(to: &writer)
        case .rewrapKey(let rewrap):
            writer.write(120 as UInt8)
            rewrap.write(to: &writer)
        }
    }

    /// - Parameter container: the envelope's.
    package init(decoding bytes: Bytes, container: ContainerReference) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let kind = try reader.byte()
        guard kind == Command.placedKind else {
            try self.init(kind, from: &reader, container: container)
            try reader.finish()
            return
        }
        let number = Int(try reader.byte())
        let count = Int(try reader.byte())
        let isBucket = Bucket.isBucket(number, of: count)
        guard isBucket || (number == 0 && count == 0) else {
            throw DecodingError(.malformed, at: 2)
        }
        let tagFloor = try reader.varint()
        let start = reader.offset
        let command = try RecordCommand(try reader.byte(), from: &reader, container: container)
        guard
            let placed = command.placed(
                in: isBucket ? Bucket(number, of: count) : nil, above: tagFloor)
        else { throw DecodingError(.malformed, at: start) }
        self = placed
        try reader.finish()
    }

    private init(
        _ kind: UInt8, from reader: inout ByteReader, container: ContainerReference
    ) throws(DecodingError) {
        switch kind {
        case 1:
            let modify = try ModifyRecords(from: &reader, container: container)
            // Builds before level 2 do not read it, so it changes nothing for anybody.
            guard !modify.namesAssets else { throw DecodingError(.malformed, at: 2) }
            self = .modifyRecords(modify)
        case 2: self = .modifyZones(try ModifyZones(from: &reader, container: container))
        case 3: self = .schema(.install(try reader.schema()))
        case 4: self = .schema(.extend(try reader.recordTypes()))
        case 5: self = .continueJobs(ContinueJobs(budget: try reader.boundedInt()))
        case 6:
            let database = try reader.databasePart(container: container)
            self = .eraseDatabase(
                EraseDatabase(database: database, zoneCount: try reader.boundedInt()))
        case 7:
            self = .reserveReferences(
                try ReserveReferences(from: &reader, container: container, .first))
        case 8: self = .recover(.first)
        case 9:
            self = .reserveReferences(
                try ReserveReferences(from: &reader, container: container, .second))
        case 10:
            self = .auditLinks(
                AuditLinks(database: try reader.databasePart(container: container)))
        case 11: self = .recover(.second)
        case 131: self = .recover(.third)
        case 12:
            self = .modifySubscriptions(
                try ModifySubscriptions(from: &reader, container: container))
        case 13: self = .followNews(try FollowNews(from: &reader, container: container))
        case 20: self = .pinAsset(try PinAsset(from: &reader, container: container))
        case 21: self = .holdAssets(try HoldAssets(from: &reader, container: container))
        case 22: self = .putKey(try PutKey(from: &reader, container: container))
        case 25: self = .loseBody(LoseBody(body: try reader.body()))
        case 150: self = .findBody(try FindBody(from: &reader))
        case 60, 61:
            var modify = try ModifyRecords(from: &reader, container: container)
            modify.resolvesAssets = kind == 61
            guard modify.resolvesAssets || !modify.namesAssets else {
                throw DecodingError(.malformed, at: 2)
            }
            try modify.readWords(from: &reader)
            self = .modifyRecords(modify)
        case 62: self = .schema(.install(try reader.schema(), withLongTexts: true))
        case 63: self = .schema(.extend(try reader.recordTypes(), withLongTexts: true))
        case 28:
            var modify = try ModifyRecords(from: &reader, container: container)
            modify.resolvesAssets = true
            self = .modifyRecords(modify)
        case 51:
            let start = reader.offset
            let database = try reader.databasePart(container: container)
            guard database.scope == .private, database.bucket == nil else {
                throw DecodingError(.malformed, at: start)
            }
            self = .noteBuckets(
                NoteBuckets(database: database, buckets: try reader.zoneBuckets()))
        case 40:
            self = .modifyKeyValues(try ModifyKeyValues(from: &reader, container: container))
        case 44:
            self = .modifyDocuments(try ModifyDocuments(from: &reader, container: container))
        case 110: self = .resealFields(try ResealFields(from: &reader, container: container))
        case 122: self = .forgetOutcomes
        case 151: self = .replaceBody(try ReplaceBody(from: &reader, container: container))
        case 152: self = .retireKeys(try RetireKeys(from: &reader, container: container))
        case 120: self = .rewrapKey(try RewrapKey(from: &reader, container: container))
        default: throw DecodingError(.malformed, at: 1)
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
        writer.write(partOf: self.database)
        writer.write(text: self.zone)
        writer.write(flag: self.isAtomic)
        writer.write(text: self.deviceID)
        writer.write(fixed: self.drawnIncarnation.raw)
        writer.write(self.rules)
        writer.write(count: self.operations.count)
        for operation in self.operations { operation.write(to: &writer) }
    }

    init(from reader: inout ByteReader, container: ContainerReference) throws(DecodingError) {
        let database = try reader.databasePart(container: container)
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
        if !self.reservations.isEmpty { presence |= 32 }
        writer.write(self.kind.rawValue)
        writer.write(presence)
        writer.write(text: self.recordName)
        if let type = self.recordType { writer.write(text: type) }
        if let tag = self.changeTag { writer.write(text: tag) }
        if case .set(let parent) = self.parent { writer.write(text: parent) }
        if let shortGUID = self.drawnShortGUID { writer.write(text: shortGUID) }
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
        guard presence < 64, presence & 12 != 12 else {
            throw DecodingError(.malformed, at: start + 1)
        }
        let recordName = try reader.text()
        let type = presence & 1 != 0 ? try reader.text() : nil
        let tag = presence & 2 != 0 ? try reader.text() : nil
        var parent = presence & 8 != 0 ? ParentChange.cleared : .unmentioned
        if presence & 4 != 0 { parent = .set(try reader.text()) }
        let shortGUID = presence & 16 != 0 ? try reader.text() : nil
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
            clearedFields: cleared, parent: parent, drawnShortGUID: shortGUID,
            reservations: reservations)
    }
}

extension ModifyZones {
    func write(to writer: inout ByteWriter) {
        writer.write(partOf: self.database)
        writer.write(self.rules)
        writer.write(count: self.operations.count)
        for operation in self.operations {
            writer.write(operation.kind.rawValue)
            writer.write(text: operation.zone)
            writer.write(fixed: operation.drawnIncarnation.raw)
        }
    }

    init(from reader: inout ByteReader, container: ContainerReference) throws(DecodingError) {
        let database = try reader.databasePart(container: container)
        let rules = try reader.recordRules()
        var operations: [Operation] = []
        for _ in 0..<(try reader.count(minimumSize: 10)) {
            guard let kind = Kind(rawValue: try reader.byte()) else {
                throw DecodingError(.malformed, at: reader.offset - 1)
            }
            let zone = try reader.text()
            operations.append(
                Operation(
                    kind, zone: zone, drawnIncarnation: ZoneIncarnation(try reader.fixed64())))
        }
        self.init(database: database, rules: rules, operations: operations)
    }
}

extension ByteWriter {
    /// A database without its container, which the envelope says.
    mutating func write(partOf database: DatabaseID) {
        if let bucket = database.recordBucket {
            self.write(ByteReader.bucketScope)
            self.write(bucket.number)
            self.write(bucket.count)
            return
        }
        if let bucket = database.zoneBucket {
            self.write(ByteReader.zoneBucketScope)
            self.write(text: database.owner)
            self.write(bucket.number)
            self.write(bucket.count)
            return
        }
        self.write(database.scope.rawValue)
        self.write(text: database.owner)
    }

    mutating func write(_ database: DatabaseID) {
        self.write(database.container)
        self.write(partOf: database)
    }

    mutating func write(_ container: ContainerReference) {
        self.write(text: container.container)
        self.write(container.environment.rawValue)
    }

    mutating func write(_ rules: RecordRules) {
        let isFirst = rules.edition == .first
        var standard = RecordRules.standard
        standard.edition = rules.edition
        if rules == standard {
            self.write((isFirst ? 1 : 3) as UInt8)
            return
        }
        let saysSize = !isFirst || rules.databaseSizeMax != 0
        self.write((isFirst ? saysSize ? 2 : 0 : 4) as UInt8)
        self.write(varint: UInt64(rules.flags.rawValue))
        self.write(count: rules.recordSizeMax)
        self.write(count: rules.deleteSelfReferrerCountMax)
        self.write(count: rules.cascadeCountMax)
        self.write(count: rules.tombstoneCountMin)
        if saysSize { self.write(varint: rules.databaseSizeMax) }
    }
}

extension ByteReader {
    /// In the place of a scope: a bucket of a public database.
    fileprivate static let bucketScope: UInt8 = 3
    /// In the place of a scope, in rows and questions: a bucket of a private one.
    fileprivate static let zoneBucketScope: UInt8 = 4

    mutating func databasePart(container: ContainerReference) throws(DecodingError) -> DatabaseID {
        try self.databasePart(try self.byte(), container)
    }

    private mutating func databasePart(
        _ first: UInt8, _ container: ContainerReference
    ) throws(DecodingError) -> DatabaseID {
        let start = self.offset - 1
        if first == Self.bucketScope {
            let number = Int(try self.byte())
            let count = Int(try self.byte())
            guard Bucket.isBucket(number, of: count), !container.container.holdsZero else {
                throw DecodingError(.malformed, at: start)
            }
            return DatabaseID(
                container: container, scope: .public, owner: "", bucket: Bucket(number, of: count))
        }
        guard let scope = DatabaseScope(rawValue: first) else {
            throw DecodingError(.malformed, at: start)
        }
        let owner = try self.text()
        // What `DatabaseID` would trap on, wrong bytes must not reach. A zero byte separates the
        // parts of a database's key.
        guard scope != .shared, (scope == .public) == owner.isEmpty,
            !owner.holdsZero, !container.container.holdsZero
        else { throw DecodingError(.malformed, at: start) }
        return DatabaseID(container: container, scope: scope, owner: owner)
    }

    /// A database in a row or a question, which may be a bucket of a private one. Commands name
    /// such a bucket before their kind.
    mutating func database() throws(DecodingError) -> DatabaseID {
        let container = try self.container()
        let first = try self.byte()
        guard first == Self.zoneBucketScope else {
            return try self.databasePart(first, container)
        }
        let start = self.offset - 1
        let owner = try self.text()
        let number = Int(try self.byte())
        let count = Int(try self.byte())
        guard !owner.isEmpty, !owner.holdsZero, Bucket.isBucket(number, of: count),
            !container.container.holdsZero
        else { throw DecodingError(.malformed, at: start) }
        return DatabaseID(
            container: container, scope: .private, owner: owner, bucket: Bucket(number, of: count))
    }

    mutating func container() throws(DecodingError) -> ContainerReference {
        let container = try self.text()
        guard let environment = Environment(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        return ContainerReference(container: container, environment: environment)
    }

    mutating func recordRules() throws(DecodingError) -> RecordRules {
        let start = self.offset
        let form = try self.byte()
        guard form <= 4 else { throw DecodingError(.malformed, at: start) }
        let edition: RecordRules.Edition = form < 3 ? .first : .second
        if form == 1 || form == 3 {
            var rules = RecordRules.standard
            rules.edition = edition
            return rules
        }
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
        rules.edition = edition
        if form != 0 { rules.databaseSizeMax = try self.varint() }
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
        writer.write(partOf: self.database)
        writer.write(fixed: self.drawnIncarnation.raw)
        writer.write(count: max(0, self.referrerCountMax))
        writer.write(count: self.wishes.count)
        for wish in self.wishes {
            writer.write(text: wish.target)
            writer.write(wish.action.rawValue)
            writer.write(text: wish.referrer)
        }
    }

    init(
        from reader: inout ByteReader, container: ContainerReference,
        _ edition: RecordRules.Edition
    ) throws(DecodingError) {
        let database = try reader.databasePart(container: container)
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
        self.edition = edition
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
