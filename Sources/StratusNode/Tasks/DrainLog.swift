import StratusModel
import StratusPlacement
import StratusRuntime
import Synchronization

/// Writes down what ``DrainProgress`` says. Every node does, so that it stands in the log that
/// somebody looks into.
final class DrainLog: Sendable {
    private let log: Log
    private let world: any World
    private let progress = Mutex(DrainProgress())

    init(_ log: Log, in world: any World) {
        self.log = log
        self.world = world
    }

    func look(_ view: ClusterView) {
        let words = self.progress.withLock { $0.look(view, at: self.world.now) }
        for word in words {
            let node = LogValue.text(word.node)
            switch word.what {
            case .begun, .underWay:
                self.log.info(
                    "a node is being drained",
                    ["node": node, "replicasLeft": .count(word.left)])
            case .done: self.log.info("a node is drained", ["node": node])
            case .undone: self.log.info("a node is no longer drained", ["node": node])
            case .removed: self.log.info("a node was removed from the cluster", ["node": node])
            }
        }
    }
}
