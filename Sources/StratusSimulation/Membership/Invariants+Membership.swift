import StratusCluster
import StratusConsensus
import StratusModel
import StratusPlacement

// The rules that must hold while replicas move, checked by an observer that knows every decision of
// the system group and everything that the groups have committed.
extension Invariants {
    /// The system group has decided on another view.
    mutating func placed(_ view: ClusterView) {
        self.view = view
        for group in self.groups.keys.sorted() { self.checkPlaces(of: group) }
    }

    /// A replica knows what is committed. M-02: one step of one replica after the other.
    mutating func confirms(_ replica: Replica) {
        let raft = replica.raft
        let group = replica.group
        let next = raft.log.configuration(at: raft.commit)
        let known = self.groups[group, default: Group()].confirmed
        guard !next.voters.isEmpty, raft.commit >= (known?.through ?? .zero) else { return }
        self.groups[group, default: Group()].confirmed = (raft.commit, next)
        guard let before = known?.configuration, before != next else { return }
        let (old, new) = (
            Set(before.isJoint ? before.incoming : before.voters),
            Set(next.isJoint ? next.incoming : next.voters)
        )
        if new.subtracting(old).count > 1 || old.subtracting(new).count > 1 {
            self.report(
                "M-02 one replica at a time",
                "\(group): from \(before) to \(next) at \(raft.commit)")
        }
        self.checkPlaces(of: group)
    }

    /// M-12, M-13: every voter keeps a replica, by the table or by the move that is under way.
    private mutating func checkPlaces(of group: GroupID) {
        guard let view, let confirmed = self.groups[group]?.confirmed else { return }
        var keepers = view.replicas(of: group)
        if let to = view.move(of: group)?.to { keepers.append(to) }
        let configuration = confirmed.configuration
        for voter in configuration.voters + configuration.incoming where !keepers.contains(voter) {
            self.report(
                "M-12 voter without a place",
                "\(group): \(voter) votes at \(confirmed.through), view \(view.settings.revision) "
                    + "keeps replicas on "
                    + keepers.sorted().map(\.description).joined(separator: " "))
        }
    }

    /// M-13: a replica is deleted when nobody counts on it.
    mutating func retires(_ node: SimulatedNode, _ group: GroupID, disks: [SimulatedNode]) {
        guard let configuration = self.groups[group]?.confirmed?.configuration else { return }
        if configuration.voters.contains(node.id) || configuration.incoming.contains(node.id) {
            self.report(
                "M-13 deleted while it votes",
                "\(group): \(node.id) lets its replica go and votes in \(configuration)")
        }
    }

    /// M-08: who is made a voter has what was there when it was made a learner.
    mutating func promotes(_ replica: Replica, at point: LogPoint, disks: [SimulatedNode]) {
        guard self.view != nil else { return }
        let joint = replica.raft.log.configuration(at: point.index)
        guard joint.isJoint, let configurations = self.groups[replica.group]?.configurations else {
            return
        }
        for newcomer in joint.incoming where !joint.voters.contains(newcomer) {
            let learned = configurations.last { $0.configuration.learners.contains(newcomer) }
            guard let learned, let term = self.term(of: replica.group, at: learned.index) else {
                continue
            }
            let disk = disks.first { $0.id == newcomer }
            if disk?.holds(learned.index, of: term, in: replica.group) != true {
                self.report(
                    "M-08 empty voter",
                    "\(replica.group): \(newcomer) becomes a voter at \(point.index) without "
                        + "entry \(learned.index)")
            }
        }
    }
}
