import StratusCluster
import StratusModel
import StratusRecords
import StratusStorage

// Everything of a group that holds records, read in every way when all is over.
extension Simulation {
    func ask(_ ask: RecordQuery.Ask, of replica: Replica) -> RecordAnswer? {
        let query = RecordQuery(principal: RecordWorld.system, ask).enveloped()
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
        for (number, known) in records.clients.enumerated() {
            var client = known
            for database in RecordWorld.followed {
                // From where it stands, and somebody who knows nothing.
                var stranger = RecordClient()
                if let violation = self.followAll(database, as: &client, group, replica)
                    ?? self.followAll(database, as: &stranger, group, replica)
                {
                    return Violation(
                        violation.rule, "\(group): for client \(number): \(violation.text)")
                }
            }
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
    func followAll(
        _ mirror: RecordMirror, _ place: RecordModel.Place, _ replica: Replica
    ) -> Result<[String: Record], Violation> {
        self.follow(mirror, place, replica).map(\.records)
    }

    func follow(
        _ mirror: RecordMirror, _ place: RecordModel.Place, _ replica: Replica
    ) -> Result<RecordMirror, Violation> {
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
                if !page.moreComing { return .success(mirror) }
            case .zoneRefused(.positionExpired)? where mirror.position != nil:
                mirror = RecordMirror()
            case .zoneRefused(.notFound)?: return .success(RecordMirror())
            default: return .failure(.init("I-5 feed", "\(String(describing: answer))"))
            }
        }
        return .failure(.init("I-5 feed", "it has no end"))
    }

    /// A database's feed from where `client` stands to its end.
    private func followAll(
        _ database: DatabaseID, as client: inout RecordClient, _ group: GroupID,
        _ replica: Replica
    ) -> Violation? {
        func violation(_ text: String) -> Violation {
            Violation("I-5 database feed", "\(database.owner): \(text)")
        }
        guard let ledger = self.records?.ledger(of: group) else { return nil }
        let feed = RecordClient.DatabaseFeed(group: group, database: database)
        for _ in 0..<10_000 {
            for place in client.owedZones(of: feed) {
                let zone = RecordClient.Feed(group: group, place: place)
                switch self.follow(client.mirrors[zone] ?? RecordMirror(), place, replica) {
                case .success(let mirror): client.mirrors[zone] = mirror
                case .failure(let violation): return violation
                }
            }
            let position = client.databases[feed]?.position
            let answer = self.ask(
                .databaseChanges(
                    DatabaseChangesAsk(database: database, after: position, limit: 2)),
                of: replica)
            switch answer {
            case .databaseChanges(let page)?:
                if let problem = client.take(page, of: feed) { return violation(problem) }
                guard let mirror = client.databases[feed] else { return violation("no mirror") }
                let problem = ledger.problem(
                    with: page, of: database, mirror, floor: ledger.turn(of: database))
                if let problem { return violation(problem) }
                if !page.moreComing { return nil }
            case .zoneRefused(.positionExpired)? where position != nil:
                let mirror = client.databases[feed] ?? DatabaseMirror()
                guard ledger.mayRefuse(mirror, of: database) else {
                    return violation("its position has expired: \(String(describing: position))")
                }
                client.forget(feed)
            default: return violation("\(String(describing: answer))")
            }
        }
        return violation("it has no end")
    }

    /// A default zone has no feed.
    private func lookAll(
        _ place: RecordModel.Place, _ names: [String], _ replica: Replica
    ) -> Result<[String: Record], Violation> {
        var records: [String: Record] = [:]
        var open = names
        while !open.isEmpty {
            let answer = self.ask(
                .lookup(RecordLookup(database: place.database, zone: place.zone, names: open)),
                of: replica)
            guard case .lookup(let found)? = answer else {
                return .failure(.init("I-5 records", "\(String(describing: answer))"))
            }
            for case (let name, .found(let record)) in zip(open, found.items) {
                records[name] = record
            }
            let left = zip(open, found.items).filter { $1 == .deferred }.map(\.0)
            guard left.count < open.count else {
                return .failure(.init("I-5 records", "a look-up answers nothing"))
            }
            open = left
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

    /// Checks the usage that databases report.
    private func checkUse(
        _ found: [RecordModel.Place: [String: Record]], _ group: GroupID, _ replica: Replica
    ) -> Violation? {
        let count = found.filter { $0.key.database == RecordWorld.privateDatabase }
            .reduce(0) { $0 + $1.value.count }
        guard case .use(let use, _, _)? = self.ask(.use(RecordWorld.privateDatabase), of: replica),
            use.recordCount == UInt64(count)
        else { return Violation("I-5 records", "\(group): \(count) records are counted otherwise") }
        return nil
    }
}
