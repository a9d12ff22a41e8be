import StratusCluster
import StratusConsensus
import StratusModel
import StratusPush
import StratusRecords
import StratusRows

/// One client and the gateway that serves it, on one node: saves and deletes records, subscribes,
/// registers devices. It ends with the process.
struct PushWorker: Sendable {
    private let life: ProcessLife
    private let push: PushWorld
    private let number: Int

    init(_ life: ProcessLife, _ push: PushWorld, number: Int) {
        self.life = life
        self.push = push
        self.number = number
    }

    private var simulation: Simulation { self.life.simulation }

    func run() async {
        while !self.life.isGone {
            await self.life.sleep(for: .milliseconds(40 + self.push.draw(300)))
            guard !self.life.isGone, let shells = self.life.node.push else { return }
            if self.simulation.isQuiet {
                if self.number == 0 {
                    await self.lastRound(shells)
                    await self.calmChange(shells)
                } else if self.simulation.changesGoOn, self.push.draw(4) == 0 {
                    await self.changeAnything(shells)
                }
                continue
            }
            let groups = self.simulation.clientGroups
            let group = groups[self.push.draw(groups.count)]
            guard self.push.prepared.contains(group) else {
                await self.prepare(group, shells)
                continue
            }
            switch self.push.draw(20) {
            case 0...8: await self.change(in: group, shells)
            case 9...12: await self.subscribe(in: group, shells)
            case 13: await self.unsubscribe(in: group, shells)
            case 14...16: await self.register(shells)
            case 17: await self.trouble()
            case 18: self.uninstall()
            default:
                if self.push.draw(2) == 0 {
                    self.uninstall()
                } else if self.push.draw(2) == 0 {
                    let user = PushWorld.users[self.push.draw(PushWorld.users.count)]
                    guard !self.push.isSuspended(user, at: self.simulation.now) else { continue }
                    self.push.flip(user, at: self.simulation.now)
                }
            }
        }
    }

    private func prepare(_ group: GroupID, _ shells: PushShells) async {
        guard
            await shells.submit(
                RecordCommand.schema(.install(PushWorld.schema)), as: RecordWorld.system, to: group)
                != nil,
            await shells.submit(
                RecordCommand.modifyZones(
                    ModifyZones(
                        database: PushWorld.shelves.database,
                        operations: [
                            ModifyZones.Operation(
                                .create, zone: PushWorld.shelves.zone,
                                drawnIncarnation: ZoneIncarnation(self.push.random.next()))
                        ])), as: RecordWorld.users[0], to: group) != nil
        else { return }
        self.push.prepared.insert(group)
    }

    private func changeAnything(_ shells: PushShells) async {
        let groups = self.simulation.clientGroups
        let group = groups[self.push.draw(groups.count)]
        if self.push.prepared.contains(group) { await self.change(in: group, shells) }
    }

    /// Once faults have ended each node changes everything once more.
    private func lastRound(_ shells: PushShells) async {
        guard self.push.lastRoundAt != nil, !self.push.lastRounds.contains(self.life.node.id) else {
            return
        }
        for group in self.simulation.clientGroups where self.push.prepared.contains(group) {
            for isPublic in [false, true] {
                guard await self.change(in: group, isPublic: isPublic, shells) else { return }
            }
        }
        if !self.life.isGone { self.push.lastRounds.insert(self.life.node.id) }
    }

    /// Once all have been told, the nodes change something in turn. No other change then wakes the
    /// polls that wait for it.
    private func calmChange(_ shells: PushShells) async {
        let nodes = self.simulation.upNodes
        let number = self.push.calmChangeCount
        guard self.push.calmSince != nil, number < nodes.count * PushWorld.calmChangesOfEach,
            nodes[number % nodes.count] == self.life.node.id,
            shells.polls.isInformed
        else { return }
        // Of the database that fewer polls wait for, twice.
        let isPublic = number / nodes.count == 1
        let group = self.simulation.clientGroups.first { self.push.prepared.contains($0) }
        if let group {
            guard await self.change(in: group, isPublic: isPublic, shells) else { return }
        }
        await self.life.sleep(for: .milliseconds(500))
        guard !self.life.isGone, self.push.calmChangeCount == number else { return }
        self.push.calmChangeCount += 1
    }

    // MARK: Records

    private func change(in group: GroupID, _ shells: PushShells) async {
        _ = await self.change(in: group, isPublic: self.push.draw(3) == 0, shells)
    }

    private func change(in group: GroupID, isPublic: Bool, _ shells: PushShells) async -> Bool {
        let place =
            isPublic
            ? RecordWorld.publicDefault
            : self.push.draw(5) == 0 ? RecordWorld.ownDefault : PushWorld.shelves
        var operations: [RecordOperation] = []
        for _ in 0...self.push.draw(3) {
            let name = "note\(self.push.draw(5))"
            guard !operations.contains(where: { $0.recordName == name }) else { continue }
            if self.push.draw(4) == 0 {
                operations.append(RecordOperation(.forceDelete, recordName: name))
                continue
            }
            let fields = [
                Field(
                    name: PushWorld.filtered, value: .scalar(.int64(Int64(self.push.draw(10))))),
                Field(
                    name: PushWorld.number,
                    value: .scalar(.int64(Int64(self.push.nextNumber())))),
            ]
            operations.append(
                RecordOperation(
                    .forceReplace, recordName: name, recordType: PushWorld.type, fields: fields))
        }
        let modify = ModifyRecords(
            database: place.database, zone: place.zone,
            drawnIncarnation: ZoneIncarnation(self.push.random.next()), operations: operations)
        let principal = isPublic ? PushWorld.writer : RecordWorld.users[0]
        guard
            case .records? = await shells.submit(
                RecordCommand.modifyRecords(modify), as: principal, to: group)
        else { return false }
        self.push.count("changes")
        shells.polls.changed(place.database)
        return true
    }

    // MARK: Subscriptions

    private func subscribe(in group: GroupID, _ shells: PushShells) async {
        let user = PushWorld.users[self.push.draw(2)]
        let databases = PushWorld.databases(of: user)
        let database = databases[self.push.draw(databases.count)]
        let content = Bytes("\(self.push.nextNumber())".utf8)
        let subscription: Subscription
        let firesOnce = self.push.draw(4) == 0
        switch database.scope == .public ? 9 : self.push.draw(10) {
        case 0:
            subscription = Subscription(
                "database", .database, firesOnce: firesOnce, content: content)
        case 1, 2:
            subscription = Subscription(
                "zone", .zone, zone: PushWorld.shelves.zone, firesOnce: firesOnce,
                content: content)
        default:
            let reasons: [Subscription.Reasons] = [.all, .all, .created, .updated, .deleted]
            let filter = RecordFilter(
                field: .field(PushWorld.filtered), comparator: .greaterThanOrEquals,
                operand: .scalar(.int64(Int64(self.push.draw(8)))))
            subscription = Subscription(
                "query\(self.push.draw(4))", .query,
                predicate: RecordPredicate(
                    recordType: PushWorld.type,
                    filters: self.push.draw(3) == 0 ? [] : [filter], sorts: []),
                reasons: reasons[self.push.draw(5)], firesOnce: firesOnce,
                fields: self.push.draw(2) == 0 ? [PushWorld.number] : [], content: content)
        }
        let modify = ModifySubscriptions(database) { $0.operations = [.create(subscription)] }
        let modified = await shells.submit(modify, as: self.push.principal(of: user), to: group)
        if modified?.results == [.saved] { self.push.count("subscriptions") }
    }

    private func unsubscribe(in group: GroupID, _ shells: PushShells) async {
        let user = PushWorld.users[self.push.draw(2)]
        let databases = PushWorld.databases(of: user)
        let ids = ["database", "zone", "query0", "query1", "query2", "query3"]
        let modify = ModifySubscriptions(databases[self.push.draw(databases.count)]) {
            $0.operations = [.delete(ids[self.push.draw(ids.count)])]
        }
        _ = await shells.submit(modify, as: self.push.principal(of: user), to: group)
    }

    // MARK: Devices

    /// An app starts: its device is registered, and its provider soon knows it again.
    private func register(_ shells: PushShells) async {
        let token = PushWorld.token(self.push.draw(PushWorld.deviceCount), isPoll: false)
        let user = PushWorld.user(of: token)
        let now = self.simulation.now
        self.push.devices[token] = PushWorld.DeviceRow(
            user: user, registeredAt: now / 1_000_000)
        let provider = PushWorld.provider(of: token)
        if let gone = self.push.providers[provider].gone[token] {
            self.push.providers[provider].gone[token]?.until = min(
                gone.until, now + Int64(self.push.draw(1_500)) * 1_000_000)
        }
        for group in self.simulation.clientGroups where self.push.prepared.contains(group) {
            for database in PushWorld.databases(of: user) {
                let name = PushLedger.FollowerName(database: database, token: token)
                guard await shells.follow(name, user, in: group, as: .device, .begin) else {
                    return
                }
            }
        }
        self.push.count("registrations")
    }

    private func uninstall() {
        let token = PushWorld.token(self.push.draw(PushWorld.deviceCount), isPoll: false)
        let provider = PushWorld.provider(of: token)
        // The same moment as a registration would be nobody's.
        self.push.providers[provider].gone[token] = (
            at: self.simulation.now / 1_000_000 - 1, until: .max
        )
    }

    private func trouble() async {
        let provider = self.push.draw(PushWorld.providerCount)
        let now = self.simulation.now
        guard self.push.providers[provider].heldUntil <= now else { return }
        if self.push.draw(5) == 0 { return await self.outlast(provider, at: now) }
        self.push.providers[provider].answersWhileDown = self.push.draw(2) == 0
        self.push.providers[provider].downUntil =
            now + Int64(500 + self.push.draw(7_000)) * 1_000_000
        self.push.count("providers down")
    }

    /// A provider is down for longer than a permission may be believed, and one of its users loses
    /// the role meanwhile: what was matched before must not leave when the provider is back.
    private func outlast(_ provider: Int, at now: Int64) async {
        let end = now + Int64(4_700 + self.push.draw(1_500)) * 1_000_000
        self.push.providers[provider].answersWhileDown = self.push.draw(2) == 0
        self.push.providers[provider].downUntil = end
        self.push.providers[provider].heldUntil = end
        self.push.count("providers down")
        await self.life.sleep(for: .milliseconds(200))
        guard !self.life.isGone, !self.simulation.isQuiet else { return }
        // Devices of the last provider are all of the first user.
        let user = PushWorld.users[provider == PushWorld.providerCount - 1 ? 0 : 1]
        self.push.suspend(user, until: end + 1_000_000_000, at: self.simulation.now)
    }
}
