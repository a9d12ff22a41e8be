import StratusModel
import StratusPlacement
import Testing

/// A cluster whose groups are configurations without logs. It takes the promises of consensus for
/// granted: one leader with a majority, and a joint configuration left when both majorities stand.
/// So only the controller and the system partition can be wrong.
struct MovingWorld {
    struct Group {
        var leader: NodeID?
        var configuration: Configuration
        var configurationIndex = LogIndex(1)
        var isCommitted = true
        /// Nodes with everything that was ever committed.
        var complete: Set<NodeID>
        var last = LogIndex(1)
    }

    var bench: SystemBench
    var random: SeededGenerator
    var groups: [GroupID: Group] = [:]
    var down: Set<NodeID> = []
    var gone: Set<NodeID> = []
    /// Steps decided and not carried out yet: some are, some twice, some much later, some never.
    var late: [MembershipController.Step] = []
    var violations: [String] = []
    var changeCount = 0
    var nextName: UInt32 = 20
    let controller: MembershipController

    init(seed: UInt64, nodes: Int, partitionCount: Int = 8) throws {
        self.random = SeededGenerator(seed: seed)
        self.bench = try SystemBench(formed: nodes, partitionCount: partitionCount)
        var tuning = MembershipController.Tuning()
        tuning.moveCountMax = 3
        self.controller = MembershipController(tuning)
        for number in 1...UInt32(nodes) {
            var node = SystemBench.peer(number)
            node.directory = UInt64(number)
            node.key = [UInt8(number)]
            try self.bench.apply(.announce(node))
        }
        let view = try self.bench.view
        for group in view.groups {
            let voters = view.replicas(of: group)
            self.groups[group] = Group(
                leader: voters[0], configuration: Configuration(voters: voters),
                complete: Set(voters))
        }
    }

    func isUp(_ node: NodeID) -> Bool { !self.down.contains(node) && !self.gone.contains(node) }

    private func hasMajority(_ voters: [NodeID]) -> Bool {
        voters.count { self.isUp($0) } >= voters.count / 2 + 1
    }

    private func isServing(_ group: Group) -> Bool {
        self.hasMajority(group.configuration.voters)
            && (!group.configuration.isJoint || self.hasMajority(group.configuration.incoming))
    }

    /// One turn of every group: elections, catching up, leaving joint configurations.
    mutating func turn() throws {
        let view = try self.bench.view
        for id in view.groups {
            guard var group = self.groups[id] else { continue }
            let voters = group.configuration.voters + group.configuration.incoming
            if let leader = group.leader, !self.isUp(leader) { group.leader = nil }
            if !self.isServing(group) { group.leader = nil }
            if group.leader == nil, self.isServing(group) {
                group.leader = voters.filter { self.isUp($0) && group.complete.contains($0) }
                    .randomElement(using: &self.random)
            }
            if group.leader != nil {
                for node in voters + group.configuration.learners
                where self.isUp(node) && Bool.random(using: &self.random) {
                    // A node keeps data only for groups the view gives it.
                    if view.groups(keptBy: node).contains(id) { group.complete.insert(node) }
                }
                if !group.isCommitted, Bool.random(using: &self.random) { group.isCommitted = true }
                if group.isCommitted, group.configuration.isJoint,
                    Bool.random(using: &self.random)
                {
                    group.last = group.last.next
                    group.configurationIndex = group.last
                    group.configuration = Configuration(
                        voters: group.configuration.incoming,
                        learners: group.configuration.learners)
                    if let leader = group.leader, !group.configuration.voters.contains(leader) {
                        group.leader = nil
                    }
                }
                // Whoever is down misses what is written meanwhile.
                if Int.random(in: 0..<4, using: &self.random) == 0 {
                    group.last = group.last.next
                    let kept = group.complete.filter { self.isUp($0) }
                    if self.majorityHolds(kept, group) { group.complete = kept }
                }
            }
            self.groups[id] = group
        }
        try self.deleteUnkept()
        try self.check()
    }

    private func majorityHolds(_ nodes: Set<NodeID>, _ group: Group) -> Bool {
        [group.configuration.voters, group.configuration.incoming].allSatisfy { voters in
            voters.isEmpty || voters.count { nodes.contains($0) } >= voters.count / 2 + 1
        }
    }

    /// Nodes delete what the view does not give them, as soon as they like.
    private mutating func deleteUnkept() throws {
        let view = try self.bench.view
        for node in view.nodes where self.isUp(node.id) && Bool.random(using: &self.random) {
            let kept = Set(view.groups(keptBy: node.id))
            for group in view.groups where !kept.contains(group) {
                self.groups[group]?.complete.remove(node.id)
            }
        }
    }

    private mutating func check() throws {
        let view = try self.bench.view
        for id in view.groups {
            guard let group = self.groups[id] else { continue }
            let kept = view.replicas(of: id) + [view.move(of: id)?.to].compactMap { $0 }
            for voter in group.configuration.voters + group.configuration.incoming
            where !kept.contains(voter) {
                self.violations.append("\(voter) votes in \(id) and may delete it")
            }
            if !self.majorityHolds(group.complete, group) {
                self.violations.append("no majority of \(id) has everything: \(group)")
            }
        }
    }

    // MARK: The controller

    mutating func decide() throws -> [MembershipController.Step] {
        let view = try self.bench.view
        var seen: [GroupID: GroupObservation] = [:]
        for id in view.groups {
            guard let group = self.groups[id], let leader = group.leader else { continue }
            seen[id] = GroupObservation(
                group: id, leader: leader, configuration: group.configuration,
                configurationIndex: group.configurationIndex, isCommitted: group.isCommitted,
                caughtUp: group.complete.filter { self.isUp($0) }.sorted())
        }
        return self.controller.steps(
            in: .init(
                view: view, groups: seen,
                alive: Set(view.nodes.map(\.id).filter { self.isUp($0) }),
                deadForLong: self.gone.union(self.down)))
    }

    /// The system group itself must be able to commit.
    private var canCommit: Bool { self.groups[.system]?.leader != nil }

    mutating func carryOut(_ step: MembershipController.Step) throws {
        switch step {
        case .command(let command):
            guard self.canCommit else { return }
            try self.bench.apply(command)
        case .configure(let id, let leader, let index, let voters, let learners):
            guard var group = self.groups[id], group.leader == leader, group.isCommitted,
                !group.configuration.isJoint, group.configurationIndex == index
            else { return }
            let old = group.configuration
            let arriving = voters.filter { !old.voters.contains($0) }
            let leaving = old.voters.filter { !voters.contains($0) }
            if arriving.count > 1 || leaving.count > 1 {
                self.violations.append("more than one replica of \(id) at once: \(step)")
            }
            if !arriving.allSatisfy({ old.learners.contains($0) }) {
                self.violations.append("a voter of \(id) that was no learner: \(step)")
            }
            group.last = group.last.next
            group.configurationIndex = group.last
            group.isCommitted = false
            group.configuration =
                voters == old.voters
                ? Configuration(voters: voters, learners: learners)
                : Configuration(voters: old.voters, incoming: voters, learners: learners)
            self.groups[id] = group
            self.changeCount += 1
        case .transfer(let id, let leader, let to):
            guard let group = self.groups[id], group.leader == leader, self.isUp(to),
                group.complete.contains(to), group.configuration.voters.contains(to)
            else { return }
            self.groups[id]?.leader = to
        }
    }

    /// Carries out steps as a network does: most at once, some again, some late, some never.
    mutating func carryOutCarelessly(_ steps: [MembershipController.Step]) throws {
        for step in steps {
            switch Int.random(in: 0..<10, using: &self.random) {
            case 0: break
            case 1, 2: self.late.append(step)
            case 3:
                try self.carryOut(step)
                self.late.append(step)
            default: try self.carryOut(step)
            }
        }
        while self.late.count > 40 { self.late.removeFirst() }
        if !self.late.isEmpty, Bool.random(using: &self.random) {
            let place = Int.random(in: self.late.indices, using: &self.random)
            try self.carryOut(self.late.remove(at: place))
        }
    }

    // MARK: Operators and faults

    mutating func disturb() throws {
        let view = try self.bench.view
        let members = view.nodes.filter(\.isMember)
        let some = members.randomElement(using: &self.random)!.id
        switch Int.random(in: 0..<16, using: &self.random) {
        case 0, 1, 2:
            // Never two at once: a group without a majority only waits, and that is not tested
            // here.
            if self.down.isEmpty { self.down.insert(some) }
        case 3, 4, 5, 6: self.down.removeAll()
        case 7, 8:
            if members.count < 9, self.canCommit {
                self.nextName += 1
                _ = try self.bench.join(self.nextName)
            }
        case 9, 10:
            if self.canCommit {
                try self.bench.apply(
                    .drain(
                        some, leavesWhenEmpty: Bool.random(using: &self.random),
                        acceptedReplicaCount: nil))
            }
        case 11: if self.canCommit { try self.bench.apply(.undrain(some)) }
        case 12:
            if self.canCommit {
                try self.bench.apply(
                    .configure(
                        some, weight: [50, 100, 200].randomElement(using: &self.random)!,
                        rack: nil))
            }
        case 13:
            // Lost for good and replaced: only while every group keeps its majority.
            if self.down.isEmpty, self.canCommit, view.placementNodes.count > 4 {
                if try self.bench.refusal(
                    .drain(some, leavesWhenEmpty: true, acceptedReplicaCount: nil)) == nil
                {
                    if self.groups.values.allSatisfy({ group in
                        self.majorityHolds(group.complete.subtracting([some]), group)
                    }), self.gone.isEmpty {
                        self.gone.insert(some)
                    }
                }
            }
        default:
            if let id = view.groups.randomElement(using: &self.random) {
                self.groups[id]?.leader = nil
            }
        }
        // A lost node that has left makes room for the next to be lost.
        for node in self.gone where try self.bench.view.node(node)?.isMember == false {
            self.gone.remove(node)
            self.down.remove(node)
        }
    }
}
