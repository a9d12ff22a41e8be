import StratusAssets
import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusPlacement
import StratusProcess
import StratusRecords
import StratusRuntime
import StratusSQLite
import StratusStorage
import StratusTLS
import Synchronization

/// A node's part in its cluster, put together: log, replicas, links and the router over them. A
/// node alone has the same, and nobody to link to.
final class NodeCluster: Sendable {
    let formation: ClusterFormation
    let directory: ClusterDirectory
    let replicas: NodeReplicas
    private let router: ClusterRouter
    /// For the node's own work. The gateway's clients follow its settings.
    let partitions: PartitionClient
    let follower: ClusterFollower
    /// The recovery that the system partition has yet to hear of.
    let recovery: ClusterRecovery?
    /// Watches the mail that waits between partitions.
    let mail = MailWatch()
    /// The memory budget for answers to reads, here and on their way to clients.
    let answers: AnswerBudget
    /// The copies of files that this node keeps.
    let copies: NodeCopies
    private let receivers: PeerReceivers
    private let world: RealWorld
    private let log: Log
    let health: Health
    var now: MonotonicTime { self.world.now }
    private let memory: PeerMemory
    private let certificates: PeerCertificates?
    private let tasks = Mutex<[Task<Void, Never>]>([])
    /// What this node says of itself to whoever looks into a problem; set once it is known.
    let support = Mutex<@Sendable () async -> [SupportFile]>({ [] })
    /// The key that seals clients' sync tokens, when all nodes must share it.
    let sharedTokenKey: Bytes?
    /// What the nodes share of a cluster that began as a single node.
    let master: ClusterMaster?
    /// The same, sealed.
    let sealedMaster: Bytes?
    private let links: PeerLinks?
    /// For metrics; nil for a node alone.
    var peerLinks: PeerLinks? { self.links }
    /// When the certificate among peers ends, in seconds since 1970; 0 for a node alone.
    var certificateEnd: Int64 { self.certificates?.end ?? 0 }
    private let sockets: SocketLinks?
    /// The event loop of the links, when they do not share one with clients.
    private let ownLoop: EventLoop?
    private let storage = WorkerThread(name: "storage")
    private let logThread = WorkerThread(name: "log")
    private let checkpoints = WorkerThread(name: "checkpoints", isBulk: true)

    /// The highest number of client loops at which the first of them also serves peers. On two
    /// cores, another thread costs every forwarded request two wake-ups and gains nothing.
    private static let sharedLoopCountMax = 2

    /// Opens the log and begins to work. Links are opened by ``join(_:)``.
    ///
    /// - Parameter loops: the clients'.
    init(
        _ plan: NodePlan, in world: RealWorld, of dataDirectory: DataDirectory, log: Log,
        health: Health, metrics: Metrics, certificates: PeerCertificates?, loops: [EventLoop]
    ) async throws(NodeFailure) {
        let settings = plan.settings
        let limits = NodePlan.limits(settings)
        let secret = try PeerCertificates.secret(settings)
        let ownLoop =
            loops.count > Self.sharedLoopCountMax ? EventLoop(name: "peers") : nil
        let loop = ownLoop ?? loops[0]
        if let certificates {
            try await NodeAdmission(
                settings, world: world, log: log, certificates: certificates, loop: loop
            ).seek()
        }
        let formation = try Self.formation(settings, secret, world, dataDirectory)
        self.recovery = try Self.recovery(formation, world)
        if self.recovery != nil {
            health.warn(
                "recovery",
                "this node goes on after 'stratus cluster recover', and the cluster has not taken it yet"
            )
        }
        let directory = try Self.directory(formation, settings, world)
        let (sealedMaster, master) = try Self.master(formation, directory, secret, world)
        try Self.checkLevel(of: directory)
        let inbox = ReplicaInbox()
        let logLimits = NodePlan.logLimits(settings)
        let start = StartLog(log, in: world, segmentSize: logLimits.segmentSize)
        let segments: SegmentedLog
        do throws(LogError) {
            segments = try SegmentedLog.open(
                in: "log", of: world, limits: logLimits, progress: { start.read($0) },
                reportingTo: inbox)
        } catch {
            throw NodeFailure(.inputOutput, "the log in '\(plan.dataDirectory)': \(error.text)")
        }
        let system = FileSystem(world.files)
        let records = DataState(partitionCount: formation.partitionCount)
        let caches = CacheBudget()
        let turns = FlushTurns()
        if directory.peers.isEmpty {
            try LoneStart(formation, directory, segments, world, log, health).goOn {
                (group) throws(StoreError) in
                try PartitionStore(records, group: group, in: "partitions", of: system)
            } system: { () throws(StoreError) in
                try PartitionStore(SystemState(), group: .system, in: "partitions", of: system)
            }
        }
        let starts: NodeStarts
        do throws(StartFile.Refusal) {
            starts = try StartFile.begin(in: world, as: NodeIncarnation(world.random()))
        } catch { throw NodeFailure(.inputOutput, "'\(plan.dataDirectory)': \(error)") }
        let own = PeerIdentity(
            cluster: formation.cluster, node: formation.node, name: formation.name,
            data: dataDirectory.identity, starts: starts)
        let memory: PeerMemory
        do throws(PeerMemory.Refusal) { memory = try PeerMemory(in: world) } catch {
            throw NodeFailure(.inputOutput, "'\(plan.dataDirectory)': \(error)")
        }
        let refusals = PeerRefusals(health) { directory.peers.count }
        let reach = PeerReach(health) { directory.peersWithReplicas }
        let sleep: @Sendable (MonotonicTime) async -> Void = { time in
            try? await loop.sleep(until: time)
        }

        // What comes in from peers finds its way once all of it stands.
        let receivers = PeerReceivers()
        let sockets = certificates.map { SocketLinks(on: loop, certificates: $0.forLinks) }
        var links: PeerLinks?
        if let sockets {
            links = PeerLinks(
                own, memory: memory, over: sockets, level: directory.level,
                events: PeerLinks.Events(
                    received: { node, message, receipt in
                        switch message {
                        case .response(let response):
                            receivers.router.withLock { $0 }?.receive(response, from: node)
                            receipt.settle()
                        case .request(let request):
                            if case .node(let question) = request.body {
                                receivers.answer(question, request.number, to: node, receipt)
                            } else {
                                inbox.receive(message, from: node, receipt)
                            }
                        case .copy(let copy): receivers.take(copy, from: node, receipt)
                        default: inbox.receive(message, from: node, receipt)
                        }
                    },
                    linkChanged: { node, isOpen in
                        log.info(
                            "a link changed",
                            ["peer": .describing(node), "open": .text(isOpen ? "yes" : "no")])
                        reach.look()
                        if isOpen {
                            refusals.heard(by: node)
                        } else {
                            receivers.router.withLock { $0 }?.lost(node)
                            receivers.lostCopies(of: node)
                        }
                    },
                    returned: { node in
                        receivers.router.withLock { $0 }?.lost(node)
                        receivers.lostCopies(of: node)
                    },
                    processEnded: { node in
                        log.info("the process of a node has ended", ["peer": .describing(node)])
                        inbox.noteEnded(node)
                    },
                    refused: { node, refusal in refusals.refused(by: node, refusal) },
                    greeted: { name, refusal in refusals.greeted(name, refusal) },
                    joining: { join, fingerprint, answer in
                        receivers.admit(join, fingerprint, answer)
                    },
                    trouble: { peer, what in
                        log.warning(
                            "a connection between nodes was refused",
                            ["peer": .text(peer), "reason": .text(what)])
                    },
                    bulkBroke: { node in receivers.lostCopies(of: node) }))
        }
        let linksMade = links
        if let linksMade { reach.begin { linksMade.isOpen(to: $0) } }
        let sender: any PeerSender = linksMade ?? NoPeers()
        var setup = NodeReplicas.Setup(
            node: formation.node, incarnation: own.incarnation,
            peers: directory.peers.map(\.node),
            openPartition: { (group) throws(StoreError) in
                if group == .system {
                    return try PartitionStore(
                        SystemState(), group: group, in: "partitions", of: system)
                }
                var limits = PartitionStore<DataState>.Limits()
                limits.caches = caches
                limits.turns = turns
                // Between two pieces other partitions have their turn, and heartbeats are answered.
                limits.writeCountMax = 512
                return try PartitionStore(
                    records, group: group, in: "partitions", of: system, limits: limits)
            },
            firstConfiguration: { directory.firstConfiguration(of: $0) }, sleep: sleep)
        setup.silentThrough = { directory.silentThrough(of: $0) }
        setup.isClustered = certificates != nil
        setup.limits = limits
        // Nobody else has to read what a node alone writes.
        let level = certificates == nil ? ClusterLevel.build : directory.level
        setup.level = level
        let answers = AnswerBudget(limits.bufferedAnswerSizeMax)
        setup.answers = answers
        setup.reserve = settings.size("storage.reserve")
        setup.snapshotRate = settings.size("storage.snapshotRate")
        setup.retainedLogSizeMax = settings.size("storage.retainedLogSizeMax")
        setup.tuning.retainedSizeMax = settings.size("storage.retainedSizeMax")
        setup.adds = AddingCommands.contains
        let copies = NodeCopies(
            settings, own: formation.node,
            peers: linksMade.map { links in
                NodeCopies.Peers(
                    send: { message, node in links.send(.copy(message), to: node) },
                    keepers: { directory.keepers(of: $0).all },
                    keeps: { directory.keeps($0) })
            }, in: world, log: log, health: health)
        receivers.copies.withLock { $0 = copies.courier }
        setup.bodies = copies.feed
        setup.tuning.awaitsCopies = true
        setup.events.reserveChanged = { isLow, free in
            if isLow {
                let why = "\(free >> 20) MiB are left, less than 'storage.reserve'"
                health.warn("disk", why)
                log.error(
                    "little disk space is left: requests that add data may be refused",
                    ["reason": .text(why)])
            } else {
                health.dropWarning("disk")
                log.info("the free space exceeds the reserve again")
            }
        }
        setup.events.clockChanged = { isOff, lead in
            if isOff {
                let why =
                    "the wall clock is \(lead.magnitude) ms \(lead < 0 ? "behind" : "ahead of") the other nodes': "
                    + "this node leads nothing"
                health.warn("clock", why)
                log.error("clock", ["reason": .text(why)])
            } else {
                health.dropWarning("clock")
                log.info("the clock agrees with the other nodes' again")
            }
        }
        setup.events.stallChanged = { isStalled in
            if isStalled {
                let why = "the log waits over a second for the disk: this node leads nothing"
                health.warn("log", why)
                log.error("log", ["reason": .text(why)])
            } else {
                health.dropWarning("log")
                log.info("the log no longer waits for the disk")
            }
        }
        setup.events.fenced = { why in
            health.raise("storage", why)
            log.error(
                "storage refuses everything after a failed write: only a restart brings it back",
                ["reason": .text(why)])
            if let linksMade { Task { await linksMade.stop() } }
        }
        setup.events.stopped = { group, newer in
            // The alarm says which; readiness says it as long as the process lives.
            health.raise("level", "\(group): \(newer)")
        }
        setup.events.roomChanged = { hasRoom in
            if hasRoom {
                health.clear("disk")
                log.info("the disk has free space again")
            } else {
                let why = "the disk is full; writes continue by themselves once there is free space"
                health.raise("disk", why)
                log.error("storage", ["reason": .text(why)])
            }
        }
        setup.events.opened = { count, total in start.opened(count, of: total) }
        setup.events.unopenedChanged = { groups, why in
            Self.follow(unopened: groups, why, isAlone: directory.peers.isEmpty, health)
        }
        setup.events.alarm = { group, what in
            log.error("partition", ["group": .describing(group), "reason": .text(what)])
        }
        setup.events.roleChanged = { group, role, term, leader in
            if let leader { receivers.router.withLock { $0 }?.leads(leader, group) }
            log.debug(
                "leadership",
                [
                    "group": .describing(group), "role": .text("\(role)"),
                    "term": .describing(term), "leader": .text(leader.map { "\($0)" } ?? "none"),
                ])
        }
        let commits = metrics.histogram(
            "stratus_commit_seconds",
            "From when a leader on this node took a command until it was committed and applied")
        setup.events.committed = { commits.record($0) }
        let syncs = metrics.histogram(
            "stratus_log_sync_seconds", "How long the disk took to sync the log")
        segments.start(on: self.logThread) { syncs.record($0) }
        let replicas = NodeReplicas(
            setup, log: segments, inbox: inbox, sender: sender, in: world, on: self.storage,
            checkpointsOn: self.checkpoints)
        let router = ClusterRouter(
            replicas, sender: sender, in: world, limits: limits, level: level,
            place: { directory.place(of: $0) }, placeOfGroup: { directory.place(of: $0) },
            sleep: sleep)
        receivers.router.withLock { $0 = router }

        self.formation = formation
        self.copies = copies
        self.replicas = replicas
        self.router = router
        self.partitions = PartitionClient(router, in: world, limits: limits)
        self.answers = answers
        self.links = linksMade
        self.sockets = sockets
        self.ownLoop = ownLoop
        self.certificates = certificates
        self.directory = directory
        self.receivers = receivers
        self.world = world
        self.log = log
        self.health = health
        self.memory = memory
        var events = ClusterFollower.Events()
        let listed = ClusterPeers.parse(settings)
        let drains = DrainLog(log, in: world)
        drains.look(directory.view)
        events.changed = { view in
            Self.follow(view, directory, memory, log, health)
            drains.look(view)
            linksMade?.setPeers(Self.peers(directory, listed))
            linksMade?.setWithdrawn(view.withdrawn)
            refusals.follow(directory.peers.map(\.name))
            reach.look()
        }
        events.trouble = { what in log.error("membership", ["reason": .text(what)]) }
        self.follower = ClusterFollower(
            directory, replicas: replicas, router: router, events: events,
            sleep: { try? await Task.sleep(for: $0) })
        self.sealedMaster = sealedMaster
        self.master = master
        self.sharedTokenKey =
            master?.key ?? secret.map { ClusterFormation.key(for: "sync tokens", secret: $0) }
        await copies.begin(replicas, self.partitions)
        await replicas.start()
    }

    /// The members of the partition that holds a database.
    func bodyMembers(of database: DatabaseID) -> BodyMembers {
        self.bodyMembers(in: self.directory.place(of: .database(database)).group)
    }

    func bodyMembers(in group: GroupID) -> BodyMembers {
        guard self.links != nil else {
            let own: Set<NodeID> = [self.formation.node]
            return BodyMembers(group: group, all: own, voterSets: [own])
        }
        let keepers = self.directory.keepers(of: group)
        return BodyMembers(group: group, all: keepers.all, voterSets: [keepers.placed])
    }

    private static func formation(
        _ settings: ConfigurationSettings, _ secret: Bytes?, _ world: RealWorld,
        _ directory: DataDirectory
    ) throws(NodeFailure) -> ClusterFormation {
        let count = settings.integer("cluster.partitionCount")
        if ClusterPeers.isJoining(settings) {
            do throws(ClusterFormation.Refusal) {
                if let kept = try ClusterFormation.kept(in: world) { return kept }
            } catch { throw NodeFailure(.configuration, error.description) }
            preconditionFailure("a node that was admitted wrote it down")
        }
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

    /// The master value of a cluster that began as a single node. The first node has it from its
    /// conversion; a node that joins has it from the view it was admitted with.
    private static func master(
        _ formation: ClusterFormation, _ directory: ClusterDirectory, _ secret: Bytes?,
        _ world: RealWorld
    ) throws(NodeFailure) -> (sealed: Bytes?, opened: ClusterMaster?) {
        guard let secret else { return (nil, nil) }
        do throws(ClusterMaster.Refusal) {
            guard
                let sealed = try ClusterMaster.found(
                    in: world, view: directory.view.settings.master)
            else {
                if formation.convertedLevel != nil { throw .missing }
                return (nil, nil)
            }
            return (sealed, try ClusterMaster(opening: sealed, with: secret))
        } catch { throw NodeFailure(.configuration, error.description) }
    }

    private static func recovery(
        _ formation: ClusterFormation, _ world: RealWorld
    ) throws(NodeFailure) -> ClusterRecovery? {
        let kept: ClusterRecovery?
        do throws(RecoveryNote.Refusal) { kept = try RecoveryNote.kept(in: world.files) } catch {
            throw NodeFailure(.inputOutput, error.description)
        }
        guard kept.map({ $0.cluster == formation.cluster }) ?? true else {
            throw NodeFailure(
                .configuration,
                "a recovery of this node was interrupted: run 'stratus cluster recover' again")
        }
        return kept
    }

    /// The directory as it was when the cluster was formed; nil on a node that joined later.
    static func founding(
        _ formation: ClusterFormation, _ settings: ConfigurationSettings
    ) throws(NodeFailure) -> ClusterView? {
        guard formation.isFounder else { return nil }
        let addresses = ClusterPeers.addresses(settings)
        guard let view = ClusterView.formed(by: formation.formation(addresses: addresses)) else {
            throw NodeFailure(
                .configuration, "'cluster.peers': two nodes cannot have the same address")
        }
        return view
    }

    /// The directory as it was last known here.
    private static func directory(
        _ formation: ClusterFormation, _ settings: ConfigurationSettings, _ world: RealWorld
    ) throws(NodeFailure) -> ClusterDirectory {
        let founding = try Self.founding(formation, settings)
        do throws(ClusterDirectory.Refusal) {
            return try ClusterDirectory(formation.node, founding: founding, in: world)
        } catch { throw NodeFailure(.inputOutput, error.description) }
    }

    /// A node that cannot read what the cluster writes takes no part in it.
    private static func checkLevel(of directory: ClusterDirectory) throws(NodeFailure) {
        let level = directory.level.now
        guard level > .build else { return }
        throw NodeFailure(
            .configuration,
            "the cluster was finalised at feature level \(level), and this build reads at "
                + "most level \(FeatureLevel.build): install the release that the other nodes run")
    }

    /// The peers, and where each may be found: where the configuration says, and where the
    /// cluster's view does.
    ///
    /// A whole cluster may have moved. Then a view that tells where one of its nodes is now still
    /// has the old addresses of the others. A node that believed it would lose the links on which
    /// it would have heard of the next view.
    static func peers(
        _ directory: ClusterDirectory, _ listed: [ClusterFormation.Peer]
    ) -> [PeerAddress] {
        directory.peers.map { peer in
            guard let place = listed.first(where: { $0.name == peer.name }) else { return peer }
            return PeerAddress(
                node: peer.node, name: peer.name, host: place.host, port: place.port,
                otherPlace: PeerAddress.Place(host: peer.host, port: peer.port))
        }
    }

    /// Makes the memory follow a view. On the follower's executor.
    private static func follow(
        _ view: ClusterView, _ directory: ClusterDirectory, _ memory: PeerMemory, _ log: Log,
        _ health: Health
    ) {
        do throws(DiskError) {
            try memory.follow(view)
        } catch { log.error("membership", ["reason": .text("PEERS: \(error)")]) }
        if view.node(directory.own)?.isMember == false {
            let why = "this node was removed from the cluster: stop it"
            health.raise("cluster", why)
            log.error("membership", ["reason": .text(why)])
        }
        log.debug(
            "the cluster's view",
            [
                "revision": .integer(Int64(clamping: view.settings.revision)),
                "nodes": .count(view.nodes.count(where: \.isMember)),
                "moves": .count(view.moves.count),
            ])
    }

    /// A node is not ready where another can do what it cannot: open its replicas.
    private static func follow(
        unopened groups: [GroupID], _ why: String, isAlone: Bool, _ health: Health
    ) {
        health.clear("partitions")
        health.dropWarning("partitions")
        if groups.isEmpty { return }
        let names = ReplicaTroubles.list(groups.map { ReplicaTroubles.name(of: $0) })
        let text = "\(groups.count) cannot be opened (\(names)): \(why)"
        if isAlone { health.warn("partitions", text) } else { health.raise("partitions", text) }
    }

    /// Listens for peers, opens links to them, and takes part in what the cluster does.
    func join(
        _ settings: ConfigurationSettings, admitting: SystemPartition?, polls: PollAttendance
    ) async throws(NodeFailure) {
        guard let links, let sockets else { return }
        guard let listen = ClusterPeers.listen(settings, name: self.formation.name) else {
            throw NodeFailure(
                .configuration,
                "set 'cluster.listen' or 'cluster.address' to say where peers connect"
            )
        }
        guard let address = await Endpoints.addresses(listen).first else {
            throw NodeFailure(.system, "cannot listen on \(listen): the name cannot be resolved")
        }
        let log = self.log
        self.receivers.become(
            questions: NodeQuestions(
                self.directory, replicas: self.replicas, follower: self.follower,
                polls: { polls.hear($0) },
                support: { [self] in await self.support.withLock { $0 }() },
                health: { [self] in await self.ownHealth() }),
            sender: links,
            admission: admitting)
        do throws(SocketError) { _ = try await sockets.listen(on: address, for: links) } catch {
            throw NodeFailure(.system, "cannot listen for peers on \(listen): \(error)")
        }
        Self.follow(self.directory.view, self.directory, self.memory, log, self.health)
        links.setPeers(Self.peers(self.directory, ClusterPeers.parse(settings)))
        links.setWithdrawn(self.directory.view.withdrawn)
        let follower = self.follower
        let keeper = MembershipKeeper(
            self.directory, replicas: self.replicas, router: self.router, follower: follower,
            in: self.world,
            log: { words in
                let fields = words.fields
                if words.isDetail {
                    log.debug("membership", fields)
                } else {
                    log.info("membership", fields)
                }
            },
            sleep: { try? await Task.sleep(for: $0) })
        self.tasks.withLock {
            $0 = [Task { await follower.run() }, Task { await keeper.run() }]
        }
    }

    /// The health that this node reports to anyone who looks for problems.
    func ownHealth() async -> NodeHealth {
        var health = NodeHealth()
        health.version = Versions.stratus
        health.wallMilliseconds = self.world.wallMilliseconds
        health.complaints = self.health.reasons.map {
            NodeHealth.Complaint(component: $0.component, reason: $0.text)
        }
        health.complaints += self.health.warnings.map {
            NodeHealth.Complaint(component: $0.component, reason: $0.text)
        }
        if let fault = self.replicas.fault {
            health.complaints.append(.init(component: "storage", reason: fault))
        }
        for line in ReplicaTroubles(of: await self.replicas.status()).lines {
            health.complaints.append(.init(component: "replicas", reason: line))
        }
        for stuck in self.mail.stuck(at: self.world.now) {
            health.complaints.append(.init(component: "mail", reason: stuck.description))
        }
        health.ledCount = await self.replicas.observations().count
        health.revision = self.directory.revision
        health.residentBytes = UInt64(max(0, ProcessFacts.residentBytes))
        if let space = try? self.world.files.space() {
            health.freeBytes = space.free
            health.diskBytes = space.all
        }
        health.certificateEnds = self.certificates?.end ?? 0
        return health
    }

    /// Watches the room on this node's disk, and hears of that on its peers': a group that is led
    /// here goes by both. Until cancelled.
    func watchRoom() async {
        var round = 0
        while !Task.isCancelled {
            await self.replicas.watchSpace()
            if round % Self.peerRoomRounds == 0 { await self.hearOfRoom() }
            round += 1
            try? await Task.sleep(for: .seconds(1))
        }
    }

    private static let peerRoomRounds = 5

    private func hearOfRoom() async {
        let (router, peers) = (self.router, self.directory.peers.map(\.node))
        await withTaskGroup(of: (NodeID, UInt64)?.self) { tasks in
            for node in peers {
                tasks.addTask {
                    guard
                        case .health(let health)? = await router.ask(
                            .health, of: node, within: .seconds(1)), health.diskBytes > 0
                    else { return nil }
                    return (node, health.freeBytes)
                }
            }
            for await case (let node, let free)? in tasks {
                await self.replicas.heard(free: free, of: node)
            }
        }
    }

    /// A client of the partitions by other limits, or told of what they decide.
    func partitions(
        _ limits: Limits, decided: (@Sendable (Outcome) -> Void)? = nil
    ) -> PartitionClient {
        PartitionClient(self.router, in: self.world, limits: limits, decided: decided)
    }

    /// A question for another node itself, whatever it leads.
    /// - Returns: nil when it did not answer in time.
    func ask(
        _ question: NodeQuestion, of node: NodeID, within patience: Duration
    ) async -> NodeReply? { await self.router.ask(question, of: node, within: patience) }

    /// Answers a question about this node the way ``NodeQuestions`` answers others.
    func ownReply(to question: NodeQuestion) async -> NodeReply {
        await NodeQuestions(
            self.directory, replicas: self.replicas, follower: self.follower,
            support: { [self] in await self.support.withLock { $0 }() },
            health: { [self] in await self.ownHealth() }
        ).reply(to: question)
    }

    /// Peers that this node can send to now, of all there are.
    var linkCounts: (open: Int, all: Int) {
        (self.links?.openCount ?? 0, self.directory.peers.count)
    }

    /// From now on nothing waits for a majority longer than `patience`. What waits already is given
    /// up then, or sooner if this is cancelled.
    func hurry(within patience: Duration) async {
        self.router.hurry(within: patience)
        try? await Task.sleep(for: patience)
        // What was asked since has a deadline that is nearer.
        await self.replicas.giveUp(dueAfter: self.world.now + patience)
    }

    /// Everything acknowledged is on disk already; this hands leadership over and spares the next
    /// start a recovery.
    func stop() async {
        let tasks = self.tasks.withLock { $0 }
        for task in tasks { task.cancel() }
        await self.copies.stop()
        await self.replicas.stop()
        // What hands leadership over must still leave.
        if let links {
            try? await Task.sleep(for: .milliseconds(50))
            await links.stop()
        }
        self.router.stop()
        // Nothing waits for anything from here on; whoever slept on the loop has to wake before it
        // stops.
        for task in tasks { await task.value }
    }

    func stopThreads() {
        self.storage.stop()
        self.logThread.stop()
        self.checkpoints.stop()
        self.copies.stopThreads()
        self.ownLoop?.stop()
    }
}
