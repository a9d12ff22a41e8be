import StratusCluster
import StratusModel
import StratusPlacement
import StratusRecords
import StratusRuntime
import StratusStorage

/// The start of a node without peers whose log has lost entries: see ``LoneVoter``.
struct LoneStart {
    private let formation: ClusterFormation
    private let directory: ClusterDirectory
    private let segments: SegmentedLog
    private let world: RealWorld
    private let log: Log
    private let health: Health

    init(
        _ formation: ClusterFormation, _ directory: ClusterDirectory, _ segments: SegmentedLog,
        _ world: RealWorld, _ log: Log, _ health: Health
    ) {
        self.formation = formation
        self.directory = directory
        self.segments = segments
        self.world = world
        self.log = log
        self.health = health
    }

    /// - Parameters:
    ///   - records: opens a partition of records.
    ///   - system: opens the system partition.
    func goOn(
        _ records: @escaping (GroupID) throws(StoreError) -> any NodePartition,
        system: @escaping () throws(StoreError) -> any NodePartition
    ) throws(NodeFailure) {
        guard self.segments.hasUnknownLoss || !self.segments.damage.entries.isEmpty else { return }
        let first = FirstCommand { [world] group, time in
            guard group != .system else { return nil }
            return RecoverPartition.firstCommand(at: time, identity: world.drawIdentity())
        } open: { (group) throws(StoreError) in
            group == .system ? try system() : try records(group)
        } isDone: {
            RecoverPartition.isDone($0)
        }
        let directory = self.directory
        let lines: [LoneVoter.Line]
        do throws(Salvage.Refusal) {
            lines = try LoneVoter(
                self.formation.node, log: self.segments, in: self.world, first: first
            ).goOn(directory.view.groups.filter(directory.keeps)) {
                directory.firstConfiguration(of: $0)
            }
        } catch {
            // It starts all the same: what can be opened is served, and the rest is reported.
            self.log.error("the log", ["reason": .text(error.description)])
            return
        }
        for line in lines {
            self.log.error(
                "a partition goes on without entries that the log has lost",
                [
                    "group": .describing(line.group),
                    "through": .integer(Int64(clamping: line.through.raw)),
                ])
        }
        guard !lines.isEmpty else { return }
        self.health.warn(
            "entries",
            "the log was damaged: \(lines.count) partitions went on from what is left at this "
                + "start, and what was saved last may be missing. Clients fetch everything anew")
    }
}
