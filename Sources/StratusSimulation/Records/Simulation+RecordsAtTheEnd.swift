import StratusCluster
import StratusModel
import StratusRecords
import StratusStorage

// Everything of a group that holds records, read in every way when all is over.
extension Simulation {
    func ask(_ ask: RecordQuery.Ask, of replica: Replica) -> RecordAnswer? {
        let query = RecordQuery(principal: RecordWorld.users[0], ask).enveloped()
        guard let answer = try? replica.state.answer(query) else { return nil }
        return try? RecordAnswer(decoding: answer.body)
    }

    /// Everything of a group, read in every way from a replica at the end of the log.
    func checkRecords(_ group: GroupID, _ replica: Replica) -> Violation? {
        guard let records else { return nil }
        let ledger = records.ledger(of: group)
        var found: [RecordModel.Place: [String: Record]] = [:]
        for place in RecordWorld.all {
            let isDefault = place.zone == ZoneID.defaultName
            let all =
                isDefault
                ? self.lookAll(place, records.workload.names, replica)
                : self.followAll(RecordMirror(), place, replica)
            switch all {
            case .failure(let violation):
                return Violation(violation.rule, "\(group): \(place.zone): \(violation.text)")
            case .success(let all): found[place] = all
            }
            if place != RecordWorld.deep, found[place] ?? [:] != ledger.records(in: place) ?? [:] {
                return Violation(
                    "I-4 nothing lost", "\(group): \(place.zone) ends with other records")
            }
            if ledger.schemaVersion > 0,
                let violation = self.checkQueries(place, found[place] ?? [:], replica)
            {
                return Violation(violation.rule, "\(group): \(place.zone): \(violation.text)")
            }
        }
        for (number, client) in records.clients.enumerated() {
            for place in RecordWorld.all {
                let feed = RecordClient.Feed(group: group, place: place)
                guard let mirror = client.mirrors[feed] else { continue }
                switch self.followAll(mirror, place, replica) {
                case .failure(let violation):
                    return Violation(
                        violation.rule,
                        "\(group): \(place.zone) for client \(number): \(violation.text)")
                case .success(let all):
                    if all == found[place] { continue }
                    return Violation(
                        "I-5 feed",
                        "\(group): client \(number) followed \(place.zone) and has other records")
                }
            }
        }
        if let problem = ledger.problem(ofCascadesIn: found[RecordWorld.deep] ?? [:]) {
            return Violation("I-5 cascade", "\(group): \(problem)")
        }
        return self.checkUse(found, group, replica)
    }

    /// The feed from where `mirror` stands to its end.
    private func followAll(
        _ mirror: RecordMirror, _ place: RecordModel.Place, _ replica: Replica
    ) -> Result<[String: Record], Violation> {
        var mirror = mirror
        for _ in 0..<10_000 {
            let answer = self.ask(
                .zoneChanges(
                    ZoneChangesAsk(
                        database: place.database, zone: place.zone, after: mirror.position,
                        limit: 7)), of: replica)
            switch answer {
            case .zoneChanges(let page)?:
                if let problem = mirror.take(page) { return .failure(.init("I-5 feed", problem)) }
                if !page.moreComing { return .success(mirror.records) }
            case .zoneRefused(.positionExpired)? where mirror.position != nil:
                mirror = RecordMirror()
            case .zoneRefused(.notFound)?: return .success([:])
            default: return .failure(.init("I-5 feed", "\(String(describing: answer))"))
            }
        }
        return .failure(.init("I-5 feed", "it has no end"))
    }

    /// A default zone has no feed.
    private func lookAll(
        _ place: RecordModel.Place, _ names: [String], _ replica: Replica
    ) -> Result<[String: Record], Violation> {
        let answer = self.ask(
            .lookup(RecordLookup(database: place.database, zone: place.zone, names: names)),
            of: replica)
        guard case .lookup(let found)? = answer else {
            return .failure(.init("I-5 records", "\(String(describing: answer))"))
        }
        var records: [String: Record] = [:]
        for case (let name, .found(let record)) in zip(names, found.items) {
            records[name] = record
        }
        return .success(records)
    }

    /// By each indexed field, up and down.
    private func checkQueries(
        _ place: RecordModel.Place, _ records: [String: Record], _ replica: Replica
    ) -> Violation? {
        for field in RecordWorld.indexed {
            for isDescending in [false, true] {
                let work = RecordWorkload.page(
                    place, field, least: -9, descending: isDescending)
                guard case .query(let ask, _) = work, case .page(let page) = ask else { continue }
                let answer = self.ask(ask, of: replica)
                if let answer, answer.saysNotFound, records.isEmpty { continue }
                guard case .page(let answered)? = answer else {
                    return Violation("I-5 query", "\(String(describing: answer))")
                }
                if let problem = SimulatedRecords.check(answered, of: page, records) {
                    return Violation("I-5 query", problem)
                }
            }
        }
        return nil
    }

    /// What databases say they hold.
    private func checkUse(
        _ found: [RecordModel.Place: [String: Record]], _ group: GroupID, _ replica: Replica
    ) -> Violation? {
        let count = found.filter { $0.key.database == RecordWorld.privateDatabase }
            .reduce(0) { $0 + $1.value.count }
        guard case .use(let use, _)? = self.ask(.use(RecordWorld.privateDatabase), of: replica),
            use.recordCount == UInt64(count)
        else { return Violation("I-5 records", "\(group): \(count) records are counted otherwise") }
        return nil
    }
}
