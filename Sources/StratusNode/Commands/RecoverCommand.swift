import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusPlacement
import StratusProcess
import StratusRecords
import StratusRuntime
import StratusSQLite
import StratusStorage

/// `stratus cluster recover`: makes the node of a configuration go on without nodes that are lost
/// for good. The node is stopped meanwhile.
struct RecoverCommand {
    static let definition = CommandDefinition(
        "recover",
        "Continue without nodes that are lost for good, when some partition has lost its majority",
        discussion: [
            "The last resort. While every partition has a majority, use 'stratusctl node "
                + "remove', which loses nothing. This command lets a partition without a majority "
                + "continue from one replica. Whatever only the lost replicas had acknowledged is "
                + "lost.",
            "Without --write, the command only reports what would become of each partition. "
                + "To recover, stop every remaining node, run the command with --write on each of "
                + "them, with the same --lost and --keep, and then start them. The cluster gets a "
                + "new identity and refuses the lost nodes. Do not start a lost node again: "
                + "clients that reach it would read old data.",
        ],
        options: [
            .value("config", .file, required: true, "The node's configuration, JSON5"),
            .value(
                "lost", .text("NAMES"), required: true,
                "The nodes that never come back, separated by commas"),
            .value(
                "keep", .text("NAME"),
                "The node whose replica counts where several remain, and that makes empty "
                    + "ones where none remains"),
            .flag("write", nil, "Recover; without it, the command only reports"),
        ],
        examples: [
            .init("stratus cluster recover --config a.json5 --lost b,c", "What would be lost?"),
            .init("stratus cluster recover --config a.json5 --lost b,c --write", "Do it"),
        ])

    private typealias Failure = OfflineCommand.Failure

    private let settings: ConfigurationSettings
    private let invocation: Invocation
    private let world: RealWorld
    /// Keeps everybody else out.
    private let lock: DataDirectory

    static func run(_ invocation: Invocation) -> ExitCode {
        OfflineCommand.run { try RecoverCommand(invocation).run() }
    }

    private init(_ invocation: Invocation) throws {
        self.invocation = invocation
        self.settings = try ConfigurationLoading.load(invocation.value("config")).sound()
        let path = self.settings.text("dataDirectory") ?? ""
        let disk = try RealWorld(dataDirectory: path)
        guard try disk.files.exists("CLUSTER") else {
            throw Failure(.missingInput, "'\(path)' is not a node's data directory")
        }
        do throws(DataDirectory.Refusal) {
            self.lock = try DataDirectory(
                in: disk, atRest: self.settings.bool("storage.atRest"))
        } catch {
            throw Failure(.system, "'\(path)': \(error)")
        }
        self.world =
            try self.lock.isSealed ? FilesAtRest(self.settings, disk, self.lock).world : disk
    }

    /// - Returns: what to tell at the end.
    private func run() throws -> String {
        guard let formation = try ClusterFormation.kept(in: self.world) else {
            throw Failure(.missingInput, "the file CLUSTER is gone")
        }
        let files = FileSystem(self.world.files)
        let records = DataState(partitionCount: formation.partitionCount)
        let salvage = try Salvage(
            in: self.world, formation: formation,
            founding: try NodeCluster.founding(formation, self.settings),
            logLimits: NodePlan.logLimits(self.settings)
        ) { (group) throws(StoreError) in
            if group == .system {
                return try PartitionStore(
                    SystemState(), group: group, in: "partitions", of: files
                ).appliedPosition
            }
            return try PartitionStore(records, group: group, in: "partitions", of: files)
                .appliedPosition
        }
        let view = salvage.view
        let lost = try self.invocation.value("lost").split(separator: ",").map {
            try self.node(String($0), in: view)
        }
        let keep = try self.invocation["keep"].map { try self.node($0, in: view) }
        guard !lost.isEmpty, !lost.contains(formation.node),
            keep.map({ !lost.contains($0) }) ?? true
        else {
            throw Failure(
                .usage, "--lost must not name this node or the node that --keep names")
        }
        let plan = RecoveryPlan(
            for: view, at: formation.node, lost: lost, keep: keep,
            configurations: salvage.replicas.mapValues(\.configuration))
        let report = RecoveryReport(plan, salvage, lost: lost)
        Terminal.write(report.text)
        if let refusal = report.refusal { throw Failure(.refused, refusal) }
        guard self.invocation.flag("write") else {
            return "\nNothing was changed. Run the command with --write to recover.\n"
        }
        let first = FirstCommand {
            self.firstCommand(of: $0, at: $1)
        } open: { (group) throws(StoreError) in
            try PartitionStore(records, group: group, in: "partitions", of: files)
        } isDone: {
            RecoverPartition.isDone($0)
        }
        try salvage.write(lost: lost, groups: plan.here, first: first)
        return "\nDone on this node. When every remaining node is done, start them.\n"
    }

    private func node(_ name: String, in view: ClusterView) throws -> NodeID {
        guard let node = view.nodes.last(where: { $0.name == name }) else {
            let names = view.nodes.filter(\.isMember).map(\.name).joined(separator: ", ")
            throw Failure(
                .usage, "there is no node '\(name)' in the cluster: it has \(names)")
        }
        return node.id
    }

    /// The first command of a recovered partition of records. The nodes tell the system partition
    /// themselves.
    ///
    /// - Parameter time: of its entry, which may be far ahead of this node's clock.
    private func firstCommand(
        of group: GroupID, at time: HybridTime
    ) -> Command? {
        guard group != .system else { return nil }
        return RecoverPartition.firstCommand(
            at: time, identity: self.world.drawIdentity())
    }
}

/// The report that a recovery prints before it changes anything.
struct RecoveryReport {
    let text: String
    /// Why it cannot be done as it was asked for.
    let refusal: String?

    init(_ plan: RecoveryPlan, _ salvage: Salvage, lost: [NodeID]) {
        let view = salvage.view
        func name(_ node: NodeID) -> String { view.node(node)?.name ?? "\(node)" }
        func names(_ nodes: [NodeID]) -> String { nodes.map(name).joined(separator: ", ") }
        func list(_ groups: [GroupID]) -> String {
            let shown = groups.prefix(8).map { $0 == .system ? "system" : "\($0.raw - 1)" }
            return shown.joined(separator: ", ") + (groups.count > shown.count ? ", …" : "")
        }
        var lines = [
            "Node '\(salvage.formation.name)' of cluster \(salvage.formation.cluster); lost for good: "
                + "\(names(lost)).",
            "",
        ]
        func say(_ groups: [GroupID], _ what: String) {
            if groups.isEmpty { return }
            lines.append("  \(groups.count) \(what) (\(list(groups)))")
        }
        say(plan.groups { $0 == .lives }, "partitions have a majority left and lose nothing")
        let begunAnew = Set(plan.begunAnew)
        let fromHere = plan.here.filter { !begunAnew.contains($0) }
        let fromElsewhere = plan.elsewhere.filter { !begunAnew.contains($0) }
        say(fromHere, "continue from the replica on this node alone")
        say(fromElsewhere, "continue from a replica on another node")
        say(
            plan.begunAnew,
            "have no replica left: all their data is lost, and they start empty")
        say(plan.gone, "have no replica left: all their data is lost")
        say(plan.undecided, "have several replicas left, but no majority")
        for group in plan.undecided {
            guard let replica = salvage.replicas[group] else { continue }
            lines.append(
                "  \(list([group])): the replica here ends in term \(replica.lastTerm) "
                    + "with entry \(replica.index). Compare the other nodes' reports: keep the "
                    + "replica with the later term, then the later entry")
        }
        for (group, why) in salvage.unusable.sorted(by: { $0.key < $1.key }) {
            lines.append("  \(list([group])): the replica on this node cannot be used: \(why)")
        }
        if plan.lines.contains(where: { $0.fate != .lives }) {
            let ends = fromHere.compactMap { salvage.replicas[$0] }.filter { $0.index > .zero }
            // The oldest end says nothing: it is that of a partition to which nobody wrote.
            let newest = ends.map(\.time.milliseconds).filter { $0 > 0 }.max().map {
                " The newest write in the replicas here is from \(WallTime.text($0))."
            }
            lines += [
                "",
                "Writes acknowledged by \(names(lost)) that the remaining replicas do not have are "
                    + "lost; nobody can tell how many." + (newest ?? ""),
                "Clients of these partitions fetch their zones from the beginning. Revocations, "
                    + "deletions and schema changes",
                "of the last moments may be undone: check schemas and sessions. The nodes compare "
                    + "and repair references",
                "between buckets once they run.",
            ]
        }
        self.text = lines.joined(separator: "\n") + "\n"
        self.refusal = Self.refusal(plan)
    }

    private static func refusal(_ plan: RecoveryPlan) -> String? {
        if plan.begunAnew.contains(.system) || plan.gone.contains(.system) {
            return "no replica of the system partition is left: this cluster cannot be recovered"
        }
        if !plan.undecided.isEmpty || !plan.gone.isEmpty {
            return "give --keep: the node whose replica counts where several remain, or that makes "
                + "empty ones"
        }
        if plan.here.isEmpty, plan.elsewhere.isEmpty {
            return
                "every partition has its majority: start the nodes and remove the lost ones "
                + "with 'stratusctl node remove'"
        }
        return nil
    }
}
