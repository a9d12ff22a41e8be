import StratusDoubles
import StratusModel
import StratusRecords

/// The additional state of a run whose groups hold records.
struct SimulatedRecords {
    var workload: RecordWorkload
    var clients: [RecordClient]
    /// Nil where nothing is spread over groups.
    var buckets: SimulatedBuckets?
    /// Nil where no private database lies in buckets.
    var zones: SimulatedZones?
    private var ledgers: [GroupID: RecordLedger]
    /// How far each zone had come, as somebody was told. Nil: nobody has seen it.
    private var floors: [RecordClient.Feed: UInt64] = [:]
    private(set) var counts: [String: Int] = [:]

    init(_ options: SimulationOptions, groups: [GroupID], bugs: PlantedBugs) {
        self.workload = RecordWorkload(options)
        self.clients = Array(repeating: RecordClient(), count: options.clientCount)
        self.buckets = SimulatedBuckets(options, groups: groups)
        self.zones = SimulatedZones(options, groups: groups, bugs: bugs)
        self.ledgers = [:]
        for group in groups {
            self.ledgers[group] = RecordLedger(
                deletedZoneCountMax: RecordWorld.deletedZoneCountMax(of: group))
        }
    }

    mutating func apply(_ entry: Entry, _ outcome: Outcome, of group: GroupID) -> Violation? {
        self.ledgers[group]?.apply(entry, outcome) ?? self.applyToZones(entry, outcome, of: group)
    }

    func ledger(of group: GroupID) -> RecordLedger { self.ledgers[group] ?? RecordLedger() }

    /// How far an answer must be, if it was asked for now.
    func floor(of work: RecordWork, in group: GroupID) -> UInt64? {
        work.place.flatMap { self.floor(of: $0, in: group) }
    }

    func floor(of place: RecordModel.Place, in group: GroupID) -> UInt64? {
        self.floors[RecordClient.Feed(group: group, place: place)]
    }

    mutating func raise(_ place: RecordModel.Place, in group: GroupID, to tag: UInt64) {
        let feed = RecordClient.Feed(group: group, place: place)
        self.floors[feed] = max(self.floors[feed] ?? 0, tag)
    }

    mutating func count(_ kind: String) { self.counts[kind, default: 0] += 1 }

    /// The counts of the ledgers and the readers.
    var totals: [String: Int] {
        self.ledgers.values.reduce(into: self.counts) { $0.merge($1.counts) { $0 + $1 } }
    }

    // MARK: Outcomes

    /// The effect of one client operation on a register.
    struct RegisterEvent {
        var register: Int
        var operation: LinearizabilityChecker.Operation
        /// Nil: of the group that was asked.
        var group: GroupID?
        /// Nil: when the client asked. A request of several questions may say earlier.
        var calledAt: Int64?
    }

    /// A client hears what became of its command.
    ///
    /// - Parameter events: of each register that the command names, as far as the outcome says.
    mutating func hear(
        _ outcome: Outcome, of work: RecordWork, as identity: RequestIdentity, deadline: Int64,
        in group: GroupID, by client: Int, events: inout [RegisterEvent]
    ) -> Violation? {
        if let problem = self.ledger(of: group).check(outcome, of: identity) {
            return Violation("I-4 exactly once", problem)
        }
        if case .command(let body, _) = work, let database = body.changedDatabase {
            let turn = self.ledger(of: group).turn(after: identity)
            self.raise(.feed(of: database), in: group, to: turn)
        }
        switch (work, try? RecordOutcome(decoding: outcome.body)) {
        case (.command(.modifyRecords(let modify), _), .records(let modified)?):
            guard let place = work.place else { return nil }
            self.raise(place, in: group, to: modified.zone.lastTag.raw)
            for (operation, result) in zip(modify.operations, modified.results) {
                let name = RecordClient.Name(
                    group: group, place: place, record: operation.recordName)
                if let register = RecordWorld.register(operation.recordName, in: place),
                    let event = self.event(operation, result, self.clients[client].sightings[name])
                {
                    events.append(RegisterEvent(register: register, operation: event))
                }
                if case .saved(let saved) = result {
                    self.clients[client].sightings[name] = RecordClient.Sighting(
                        tag: saved.tag.text, number: operation.number)
                } else {
                    self.clients[client].sightings[name] = nil
                }
            }
        case (.command(.modifyZones(let modify), _), .zones(let results)?):
            for (operation, result) in zip(modify.operations, results) {
                guard case .created(let summary) = result else { continue }
                self.raise(
                    RecordModel.Place(database: modify.database, zone: operation.zone), in: group,
                    to: summary.lastTag.raw)
                switch operation.zone {
                case RecordWorld.shelves.zone: self.workload.prepared.insert(group)
                case RecordWorld.deep.zone: self.workload.deepened.insert(group)
                default: break
                }
            }
        case (.command(.modifyDocuments, _), .documents(let results)?):
            self.workload.documents?.hear(results)
        case (.command(.schema, _), .schema?): self.workload.schooled.insert(group)
        case (.command(.reserveReferences(let reserve), _), .reserved(let refusals)?):
            self.buckets?.hear(
                refusals, reserve, by: client, as: identity, deadline: deadline)
        default: break
        }
        guard case .command(let body, _) = work, SimulatedZones.isPart(body.database),
            let decided = try? RecordOutcome(decoding: outcome.body)
        else { return nil }
        return self.hearOfZones(decided, of: body, in: group, by: client, events: &events)
    }

    /// The possible effects on registers of a command of unknown outcome.
    func possibleEvents(of work: RecordWork, in group: GroupID, by client: Int) -> [RegisterEvent] {
        guard case .command(.modifyRecords(let modify), _) = work, let place = work.place else {
            return self.possibleZoneEvents(of: work)
        }
        return modify.operations.compactMap { operation in
            let name = RecordClient.Name(
                group: group, place: place, record: operation.recordName)
            guard let register = RecordWorld.register(operation.recordName, in: place),
                let event = self.event(
                    operation, nil, self.clients[client].sightings[name])
            else { return nil }
            return RegisterEvent(register: register, operation: event)
        }
    }

    /// - Parameters:
    ///   - result: nil where nobody knows.
    ///   - known: what the client knew when it asked.
    /// - Returns: nil for what says nothing of the register.
    private func event(
        _ operation: RecordOperation, _ result: ModifiedRecords.Result?,
        _ known: RecordClient.Sighting?
    ) -> LinearizabilityChecker.Operation? {
        var expected: Int?
        if operation.kind.checksTag {
            // A tag that no record ever had fits none.
            expected = known?.tag == operation.changeTag ? known?.number : -1
        }
        let isConditional = operation.kind.checksTag || operation.kind == .create
        switch result {
        case .saved, .deleted, nil:
            return isConditional
                ? .compareAndSet(expected: expected, value: operation.number)
                : .write(operation.number)
        case .refused(let refusal):
            switch refusal.reason {
            case .exists, .tagMismatch, .notFound: return .failedCompareAndSet(expected: expected)
            default: return nil
            }
        case .left: return nil
        }
    }

    // MARK: Answers

    /// A client hears an answer.
    ///
    /// - Parameters:
    ///   - floor: how far the zone had come when it asked.
    ///   - events: of each register that it saw.
    mutating func hear(
        _ answer: QueryAnswer, to work: RecordWork, in group: GroupID, by client: Int,
        floor: UInt64?, events: inout [RegisterEvent]
    ) -> Violation? {
        guard case .query(let ask, _) = work else { return nil }
        guard let answer = try? RecordAnswer(decoding: answer.body) else {
            return Violation("I-5 records", "an answer does not decode")
        }
        if let question = self.zones?.requests[client]?.asked, ask.isOfParts {
            return self.hearOfZones(answer, to: question, by: client, events: &events)
        }
        guard let place = work.place else { return nil }
        func violation(_ rule: String, _ text: String) -> Violation {
            Violation(rule, "\(place.zone) as client \(client) is told: \(text)")
        }
        if answer.saysNotFound {
            self.clients[client].mirrors[RecordClient.Feed(group: group, place: place)] = nil
            return floor == nil || RecordWorld.comesAndGoes(place)
                ? nil : violation("I-4 nothing lost", "it is not there")
        }
        switch (ask, answer) {
        case (.lookup(let ask), .lookup(let found)):
            self.counts["looked up", default: 0] += ask.names.count
            let problem = self.check(found.zone, of: place, in: group, floor) { records in
                for (name, item) in zip(ask.names, found.items)
                where item != .deferred && item.record != records[name] {
                    return "\(name) is \(item), not \(String(describing: records[name]))"
                }
                return nil
            }
            for (name, item) in zip(ask.names, found.items) where item != .deferred {
                self.see(name, item.record, in: place, of: group, by: client, events: &events)
            }
            return problem.map { violation("I-5 records", $0) }
        case (.page(let ask), .page(let page)):
            self.counts["queries", default: 0] += 1
            let problem = self.check(page.zone, of: place, in: group, floor) { records in
                Self.check(page, of: ask, records)
            }
            return problem.map { violation("I-5 query", $0) }
        case (.zoneChanges, .zoneChanges(let page)):
            return self.follow(page, of: place, in: group, by: client, floor).map {
                violation("I-5 feed", $0)
            }
        case (.zoneChanges(let ask), .zoneRefused(.positionExpired)) where ask.after != nil:
            self.counts["expired positions", default: 0] += 1
            self.clients[client].beginAgain(
                RecordClient.Feed(group: group, place: place),
                isSpread: SimulatedZones.isPart(place.database)
                    && self.zones?.mirrors[client]?.zones[place.zone] != nil)
            if RecordWorld.comesAndGoes(place) || RecordWorld.forgetsDeletions(group) {
                return nil
            }
            return violation("I-5 feed", "its position has expired")
        case (.databaseChanges(let ask), .databaseChanges(let page)):
            return self.follow(page, of: ask.database, in: group, by: client, floor ?? 0).map {
                violation("I-5 database feed", $0)
            }
        case (.databaseChanges(let ask), .zoneRefused(.positionExpired)) where ask.after != nil:
            return self.beginAgain(ask.database, in: group, by: client).map {
                violation("I-5 database feed", $0)
            }
        default: return violation("I-5 records", "\(answer)")
        }
    }

    /// Checks a read that reports the position of the zone.
    private mutating func check(
        _ summary: ZoneSummary?, of place: RecordModel.Place, in group: GroupID, _ floor: UInt64?,
        _ body: ([String: Record]) -> String?
    ) -> String? {
        guard let summary else {
            // An erasure takes the default zone of a home with it.
            if RecordWorld.comesAndGoes(place) { return nil }
            return floor ?? 0 == 0 ? body([:]) : "it was never written"
        }
        if summary.lastTag.raw < floor ?? 0 {
            return "it is at \(summary.lastTag.raw), it was at \(floor ?? 0) before"
        }
        self.raise(place, in: group, to: summary.lastTag.raw)
        if !RecordWorld.isModelled(place) { return nil }
        guard let records = self.ledger(of: group).records(in: summary) else {
            return "nobody wrote what is at \(summary)"
        }
        return body(records)
    }

    /// An index must say what a scan would.
    static func check(_ page: QueryPage, of ask: QueryPageAsk, _ records: [String: Record])
        -> String?
    {
        guard case .field(let field)? = ask.predicate.sorts.first?.field,
            case .scalar(.int64(let least))? = ask.predicate.filters.first?.operand
        else { return "nobody asks so" }
        let expected = RecordModel.query(
            Array(records.values), ask.predicate.recordType, field, least: least,
            descending: ask.predicate.sorts.first?.ascending == false)
        let names = page.records.map(\.name)
        if names != expected || page.next != nil {
            return "\(field) >= \(least) has \(names), not \(expected)"
        }
        for record in page.records where record != records[record.name] {
            return "\(field) >= \(least) has \(record), not "
                + "\(String(describing: records[record.name]))"
        }
        return nil
    }

    private mutating func see(
        _ name: String, _ record: Record?, in place: RecordModel.Place, of group: GroupID,
        by client: Int, events: inout [RegisterEvent]
    ) {
        let number = record.flatMap { RecordWorld.number(of: $0) }
        if let register = RecordWorld.register(name, in: place) {
            events.append(RegisterEvent(register: register, operation: .read(number)))
        }
        self.clients[client].sightings[.init(group: group, place: place, record: name)] =
            record.map { RecordClient.Sighting(tag: $0.tag.text, number: number) }
    }

    /// Takes in a page of a feed. A client that has followed to its end has all that was there.
    private mutating func follow(
        _ page: ZoneChangesPage, of place: RecordModel.Place, in group: GroupID, by client: Int,
        _ floor: UInt64?
    ) -> String? {
        self.counts["pages of feeds", default: 0] += 1
        let feed = RecordClient.Feed(group: group, place: place)
        var mirror = self.clients[client].mirrors[feed] ?? RecordMirror()
        let problem = mirror.take(page)
        self.clients[client].mirrors[feed] = mirror
        if let problem { return problem }
        if page.moreComing { return nil }
        let summary = ZoneSummary(
            name: place.zone, incarnation: page.position.incarnation, lastTag: page.position.tag)
        return self.check(summary, of: place, in: group, floor) { records in
            if records == mirror.records { return nil }
            let names = Set(records.keys).union(mirror.records.keys).sorted().filter {
                records[$0] != mirror.records[$0]
            }
            return "who followed has other records at \(page.position.tag.text): "
                + names.joined(separator: " ")
        }
    }
}

extension RecordOperation {
    /// The number it writes; nil if it leaves no record.
    fileprivate var number: Int? {
        let field = self.fields.first { $0.name == RecordWorld.number }
        guard case .scalar(.int64(let number))? = field?.value else { return nil }
        return Int(number)
    }
}

extension RecordQuery.Ask {
    /// A gateway's question about one part of a database in buckets.
    fileprivate var isOfParts: Bool {
        switch self {
        case .buckets(let ask): SimulatedZones.isPart(ask.database)
        case .zones(let database, _): SimulatedZones.isPart(database)
        case .databaseChanges(let ask): SimulatedZones.isPart(ask.database)
        case .page(let ask): ask.zone == nil && SimulatedZones.isPart(ask.database)
        default: false
        }
    }
}

extension RecordAnswer {
    /// That there is no such zone.
    var saysNotFound: Bool {
        switch self {
        case .zoneRefused(.notFound): true
        case .refused(let refusal): refusal.reason == .zoneNotFound
        default: false
        }
    }
}

extension LookupAnswer.Item {
    fileprivate var record: Record? {
        if case .found(let record) = self { record } else { nil }
    }
}
