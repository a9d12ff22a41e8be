package import StratusCoding
package import StratusModel
import StratusRows

// Record query, format 1: the body of a `Query` of kind `.records` whose question is no
// `PartitionQuestion` yet. Never stored.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | …     | principal: 1 kind, text user record name, count of roles, each a text           |
// | 1     | number of the question: see `RecordQuery.Kind`                                 |
// | …     | the question                                                                   |
//
// Most questions start with a database: container, then as in a command. Lookup: text zone, count
// of names. Zones: flag, then a count of names. Zone page: flag and text name, varint limit. Zone
// changes: text zone, flag and position (8 incarnation, varint tag, varint floor), varint limit,
// flag reverse, flag and count of types. Database changes: flag and position (varint turn, varint
// tag, bits: 1 midway, 2 a varint floor follows), varint limit. Page: optional text zone, predicate,
// varint limit, flag and prefixed marker, varint touches, 1 byte: 1 whether indexes are required,
// plus 2 or 4 where places are asked for, only or with records, plus 8 where the pages of all zones
// of several parts are merged; varint schema version, and 1 number of this part after an 8. Schema:
// a container, no database. Work: signed milliseconds, no database. Judge: varint schema version,
// the types that the schema is to grow by, then a batch as in a command, without the words of long
// texts. Held records: no database, flag and prefixed place, varint limit.
// Buckets: 1 count. Nothing more follows use, key-value devices, and jobs, which has no database
// either. Documents: see `DocumentCoding.swift`; key values: `KeyValueCoding.swift`.

extension RecordQuery {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(self.principal)
        writer.write(self.number)
        switch self.ask {
        case .lookup(let lookup):
            writer.write(lookup.database)
            writer.write(text: lookup.zone)
            writer.write(texts: lookup.names)
        case .zones(let database, let names):
            writer.write(database)
            writer.write(flag: names != nil)
            if let names { writer.write(texts: names) }
        case .zonePage(let database, let after, let limit):
            writer.write(database)
            writer.write(flag: after != nil)
            if let after { writer.write(text: after) }
            writer.write(count: max(0, limit))
        case .zoneChanges(let ask):
            writer.write(ask.database)
            writer.write(text: ask.zone)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(after) }
            writer.write(count: max(0, ask.limit))
            writer.write(flag: ask.reverse)
            writer.write(flag: ask.recordTypes != nil)
            if let types = ask.recordTypes { writer.write(texts: types) }
        case .databaseChanges(let ask):
            writer.write(ask.database)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(after) }
            writer.write(count: max(0, ask.limit))
        case .page(let ask):
            writer.write(ask.database)
            writer.write(optionalText: ask.zone)
            writer.write(ask.predicate)
            writer.write(count: max(0, ask.limit))
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(prefixed: after) }
            writer.write(count: max(0, ask.touchCountMax))
            writer.write(
                (ask.requiresIndexes ? 1 : 0) | ask.placed.rawValue << 1
                    | (ask.part == nil ? 0 : 8))
            writer.write(varint: ask.schemaVersion)
            if let part = ask.part { writer.write(part) }
        case .schema(let container):
            writer.write(container)
        case .jobs: break
        case .work(let time):
            writer.write(signed: time)
        case .judge(let ask):
            writer.write(ask.modify.database)
            writer.write(varint: ask.schemaVersion)
            writer.write(recordTypes: ask.growth)
            var modify = ask.modify
            modify.words = []
            modify.write(to: &writer)
        case .use(let database):
            writer.write(database)
        case .buckets(let ask):
            writer.write(ask.database)
            writer.write(UInt8(clamping: ask.count))
        case .documents(let ask):
            writer.write(ask)
        case .heldRecords(let ask):
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(prefixed: after) }
            writer.write(count: max(0, ask.limit))
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let head = try QuestionHead(from: &reader)
        try self.init(head, from: &reader)
    }

    /// - Parameter reader: behind the head.
    init(_ head: QuestionHead, from reader: inout ByteReader) throws(DecodingError) {
        let ask: Ask
        guard let kind = Kind(rawValue: head.number) else {
            throw DecodingError(.malformed, at: reader.offset - 1)
        }
        switch kind {
        case .lookup:
            let database = try reader.database()
            let zone = try reader.text()
            ask = .lookup(
                RecordLookup(database: database, zone: zone, names: try reader.texts()))
        case .zones:
            let database = try reader.database()
            ask = .zones(database, names: try reader.flag() ? try reader.texts() : nil)
        case .zoneChanges: ask = .zoneChanges(try reader.zoneChangesAsk())
        case .databaseChanges:
            let database = try reader.database()
            let after = try reader.flag() ? try reader.databasePosition() : nil
            ask = .databaseChanges(
                DatabaseChangesAsk(
                    database: database, after: after, limit: try reader.boundedInt()))
        case .page: ask = .page(try reader.queryPageAsk())
        case .schema: ask = .schema(try reader.container())
        case .jobs: ask = .jobs
        case .work: ask = .work(asOf: try reader.signed())
        case .judge:
            let database = try reader.database()
            let version = try reader.varint()
            let growth = try reader.recordTypes()
            let start = reader.offset
            let modify = try ModifyRecords(from: &reader, in: database)
            guard modify.words.isEmpty else { throw DecodingError(.malformed, at: start) }
            ask = .judge(JudgeAsk(modify, schemaVersion: version, growth: growth))
        case .use: ask = .use(try reader.database())
        case .zonePage:
            let database = try reader.database()
            let after = try reader.flag() ? try reader.text() : nil
            ask = .zonePage(database, after: after, limit: try reader.boundedInt())
        case .documents: ask = .documents(try reader.documentsAsk())
        case .buckets:
            let database = try reader.database()
            let start = reader.offset
            let count = Int(try reader.byte())
            guard Bucket.isBucket(0, of: count), database.scope == .private,
                database.bucket == nil
            else { throw DecodingError(.malformed, at: start) }
            ask = .buckets(BucketsAsk(database: database, count: count))
        case .heldRecords:
            let after = try reader.flag() ? try reader.prefixed() : nil
            ask = .heldRecords(HeldRecordsAsk(after: after, limit: try reader.boundedInt()))
        }
        try reader.finish()
        self.init(principal: head.principal, ask)
    }
}

extension Form {
    mutating func lay(_ position: inout FeedPosition) throws(Problem) {
        try self.lay(fixed: &position.incarnation.raw)
        try self.lay(&position.tag)
        try self.lay(&position.floor)
    }

    mutating func lay(_ position: inout FeedPosition?) throws(Problem) {
        var isThere = position != nil
        try self.lay(&isThere)
        guard isThere else { return position = nil }
        var known =
            position ?? FeedPosition(incarnation: ZoneIncarnation(0), tag: ChangeTag(0))
        try self.lay(&known)
        position = known
    }
}

extension ByteWriter {
    mutating func write(_ position: FeedPosition) {
        self.write(fixed: position.incarnation.raw)
        self.write(varint: position.tag.raw)
        self.write(varint: position.floor.raw)
    }

    mutating func write(_ position: DatabasePosition) {
        self.write(varint: position.turn)
        self.write(varint: position.tag.raw)
        self.write((position.isMidway ? 1 : 0) | (position.floor != 0 ? 2 : 0) as UInt8)
        if position.floor != 0 { self.write(varint: position.floor) }
    }
}

extension ByteReader {
    mutating func feedPosition() throws(DecodingError) -> FeedPosition {
        let incarnation = ZoneIncarnation(try self.fixed64())
        let tag = ChangeTag(try self.varint())
        return FeedPosition(
            incarnation: incarnation, tag: tag, floor: ChangeTag(try self.varint()))
    }

    mutating func databasePosition() throws(DecodingError) -> DatabasePosition {
        let turn = try self.varint()
        let tag = ChangeTag(try self.varint())
        let start = self.offset
        let bits = try self.byte()
        guard bits < 4 else { throw DecodingError(.malformed, at: start) }
        return DatabasePosition(
            turn: turn, tag: tag, isMidway: bits & 1 != 0,
            floor: bits & 2 != 0 ? try self.varint() : 0)
    }

    fileprivate mutating func zoneChangesAsk() throws(DecodingError) -> ZoneChangesAsk {
        let database = try self.database()
        let zone = try self.text()
        let after = try self.flag() ? try self.feedPosition() : nil
        let limit = try self.boundedInt()
        let reverse = try self.flag()
        return ZoneChangesAsk(
            database: database, zone: zone, after: after, limit: limit, reverse: reverse,
            recordTypes: try self.flag() ? try self.texts() : nil)
    }

    fileprivate mutating func queryPageAsk() throws(DecodingError) -> QueryPageAsk {
        let database = try self.database()
        let zone = try self.optionalText()
        let predicate = try self.predicate()
        let limit = try self.boundedInt()
        let after = try self.flag() ? try self.prefixed() : nil
        let touches = try self.boundedInt()
        let start = self.offset
        let flags = try self.byte()
        guard let placed = QueryPageAsk.Placing(rawValue: flags >> 1 & 3), flags < 16 else {
            throw DecodingError(.malformed, at: start)
        }
        var ask = QueryPageAsk(
            database: database, zone: zone, predicate: predicate, limit: limit, after: after,
            touchCountMax: touches, requiresIndexes: flags & 1 != 0)
        ask.placed = placed
        ask.schemaVersion = try self.varint()
        if flags & 8 != 0 { ask.part = try self.byte() }
        return ask
    }
}
