package import StratusModel

/// A group as its leader reports it.
package struct GroupObservation: Sendable, Equatable {
    package var group: GroupID
    package var leader: NodeID
    /// The latest in its log, where it stands there, and whether it is committed.
    package var configuration: Configuration
    package var configurationIndex: LogIndex
    package var isCommitted: Bool
    /// Members, learners included, whose logs match the leader's: within a round trip of it, with
    /// no snapshot incomplete. The leader is one of them.
    package var caughtUp: [NodeID]
    /// Whether the leader knows of a member that lacks its rows, or whose rows are in dispute.
    package var isTroubled: Bool

    package init(
        group: GroupID, leader: NodeID, configuration: Configuration,
        configurationIndex: LogIndex, isCommitted: Bool, caughtUp: [NodeID],
        isTroubled: Bool = false
    ) {
        self.group = group
        self.leader = leader
        self.configuration = configuration
        self.configurationIndex = configurationIndex
        self.isCommitted = isCommitted
        self.caughtUp = caughtUp
        self.isTroubled = isTroubled
    }
}

/// Decides what to do next to bring every replica where the planner wants it, from the committed
/// state and from observations. It takes one step per group at a time, and never goes below a
/// majority.
///
/// It remembers nothing. The leader of the system group asks it again and again; if that leader
/// dies between two steps, the next one reads the same state and goes on. Every step may be carried
/// out twice, late or not at all: a command names what it expects, and a configuration is proposed
/// against the one it was decided from.
///
/// A move of one replica, and where each step is remembered:
/// 1. `beginMove`, in the system partition: the newcomer's node opens an empty replica.
/// 2. The newcomer becomes a learner: in the group's configuration. It is sent what it lacks.
/// 3. When it has caught up: `fenceMove`, in the system partition, at that configuration.
/// 4. One joint change makes it a voter and drops the old one; consensus leaves the joint
///    configuration by itself.
/// 5. `finishMove`, in the system partition, once the group's committed configuration says so: only
///    now may the old node delete what it has.
///
/// The configuration of a group is changed only at the fence of its move, so a voter is always a
/// node that keeps a replica. Two leaders of the system group, each with steps on the way,
/// therefore cannot give up a move and also complete it.
package struct MembershipController: Sendable {
    package enum Step: Sendable, Equatable {
        /// To the system group.
        case command(SystemCommand)
        /// Asks the group's leader to change the configuration, if the latest one still stands at
        /// `index`.
        case configure(
            GroupID, leader: NodeID, at: LogIndex, voters: [NodeID], learners: [NodeID])
        case transfer(GroupID, leader: NodeID, to: NodeID)
    }

    /// The known state of the world now. Groups without a leader have no observation. The view is
    /// read first, so no observation speaks of an earlier move than the view does.
    package struct Situation: Sendable {
        package var view: ClusterView
        package var groups: [GroupID: GroupObservation]
        /// Nodes heard of lately.
        package var alive: Set<NodeID>
        /// Nodes silent for longer than the hold time: worth replacing, should the operator let us.
        package var deadForLong: Set<NodeID>

        package init(
            view: ClusterView, groups: [GroupID: GroupObservation], alive: Set<NodeID>,
            deadForLong: Set<NodeID> = []
        ) {
            self.view = view
            self.groups = groups
            self.alive = alive
            self.deadForLong = deadForLong
        }
    }

    package struct Tuning: Sendable {
        /// Moves at once in the cluster, and newcomers at once on one node: copying takes disk and
        /// network from those who serve.
        package var moveCountMax = 8
        package var newcomerCountMax = 2
        /// Leaderships handed over in one round.
        package var transferCountMax = 8
        package init() {}
    }

    package var tuning: Tuning
    private let bugs: PlantedBugs

    package init(_ tuning: Tuning = Tuning(), bugs: PlantedBugs = PlantedBugs()) {
        self.tuning = tuning
        self.bugs = bugs
    }

    /// The wanted place of every replica. Nodes that are being drained or are removed hold nothing
    /// in it.
    package static func plan(for view: ClusterView) -> PlacementPlan {
        PlacementPlanner(replicaCount: view.settings.replicaCount).plan(
            from: view.table, nodes: view.placementNodes)
    }

    /// The plan for the system group, like ``plan(for:)``: a table of one row, whose weights do not
    /// matter.
    package static func systemPlan(for view: ClusterView) -> PlacementPlan {
        var table = PlacementTable(partitionCount: 1)
        table.setReplicas(view.systemReplicas, of: PartitionID(0))
        return PlacementPlanner(replicaCount: view.settings.systemReplicaCount).plan(
            from: table,
            nodes: view.placementNodes.map { PlacementNode($0.id, rack: $0.rack) })
    }

    /// Moves still to be begun, most urgent first: groups with too few replicas, then replicas on
    /// nodes that leave, then moves that only balance.
    package static func wanted(for view: ClusterView) -> [ReplicaMove] {
        let system = Self.systemPlan(for: view).moves.map {
            ReplicaMove(.system, from: $0.from, to: $0.to)
        }
        let moves = Self.plan(for: view).moves.map {
            ReplicaMove($0.partition.group, from: $0.from, to: $0.to)
        }
        func urgency(_ move: ReplicaMove) -> Int {
            if Self.mends(move, in: view) { return move.from == nil ? 0 : 1 }
            return move.from.flatMap { view.node($0) }?.state == .draining ? 2 : 3
        }
        return (system + moves).enumerated().sorted {
            (urgency($0.element), $0.offset) < (urgency($1.element), $1.offset)
        }.map(\.element)
    }

    /// Whether the move adds a missing replica, or replaces one that will never come back.
    private static func mends(_ move: ReplicaMove, in view: ClusterView) -> Bool {
        guard let from = move.from else { return true }
        return view.node(from)?.isMember != true
    }

    /// The next steps, in a fixed order for a fixed situation.
    package func steps(in now: Situation) -> [Step] {
        var steps: [Step] = []
        for move in now.view.moves { self.advance(move, in: now, &steps) }
        self.begin(in: now, &steps)
        self.removeEmptied(in: now, &steps)
        self.balanceLeaders(in: now, &steps)
        return steps
    }

    // MARK: Moves in progress

    private func advance(_ move: ReplicaMove, in now: Situation, _ steps: inout [Step]) {
        guard let seen = now.groups[move.group], self.isSettled(seen) else { return }
        let current = seen.configuration
        guard seen.configurationIndex >= move.fence else {
            // A node that has received a snapshot knows its configuration by the snapshot's index,
            // which may be past the index by which the next leader knows it. Proposed once more,
            // the configuration stands past the fence for everybody.
            steps.append(
                .configure(
                    move.group, leader: seen.leader, at: seen.configurationIndex,
                    voters: current.voters, learners: current.learners))
            return
        }
        let isIn = move.to.map { current.voters.contains($0) } ?? true
        let isOut = move.from.map { !current.voters.contains($0) } ?? true
        if isIn && isOut {
            steps.append(.command(.finishMove(move.group, number: move.number)))
            return
        }
        if let to = move.to, !isIn {
            let isLearner = current.learners.contains(to)
            if self.isHopeless(to, in: now) {
                self.giveUp(move, seen, &steps)
                return
            }
            guard isLearner else {
                self.change(
                    move, seen, voters: current.voters, learners: current.learners + [to], &steps)
                return
            }
            guard seen.caughtUp.contains(to) || self.bugs.contains(.newcomerNotAwaited) else {
                return
            }
        }
        var voters = current.voters.filter { $0 != move.from }
        if let to = move.to, !isIn { voters.append(to) }
        guard self.keepsMajority(of: voters, seen, in: now) else {
            // A replica is only dropped, and those who would stay have lost their majority for
            // good.
            if move.to == nil, self.isLost(voters, in: now) { self.giveUp(move, seen, &steps) }
            return
        }
        if let from = move.from, from == seen.leader,
            let heir = self.heir(of: seen, among: voters, in: now)
        {
            // Its last act would be to commit its own removal: let another one do it.
            steps.append(.transfer(move.group, leader: seen.leader, to: heir))
            return
        }
        self.change(
            move, seen, voters: voters, learners: current.learners.filter { $0 != move.to }, &steps)
    }

    /// Whether the observed configuration is final. A step never builds on one that may still be
    /// taken back, or that is changing into another.
    private func isSettled(_ seen: GroupObservation) -> Bool {
        if self.bugs.contains(.moveFinishedUncommitted) { return !seen.configuration.isJoint }
        return seen.isCommitted && !seen.configuration.isJoint
    }

    /// Changes the configuration at the fence; first raises the fence to it.
    private func change(
        _ move: ReplicaMove, _ seen: GroupObservation, voters: [NodeID], learners: [NodeID],
        _ steps: inout [Step]
    ) {
        guard seen.configurationIndex == move.fence else {
            steps.append(
                .command(
                    .fenceMove(move.group, number: move.number, at: seen.configurationIndex)))
            return
        }
        steps.append(
            .configure(
                move.group, leader: seen.leader, at: move.fence, voters: voters.sorted(),
                learners: learners.sorted()))
    }

    /// The newcomer will not come: it was removed, leaves itself, or is silent for long.
    private func isHopeless(_ node: NodeID, in now: Situation) -> Bool {
        now.view.node(node)?.state != .active || now.deadForLong.contains(node)
    }

    /// So many of the voters to come were removed, or are silent for long, that no majority of them
    /// will come.
    private func isLost(_ voters: [NodeID], in now: Situation) -> Bool {
        let lost = voters.count {
            now.view.node($0)?.isMember != true || now.deadForLong.contains($0)
        }
        return voters.count - lost < voters.count / 2 + 1
    }

    /// A configuration without the newcomer, past the fence; then the move is over.
    private func giveUp(
        _ move: ReplicaMove, _ seen: GroupObservation, _ steps: inout [Step]
    ) {
        let learners = seen.configuration.learners.filter { $0 != move.to }
        guard learners.count == seen.configuration.learners.count,
            seen.configurationIndex > move.fence
        else {
            self.change(
                move, seen, voters: seen.configuration.voters, learners: learners, &steps)
            return
        }
        steps.append(
            .command(
                .abandonMove(
                    move.group, number: move.number, at: seen.configurationIndex)))
    }

    /// Whether the voters to come have a majority that is there and has everything.
    private func keepsMajority(of voters: [NodeID], _ seen: GroupObservation, in now: Situation)
        -> Bool
    {
        if self.bugs.contains(.newcomerNotAwaited) { return true }
        let good = voters.count { now.alive.contains($0) && seen.caughtUp.contains($0) }
        return good >= voters.count / 2 + 1
    }

    // MARK: New moves

    private func begin(in now: Situation, _ steps: inout [Step]) {
        var room = self.tuning.moveCountMax - now.view.moves.count
        guard room > 0 else { return }
        var newcomers: [NodeID: Int] = [:]
        var busy = Set(now.view.moves.map(\.group))
        for move in now.view.moves { if let to = move.to { newcomers[to, default: 0] += 1 } }
        // Groups to be repaired whose newcomer is not available now.
        var waiting: [GroupID: ReplicaMove] = [:]
        for move in Self.wanted(for: now.view) where room > 0 && !busy.contains(move.group) {
            guard let seen = now.groups[move.group], seen.isCommitted, !seen.configuration.isJoint
            else { continue }
            // What only balances can wait until all rows are sound again.
            if seen.isTroubled, !Self.mends(move, in: now.view),
                move.from.flatMap({ now.view.node($0) })?.state == .active
            {
                continue
            }
            var fenced = move
            if let to = move.to {
                guard now.alive.contains(to),
                    newcomers[to, default: 0] < self.tuning.newcomerCountMax
                else {
                    if waiting[move.group] == nil, Self.mends(move, in: now.view) {
                        waiting[move.group] = move
                    }
                    continue
                }
                newcomers[to, default: 0] += 1
            }
            // A live replica stays as long as a dead one is still a voter, or a replica is missing.
            if let urgent = waiting[move.group] {
                guard move.to != nil || urgent.from != nil else { continue }
                fenced.from = urgent.from
            }
            // Those who would stay may have no majority now. The group has one move at a time, and
            // one that waits for a dead node would keep that node's own replacement from beginning.
            if fenced.to == nil {
                let voters = seen.configuration.voters.filter { $0 != fenced.from }
                guard self.keepsMajority(of: voters, seen, in: now) else { continue }
            }
            fenced.fence = seen.configurationIndex
            steps.append(.command(.beginMove(fenced)))
            busy.insert(move.group)
            room -= 1
        }
    }

    private func removeEmptied(in now: Situation, _ steps: inout [Step]) {
        for node in now.view.nodes where node.state == .draining && node.leavesWhenEmpty {
            if now.view.groups(keptBy: node.id).isEmpty {
                steps.append(.command(.remove(node.id, acceptedLossCount: nil)))
            }
        }
    }

    // MARK: Leaders

    /// Moves leaderships off draining nodes at once, and spreads the others so that no node leads
    /// two groups more than its weight's part. Groups on the move are left alone, and those with a
    /// member that has a problem: who leads there was chosen for it, or by an operator.
    private func balanceLeaders(in now: Situation, _ steps: inout [Step]) {
        let moving = Set(now.view.moves.map(\.group))
        let groups = now.view.groups.compactMap { now.groups[$0] }.filter {
            !moving.contains($0.group) && $0.isCommitted && !$0.configuration.isJoint
        }
        var leads: [NodeID: Int] = [:]
        for seen in now.view.groups.compactMap({ now.groups[$0] }) {
            leads[seen.leader, default: 0] += 1
        }
        var room = self.tuning.transferCountMax
        for seen in groups where room > 0 {
            let own = self.load(seen.leader, leads, in: now)
            let heirs = seen.configuration.voters.filter {
                $0 != seen.leader && now.view.node($0)?.state == .active && now.alive.contains($0)
                    && seen.caughtUp.contains($0)
            }
            let isLeaving = now.view.node(seen.leader)?.state != .active
            if seen.isTroubled, !isLeaving { continue }
            let best = heirs.min {
                (self.load($0, leads, in: now), $0) < (self.load($1, leads, in: now), $1)
            }
            guard let best else { continue }
            // One more for the heir must still be one fewer than the leader has: no swinging.
            let after = self.load(best, leads, in: now, plus: 1)
            let before = self.load(seen.leader, leads, in: now, plus: -1)
            guard isLeaving || (after < own && after <= before) else { continue }
            steps.append(.transfer(seen.group, leader: seen.leader, to: best))
            leads[seen.leader, default: 0] -= 1
            leads[best, default: 0] += 1
            room -= 1
        }
    }

    private func load(
        _ node: NodeID, _ leads: [NodeID: Int], in now: Situation, plus: Int = 0
    ) -> Int {
        let weight = max(1, Int(now.view.node(node)?.weight ?? 1))
        return ((leads[node] ?? 0) + plus) * 1_000_000 / weight
    }

    private func heir(of seen: GroupObservation, among voters: [NodeID], in now: Situation)
        -> NodeID?
    {
        seen.configuration.voters.first {
            $0 != seen.leader && voters.contains($0) && now.alive.contains($0)
                && seen.caughtUp.contains($0)
        }
    }
}
