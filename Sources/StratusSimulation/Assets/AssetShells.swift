import StratusAssets
import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRecords
import StratusStorage

/// The parts that keep copies in one process: the real keeper over real packs, the real courier
/// over the simulated network, and the gateway's requests.
///
/// `Sendable` is unchecked: a simulation and all that belongs to it run in one thread.
final class AssetShells: ProcessPart, @unchecked Sendable {
    static let directory: DiskPath = "assets"

    let life: ProcessLife
    let keeper: CopyKeeper
    let courier: CopyCourier
    private let inbox: KeeperInbox
    /// The last entry of which the keeper was told everything.
    private(set) var told: [GroupID: (index: LogIndex, milliseconds: Int64)] = [:]
    private let asks: PeerAsks
    let partitions: PartitionClient
    /// The stores that the keeper has open.
    private var stores: [GroupID: WeakCopies] = [:]

    init(_ life: ProcessLife) {
        let inbox = KeeperInbox()
        let (own, clock) = (life.node.id, life.node.world)
        let files = life.node.world.files
        var setup = CopyKeeper.Setup(
            openStore: { (group) throws(StoreError) in
                try ObservedCopies(of: group, in: life)
            },
            hasStore: { group in
                (try? PackDirectory(group, in: Self.directory).holdsFiles(files)) ?? true
            },
            removeStore: { (group) throws(StoreError) in
                try PackDirectory.remove(group, in: Self.directory, from: files)
            },
            askRows: { group, from in
                life.spawn { await life.node.assets?.readBodies(of: group, from: from) }
            },
            makeDurable: { group in
                life.spawn {
                    if !life.isGone { life.simulation.makeDurable(group, on: life.node) }
                }
            },
            touch: { group in
                life.spawn { await life.node.assets?.continueJobs(in: group) }
            },
            trouble: { group, what in
                life.simulation.note("\(own) \(group) keeper: \(what)")
            },
            now: { clock.now }, wallMilliseconds: { clock.wallMilliseconds })
        setup.bugs = life.simulation.bugs
        setup.told = { group in life.node.assets?.told[group] }
        setup.sayHeld = { group, through in
            if !life.isGone { life.simulation.say(held: through, of: group, on: life.node) }
        }
        setup.mayLose = { group in
            life.node.host?.replica(of: group)?.raft.role == .leader
        }
        let others = life.simulation.nodes.map(\.id).filter { $0 != own }
        setup.fetch = { name, group in
            var isAbsent = true
            for place in others.indices {
                guard let assets = life.node.assets, !life.isGone else { return .silent }
                let other = others[(place + Int(name.ordinal)) % others.count]
                let fetched = await assets.courier.fetch(
                    name, of: group, from: other, deadline: clock.now + .seconds(1))
                if case .found = fetched { return fetched }
                if case .silent = fetched { isAbsent = false }
            }
            return isAbsent ? .absent : .silent
        }
        setup.loseBody = { group, body in life.simulation.report(lost: body, in: group) }
        self.life = life
        let assets = life.simulation.assets
        self.asks = PeerAsks(life) { assets?.draw($0) ?? 0 }
        self.partitions = PartitionClient(self.asks, in: life.node.world)
        self.inbox = inbox
        self.keeper = CopyKeeper(setup, inbox: inbox, compactionRate: 0, on: life.executor)
        self.courier = CopyCourier(
            self.keeper, as: own, after: life.node.world.random(), now: { clock.now },
            on: life.executor
        ) { message, other in
            !life.isGone && life.simulation.send(.copy(message), from: life.node, to: other)
        }
    }

    // MARK: A process

    func start(workerCount: Int) {
        let (life, keeper, courier) = (self.life, self.keeper, self.courier)
        life.keepDoing { await keeper.start(on: life.executor) }
        life.keepDoing {
            while !life.isGone {
                await life.sleep(for: .milliseconds(100))
                courier.expire()
            }
        }
        life.keepDoing {
            while !life.isGone {
                await life.sleep(for: .milliseconds(250))
                await keeper.work()
                await keeper.repair(at: 0)
                life.simulation.catchUpOnBodies(of: life.node)
            }
        }
        life.keepDoing {
            while !life.isGone {
                await life.sleep(for: .milliseconds(700))
                for group in life.simulation.leads(life.node) {
                    await life.node.assets?.continueJobs(in: group)
                }
            }
        }
        for number in 0..<workerCount {
            life.keepDoing { await AssetWorker(life, number: number).run() }
        }
    }

    func end() {
        self.life.end()
        self.courier.stop()
        let keeper = self.keeper
        self.life.spawn { await keeper.stop() }
        self.asks.end()
    }

    func hear(_ response: PeerResponse, from _: NodeID) {
        self.asks.answer(response.number, response.answer)
    }

    // MARK: Damage

    func opened(_ store: ObservedCopies, of group: GroupID) {
        self.stores[group] = WeakCopies(store: store)
    }

    /// A disk loses its copies of a body, if somebody has them open.
    func takeAway(_ body: BodyID, of group: GroupID) {
        self.stores[group]?.store?.takeAway(body)
    }

    // MARK: What rows say

    func post(_ event: RowsEvent, of group: GroupID) { self.inbox.post(event, of: group) }

    func tell(_ position: AppliedPosition, of group: GroupID) {
        self.told[group] = (position.index, position.time.milliseconds)
    }

    private func readBodies(of group: GroupID, from name: CopyName) async {
        while !self.life.isGone, let partition = self.life.node.partitions[group] {
            if let bodies = try? partition.store.bodies(from: name.body, limit: 4) {
                self.life.simulation.tellBodies(of: group, on: self.life.node)
                let last = bodies.count == 4 ? bodies.last?.body : nil
                let end = last.flatMap { CopyName(body: $0, ordinal: .max).next }
                return self.post(.page(from: name, end: end, bodies: bodies), of: group)
            }
            await self.life.sleep(for: .milliseconds(200))
        }
    }

    // MARK: Requests

    private func continueJobs(in group: GroupID) async {
        let world = self.life.node.world
        let command = RecordCommand.continueJobs(.init(budget: 100)).enveloped(
            identity: world.drawIdentity(),
            deadlineMilliseconds: world.wallMilliseconds + 8_000)
        _ = await self.asks.ask(
            .command(command), of: group, at: self.life.node.id, patience: .seconds(1))
    }
}

private struct WeakCopies {
    weak var store: ObservedCopies?
}
