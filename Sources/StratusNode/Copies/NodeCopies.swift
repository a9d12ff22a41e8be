import StratusAssets
import StratusCluster
import StratusConfiguration
import StratusModel
import StratusProcess
import StratusRecords
import StratusRuntime
import StratusStorage
import Synchronization

/// A node's copies of bodies, put together: packs on a thread of their own, the threads that seal,
/// and what the gateway sees of them.
final class NodeCopies: Sendable {
    let keeper: CopyKeeper
    let bodies: SealedBodies
    let buffers: TransferBuffers
    /// What the replicas tell of their rows.
    let feed: BodyFeed
    private let workers: SealingWorkers
    private let thread = WorkerThread(name: "packs", yields: true)
    private let files: any Files
    private let others = Others()
    let carrier: any CopyCarrier
    /// Takes copies to the other nodes; nil for a node alone.
    let courier: CopyCourier?
    private let settings: Mutex<Rates>
    /// As of the last second.
    private let lastFigures = Mutex(CopyKeeper.Figures())
    private let health: Health
    private let ticking = Mutex<[Task<Void, Never>]>([])

    static let directory: DiskPath = "assets"
    /// Between looks for what may go, what is missing, and what is to be read back.
    private static let interval = Duration.seconds(1)
    /// Between looks for what the other nodes have not answered.
    private static let expiryInterval = Duration.milliseconds(200)
    /// Every copy is read back once in this.
    private static let readBackInterval = Duration.seconds(24 * 3_600)
    private static let fetchPatience = Duration.seconds(10)

    /// What a reload may change.
    private struct Rates {
        var repair: ByteCount
        var readBack: ByteCount

        init(_ settings: ConfigurationSettings) {
            self.repair = settings.size("assets.repairRate")
            self.readBack = settings.size("storage.scrubRate")
        }
    }

    /// How fast copies are read back.
    var readBackRate: ByteCount { self.settings.withLock { $0.readBack } }

    /// The other nodes of a cluster.
    struct Peers: Sendable {
        /// Whether the message was taken.
        var send: @Sendable (CopyMessage, NodeID) -> Bool
        /// Who keeps a replica of a partition, or is about to.
        var keepers: @Sendable (GroupID) -> Set<NodeID>
        /// Whether this node is to keep one.
        var keeps: @Sendable (GroupID) -> Bool
    }

    /// What is made after the keeper.
    private final class Others: Sendable {
        let replicas = Mutex<NodeReplicas?>(nil)
        let partitions = Mutex<PartitionClient?>(nil)
        let courier = Mutex<CopyCourier?>(nil)
    }

    /// - Parameter peers: nil for a node alone.
    init(
        _ settings: ConfigurationSettings, own: NodeID, peers: Peers?, in world: RealWorld,
        log: Log, health: Health
    ) {
        self.health = health
        let (files, others) = (world.files, self.others)
        self.files = files
        self.settings = Mutex(Rates(settings))
        if let peers { Self.removeForgotten(peers.keeps, files, log) }
        let inbox = KeeperInbox()
        let reserve = settings.size("storage.reserve")
        var setup = CopyKeeper.Setup(
            openStore: { (group) throws(StoreError) in
                try PackStore(
                    group, in: Self.directory, of: files, drawSalt: { world.random() })
            },
            hasStore: { group in
                // What cannot be told is looked at: an opening says what is wrong.
                (try? PackDirectory(group, in: Self.directory).holdsFiles(files)) ?? true
            },
            removeStore: { (group) throws(StoreError) in
                try PackDirectory.remove(group, in: Self.directory, from: files)
            },
            askRows: { group, from in
                others.replicas.withLock { $0 }?.askBodies(of: group, from: from)
            },
            makeDurable: { group in others.replicas.withLock { $0 }?.makeDurable(group) },
            touch: { group in
                // An empty slice of jobs: an entry whose time is now.
                Self.submit(RecordCommand.continueJobs(ContinueJobs(budget: 1)), at: group, others)
            },
            hasRoom: {
                guard let space = try? files.space() else { return false }
                return space.free > UInt64(reserve.raw + CopyKeeper.queueSizeMax.raw)
            },
            trouble: { group, what in
                log.error(
                    "assets", ["group": .describing(group), "reason": .text(what)])
            },
            now: { world.now }, wallMilliseconds: { world.wallMilliseconds })
        setup.told = { group in others.replicas.withLock { $0 }?.toldOfBodies(in: group) }
        setup.sayHeld = { group, through in
            others.replicas.withLock { $0 }?.copiesHeld(group, through: through)
        }
        if let peers {
            setup.fetch = { name, group in
                guard let courier = others.courier.withLock({ $0 }) else { return .silent }
                var isAbsent = true
                let nodes = peers.keepers(group).subtracting([own]).sorted()
                for place in nodes.indices {
                    // Not all of it from the same one.
                    let node = nodes[(place + Int(name.ordinal)) % nodes.count]
                    let fetched = await courier.fetch(
                        name, of: group, from: node, deadline: world.now + Self.fetchPatience)
                    if case .found = fetched { return fetched }
                    if case .silent = fetched { isAbsent = false }
                }
                return isAbsent ? .absent : .silent
            }
            setup.mayLose = { group in
                others.replicas.withLock { $0 }?.leader(of: group) == own
            }
            setup.loseBody = { group, body in
                Self.submit(LoseBody(body), at: group, others)
            }
        }
        let keeper = CopyKeeper(
            setup, inbox: inbox, compactionRate: settings.size("assets.compactionRate"),
            on: self.thread)
        self.keeper = keeper
        let courier = peers.map { peers in
            CopyCourier(
                keeper, as: own, after: world.random(), now: { world.now }, send: peers.send)
        }
        self.courier = courier
        others.courier.withLock { $0 = courier }
        self.feed = BodyFeed(
            hasRoom: { inbox.hasRoom },
            opened: { group, index, milliseconds in
                inbox.post(.opened(applied: index, milliseconds: milliseconds), of: group)
            },
            changed: { group, changes, through, milliseconds in
                inbox.post(
                    .applied(changes, through: through, milliseconds: milliseconds), of: group)
            },
            durable: { group, through, milliseconds in
                inbox.post(.durable(through: through, milliseconds: milliseconds), of: group)
            },
            page: { group, from, end, bodies in
                inbox.post(.page(from: from, end: end, bodies: bodies), of: group)
            },
            wantsHeld: { group in inbox.post(.wantsHeld, of: group) },
            removed: { group in inbox.post(.removed, of: group) })
        let count = settings.integer("assets.workers")
        self.workers = SealingWorkers(
            count: count > 0 ? count : max(1, ProcessFacts.coreCount - 1), yields: true)
        self.carrier = courier ?? LoneCarrier(keeper, as: own)
        self.bodies = SealedBodies(
            self.carrier, as: own, workers: self.workers,
            now: { world.now },
            sleep: { try? await Task.sleep(for: $0) })
        self.buffers = TransferBuffers(settings.size("assets.bufferSizeMax"))
    }

    /// An earlier process may have ended between removing a replica and its copies. Copies whose
    /// rows are still here go with them, when the replica does.
    private static func removeForgotten(
        _ keeps: (GroupID) -> Bool, _ files: any Files, _ log: Log
    ) {
        do throws(StoreError) {
            for group in try PackDirectory.groups(in: Self.directory, of: files)
            where !keeps(group) {
                guard try PartitionRemoval.isDone(for: group, in: "partitions", from: files)
                else { continue }
                try PackDirectory.remove(group, in: Self.directory, from: files)
            }
        } catch { log.error("assets", ["reason": .text("copies that moved away: \(error)")]) }
    }

    /// What a reload changed.
    func adopt(_ settings: ConfigurationSettings) {
        self.settings.withLock { $0 = Rates(settings) }
    }

    func begin(_ replicas: NodeReplicas, _ partitions: PartitionClient) async {
        self.others.replicas.withLock { $0 = replicas }
        self.others.partitions.withLock { $0 = partitions }
        await self.keeper.start()
        let (keeper, courier) = (self.keeper, self.courier)
        self.ticking.withLock {
            $0 = [
                Self.every(Self.interval) { [self] in
                    await keeper.work()
                    await self.look()
                },
                // What waits for other nodes does not keep anything from going.
                Self.every(Self.interval) { [self] in
                    await keeper.repair(at: self.settings.withLock { $0.repair })
                },
                Self.every(Self.interval) { [self] in
                    await keeper.readBack(
                        at: self.settings.withLock { $0.readBack }, every: Self.readBackInterval)
                },
                Self.every(Self.expiryInterval) { courier?.expire() },
            ]
        }
    }

    /// What is seen of the copies from outside, as of the last second.
    var figures: CopyKeeper.Figures { self.lastFigures.withLock { $0 } }

    private func look() async {
        let figures = await self.keeper.figures()
        self.lastFigures.withLock { $0 = figures }
        var troubles: [String] = []
        if figures.lackingCount > 0 {
            let patience = CopyKeeper.missingPatience.components.seconds
            troubles.append(
                "files of \(figures.lackingCount) partitions have lacked copies on this node for over "
                    + "\(patience) s")
        }
        if figures.failingCount > 0 {
            troubles.append(
                "the files of \(figures.failingCount) partitions cannot be read or written")
        }
        if troubles.isEmpty {
            self.health.dropWarning("assets")
        } else {
            self.health.warn("assets", troubles.joined(separator: "; "))
        }
    }

    /// Reads every copy back now.
    ///
    /// - Returns: how many partitions have some.
    func verify() async -> Int {
        let count = await self.keeper.readBackSoon()
        await self.look()
        return count
    }

    /// Compares the rows and the index of every partition now, and reads every copy back.
    ///
    /// - Returns: how many partitions have a replica here.
    func audit() async -> Int {
        let count = await self.keeper.compareSoon()
        _ = await self.keeper.readBackSoon()
        await self.look()
        return count
    }

    private static func every(
        _ interval: Duration, _ work: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never> {
        Task {
            while !Task.isCancelled {
                try? await Task.sleep(for: interval)
                await work()
            }
        }
    }

    /// What is not carried out is asked for again by the keeper.
    private static func submit<Operation: Submittable>(
        _ operation: Operation, at group: GroupID, _ others: Others
    ) {
        guard let partitions = others.partitions.withLock({ $0 }) else { return }
        Task {
            _ = try? await partitions.submit(
                operation, at: .group(group), as: .system(), within: .seconds(10))
        }
    }

    func stop() async {
        let ticking = self.ticking.withLock { $0 }
        for task in ticking { task.cancel() }
        await self.keeper.stop()
        // Nothing waits for another node any more.
        self.courier?.stop()
        for task in ticking { await task.value }
        self.others.replicas.withLock { $0 = nil }
        self.others.partitions.withLock { $0 = nil }
        self.others.courier.withLock { $0 = nil }
    }

    func stopThreads() {
        self.thread.stop()
        self.workers.stop()
    }
}
