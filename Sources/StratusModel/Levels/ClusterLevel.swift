/// Answers what the cluster's feature level is now.
///
/// Gateways, leaders, replicas and links get one of these passed in. They ask it before they write
/// anything that not every level allows. The answer may be a little old. Levels only rise, so an
/// old answer is only too careful.
package struct ClusterLevel: Sendable {
    private let read: @Sendable () -> FeatureLevel

    package init(_ read: @escaping @Sendable () -> FeatureLevel) { self.read = read }

    package var now: FeatureLevel { self.read() }

    /// Whether something that needs `level` may be written now.
    package func allows(_ level: FeatureLevel) -> Bool { level <= self.now }

    /// The level of a node that runs alone: that of its build, since no other node has to read what
    /// it writes.
    package static let build = ClusterLevel.fixed(.build)

    package static func fixed(_ level: FeatureLevel) -> ClusterLevel { ClusterLevel { level } }
}
