import StratusCluster
import StratusModel
import StratusStorage

/// What a node does after an erasure, here without one: files are made anew, and the log lets go of
/// all that it has. Nobody else may notice.
extension Simulation {
    func rebuildNowAndThen(_ group: GroupID, on node: SimulatedNode) {
        guard self.options.rebuildsFiles, node.isUp, self.rebuildRandom.next() % 32 == 0 else {
            return
        }
        self.enter(node, group) { host, now, effects in
            host.with(group, at: now, into: &effects) { replica, out in
                replica.rebuild(at: now, into: &out)
            }
        }
    }

    func expireNowAndThen(_ node: SimulatedNode) {
        guard self.options.rebuildsFiles, node.isUp, let log = node.log else { return }
        if !log.hasExpired {
            log.advanceExpiry()
        } else if self.rebuildRandom.next() % 32 == 0 {
            log.expire()
        }
    }
}
