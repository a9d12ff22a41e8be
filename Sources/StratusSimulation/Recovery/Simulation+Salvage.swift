import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusRecords
import StratusSQLite
import StratusStorage

// What `cluster recover` does, on the disk of the survivor.
extension Simulation {
    func salvage(_ survivor: SimulatedNode) throws {
        guard let placed, let view = self.placed?.view else { return }
        let shared = try self.sharedEntries(with: survivor)
        let formation = ClusterFormation(
            joined: view.settings.cluster, as: survivor.id,
            name: view.node(survivor.id)?.name ?? "", partitionCount: self.options.partitionCount)
        try formation.keep(in: survivor.world)
        // The first attempt may end anywhere; the same command given again completes it.
        if self.faultRandom.next() % 2 == 0 {
            let delay = Int(self.faultRandom.next() % 200)
            survivor.files.plan(DiskFault(at: survivor.files.operationCount + 1 + delay, .crash))
            do { try self.runSalvage(of: survivor, founding: placed.founding) } catch {
                guard survivor.files.isCrashed else { throw error }
                self.note("\(survivor.id): the recovery is cut off")
            }
            survivor.files.restart(
                after: self.faultRandom.next() % 2 == 0 ? .powerLoss : .processCrash)
            survivor.files.clearFaults()
        }
        try self.runSalvage(of: survivor, founding: placed.founding)
        try self.observe(survivor, shared)
        self.report.membershipCounts["recovered"] = self.groups.count
        self.report.membershipCounts["begun anew"] = self.recovery?.begunAnew.count
    }

    private func runSalvage(of survivor: SimulatedNode, founding: ClusterView) throws {
        let world = survivor.world
        guard let formation = try ClusterFormation.kept(in: world) else { return }
        let salvage = try Salvage(
            in: world, formation: formation, founding: founding, logLimits: self.logLimits
        ) { [unowned self] (group) throws(StoreError) in
            try self.rows(of: group, on: survivor).appliedPosition
        }
        let name = Salvage.name(after: formation.cluster, lost: self.lostNodes(survivor))
        let earlier = try RecoveryNote.kept(in: world.files)
        // An earlier attempt came to its end before its process ended.
        if earlier?.cluster == formation.cluster, name != formation.cluster { return }
        let plan = RecoveryPlan(
            for: salvage.view, at: survivor.id, lost: self.lostNodes(survivor), keep: survivor.id,
            configurations: salvage.replicas.mapValues(\.configuration))
        // What an earlier attempt has written looks sound by now.
        let here = Set(plan.here).union(earlier?.groups ?? [])
        if !plan.undecided.isEmpty || !plan.gone.isEmpty || here.count < self.groups.count {
            self.invariants.report(
                "M-19 recovery", "\(survivor.id) does not continue every group: \(plan.lines)")
        }
        self.recovery?.begunAnew.formUnion(plan.begunAnew)
        let first = FirstCommand { group, time in
            guard group != .system else { return nil }
            return RecoverPartition.firstCommand(
                at: time, identity: world.drawIdentity())
        } open: { [unowned self] (group) throws(StoreError) in
            try self.rows(of: group, on: survivor)
        } isDone: {
            RecoverPartition.isDone($0)
        }
        try salvage.write(lost: self.lostNodes(survivor), groups: plan.here, first: first)
    }

    private func lostNodes(_ survivor: SimulatedNode) -> [NodeID] {
        self.nodes.map(\.id).filter { $0 != survivor.id }
    }

    private func rows(of group: GroupID, on node: SimulatedNode) throws(StoreError)
        -> PartitionStore<SimulatedState>
    {
        var limits = self.stateLimits
        limits.build = node.build
        return try PartitionStore(
            self.state(of: group, on: node), group: group, in: "partitions",
            of: FileSystem(node.world.files), limits: limits)
    }

    private func log(of node: SimulatedNode) throws -> SegmentedLog {
        try SegmentedLog(
            in: "log", of: node.world, isNew: false, limits: self.logLimits, onEvent: { _ in })
    }

    /// How far the log of each group agrees with what was decided. Entries behind that were decided
    /// otherwise, or by nobody.
    private func sharedEntries(with survivor: SimulatedNode) throws -> [GroupID: LogIndex] {
        let log = try self.log(of: survivor)
        var shared: [GroupID: LogIndex] = [:]
        for group in self.groups {
            let start = log.start(of: group).index
            var index = log.last(of: group).index
            while index > start,
                log.term(of: group, at: index) != self.invariants.term(of: group, at: index)
            {
                index = index.previous
            }
            shared[group] = max(index, try self.rows(of: group, on: survivor).applied)
        }
        return shared
    }

    /// The observer hears what the recovery has decided: the entries that it brought into the rows.
    private func observe(_ survivor: SimulatedNode, _ shared: [GroupID: LogIndex]) throws {
        let log = try self.log(of: survivor)
        for group in self.groups {
            let rows = try self.rows(of: group, on: survivor)
            let through = shared[group] ?? .zero
            var entries: [Entry] = []
            while through.raw + UInt64(entries.count) < rows.applied.raw {
                let from = LogIndex(through.raw + UInt64(entries.count) + 1)
                entries += try log.read(group, from: from, limit: .mebibytes(1)).filter {
                    $0.index <= rows.applied
                }
            }
            self.invariants.continues(
                group, on: survivor.id, behind: through, with: entries,
                through: log.last(of: group).index, rows.digest)
            self.watched[survivor.id]?[group] = nil
        }
        let directory = try ClusterDirectory(
            survivor.id, founding: self.placed?.founding, in: survivor.world)
        self.placed?.view = directory.view
        self.invariants.view = directory.view
    }
}
