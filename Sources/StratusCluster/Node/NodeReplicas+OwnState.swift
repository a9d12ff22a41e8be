import StratusConsensus
package import StratusModel
import Synchronization

/// C-16, C-42: what keeps a node that runs from leading anything.
extension NodeReplicas {
    package struct OwnState: Sendable, Equatable {
        /// How far the wall clock is ahead of the median of all that are heard.
        package var clockLeadMilliseconds: Int64 = 0
        package var isClockOff = false
        /// The log's writes wait for the disk.
        package var isStalled = false
        /// Peers whose heartbeats arrive, sorted.
        package var heard: [NodeID] = []
        /// When each peer was last heard; none from whom nothing came since the start.
        package var lastHeard: [NodeID: MonotonicTime] = [:]
    }

    /// The node's state as of the last heartbeat.
    package nonisolated var ownState: OwnState { self.watched.withLock { $0 } }

    package nonisolated func hears(_ node: NodeID) -> Bool {
        self.watched.withLock { $0.heard.contains(node) }
    }

    func lookAtOwnState() {
        let liveness = self.host.liveness
        let state = OwnState(
            clockLeadMilliseconds: liveness.clockLeadMilliseconds, isClockOff: liveness.isClockOff,
            isStalled: liveness.isStalled, heard: liveness.heardPeers,
            lastHeard: Dictionary(uniqueKeysWithValues: liveness.lastHeard.map { ($0.node, $0.at) })
        )
        let last = self.watched.withLock { watched in
            defer { watched = state }
            return watched
        }
        if state.isClockOff != last.isClockOff {
            self.setup.events.clockChanged(state.isClockOff, state.clockLeadMilliseconds)
        }
        if state.isStalled != last.isStalled { self.setup.events.stallChanged(state.isStalled) }
    }
}
