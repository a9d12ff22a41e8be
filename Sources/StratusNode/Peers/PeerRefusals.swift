import StratusModel
import StratusRuntime
import Synchronization

/// The peers that refuse this node, for one of three reasons: its data is not what they know, its
/// build is older than what the cluster writes, or it is no longer a member. Meanwhile the node is
/// not ready. It also lists the peers that this node refuses for their data.
final class PeerRefusals: Sendable {
    private struct State {
        var data: [NodeID: String] = [:]
        var strange: Set<NodeID> = []
        /// Why others do not take this node for one of their cluster.
        var foreign: [NodeID: String] = [:]
        /// By their names.
        var turnedAway: [String: String] = [:]
    }

    private let health: Health
    /// Peers there are.
    private let count: @Sendable () -> Int
    private let state = Mutex(State())

    init(_ health: Health, count: @escaping @Sendable () -> Int) {
        self.health = health
        self.count = count
    }

    func refused(by node: NodeID, _ refusal: PeerRefusal) {
        switch refusal.reason {
        case .otherData, .olderCopy, .noCommonProtocol:
            self.change { $0.data[node] = refusal.text }
        case .unknownNode: self.change { $0.strange.insert(node) }
        case .otherCluster, .otherNode, .notAdmitted:
            self.change { $0.foreign[node] = refusal.text }
        case .fenced: break
        }
    }

    /// Notes this node's answer to a member's hello.
    func greeted(_ name: String, _ refusal: PeerRefusal?) {
        self.state.withLock { state in
            guard state.turnedAway[name] != refusal?.text else { return }
            state.turnedAway[name] = refusal?.text
            self.warn(of: state.turnedAway)
        }
    }

    /// Forgets nodes that are no longer members.
    func follow(_ members: [String]) {
        self.state.withLock { state in
            let left = state.turnedAway.filter { members.contains($0.key) }
            guard left.count < state.turnedAway.count else { return }
            state.turnedAway = left
            self.warn(of: left)
        }
    }

    private func warn(of turnedAway: [String: String]) {
        if let first = turnedAway.min(by: { $0.key < $1.key }) {
            self.health.warn(
                "peers", "refuses \(turnedAway.count) of its peers: \(first.value)")
        } else {
            self.health.dropWarning("peers")
        }
    }

    /// It welcomed us.
    func heard(by node: NodeID) {
        self.change {
            $0.data[node] = nil
            $0.strange.remove(node)
            $0.foreign[node] = nil
        }
    }

    private func change(_ body: (inout State) -> Void) {
        self.state.withLock { state in
            body(&state)
            if let first = state.data.min(by: { $0.key < $1.key }) {
                self.health.raise(
                    "data", "refused by \(state.data.count) of its peers: \(first.value)")
            } else {
                self.health.clear("data")
            }
            if let first = state.foreign.min(by: { $0.key < $1.key }) {
                self.health.warn(
                    "refused", "refused by \(state.foreign.count) of its peers: \(first.value)")
            } else {
                self.health.dropWarning("refused")
            }
            // One peer that does not know this node yet may be a moment behind. Most of them
            // together know better than this node does.
            if state.strange.count * 2 > self.count() {
                self.health.raise(
                    "member",
                    "\(state.strange.count) of its peers say that this node is not a member: "
                        + "if it was removed, stop it")
            } else {
                self.health.clear("member")
            }
        }
    }
}
