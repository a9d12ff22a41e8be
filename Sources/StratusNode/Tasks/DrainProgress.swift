package import StratusModel
package import StratusPlacement

/// The messages about nodes that are being emptied: that it begins, now and then how far it is, and
/// that it is done; and that a node left the cluster.
///
/// A pure decision: it is given each view of the cluster that the node follows.
package struct DrainProgress: Sendable {
    package struct Word: Sendable, Equatable {
        package enum What: Sendable, Equatable { case begun, underWay, done, undone, removed }

        package var what: What
        package var node: String
        /// The replicas that it still holds.
        package var left: Int
    }

    /// Between two words on the way.
    package static let interval = Duration.seconds(10)

    private struct Drain {
        var left: Int
        var saidAt: MonotonicTime
    }

    private var drains: [NodeID: Drain] = [:]
    /// Nil before the first view.
    private var members: Set<NodeID>?

    package init() {}

    package mutating func look(_ view: ClusterView, at now: MonotonicTime) -> [Word] {
        var words: [Word] = []
        for node in view.nodes {
            func say(_ what: Word.What, _ left: Int = 0) {
                words.append(Word(what: what, node: node.name, left: left))
            }
            let known = self.drains[node.id]
            guard node.state == .draining else {
                self.drains[node.id] = nil
                if !node.isMember {
                    if self.members?.contains(node.id) == true { say(.removed) }
                } else if known != nil {
                    say(.undone)
                }
                continue
            }
            let left =
                view.table.partitions(on: node.id).count
                + (view.systemReplicas.contains(node.id) ? 1 : 0)
            var drain = known ?? Drain(left: left, saidAt: now)
            if known == nil {
                if left > 0 { say(.begun, left) }
            } else if left == 0, drain.left > 0 {
                say(.done)
            } else if left != drain.left, now - drain.saidAt >= Self.interval {
                say(.underWay, left)
                drain.saidAt = now
            }
            drain.left = left
            self.drains[node.id] = drain
        }
        self.members = Set(view.nodes.filter(\.isMember).map(\.id))
        return words
    }
}
