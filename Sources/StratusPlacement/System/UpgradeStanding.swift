package import StratusModel

/// The progress of a cluster's upgrade: the levels that its members have announced, and the level
/// that the cluster may write.
package struct UpgradeStanding: Sendable, Equatable {
    /// The level that the cluster may write now.
    package let level: FeatureLevel
    package let members: [ClusterNode]

    package init(_ view: ClusterView) {
        self.level = view.level
        self.members = view.nodes.filter(\.isMember)
    }

    /// The highest level that a member has announced.
    package var newest: FeatureLevel {
        FeatureLevel(self.members.map(\.featureLevel).max() ?? self.level.rawValue)
    }

    /// Members that run an older build than the newest one.
    package var lagging: [ClusterNode] {
        self.members.filter { FeatureLevel($0.featureLevel) < self.newest }
    }

    package var laggingNames: String {
        self.lagging.map { "'\($0.name)'" }.joined(separator: ", ")
    }

    /// Every member reads more than the cluster writes.
    package var canFinalise: Bool { self.lagging.isEmpty && self.newest > self.level }
    package var isFinalised: Bool { self.lagging.isEmpty && self.newest <= self.level }
}
