import StratusModel
import StratusRecords

/// What a client does next in a database whose zones lie in buckets.
struct ZoneStep {
    var group: GroupID
    var work: RecordWork
    /// Nil: one of its own.
    var identity: RequestIdentity?
}

// What clients ask gateways of a private database whose zones lie in buckets, and what gateways ask
// its parts.
extension SimulatedRecords {
    mutating func zoneStep(
        of client: Int, at now: Int64, using random: inout SeededGenerator
    ) -> ZoneStep? {
        guard let zones = self.zones else { return nil }
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        // A question that was never answered ends the request, and so may anything else.
        if let request = zones.requests[client],
            request.asked != nil || draw(request.query == nil ? 20 : 200) == 0
        {
            self.zones?.die(client, forgets: draw(2) == 0)
        }
        if self.zones?.requests[client] == nil {
            if let step = self.begin(of: client, at: now, using: &random) { return step }
        }
        guard var request = self.zones?.requests[client], !request.left.isEmpty else { return nil }
        let question = request.left.removeFirst()
        request.asked = question
        if question == .home { request.told = zones.told }
        let step = self.step(question, of: request, using: &random)
        if case .command(let body, _)? = step?.work, let own = body.database, let step,
            body.needsSchema, !self.workload.schooled.contains(step.group)
        {
            // The partition learns the schema just in time; the request begins again.
            self.zones?.requests[client] = nil
            return ZoneStep(
                group: zones.group(of: own), work: self.workload.newSchema(), identity: nil)
        }
        self.zones?.requests[client] = request
        return step
    }

    /// Draws a request.
    ///
    /// - Returns: the step itself, for what takes one only.
    private mutating func begin(
        of client: Int, at now: Int64, using random: inout SeededGenerator
    ) -> ZoneStep? {
        guard let zones = self.zones else { return nil }
        func draw(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }
        let name = SimulatedZones.names[draw(SimulatedZones.names.count)]
        let known = zones.known(to: client)
        let numbers = known.numbers(below: SimulatedZones.database.bucketCount)
        var request: ZoneRequest
        switch draw(24) {
        case 0..<5: request = self.modifyZones(by: client, at: now, using: &random)
        case 5:
            request = ZoneRequest(kind: .otherLayout, calledAt: now, left: [.home], mask: known)
        case 6..<8: request = ZoneRequest(kind: .list, calledAt: now, left: [], mask: known)
        case 8..<10:
            guard let number = SimulatedZones.database.number(of: name) else { return nil }
            request = ZoneRequest(
                kind: .lookup(name), calledAt: now, left: [.part(number)], mask: known)
        case 10..<16: return self.single(name, by: client, using: &random)
        case 17 where draw(2) == 0:
            let least = Int64(draw(10))
            request = ZoneRequest(
                kind: .query(least: least), calledAt: now, left: [], mask: known)
            request.query = ZoneWideQuery(
                least: least, descending: draw(2) == 0, limit: 2 + draw(6),
                before: self.spreadItems(least: least), bugs: zones.bugs)
            request.beginLook()
        case 16 where draw(6) == 0:
            request = ZoneRequest(kind: .erase, calledAt: now, left: [.home], mask: BucketMask())
            if zones.bugs.contains(.erasureStopsAtHome) { request.left = [.homePart] }
        default:
            if let owed = self.owedZone(of: client) { return self.fetch(owed, by: client) }
            request = ZoneRequest(kind: .walk, calledAt: now, left: [], mask: known)
            let position = zones.mirrors[client]?.position
            request.mask = known.union(position?.mask ?? BucketMask())
            request.merge = FeedMerge(
                after: position, count: SimulatedZones.database.bucketCount, limit: 1 + draw(5),
                bugs: zones.bugs)
        }
        switch request.kind {
        case .list, .walk:
            let asked = request.mask.numbers(below: SimulatedZones.database.bucketCount)
            request.left = asked.map(ZoneRequest.Question.part)
            if !zones.bugs.contains(.maskFromMemory) || numbers.isEmpty {
                request.left.insert(.home, at: draw(request.left.count + 1))
            }
        case .modify, .lookup, .query, .otherLayout, .erase: break
        }
        for part in SimulatedZones.database.parts {
            let group = zones.group(of: part)
            let last = self.ledger(of: group).databases[part]?.last
            request.beginnings[part] = ZoneRequest.Beginning(
                floor: self.floor(of: .feed(of: part), in: group) ?? 0, zones: last?.zones ?? [:],
                erasureCount: last?.erasureCount ?? 0)
        }
        self.zones?.requests[client] = request
        return nil
    }

    /// Zones to be made and deleted, in one request: the bits come first.
    private mutating func modifyZones(
        by client: Int, at now: Int64, using random: inout SeededGenerator
    ) -> ZoneRequest {
        let names = SimulatedZones.names.shuffled(using: &random).prefix(
            Int.random(in: 1...3, using: &random))
        let operations = names.map { name in
            ModifyZones.Operation(
                Int.random(in: 0..<3, using: &random) > 0 ? .create : .delete, zone: name,
                drawnIncarnation: ZoneIncarnation(random.next()))
        }
        let database = SimulatedZones.database
        let wanted = BucketMask(
            of: operations.filter { $0.kind == .create }.compactMap { database.number(of: $0.zone) }
        )
        let numbers = Set(names.compactMap { database.number(of: $0) }).sorted()
        var request = ZoneRequest(
            kind: .modify(operations), calledAt: now,
            left: numbers.shuffled(using: &random).map(ZoneRequest.Question.part),
            mask: BucketMask(of: numbers))
        let bugs = self.zones?.bugs ?? PlantedBugs()
        if bugs.contains(.partIdentityShared) {
            request.identity = RequestIdentity(high: random.next(), low: random.next())
        }
        if let known = self.zones?.known(to: client), !known.contains(wanted) {
            let position = bugs.contains(.zoneBeforeBit) ? request.left.count : 0
            request.left.insert(.note(wanted), at: position)
        }
        return request
    }

    /// A save, a look-up or a page in one zone, which takes one step.
    private mutating func single(
        _ zone: String, by client: Int, using random: inout SeededGenerator
    ) -> ZoneStep? {
        guard let zones = self.zones else { return nil }
        // The home's default zone is one more zone of the database.
        let isDefault = Int.random(in: 0..<8, using: &random) == 0
        var zone = zone
        // Mostly one that it knows to be there.
        let there = zones.mirrors[client]?.zones.keys.sorted() ?? []
        if Int.random(in: 0..<4, using: &random) > 0 {
            zone = there.randomElement(using: &random) ?? zone
        }
        let place = isDefault ? SimulatedZones.homeDefault : zones.place(of: zone)
        let group = zones.group(of: place.database)
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            return ZoneStep(
                group: group,
                work: RecordWorkload.lookup([RecordWorld.registerName(0)], in: place))
        case 1 where !isDefault:
            // Somebody who knows the zone by its name.
            return self.fetch(zones.feed(zone), by: client)
        default: break
        }
        guard self.workload.schooled.contains(group) else {
            return ZoneStep(group: group, work: self.workload.newSchema())
        }
        if Bool.random(using: &random) {
            let work = self.workload.saveTied(in: place, of: group, using: &random)
            return ZoneStep(group: group, work: work)
        }
        return ZoneStep(
            group: group,
            work: self.workload.modify(
                place, in: group, for: self.clients[client], using: &random))
    }

    /// A zone that is to be fetched before the next page of the database's feed.
    func owedZone(of client: Int) -> RecordClient.Feed? {
        guard let zones = self.zones else { return nil }
        for part in SimulatedZones.database.parts {
            let feed = zones.feed(part)
            if let place = self.clients[client].owedZones(of: feed).first {
                return RecordClient.Feed(group: feed.group, place: place)
            }
        }
        return nil
    }

    private func fetch(_ feed: RecordClient.Feed, by client: Int) -> ZoneStep {
        ZoneStep(
            group: feed.group,
            work: RecordWorkload.changes(
                feed.place, after: self.clients[client].mirrors[feed]?.position, limit: 7))
    }

    /// The question to one part.
    private func step(
        _ question: ZoneRequest.Question, of request: ZoneRequest,
        using random: inout SeededGenerator
    ) -> ZoneStep? {
        guard let zones = self.zones else { return nil }
        let database = SimulatedZones.database
        let user = RecordWorld.user(of: database.home)
        let part: DatabaseID
        switch question {
        case .home, .note, .homePart: part = database.home
        case .part(let number): part = database.part(number)
        }
        func step(_ work: RecordWork, _ identity: RequestIdentity? = nil) -> ZoneStep {
            ZoneStep(group: zones.group(of: part), work: work, identity: identity)
        }
        func ask(_ ask: RecordQuery.Ask) -> ZoneStep { step(.query(ask, user)) }
        switch (question, request.kind) {
        case (.note(let mask), _):
            let note = NoteBuckets(
                database: part, buckets: ZoneBuckets(count: database.bucketCount, mask: mask))
            return step(.command(.noteBuckets(note), user))
        case (.home, .otherLayout):
            return ask(.buckets(BucketsAsk(database: part, count: 2 * database.bucketCount)))
        case (.home, _):
            return ask(.buckets(BucketsAsk(database: part, count: database.bucketCount)))
        case (_, .erase):
            return step(
                .command(.eraseDatabase(EraseDatabase(database: part)), RecordWorld.system))
        case (.part(let number), .modify(let operations)):
            let own = operations.filter { database.number(of: $0.zone) == number }
            // Where its gateway believes them to be.
            let target = own.first.map { zones.part(of: $0.zone) } ?? part
            return ZoneStep(
                group: zones.group(of: target),
                work: .command(
                    .modifyZones(ModifyZones(database: target, operations: own)), user),
                identity: request.identity)
        case (.part(let number), .query): return request.query.map { ask($0.ask(number + 1)) }
        case (.homePart, .query): return request.query.map { ask($0.ask(0)) }
        case (.part, .list): return ask(.zones(part, names: nil))
        case (.part, .lookup(let name)): return ask(.zones(part, names: [name]))
        case (.part(let number), .walk):
            let mask = request.mask.union(BucketMask(of: [number]))
            guard
                let question = request.merge?.questions(mask).first(where: { $0.number == number })
            else { return nil }
            let isAnew = request.restarted.contains(number)
            return ask(
                .databaseChanges(
                    DatabaseChangesAsk(
                        database: part, after: isAnew ? nil : question.after,
                        limit: question.limit)))
        case (.part, .otherLayout), (.homePart, _): return nil
        }
    }
}

extension RecordCommand {
    /// Whether a gateway teaches the partition the container's schema before it.
    fileprivate var needsSchema: Bool {
        switch self {
        case .modifyZones, .modifyRecords: true
        default: false
        }
    }
}
