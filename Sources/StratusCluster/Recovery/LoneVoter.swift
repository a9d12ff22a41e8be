import StratusCoding
import StratusConsensus
package import StratusModel
package import StratusStorage

/// Lets a node that is the only one of its cluster go on after its log has lost entries.
///
/// Nobody else was promised anything, and nobody else has what is lost, so the node goes on from its
/// rows and what is sound in its log behind them. A group that may lack entries continues as after
/// `stratus cluster recover`: its first command makes tokens and tags of lost data void.
///
/// A process may end anywhere: until everything is on the disk, the next start finds the same loss.
package struct LoneVoter {
    /// A group that goes on, and the last entry that it has from before.
    package struct Line: Sendable, Equatable {
        package var group: GroupID
        package var through: LogIndex
    }

    private let log: SegmentedLog
    private let sole: SoleVoter
    private let first: FirstCommand

    /// - Parameter log: nobody else writes to it yet.
    package init(_ node: NodeID, log: SegmentedLog, in world: any World, first: FirstCommand) {
        self.log = log
        self.sole = SoleVoter(node: node, log: log, world: world)
        self.first = first
    }

    /// - Parameters:
    ///   - groups: all that the node keeps.
    ///   - initial: the first voters of a group.
    /// - Returns: the groups that may lack entries and go on; empty if nothing is lost.
    package func goOn(
        _ groups: [GroupID], initial: (GroupID) -> Configuration?
    ) throws(Salvage.Refusal) -> [Line] {
        let isUnknown = self.log.hasUnknownLoss
        let named = self.log.damage.entries.map(\.group)
        var replicas: [(group: GroupID, replica: Salvage.Replica)] = []
        for group in groups where isUnknown || named.contains(group) {
            guard let replica = try self.replica(of: group, initial(group), isUnknown: isUnknown)
            else { continue }
            replicas.append((group, replica))
        }
        if replicas.isEmpty, !isUnknown { return [] }
        var begun: [GroupID] = []
        for (group, replica) in replicas where self.sole.submit(group, after: replica, self.first) {
            begun.append(group)
        }
        try self.sole.flush()
        for group in begun { try self.sole.apply(group, self.first) }
        self.log.settleLoss()
        try self.sole.flush()
        return replicas.map { Line(group: $0.group, through: $0.replica.index) }
    }

    /// Brings the rows as far as the log is sound, and begins the log anew behind them.
    ///
    /// - Returns: nil for a group that lacks nothing.
    private func replica(of group: GroupID, _ initial: Configuration?, isUnknown: Bool)
        throws(Salvage.Refusal) -> Salvage.Replica?
    {
        do {
            let rows = try self.first.open(group)
            let start = self.log.start(of: group).index
            guard rows.applied >= start else {
                // There is nothing to go on from: the rows are lost too.
                throw Salvage.Refusal.unusable(
                    "\(group): the log has lost entries, and the rows that hold the others are "
                        + "gone. Restore the data directory from a backup")
            }
            let loss = self.log.loss(of: group, from: rows.applied.next)
            if loss == nil, !isUnknown { return nil }
            let end = loss?.first.previous ?? self.log.last(of: group).index
            try self.sole.bring(rows, of: group, to: end)
            let position = rows.appliedPosition
            // Where no row was written there may be no file yet, and nothing would say how far.
            try rows.checkpoint()
            try rows.close()
            try self.requireAlone(group, position, initial)
            let lastTerm = self.log.last(of: group).term
            self.log.restart(
                group,
                after: SnapshotIdentity(
                    index: position.index, term: position.term, time: position.time,
                    configuration: Configuration(voters: []), digest: position.digest))
            let heard = self.log.hardState(of: group)?.term ?? .zero
            return Salvage.Replica(
                configuration: Configuration(voters: [self.sole.node]), index: position.index,
                lastTerm: position.term, term: max(heard, max(lastTerm, position.term)),
                time: position.time)
        } catch let refusal as Salvage.Refusal {
            throw refusal
        } catch let error as LogError {
            throw .unusable("\(group): \(error.text)")
        } catch { throw .unusable("\(group): \(error)") }
    }

    private func requireAlone(
        _ group: GroupID, _ position: AppliedPosition, _ initial: Configuration?
    ) throws {
        let known =
            position.configuration.isEmpty
            ? initial : try Configuration(decoding: position.configuration)
        let own = self.sole.node
        guard let known, !known.voters.isEmpty, known.allVoters != [own] else { return }
        throw Salvage.Refusal.unusable(
            "\(group): the log has lost entries, and other nodes have a vote there: remove this "
                + "node with 'stratusctl node remove' and let it join anew")
    }
}
