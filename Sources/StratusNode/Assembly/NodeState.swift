import StratusAdmin
import StratusCluster
import StratusConfiguration
import StratusModel
import StratusPlacement
import StratusProcess
import StratusRecords
import StratusRuntime
import Synchronization

/// The state of a running node that administrators see and change. It is complete before any
/// listener opens, so that no request can come too early for it.
final class NodeState: NodeControl {
    let log: Log
    let metrics: Metrics
    let health: Health
    let world: RealWorld
    let cluster: NodeCluster
    var partitions: PartitionClient { self.cluster.partitions }
    /// The settings in force: what was read last, less what needs a restart.
    let settings: Mutex<ConfigurationSettings>
    let mended: MendedCount
    private let dataDirectory: String
    private let startedAt: MonotonicTime
    let startedAtMilliseconds: Int64
    private let addresses = Mutex((clients: [String](), admin: ""))
    private let clients = Mutex<ObservedHandler?>(nil)

    init(
        _ plan: NodePlan, log: Log, world: RealWorld, health: Health, metrics: Metrics,
        cluster: NodeCluster
    ) {
        self.log = log
        self.world = world
        self.health = health
        self.metrics = metrics
        self.cluster = cluster
        self.settings = Mutex(plan.settings)
        self.mended = MendedCount(log)
        self.dataDirectory = plan.dataDirectory
        self.startedAt = world.now
        self.startedAtMilliseconds = world.wallMilliseconds
    }

    func listening(clients: [String], admin: String) {
        self.addresses.withLock { $0 = (clients, admin) }
    }

    /// Writes a line whenever the node becomes ready, or is not any more.
    func logReadiness() {
        self.health.observe { [log, world, startedAt] reasons in
            if reasons.isEmpty {
                log.info("ready", ["sinceStart": .duration(world.now - startedAt)])
            } else if !reasons.contains(where: { $0.component == "stopping" }) {
                let text = reasons.map { "\($0.component): \($0.text)" }.joined(separator: "; ")
                log.warning("not ready", ["reason": .text(text)])
            }
        }
    }

    /// Says where `/metrics` is served to everybody.
    func scrapers(_ urls: [String]) {
        for url in urls { self.log.info("metrics", ["url": .text(url)]) }
    }

    var clientURLs: [String] { self.addresses.withLock { $0.clients } }
    var adminURL: String { self.addresses.withLock { $0.admin } }
    var uptime: Duration { self.world.now - self.startedAt }

    /// Sets the handler that counts requests in flight.
    func observe(_ clients: ObservedHandler) { self.clients.withLock { $0 = clients } }

    /// Continues what commands left to be done, slice by slice.
    func runJobs() -> Task<Void, Never> {
        let jobs = JobRunner(
            replicas: self.cluster.replicas,
            partitions: self.cluster.partitions(Limits()) { [mended] in mended.note($0) })
        return Task {
            while !Task.isCancelled {
                let pause = await jobs.step()
                try? await Task.sleep(for: pause)
            }
        }
    }

    /// Carries what partitions led here have posted to others.
    func runMail() -> Task<Void, Never> {
        let log = self.log
        let carrier = MailCarrier(
            replicas: self.cluster.replicas,
            partitions: self.cluster.partitions(Limits()) { [mended] in mended.note($0) },
            in: self.world, watch: self.cluster.mail,
            alarm: { route, trouble in
                log.error(
                    "mail", ["route": .describing(route), "reason": .text("\(trouble)")])
            },
            sleep: { [world] time in
                try? await Task.sleep(for: max(.zero, time - world.now))
            })
        return Task { await carrier.run() }
    }

    /// Watches the room on the disks, so that there is some left to delete.
    func runRoomWatch() -> Task<Void, Never> {
        let cluster = self.cluster
        return Task { await cluster.watchRoom() }
    }

    /// Reads back what lies on the disk, as slowly as the settings say.
    func runScrub() -> Task<Void, Never> {
        let replicas = self.cluster.replicas
        return Task {
            // A round that begins before the partitions are open would find none.
            try? await Task.sleep(for: Self.scrubPatience)
            while !Task.isCancelled {
                let rate = self.settings.withLock { $0.size("storage.scrubRate") }.raw
                if rate == 0 {
                    try? await Task.sleep(for: Self.scrubPatience)
                    continue
                }
                let piece = min(rate, Self.scrubPiece.raw)
                let isMore = await replicas.scrub(ByteCount(piece), rate: ByteCount(rate))
                let pause = Duration.nanoseconds(Int64(piece) * 1_000_000_000 / Int64(rate))
                try? await Task.sleep(for: isMore ? pause : Self.scrubRest)
            }
        }
    }

    private static let scrubPiece = ByteCount.mebibytes(1)
    private static let scrubPatience = Duration.seconds(10)
    /// Between two rounds.
    private static let scrubRest = Duration.seconds(3_600)

    // MARK: NodeControl

    func status() async -> NodeStatus {
        let fault = self.cluster.replicas.fault
        let groups = await self.cluster.replicas.status()
        let room = self.cluster.replicas.reserveFigures
        var status = NodeStatus(
            version: Versions.stratus, libraries: NodeVersions.libraries,
            startedAtMilliseconds: self.startedAtMilliseconds, uptime: self.uptime,
            dataDirectory: self.dataDirectory, clientURLs: self.clientURLs,
            adminURL: self.adminURL, residentBytes: ProcessFacts.residentBytes,
            requestsInFlight: self.clients.withLock { $0?.inFlightCount ?? 0 },
            droppedLogLines: self.log.droppedCount, notReady: self.health.reasons,
            partitions: groups.map { group in
                NodeStatus.Partition(
                    name: Self.name(of: group.group), applied: group.applied.raw,
                    durable: group.durable.raw, problem: group.problem ?? fault)
            })
        // A node with another value than its directory does not start.
        status.isSealed = self.settings.withLock { $0.bool("storage.atRest") }
        status.warnings = self.health.warnings
        status.disk = room.space
        status.reserve = room.reserve
        return status
    }

    /// As every other answer names a partition.
    private static func name(of group: GroupID) -> String {
        PartitionID(group: group).map { "\($0.raw)" } ?? "system"
    }

    func configuration() -> [ConfiguredValue] { self.settings.withLock { $0 }.rows() }

    var logLevel: LogLevel { self.log.level }

    func setLogLevel(_ level: LogLevel) { self.log.level = level }
}
