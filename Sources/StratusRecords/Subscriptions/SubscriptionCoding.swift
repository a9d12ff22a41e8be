import StratusCoding
import StratusModel

// A subscription, in commands, rows and answers:
//
// | bytes    | what                                                                     |
// | -------- | ------------------------------------------------------------------------ |
// | text     | ID                                                                       |
// | 1        | kind: 1 query, 2 zone, 3 database                                        |
// | 1        | bits: 1 a zone follows, 2 fires once                                      |
// | 1        | reasons: 1 created, 2 updated, 4 deleted                                  |
// | text     | zone, where there is one                                                  |
// | …        | predicate, of a query                                                     |
// | count    | fields, each a text                                                       |
// | prefixed | content                                                                   |
//
// Modify subscriptions: flag shared, varint most, count of operations, each 1 byte (1
// create, 2 update, and a subscription; 3 delete, and a text). Follow news: text
// subscriber, 16 token, 1 byte: 1 begin; 2 advance: two positions, optional text, optional varint
// tag; 3 forget; of a device 4 begin; 5 advance, as 2; 6 leave; 7 close: varints mark and tag.

extension ByteWriter {
    mutating func write(_ subscription: Subscription) {
        self.write(text: subscription.id)
        self.write(subscription.kind.rawValue)
        self.write(
            (subscription.zone != nil ? 1 : 0) | (subscription.firesOnce ? 2 : 0) as UInt8)
        self.write(subscription.reasons.rawValue)
        if let zone = subscription.zone { self.write(text: zone) }
        if subscription.kind == .query {
            self.write(subscription.predicate ?? RecordPredicate(recordType: ""))
        }
        self.write(texts: subscription.fields)
        self.write(prefixed: subscription.content)
    }

    mutating func write(_ position: NewsPosition) {
        self.write(varint: position.number)
        self.write(text: position.subscription)
    }

    mutating func write(_ event: NewsEvent) {
        switch event {
        case .zone(let zone, let tag):
            self.write(0 as UInt8)
            self.write(text: zone)
            self.write(varint: tag.raw)
        case .record(let reason, let record, let omitted):
            self.write(reason.rawValue)
            self.write(text: record.zone.name)
            self.write(texts: omitted)
            self.write(text: record.name)
            self.write(recordBody: record)
        }
    }

    /// Of an answer: an event's row does not name the owner of its zone.
    mutating func write(_ hit: News.Hit) {
        self.write(hit.subscription)
        self.write(flag: hit.isShared)
        var owner = ""
        if case .record(_, let record, _) = hit.event { owner = record.zone.owner }
        self.write(text: owner)
        self.write(hit.event)
    }
}

extension ByteReader {
    mutating func subscription() throws(DecodingError) -> Subscription {
        let start = self.offset
        let id = try self.text()
        guard let kind = Subscription.Kind(rawValue: try self.byte()) else {
            throw DecodingError(.malformed, at: start)
        }
        let bits = try self.byte()
        let reasons = Subscription.Reasons(rawValue: try self.byte())
        guard bits < 4 else { throw DecodingError(.malformed, at: start) }
        let zone = bits & 1 != 0 ? try self.text() : nil
        let predicate = kind == .query ? try self.predicate() : nil
        let fields = try self.texts()
        let subscription = Subscription(
            id, kind, zone: zone, predicate: predicate, reasons: reasons,
            firesOnce: bits & 2 != 0, fields: fields, content: try self.prefixed())
        guard subscription.isSound else { throw DecodingError(.malformed, at: start) }
        return subscription
    }

    mutating func newsPosition() throws(DecodingError) -> NewsPosition {
        let number = try self.varint()
        return NewsPosition(number: number, subscription: try self.text())
    }

    mutating func newsEvent(owner: String) throws(DecodingError) -> NewsEvent {
        let start = self.offset
        let what = try self.byte()
        if what == 0 {
            let zone = try self.text()
            return .zone(zone, ChangeTag(try self.varint()))
        }
        guard [1, 2, 4].contains(what) else { throw DecodingError(.malformed, at: start) }
        let zone = ZoneID(name: try self.text(), owner: owner)
        let omitted = try self.texts()
        let name = try self.text()
        return .record(
            Subscription.Reasons(rawValue: what), try self.recordBody(name: name, zone: zone),
            omitted: omitted)
    }

    mutating func newsHit() throws(DecodingError) -> News.Hit {
        let subscription = try self.subscription()
        let isShared = try self.flag()
        let owner = try self.text()
        return News.Hit(
            subscription: subscription, isShared: isShared,
            event: try self.newsEvent(owner: owner))
    }

    mutating func token() throws(DecodingError) -> Bytes {
        Bytes(try self.raw(FollowNews.tokenLength))
    }
}

extension Form {
    mutating func lay(_ position: inout NewsPosition) throws(Problem) {
        try self.lay(
            &position, by: { $0.write($1) },
            { (reader) throws(DecodingError) in try reader.newsPosition() })
    }

    mutating func lay(_ position: inout NewsPosition?) throws(Problem) {
        try self.lay(
            &position,
            by: { (writer, position) in
                writer.write(flag: position != nil)
                if let position { writer.write(position) }
            },
            { (reader) throws(DecodingError) in
                try reader.flag() ? try reader.newsPosition() : nil
            })
    }

    mutating func lay(token: inout Bytes) throws(Problem) {
        try self.lay(
            &token, by: { $0.write(raw: $1) },
            { (reader) throws(DecodingError) in try reader.token() })
    }
}

extension ModifySubscriptions {
    func write(to writer: inout ByteWriter) {
        writer.write(flag: self.isShared)
        writer.write(count: max(0, self.countMax))
        writer.write(count: self.operations.count)
        for operation in self.operations {
            switch operation {
            case .create(let subscription):
                writer.write(1 as UInt8)
                writer.write(subscription)
            case .update(let subscription):
                writer.write(2 as UInt8)
                writer.write(subscription)
            case .delete(let id):
                writer.write(3 as UInt8)
                writer.write(text: id)
            }
        }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let isShared = try reader.flag()
        let countMax = try reader.boundedInt()
        var operations: [Operation] = []
        for _ in 0..<(try reader.count(minimumSize: 2)) {
            let start = reader.offset
            switch try reader.byte() {
            case 1: operations.append(.create(try reader.subscription()))
            case 2: operations.append(.update(try reader.subscription()))
            case 3: operations.append(.delete(try reader.text()))
            default: throw DecodingError(.malformed, at: start)
            }
        }
        self.init(
            database: database, isShared: isShared, countMax: countMax, operations: operations)
    }
}

extension FollowNews {
    func write(to writer: inout ByteWriter) {
        writer.write(text: self.subscriber)
        writer.write(raw: self.token)
        switch self.step {
        case .begin: writer.write((self.follower == .poll ? 1 : 4) as UInt8)
        case .leave: writer.write(6 as UInt8)
        case .advance(let from, let to, let spent, let told):
            writer.write((self.follower == .poll ? 2 : 5) as UInt8)
            writer.write(from)
            writer.write(to)
            writer.write(optionalText: spent)
            writer.write(flag: told != nil)
            if let told { writer.write(varint: told.raw) }
        case .close(let mark, let told):
            writer.write(7 as UInt8)
            writer.write(varint: mark)
            writer.write(varint: told.raw)
        case .forget: writer.write(3 as UInt8)
        }
    }

    init(from reader: inout ByteReader, in database: DatabaseID) throws(DecodingError) {
        let subscriber = try reader.text()
        let token = try reader.token()
        let start = reader.offset
        let step: Step
        let number = try reader.byte()
        switch number {
        case 1, 4: step = .begin
        case 2, 5:
            let from = try reader.newsPosition()
            let to = try reader.newsPosition()
            let spent = try reader.optionalText()
            let told = try reader.flag() ? ChangeTag(try reader.varint()) : nil
            step = .advance(from: from, to: to, spent: spent, told: told)
        case 3: step = .forget
        case 6: step = .leave
        case 7: step = .close(mark: try reader.varint(), told: ChangeTag(try reader.varint()))
        default: throw DecodingError(.malformed, at: start)
        }
        guard !subscriber.utf8.contains(0) else { throw DecodingError(.malformed, at: start) }
        self.init(
            database: database, subscriber: subscriber, token: token,
            as: (4...6).contains(number) ? .device : .poll, step)
    }
}
