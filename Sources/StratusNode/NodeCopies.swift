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
    private let thread = WorkerThread(name: "packs")
    private let files: any Files
    private let others = Others()
    private let ticking = Mutex<Task<Void, Never>?>(nil)

    static let directory: DiskPath = "assets"
    /// Between looks for what may go.
    private static let interval = Duration.seconds(1)

    /// What is made after the keeper.
    private final class Others: Sendable {
        let replicas = Mutex<NodeReplicas?>(nil)
        let router = Mutex<ClusterRouter?>(nil)
    }

    init(_ settings: ConfigurationSettings, own: NodeID, in world: RealWorld, log: Log) {
        let (files, others) = (world.files, self.others)
        self.files = files
        let inbox = KeeperInbox()
        let reserve = settings.size("storage.reserve")
        let keeper = CopyKeeper(
            CopyKeeper.Setup(
                openStore: { (group) throws(StoreError) in
                    try PackStore(
                        group, in: Self.directory, of: files, drawSalt: { world.random() })
                },
                hasStore: { group in
                    // What cannot be told is looked at: an opening says what is wrong.
                    let path = PackDirectory(group, in: Self.directory).index
                    return (try? files.exists(path)) ?? true
                },
                removeStore: { (group) throws(StoreError) in
                    try PackDirectory.remove(group, in: Self.directory, from: files)
                },
                askRows: { group, from in
                    others.replicas.withLock { $0 }?.askBodies(of: group, from: from)
                },
                makeDurable: { group in others.replicas.withLock { $0 }?.makeDurable(group) },
                touch: { group in
                    guard let router = others.router.withLock({ $0 }) else { return }
                    Task { await Self.touch(group, router, world) }
                },
                hasRoom: {
                    guard let space = try? files.space() else { return false }
                    return space.free > UInt64(reserve.raw + CopyKeeper.queueSizeMax.raw)
                },
                trouble: { group, what in
                    log.error(
                        "assets", ["group": .describing(group), "reason": .text(what)])
                },
                now: { world.now }, wallMilliseconds: { world.wallMilliseconds }),
            inbox: inbox, compactionRate: settings.size("assets.compactionRate"),
            on: self.thread)
        self.keeper = keeper
        self.feed = BodyFeed(
            hasRoom: { inbox.hasRoom },
            opened: { group, index, milliseconds in
                inbox.post(.opened(applied: index, milliseconds: milliseconds), of: group)
            },
            changed: { group, changes, through in
                inbox.post(.applied(changes, through: through), of: group)
            },
            durable: { group, through, milliseconds in
                inbox.post(.durable(through: through, milliseconds: milliseconds), of: group)
            },
            page: { group, from, end, bodies in
                inbox.post(.page(from: from, end: end, bodies: bodies), of: group)
            },
            removed: { group in inbox.post(.removed, of: group) })
        let count = settings.integer("assets.workers")
        self.workers = SealingWorkers(
            count: count > 0 ? count : max(1, ProcessFacts.coreCount - 1))
        self.bodies = SealedBodies(
            LoneCarrier(keeper, as: own), as: own, workers: self.workers, now: { world.now },
            sleep: { try? await Task.sleep(for: $0) })
        self.buffers = TransferBuffers(settings.size("assets.bufferSizeMax"))
    }

    /// Whether this node has stored files of the partition.
    func keepsFiles(of group: GroupID) -> Bool {
        (try? self.files.exists(PackDirectory(group, in: Self.directory).index)) ?? true
    }

    func begin(_ replicas: NodeReplicas, _ router: ClusterRouter) async {
        self.others.replicas.withLock { $0 = replicas }
        self.others.router.withLock { $0 = router }
        await self.keeper.start()
        let keeper = self.keeper
        self.ticking.withLock {
            $0 = Task {
                while !Task.isCancelled {
                    try? await Task.sleep(for: Self.interval)
                    await keeper.work()
                }
            }
        }
    }

    /// An empty slice of jobs: an entry whose time is now.
    private static func touch(_ group: GroupID, _ router: ClusterRouter, _ world: RealWorld) async {
        let command = RecordCommand.continueJobs(ContinueJobs(budget: 1)).enveloped(
            container: ContainerReference(
                container: "stratus.jobs", environment: .production),
            identity: world.drawIdentity(),
            deadlineMilliseconds: world.wallMilliseconds + 10_000, schemaVersion: 0,
            principal: Principal(kind: .system))
        _ = try? await router.submit(
            command, to: group, deadline: world.now + .seconds(10))
    }

    func stop() async {
        let ticking = self.ticking.withLock { $0 }
        ticking?.cancel()
        await ticking?.value
        await self.keeper.stop()
        self.others.replicas.withLock { $0 = nil }
        self.others.router.withLock { $0 = nil }
    }

    func stopThreads() {
        self.thread.stop()
        self.workers.stop()
    }
}
