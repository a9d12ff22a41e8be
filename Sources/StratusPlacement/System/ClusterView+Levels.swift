package import StratusModel

extension ClusterView {
    /// What every member can read, and may therefore be written.
    package var level: FeatureLevel { FeatureLevel(self.settings.featureLevel) }

    /// Members that have announced less than `level`: while there is one, the cluster is not raised to it.
    package func lagging(behind level: FeatureLevel) -> [ClusterNode] {
        self.nodes.filter { $0.isMember && FeatureLevel($0.featureLevel) < level }
    }
}
