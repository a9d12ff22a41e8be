import StratusAdmin
import StratusAssets
import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusContainers
import StratusGateway
import StratusIdentity
import StratusModel
import StratusProcess
import StratusRecords
package import StratusRuntime
import StratusSealing
import StratusStorage
import StratusTLS
import Synchronization

/// One node: everything that `stratus serve` and `stratus dev` run, put together.
///
/// The way of a request, from the outside in: ``HTTPServer`` → ``ObservedHandler`` →
/// ``ClientFront`` → ``Gateway`` → ``PartitionClient`` → ``ClusterRouter`` → ``NodeReplicas``, here or on a peer.
/// The administrators' listener has a server, a loop and a handler of its own: it answers while
/// clients keep every other loop busy.
///
/// Order: data directory and storage first, then the administrators' listener, then the clients';
/// the node is ready when all of it stands. ``stop(deadline:)`` goes the other way.
package final class Node: Sendable {
    private let plan: NodePlan
    private let state: NodeState
    private let clients: ObservedHandler
    private let front: ClientFront
    private let makeGateway: @Sendable (ConfigurationSettings) -> Gateway
    private let token: AdminToken
    private let directory: DataDirectory
    private let cluster: NodeCluster
    private let containers: ContainerRegistry
    private let peerCertificates: PeerCertificates?
    private let loops: [EventLoop]
    private let clientServer: HTTPServer
    private let adminServer: HTTPServer
    /// Nil where `metrics.listen` is empty.
    private let metricsServer: HTTPServer?
    private let certificates: Certificates
    private let jobs: Task<Void, Never>
    private let mail: Task<Void, Never>
    private let attending: Task<Void, Never>
    /// Nil where `push.enabled` is off.
    private let pushing: Task<Void, Never>?
    private let emails: SMTPSender?
    private let scrubbing: Task<Void, Never>
    private let watchingRoom: Task<Void, Never>
    private let watchingThreads: Task<Void, Never>
    private let watchingCluster: Task<Void, Never>
    private let watchingSizes: Task<Void, Never>
    private let countingRecords: Task<Void, Never>
    private let watchingMasters: Task<Void, Never>
    /// Forms the cluster, or says that this node is back.
    private let announcing: Task<Void, Never>?

    /// The URLs where clients connect, in the order configured, with the ports that the system
    /// chose.
    package var clientURLs: [String] { self.state.clientURLs }
    package var adminURL: String { self.state.adminURL }
    package var adminTokenFile: String { self.token.path }
    package var log: Log { self.state.log }

    /// Makes a container known, as a client does in development that names it.
    func admit(_ container: ContainerReference) async {
        do {
            if try await !self.containers.admit(container) {
                self.log.warning(
                    "a container was deleted, or is being reset",
                    ["container": .text(container.container)])
            }
        } catch {
            self.log.warning(
                "a container could not be made",
                ["container": .text(container.container), "reason": .text("\(error)")])
        }
    }

    /// - Parameter log: belongs to the node from now on; ``stop(deadline:)`` flushes it.
    package init(_ plan: NodePlan, log: Log) async throws(NodeFailure) {
        let settings = plan.settings
        let (world, directory) = try Self.openDataDirectory(plan, log: log)
        let certificates = try Certificates(settings)

        let peerCertificates = try PeerCertificates.make(settings)
        let health = Health()
        if let warning = KeyBesideData.warning(settings) {
            log.warning("a sealed data directory holds its own key", ["why": .text(warning)])
            health.warn("sealing", warning)
        }
        let metrics = Metrics()
        let loopCount = settings.integer("loopCount")
        let loops = EventLoop.group(
            count: loopCount > 0 ? loopCount : ProcessFacts.coreCount)
        let cluster = try await NodeCluster(
            plan, in: world, of: directory, log: log, health: health, metrics: metrics,
            certificates: peerCertificates, loops: loops)
        let token = try Self.openToken(
            plan, world, try PeerCertificates.secret(settings), shared: cluster.master?.adminToken)
        let tokenKey: Bytes
        if let shared = cluster.sharedTokenKey {
            tokenKey = shared
        } else {
            tokenKey = try Self.openTokenKey(plan, world)
        }
        let master = try Self.openMaster(settings, tokenKey, world)
        let state = NodeState(
            plan, log: log, world: world, health: health, metrics: metrics, cluster: cluster)
        cluster.support.withLock {
            $0 = { [weak state] in await state?.supportFiles() ?? [] }
        }
        state.logReadiness()
        let systemPartition = SystemPartition(
            cluster, world: world, log: log, health: health, settings: settings,
            directory: directory.identity.high)

        let isOpen = settings.bool("development")
        let feeds = TokenCipher(key: tokenKey)
        let assetCiphers = AssetCiphers(master: tokenKey)
        let authenticator = CredentialAuthenticator(
            accounts: Accounts(
                store: IdentityStore(
                    partitions: cluster.partitions, keys: IdentityKeys(master: tokenKey)),
                hasher: PasswordHasher()),
            development: isOpen ? Self.developmentUsers(settings) : nil,
            signInBase: settings.text("signIn.url"), feeds: feeds, assets: assetCiphers,
            zoneBuckets: isOpen ? Self.zoneBuckets(settings) : 1)
        var signIn = SignInService.Settings()
        signIn.commandDeadline = settings.duration("limits.commandDeadline")
        signIn.addressesAreTrusted = isOpen
        signIn.signUpIsOpen = isOpen || settings.bool("signIn.signUp")
        let containerKeys = ContainerKeys(
            store: authenticator.store, master: master, agreed: MasterWatch.noting(in: world))
        let databaseKeys = DatabaseKeys(
            store: authenticator.store, containers: containerKeys)
        let emails = try SMTPSender.make(
            settings, world: world, loop: loops[loops.count - 1], log: log, metrics: state.metrics)
        let people = SignInService(
            authenticator: authenticator, settings: signIn, keys: databaseKeys,
            email: emails.map { EmailDesk($0, base: settings.text("signIn.url") ?? "") }, log: log)

        let bodies = BodyBudget(settings.size("limits.bufferedBodySizeMax")) {
            // What large bodies left in the allocator's arenas goes back to the system. On no loop:
            // it takes a while.
            Task.detached { ProcessFacts.returnMemory() }
        }
        let counts = RecordCounts()
        let polls = HeldRequests()
        let pushKeys = PushKeys(store: authenticator.store, containers: containerKeys)
        let registry = PushRegistry(
            keys: pushKeys, allowsPrivate: settings.bool("push.allowPrivateAddresses"))
        let push = try Self.openPush(
            settings, pushKeys, authenticator, tokenKey: tokenKey, loop: loops[loops.count - 1],
            state)
        let claims = UploadClaims()
        let makeGateway: @Sendable (ConfigurationSettings) -> Gateway = { settings in
            let kit = AssetKit(
                ciphers: assetCiphers, keys: databaseKeys, bodies: cluster.copies.bodies,
                buffers: cluster.copies.buffers, claims: claims,
                members: { cluster.bodyMembers(of: $0) },
                keepUp: { try await authenticator.keepUp() },
                isOpen: { container, _ in
                    let descriptor = try await authenticator.registry.descriptor(of: container)
                    return descriptor.map { $0.state == .active } ?? true
                }, sleep: { try? await Task.sleep(for: $0) },
                settings: NodePlan.assets(settings))
            var gateway = GatewaySettings()
            gateway.counts = counts
            gateway.developmentSchema =
                settings.text("developmentSchema") == "strict" ? .strict : .justInTime
            gateway.hasExtensions = settings.bool("client.extensions")
            func rate(_ key: String) -> Int? {
                let rate = settings.integer(key)
                return rate > 0 ? rate : nil
            }
            gateway.requestRateMax = rate("limits.requestRateMax")
            gateway.containerRequestRateMax = rate("limits.containerRequestRateMax")
            gateway.tokenRequestRateMax = rate("limits.tokenRequestRateMax")
            gateway.addressRequestRateMax = rate("limits.addressRequestRateMax")
            gateway.userLookUpRateMax = rate("limits.userLookupRateMax")
            gateway.keyValueRateMax = rate("limits.keyValueRateMax")
            gateway.userLiveStreamCountMax = settings.integer("limits.userLiveStreamCountMax")
            gateway.heldRequestCountMax = settings.integer("limits.heldRequestCountMax")
            gateway.liveStreamCountMax = settings.integer("limits.liveStreamCountMax")
            gateway.takesPlainPasswords =
                settings.bool("client.allowPlain") || settings.bool("development")
            let limits = NodePlan.limits(settings)
            let kernel = GatewayKernel(
                partitions: cluster.partitions(limits), authenticator: authenticator,
                keys: databaseKeys, tokenKey: tokenKey, feeds: feeds, settings: gateway,
                limits: limits, bodies: bodies, answers: cluster.answers,
                held: polls, log: log)
            let needs = GatewayNeeds(
                people: people, assets: kit, push: registry, metrics: state.metrics)
            return Gateway(kernel, needs) { [HealthSurface(state.health, elsewhere: $0)] }
        }
        let gateway = makeGateway(settings)
        let front = ClientFront(gateway)
        let clients = ObservedHandler(
            front, listener: "client", log: log, metrics: state.metrics,
            writesLines: settings.bool("log.access"), now: { world.now })

        let adminLoop = EventLoop(name: "admin")
        var clientConfiguration = HTTPServerConfiguration(
            listeners: try await Self.addresses(settings.addresses("client.listen")).map {
                .init($0, tls: certificates.client)
            }, limits: Self.serverLimits(settings))
        clientConfiguration.plainHTTP2 = settings.bool("client.plainHTTP2")
        clientConfiguration.http2Metrics = HTTP2Metrics(state.metrics, listener: "client")
        let clientServer = HTTPServer(
            configuration: clientConfiguration, loops: loops, world: world, handler: clients)

        let admin = ObservedHandler(
            AdminHandler(
                control: state, health: state.health, metrics: state.metrics, log: log,
                settings: AdminHandler.Settings(
                    isToken: { token.matches($0) },
                    metricsAreOpen: settings.bool("admin.openMetrics")),
                directory: people.directory,
                cluster: systemPartition, push: push, files: gateway.assets,
                resealing: CurrentFiles(front), copying: CurrentFiles(front)),
            listener: "admin", log: log, metrics: state.metrics, writesLines: false,
            now: { world.now })
        guard let adminAddress = settings.address("admin.listen") else {
            preconditionFailure("'admin.listen' has a default")
        }
        let adminServer = HTTPServer(
            configuration: HTTPServerConfiguration(
                listeners: try await Self.addresses([adminAddress]).map {
                    .init($0, tls: certificates.admin)
                }, limits: Self.adminLimits(settings)),
            loops: [adminLoop], world: world, handler: admin)

        let metricsServer = try await Self.metricsServer(
            settings, state: state, log: log, world: world, loop: adminLoop)

        let attendance = PollAttendance(polls, cluster, in: world)
        try await cluster.join(settings, admitting: systemPartition, polls: attendance)
        let adminBound = try await Self.listen(adminServer, [adminAddress])
        let bound: [SocketAddress]
        do throws(NodeFailure) {
            if let metricsServer {
                state.scrapers(
                    try await Self.listen(metricsServer, settings.addresses("metrics.listen")).map {
                        Endpoints.url($0, isSecure: false)
                    })
            }
            bound = try await Self.listen(clientServer, settings.addresses("client.listen"))
        } catch {
            await adminServer.stop(deadline: .zero)
            await metricsServer?.stop(deadline: .zero)
            throw error
        }
        state.listening(
            clients: bound.map {
                Endpoints.url($0, isSecure: certificates.client != nil)
            },
            admin: Endpoints.url(adminBound[0], isSecure: certificates.admin != nil))

        self.plan = plan
        self.state = state
        self.clients = clients
        self.front = front
        self.makeGateway = makeGateway
        self.token = token
        self.directory = directory
        self.cluster = cluster
        self.containers = authenticator.registry
        self.peerCertificates = peerCertificates
        self.loops = loops + [adminLoop]
        self.certificates = certificates
        self.clientServer = clientServer
        self.adminServer = adminServer
        self.metricsServer = metricsServer
        self.jobs = state.runJobs()
        self.mail = state.runMail()
        self.attending = attendance.run()
        self.pushing = push.map { push in Task { await push.run() } }
        self.emails = emails
        self.scrubbing = state.runScrub()
        self.watchingRoom = state.runRoomWatch()
        let threads = ThreadWatch(
            cluster.replicas, loops: self.loops, world: world, health: health, log: log)
        self.watchingThreads = threads.run()
        let sizes = DataSizes(plan.dataDirectory)
        self.watchingSizes = sizes.run()
        let held = HeldCounts(cluster.replicas)
        self.countingRecords = held.run()
        self.watchingMasters = MasterWatch(containerKeys, health: health, log: log).run()
        let partitions = ClusterWatch(cluster)
        self.watchingCluster = partitions.run()
        systemPartition?.awaitFormation()
        self.announcing = systemPartition.map { part in
            Task { await part.takePart { try await LinkAudit(people.directory).beginEverywhere() } }
        }
        NodeMetrics.register(state, clients: clients, server: clientServer, bodies: bodies)
        NodeMetrics.register(polls.figures + [clientServer.figures], in: state.metrics)
        NodeMetrics.register(threads, in: state.metrics)
        NodeMetrics.register(certificates, in: state.metrics)
        NodeMetrics.register(counts, people, in: state.metrics)
        NodeMetrics.register(sizes, in: state.metrics)
        NodeMetrics.register(held, in: state.metrics)
        NodeMetrics.register(partitions, of: state)
        state.health.clear("starting")
    }

    private static func developmentUsers(_ settings: ConfigurationSettings)
        -> DevelopmentAuthenticator
    {
        var users = DevelopmentAuthenticator.Settings()
        users.isStrict = settings.text("developmentUsers") == "strict"
        return DevelopmentAuthenticator(settings: users)
    }

    /// A number that is no power of two counts as the next smaller one that is.
    private static func zoneBuckets(_ settings: ConfigurationSettings) -> Int {
        let wanted = settings.integer("developmentZoneBuckets")
        return (1...Bucket.countMax).last { $0 <= wanted && Bucket.isOffered($0) } ?? 1
    }

    // MARK: Reload

    /// SIGHUP: reads the configuration, the certificates and the token again. Whatever is wrong
    /// leaves things as they are and says so in the log.
    package func reload() {
        let old = self.state.settings.withLock { $0 }
        let result: ConfigurationReader.Result
        do throws(ConfigurationLoading.Refusal) {
            result = try ConfigurationLoading.load(
                self.plan.configurationPath, overrides: self.plan.overrides)
        } catch {
            for line in error.lines { self.refuseReload(line) }
            return
        }
        for problem in result.problems { self.refuseReload(problem.description) }
        guard result.problems.isEmpty else { return }

        let changes = old.changes(to: result.settings)
        var settings = old
        for key in changes where key.reloads { settings.copy(key.path, from: result.settings) }
        // A certificate may be another one behind the same path, so it is read whatever changed.
        do throws(NodeFailure) {
            try self.certificates.reload(settings)
            try self.peerCertificates?.reload(settings)
        } catch {
            self.refuseReload(error.description)
            return
        }
        do throws(AdminToken.Failure) { try self.token.reload() } catch {
            self.refuseReload(error.description)
        }
        self.state.settings.withLock { $0 = settings }
        let (replicas, reserve) = (self.cluster.replicas, settings.size("storage.reserve"))
        let rate = settings.size("storage.snapshotRate")
        let keeper = self.cluster.copies.keeper
        let compaction = settings.size("assets.compactionRate")
        self.cluster.copies.adopt(settings)
        Task {
            await keeper.compact(at: compaction)
            await replicas.keepFree(reserve)
            await replicas.paceSnapshots(at: rate)
        }
        self.log.level = LogLevel(name: settings.text("log.level") ?? "") ?? .info
        self.clients.writeLines(settings.bool("log.access"))
        self.front.gateway = self.makeGateway(settings)
        self.clientServer.replaceLimits(with: Self.serverLimits(settings))
        self.adminServer.replaceLimits(with: Self.adminLimits(settings))
        for key in changes where !key.reloads {
            self.log.warning(
                "a changed key waits for a restart", ["key": .text(key.path)])
        }
        let applied = changes.filter(\.reloads).map(\.path).joined(separator: " ")
        var read = "configuration, administrators' token, listeners' certificates"
        if let end = self.peerCertificates?.end {
            read += ", certificate among peers until \(WallTime.text(end * 1_000))"
        }
        self.log.info(
            "configuration read again", ["read": .text(read), "changed": .text(applied)])
    }

    private func refuseReload(_ reason: String) {
        self.log.error("configuration not taken", ["reason": .text(reason)])
    }

    // MARK: Stop

    /// A request that a majority is there for is done by then. If its peers stop as well, nobody is
    /// left for it to wait for.
    private static let leaderPatience = Duration.seconds(3)

    /// Not ready first; no new connections; what is in flight ends, or is cut after `deadline`
    /// (G-38). What waits for a leader is answered sooner: its client may ask another node, or this
    /// one's next process.
    package func stop(deadline: Duration) async {
        self.state.health.raise("stopping", "the node is stopping")
        self.jobs.cancel()
        self.mail.cancel()
        self.attending.cancel()
        self.pushing?.cancel()
        self.scrubbing.cancel()
        self.watchingRoom.cancel()
        self.watchingThreads.cancel()
        self.watchingCluster.cancel()
        self.watchingSizes.cancel()
        self.countingRecords.cancel()
        self.watchingMasters.cancel()
        self.announcing?.cancel()
        let cluster = self.cluster
        let hurrying = Task { await cluster.hurry(within: Self.leaderPatience) }
        await self.clientServer.stop(deadline: deadline)
        hurrying.cancel()
        self.emails?.stop()
        await self.cluster.stop()
        await self.adminServer.stop(deadline: .milliseconds(200))
        await self.metricsServer?.stop(deadline: .milliseconds(200))
        self.cluster.stopThreads()
        for loop in self.loops { loop.stop() }
        self.log.info("stopped")
        self.log.flush()
    }
}
