import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusNode
import StratusPlacement
import StratusRecords
import StratusRuntime
import StratusSQLite
import StratusStorage
import Synchronization

/// A whole node over a simulated world: the real gateway, router, replica, state and SQLite; only
/// the clock, the randomness and the disk are simulated. One start of the process; a restart is
/// another value over the same world.
struct SimulatedNode {
    let executor: SimulatedExecutor
    let handler: Gateway
    private let world: SimulatedWorld
    private let jobs: JobRunner

    /// - Parameter publicBucketCount: of public databases; with more than one, mail is carried.
    init(over world: SimulatedWorld, seed: UInt64, publicBucketCount: Int = 1) throws {
        self.world = world
        self.executor = SimulatedExecutor(world: world, seed: seed)
        let directory = try DataDirectory(in: world)
        let executor = self.executor
        let formation = try ClusterFormation(alone: directory.identity, partitionCount: 4).adopted(
            in: world)
        let inbox = ReplicaInbox()
        var logLimits = SegmentedLog.Limits()
        logLimits.segmentSize = .kibibytes(64)
        let log = try SegmentedLog.open(
            in: "log", of: world, limits: logLimits, reportingTo: inbox)
        log.start(on: executor)
        let system = FileSystem(world.files)
        let sleep: @Sendable (MonotonicTime) async -> Void = { time in
            await executor.sleep(for: max(.zero, time - world.now))
        }
        let table = formation.table
        var bounds = RecordState.Bounds()
        bounds.partitionCount = table.partitionCount
        let state = DataState(bounds: bounds)
        var setup = NodeReplicas.Setup(
            node: formation.node, incarnation: NodeIncarnation(world.random()), peers: [],
            openPartition: { (group) throws(StoreError) in
                try PartitionStore(
                    state, group: group, in: "partitions", of: system)
            },
            firstConfiguration: { _ in Configuration(voters: [formation.node]) },
            sleep: sleep)
        // A disk that is gone is tried again: not so often that the clients' half minute is long.
        setup.tuning.retryDelay = .seconds(10)
        let replicas = NodeReplicas(
            setup,
            log: log, inbox: inbox, sender: NoPeers(), in: world, on: executor,
            checkpointsOn: executor)
        let router = ClusterRouter(
            replicas, sender: NoPeers(), in: world,
            place: { key in
                let partition = table.partition(of: key)
                return PlacedPartition(
                    group: partition.group, replicas: table.replicas(of: partition),
                    epoch: table.epoch)
            },
            placeOfGroup: {
                PlacedPartition(group: $0, replicas: [formation.node], epoch: table.epoch)
            }, sleep: sleep)
        let partitions = PartitionClient(router, in: world)
        self.jobs = JobRunner(replicas: replicas, partitions: partitions)
        var settings = GatewaySettings()
        settings.developmentSchema = .justInTime
        let master = Bytes(repeating: 7, count: 32)
        let store = IdentityStore(
            partitions: partitions, keys: IdentityKeys(master: master))
        let keys = DatabaseKeys(
            store: store,
            containers: ContainerKeys(store: store, master: InstallationMaster(secret: master)))
        self.handler = Gateway(
            GatewayKernel(
                partitions: partitions, authenticator: BucketAuthenticator(publicBucketCount),
                keys: keys, tokenKey: master, settings: settings))
        self.directory = directory
        Task(executorPreference: executor) { await replicas.start() }
        if publicBucketCount > 1 {
            let carrier = MailCarrier(
                replicas: replicas, partitions: partitions, in: world, sleep: sleep)
            Task(executorPreference: executor) { await carrier.run() }
        }
        self.settle()
    }

    /// Runs until nothing happens any more, or the time is over: a state whose disk is gone is
    /// retried for ever.
    private func settle() { self.executor.run(until: self.world.now + self.patience) }

    /// Requests are answered within half of it. With a mail carrier, which never finishes, all of
    /// it passes.
    var patience = Duration.seconds(60)

    /// Lets time pass, with jobs done and mail carried.
    mutating func work(for duration: Duration) {
        let patience = self.patience
        self.patience = .milliseconds(100)
        let end = self.world.now + duration
        while self.world.now < end {
            // Time passes whether or not anything waits for it.
            let executor = self.executor
            Task(executorPreference: executor) { await executor.sleep(for: .milliseconds(100)) }
            _ = self.stepJobs()
        }
        self.patience = patience
    }

    /// Held for the lock on the data directory.
    private let directory: DataDirectory

    /// Sends all requests at once and runs the world until all are answered or stuck.
    /// - Returns: status and body for each request that was answered.
    func post(
        _ requests: [(operation: String, body: String)], database: String = "private",
        named name: String? = nil
    ) -> [(status: Int, body: String)?] {
        let answers = Answers(count: requests.count)
        for (index, request) in requests.enumerated() {
            let handler = self.handler
            let identity = self.world.drawIdentity()
            Task(executorPreference: self.executor) {
                let head = RequestHead(
                    method: "POST",
                    path: "/database/1/iCloud.walk/development/\(database)/\(request.operation)",
                    query: "ckAPIToken=\(String(repeating: "a", count: 64))&ckWebAuthToken=u",
                    headers: HeaderFields(
                        name.map { [HeaderFields.Line(name: "X-Stratus-Request-ID", value: $0)] }
                            ?? []))
                let response = await handler.respond(
                    to: HTTPRequest(
                        head: head, body: CollectedBody(Bytes(request.body.utf8)), peer: "walk",
                        identity: identity))
                guard case .bytes(let body) = response.body else { return }
                answers.set(index, (response.status, String(decoding: body, as: UTF8.self)))
            }
        }
        self.settle()
        return answers.all
    }

    /// Carries out one slice of what commands left to be done.
    /// - Returns: whether there was one.
    func stepJobs() -> Bool {
        let answers = Answers(count: 1)
        let jobs = self.jobs
        Task(executorPreference: self.executor) {
            // Between slices a runner pauses briefly, without work it waits.
            let pause = await jobs.step()
            answers.set(0, (pause < .milliseconds(100) ? 1 : 0, ""))
        }
        self.settle()
        return answers.all[0]?.status == 1
    }

    /// Saves a record named `name` in the default zone.
    static func create(_ name: String) -> (operation: String, body: String) {
        (
            "records/modify",
            #"{"operations":[{"operationType":"create","record":{"recordType":"Walk","recordName":"\#(name)","#
                + #""fields":{"text":{"value":"text of \#(name)"}}}}]}"#
        )
    }

    static func lookup(_ name: String) -> (operation: String, body: String) {
        ("records/lookup", #"{"records":[{"recordName":"\#(name)"}]}"#)
    }

    static func isSaved(_ answer: (status: Int, body: String)?) -> Bool {
        guard let answer else { return false }
        return answer.status == 200 && answer.body.contains(#""recordChangeTag""#)
            && !answer.body.contains("serverErrorCode")
    }
}

/// The development users, in containers whose public databases have buckets.
struct BucketAuthenticator: Authenticator {
    private let development = DevelopmentAuthenticator()
    private let publicBucketCount: Int

    init(_ publicBucketCount: Int) { self.publicBucketCount = publicBucketCount }

    func needsBody(_ head: RequestHead) -> Bool { self.development.needsBody(head) }

    func authenticate(_ request: PresentedRequest) async throws(AuthenticationRefusal)
        -> Authentication
    {
        var authentication = try await self.development.authenticate(request)
        authentication.publicBucketCount = self.publicBucketCount
        return authentication
    }

    func refusalWithoutUser(_ request: PresentedRequest) async -> AuthenticationRefusal {
        await self.development.refusalWithoutUser(request)
    }
}

final class Answers: Sendable {
    private let answers: Mutex<[(status: Int, body: String)?]>
    init(count: Int) { self.answers = Mutex(Array(repeating: nil, count: count)) }
    func set(_ index: Int, _ answer: (Int, String)) {
        self.answers.withLock { $0[index] = answer }
    }
    var all: [(status: Int, body: String)?] { self.answers.withLock { $0 } }
}
