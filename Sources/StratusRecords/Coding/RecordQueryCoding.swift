package import StratusCoding
package import StratusModel

// Record query, format 1: the body of a `Query` of kind `.records`. Never stored.
//
// | bytes | what                                                                           |
// | ----- | ------------------------------------------------------------------------------ |
// | 1     | format, 1                                                                      |
// | …     | principal: 1 kind, text user record name, count of roles, each a text           |
// | 1     | ask: 1 lookup, 2 zones, 3 zone changes, 4 database changes, 5 page, 6 schema,   |
// |       | 7 jobs, 8 judge, 9 use, 10 work, 11 page by a schema's version (level 2),           |
// |       | 12 subscriptions, 13 news (level 2),                                            |
// |       | 20 asset, 21 key, 22 judge a batch whose assets are resolved (level 2),            |
// |       | 40 news of a device, as 13; 41 waiting devices, 44 documents                     |
// |       | (`DocumentCoding.swift`), 50 buckets, 60 zone page, 70 key values                |
// |       | (`KeyValueCoding.swift`), 71 their devices, a database (40 to 71: level 2),        |
// |       | 100 held records, 120 wrapped keys (`RewrapCoding.swift`; level 2)                 |
// |       | 153 judge by a schema to come: as 8, with the types to add, and a flag: 22 (level 2) |
//
// Every ask but 6 (a container), 7 (nothing), 10 (signed milliseconds), 41, 100 and 120 starts with
// a database:
// container, 1 scope, text owner. Lookup: text zone, count of names. Zones: flag, then a count of
// names. Zone changes: text zone, flag and position (8 incarnation, varint tag, varint floor),
// varint limit, flag reverse, flag and count of types. Database changes: flag and position (varint
// turn, varint tag, bits: 1 midway, 2 a varint floor follows), varint limit. Page: optional text
// zone, predicate, varint limit, flag and prefixed marker, varint touches, 1 whether indexes are
// required, plus 2 or 4 where places are asked for, only or with records. Page by a schema's
// version: as page, then varint schema version; the byte before has 8 where the pages of all zones
// of several parts are merged, and then 1 number of this part follows at the end. Judge: varint
// schema version, then a batch as in a command; so does the one whose assets are resolved. Use:
// nothing more. Subscriptions: flag shared, flag, then a count of IDs. News: 16 token, flag and
// position. Asset: no database, 16 asset. Key: flag and varint version. Waiting devices:
// no database, flag and prefixed place, varint limit. Held records: the same. Buckets: 1 count.
// Zone page: flag and text name, varint limit.

extension RecordQuery {
    package func encoded() -> Bytes {
        var writer = ByteWriter(reserving: 256)
        writer.write(1 as UInt8)
        writer.write(self.principal)
        switch self.ask {
        case .lookup(let lookup):
            writer.write(1 as UInt8)
            writer.write(lookup.database)
            writer.write(text: lookup.zone)
            writer.write(texts: lookup.names)
        case .zones(let database, let names):
            writer.write(2 as UInt8)
            writer.write(database)
            writer.write(flag: names != nil)
            if let names { writer.write(texts: names) }
        case .zonePage(let database, let after, let limit):
            writer.write(60 as UInt8)
            writer.write(database)
            writer.write(flag: after != nil)
            if let after { writer.write(text: after) }
            writer.write(count: max(0, limit))
        case .zoneChanges(let ask):
            writer.write(3 as UInt8)
            writer.write(ask.database)
            writer.write(text: ask.zone)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(after) }
            writer.write(count: max(0, ask.limit))
            writer.write(flag: ask.reverse)
            writer.write(flag: ask.recordTypes != nil)
            if let types = ask.recordTypes { writer.write(texts: types) }
        case .databaseChanges(let ask):
            writer.write(4 as UInt8)
            writer.write(ask.database)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(after) }
            writer.write(count: max(0, ask.limit))
        case .page(let ask):
            writer.write(self.number)
            writer.write(ask.database)
            writer.write(optionalText: ask.zone)
            writer.write(ask.predicate)
            writer.write(count: max(0, ask.limit))
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(prefixed: after) }
            writer.write(count: max(0, ask.touchCountMax))
            let part = ask.schemaVersion == nil ? nil : ask.part
            writer.write(
                (ask.requiresIndexes ? 1 : 0) | ask.placed.rawValue << 1 | (part == nil ? 0 : 8))
            if let version = ask.schemaVersion { writer.write(varint: version) }
            if let part { writer.write(part) }
        case .schema(let container):
            writer.write(6 as UInt8)
            writer.write(container)
        case .jobs: writer.write(7 as UInt8)
        case .work(let time):
            writer.write(10 as UInt8)
            writer.write(signed: time)
        case .judge(let ask):
            writer.write(self.number)
            writer.write(ask.modify.database)
            writer.write(varint: ask.schemaVersion)
            if !ask.growth.isEmpty {
                writer.write(recordTypes: ask.growth)
                writer.write(flag: ask.modify.resolvesAssets)
            }
            var modify = ask.modify
            if modify.database.zoneBucket != nil { modify.database = modify.database.whole }
            modify.write(to: &writer)
        case .use(let database):
            writer.write(9 as UInt8)
            writer.write(database)
        case .subscriptions(let database, let isShared, let names):
            writer.write(12 as UInt8)
            writer.write(database)
            writer.write(flag: isShared)
            writer.write(flag: names != nil)
            if let names { writer.write(texts: names) }
        case .news(let ask):
            writer.write((ask.follower == .poll ? 13 : 40) as UInt8)
            writer.write(ask.database)
            writer.write(raw: ask.token)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(after) }
        case .waitingDevices(let ask):
            writer.write(41 as UInt8)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(prefixed: after) }
            writer.write(count: max(0, ask.limit))
        case .audience(let ask):
            writer.write(140 as UInt8)
            writer.write(ask)
        case .asset(let asset):
            writer.write(20 as UInt8)
            writer.write(name: asset.raw)
        case .key(let ask):
            writer.write(21 as UInt8)
            writer.write(ask.database)
            writer.write(flag: ask.version != nil)
            if let version = ask.version { writer.write(varint: UInt64(version)) }
        case .buckets(let ask):
            writer.write(50 as UInt8)
            writer.write(ask.database)
            writer.write(UInt8(clamping: ask.count))
        case .keyValues(let ask):
            writer.write(70 as UInt8)
            writer.write(ask)
        case .keyValueDevices(let database):
            writer.write(71 as UInt8)
            writer.write(database)
        case .documents(let ask):
            writer.write(44 as UInt8)
            writer.write(ask)
        case .heldRecords(let ask):
            writer.write(100 as UInt8)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(prefixed: after) }
            writer.write(count: max(0, ask.limit))
        case .sealedRecords(let ask):
            writer.write(110 as UInt8)
            ask.write(to: &writer)
        case .wrappedKeys(let ask):
            writer.write(120 as UInt8)
            ask.write(to: &writer)
        case .assetRows(let ask):
            writer.write(123 as UInt8)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(prefixed: after) }
        case .olderFiles(let ask):
            writer.write(152 as UInt8)
            ask.write(to: &writer)
        case .databaseFiles(let ask):
            writer.write(126 as UInt8)
            writer.write(ask.database)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(name: after.raw) }
        case .lostFiles(let ask):
            writer.write(111 as UInt8)
            writer.write(flag: ask.after != nil)
            if let after = ask.after { writer.write(name: after.raw) }
        case .bodies(let ask):
            writer.write(150 as UInt8)
            writer.write(count: ask.bodies.count)
            for body in ask.bodies { writer.write(body: body) }
        }
        return writer.bytes
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        let version = try reader.byte()
        guard version == 1 else { throw DecodingError(.unknownVersion(version), at: 0) }
        let principal = try reader.principal()
        let ask: Ask
        let number = try reader.byte()
        switch number {
        case 1:
            let database = try reader.database()
            let zone = try reader.text()
            ask = .lookup(
                RecordLookup(database: database, zone: zone, names: try reader.texts()))
        case 2:
            let database = try reader.database()
            ask = .zones(database, names: try reader.flag() ? try reader.texts() : nil)
        case 3: ask = .zoneChanges(try reader.zoneChangesAsk())
        case 4:
            let database = try reader.database()
            let after = try reader.flag() ? try reader.databasePosition() : nil
            ask = .databaseChanges(
                DatabaseChangesAsk(
                    database: database, after: after, limit: try reader.boundedInt()))
        case 5: ask = .page(try reader.queryPageAsk(mayBeParted: false).ask)
        case 11:
            var (page, isParted) = try reader.queryPageAsk(mayBeParted: true)
            page.schemaVersion = try reader.varint()
            if isParted { page.part = try reader.byte() }
            ask = .page(page)
        case 6: ask = .schema(try reader.container())
        case 7: ask = .jobs
        case 10: ask = .work(asOf: try reader.signed())
        case 8, 22, 153:
            let database = try reader.database()
            let version = try reader.varint()
            let growth = number == 153 ? try reader.recordTypes() : []
            let resolvesAssets = number == 153 ? try reader.flag() : number == 22
            var modify = try ModifyRecords(from: &reader, container: database.container)
            modify.resolvesAssets = resolvesAssets
            let expected = database.zoneBucket == nil ? database : database.whole
            guard modify.database == expected, number != 153 || !growth.isEmpty else {
                throw DecodingError(.malformed, at: reader.offset)
            }
            modify.database = database
            ask = .judge(JudgeAsk(modify, schemaVersion: version, growth: growth))
        case 9: ask = .use(try reader.database())
        case 12:
            let database = try reader.database()
            let isShared = try reader.flag()
            ask = .subscriptions(
                database, isShared: isShared, names: try reader.flag() ? try reader.texts() : nil)
        case 13, 40:
            let database = try reader.database()
            let token = try reader.token()
            ask = .news(
                NewsAsk(
                    database: database, token: token, as: number == 13 ? .poll : .device,
                    after: try reader.flag() ? try reader.newsPosition() : nil))
        case 41:
            let after = try reader.flag() ? try reader.prefixed() : nil
            ask = .waitingDevices(WaitingDevicesAsk(after: after, limit: try reader.boundedInt()))
        case 60:
            let database = try reader.database()
            let after = try reader.flag() ? try reader.text() : nil
            ask = .zonePage(database, after: after, limit: try reader.boundedInt())
        case 140: ask = .audience(try reader.audienceAsk())
        case 20: ask = .asset(AssetID(try reader.name()))
        case 21:
            let database = try reader.database()
            ask = .key(
                KeyAsk(
                    database: database, version: try reader.flag() ? try reader.number32() : nil))
        case 44: ask = .documents(try reader.documentsAsk())
        case 50:
            let database = try reader.database()
            let start = reader.offset
            let count = Int(try reader.byte())
            guard Bucket.isBucket(0, of: count), database.scope == .private,
                database.bucket == nil
            else { throw DecodingError(.malformed, at: start) }
            ask = .buckets(BucketsAsk(database: database, count: count))
        case 70: ask = .keyValues(try reader.keyValuesAsk())
        case 71: ask = .keyValueDevices(try reader.database())
        case 100:
            let after = try reader.flag() ? try reader.prefixed() : nil
            ask = .heldRecords(HeldRecordsAsk(after: after, limit: try reader.boundedInt()))
        case 110: ask = .sealedRecords(try SealedAsk(from: &reader))
        case 120: ask = .wrappedKeys(try WrappedKeysAsk(from: &reader))
        case 111:
            let after = try reader.flag() ? AssetID(try reader.name()) : nil
            ask = .lostFiles(LostFilesAsk(after: after))
        case 150:
            var bodies: [BodyID] = []
            for _ in 0..<(try reader.count(minimumSize: 16)) { bodies.append(try reader.body()) }
            ask = .bodies(BodiesAsk(bodies))
        case 126:
            let database = try reader.database()
            let after = try reader.flag() ? AssetID(try reader.name()) : nil
            ask = .databaseFiles(DatabaseFilesAsk(database, after: after))
        case 123:
            ask = .assetRows(AssetRowsAsk(after: try reader.flag() ? try reader.prefixed() : nil))
        case 152: ask = .olderFiles(try OlderFilesAsk(from: &reader))
        default: throw DecodingError(.malformed, at: reader.offset - 1)
        }
        try reader.finish()
        self.init(principal: principal, ask)
    }
}

extension ByteWriter {
    mutating func write(_ principal: Principal) {
        self.write(principal.kind.rawValue)
        self.write(text: principal.userRecordName)
        self.write(texts: principal.roles)
    }

    mutating func write(texts: [String]) {
        self.write(count: texts.count)
        for text in texts { self.write(text: text) }
    }

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
    mutating func principal() throws(DecodingError) -> Principal {
        guard let kind = Principal.Kind(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: self.offset - 1)
        }
        let user = try self.text()
        return Principal(kind: kind, userRecordName: user, roles: try self.texts())
    }

    mutating func texts() throws(DecodingError) -> [String] {
        let count = try self.count()
        var texts: [String] = []
        texts.reserveCapacity(min(count, 256))
        for _ in 0..<count { texts.append(try self.text()) }
        return texts
    }

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

    /// - Parameter mayBeParted: whether the form may have a part.
    /// - Returns: whether it has one.
    fileprivate mutating func queryPageAsk(
        mayBeParted: Bool
    ) throws(DecodingError) -> (ask: QueryPageAsk, isParted: Bool) {
        let database = try self.database()
        let zone = try self.optionalText()
        let predicate = try self.predicate()
        let limit = try self.boundedInt()
        let after = try self.flag() ? try self.prefixed() : nil
        let touches = try self.boundedInt()
        let start = self.offset
        let flags = try self.byte()
        guard let placed = QueryPageAsk.Placing(rawValue: flags >> 1 & 3), flags < 16,
            mayBeParted || flags < 8
        else { throw DecodingError(.malformed, at: start) }
        var ask = QueryPageAsk(
            database: database, zone: zone, predicate: predicate, limit: limit, after: after,
            touchCountMax: touches, requiresIndexes: flags & 1 != 0)
        ask.placed = placed
        return (ask, flags & 8 != 0)
    }
}
