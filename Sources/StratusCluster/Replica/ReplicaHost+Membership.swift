import StratusConsensus
package import StratusModel
package import StratusPlacement
import StratusStorage

/// Carries out the cluster's membership changes on the replicas of a node.
extension ReplicaHost {
    /// The distance from the committed end at which a member's log counts as caught up: a round
    /// trip's worth.
    private static let lagMax: UInt64 = 256

    /// The groups led here as the membership sees them, in the order of their numbers.
    package func observations() -> [GroupObservation] {
        self.allGroups.compactMap { self.observation(of: $0) }
    }

    private func observation(of group: GroupID) -> GroupObservation? {
        guard let replica = self.replica(of: group), replica.raft.role == .leader else {
            return nil
        }
        let raft = replica.raft
        let index = raft.log.configurationIndex
        var caughtUp = [raft.node]
        for peer in raft.peers
        where peer.mode == .streaming && peer.match >= index && !peer.lacksRows {
            if peer.match.raw + Self.lagMax >= raft.commit.raw { caughtUp.append(peer.node) }
        }
        return GroupObservation(
            group: group, leader: raft.node, configuration: raft.configuration,
            configurationIndex: index, isCommitted: index <= raft.commit,
            caughtUp: caughtUp.sorted(),
            isTroubled: replica.problem != nil || raft.lacksState
                || raft.peers.contains(where: \.lacksRows))
    }

    /// Changes the configuration of a group led here, if the latest one still stands at `index`.
    /// - Returns: whether it was proposed. Whether it was committed shows in the next observation.
    package func configure(
        _ group: GroupID, at index: LogIndex, voters: [NodeID], learners: [NodeID],
        as token: Replica.Request, wallMilliseconds: Int64, bugs: PlantedBugs = PlantedBugs(),
        at now: MonotonicTime, into effects: inout [Effect]
    ) -> Bool {
        guard let replica = self.replica(of: group), replica.raft.role == .leader,
            replica.raft.log.configurationIndex == index || bugs.contains(.lateOrderCarriedOut)
        else { return false }
        self.with(group, at: now, into: &effects) { replica, out in
            replica.changeMembers(
                voters: voters, learners: learners, as: token,
                wallMilliseconds: wallMilliseconds, at: now, into: &out)
        }
        return replica.raft.log.configurationIndex > index
    }

    /// Hands the leadership of a group over, if it is led here.
    package func transfer(
        _ group: GroupID, to node: NodeID, at now: MonotonicTime, into effects: inout [Effect]
    ) -> Bool {
        guard self.replica(of: group)?.raft.role == .leader else { return false }
        self.with(group, at: now, into: &effects) { replica, out in
            replica.handle(.transferRequested(to: node), at: now, into: &out)
        }
        return true
    }

    /// Answers a read from what is applied here, which may be old.
    package func peek(_ query: Query, in group: GroupID) -> QueryAnswer? {
        guard let replica = self.replica(of: group), replica.isStateWell, !replica.raft.lacksState
        else { return nil }
        return try? replica.state.answer(query)
    }
}
