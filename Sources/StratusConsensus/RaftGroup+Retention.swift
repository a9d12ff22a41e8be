package import StratusModel

// What the followers of a leader still need of its log: thesis §5.1.3 leaves it to the
// implementation how much is kept.
extension RaftGroup {
    /// A follower that is, or will be, sent entries from the log.
    package struct FollowerNeed: Sendable, Equatable {
        package let node: NodeID
        /// The follower has everything through here, and needs every entry behind it.
        package let after: LogIndex

        package init(node: NodeID, after: LogIndex) {
            self.node = node
            self.after = after
        }
    }

    /// Excludes a follower that is sent a snapshot: the entries it needs begin behind the snapshot,
    /// which the shell knows. Also excludes one whose next entry the log has already dropped: it
    /// gets a snapshot when it is next heard.
    package var followerNeeds: [FollowerNeed] {
        guard self.role == .leader, !self.bugs.contains(.releaseForgetsFollowers) else { return [] }
        return self.peers.compactMap { peer in
            guard peer.mode != .snapshot else { return nil }
            // Of one that has not answered in this reign nothing is known: what was here stays.
            let after =
                !peer.isHeard
                ? peer.assumed : peer.match > .zero ? peer.match : peer.next.previous
            guard after >= self.log.base.index else { return nil }
            return FollowerNeed(node: peer.node, after: after)
        }
    }

    /// Whether a follower comes closer: it is reachable, and not long ago it made entries durable
    /// or took part of a snapshot. Nobody waits for one that does not.
    package func isMoving(_ node: NodeID, at now: MonotonicTime) -> Bool {
        guard self.role == .leader, let peer = self.peers.first(where: { $0.node == node }),
            peer.isReachable, let movedAt = peer.movedAt
        else { return false }
        return now < movedAt + self.tuning.followerPatience
    }
}
