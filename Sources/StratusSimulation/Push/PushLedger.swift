import StratusCoding
import StratusModel
import StratusRecords
import StratusRows

/// What one group's log says of subscriptions, changes and followers, by the simplest rules: every
/// subscription is asked of every change, in the order of the log.
struct PushLedger {
    /// A subscription from its save to its replacement or end.
    struct Generation {
        var database: DatabaseID
        var user: String
        var subscription: Subscription
        var since: LogIndex
        var end: LogIndex?
    }

    struct ChangeName: Hashable {
        var database: DatabaseID
        var zone: String
        var record: String
        var tag: ChangeTag
    }

    struct Change {
        var name: ChangeName
        var index: LogIndex
        /// Simulated nanoseconds.
        var at: Int64
        var reason: Subscription.Reasons
        /// As it was after a save, or before a deletion.
        var record: Record
    }

    struct Mark {
        var zone: String
        var index: LogIndex
        var tag: ChangeTag
    }

    struct FollowerName: Hashable {
        var database: DatabaseID
        var token: Bytes
    }

    struct Follower {
        var user: String
        var begun: LogIndex
        /// Where it has stood, in order. Empty: nobody has said where it began.
        var positions: [NewsPosition] = []
        /// The entries that brought it there.
        var movedAt: [LogIndex] = []

        mutating func move(to position: NewsPosition, at index: LogIndex) {
            self.positions.append(position)
            self.movedAt.append(index)
        }
    }

    /// What a look must see.
    struct Start {
        /// A leader had applied it when the look began. Others may have applied more: a read waits
        /// for what was answered, and not for that.
        var applied: LogIndex
        var begun: LogIndex?
        var positionCount: Int
    }

    private(set) var generations: [Int: Generation] = [:]
    private(set) var changes: [Change] = []
    private var changeByName: [ChangeName: Int] = [:]
    private(set) var marks: [DatabaseID: [Mark]] = [:]
    private(set) var followers: [FollowerName: Follower] = [:]
    private var records: [RecordModel.Place: [String: Record]] = [:]
    /// Which generations fire at which numbers, as looks have found.
    private var fired: [DatabaseID: Set<Fired>] = [:]

    private struct Fired: Hashable {
        var number: UInt64
        var generation: Int
    }

    private var identities: Set<RequestIdentity> = []
    private var currentGenerations: [String: Int] = [:]

    // MARK: Entries

    /// An entry that no replica has applied before.
    ///
    /// - Returns: what should not be; nil: nothing.
    mutating func apply(_ entry: Entry, _ outcome: Outcome, at now: Int64) -> String? {
        guard entry.kind == .command, let command = try? Command(decoding: entry.payload),
            command.kind == .records, outcome.verdict == .decided
        else { return nil }
        if let operation = RecordState.operations.operation(in: command) {
            guard self.identities.insert(command.identity).inserted else { return nil }
            self.apply(operation, outcome, of: command, at: entry.index)
            return nil
        }
        guard
            case .modifyRecords(let modify)? = try? RecordCommand(
                decoding: command.body, container: command.container),
            self.identities.insert(command.identity).inserted,
            case .records(let modified)? = try? RecordOutcome(
                decoding: outcome.body, detail: outcome.detail)
        else { return nil }
        return self.apply(modify, modified, at: entry.index, now)
    }

    private mutating func apply(
        _ operation: any PartitionOperation<RecordState>, _ outcome: Outcome,
        of command: Command, at index: LogIndex
    ) {
        switch operation {
        case let modify as ModifySubscriptions:
            let result = try? ModifySubscriptions.result(decoding: outcome.body)
            guard case .success(let modified)? = result else { return }
            let user = command.principal.userRecordName
            for (operation, result) in zip(modify.operations, modified.results) {
                self.apply(operation, result, of: user, in: modify.database, at: index)
            }
        case let follow as FollowNews:
            guard case .success? = try? FollowNews.result(decoding: outcome.body) else { return }
            self.apply(follow, at: index)
        default: break
        }
    }

    private mutating func apply(
        _ modify: ModifyRecords, _ modified: ModifiedRecords, at index: LogIndex, _ now: Int64
    ) -> String? {
        let place = RecordModel.Place(database: modify.database, zone: modify.zone)
        var hasChanged = false
        for (operation, result) in zip(modify.operations, modified.results) {
            let before = self.records[place]?[operation.recordName]
            let record: Record
            let reason: Subscription.Reasons
            let tag: ChangeTag
            switch result {
            case .saved(let saved):
                guard let after = saved.record else { return "a save without its record" }
                self.records[place, default: [:]][operation.recordName] = after
                (record, tag) = (after, saved.tag)
                reason = before == nil ? .created : .updated
            case .deleted(let deleted?):
                guard let before else { return "a deletion of what was not there" }
                self.records[place]?[operation.recordName] = nil
                (record, tag, reason) = (before, deleted, .deleted)
            case .deleted(nil), .refused, .left: continue
            }
            hasChanged = true
            let name = ChangeName(
                database: modify.database, zone: modify.zone, record: record.name, tag: tag)
            self.changeByName[name] = self.changes.count
            self.changes.append(
                Change(name: name, index: index, at: now, reason: reason, record: record))
        }
        if hasChanged, modify.zone != ZoneID.defaultName {
            self.marks[modify.database, default: []].append(
                Mark(zone: modify.zone, index: index, tag: modified.zone.lastTag))
        }
        return nil
    }

    private mutating func apply(
        _ operation: ModifySubscriptions.Operation, _ result: SubscriptionResult,
        of user: String, in database: DatabaseID, at index: LogIndex
    ) {
        let key = "\(database) \(user) \(operation.id)"
        let known = self.currentGenerations[key]
        switch (operation, result) {
        case (.create(let subscription), .saved), (.update(let subscription), .saved):
            if let known, self.generations[known]?.subscription == subscription { return }
            self.end(known, at: index)
            let number = Self.number(of: subscription)
            self.currentGenerations[key] = number
            self.generations[number] = Generation(
                database: database, user: user, subscription: subscription, since: index)
        case (.delete, .deleted):
            self.end(known, at: index)
            self.currentGenerations[key] = nil
        default: break
        }
    }

    private mutating func end(_ number: Int?, at index: LogIndex) {
        if let number { self.generations[number]?.end = index }
    }

    private mutating func apply(_ follow: FollowNews, at index: LogIndex) {
        let name = FollowerName(database: follow.database, token: follow.token)
        switch follow.step {
        case .begin:
            guard self.followers[name] == nil else { return }
            self.followers[name] = Follower(user: follow.subscriber, begun: index)
        case .leave: self.followers[name] = nil
        case .forget, .close: break
        case .advance(let from, let to, let spent, _):
            guard let follower = self.followers[name], from < to,
                follower.positions.last.map({ $0 == from }) ?? true
            else { return }
            if follower.positions.isEmpty { self.followers[name]?.move(to: from, at: index) }
            self.followers[name]?.move(to: to, at: index)
            guard let spent else { return }
            let key = "\(follow.database) \(follow.subscriber) \(spent)"
            // It may have been saved anew since it fired.
            guard let number = self.currentGenerations[key],
                self.generations[number]?.subscription.firesOnce == true,
                self.fired[follow.database]?.contains(
                    Fired(number: to.number, generation: number)) == true
            else { return }
            self.end(number, at: index)
            self.currentGenerations[key] = nil
        }
    }

    /// The content of each subscription here is a number of its own.
    static func number(of subscription: Subscription) -> Int {
        Int(String(decoding: subscription.content, as: UTF8.self)) ?? 0
    }

    // MARK: Looks

    /// - Parameter applied: by leaders.
    func start(of name: FollowerName, applied: LogIndex) -> Start {
        let follower = self.followers[name]
        return Start(
            applied: applied, begun: follower.flatMap { $0.begun <= applied ? $0.begun : nil },
            positionCount: follower?.movedAt.prefix { $0 <= applied }.count ?? 0)
    }

    private mutating func remember(_ news: News, of name: FollowerName) {
        guard let hit = news.hit else { return }
        self.fired[name.database, default: []].insert(
            Fired(number: news.position.number, generation: Self.number(of: hit.subscription)))
    }

    /// What is wrong with an answer; nil: nothing.
    mutating func problem(
        _ news: News, of name: FollowerName, _ principal: Principal, since start: Start
    ) -> String? {
        self.remember(news, of: name)
        guard let follower = self.followers[name], follower.begun == start.begun else {
            return nil
        }
        guard let stands = news.follower else { return "its follower is not there" }
        let allowed = follower.positions.dropFirst(max(0, start.positionCount - 1))
        if !follower.positions.isEmpty, !allowed.contains(stands) {
            return "its follower stands at \(stands), not at one of \(Array(allowed))"
        }
        guard let hit = news.hit else { return nil }
        let number = Self.number(of: hit.subscription)
        guard let generation = self.generations[number], generation.user == follower.user,
            generation.database == name.database
        else { return "a subscription that nobody saved: \(hit.subscription.id)" }
        if let end = generation.end, end <= start.applied {
            return "\(hit.subscription.id) \(number) fires after its end"
        }
        let index: LogIndex
        switch hit.event {
        case .zone(let zone, let tag):
            let marks = (self.marks[name.database] ?? []).filter { $0.zone == zone }
            // A change that is told to one while another begins is news to both.
            return marks.contains { $0.tag == tag } ? nil : "\(zone) never changed at \(tag.text)"
        case .record(let reason, let record, _):
            let name = ChangeName(
                database: name.database, zone: record.zone.name, record: record.name,
                tag: record.tag)
            guard let change = self.changeByName[name].map({ self.changes[$0] }) else {
                return "\(record.name) never changed at \(record.tag.text)"
            }
            if let problem = Self.problem(record, reason, change, generation, principal) {
                return "\(record.name) at \(record.tag.text): \(problem)"
            }
            index = change.index
        }
        return index > generation.since
            ? nil : "\(hit.subscription.id) \(number) fires for what was before it"
    }

    private static func problem(
        _ record: Record, _ reason: Subscription.Reasons, _ change: Change,
        _ generation: Generation, _ principal: Principal
    ) -> String? {
        guard reason == change.reason else { return "another reason" }
        for field in record.fields where change.record.value(of: field.name) != field.value {
            return "\(field.name) is not as it was"
        }
        for name in generation.subscription.fields
        where record.value(of: name) != change.record.value(of: name) {
            return "\(name) is missing"
        }
        guard Self.matches(generation, change) else { return "it does not match" }
        if !PushWorld.mayRead(change.name.database, principal) { return "nobody may read it" }
        return nil
    }

    static func matches(_ generation: Generation, _ change: Change) -> Bool {
        let subscription = generation.subscription
        guard subscription.kind == .query, generation.database == change.name.database,
            subscription.reasons.contains(change.reason),
            subscription.zone == nil || subscription.zone == change.name.zone
        else { return false }
        guard let filter = subscription.predicate?.filters.first else { return true }
        guard case .scalar(.int64(let least)) = filter.operand,
            case .scalar(.int64(let value))? = change.record.value(of: PushWorld.filtered)
        else { return false }
        return value >= least
    }

    /// What a follower must have been told and was not; nil: nothing.
    ///
    /// - Parameters:
    ///   - isOwed: whether its owner might read the change from then until now.
    ///   - isTold: whether it was told of the change, or of a zone through this tag.
    func missing(
        of name: FollowerName, isOwed: (Change) -> Bool,
        isTold: (_ generation: Int, ChangeName) -> Bool
    ) -> String? {
        guard let follower = self.followers[name] else { return nil }
        for number in self.currentGenerations.values.sorted() {
            guard let generation = self.generations[number], generation.end == nil,
                generation.user == follower.user, generation.database == name.database
            else { continue }
            let first = max(generation.since, follower.begun)
            if generation.subscription.kind == .query {
                for change in self.changes
                where change.index > first && Self.matches(generation, change)
                    && isOwed(change) && !isTold(number, change.name)
                {
                    return "\(generation.subscription.id) \(number) for \(change.name.record) at "
                        + "\(change.name.tag.text), entry \(change.index)"
                }
                continue
            }
            var newest: [String: Mark] = [:]
            for mark in self.marks[name.database] ?? [] where mark.index > first {
                newest[mark.zone] = mark
            }
            for (zone, mark) in newest.sorted(by: { $0.key < $1.key })
            where generation.subscription.zone == nil || generation.subscription.zone == zone {
                let change = ChangeName(
                    database: name.database, zone: zone, record: "", tag: mark.tag)
                if !isTold(number, change) {
                    return "\(generation.subscription.id) \(number) for \(zone) through "
                        + "\(mark.tag.text), entry \(mark.index)"
                }
            }
        }
        return nil
    }

    func change(_ name: ChangeName) -> Change? {
        self.changeByName[name].map { self.changes[$0] }
    }
}
