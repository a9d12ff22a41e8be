import StratusCluster
import StratusConsensus
import StratusModel

/// One node of a simulated cluster: what its disk holds across crashes, its clock, and its process while
/// it runs.
final class SimulatedNode {
    let id: NodeID
    let bugs: PlantedBugs

    // The disk.
    var logs: [GroupID: SimulatedLog.GroupLog] = [:]
    var states: [GroupID: (kept: SimulatedPartition.Saved, medium: SimulatedPartition.Saved)] = [:]

    // The process. Nil while it is down.
    var host: ReplicaHost?
    var log = SimulatedLog()
    var partitions: [GroupID: SimulatedPartition] = [:]
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

    struct PendingRequest {
        var client: Int
        var operation: Int
    }

    init(id: NodeID, bugs: PlantedBugs) {
        self.id = id
        self.bugs = bugs
        self.localStart = Int64(id.raw) * 1_000_000_007
    }

    var isUp: Bool { self.host != nil }

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

    func wall(_ global: Int64) -> Int64 { 1_700_000_000_000 + global / 1_000_000 + self.wallOffset }

    func vitals(_ global: Int64) -> NodeLiveness.Vitals {
        let waits = self.log.oldestUnsyncedAt.map { self.local(global) - $0 } ?? .zero
        return NodeLiveness.Vitals(
            wallMilliseconds: self.wall(global),
            unsyncedMilliseconds: UInt32(
                clamping: max(0, waits.clampedNanoseconds / 1_000_000)))
    }
}
