import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusRecords
import StratusStorage

/// The end of a run in which all nodes but one are lost for good: M-19.
struct LostMajority {
    enum Stage {
        /// The survivor is away, and the others go on.
        case lostEnd
        /// The survivor continues alone.
        case recovered
    }

    let survivor: NodeID
    var stage = Stage.lostEnd
    /// When the stage must be done, in simulated time.
    var deadline: Int64
    var isDone = false
    var history = LostHistory()
    /// Groups of which the survivor had no replica.
    var begunAnew: Set<GroupID> = []
}

// A majority is lost for good when the cluster has converged and all that clients saw is checked.
// Before that the survivor is away for a while, and the others go on: that is the end of the
// history which is lost. Then the survivor's disk is recovered by what `cluster recover` runs, and
// its node continues alone.
extension Simulation {
    /// Rounds of work in the lost end. There are more after the recovery, so that every counter
    /// that was not lifted comes by all that was given out.
    private static let lostRoundCount = 3
    private static let stageTime: Int64 = 600_000_000_000

    // MARK: The lost end

    func loseSurvivor() {
        self.scrub()
        if let violation = self.checkHistory() {
            return self.invariants.report(violation.rule, violation.text)
        }
        let voters = self.placed?.view?.replicas(of: .system).filter { self.node($0).isUp } ?? []
        guard let survivor = voters.randomElement(using: &self.faultRandom),
            let shells = self.nodes.first(where: { $0.isUp && $0.id != survivor })?.shells
        else {
            return self.invariants.report("M-19 recovery", "no voter of the system group is up")
        }
        var lost = LostMajority(survivor: survivor, deadline: self.now + Self.stageTime)
        self.giveWhatClientsHave(&lost.history)
        self.recovery = lost
        self.note("\(survivor) is away, and the others go on")
        self.crash(
            self.node(survivor), losesPower: self.faultRandom.next() % 2 == 0, backAfter: nil)
        self.node(survivor).isOut = true
        let life = shells.life
        shells.life.spawn {
            await life.simulation.goOn(by: RecordErrand(shells: shells))
            life.simulation.recovery?.isDone = true
        }
        self.queue.add(.check(.convergence), at: self.now + 200_000_000)
    }

    private func giveWhatClientsHave(_ history: inout LostHistory) {
        for client in self.records?.clients ?? [] {
            for group in self.clientGroups {
                for place in RecordWorld.all {
                    let feed = RecordClient.Feed(group: group, place: place)
                    guard let position = client.mirrors[feed]?.position else { continue }
                    history.give(
                        LostHistory.ZoneToken(group: group, place: place, position: position))
                }
                for database in RecordWorld.followed {
                    let feed = RecordClient.DatabaseFeed(group: group, database: database)
                    guard let position = client.databases[feed]?.position else { continue }
                    history.give(
                        LostHistory.DatabaseToken(
                            group: group, database: database, position: position))
                }
            }
        }
        self.giveWhatPartsHave(&history)
    }

    private func giveWhatPartsHave(_ history: inout LostHistory) {
        guard let records, let zones = records.zones else { return }
        for client in records.clients.indices {
            for part in zones.mirrors[client]?.position?.parts ?? [] {
                let feed = zones.feed(SimulatedZones.database.part(part.number))
                history.give(
                    LostHistory.DatabaseToken(
                        group: feed.group, database: feed.database, position: part.position))
            }
            for name in SimulatedZones.names {
                let feed = zones.feed(name)
                guard let position = records.clients[client].mirrors[feed]?.position else {
                    continue
                }
                history.give(
                    LostHistory.ZoneToken(
                        group: feed.group, place: feed.place, position: position))
            }
        }
    }

    private func goOn(by errand: RecordErrand) async {
        for round in 0..<Self.lostRoundCount {
            for group in self.clientGroups {
                await self.work(in: group, round: round, by: errand)
                await self.look(at: group, by: errand)
            }
            await self.workBetweenBuckets(by: errand)
            await self.workInParts(by: errand)
        }
        for group in self.clientGroups {
            guard let numbers = await self.mailNumbers(of: group, by: errand) else {
                return self.fails("the mail of \(group) cannot be read before the loss")
            }
            for (position, other) in self.clientGroups.enumerated() {
                self.recovery?.history.mail(
                    LostHistory.Route(sender: group, receiver: other), numbers.posted[position])
                self.recovery?.history.mail(
                    LostHistory.Route(sender: other, receiver: group), numbers.received[position])
            }
        }
    }

    private func fails(_ text: String) { self.invariants.report("M-19 recovery", text) }

    private func mailNumbers(of group: GroupID, by errand: RecordErrand) async -> MailNumbers? {
        await errand.ask(MailNumbers.Ask(groups: self.clientGroups), in: group)
    }

    /// A user whom nobody knew before the survivor was away.
    private static let lateDatabase = DatabaseID(
        container: RecordWorld.container, scope: .private, owner: "_late")

    private static let databases = RecordWorld.followed + [lateDatabase]

    private static func zones(_ round: Int) -> [RecordModel.Place] {
        Self.databases.map { RecordModel.Place(database: $0, zone: "Late\(round)") }
    }

    /// Makes zones, in databases old and new, and saves records there and where records are.
    private func work(in group: GroupID, round: Int, by errand: RecordErrand) async {
        let version = UInt64(1_000_001 + 2 * round)
        _ = await errand.command(
            .schema(.install(RecordWorld.schema(version: version))), as: RecordWorld.system,
            in: group)
        for place in [RecordWorld.shelves] + Self.zones(round) {
            let zone = ModifyZones.Operation(
                .create, zone: place.zone,
                drawnIncarnation: ZoneIncarnation(self.faultRandom.next()))
            _ = await errand.command(
                .modifyZones(ModifyZones(database: place.database, operations: [zone])),
                as: RecordWorld.user(of: place.database), in: group)
        }
        let places = [RecordWorld.shelves, RecordWorld.ownDefault, RecordWorld.publicDefault]
        for place in places + Self.zones(round) { await self.save(place, in: group, by: errand) }
    }

    /// Saves two records, and checks their tags once a history is lost.
    private func save(_ place: RecordModel.Place, in group: GroupID, by errand: RecordErrand) async
    {
        let fields = self.records?.workload.fields(using: &self.faultRandom) ?? []
        let names = ["r0", "late"]
        let modify = ModifyRecords(
            database: place.database, zone: place.zone,
            drawnIncarnation: ZoneIncarnation(self.faultRandom.next()),
            rules: RecordWorkload.rules(group),
            operations: names.map {
                RecordOperation(
                    .forceUpdate, recordName: $0, recordType: RecordWorld.type, fields: fields)
            })
        let user =
            place.database.scope == .public
            ? RecordWorld.users[0] : RecordWorld.user(of: place.database)
        let decided = await errand.command(.modifyRecords(modify), as: user, in: group)
        guard case .records(let modified)? = decided?.outcome else {
            return self.fails(
                "\(group): a save in \(place.zone) is answered "
                    + "\(decided.map { "\($0.outcome)" } ?? "nothing")")
        }
        for (name, result) in zip(names, modified.results) {
            // Who else owns a record of the public database keeps it.
            guard case .saved(let saved) = result else { continue }
            let tag = LostHistory.Tag(group: group, place: place, record: name, tag: saved.tag)
            guard let recovery, recovery.stage == .recovered else {
                self.recovery?.history.give(tag)
                continue
            }
            let last = recovery.history.lastTags[group]?[place] ?? 0
            if saved.tag.raw <= last {
                self.fails(
                    "\(group): \(place.zone) gives the tag \(saved.tag.raw) again: the lost "
                        + "history had come to \(last)")
            }
        }
    }

    /// Follows every feed to its end, and keeps the tokens of the lost history.
    private func look(at group: GroupID, by errand: RecordErrand) async {
        for place in [RecordWorld.shelves] + (0..<Self.lostRoundCount).flatMap(Self.zones) {
            let ask = ZoneChangesAsk(
                database: place.database, zone: place.zone, after: nil, limit: 1_000)
            let answer = await errand.ask(
                .zoneChanges(ask), as: RecordWorld.user(of: place.database), in: group)
            guard case .zoneChanges(let page)? = answer else { continue }
            self.recovery?.history.give(
                LostHistory.ZoneToken(group: group, place: place, position: page.position))
        }
        for database in Self.databases {
            let ask = DatabaseChangesAsk(database: database, after: nil, limit: 1_000)
            let answer = await errand.ask(
                .databaseChanges(ask), as: RecordWorld.user(of: database), in: group)
            guard case .databaseChanges(let page)? = answer else { continue }
            self.recovery?.history.give(
                LostHistory.DatabaseToken(
                    group: group, database: database, position: page.position))
        }
    }

    /// Saves records of some buckets that refer to records of others: that posts mail.
    private func workBetweenBuckets(by errand: RecordErrand) async {
        guard self.records?.buckets != nil else { return }
        for _ in 0..<12 {
            guard let fields = self.records?.workload.fields(using: &self.faultRandom),
                let step = self.records?.buckets?.step(
                    of: 0, fields: fields, using: &self.faultRandom),
                let decided = await errand.command(step.work, in: step.group)
            else { continue }
            guard case .command(.reserveReferences(let reserve), _) = step.work,
                case .reserved(let refusals) = decided.outcome
            else { continue }
            self.records?.buckets?.hear(
                refusals, reserve, by: 0, as: decided.identity, deadline: decided.deadline)
        }
    }

    /// Makes zones of a database in parts: the bit comes before the zone.
    private func workInParts(by errand: RecordErrand) async {
        guard let zones = self.records?.zones else { return }
        let database = SimulatedZones.database
        let user = RecordWorld.user(of: database.home)
        for name in SimulatedZones.names {
            guard let number = database.number(of: name) else { continue }
            let note = NoteBuckets(
                database: database.home,
                buckets: ZoneBuckets(
                    count: database.bucketCount, mask: BucketMask(of: [number])))
            let noted = await errand.command(
                .noteBuckets(note), as: user, in: zones.group(of: database.home))
            guard case .bucketsNoted? = noted?.outcome else {
                return self.fails("bucket \(number) is not noted")
            }
            let zone = ModifyZones.Operation(
                .create, zone: name, drawnIncarnation: ZoneIncarnation(self.faultRandom.next()))
            let part = database.part(number)
            _ = await errand.command(
                .modifyZones(ModifyZones(database: part, operations: [zone])), as: user,
                in: zones.group(of: part))
        }
    }

    // MARK: From stage to stage

    func checkRecovery() {
        guard let recovery else { return }
        if recovery.isDone {
            switch recovery.stage {
            case .lostEnd: return self.loseMajority()
            case .recovered:
                self.phase = .done
                return
            }
        }
        guard self.now < recovery.deadline else {
            return self.fails("\(recovery.stage) does not end")
        }
        self.queue.add(.check(.convergence), at: self.now + 200_000_000)
    }

    private func loseMajority() {
        guard let recovery else { return }
        let survivor = self.node(recovery.survivor)
        for node in self.nodes where node.id != survivor.id {
            self.crash(node, losesPower: true, backAfter: nil)
            node.isOut = true
        }
        self.note("all but \(survivor.id) are lost for good")
        // The partitions' time may be days ahead of the clock.
        if self.faultRandom.next() % 2 == 0 { survivor.wallOffset = -48 * 3_600_000 }
        survivor.files.restart(after: survivor.end)
        survivor.showTime(self.now)
        do { try self.salvage(survivor) } catch {
            return self.fails("\(survivor.id) is not recovered: \(error)")
        }
        self.recovery?.stage = .recovered
        self.recovery?.isDone = false
        self.recovery?.deadline = self.now + Self.stageTime
        survivor.isOut = false
        survivor.end = .processCrash
        self.start(survivor)
        guard let shells = survivor.shells else {
            return self.fails("\(survivor.id) does not start after its recovery")
        }
        let life = shells.life
        life.spawn {
            await life.simulation.checkRecovered(by: RecordErrand(shells: shells))
            life.simulation.recovery?.isDone = true
        }
        self.queue.add(.check(.convergence), at: self.now + 200_000_000)
    }

    // MARK: Afterwards

    /// Works on, and asks again and again with what the lost history gave out.
    private func checkRecovered(by errand: RecordErrand) async {
        await self.checkParts(by: errand)
        let rounds = 2 * Self.lostRoundCount + 2
        for group in self.clientGroups {
            await self.tryTokens(of: group, by: errand)
            await self.checkMail(of: group, by: errand)
        }
        for round in 0..<rounds where self.invariants.violation == nil {
            for group in self.clientGroups {
                await self.work(in: group, round: round, by: errand)
                await self.tryTokens(of: group, by: errand)
                await self.tryTags(of: group, by: errand)
            }
        }
    }

    /// Z8: every zone that is left in a bucket is listed, whatever the home has lost.
    private func checkParts(by errand: RecordErrand) async {
        guard let zones = self.records?.zones else { return }
        let database = SimulatedZones.database
        let user = RecordWorld.user(of: database.home)
        let ask = BucketsAsk(database: database.home, count: database.bucketCount)
        guard
            case .buckets(let bits)? = await errand.ask(
                .buckets(ask), as: user, in: zones.group(of: database.home))
        else { return self.fails("the home of a database in parts does not answer") }
        for number in 0..<database.bucketCount where !bits.mask.contains(number) {
            let part = database.part(number)
            guard
                case .zones(let left)? = await errand.ask(
                    .zones(part, names: nil), as: user, in: zones.group(of: part))
            else { return self.fails("\(part) does not answer") }
            for case .zone(let zone) in left where !zone.isDefault {
                self.invariants.report(
                    "Z8 recovery", "\(zone.name) is in bucket \(number), which is not listed")
            }
        }
    }

    /// Whether who holds the token gets everything that somebody gets who has nothing.
    private func isBeginning(
        _ page: ZoneChangesPage, of token: LostHistory.ZoneToken, by errand: RecordErrand
    ) async -> Bool {
        let database = token.place.database
        let answer = await errand.ask(
            .zoneChanges(
                ZoneChangesAsk(database: database, zone: token.place.zone, after: nil, limit: 10)),
            as: RecordWorld.user(of: database), in: token.group)
        guard case .zoneChanges(let whole)? = answer else { return false }
        return whole.changes == page.changes
    }

    private func tryTokens(of group: GroupID, by errand: RecordErrand) async {
        guard let history = self.recovery?.history else { return }
        for token in history.zones where token.group == group {
            let database = token.place.database
            let answer = await errand.ask(
                .zoneChanges(
                    ZoneChangesAsk(
                        database: database, zone: token.place.zone, after: token.position,
                        limit: 10)), as: RecordWorld.user(of: database), in: group)
            switch answer {
            case .zoneRefused(.positionExpired)?, .zoneRefused(.notFound)?: break
            case .zoneChanges(let page)? where await self.isBeginning(page, of: token, by: errand):
                // A zone that was made again begins behind the tags of the one before it.
                break
            default:
                self.fails(
                    "\(group): a token of the lost history fits in \(token.place.zone) at "
                        + "\(token.position.tag.raw): \(String(describing: answer))")
            }
        }
        for token in history.databases where token.group == group {
            let answer = await errand.ask(
                .databaseChanges(
                    DatabaseChangesAsk(database: token.database, after: token.position, limit: 10)),
                as: RecordWorld.user(of: token.database), in: group)
            switch answer {
            case .zoneRefused(.positionExpired)?, .zoneRefused(.notFound)?: break
            default:
                self.fails(
                    "\(group): a token of the lost history fits the database of "
                        + "\(token.database.owner) at turn \(token.position.turn)")
            }
        }
    }

    /// An update by a lost tag must change nothing, unless the survivor had that tag itself.
    private func tryTags(of group: GroupID, by errand: RecordErrand) async {
        for tag in self.recovery?.history.tags ?? [] where tag.group == group {
            let modify = ModifyRecords(
                database: tag.place.database, zone: tag.place.zone,
                drawnIncarnation: ZoneIncarnation(self.faultRandom.next()),
                rules: RecordWorkload.rules(group),
                operations: [
                    RecordOperation(
                        .update, recordName: tag.record, recordType: RecordWorld.type,
                        changeTag: tag.tag.text)
                ])
            let decided = await errand.command(
                .modifyRecords(modify),
                as: tag.place.database.scope == .public
                    ? RecordWorld.users[0] : RecordWorld.user(of: tag.place.database), in: group)
            guard case .records(let modified)? = decided?.outcome,
                case .saved? = modified.results.first
            else { continue }
            self.fails(
                "\(group): a tag of the lost history fits \(tag.record) in \(tag.place.zone)")
        }
    }

    /// The next mail of each route has a number that was never given.
    private func checkMail(of group: GroupID, by errand: RecordErrand) async {
        guard let history = self.recovery?.history,
            let numbers = await self.mailNumbers(of: group, by: errand)
        else { return self.fails("the mail of \(group) cannot be read after the recovery") }
        for (position, other) in self.clientGroups.enumerated() {
            let lost = history.mails[LostHistory.Route(sender: group, receiver: other)] ?? 0
            if numbers.posted[position] < lost {
                self.fails(
                    "\(group): the next mail to \(other) has the number "
                        + "\(numbers.posted[position] + 1), the lost history had come to \(lost)")
            }
        }
    }
}
