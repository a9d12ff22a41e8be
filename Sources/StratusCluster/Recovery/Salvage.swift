import StratusCoding
import StratusConsensus
package import StratusModel
package import StratusPlacement
package import StratusStorage

/// A survivor's data directory, opened offline to make its node continue without the lost ones.
///
/// It writes these, in this order, each on disk before the next:
/// - the note of the recovery under way;
/// - for each partition that continues from here alone, the entry that makes this node its only
///   voter, and its first command;
/// - the rows with that command applied, whose outcome is checked;
/// - the view without the lost nodes, and the cluster's new name.
///
/// If it is interrupted anywhere, the same command given again completes it. Until then the node
/// refuses to start.
package struct Salvage {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        /// The data directory is not a cluster's, or not one that can be worked on.
        case unusable(String)
        case disk(String)
        /// A command for other nodes was cut off here.
        case another
        /// The first command of a partition did not do what it is for.
        case notDone(GroupID, Outcome)

        package var description: String {
            switch self {
            case .unusable(let what), .disk(let what): what
            case .another:
                "a recovery with other lost nodes was begun here and is not complete: run "
                    + "that one again, with its --lost and --keep"
            case .notDone(let group, let outcome):
                "the recovery of \(group) did not take effect (\(outcome.verdict)): tokens "
                    + "and tags of lost data could match new data. Start nothing from this "
                    + "directory, keep a copy of it, and report this"
            }
        }
    }

    /// The replica of one group on this node.
    package struct Replica: Sendable, Equatable {
        package var configuration: Configuration
        package var index: LogIndex
        /// The term of its last entry, and the highest it has heard of.
        package var lastTerm: Term
        package var term: Term
        package var time: HybridTime
    }

    /// Reads the applied position of a partition's rows.
    package typealias Position = (GroupID) throws(StoreError) -> AppliedPosition

    private let world: any World
    private let directory: ClusterDirectory
    private let log: SegmentedLog
    private let position: Position
    package let formation: ClusterFormation
    package let view: ClusterView
    /// Usable replicas, of groups that this node keeps.
    package private(set) var replicas: [GroupID: Replica] = [:]
    /// Groups whose replica here cannot be used, and why.
    package private(set) var unusable: [GroupID: String] = [:]

    /// - Parameter founding: the placement when the cluster was formed; nil for a node that joined.
    package init(
        in world: any World, formation: ClusterFormation, founding: ClusterView?,
        logLimits: SegmentedLog.Limits, position: @escaping Position
    ) throws(Refusal) {
        self.world = world
        self.formation = formation
        self.position = position
        do throws(ClusterDirectory.Refusal) {
            self.directory = try ClusterDirectory(formation.node, founding: founding, in: world)
        } catch { throw .unusable(error.description) }
        self.view = self.directory.view
        do throws(LogError) {
            self.log = try SegmentedLog(
                in: "log", of: world, isNew: false, limits: logLimits, onEvent: { _ in })
        } catch { throw .unusable("the log: \(error.text)") }
        for group in self.view.groups {
            guard let first = self.directory.firstConfiguration(of: group) else { continue }
            do { self.replicas[group] = try self.replica(of: group, first) } catch {
                self.unusable[group] = "\(error)"
            }
        }
    }

    private func replica(of group: GroupID, _ first: Configuration) throws -> Replica {
        let position = try self.position(group)
        let recovered = try RaftGroup.Recovered(
            of: group, in: self.log, state: position, initial: first, hasPeers: false)
        let raft = RaftGroup(
            group: group, node: self.formation.node, recovered: recovered, seed: 0)
        return Replica(
            configuration: raft.configuration, index: raft.log.last,
            lastTerm: raft.log.lastPoint.term, term: max(raft.term, raft.log.lastPoint.term),
            time: raft.log.lastTime)
    }

    // MARK: Writing

    /// The cluster's new name once it continues without `lost`: the same on every survivor.
    package static func name(after cluster: ClusterID, lost: [NodeID]) -> ClusterID {
        var writer = ByteWriter()
        writer.write(text: "stratus recovery 1")
        writer.write(fixed: cluster.high)
        writer.write(fixed: cluster.low)
        for node in lost.sorted() { writer.write(fixed: node.raw) }
        return ClusterFormation.name(from: writer.bytes)
    }

    /// - Parameters:
    ///   - groups: that go on from here alone.
    ///   - first: what such a group applies before anything else.
    package func write(
        lost: [NodeID], groups: [GroupID], first: FirstCommand
    ) throws(Refusal) {
        let name = Self.name(after: self.formation.cluster, lost: lost)
        var recovery = ClusterRecovery(
            cluster: name, node: self.formation.node, lost: lost, groups: groups)
        do {
            if let earlier = try RecoveryNote.kept(in: self.world.files) {
                guard earlier.cluster == name else { throw Refusal.another }
                // An earlier forced entry looks sound by now. It is forced once more, because its
                // command's effect may not have been checked.
                let all = Set(earlier.groups).union(groups)
                recovery.groups = all.sorted()
            }
            try RecoveryNote.keep(recovery, in: self.world.files)
            try self.force(recovery.groups, first)
            try ClusterDirectory.keep(
                try self.view.recovered(by: recovery), in: self.world)
            try self.formation.renamed(name).keep(in: self.world)
        } catch let refusal as Refusal {
            throw refusal
        } catch let refusal as SystemRefusal {
            throw .unusable(refusal.explanation)
        } catch { throw .disk("\(error)") }
    }

    /// Makes this node the only voter of each group.
    private func force(_ groups: [GroupID], _ first: FirstCommand) throws(Refusal) {
        let sole = SoleVoter(node: self.formation.node, log: self.log, world: self.world)
        var begun: [GroupID] = []
        for group in groups {
            let replica =
                self.replicas[group]
                ?? Replica(
                    configuration: Configuration(voters: []), index: .zero, lastTerm: .zero,
                    term: .zero, time: .zero)
            if replica.index > self.log.last(of: group).index { try self.bringLogUp(to: group) }
            if sole.submit(group, after: replica, first) { begun.append(group) }
        }
        // What others had of these groups is lost, and the operator has said so. Of a group that
        // lives elsewhere nothing is settled.
        if self.view.groups.allSatisfy(groups.contains) { self.log.settleLoss() }
        try sole.flush()
        for group in begun { try sole.apply(group, first) }
    }

    /// A snapshot was installed, and the log not begun behind it.
    private func bringLogUp(to group: GroupID) throws(Refusal) {
        do throws(StoreError) {
            let position = try self.position(group)
            self.log.restart(
                group,
                after: SnapshotIdentity(
                    index: position.index, term: position.term, time: position.time,
                    configuration: Configuration(voters: []), digest: position.digest))
        } catch { throw .unusable("\(group): \(error)") }
    }
}
