import Glibc
import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusHTTP
import StratusModel
import StratusRuntime
import StratusSQLite
import StratusStorage
import StratusTLS

extension Benchmark {
    /// `replica --certificates DIR`: writes certificates for three nodes there.
    /// `replica --node N --peers P,P,P --port P --certificates DIR --directory DIR`: node N of
    /// three, until its input ends.
    ///
    /// One group of registers, the state that tests replicate, over the real links, log and rows,
    /// without the rest of a node. `POST /` with any body writes the register `first`, `GET /`
    /// reads it; 421 if this node does not lead.
    static let replica = Benchmark(
        name: "replica",
        summary: "one of three nodes that replicate registers, until its input ends"
    ) { arguments in
        guard let certificates = Self.option("certificates", in: arguments) else {
            return print("replica needs --certificates DIRECTORY")
        }
        guard let number = Self.option("node", in: arguments).flatMap(UInt32.init),
            let port = Self.option("port", in: arguments).flatMap(UInt16.init),
            let peers = Self.option("peers", in: arguments)?.split(separator: ",")
                .compactMap({ UInt16($0) }), peers.indices.contains(Int(number) - 1)
        else { return try BenchmarkNode.writeCertificates(in: certificates) }
        let node = try BenchmarkNode(
            number, peerPorts: peers, certificates: certificates,
            directory: Self.directory(in: arguments))
        let server = try await node.serve(on: port)
        print("ready")
        fflush(nil)
        await WorkerThread(name: "input").run { while getchar() != EOF {} }
        await server.stop(deadline: .seconds(1))
        await node.stop()
    }
}

/// The lower layers of a node without records: links, log, replicas.
private final class BenchmarkNode: Sendable {
    private static let group = GroupID(2)
    private static let count: UInt32 = 3

    private let loops = EventLoop.group(count: 2)
    private let logThread = WorkerThread(name: "log")
    private let storage = WorkerThread(name: "storage")
    private let checkpoints = WorkerThread(name: "checkpoints")
    private let world: RealWorld
    private let sockets: SocketLinks
    private let links: PeerLinks
    private let replicas: NodeReplicas
    private let peers: [PeerAddress]
    private let ownPeerPort: UInt16

    static func writeCertificates(in directory: String) throws {
        let now = RealClock.wallMilliseconds / 1_000
        let authority = try CertificateAuthority.make(
            commonName: "Stratus benchmark", now: now, validSeconds: 86_400)
        Benchmark.write(authority.identity.certificatePEM, to: "\(directory)/ca.pem")
        for number in 1...Self.count {
            let name = Self.name(of: number)
            let identity = try authority.issue(
                .init(
                    commonName: name, dnsNames: [name], purpose: .both, now: now,
                    validSeconds: 86_400))
            Benchmark.write(identity.certificatePEM, to: "\(directory)/\(name).pem")
            Benchmark.write(identity.privateKeyPEM, to: "\(directory)/\(name).key")
        }
    }

    private static func name(of number: UInt32) -> String { "node-\(number)" }

    init(_ number: UInt32, peerPorts: [UInt16], certificates: String, directory: String) throws {
        let world = try RealWorld(dataDirectory: directory)
        let name = Self.name(of: number)
        let files = try RealFiles(directory: certificates)
        func read(_ path: String) throws -> Bytes {
            try files.contents(of: DiskPath(path), limit: 1 << 20)
        }
        let authority = try read("ca.pem")
        let identity = CertificateAndKey(
            certificatePEM: try read("\(name).pem"), privateKeyPEM: try read("\(name).key"))
        let client = try TLSContext(
            client: TLSClientConfiguration(
                authorityPEM: authority, identity: identity, minimumVersion: .tls13))
        let server = try TLSContextSource(
            TLSServerConfiguration(
                identity: identity, clientCertificates: .required(authorityPEM: authority)))
        let inbox = ReplicaInbox()
        let loop = self.loops[0]
        let starts = try StartFile.begin(in: world, as: NodeIncarnation(world.random()))
        let sockets = SocketLinks(
            on: loop, certificates: .init(server: server, client: { client }))
        let links = PeerLinks(
            PeerIdentity(
                cluster: ClusterID(high: 1, low: 1), node: NodeID(number), name: name,
                data: RequestIdentity(high: UInt64(number), low: 1), starts: starts),
            memory: try PeerMemory(in: world), over: sockets,
            events: .init(
                received: { node, message, receipt in
                    inbox.receive(message, from: node, receipt)
                },
                trouble: { peer, what in print("\(peer): \(what)") }))
        let log = try SegmentedLog.open(
            in: "log", of: world, limits: SegmentedLog.Limits(), reportingTo: inbox)
        let ids = (1...Self.count).map { NodeID($0) }
        let system = FileSystem(world.files)
        var setup = NodeReplicas.Setup(
            node: NodeID(number), incarnation: starts.latest.incarnation,
            peers: ids.filter { $0 != NodeID(number) },
            openPartition: { (group) throws(StoreError) in
                try PartitionStore(RegisterState(), group: group, in: "partitions", of: system)
            },
            firstConfiguration: { _ in Configuration(voters: ids) },
            sleep: { time in try? await loop.sleep(until: time) })
        setup.isClustered = true
        setup.events.alarm = { group, what in print("\(group): \(what)") }
        log.start(on: self.logThread)
        self.world = world
        self.sockets = sockets
        self.links = links
        self.peers = zip(1..., peerPorts).map { number, port in
            PeerAddress(
                node: NodeID(number), name: Self.name(of: number), host: "127.0.0.1", port: port)
        }
        self.ownPeerPort = peerPorts[Int(number) - 1]
        self.replicas = NodeReplicas(
            setup, log: log, inbox: inbox, sender: links, in: world, on: self.storage,
            checkpointsOn: self.checkpoints)
    }

    func serve(on port: UInt16) async throws -> HTTPServer {
        await self.replicas.start()
        await self.replicas.wake([Self.group])
        _ = try await self.sockets.listen(
            on: .ip("127.0.0.1", port: self.ownPeerPort), for: self.links)
        self.links.setPeers(self.peers)
        let server = HTTPServer(
            configuration: HTTPServerConfiguration(
                listeners: [.init(.ip("127.0.0.1", port: port))]),
            loops: self.loops, world: self.world,
            handler: RegisterHandler(replicas: self.replicas, group: Self.group, world: self.world))
        _ = try await server.start()
        return server
    }

    func stop() async {
        await self.replicas.stop()
        await self.links.stop()
    }
}

/// One register over HTTP.
private struct RegisterHandler: HTTPHandler {
    private static let register = Bytes("first".utf8)
    let replicas: NodeReplicas
    let group: GroupID
    let world: RealWorld

    func plan(for head: RequestHead) -> RequestPlan {
        RequestPlan(bodySizeMax: .mebibytes(1)) { await self.respond(to: $0) }
    }

    func respond(to request: HTTPRequest) async -> HTTPResponse {
        guard let value = try? await request.body.collect() else {
            return HTTPResponse(status: 413)
        }
        let body: PeerRequest.Body
        if request.head.method == "POST" {
            body = .command(
                Command(
                    kind: .reference, identity: self.world.drawIdentity(),
                    deadlineMilliseconds: self.world.wallMilliseconds + 10_000,
                    container: ContainerReference(
                        container: "iCloud.bench", environment: .development),
                    schemaVersion: 0, principal: Principal(kind: .system),
                    body: RegisterCommand.write(Self.register, value: value).encoded()))
        } else {
            body = .query(RegisterQuery.value(Self.register).query)
        }
        let answer = await self.replicas.ask(
            body, of: self.group, deadline: self.world.now + .seconds(10))
        switch answer {
        case .outcome(let outcome) where outcome.verdict == .decided:
            return HTTPResponse(status: 200, body: .bytes(Bytes("ok".utf8)))
        case .answer(let answer):
            guard let value = try? RegisterState.value(in: answer) else {
                return HTTPResponse(status: 404)
            }
            return HTTPResponse(status: 200, body: .bytes(value))
        case .notLeader: return HTTPResponse(status: 421)
        default: return HTTPResponse(status: 503)
        }
    }
}
