import StratusConsensus
package import StratusModel
package import StratusPlacement

/// The future of each partition of a cluster that has lost nodes for good, as one survivor can tell
/// from its own disk and its view. Pure.
///
/// Every survivor makes one, from the same lists. If they cannot know of each other's replicas,
/// `keep` decides, so that no partition continues in two places.
package struct RecoveryPlan: Sendable, Equatable {
    package enum Fate: Sendable, Equatable {
        /// A majority of its replicas is left: it needs nothing.
        case lives
        /// It goes on from the replica of this node alone.
        case here
        /// It goes on from another node's.
        case there(NodeID)
        /// No replica of it is left, and no node is said to begin it anew.
        case gone
        /// Several replicas are left, and none is said to count.
        case undecided([NodeID])
    }

    package struct Line: Sendable, Equatable {
        package var group: GroupID
        package var fate: Fate
        /// Goes on, and had no replica left: what it held is lost whole.
        package var beginsAnew: Bool
    }

    /// In the order of the groups, the system partition first.
    package let lines: [Line]

    /// - Parameters:
    ///   - lost: the nodes that never come back.
    ///   - keep: the node that continues partitions which others hold as well, or nil.
    ///   - configurations: the latest on disk of each group whose replica on this node can be used.
    package init(
        for view: ClusterView, at own: NodeID, lost: [NodeID], keep: NodeID?,
        configurations: [GroupID: Configuration]
    ) {
        self.lines = view.groups.map { group in
            let held = configurations[group]
            var known = Configuration(voters: view.replicas(of: group))
            if let held, held.isVoter(own) { known = held }
            let left = known.allVoters.filter {
                !lost.contains($0) && ($0 != own || held != nil)
            }
            let fate: Fate
            if known.isQuorum(left) {
                fate = .lives
            } else if left.count > 1 {
                fate = keep.map { left.contains($0) } == true ? .at(keep, own) : .undecided(left)
            } else {
                fate = .at(left.first ?? keep, own)
            }
            return Line(group: group, fate: fate, beginsAnew: left.isEmpty && fate != .gone)
        }
    }

    package func groups(_ isMeant: (Fate) -> Bool) -> [GroupID] {
        self.lines.filter { isMeant($0.fate) }.map(\.group)
    }

    package var here: [GroupID] { self.groups { $0 == .here } }
    package var gone: [GroupID] { self.groups { $0 == .gone } }
    package var begunAnew: [GroupID] { self.lines.filter(\.beginsAnew).map(\.group) }
    package var undecided: [GroupID] {
        self.groups { if case .undecided = $0 { true } else { false } }
    }
    package var elsewhere: [GroupID] {
        self.groups { if case .there = $0 { true } else { false } }
    }
}

extension RecoveryPlan.Fate {
    fileprivate static func at(_ node: NodeID?, _ own: NodeID) -> Self {
        guard let node else { return .gone }
        return node == own ? .here : .there(node)
    }
}
