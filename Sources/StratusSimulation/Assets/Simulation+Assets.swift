import StratusAssets
import StratusCluster
import StratusCoding
import StratusConsensus
import StratusDoubles
import StratusModel
import StratusRecords
import StratusRows
import StratusStorage

// Lets nodes keep copies of what records name: tells the keepers what entries did, and checks what
// disks hold.
extension Simulation {
    func makeAssets(of node: SimulatedNode) -> AssetShells? {
        self.assets.map { AssetShells(ProcessLife(of: node, in: self, on: $0.executor)) }
    }

    func startAssets(of node: SimulatedNode) {
        guard let shells = node.assets else { return }
        for group in self.groups {
            guard let position = node.partitions[group]?.store.appliedPosition else { continue }
            shells.post(
                .opened(applied: position.index, milliseconds: position.time.milliseconds),
                of: group)
            shells.tell(position, of: group)
        }
        shells.start(workerCount: self.options.assetWorkerCount)
    }

    /// Clients still send.
    var isBusy: Bool { self.phase == .safety }

    func leads(_ node: SimulatedNode) -> [GroupID] {
        self.clientGroups.filter { node.host?.replica(of: $0)?.raft.role == .leader }
    }

    // MARK: What rows say

    func tellBodies(of group: GroupID, on node: SimulatedNode) {
        guard let shells = node.assets, let partition = node.partitions[group],
            !partition.store.isReplaying
        else { return }
        let changes = partition.store.takeBodyChanges()
        let position = partition.store.appliedPosition
        if !changes.isEmpty {
            self.assets?.heard(changes, of: group)
            shells.post(
                .applied(
                    changes, through: position.index, milliseconds: position.time.milliseconds),
                of: group)
        }
        shells.tell(position, of: group)
    }

    func tellDurable(_ group: GroupID, on node: SimulatedNode) {
        guard let shells = node.assets, let partition = node.partitions[group],
            !partition.store.isReplaying
        else { return }
        self.tellBodies(of: group, on: node)
        let position = partition.store.appliedPosition
        let durable = partition.store.durable
        shells.post(
            .durable(
                through: durable,
                milliseconds: position.index == durable ? position.time.milliseconds : 0),
            of: group)
    }

    func makeDurable(_ group: GroupID, on node: SimulatedNode) {
        guard let partition = node.partitions[group],
            node.host?.replica(of: group)?.isStateWell == true
        else { return }
        do throws(StoreError) { try partition.store.checkpoint() } catch {
            self.note("\(group) \(node.id) checkpoint failed: \(error)")
        }
        if !node.files.isCrashed { self.tellDurable(group, on: node) }
    }

    func catchUpOnBodies(of node: SimulatedNode) {
        for group in self.clientGroups {
            guard let raft = node.host?.replica(of: group)?.raft, raft.role == .leader,
                raft.awaitsCopies, raft.configuration.isJoint
            else { continue }
            node.assets?.post(.wantsHeld, of: group)
        }
    }

    func say(held through: LogIndex, of group: GroupID, on node: SimulatedNode) {
        self.enter(node, group) { host, now, effects in
            host.with(group, at: now, into: &effects) { replica, out in
                replica.handle(.copiesHeld(through: through), at: now, into: &out)
            }
        }
    }

    // MARK: What disks hold

    func opened(_ sound: [CopyName: UInt32], of group: GroupID, on node: SimulatedNode) {
        if let name = self.assets?.opened(sound, of: group, on: node.id) {
            self.invariants.report(
                "assets durable before said",
                "\(group): \(node.id) has acknowledged \(name), and has it no more")
        }
    }

    func removed(
        _ names: [CopyName], of group: GroupID, on node: SimulatedNode, isSure: Bool
    ) {
        guard let assets, let store = node.partitions[group]?.store else { return }
        for name in names {
            if assets.isNamed(
                name.body, in: group, applied: store.applied, durable: store.durable)
            {
                self.invariants.report(
                    "assets never removed",
                    "\(group): \(node.id) removes \(name), durable through \(store.durable)")
            }
            assets.removed(name, of: group, on: node.id, isSure: isSure)
        }
        assets.count(isSure ? "removals" : "removals that failed")
    }

    func report(lost body: BodyID, in group: GroupID) {
        self.invariants.report("assets held", "\(group): \(body) is called lost")
    }

    func report(asset text: String) { self.invariants.report("assets as sent", text) }

    /// Packs of one node are struck while it is down, and no others before its copies are back.
    func damageCopies(of node: SimulatedNode) {
        guard let assets, self.options.rotsPacks, self.phase == .safety, node.incarnation > 1,
            assets.isWhole, assets.draw(3) == 0
        else { return }
        let packs = node.files.allFiles.filter { $0.raw.hasPrefix("assets/") }
        guard !packs.isEmpty else { return }
        let group = self.clientGroups[assets.draw(self.clientGroups.count)]
        // What a sole voter has may be nowhere else, and nobody can bring it back then. While the
        // configuration is joint, the others may not have it yet.
        if let last = self.invariants.groups[group]?.configurations.last?.configuration,
            last.isJoint || last.voters.count < 2
        {
            return
        }
        let folder = PackDirectory(group, in: AssetShells.directory).path.raw + "/"
        let files = packs.filter { $0.raw.hasPrefix(folder) }
        let rotting = files.filter { $0.raw.hasSuffix(".pack") }
        guard !rotting.isEmpty else { return }
        assets.strike(node.id, group)
        if assets.draw(2) == 0 {
            for path in files { node.files.uproot(path) }
            // Nobody opens what is not there.
            _ = assets.opened([:], of: group, on: node.id)
            self.note("\(group) \(node.id) loses its packs")
        } else {
            let path = rotting[assets.draw(rotting.count)]
            let size = node.files.contents(of: path)?.count ?? 0
            guard size > 0 else { return }
            node.files.flip(bit: assets.draw(8), at: assets.draw(size), of: path)
            self.note("\(group) \(node.id) \(path) rots")
        }
    }

    /// The replica that has applied everything which any has, and the bodies that its rows name.
    private func named(in group: GroupID) -> [BodyManifest]? {
        let applied = self.invariants.groups[group]?.appliedCount ?? 0
        for node in self.nodes where node.isUp {
            guard let store = node.partitions[group]?.store, Int(store.applied.raw) == applied
            else { continue }
            return try? store.bodies(from: BodyID(0), limit: .max)
        }
        return nil
    }

    /// The audit of rows that an operator asks for, on a replica that has applied everything.
    private func checkRows(of group: GroupID) {
        let applied = self.invariants.groups[group]?.appliedCount ?? 0
        let stores = self.nodes.filter(\.isUp).compactMap { $0.partitions[group]?.store }
        guard let store = stores.first(where: { Int($0.applied.raw) == applied }) else { return }
        var place: AssetRowsPlace?
        repeat {
            let query = AssetRowsAsk { $0.after = place }.enveloped(as: RecordWorld.system)
            guard let body = try? store.answer(query).body,
                case .success(let page)? = try? AssetRowsAsk.result(decoding: body)
            else { return }
            for fault in page.faults {
                self.invariants.report(
                    "assets rows", "\(group): \(fault.asset) \(fault.kind.text)")
            }
            place = page.next
        } while place != nil
    }

    /// Every named body is whole on a majority of the voters that decide.
    func checkHeld() {
        guard let assets, self.invariants.violation == nil else { return }
        for group in self.clientGroups {
            guard let named = self.named(in: group),
                let last = self.invariants.groups[group]?.configurations.last
            else { continue }
            assets.compare(named, of: group)
            for body in named where !body.isLost {
                let holders = self.nodes.map(\.id).filter {
                    assets.holds(body, of: group, on: $0)
                }
                let voters = last.configuration.voters
                var isHeld = Configuration(voters: voters).isQuorum(holders)
                if last.configuration.isJoint, body.namedAt > last.index {
                    isHeld =
                        isHeld
                        && Configuration(voters: last.configuration.incoming).isQuorum(holders)
                }
                guard !isHeld else { continue }
                self.invariants.report(
                    "assets held",
                    "\(group): \(body.body), named at \(body.namedAt), is on \(holders) alone, "
                        + "the voters are \(last.configuration)")
            }
        }
    }

    /// What keeps the copies from being those that rows name.
    func findAssetsProblem() -> String? {
        guard let assets else { return nil }
        self.checkHeld()
        let since = assets.quietSince ?? self.now
        assets.quietSince = since
        guard self.now >= since + 8_000_000_000 else { return "time has not passed" }
        for group in self.clientGroups {
            self.checkRows(of: group)
            guard let named = self.named(in: group),
                let leader = self.nodes.compactMap({ $0.host?.replica(of: group) }).first(where: {
                    $0.raft.role == .leader
                })
            else { return "\(group) has no leader" }
            for node in self.nodes
            where node.isUp && leader.raft.configuration.voters.contains(node.id) {
                if let problem = assets.problem(named, of: group, on: node.id) { return problem }
            }
        }
        return nil
    }
}
