import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import StratusRuntime
import Synchronization
import WireScenarios

/// A router with every partition in memory: one row store and one state for each key.
final class MemoryRouter: PartitionRouter {
    private struct Partition {
        let rows = Rows()
        var state = DataState()
        var index = LogIndex.zero
        var time = HybridTime.zero
        var outcomes: [RequestIdentity: Outcome] = [:]
    }
    private let partitions = Mutex<[ShardKey: Partition]>([:])
    private let order = Mutex<[ShardKey]>([])
    private let world: any World
    /// Thrown for every call while set.
    let fault = Mutex<RouteError?>(nil)
    /// Asked before each command; what it answers is thrown.
    let beforeSubmit = Mutex<(@Sendable (ShardKey) -> RouteError?)?>(nil)
    /// The lead over the clock that some partition reports.
    let lead = Mutex<Int64>(0)
    /// The facts of the last command to a database.
    let last = Mutex<(deadline: Int64, mayRunLater: Bool)>((0, false))
    var leadMilliseconds: Int64 { self.lead.withLock { $0 } }
    /// Bodies of the last records' commands.
    let bodies = Mutex<[Bytes]>([])
    private static let bodyCountMax = 16
    /// Thrown for every read while set.
    let readFault = Mutex<RouteError?>(nil)
    /// Sets ``readFault`` once a save of records has been carried out.
    let failsReadsAfterSave = Mutex(false)
    /// Partitions for which every call throws.
    let away = Mutex<Set<ShardKey>>([])
    let runsJobs = Mutex(true)
    /// Homes that commands were sent to.
    let written = Mutex<Set<ShardKey>>([])
    /// Homes that were read from, in order.
    let readHomes = Mutex<[ShardKey]>([])
    /// Called before a read is answered.
    let afterRead = Mutex<(@Sendable (ShardKey) async -> Void)?>(nil)

    init(world: any World) { self.world = world }

    func submit(
        _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
        mayRunLater: Bool
    ) async throws(RouteError) -> Outcome {
        let key = try self.key(of: address)
        _ = self.written.withLock { $0.insert(key) }
        if case .database = key {
            self.last.withLock { $0 = (command.deadlineMilliseconds, mayRunLater) }
        }
        if command.kind == .records, command.body.count > 1 {
            self.bodies.withLock { bodies in
                if bodies.count >= Self.bodyCountMax { bodies.removeFirst() }
                bodies.append(command.body)
            }
        }
        if let fault = self.fault.withLock({ $0 }) { throw fault }
        if let fault = self.beforeSubmit.withLock({ $0 })?(key) { throw fault }
        if self.away.withLock({ $0.contains(key) }) {
            throw .notExecuted(retryAfter: .seconds(1))
        }
        do {
            return try self.partitions.withLock { partitions in
                var partition = partitions[key] ?? Partition()
                defer { partitions[key] = partition }
                partition.index = partition.index.next
                partition.time = partition.time.successor(
                    wallMilliseconds: self.world.wallMilliseconds)
                // What may run later is repeated by a router with a later deadline.
                guard mayRunLater || partition.time.milliseconds <= command.deadlineMilliseconds
                else { return .expired(at: partition.time) }
                if let known = partition.outcomes[command.identity] { return known }
                let outcome = try partition.state.apply(
                    command, at: EntryPosition(index: partition.index, time: partition.time),
                    over: partition.rows)
                partition.outcomes[command.identity] = Outcome(
                    outcome.verdict, body: outcome.body)
                if self.runsJobs.withLock({ $0 }) {
                    try Self.runJobs(&partition, in: command.container)
                }
                if self.failsReadsAfterSave.withLock({ $0 }), command.kind == .records,
                    case .modifyRecords? = try? RecordCommand(
                        decoding: command.body, container: command.container)
                {
                    self.readFault.withLock { $0 = .notExecuted(retryAfter: .seconds(1)) }
                }
                return outcome
            }
        } catch {
            throw .refused(String(describing: error))
        }
    }

    /// Does at once what a node does beside its requests: fills new indexes, purges deleted zones.
    private static func runJobs(_ partition: inout Partition, in container: ContainerReference)
        throws
    {
        let ask = RecordQuery(principal: Principal(kind: .system), .jobs).enveloped()
        for _ in 0..<1_000 {
            let answer = try partition.state.answer(ask, over: partition.rows.view)
            guard case .jobs(isWaiting: true) = try RecordAnswer(decoding: answer.body) else {
                return
            }
            partition.index = partition.index.next
            partition.time = partition.time.successor(wallMilliseconds: 0)
            let slice = RecordCommand.continueJobs(ContinueJobs()).enveloped(
                container: container,
                identity: RequestIdentity(high: partition.index.raw, low: 0),
                deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system))
            _ = try partition.state.apply(
                slice, at: EntryPosition(index: partition.index, time: partition.time),
                over: partition.rows)
        }
    }

    /// Runs the jobs left in one partition, because nothing runs by itself here.
    /// Every row of every table of a database's partition, one after the other.
    func rowBytes(of database: DatabaseID) -> Bytes {
        self.partitions.withLock { partitions in
            guard let rows = partitions[.database(database)]?.rows else { return [] }
            return Table.all.reduce(into: Bytes()) { all, table in
                for row in rows.contents(of: table) { all += row.key + row.row }
            }
        }
    }

    func runJobs(of database: DatabaseID) throws {
        try self.partitions.withLock { partitions in
            let key = ShardKey.database(database)
            guard var partition = partitions[key] else { return }
            defer { partitions[key] = partition }
            try Self.runJobs(&partition, in: database.container)
        }
    }

    /// Partitions that hold anything, in an order that grows at its end.
    private func homes() -> [ShardKey] {
        self.partitions.withLock { partitions -> [ShardKey] in
            self.order.withLock { order -> [ShardKey] in
                let new = partitions.keys.filter { !order.contains($0) }
                order += new.sorted { "\($0)" < "\($1)" }
                return order
            }
        }
    }

    func hasPartition(_ group: GroupID) -> Bool {
        group.raw > 0 && Int(group.raw) <= self.homes().count
    }

    private func key(of address: PartitionAddress) throws(RouteError) -> ShardKey {
        switch address {
        case .key(let key): return key
        case .group(let group):
            let homes = self.homes()
            guard group.raw > 0, Int(group.raw) <= homes.count else {
                throw .refused("there is no partition \(group)")
            }
            return homes[Int(group.raw) - 1]
        }
    }

    func read(
        _ query: Query, at address: PartitionAddress, deadline: MonotonicTime
    ) async throws(RouteError) -> QueryAnswer {
        let key = try self.key(of: address)
        if let fault = self.fault.withLock({ $0 }) { throw fault }
        if let fault = self.readFault.withLock({ $0 }) { throw fault }
        if self.away.withLock({ $0.contains(key) }) {
            throw .notExecuted(retryAfter: .seconds(1))
        }
        self.readHomes.withLock { $0.append(key) }
        let answer: QueryAnswer
        do {
            answer = try self.partitions.withLock { partitions in
                var partition = partitions[key] ?? Partition()
                // What it remembers of what it read.
                defer { partitions[key]?.state = partition.state }
                return try partition.state.answer(query, over: partition.rows.view)
            }
        } catch {
            throw .refused(String(describing: error))
        }
        if let hook = self.afterRead.withLock({ $0 }) { await hook(key) }
        return answer
    }
}

/// Not that of StratusCluster.
typealias Caller = WireScenarios.Caller

/// A wire without a socket: the handler itself, over partitions in memory.
final class InProcess: Wire {
    let world: SimulatedWorld
    let router: MemoryRouter
    let handler: Gateway
    let pushKeys: PushKeys
    private let containerCount = Atomic(0)

    init(
        settings: GatewaySettings = GatewaySettings(), limits: Limits = Limits(),
        authenticator: any Authenticator = DevelopmentAuthenticator(),
        operations: OperationTable? = nil
    ) {
        self.world = SimulatedWorld(seed: 5)
        self.router = MemoryRouter(world: self.world)
        self.pushKeys = Self.pushKeys(self.router, self.world)
        self.handler = Gateway(
            Self.kernel(
                self.router, self.world, authenticator: authenticator, settings: settings,
                limits: limits),
            GatewayNeeds(push: PushRegistry(keys: self.pushKeys, allowsPrivate: false)),
            operations: operations)
    }

    /// A kernel over partitions in memory.
    static func kernel(
        _ router: MemoryRouter, _ world: any World,
        authenticator: any Authenticator = DevelopmentAuthenticator(),
        settings: GatewaySettings = GatewaySettings(), limits: Limits = Limits(),
        bodies: BodyBudget? = nil, answers: AnswerBudget? = nil
    ) -> GatewayKernel {
        GatewayKernel(
            partitions: PartitionClient(router, in: world, limits: limits),
            authenticator: authenticator, keys: Self.databaseKeys(router, world),
            tokenKey: Bytes(repeating: 9, count: 32),
            settings: settings, limits: limits, bodies: bodies, answers: answers)
    }

    static func databaseKeys(_ router: MemoryRouter, _ world: any World) -> DatabaseKeys {
        let master = Bytes(repeating: 9, count: 32)
        let store = IdentityStore(
            partitions: PartitionClient(router, in: world), keys: IdentityKeys(master: master))
        return DatabaseKeys(
            store: store,
            containers: ContainerKeys(store: store, master: InstallationMaster(secret: master)))
    }

    static func pushKeys(_ router: MemoryRouter, _ world: any World) -> PushKeys {
        let master = Bytes(repeating: 9, count: 32)
        let store = IdentityStore(
            partitions: PartitionClient(router, in: world), keys: IdentityKeys(master: master))
        return PushKeys(
            store: store,
            containers: ContainerKeys(store: store, master: InstallationMaster(secret: master)))
    }

    /// A second handler over the partitions of a first one.
    init(after first: InProcess) {
        // Another seed: a restarted process does not draw the identities of the first again.
        self.world = SimulatedWorld(seed: 6)
        self.router = first.router
        self.pushKeys = Self.pushKeys(self.router, self.world)
        self.handler = Gateway(Self.kernel(self.router, self.world))
    }

    func send(_ request: WireRequest) async throws -> WireAnswer {
        self.world.advance(by: .milliseconds(1))
        let parts = request.target.split(separator: "?", maxSplits: 1).map(String.init)
        let head = RequestHead(
            method: request.method, path: parts.first ?? "/",
            query: parts.count == 2 ? parts[1] : nil,
            headers: HeaderFields(
                request.headers.map { HeaderFields.Line(name: $0.name, value: $0.value) }))
        let limit = self.handler.bodyLimit(for: head)
        let response = await self.handler.respond(
            to: HTTPRequest(
                head: head, body: BoundedBody(request.body, limit: limit), peer: "test",
                identity: self.world.drawIdentity()))
        guard case .bytes(let body) = response.body else {
            return WireAnswer(
                status: response.status,
                headers: response.headers.lines.map { ($0.name, $0.value) },
                body: [])
        }
        return WireAnswer(
            status: response.status, headers: response.headers.lines.map { ($0.name, $0.value) },
            body: body)
    }

    func makeContainer() async throws -> String {
        let number = self.containerCount.add(1, ordering: .relaxed).newValue
        let container = ContainerReference(
            container: "iCloud.test.n\(number)", environment: .development)
        var schema = try SchemaText.read(Library.schema)
        schema.version = 1
        let command = RecordCommand.schema(.install(schema)).enveloped(
            container: container, identity: self.world.drawIdentity(),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system))
        _ = try await self.router.submit(
            command, to: .container(container), deadline: self.world.now)
        return container.container
    }
}

/// Imitates the server's own body reader, which refuses bodies beyond the handler's limit.
private struct BoundedBody: RequestBody {
    let body: CollectedBody
    let isTooLarge: Bool

    init(_ bytes: Bytes, limit: ByteCount) {
        self.body = CollectedBody(bytes)
        self.isTooLarge = bytes.count > limit.raw
    }

    func next() async throws(RequestBodyError) -> Bytes? {
        if self.isTooLarge { throw .tooLarge }
        return try await self.body.next()
    }
}
