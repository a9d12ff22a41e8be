package import StratusModel
package import StratusPlacement

/// A node's replicas as the end of a request's path. ``NodeReplicas`` serves real nodes; a
/// simulator has another, over the same ``ReplicaHost``.
package protocol LocalReplicas: Sendable {
    var node: NodeID { get }
    /// The leader of a group, as far as this node knows.
    func leader(of group: GroupID) -> NodeID?
    func ask(_ body: PeerRequest.Body, of group: GroupID, deadline: MonotonicTime) async
        -> PeerResponse.Answer
    /// Whether another node's heartbeats arrive: then it is busy, not lost, if its answer takes
    /// long.
    func hears(_ node: NodeID) -> Bool
}

extension LocalReplicas {
    package func hears(_ node: NodeID) -> Bool { false }
}

/// A node's replicas as the cluster's membership needs them: see ``ClusterFollower`` and
/// ``MembershipKeeper``.
package protocol MemberReplicas: LocalReplicas {
    /// Answers a read from what is applied here, which may be old.
    func peek(_ query: Query, in group: GroupID) async -> QueryAnswer?
    /// The groups led here as the membership sees them, in the order of their numbers.
    func observations() async -> [GroupObservation]
    /// Opens replicas that nobody has asked for, so that their groups get a leader.
    func wake(_ groups: [GroupID]) async
    /// Changes the configuration of a group led here, if the latest one still stands at `index`.
    /// - Returns: whether it was proposed.
    func configure(
        _ group: GroupID, at index: LogIndex, voters: [NodeID], learners: [NodeID]
    ) async -> Bool
    /// Hands the leadership of a group over, if it is led here.
    func transfer(_ group: GroupID, to node: NodeID) async -> Bool
    /// Sets the nodes to send heartbeats to, and whose silence to notice.
    func setPeers(_ nodes: [NodeID]) async
    /// Stops the replicas that are not to be kept, and forgets their log.
    /// - Returns: groups to discard.
    func retire(keeping keeps: @Sendable (GroupID) -> Bool) async -> [GroupID]
    /// Removes the files of retired groups, once nothing of their log can come back.
    func discard(_ groups: [GroupID]) async throws(StoreError)
    /// What is left to do here about what was erased.
    func nodeRemains() async -> NodeRemains
}

extension NodeReplicas: MemberReplicas {}
