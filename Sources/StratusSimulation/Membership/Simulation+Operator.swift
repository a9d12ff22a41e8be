import StratusCluster
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusPlacement

// The operator of the cluster: admits nodes, drains and removes them, weighs them, and replaces
// those that die.
extension Simulation {
    private static let nodeCountMax = 12

    private func draw(_ count: Int) -> Int {
        Int.random(in: 0..<max(1, count), using: &self.faultRandom)
    }

    /// One thing that an operator may do now, drawn from the seed.
    func operate() {
        guard let view = self.placed?.view else { return }
        let members = view.nodes.filter(\.isMember)
        let active = members.filter { $0.state == .active }
        guard let some = active.isEmpty ? nil : active[self.draw(active.count)] else { return }
        let mayLose = active.count > view.settings.replicaCount
        switch self.draw(10) {
        case 0...2:
            if self.placed?.join == nil, members.count < self.options.memberCountMax,
                self.nodes.count < Self.nodeCountMax
            {
                self.placed?.join = PlacedCluster.Join(number: self.nodes.count + 1)
            }
            self.letIn()
        case 3...4:
            if mayLose {
                self.order(.drain(some.id, leavesWhenEmpty: true, acceptedReplicaCount: nil))
            }
        case 5:
            if mayLose {
                self.order(.drain(some.id, leavesWhenEmpty: false, acceptedReplicaCount: nil))
            }
        case 6:
            let draining = members.filter { $0.state == .draining && !self.isLost($0.id) }
            if let node = draining.first { self.order(.undrain(node.id)) }
        case 7:
            let weights: [UInt32] = [1, 2, 3, 5, 8]
            let weight = PlacementNode.ordinaryWeight * weights[self.draw(weights.count)]
            self.order(.configure(some.id, weight: weight, rack: nil))
        case 8: self.removeByForce(some.id, view)
        default: if mayLose { self.dieForGood(some.id, view) }
        }
        self.replaceLost()
    }

    private func isLost(_ node: NodeID) -> Bool { self.placed?.lost.contains(node) == true }

    /// An order goes to any node that is up; what becomes of it is not waited for.
    private func order(_ command: SystemCommand) {
        guard let shells = self.someShells() else { return }
        self.note("operator at \(shells.life.node.id): \(command)")
        shells.life.spawn {
            let outcome = await shells.submit(command, as: .administrator)
            shells.life.simulation.note(
                "operator hears of \(command): \(outcome.map { "\($0)" } ?? "nothing")")
        }
    }

    private func someShells() -> ClusterShells? {
        let up = self.nodes.filter {
            $0.isUp && $0.pausedUntil <= self.now
                && $0.shells?.directory.view.node($0.id)?.isMember == true
        }
        return up.isEmpty ? nil : up[self.draw(up.count)].shells
    }

    /// Removes a node that still holds replicas. Only one at a time, and not beside one that died:
    /// two may be a majority of three.
    private func removeByForce(_ id: NodeID, _ view: ClusterView) {
        guard let placed, placed.isWhole(view), !self.nodes.contains(where: \.isImpaired),
            view.placementNodes.count > view.settings.replicaCount,
            self.now >= placed.calmAt
        else { return }
        self.placed?.calmAt = self.now + PlacedCluster.calm
        self.order(.remove(id, acceptedLossCount: 0))
    }

    // MARK: Joining

    /// Tries to let the next node in, with the same token and key until there is an answer.
    func letIn() {
        guard let join = self.placed?.join, !join.isUnderWay, let shells = self.someShells() else {
            return
        }
        self.placed?.join?.isUnderWay = true
        let number = join.number
        var newcomer = PlacedCluster.node(NodeID(0), number: number, self.options)
        newcomer.state = .joining
        newcomer.key = Self.key(of: number)
        let node = newcomer
        let hash = Bytes(repeating: UInt8(truncatingIfNeeded: number), count: JoinToken.hashSize)
        self.note("operator at \(shells.life.node.id): let node\(number) in")
        shells.life.spawn {
            let simulation = shells.life.simulation
            let expires = shells.life.node.world.wallMilliseconds + 1_000_000_000
            var joined: (NodeID, ClusterView)?
            if await shells.submit(
                .addToken(hash: hash, expiresMilliseconds: expires), as: .administrator) != nil,
                case .joined(let id, _)? = await shells.submit(
                    .join(node, tokenHash: hash), as: .system),
                let view = await shells.readView(), view.node(id) != nil
            {
                joined = (id, view)
            }
            simulation.letIn(number, as: joined)
        }
    }

    private func letIn(_ number: Int, as joined: (id: NodeID, view: ClusterView)?) {
        self.placed?.join?.isUnderWay = false
        guard let (id, view) = joined, self.placed?.join?.number == number else { return }
        guard Int(id.raw) == self.nodes.count + 1 else {
            return self.invariants.report("M-17 one name", "node\(number) became \(id)")
        }
        self.placed?.join = nil
        let node = SimulatedNode(id: id, seed: self.diskRandom.next())
        // Whoever adds a node during an upgrade installs the newer build.
        if self.options.levels != nil { node.build = .next }
        self.nodes.append(node)
        do { try ClusterDirectory.keep(view, in: node.world) } catch {
            preconditionFailure("a disk without faults refused: \(error)")
        }
        self.note("\(id) joins by view \(view.settings.revision)")
        self.report.membershipCounts["joined", default: 0] += 1
        self.queue.add(.fault(.restart(id)), at: self.now + 1_000_000)
    }

    // MARK: Dying

    /// Whether nobody is gone whose replicas are still to be made again elsewhere.
    var isPlacedWhole: Bool {
        guard let placed, let view = placed.view else { return self.placed?.lost.isEmpty ?? true }
        return placed.isWhole(view)
    }

    /// Destroys a machine with its disk. Only one at a time, and not beside a disk that has lost
    /// data: two may be a majority of three.
    private func dieForGood(_ id: NodeID, _ view: ClusterView) {
        guard let placed, placed.isWhole(view), self.now >= placed.calmAt,
            !self.nodes.contains(where: \.isImpaired),
            view.groups.allSatisfy({ view.replicas(of: $0).count >= 3 })
        else { return }
        let living = self.nodes.map(\.id).filter { $0 != id && !self.isLost($0) }
        for group in self.groups {
            for node in self.nodes {
                guard let raft = node.host?.replica(of: group)?.raft else { continue }
                guard raft.configuration.voters.isEmpty || raft.configuration.isQuorum(living)
                else { return }
            }
        }
        self.note("\(id) dies for good")
        self.report.membershipCounts["lost", default: 0] += 1
        self.placed?.lost.append(id)
        self.crash(self.node(id), losesPower: true, backAfter: nil)
    }

    /// Orders the lost to be replaced, until the cluster has heard.
    func replaceLost() {
        guard let placed, let view = placed.view, !placed.isReplacing,
            let shells = self.someShells(),
            let lost = placed.lost.first(where: { id in
                view.node(id).map { $0.isMember && !$0.leavesWhenEmpty } == true
            })
        else { return }
        let remaining = view.placementNodes.count { $0.id != lost }
        self.placed?.isReplacing = true
        self.note("operator at \(shells.life.node.id): replace \(lost)")
        shells.life.spawn {
            _ = await shells.submit(
                .drain(
                    lost, leavesWhenEmpty: true,
                    acceptedReplicaCount: remaining < view.settings.replicaCount ? remaining : nil),
                as: .administrator)
            shells.life.simulation.placed?.isReplacing = false
        }
    }

    /// Faults have ended; what was begun is brought to its end.
    func finishOperating() {
        self.letIn()
        self.replaceLost()
    }
}
