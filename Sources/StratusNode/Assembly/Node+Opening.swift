import StratusAdmin
import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusGateway
import StratusHTTP
import StratusHTTP2
import StratusIdentity
import StratusModel
import StratusProcess
import StratusPush
import StratusRuntime
import StratusSealing
import StratusStorage
import StratusTLS

/// The steps of a start, each with the words for when it fails.
extension Node {
    /// Locks the data directory, or makes it.
    ///
    /// - Returns: a world whose files are sealed, if the directory is.
    static func openDataDirectory(_ plan: NodePlan, log: Log) throws(NodeFailure) -> (
        RealWorld, DataDirectory
    ) {
        let path = plan.dataDirectory
        do throws(SmallFile.Failure) { try SmallFile.makeDirectory(path) } catch {
            throw NodeFailure(.cannotCreate, "the data directory: \(error)")
        }
        let world: RealWorld
        do throws(DiskError) { world = try RealWorld(dataDirectory: path) } catch {
            throw NodeFailure(.cannotCreate, "the data directory '\(path)': \(error)")
        }
        let directory: DataDirectory
        do throws(DataDirectory.Refusal) {
            directory = try DataDirectory(in: world, atRest: plan.settings.bool("storage.atRest"))
        } catch { throw NodeFailure(.system, "'\(path)': \(error)") }
        for left in (try? DirectoryConversion.remains(in: world.files)) ?? [] {
            log.warning(
                "a conversion left files in the data directory: remove them once they are not needed",
                ["path": .text("\(path)/\(left)")])
        }
        guard directory.isSealed else { return (world, directory) }
        // Its key is made before the first file that is sealed under it.
        if try PeerCertificates.secret(plan.settings) == nil {
            _ = try Self.openTokenKey(plan, world)
        }
        var atRest = try FilesAtRest(plan.settings, world, directory)
        if (try? ClusterFormation.kept(in: atRest.world))?.isAlone == true {
            atRest = try FilesAtRest(plan.settings, world, directory, isAlone: true)
        }
        try atRest.survey(log)
        return (atRest.world, directory)
    }

    /// - Parameter secret: the cluster's. The nodes of one cluster make the same token from it, so
    ///   that one credential is good for all of them.
    /// - Parameter shared: the token that a cluster has from the single node that it began as.
    static func openToken(
        _ plan: NodePlan, _ world: RealWorld, _ secret: Bytes?, shared: Bytes?
    ) throws(NodeFailure) -> AdminToken {
        do throws(AdminToken.Failure) {
            return try AdminToken(
                path: plan.adminTokenFile, shared: shared,
                draw: {
                    secret.map { ClusterFormation.key(for: "administrators' token", secret: $0) }
                        ?? Self.draw(world)
                })
        } catch {
            throw NodeFailure(.configuration, "the administrators' token: \(error)")
        }
    }

    /// The server of `metrics.listen`; nil where that is empty.
    static func metricsServer(
        _ settings: ConfigurationSettings, state: NodeState, log: Log, world: RealWorld,
        loop: EventLoop
    ) async throws(NodeFailure) -> HTTPServer? {
        let listen = settings.addresses("metrics.listen")
        if listen.isEmpty { return nil }
        let handler = ObservedHandler(
            MetricsHandler(health: state.health, metrics: state.metrics), listener: "metrics",
            log: log, metrics: state.metrics, writesLines: false, now: { world.now })
        return HTTPServer(
            configuration: HTTPServerConfiguration(
                listeners: try await Self.addresses(listen).map { .init($0) }),
            loops: [loop], world: world, handler: handler)
    }

    /// The key that seals clients' sync tokens. It is drawn once and stays the same for the life of
    /// the data.
    static func openTokenKey(_ plan: NodePlan, _ world: RealWorld) throws(NodeFailure) -> Bytes {
        let path = plan.dataDirectory + "/token.key"
        do throws(SmallFile.Failure) {
            if SmallFile.state(path) == .absent {
                try SmallFile.createSecret(path, Self.draw(world))
            }
            let key = try SmallFile.read(path, limit: 64)
            if key.count == 32 { return key }
        } catch {
            throw NodeFailure(.inputOutput, "the key of the sync tokens: \(error)")
        }
        throw NodeFailure(.inputOutput, "'\(path)' must hold 32 bytes: restore it from a backup")
    }

    /// The master keys. Each must be the one that this data directory was used with before, and
    /// none of those may be missing that it was used with. What is retired is forgotten.
    ///
    /// A named key is noted as one that was used only when the cluster agrees on it: see
    /// ``MasterWatch``.
    ///
    /// - Parameter notes: whether the file KEYS is written; it is only compared otherwise.
    static func openMaster(
        _ settings: ConfigurationSettings, _ secret: Bytes, _ world: RealWorld, notes: Bool = true
    ) throws(NodeFailure) -> NamedMasters {
        let named = try Self.namedMasters(settings)
        let retired = try Self.retiredMasters(settings, named)
        let master = NamedMasters(
            InstallationMaster(secret: secret), named: named,
            sealing: try Self.sealingMaster(settings, named))
        do throws(MasterKeyFile.Refusal) {
            try MasterKeyFile.require(master.versions, retired: retired, in: world.files)
            if notes { try MasterKeyFile.forget(retired, in: world.files) }
            for version in master.versions {
                guard let key = master.key(version) else { continue }
                let check = SealedKey.check(of: key)
                if version == 0, notes {
                    try MasterKeyFile.check(version, is: check, in: world.files)
                } else {
                    try MasterKeyFile.compare(version, with: check, in: world.files)
                }
            }
        } catch { throw NodeFailure(.configuration, error.description) }
        return master
    }

    /// The keys of `keys.masterFiles`.
    static func namedMasters(_ settings: ConfigurationSettings) throws(NodeFailure)
        -> [UInt32: SecretBytes]
    {
        var named: [UInt32: SecretBytes] = [:]
        for text in settings.texts("keys.masterFiles") {
            guard let mark = text.firstIndex(of: "="), let version = UInt32(text[..<mark]),
                NamedMasters.versions.contains(version), named[version] == nil
            else {
                throw NodeFailure(
                    .configuration,
                    "'keys.masterFiles': '\(text)' must be VERSION=PATH, and each VERSION from 1 to "
                        + "\(NamedMasters.versions.upperBound) may stand there once")
            }
            named[version] = try Self.masterKey(String(text[text.index(after: mark)...]))
        }
        return named
    }

    private static func retiredMasters(
        _ settings: ConfigurationSettings, _ named: [UInt32: SecretBytes]
    ) throws(NodeFailure) -> [UInt32] {
        var retired: [UInt32] = []
        for text in settings.texts("keys.retiredMasters") {
            guard let version = UInt32(text), NamedMasters.versions.contains(version),
                named[version] == nil
            else {
                throw NodeFailure(
                    .configuration,
                    "'keys.retiredMasters': '\(text)' must be a version that is not in "
                        + "'keys.masterFiles'")
            }
            retired.append(version)
        }
        return retired
    }

    /// The version of the key that wraps from now on.
    static func sealingMaster(
        _ settings: ConfigurationSettings, _ named: [UInt32: SecretBytes]
    ) throws(NodeFailure) -> UInt32 {
        let sealing = UInt32(settings.integer("keys.sealingMaster"))
        guard sealing == 0 || named[sealing] != nil else {
            throw NodeFailure(
                .configuration,
                "'keys.sealingMaster' is \(sealing), and 'keys.masterFiles' has no such version")
        }
        return sealing
    }

    private static func masterKey(_ path: String) throws(NodeFailure) -> SecretBytes {
        if case .file(let mode) = SmallFile.state(path), mode & 0o007 != 0 {
            throw NodeFailure(
                .configuration,
                "'keys.masterFiles': others can read '\(path)': run 'chmod 600' on it")
        }
        var content: Bytes
        do throws(SmallFile.Failure) { content = try SmallFile.read(path, limit: 4_096) } catch {
            throw NodeFailure(.configuration, "'keys.masterFiles': \(error)")
        }
        // Wiped by the copy that takes it.
        defer { if !content.isEmpty { _ = SecretBytes(taking: &content) } }
        guard let key = NamedMasters.key(content) else {
            throw NodeFailure(
                .configuration,
                "'keys.masterFiles': '\(path)' must hold 64 hexadecimal digits: make one with "
                    + "'openssl rand -hex 32'")
        }
        return key
    }

    /// 256 unpredictable bits.
    static func draw(_ world: RealWorld) -> Bytes {
        (0..<4).flatMap { _ in
            withUnsafeBytes(of: world.random()) { Bytes($0) }
        }
    }

    /// The first address of a name counts.
    static func addresses(_ listen: [ListenAddress]) async throws(NodeFailure) -> [SocketAddress] {
        var all: [SocketAddress] = []
        for address in listen {
            guard let first = await Endpoints.addresses(address).first else {
                throw NodeFailure(
                    .system, "cannot listen on \(address): the name cannot be resolved")
            }
            all.append(first)
        }
        return all
    }

    /// - Parameter asked: the addresses as configured, for the message.
    static func listen(_ server: HTTPServer, _ asked: [ListenAddress]) async throws(NodeFailure)
        -> [SocketAddress]
    {
        do { return try await server.start() } catch {
            let places = asked.map(\.description).joined(separator: ", ")
            let reason =
                switch (error as? SocketError)?.kind {
                case .addressInUse: "the port is taken by another program"
                case .addressNotAvailable: "this machine has no such address"
                case .denied: "not permitted; ports below 1024 need a privilege"
                default: "\(error)"
                }
            throw NodeFailure(.system, "cannot listen on \(places): \(reason)")
        }
    }

    /// The sender of pushes; nil where the configuration wants none.
    static func openPush(
        _ settings: ConfigurationSettings, _ keys: PushKeys,
        _ authenticator: CredentialAuthenticator, tokenKey: Bytes, loop: EventLoop,
        _ state: NodeState
    ) throws(NodeFailure) -> PushSender? {
        guard settings.bool("push.enabled") else { return nil }
        let isOpen = settings.bool("push.allowPrivateAddresses")
        func url(_ key: String) throws(NodeFailure) -> String {
            let url = settings.text(key) ?? ""
            guard (try? AddressGuard.endpoint(url, allowsPrivate: true)) != nil else {
                throw NodeFailure(.configuration, "'\(key)' is no https: URL: \(url)")
            }
            return url.hasSuffix("/") ? String(url.dropLast()) : url
        }
        let desk = PushDesk(
            partitions: state.partitions, tokenKey: tokenKey,
            authenticator: authenticator, keys: keys,
            settings: PushDesk.Settings(
                productionURL: try url("push.apns.productionURL"),
                developmentURL: try url("push.apns.developmentURL"), allowsPrivate: isOpen))
        var authority: Bytes?
        if let path = settings.text("push.authorityFile") {
            do throws(SmallFile.Failure) { authority = try SmallFile.read(path) } catch {
                throw NodeFailure(.configuration, "'push.authorityFile': \(error)")
            }
        }
        let connector: PushConnector
        do throws(TLSError) {
            connector = try PushConnector(
                loop: loop, world: state.world, authority: authority, allowsPrivate: isOpen)
        } catch {
            throw NodeFailure(.configuration, "'push.authorityFile': \(error)")
        }
        let figures = PushFigures(state.metrics)
        figures.register(in: state.metrics)
        if isOpen {
            state.health.warn(
                "push addresses",
                "'push.allowPrivateAddresses' lets clients make this node connect anywhere")
        }
        return PushSender(
            desk, connector, state.cluster.replicas, in: state.world, log: state.log,
            health: state.health, figures: figures)
    }

    static func adminLimits(_ settings: ConfigurationSettings) -> HTTPServerLimits {
        var limits = HTTPServerLimits()
        limits.trustedProxies = Self.proxies(settings)
        return limits
    }

    /// The configuration was read: none of its texts is refused here.
    private static func proxies(_ settings: ConfigurationSettings) -> TrustedProxies {
        TrustedProxies(settings.texts("limits.trustedProxies")) ?? TrustedProxies()
    }

    static func serverLimits(_ settings: ConfigurationSettings) -> HTTPServerLimits {
        var limits = HTTPServerLimits()
        limits.connectionCountMax = settings.integer("limits.connectionCountMax")
        limits.connectionCountPerAddressMax = settings.integer(
            "limits.connectionCountPerAddressMax")
        limits.http2.streamCountMax = settings.integer("limits.streamCountMax")
        limits.requestCountPerAddressMax = settings.integer("limits.requestCountPerAddressMax")
        limits.trustedProxies = Self.proxies(settings)
        limits.timeouts.header = settings.duration("limits.headDeadline")
        limits.timeouts.idle = settings.duration("limits.idleDeadline")
        return limits
    }
}
