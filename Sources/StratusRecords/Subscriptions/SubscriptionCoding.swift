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
    mutating func lay(_ subscription: inout Subscription) throws(Problem) {
        try self.lay(
            &subscription, by: { $0.write($1) },
            { (reader) throws(DecodingError) in try reader.subscription() })
    }

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
