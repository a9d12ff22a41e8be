import StratusCoding
import StratusDoubles
import StratusModel
import StratusRecords

// What a private database whose zones lie in buckets decides and answers.
extension SimulatedRecords {
    // MARK: The log

    /// An entry that no replica has applied before: Z1 and Z2.
    mutating func applyToZones(_ entry: Entry, _ outcome: Outcome, of group: GroupID) -> Violation?
    {
        guard self.zones != nil, entry.kind == .command, outcome.verdict == .decided,
            let command = try? Command(decoding: entry.payload), command.kind == .records,
            let body = try? RecordCommand(decoding: command.body, container: command.container),
            SimulatedZones.isPart(body.database),
            let decided = try? RecordOutcome(decoding: outcome.body, detail: outcome.detail)
        else { return nil }
        switch (body, decided) {
        case (.noteBuckets(let note), .bucketsNoted(let mask)):
            self.zones?.note(note.buckets.mask)
            guard let noted = self.zones?.noted, noted.contains(mask) else {
                return Violation("Z1 bits", "the home has bits \(mask.raw) that nobody noted")
            }
            // A note that is repeated is answered as it was.
            return mask.contains(note.buckets.mask)
                ? nil : Violation("Z1 bits", "\(note.buckets.mask.raw) is noted as \(mask.raw)")
        case (.modifyZones(let modify), .zones(let results)):
            for (operation, result) in zip(modify.operations, results) {
                guard case .created(let summary) = result,
                    summary.incarnation == operation.drawnIncarnation
                else { continue }
                self.count("zones made in buckets")
                guard let bucket = modify.database.zoneBucket, bucket.holds(operation.zone) else {
                    return Violation(
                        "Z2 buckets", "\(operation.zone) is made in \(modify.database)")
                }
                if self.zones?.noted.contains(Int(bucket.number)) != true {
                    return Violation(
                        "Z1 bits",
                        "\(operation.zone) is made in bucket \(bucket.number), whose bit the home "
                            + "does not have")
                }
            }
            return nil
        default: return nil
        }
    }

    // MARK: Outcomes

    private static func value(_ incarnation: ZoneIncarnation) -> Int {
        Int(truncatingIfNeeded: incarnation.raw)
    }

    /// Z4: a zone's name is a register that holds its incarnation.
    private static func event(
        _ zone: String, _ operation: LinearizabilityChecker.Operation, in group: GroupID? = nil,
        calledAt: Int64? = nil
    ) -> RegisterEvent? {
        SimulatedZones.register(of: zone).map {
            RegisterEvent(register: $0, operation: operation, group: group, calledAt: calledAt)
        }
    }

    mutating func hearOfZones(
        _ outcome: RecordOutcome, of body: RecordCommand, in group: GroupID, by client: Int,
        events: inout [RegisterEvent]
    ) -> Violation? {
        switch (body, outcome) {
        case (_, .refused(let refusal)) where refusal.reason == .zoneElsewhere:
            return Violation("Z2 buckets", "\(refusal.subject) is asked for where it is not")
        case (.noteBuckets, .refused):
            return Violation("Z1 bits", "the home refuses a note: \(outcome)")
        case (.modifyZones(let modify), .zones(let results)):
            for (operation, result) in zip(modify.operations, results) {
                let effect: LinearizabilityChecker.Operation
                switch result {
                case .created(let summary) where summary.incarnation == operation.drawnIncarnation:
                    effect = .compareAndSet(expected: nil, value: Self.value(summary.incarnation))
                case .created(let summary): effect = .read(Self.value(summary.incarnation))
                case .deleted: effect = .write(nil)
                case .refused(.notFound): effect = .read(nil)
                case .refused: continue
                }
                events += [Self.event(operation.zone, effect)].compactMap(\.self)
            }
        case (.noteBuckets(let note), .bucketsNoted(let mask)):
            self.zones?.learn(mask.union(note.buckets.mask), by: client)
        case (.eraseDatabase(let erase), .erased(let progress)):
            events += self.erasureEvents(erase.database)
            if progress.hasMore, let question = self.zones?.requests[client]?.asked {
                self.zones?.requests[client]?.left.insert(question, at: 0)
            }
        default: break
        }
        return self.advance(client, events: &events)
    }

    private func erasureEvents(_ part: DatabaseID) -> [RegisterEvent] {
        SimulatedZones.names.filter { SimulatedZones.database.part(of: $0) == part }.compactMap {
            Self.event($0, .write(nil))
        }
    }

    /// The possible effects on zones of a command of unknown outcome.
    func possibleZoneEvents(of work: RecordWork) -> [RegisterEvent] {
        guard case .command(let body, _) = work, SimulatedZones.isPart(body.database) else {
            return []
        }
        switch body {
        case .modifyZones(let modify):
            return modify.operations.compactMap {
                Self.event(
                    $0.zone,
                    $0.kind == .create
                        ? .compareAndSet(expected: nil, value: Self.value($0.drawnIncarnation))
                        : .write(nil))
            }
        case .eraseDatabase(let erase): return self.erasureEvents(erase.database)
        default: return []
        }
    }

    // MARK: Answers

    mutating func hearOfZones(
        _ answer: RecordAnswer, to question: ZoneRequest.Question, by client: Int,
        events: inout [RegisterEvent]
    ) -> Violation? {
        guard let request = self.zones?.requests[client], let noted = self.zones?.noted else {
            return nil
        }
        switch (question, answer) {
        case (.home, .buckets(let answer)):
            if case .otherLayout = request.kind {
                guard answer.mask.isEmpty else {
                    return Violation(
                        "Z2 buckets", "the home answers \(answer.mask.raw) for another layout")
                }
            } else {
                guard noted.contains(answer.mask), answer.mask.contains(request.told) else {
                    return Violation(
                        "Z1 bits",
                        "the home answers \(answer.mask.raw), it has committed \(noted.raw) and "
                            + "told \(request.told.raw)")
                }
                self.zones?.learn(answer.mask, by: client)
                self.zones?.requests[client]?.hearOfHome(answer.mask)
            }
        case (.part(let number), .zones(let found)):
            for case .zone(let zone) in found
            where !zone.isDefault && SimulatedZones.database.number(of: zone.name) != number {
                return Violation("Z2 buckets", "\(zone.name) is listed in bucket \(number)")
            }
            self.read(found, in: number, of: request, events: &events)
        case (.part, _) where request.query != nil, (.homePart, _) where request.query != nil:
            var number = 0
            if case .part(let bucket) = question { number = bucket + 1 }
            guard self.zones?.requests[client]?.query?.take(answer, of: number) == true else {
                // The partition has no schema yet.
                self.zones?.requests[client] = nil
                return nil
            }
        case (.part(let number), .databaseChanges(let page)):
            self.zones?.requests[client]?.merge?.take(page, of: number)
        case (.part(let number), .zoneRefused(.positionExpired)):
            return self.hearOfExpiry(in: number, by: client)
        default: return Violation("I-5 zones", "\(question) is answered: \(answer)")
        }
        return self.advance(client, events: &events)
    }

    /// What an answer says of the zones of a bucket.
    private func read(
        _ found: [ZoneAnswer], in number: Int, of request: ZoneRequest,
        events: inout [RegisterEvent]
    ) {
        var incarnations: [String: Int] = [:]
        for case .zone(let zone) in found {
            incarnations[zone.name] = Self.value(zone.incarnation)
        }
        for name in SimulatedZones.names where SimulatedZones.database.number(of: name) == number {
            if case .lookup(let wanted) = request.kind, wanted != name { continue }
            events += [Self.event(name, .read(incarnations[name]))].compactMap(\.self)
        }
    }

    private mutating func hearOfExpiry(in number: Int, by client: Int) -> Violation? {
        guard let zones = self.zones else { return nil }
        self.count("expired positions in parts")
        if zones.bugs.contains(.expiredPartRestarted) {
            self.zones?.requests[client]?.restarted.insert(number)
            self.zones?.requests[client]?.left.insert(.part(number), at: 0)
            self.zones?.requests[client]?.asked = nil
            return nil
        }
        let mirror = zones.mirrors[client]
        let part = SimulatedZones.database.part(number)
        self.forgetZones(of: client)
        self.zones?.requests[client] = nil
        if let mirror,
            self.ledger(of: zones.group(of: part)).mayRefuse(mirror.bases[number] ?? 0, of: part)
        {
            return nil
        }
        return Violation(
            "I-5 database feed",
            "bucket \(number): its position has expired: \(String(describing: mirror?.position))")
    }

    /// The client begins the whole database from nothing.
    mutating func forgetZones(of client: Int) {
        guard let zones = self.zones else { return }
        self.zones?.mirrors[client] = nil
        for part in SimulatedZones.database.parts {
            self.clients[client].forget(zones.feed(part))
        }
    }

    // MARK: The end of a request

    private mutating func advance(_ client: Int, events: inout [RegisterEvent]) -> Violation? {
        self.zones?.requests[client]?.asked = nil
        guard let request = self.zones?.requests[client], request.left.isEmpty else { return nil }
        self.zones?.requests[client] = nil
        switch request.kind {
        case .modify, .lookup, .otherLayout: return nil
        case .query(let least): return self.endLook(of: request, least: least, by: client)
        case .list:
            self.count("lists of zones in parts")
            // Who was not asked has none.
            for name in SimulatedZones.names {
                guard let zones = self.zones,
                    let number = SimulatedZones.database.number(of: name),
                    !request.mask.contains(number)
                else { continue }
                let group = zones.group(of: SimulatedZones.database.part(number))
                events += [
                    Self.event(name, .read(nil), in: group, calledAt: request.calledAt)
                ].compactMap(\.self)
            }
            return nil
        case .walk:
            guard let page = request.merge?.page() else { return nil }
            self.count("pages of parted feeds")
            return self.takePage(page, of: client, beginnings: request.beginnings)
        case .erase:
            self.count("erasures of parts")
            return self.checkErasure(request.beginnings)
        }
    }

    /// All parts have answered one look of a query: Z7.
    private mutating func endLook(
        of request: ZoneRequest, least: Int64, by client: Int
    ) -> Violation? {
        var request = request
        guard let progress = request.query?.endLook() else { return nil }
        switch progress {
        case .done:
            self.count("queries over parts")
            return request.query?.problem(after: self.spreadItems(least: least)).map {
                Violation("Z7 queries", $0)
            }
        case .goesOn, .stuck:
            request.beginLook()
            self.zones?.requests[client] = request
            return nil
        }
    }

    /// Z6: whatever was there when an erasure began is gone.
    private func checkErasure(
        _ beginnings: [DatabaseID: ZoneRequest.Beginning]
    ) -> Violation? {
        guard let zones = self.zones else { return nil }
        for part in SimulatedZones.database.parts {
            guard let before = beginnings[part],
                let last = self.ledger(of: zones.group(of: part)).databases[part]?.last,
                last.erasureCount == before.erasureCount
            else { continue }
            for name in before.zones.keys.sorted() where last.zones[name] == before.zones[name] {
                return Violation("Z6 erasure", "\(name) is still there")
            }
        }
        return nil
    }

    /// A client takes a page of the database's feed: Z3 and Z5.
    mutating func takePage(
        _ page: FeedMerge.Page, of client: Int,
        beginnings: [DatabaseID: ZoneRequest.Beginning]
    ) -> Violation? {
        guard let zones = self.zones else { return nil }
        if zones.mirrors[client] == nil { self.forgetZones(of: client) }
        var mirror = zones.mirrors[client] ?? SpreadMirror()
        if let problem = mirror.take(page) { return Violation("Z5 pages", problem) }
        self.zones?.mirrors[client] = mirror
        for change in page.changes {
            self.clients[client].pass(change, to: zones.feed(change.name))
        }
        if let problem = self.problem(with: page, mirror, beginnings) {
            return Violation("Z3 database feed", "client \(client): \(problem)")
        }
        guard !page.moreComing else { return nil }
        self.count("walks of parted feeds")
        for part in SimulatedZones.database.parts {
            guard let number = part.zoneBucket?.number,
                let turn = page.position[Int(number)]?.turn
            else { continue }
            self.raise(.feed(of: part), in: zones.group(of: part), to: turn)
        }
        return nil
    }

    private func problem(
        with page: FeedMerge.Page, _ mirror: SpreadMirror,
        _ beginnings: [DatabaseID: ZoneRequest.Beginning]
    ) -> String? {
        guard let zones = self.zones else { return nil }
        let database = SimulatedZones.database
        for change in page.changes {
            guard let zone = change.zone, !change.isDeleted else { continue }
            let ledger = self.ledger(of: zones.group(of: database.part(of: change.name)))
            guard let history = ledger.history(zone.incarnation),
                zone.lastTag.raw <= history.lastTag
            else { return "nobody made \(change.name) as it is at \(zone)" }
        }
        if page.moreComing { return nil }
        for number in 0..<database.bucketCount {
            let part = database.part(number)
            let history =
                self.ledger(of: zones.group(of: part)).databases[part] ?? DatabaseHistory()
            let floor = beginnings[part]?.floor ?? 0
            let has = mirror.zones(in: number, of: database)
            let turn = page.position[number]?.turn ?? 0
            if turn == 0 {
                if has.isEmpty, history.wasEmpty(since: floor) { continue }
                return "bucket \(number) comes without its zones: it was at \(floor) before"
            }
            if turn < floor { return "bucket \(number) is at \(turn), it was at \(floor) before" }
            guard let state = history.state(at: turn) else {
                return "bucket \(number) is at \(turn), of \(history.turn)"
            }
            if state.zones != has {
                return "who followed bucket \(number) has \(has.keys.sorted()) at \(turn), there "
                    + "are \(state.zones.keys.sorted())"
            }
        }
        return nil
    }
}
