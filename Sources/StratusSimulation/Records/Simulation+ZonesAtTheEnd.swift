import StratusCluster
import StratusModel
import StratusRecords
import StratusStorage

// A database whose zones lie in buckets, read in every way when all is over. The gateway's part is
// played here: it asks the replicas that have applied everything.
extension Simulation {
    func checkZones(_ replicas: [GroupID: Replica]) -> Violation? {
        guard let records, let zones = records.zones else { return nil }
        let database = SimulatedZones.database
        guard
            let home = replicas[zones.group(of: database.home)],
            case .buckets(let bits)? = self.ask(
                .buckets(BucketsAsk(database: database.home, count: database.bucketCount)),
                of: home)
        else { return Violation("Z1 bits", "the home cannot be read") }
        guard bits.mask == zones.noted else {
            return Violation("Z1 bits", "the home has \(bits.mask.raw), not \(zones.noted.raw)")
        }
        for part in database.parts {
            guard let replica = replicas[zones.group(of: part)] else { continue }
            if let violation = self.checkPart(part, bits.mask, replica) { return violation }
        }
        for client in records.clients.indices {
            // From where it stands, and then as somebody who knows nothing.
            for isStranger in [false, true] {
                if isStranger { self.records?.forgetZones(of: client) }
                if let violation = self.walkAll(as: client, bits.mask, replicas) {
                    return Violation(
                        violation.rule, "at the end, client \(client): \(violation.text)")
                }
            }
        }
        return self.checkQueries(replicas)
    }

    /// Whole queries over all zones, with pages of few records.
    private func checkQueries(_ replicas: [GroupID: Replica]) -> Violation? {
        for limit in [2, 5] {
            guard let records, let zones = records.zones else { return nil }
            let items = records.spreadItems(least: -9)
            var query = ZoneWideQuery(
                least: -9, descending: limit == 2, limit: limit, before: items, bugs: self.bugs)
            var progress = ZoneWideQuery.Progress.goesOn
            for _ in 0..<10_000 where progress == .goesOn {
                for number in query.open {
                    let group = zones.group(of: ZoneWideQuery.part(number))
                    // Nobody has come to teach it the schema.
                    if records.ledger(of: group).schemaVersion == 0 { return nil }
                    let answer = replicas[group].flatMap { self.ask(query.ask(number), of: $0) }
                    guard let answer, query.take(answer, of: number) else {
                        return Violation("Z7 queries", "\(String(describing: answer))")
                    }
                }
                progress = query.endLook()
            }
            if progress != .done { return Violation("Z7 queries", "a query has no end") }
            if let problem = query.problem(after: items) {
                return Violation("Z7 queries", "at the end, \(problem)")
            }
        }
        return nil
    }

    /// The zones of one part, and their records.
    private func checkPart(
        _ part: DatabaseID, _ bits: BucketMask, _ replica: Replica
    ) -> Violation? {
        guard let records, let zones = records.zones else { return nil }
        let ledger = records.ledger(of: zones.group(of: part))
        guard case .zones(let answers)? = self.ask(.zones(part, names: nil), of: replica) else {
            return Violation("Z2 buckets", "\(part) cannot be read")
        }
        var found: [String: ZoneIncarnation] = [:]
        for case .zone(let zone) in answers where !zone.isDefault {
            found[zone.name] = zone.incarnation
            guard let bucket = part.zoneBucket, bucket.holds(zone.name) else {
                return Violation("Z2 buckets", "\(zone.name) is in \(part)")
            }
            guard bits.contains(Int(bucket.number)) else {
                return Violation("Z1 bits", "\(zone.name) is in a bucket that is not in use")
            }
        }
        guard found == ledger.databases[part]?.last.zones ?? [:] else {
            return Violation("I-4 nothing lost", "\(part) ends with zones \(found.keys.sorted())")
        }
        for name in found.keys.sorted() {
            let place = RecordModel.Place(database: part, zone: name)
            switch self.followAll(RecordMirror(), place, replica) {
            case .failure(let violation): return violation
            case .success(let all):
                if all == ledger.records(in: place) ?? [:] { continue }
                return Violation("I-4 nothing lost", "\(name) ends with other records")
            }
        }
        return nil
    }

    /// The database's feed from where a client stands to its end, with all zones on the way. At
    /// rest its token stands still.
    private func walkAll(
        as client: Int, _ bits: BucketMask, _ replicas: [GroupID: Replica]
    ) -> Violation? {
        var isAtRest = false
        for _ in 0..<1_000 {
            if let violation = self.fetchOwed(by: client, replicas) { return violation }
            guard let zones = self.records?.zones else { return nil }
            let position = zones.mirrors[client]?.position
            let beginnings = self.endOfFeeds()
            var merge = FeedMerge(
                after: position, count: SimulatedZones.database.bucketCount, limit: 3,
                bugs: self.bugs)
            for question in merge.questions(bits) {
                let part = SimulatedZones.database.part(question.number)
                guard let replica = replicas[zones.group(of: part)] else { continue }
                let answer = self.ask(
                    .databaseChanges(
                        DatabaseChangesAsk(
                            database: part, after: question.after, limit: question.limit)),
                    of: replica)
                switch answer {
                case .databaseChanges(let page)?: merge.take(page, of: question.number)
                case .zoneRefused(.positionExpired)? where position != nil:
                    let base = zones.mirrors[client]?.bases[question.number] ?? 0
                    let ledger = self.records?.ledger(of: zones.group(of: part))
                    guard ledger?.mayRefuse(base, of: part) == true else {
                        return Violation("Z5 pages", "bucket \(question.number) has expired")
                    }
                    self.records?.forgetZones(of: client)
                default: return Violation("Z5 pages", "\(String(describing: answer))")
                }
                if self.records?.zones?.mirrors[client] == nil, position != nil { break }
            }
            if self.records?.zones?.mirrors[client] == nil, position != nil { continue }
            let page = merge.page()
            if let violation = self.records?.takePage(page, of: client, beginnings: beginnings) {
                return violation
            }
            guard !page.moreComing else { continue }
            if isAtRest {
                return page.changes.isEmpty && page.position == position
                    ? nil : Violation("Z5 pages", "nothing happened, and the token changes")
            }
            isAtRest = true
        }
        return Violation("Z5 pages", "the feed has no end")
    }

    private func endOfFeeds() -> [DatabaseID: ZoneRequest.Beginning] {
        guard let records, let zones = records.zones else { return [:] }
        var beginnings: [DatabaseID: ZoneRequest.Beginning] = [:]
        for part in SimulatedZones.database.parts {
            let turn = records.ledger(of: zones.group(of: part)).turn(of: part)
            beginnings[part] = ZoneRequest.Beginning(floor: turn)
        }
        return beginnings
    }

    /// Fetches the zones that the feed has named, and compares them with what there is.
    private func fetchOwed(by client: Int, _ replicas: [GroupID: Replica]) -> Violation? {
        while let feed = self.records?.owedZone(of: client) {
            guard let replica = replicas[feed.group], let records = self.records else { return nil }
            let mirror = records.clients[client].mirrors[feed] ?? RecordMirror()
            switch self.follow(mirror, feed.place, replica) {
            case .failure(let violation): return violation
            case .success(let mirror):
                self.records?.clients[client].mirrors[feed] = mirror
                if mirror.records == records.ledger(of: feed.group).records(in: feed.place) ?? [:] {
                    continue
                }
                return Violation("I-5 feed", "\(feed.place.zone) has other records")
            }
        }
        return nil
    }
}
