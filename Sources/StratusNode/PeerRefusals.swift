import StratusModel
import StratusRuntime
import Synchronization

/// Which peers refuse this node because its data is not what they know: while one does, it is not ready.
final class PeerRefusals: Sendable {
    private let health: Health
    private let refusing = Mutex<[NodeID: String]>([:])

    init(_ health: Health) { self.health = health }

    func refused(by node: NodeID, _ refusal: PeerRefusal) {
        guard refusal.reason == .otherData else { return }
        self.change { $0[node] = refusal.text }
    }

    /// It welcomed us.
    func heard(by node: NodeID) { self.change { $0[node] = nil } }

    private func change(_ body: (inout [NodeID: String]) -> Void) {
        self.refusing.withLock { refusing in
            body(&refusing)
            if let first = refusing.min(by: { $0.key < $1.key }) {
                self.health.raise(
                    "data", "refused by \(refusing.count) of its peers: \(first.value)")
            } else {
                self.health.clear("data")
            }
        }
    }
}
