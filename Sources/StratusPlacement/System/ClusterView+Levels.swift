package import StratusModel

extension ClusterView {
    /// The level that every member can read, and that may therefore be written.
    package var level: FeatureLevel { FeatureLevel(self.settings.featureLevel) }

    /// Members that have announced less than `level`: while there are any, the cluster is not
    /// raised to it.
    package func lagging(behind level: FeatureLevel) -> [ClusterNode] {
        self.nodes.filter { $0.isMember && FeatureLevel($0.featureLevel) < level }
    }
}
