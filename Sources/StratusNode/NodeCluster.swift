import StratusCluster
import StratusCommandLine
import StratusModel
import StratusPlacement
import StratusRecords
import StratusRuntime
import StratusSQLite
import StratusStorage
import StratusTLS
import Synchronization

/// A node's part in its cluster, put together: log, replicas, links and the router over them. A node
/// alone has the same, and nobody to link to.
final class NodeCluster: Sendable {
    let formation: ClusterFormation
    let replicas: NodeReplicas
    let router: ClusterRouter
    /// What clients' sync tokens are sealed with, when all nodes must share it.
    let sharedTokenKey: Bytes?
    private let links: PeerLinks?
    /// Of the links, where they do not share one with clients.
    private let ownLoop: EventLoop?
    private let storage = WorkerThread(name: "storage")
    private let logThread = WorkerThread(name: "log")
    private let checkpoints = WorkerThread(name: "checkpoints")
    private let peerCount: Int

    /// Where so few loops serve clients, peers are served by the first of them as well: on two cores a
    /// thread more costs every forwarded request two wake-ups, and gains nothing.
    private static let sharedLoopCountMax = 2

    /// Opens the log and begins to work. Links are opened by ``join(_:)``.
    ///
    /// - Parameter loops: the clients'.
    init(
        _ plan: NodePlan, in world: RealWorld, of directory: DataDirectory, log: Log,
        health: Health, certificates: PeerCertificates?, loops: [EventLoop]
    ) async throws(NodeFailure) {
        let settings = plan.settings
        let limits = NodePlan.limits(settings)
        let secret = try PeerCertificates.secret(settings)
        let formation = try Self.formation(settings, secret, world, directory)
        let ownLoop =
            loops.count > Self.sharedLoopCountMax ? EventLoop(name: "peers") : nil
        let loop = ownLoop ?? loops[0]
        let inbox = ReplicaInbox()
        var logLimits = SegmentedLog.Limits()
        if settings.bool("development") { logLimits.segmentSize = .mebibytes(32) }
        let segments: SegmentedLog
        do throws(LogError) {
            segments = try SegmentedLog.open(
                in: "log", of: world, limits: logLimits, reportingTo: inbox)
        } catch {
            throw NodeFailure(.inputOutput, "the log in '\(plan.dataDirectory)': \(error.text)")
        }
        let table = formation.table
        let own = PeerIdentity(
            cluster: formation.cluster, node: formation.node, name: formation.name,
            incarnation: NodeIncarnation(world.random()), data: directory.identity)
        let memory: PeerMemory
        do throws(PeerMemory.Refusal) { memory = try PeerMemory(in: world) } catch {
            throw NodeFailure(.inputOutput, "'\(plan.dataDirectory)': \(error)")
        }
        let refusals = PeerRefusals(health)
        let others = formation.members.map(\.node).filter { $0 != formation.node }
        let sleep: @Sendable (MonotonicTime) async -> Void = { time in
            try? await loop.sleep(until: time)
        }

        // What comes in from peers finds its way once all of it stands.
        let receivers = Receivers()
        var links: PeerLinks?
        if let certificates {
            links = PeerLinks(
                own, memory: memory, certificates: certificates.forLinks, loop: loop,
                events: PeerLinks.Events(
                    received: { node, message, receipt in
                        if case .response(let response) = message {
                            receivers.router.withLock { $0 }?.receive(response, from: node)
                            receipt.settle()
                        } else {
                            inbox.receive(message, from: node, receipt)
                        }
                    },
                    linkChanged: { node, isOpen in
                        log.info(
                            "a link changed",
                            ["peer": .describing(node), "open": .text(isOpen ? "yes" : "no")])
                        if isOpen {
                            refusals.heard(by: node)
                        } else {
                            receivers.router.withLock { $0 }?.lost(node)
                        }
                    },
                    refused: { node, refusal in refusals.refused(by: node, refusal) },
                    trouble: { peer, what in
                        log.warning("a link", ["peer": .text(peer), "reason": .text(what)])
                    }))
        }
        let linksMade = links
        let sender: any PeerSender = linksMade ?? NoPeers()
        let system = FileSystem(world.files)
        let bounds = RecordState()
        let systemReplicas = Formation.systemReplicas(of: formation.members.map(\.node))
        var setup = NodeReplicas.Setup(
            node: formation.node, incarnation: own.incarnation, peers: others,
            openPartition: { (group) throws(StoreError) in
                if group == .system {
                    return try PartitionStore(
                        SystemState(), group: group, in: "partitions", of: system)
                }
                return try PartitionStore(bounds, group: group, in: "partitions", of: system)
            },
            firstConfiguration: { group in
                if group == .system {
                    return systemReplicas.contains(formation.node)
                        ? Configuration(voters: systemReplicas) : nil
                }
                guard let partition = PartitionID(group: group),
                    Int(partition.raw) < table.partitionCount
                else { return nil }
                let voters = table.replicas(of: partition)
                return voters.contains(formation.node) ? Configuration(voters: voters) : nil
            }, sleep: sleep)
        setup.limits = limits
        setup.events.fenced = { why in
            health.raise("storage", why)
            log.error(
                "storage takes no more writes; only a restart mends it", ["reason": .text(why)])
            if let linksMade { Task { await linksMade.stop() } }
        }
        setup.events.alarm = { group, what in
            log.error("partition", ["group": .describing(group), "reason": .text(what)])
        }
        setup.events.roleChanged = { group, role, term, leader in
            log.debug(
                "leadership",
                [
                    "group": .describing(group), "role": .text("\(role)"),
                    "term": .describing(term), "leader": .text(leader.map { "\($0)" } ?? "none"),
                ])
        }
        segments.start(on: self.logThread)
        let replicas = NodeReplicas(
            setup, log: segments, inbox: inbox, sender: sender, in: world, on: self.storage,
            checkpointsOn: self.checkpoints)
        let router = ClusterRouter(
            replicas, sender: sender, in: world, limits: limits,
            place: { key in
                let partition = table.partition(of: key)
                return PlacedPartition(
                    group: partition.group, replicas: table.replicas(of: partition),
                    epoch: table.epoch)
            },
            placeOfGroup: { group in
                if group == .system {
                    return PlacedPartition(
                        group: group, replicas: systemReplicas, epoch: table.epoch)
                }
                guard let partition = PartitionID(group: group),
                    Int(partition.raw) < table.partitionCount
                else { return nil }
                return PlacedPartition(
                    group: group, replicas: table.replicas(of: partition), epoch: table.epoch)
            }, sleep: sleep)
        receivers.router.withLock { $0 = router }

        self.formation = formation
        self.replicas = replicas
        self.router = router
        self.links = linksMade
        self.ownLoop = ownLoop
        self.peerCount = others.count
        self.sharedTokenKey = secret.map {
            ClusterFormation.key(for: "sync tokens", secret: $0)
        }
        await replicas.start()
    }

    private final class Receivers: Sendable {
        let router = Mutex<ClusterRouter?>(nil)
    }

    private static func formation(
        _ settings: ConfigurationSettings, _ secret: Bytes?, _ world: RealWorld,
        _ directory: DataDirectory
    ) throws(NodeFailure) -> ClusterFormation {
        let count = settings.integer("cluster.partitionCount")
        let wanted: ClusterFormation
        if let secret, let name = settings.text("cluster.name") {
            wanted = ClusterFormation(
                peers: ClusterPeers.parse(settings), name: name, secret: secret,
                partitionCount: count)
        } else {
            wanted = ClusterFormation(alone: directory.identity, partitionCount: count)
        }
        do throws(ClusterFormation.Refusal) { return try wanted.adopted(in: world) } catch {
            throw NodeFailure(.configuration, error.description)
        }
    }

    /// Listens for peers and opens links to them.
    func join(_ settings: ConfigurationSettings) async throws(NodeFailure) {
        guard let links else { return }
        let peers = ClusterPeers.parse(settings)
        let listen: ListenAddress
        if let address = settings.address("cluster.listen") {
            listen = address
        } else {
            guard let own = peers.first(where: { $0.name == self.formation.name }) else {
                preconditionFailure("a node that is not in its own list of peers")
            }
            listen = .tcp(host: own.host, port: own.port)
        }
        guard let address = await Endpoints.addresses(listen).first else {
            throw NodeFailure(.system, "cannot listen on \(listen): the name is not known")
        }
        do throws(SocketError) { _ = try await links.listen(on: address) } catch {
            throw NodeFailure(.system, "cannot listen for peers on \(listen): \(error)")
        }
        links.setPeers(
            self.formation.members.compactMap { member in
                peers.first { $0.name == member.name }.map {
                    PeerAddress(
                        node: member.node, name: member.name, host: $0.host, port: $0.port)
                }
            })
    }

    /// Peers that this node can send to now, of all there are.
    var linkCounts: (open: Int, all: Int) { (self.links?.openCount ?? 0, self.peerCount) }

    /// Everything acknowledged is on disk already; this hands leadership over and spares the next start a
    /// recovery.
    func stop() async {
        await self.replicas.stop()
        // What hands leadership over must still leave.
        if let links {
            try? await Task.sleep(for: .milliseconds(50))
            await links.stop()
        }
        self.router.stop()
    }

    func stopThreads() {
        self.storage.stop()
        self.logThread.stop()
        self.checkpoints.stop()
        self.ownLoop?.stop()
    }
}
