package import StratusModel
package import StratusPlacement
import StratusStorage

/// Runs ``StratusPlacement/MembershipController`` while this node leads the system group: looks at
/// the groups, asks for the next steps, and sends them to the nodes concerned.
///
/// It remembers nothing that matters: the next leader looks for itself. With nothing to move it
/// looks at the leaders now and then, and is otherwise idle.
package struct MembershipKeeper: Sendable {
    package struct Tuning: Sendable {
        /// Between rounds while something moves.
        package var busyPause: Duration = .milliseconds(50)
        /// Between looks at the leaders' balance, and whether there is anything to do.
        package var idlePause: Duration = .milliseconds(500)
        package var balanceInterval: Duration = .seconds(5)
        package var patience: Duration = .seconds(1)
        /// A node silent for longer is worth replacing, should the operator say so.
        package var holdTime: Duration = .seconds(30)
        /// Groups woken in a round: each costs an election.
        package var wakeCountMax = 32
        package init() {}
    }

    private let directory: ClusterDirectory
    private let replicas: any MemberReplicas
    private let router: ClusterRouter
    private let follower: ClusterFollower
    private let world: any World
    private let tuning: Tuning
    private let controller: MembershipController
    private let log: @Sendable (ChangeWords) -> Void
    private let sleep: @Sendable (Duration) async -> Void

    package init(
        _ directory: ClusterDirectory, replicas: any MemberReplicas, router: ClusterRouter,
        follower: ClusterFollower, in world: any World, tuning: Tuning = Tuning(),
        bugs: PlantedBugs = PlantedBugs(),
        log: @escaping @Sendable (ChangeWords) -> Void,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.directory = directory
        self.replicas = replicas
        self.router = router
        self.follower = follower
        self.world = world
        self.tuning = tuning
        self.controller = MembershipController(bugs: bugs)
        self.log = log
        self.sleep = sleep
    }

    /// The knowledge kept from one round to the next. It may be lost.
    private struct Memory {
        var heardAt: [NodeID: MonotonicTime] = [:]
        var balanceAt: MonotonicTime?
        /// Groups that had a leader in the last round: nobody has to wake them.
        var led: Set<GroupID> = []
        /// The last search for moves to begin: its result follows from the view.
        var planned: (revision: UInt64, wanted: [ReplicaMove])?
    }

    /// Until cancelled.
    package func run() async {
        var memory = Memory()
        while !Task.isCancelled {
            guard self.replicas.leader(of: .system) == self.directory.own else {
                memory = Memory()
                await self.sleep(self.tuning.idlePause)
                continue
            }
            let isBusy = await self.round(&memory)
            await self.sleep(isBusy ? self.tuning.busyPause : self.tuning.idlePause)
        }
    }

    /// - Returns: whether something is under way.
    private func round(_ memory: inout Memory) async -> Bool {
        await self.follower.look()
        let view = self.directory.view
        guard view.settings.revision > 0 else { return false }
        if memory.planned?.revision != view.settings.revision {
            memory.planned = (view.settings.revision, MembershipController.wanted(for: view))
        }
        let wanted = memory.planned?.wanted ?? []
        let leaves = view.nodes.contains { $0.state == .draining }
        let isBusy = !view.moves.isEmpty || !wanted.isEmpty
        let now = self.world.now
        guard isBusy || leaves || now >= (memory.balanceAt ?? now) else { return false }
        memory.balanceAt = now + self.tuning.balanceInterval

        let urgent = view.moves.map(\.group) + wanted.map(\.group)
        let seen = await self.observe(view, urgent, awake: memory.led)
        memory.led = Set(seen.groups.keys)
        for node in seen.alive { memory.heardAt[node] = self.world.now }
        var dead: Set<NodeID> = []
        for node in view.nodes where node.isMember && !seen.alive.contains(node.id) {
            let heard = memory.heardAt[node.id] ?? now
            memory.heardAt[node.id] = heard
            if self.world.now - heard > self.tuning.holdTime { dead.insert(node.id) }
        }
        let steps = self.controller.steps(
            in: MembershipController.Situation(
                view: view, groups: seen.groups, alive: seen.alive, deadForLong: dead))
        for step in steps { await self.carryOut(step) }
        return isBusy
    }

    // MARK: Looking

    private struct Sight {
        var groups: [GroupID: GroupObservation] = [:]
        var alive: Set<NodeID> = []
    }

    private func observe(_ view: ClusterView, _ urgent: [GroupID], awake: Set<GroupID>) async
        -> Sight
    {
        var waking: [NodeID: [GroupID]] = [:]
        var count = 0
        for group in urgent where count < self.tuning.wakeCountMax && !awake.contains(group) {
            count += 1
            for node in view.replicas(of: group) { waking[node, default: []].append(group) }
        }
        let members = view.nodes.filter(\.isMember).map(\.id)
        let replies = await withTaskGroup(of: (NodeID, [GroupObservation]?).self) { tasks in
            for node in members {
                let groups = waking[node] ?? []
                tasks.addTask { (node, await self.observe(node, waking: groups)) }
            }
            var replies: [(NodeID, [GroupObservation]?)] = []
            for await reply in tasks { replies.append(reply) }
            return replies.sorted { $0.0 < $1.0 }
        }
        var sight = Sight()
        for (node, groups) in replies {
            guard let groups else { continue }
            sight.alive.insert(node)
            // Two that both think they lead: the one whose configuration is further knows more.
            for seen in groups
            where (sight.groups[seen.group]?.configurationIndex ?? .zero) <= seen.configurationIndex
            {
                sight.groups[seen.group] = seen
            }
        }
        return sight
    }

    private func observe(_ node: NodeID, waking groups: [GroupID]) async -> [GroupObservation]? {
        if node == self.directory.own {
            await self.replicas.wake(groups)
            return await self.replicas.observations()
        }
        let reply = await self.router.ask(
            .observe(waking: groups), of: node, within: self.tuning.patience)
        if case .observed(let groups)? = reply { return groups }
        return nil
    }

    // MARK: Doing

    private func carryOut(_ step: MembershipController.Step) async {
        switch step {
        case .command(let command):
            self.log(ChangeWords(command, in: self.directory.view))
            // Lost or refused: the next round sees what is so.
            _ = try? await PartitionClient(self.router, in: self.world).submit(
                command, at: .system, as: .system(), within: .seconds(5))
        case .configure(let group, let leader, let index, let voters, let learners):
            if leader == self.directory.own {
                _ = await self.replicas.configure(
                    group, at: index, voters: voters, learners: learners)
            } else {
                _ = await self.router.ask(
                    .configure(group, at: index, voters: voters, learners: learners),
                    of: leader, within: self.tuning.patience)
            }
        case .transfer(let group, let leader, let heir):
            if leader == self.directory.own {
                _ = await self.replicas.transfer(group, to: heir)
            } else {
                _ = await self.router.ask(
                    .transfer(group, to: heir), of: leader, within: self.tuning.patience)
            }
        }
    }
}
