import StratusCluster
import StratusConsensus
import StratusModel
import StratusRecords
import StratusStorage

// Clusters with subscriptions, and what they must have told when all is well again.
extension Simulation {
    /// What leaders of the group have applied, and may have answered.
    func appliedByLeaders(of group: GroupID) -> LogIndex {
        self.nodes.compactMap { $0.host?.replica(of: group) }.filter { $0.raft.role == .leader }
            .map(\.state.applied).max() ?? .zero
    }

    func makePush(of node: SimulatedNode) -> PushShells? {
        self.push.map { PushShells(ProcessLife(of: node, in: self, on: $0.executor), $0) }
    }

    /// No client begins anything, and nothing is lost any more.
    var isQuiet: Bool { self.phase != .safety }

    /// Whether nodes still change anything once faults have ended: long enough to see polls woken.
    /// Without an end a node with a slow disk would stay behind, and so would the check.
    var changesGoOn: Bool {
        guard let push else { return false }
        if let since = push.quietSince { return self.now < since + Self.lastChanges }
        let faultsEnded =
            self.convergenceDeadline - self.options.livenessTime.clampedNanoseconds
        return self.now < faultsEnded + 10_000_000_000
    }

    private static let lastChanges: Int64 = 4_000_000_000

    func report(push text: String) { self.invariants.report("push", text) }

    /// In a quiet cluster every poll that waits for a database hears of its changes from the node
    /// that they came through, long before it would look by itself.
    func expectWaking(by database: DatabaseID) {
        guard let push, let since = push.quietSince, self.now >= since + 3_000_000_000 else {
            return
        }
        let now = self.now
        for node in self.nodes {
            guard let shells = node.push, !shells.life.isGone else { continue }
            for token in shells.polls.waiting(for: database) {
                let life = shells.life
                life.spawn {
                    await life.sleep(for: PushPolls.wakingTime)
                    guard !life.isGone,
                        shells.polls.sleeps(token, through: database, since: now)
                    else { return }
                    life.simulation.report(
                        push: "poll \(token[1]) was not woken by a change of \(database)")
                }
            }
        }
    }

    /// What somebody waits for, at the end.
    func findPushProblem() -> String? {
        guard let push else { return nil }
        guard let since = push.quietSince else {
            push.quietSince = self.now
            push.makeMembers(at: self.now)
            for provider in push.providers.indices {
                // One stays dead for a while: nobody else may notice.
                push.providers[provider].downUntil = provider == 0 ? .max : 0
            }
            return "time has not passed"
        }
        guard self.now >= since + Self.lastChanges else { return "time has not passed" }
        guard let round = push.lastRoundAt else {
            push.lastRoundAt = self.now
            return "the last changes are not made"
        }
        let isMade = self.nodes.allSatisfy { !$0.isUp || push.lastRounds.contains($0.id) }
        guard isMade else { return "the last changes are not made" }
        guard push.providers[0].downUntil == 0 else {
            if let problem = push.missing(isIn: { $0 == 1 || $0 == 2 }) {
                if self.now > round + 25_000_000_000 {
                    self.report(push: "beside a dead provider, \(problem)")
                }
                return problem
            }
            push.providers[0].downUntil = 0
            return "the last provider is back only now"
        }
        if let problem = push.missing(isIn: { _ in true }) { return problem }
        let isOver = push.calmChangeCount >= self.upNodes.count * PushWorld.calmChangesOfEach
        push.calmSince = push.calmSince ?? self.now
        return isOver ? nil : "the last polls have not been woken"
    }

    var upNodes: [NodeID] { self.nodes.filter(\.isUp).map(\.id) }
}
