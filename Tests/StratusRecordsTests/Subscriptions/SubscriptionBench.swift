import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// One partition with subscriptions, and one follower of their news.
struct SubscriptionBench {
    static let token = Bytes(repeating: 7, count: 16)
    static let schema = Schema(
        version: 1,
        types: [
            RecordType(
                name: "Book",
                fields: [
                    FieldDefinition(
                        name: "pages", type: FieldType(.int64), indexes: [.queryable]),
                    FieldDefinition(
                        name: "title", type: FieldType(.string), indexes: [.queryable]),
                ]), RecordType(name: "Loan", fields: []),
        ])

    var bench = Bench()
    var database = Bench.privateDatabase
    var principal = Bench.user

    init(keepsCommands: Bool = false) throws {
        self.bench.keepsCommands = keepsCommands
        _ = try self.bench.apply(.schema(.install(Self.schema)), as: Bench.system)
        _ = try self.bench.zones(.create, "Shelves", "Other")
    }

    static func query(
        _ id: String, type: String = "Book", _ filters: [RecordFilter] = [],
        on reasons: Subscription.Reasons = .all, zone: String? = nil, once: Bool = false,
        fields: [String] = []
    ) -> Subscription {
        Subscription(
            id, .query, zone: zone,
            predicate: RecordPredicate(recordType: type, filters: filters), reasons: reasons,
            firesOnce: once, fields: fields, content: Bytes("{}".utf8))
    }

    static func titled(_ title: String) -> RecordFilter {
        RecordFilter(
            field: .field("title"), comparator: .equals, operand: .scalar(.string(title)))
    }

    static func zone(_ id: String, _ zone: String) -> Subscription {
        Subscription(id, .zone, zone: zone, content: Bytes("{}".utf8))
    }

    static func database(_ id: String) -> Subscription {
        Subscription(id, .database, content: Bytes("{}".utf8))
    }

    @discardableResult
    mutating func modify(
        _ operations: ModifySubscriptions.Operation..., countMax: UInt32 = 1_000
    ) throws -> [SubscriptionResult] {
        let modify = ModifySubscriptions(self.database) {
            $0.countMax = countMax
            $0.operations = operations
        }
        return try self.bench.apply(modify, as: self.principal).get().results
    }

    func list() throws -> [Subscription?] {
        try self.ask(SubscriptionsAsk(self.database) { _ in }).found
    }

    mutating func follow(token: Bytes = Self.token, as follower: NewsFollower = .poll) throws {
        try self.move(follower, token, .begin)
    }

    /// One step of a follower of the principal's.
    @discardableResult
    mutating func move(
        _ follower: NewsFollower, _ token: Bytes, _ step: FollowNews.Step
    ) throws -> [SubscriptionResult] {
        let follow = FollowNews(self.database) {
            $0.subscriber = self.principal.userRecordName
            $0.token = token
            $0.follower = follower
            $0.step = step
        }
        return try self.bench.apply(follow).get().results
    }

    func news(
        token: Bytes = Self.token, as follower: NewsFollower = .poll, after: NewsPosition? = nil
    ) throws -> News {
        try self.ask(
            NewsAsk(self.database) {
                $0.follower = follower
                $0.token = token
                $0.after = after
            })
    }

    func ask<Question: PartitionQuestion>(_ question: Question) throws -> Question.Answer {
        let result = try self.bench.ask(question, as: self.principal)
        guard case .success(let answer) = result else { throw BenchError("\(result)") }
        return answer
    }

    mutating func settle(
        _ news: News, token: Bytes = Self.token, as kind: NewsFollower = .poll
    ) throws {
        guard let follower = news.follower else { throw BenchError("nobody follows") }
        let spent = news.hit?.subscription
        try self.move(
            kind, token,
            .advance(
                from: follower, to: news.position,
                spent: spent?.firesOnce == true ? spent?.id : nil, told: news.hit?.told))
    }

    /// Everything there is, taken: each as subscription, reason and subject.
    mutating func taken(token: Bytes = Self.token) throws -> [String] {
        var taken: [String] = []
        var after: NewsPosition?
        for _ in 0..<10_000 {
            let news = try self.news(token: token, after: after)
            guard let hit = news.hit else {
                if !news.hasMore { return taken }
                after = news.position
                continue
            }
            taken.append(Self.text(hit))
            try self.settle(news, token: token)
            after = nil
        }
        throw BenchError("news without end")
    }

    static func text(_ hit: News.Hit) -> String {
        switch hit.event {
        case .zone(let zone, _): "\(hit.subscription.id) zone \(zone)"
        case .record(let reason, let record, _):
            "\(hit.subscription.id) \(reason.rawValue) \(record.zone.name)/\(record.name)"
        }
    }
}

extension Rows {
    /// All rows of some tables.
    func text(_ tables: [Table]) -> Bytes {
        var writer = ByteWriter()
        for table in tables {
            try! self.scan(
                table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false
            ) {
                key, row in
                writer.write(table.rawValue)
                writer.write(prefixed: Bytes(copying: key))
                writer.write(prefixed: Bytes(copying: row))
                return .next
            }
        }
        return writer.bytes
    }

    func keys(_ table: Table) -> [Bytes] {
        var keys: [Bytes] = []
        try! self.scan(table, from: Bytes().span.bytes, to: Bytes().span.bytes, descending: false) {
            key, _ in
            keys.append(Bytes(copying: key))
            return .next
        }
        return keys
    }
}
