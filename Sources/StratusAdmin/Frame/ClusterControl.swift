package import StratusCluster
package import StratusModel
package import StratusPlacement

/// The cluster of a node as administrators see it.
package protocol ClusterControl: Sendable {
    var node: NodeID { get }
    /// The system partition's view, linearizable; nil before the cluster is formed.
    func view(within patience: Duration) async throws(NodeControlFailure) -> ClusterView?
    /// The view as this node last knew it; nil before it was ever told.
    var lastView: ClusterView? { get }
    /// The leader of a group, as far as this node knows.
    func leader(of group: GroupID) -> NodeID?
    /// Asks the system partition for a change. Returns once this node follows the decision.
    func change(_ command: SystemCommand) async throws(NodeControlFailure) -> SystemOutcome
    /// Lets one more node in, once.
    /// - Returns: the token in clear, which nobody can read again, and when it ends.
    func makeJoinToken(validFor: Duration) async throws(NodeControlFailure) -> (
        token: String, expiresMilliseconds: Int64
    )
    /// The answer of another node, or of this one; nil if it does not answer.
    func ask(_ question: NodeQuestion, of node: NodeID) async -> NodeReply?
    var wallMilliseconds: Int64 { get }
    /// When this node last heard another one, or itself, by its own wall clock; nil: not since it
    /// was started.
    func lastHeardMilliseconds(_ node: NodeID) -> Int64?
}

extension ClusterControl {
    package func view() async throws(NodeControlFailure) -> ClusterView? {
        try await self.view(within: .seconds(5))
    }
}
