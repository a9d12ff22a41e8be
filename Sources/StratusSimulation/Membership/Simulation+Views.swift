import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPlacement
import StratusStorage

// Follows the system group's decisions: how nodes adopt them, and whether every replica has reached
// its place.
extension Simulation {
    func state(of group: GroupID, on node: SimulatedNode) -> SimulatedState {
        SimulatedState(
            self.placed != nil && group == .system
                ? .system : self.records == nil && self.hasClients ? .registers : .records,
            node: node.id,
            partitionCount: self.records?.buckets?.partitionCount ?? 1,
            deletedZoneCountMax: RecordWorld.deletedZoneCountMax(of: group),
            readTouchCountMax: self.options.readTouchCountMax, bugs: self.bugs)
    }

    func applied(
        _ entry: Entry, _ outcome: Outcome, _ digest: StateDigest, of group: GroupID, on id: NodeID
    ) {
        let isFirst = self.invariants.applied(id, group, entry, digest)
        self.report.entryCount += 1
        // Once a majority is lost nobody asks the model any more.
        if isFirst, self.recovery == nil,
            let violation = self.records?.apply(entry, outcome, of: group)
        {
            self.invariants.report(violation.rule, "\(group): \(violation.text)")
        }
        if isFirst, let problem = self.push?.apply(entry, outcome, of: group, at: self.now) {
            self.report(push: "\(group): \(problem)")
        }
        guard isFirst, group == .system, self.placed != nil, entry.kind == .command,
            let answer = try? self.node(id).partitions[group]?.store.answer(
                Query(kind: .system, body: SystemQuery.view.encoded())),
            case .view(let view?)? = try? SystemAnswer(decoding: answer.body),
            view.settings.revision > self.placed?.view?.settings.revision ?? 0
        else { return }
        let before = self.placed?.view
        self.placed?.view = view
        self.invariants.placed(view)
        self.tell(view, after: before)
    }

    /// For the trace, the picture and the report.
    private func tell(_ view: ClusterView, after before: ClusterView?) {
        func count(_ what: String) { self.report.membershipCounts[what, default: 0] += 1 }
        let revision = view.settings.revision
        for move in before?.moves ?? [] where view.move(of: move.group)?.number != move.number {
            let isDone = view.replicas(of: move.group) != before?.replicas(of: move.group)
            self.note(
                "view \(revision): \(move.group) move \(move.number) "
                    + (isDone ? "is done" : "is taken back"))
            self.timeline?.ended(move, isDone: isDone, at: self.now)
            count(isDone ? "moved" : "taken back")
        }
        for move in view.moves where before?.move(of: move.group)?.number != move.number {
            self.note(
                "view \(revision): \(move.group) moves from \(move.from?.description ?? "nowhere") "
                    + "to \(move.to?.description ?? "nowhere")")
            self.timeline?.begun(move, at: self.now)
        }
        for node in view.nodes where before?.node(node.id)?.state != node.state {
            self.note("view \(revision): \(node.id) is \(node.state)")
            self.timeline?.became("\(node.state)", node.id, at: self.now)
            if node.state == .draining || node.state == .removed { count("\(node.state)") }
        }
        for node in view.nodes {
            if let known = before?.node(node.id), known.weight != node.weight { count("weighed") }
        }
    }

    /// A node goes by a newer view, which is on its disk.
    func follows(_ view: ClusterView, _ node: SimulatedNode) {
        self.note("\(node.id) goes by view \(view.settings.revision)")
        self.mix(11, node.id.raw, 0, view.settings.revision, 0)
        node.revisionFollowed = max(node.revisionFollowed, view.settings.revision)
        self.followLinks(on: node)
        if self.recovery == nil, let known = self.placed?.view,
            known.settings.revision < view.settings.revision
        {
            self.invariants.report(
                "M-12 a view nobody decided", "\(node.id) goes by view \(view.settings.revision)")
        }
    }

    /// Drops the messages under way to an ended process, and tells the peers with a link to it.
    func breakLinks(of node: SimulatedNode) {
        guard self.placed != nil, self.streams == nil else { return }
        for other in self.nodes where other.isUp && other.id != node.id {
            let delay = self.delay(false)
            self.add(.linkLost(to: node.id), to: other, at: self.now + delay)
        }
    }

    // MARK: Coming right

    /// The difference that remains between the cluster's shape and the system group's decision; nil
    /// if there is none, or no table.
    func findMembershipProblem() -> String? {
        guard let placed else { return nil }
        guard let view = placed.view else { return "the cluster is not formed" }
        if placed.join != nil { return "a newcomer waits to be let in" }
        if let move = view.moves.first { return "\(move.group) still moves to \(move)" }
        if let move = MembershipController.wanted(for: view).first { return "wanted: \(move)" }
        for id in placed.lost where view.node(id)?.isMember == true {
            return "\(id) is not replaced"
        }
        for node in view.nodes where node.isMember {
            if node.state == .joining { return "\(node.id) has not come" }
            if node.state == .draining, node.leavesWhenEmpty { return "\(node.id) has not left" }
            if let problem = self.findProblem(on: self.node(node.id), view) { return problem }
        }
        return self.findMisplaced(view)
    }

    private func findProblem(on node: SimulatedNode, _ view: ClusterView) -> String? {
        guard let directory = node.shells?.directory, let host = node.host, let log = node.log
        else {
            return "\(node.id) is down"
        }
        if directory.revision != view.settings.revision {
            return "\(node.id) goes by view \(directory.revision) of \(view.settings.revision), "
                + "\(node.shells?.life.text ?? "")"
        }
        let kept = view.groups(keptBy: node.id)
        for group in self.groups where !kept.contains(group) {
            if host.replica(of: group) != nil { return "\(group) \(node.id) has a replica left" }
            if log.last(of: group).index > .zero { return "\(group) \(node.id) has a log left" }
            let number = String(group.raw)
            let folder =
                "partitions/" + String(repeating: "0", count: 5 - number.count) + number + "/"
            if node.files.allFiles.contains(where: { $0.raw.hasPrefix(folder) }) {
                return "\(group) \(node.id) has files left"
            }
        }
        return nil
    }

    /// M-12: groups and table agree, to the last voter.
    private func findMisplaced(_ view: ClusterView) -> String? {
        for group in self.groups {
            let replicas = self.nodes.compactMap { $0.host?.replica(of: group)?.raft }
            guard
                let leader = replicas.filter({ $0.role == .leader }).max(by: { $0.term < $1.term })
            else { return "\(group) has no leader" }
            let wanted = Configuration(voters: view.replicas(of: group))
            if leader.configuration != wanted {
                return "\(group) has \(leader.configuration), the table says \(wanted)"
            }
        }
        return nil
    }
}
