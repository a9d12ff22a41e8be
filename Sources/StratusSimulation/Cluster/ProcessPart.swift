import StratusModel

/// What runs in a node's process beside its replicas, in tasks of its own: the shells of the
/// membership, of files, of pushes. It begins with the process and ends with it.
protocol ProcessPart: AnyObject {
    var life: ProcessLife { get }

    /// Nothing goes on behind this.
    func end()

    /// Another node has answered.
    func hear(_ response: PeerResponse, from: NodeID)
}
