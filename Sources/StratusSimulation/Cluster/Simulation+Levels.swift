import StratusCluster
import StratusDoubles
import StratusModel

// Exchanges nodes for those of another build, and raises the cluster to the level of the newest.
extension Simulation {
    /// The first build of every node, and when which is exchanged.
    func planLevels() {
        guard let plan = self.options.levels else { return }
        for node in self.nodes { node.build = .build }
        let safety = self.options.safetyTime.clampedNanoseconds
        var builds: [FeatureLevel] = [.next]
        if plan.goesBack { builds = [.next, .build, .next] }
        let pause = plan.span / Int64(builds.count * self.nodes.count)
        var place = plan.begin
        for build in builds {
            for node in self.nodes {
                self.queue.add(.level(.exchange(node.id, for: build)), at: safety / 1_000 * place)
                place += pause
            }
        }
        self.queue.add(.level(.raise), at: safety / 1_000 * (place + pause))
    }

    func handle(_ event: LevelEvent) {
        switch event {
        case .exchange(let id, let build): self.exchange(id, for: build)
        case .finishExchange(let id): self.finishExchange(id)
        case .raise: self.raiseLevel()
        case .hear(let id): self.hearLevel(id)
        }
    }

    /// The node is to be of another build from here on, whatever was wanted before.
    func exchange(_ id: NodeID, for build: FeatureLevel) {
        self.node(id).wantedBuild = build
        self.report.levelCounts["exchanged", default: 0] += 1
        self.finishExchange(id)
    }

    /// Ends the process; the next one on this data is of the wanted build. A process that hangs
    /// must continue first.
    func finishExchange(_ id: NodeID) {
        let node = self.node(id)
        guard node.pausedUntil <= self.now else {
            return self.queue.add(.level(.finishExchange(id)), at: node.pausedUntil)
        }
        guard let build = node.wantedBuild, build != node.build else { return }
        node.build = build
        self.note("\(id) is to be of level \(build)")
        // Where it is down it comes back as the new build.
        guard node.isUp else { return }
        self.crash(node, losesPower: false, backAfter: 50_000_000)
    }

    /// Raises the level once every member has announced the next one: the system group decides it, and
    /// nodes hear of it one by one.
    func raiseLevel() {
        guard let plan = self.options.levels else { return }
        guard self.nodes.allSatisfy({ $0.build >= .next }) else {
            // A process that hangs is exchanged when it goes on.
            return self.queue.add(.level(.raise), at: self.now + 200_000_000)
        }
        self.note("the cluster is raised to level \(FeatureLevel.next)")
        self.report.levelCounts["raised", default: 0] += 1
        for node in self.nodes {
            // As its number says: nothing else is drawn from another place for it.
            let lag =
                plan.lagMilliseconds * 1_000_000 / Int64(self.nodes.count) * Int64(node.id.raw)
            self.queue.add(.level(.hear(node.id)), at: self.now + max(0, lag))
        }
    }

    /// An upgrade that a pause put off must still finish.
    func findLevelProblem() -> String? {
        guard self.options.levels != nil, self.report.levelCounts["raised"] == nil else {
            return nil
        }
        return "the cluster is not raised yet"
    }

    func hearLevel(_ id: NodeID) { self.node(id).level.rise(to: .next) }

    /// The level at which the gateway on a node writes.
    func level(for command: RegisterCommand, on node: SimulatedNode) -> FeatureLevel {
        if self.bugs.contains(.newKindUngated) { return node.build }
        return min(node.build, node.level.now)
    }
}
