import StratusCluster
import StratusConsensus
import StratusModel
import StratusSQLite
import StratusSealing
import StratusStorage
import Synchronization

/// One node of a simulated cluster: its disk, which outlives crashes, its clock, and its process
/// while it runs.
final class SimulatedNode {
    /// The state reported to a process as being on stable storage: the next process must find it.
    struct Promised {
        var hardState: HardState?
        var start = LogIndex.zero
        /// The terms of the entries after `start`.
        var terms: [Term] = []
        var state = LogIndex.zero
        /// The state was taken away since, and with it the entries that the log had released.
        var hasLostState = false
        /// Entries of the log were damaged and not yet replaced.
        var isOwing = false

        func holds(_ index: LogIndex, _ term: Term) -> Bool {
            if index <= self.state { return true }
            if index <= self.start { return !self.hasLostState }
            let position = Int(index.raw - self.start.raw) - 1
            return position < self.terms.count && self.terms[position] == term
        }
    }

    /// The asker that waits for an answer.
    enum Asker {
        case client(Int, operation: Int)
        /// The process' own router.
        case here(ProcessLife)
        case peer(NodeID, number: UInt64)
        /// The carrier of mail, in one life of a node.
        case carrier(NodeID, life: UInt64, parcel: UInt64)
    }

    struct PendingRequest {
        var asker: Asker
        var group: GroupID
        var isWrite: Bool
        var askedAt: Int64
    }

    /// The reports of the log's thread, in order.
    final class LogEvents: Sendable {
        private let events = Mutex<[LogEvent]>([])
        func add(_ event: LogEvent) { self.events.withLock { $0.append(event) } }
        func take() -> [LogEvent] {
            self.events.withLock { events in
                defer { events = [] }
                return events
            }
        }
    }

    let id: NodeID

    // The disk.
    let world: SimulatedWorld
    /// Whether the node remembers, beside the log, that it has one, so that a lost log is never
    /// begun afresh.
    var hasLog = false
    var promised: [GroupID: Promised] = [:]
    /// The terms of entries that were on its disk until the end of its log rotted. They counted
    /// when they were acknowledged.
    var tornAway: [GroupID: [LogIndex: Term]] = [:]
    /// Its log has rotted, or rows are gone, since it last opened them.
    var isStruck = false
    /// Its log has lost content that nobody can name: it takes no part any more, and the operator
    /// replaces it some day.
    var isOut = false
    /// How the last process ended.
    var end = DiskRestart.processCrash

    /// The newest view that a process of this node said it goes by.
    var revisionFollowed: UInt64 = 0

    /// The build of this node's next process.
    var build = FeatureLevel.build
    /// The build that will replace it, once it does not hang; nil: none yet.
    var wantedBuild: FeatureLevel?
    let level = SimulatedLevel()

    // The process. Nil while it is down.
    /// Nil also in a cluster whose groups stay where the seed put them.
    var shells: ClusterShells?
    /// Nil where messages go from process to process as they are.
    var links: ProcessLinks?
    /// Nil where records name no files.
    var assets: AssetShells?
    /// Nil where nobody subscribes.
    var push: PushShells?
    var host: ReplicaHost?
    var log: SegmentedLog?
    var logEvents = LogEvents()
    var system: FileSystem?
    var pace = SnapshotPace(rate: ByteCount(0))
    var partitions: [GroupID: ObservedPartition] = [:]
    var checkpointers: [GroupID: PartitionCheckpointer] = [:]
    /// The hard states of the log's last report.
    var hardStates: [GroupID: HardState] = [:]
    /// Carries the mail of the groups that are led here, where groups hold buckets.
    var courier = MailCourier()
    /// The mail seen at the last look, for groups that are led here.
    var mailSeen: [GroupID: Int] = [:]
    /// The parcels that the courier has sent, by number, until they are answered.
    var parcels: [UInt64: Parcel] = [:]
    var isSyncing = false
    /// The log's reports up to here are on their way.
    var reportsThrough: Int64 = 0
    var incarnation: UInt64 = 0
    var pausedUntil: Int64 = 0
    /// Requests that wait here for an answer.
    var requests: [RaftGroup.RequestToken: PendingRequest] = [:]

    // The clock: local nanoseconds pass at `rate` thousandths of the true ones.
    private var rate: Int64 = 1_000
    private var localStart: Int64
    private var globalStart: Int64 = 0
    var wallOffset: Int64 = 0

    /// While set, a sync takes this much longer.
    var slowness: Int64 = 0

    init(id: NodeID, seed: UInt64) {
        self.id = id
        self.world = SimulatedWorld(seed: seed)
        self.localStart = Int64(id.raw) * 1_000_000_007
    }

    var isUp: Bool { self.host != nil }
    /// The disk. What the node's own code opens, it opens by the world.
    var files: SimulatedFiles { self.world.simulatedFiles }

    /// Seals what this node writes, under a master key of its own.
    func sealFiles() {
        self.world.seal(
            under: FileMasters(
                sealing: FileMasters.Master(
                    0, SecretBytes(copying: Bytes(repeating: UInt8(self.id.raw), count: 32))),
                directory: RequestIdentity(high: 1, low: UInt64(self.id.raw))))
    }

    // MARK: The disk

    /// The process ends: what it was told is on stable storage is all that it may rely on.
    func endProcess(groups: [GroupID]) {
        if let log {
            for group in groups {
                // One that nobody has asked for since the start stands where it stood.
                if self.host?.replica(of: group) == nil, self.promised[group] != nil {
                    if log.damage.entries.contains(where: { $0.group == group }) {
                        self.promised[group]?.isOwing = true
                    }
                    continue
                }
                var promise = Promised()
                promise.hardState = self.hardStates[group]
                promise.start = log.start(of: group).index
                var index = promise.start
                while index < log.durable(of: group) {
                    index = index.next
                    promise.terms.append(log.term(of: group, at: index) ?? .zero)
                }
                promise.hasLostState = self.host?.replica(of: group)?.raft.lacksState == true
                promise.isOwing = self.host?.replica(of: group)?.raft.mustReach != nil
                promise.state = self.partitions[group]?.durable ?? .zero
                self.promised[group] = promise
            }
        }
        self.files.crash()
        self.assets?.end()
        self.assets = nil
        self.push?.end()
        self.push = nil
        self.shells?.end()
        self.shells = nil
        self.host = nil
        self.log = nil
        self.checkpointers = [:]
        self.partitions = [:]
        self.system = nil
        self.requests = [:]
        self.hardStates = [:]
        self.courier = MailCourier()
        self.mailSeen = [:]
        self.parcels = [:]
        self.isSyncing = false
        _ = self.logEvents.take()
    }

    /// Whether an entry is on this node's stable storage, in its log or in its state.
    func holds(_ index: LogIndex, of term: Term, in group: GroupID) -> Bool {
        guard let log else { return self.promised[group]?.holds(index, term) ?? false }
        if let partition = self.partitions[group], partition.durable >= index { return true }
        if log.start(of: group).index >= index {
            return self.host?.replica(of: group)?.raft.lacksState != true
        }
        return log.durable(of: group) >= index && log.term(of: group, at: index) == term
    }

    /// Like ``holds(_:of:in:)``, but also true of entries at an end that has rotted, and behind
    /// rotten entries: what the last life had on disk there is still there. Those are owed until
    /// the entries before them have come back.
    func owns(_ index: LogIndex, of term: Term, in group: GroupID) -> Bool {
        if self.holds(index, of: term, in: group) || self.tornAway[group]?[index] == term {
            return true
        }
        guard let log, let replica = self.host?.replica(of: group), replica.raft.mustReach != nil
        else { return false }
        return log.term(of: group, at: index) == term
            && self.promised[group]?.holds(index, term) == true
            && !log.damage.entries.contains { $0.group == group && $0.indexes.contains(index) }
    }

    /// Whether something of what it held is lost, and its peers have not yet replaced it.
    var isImpaired: Bool {
        if self.isOut { return true }
        guard let host else {
            return self.isStruck || self.promised.values.contains { $0.hasLostState || $0.isOwing }
        }
        if host.allGroups.contains(where: { host.replica(of: $0)?.problem != nil }) { return true }
        // Nobody has asked yet for what is not open.
        return self.promised.contains { host.replica(of: $0) == nil && $1.hasLostState }
            || self.log?.damage.entries.contains { host.replica(of: $0.group) == nil } == true
    }

    // MARK: The clock

    func local(_ global: Int64) -> MonotonicTime {
        MonotonicTime(
            nanoseconds: self.localStart + (global - self.globalStart) * self.rate / 1_000)
    }

    /// The first moment at which the local clock shows at least `time`.
    func global(_ time: MonotonicTime) -> Int64 {
        let ahead = time.nanoseconds - self.localStart
        return self.globalStart + (ahead * 1_000 + self.rate - 1) / self.rate
    }

    func setRate(_ rate: Int64, at global: Int64) {
        self.localStart = self.local(global).nanoseconds
        self.globalStart = global
        self.rate = rate
    }

    /// Sets the time that the process reads from its world's clocks.
    func showTime(_ global: Int64) {
        self.world.advance(to: self.local(global))
        self.world.jumpWall(milliseconds: self.wall(global) - self.world.wallMilliseconds)
    }

    func wall(_ global: Int64) -> Int64 { 1_700_000_000_000 + global / 1_000_000 + self.wallOffset }

    func vitals(_ global: Int64) -> NodeLiveness.Vitals {
        let waits = self.log?.oldestUnsyncedAt.map { self.local(global) - $0 } ?? .zero
        return NodeLiveness.Vitals(
            wallMilliseconds: self.wall(global),
            unsyncedMilliseconds: UInt32(
                clamping: max(0, waits.clampedNanoseconds / 1_000_000)))
    }
}
