import StratusAssets
import StratusCluster
import StratusConsensus
import StratusModel

// What reaches a node's process.
extension Simulation {
    func handle(_ event: ProcessEvent, at id: NodeID, life: UInt64) {
        let node = self.node(id)
        // What the network carried is in the trace, whether or not its process still lives.
        switch event {
        case .message(let group, let message, let from):
            self.mix(1, from.raw, id.raw, message.term.raw, UInt64(group.raw))
        case .heartbeat(let heartbeat, let from):
            self.mix(2, from.raw, id.raw, heartbeat.sequence, 0)
        default: break
        }
        guard node.incarnation == life, node.isUp else { return }
        switch event {
        case .message(let group, let message, let from):
            self.deliver(message, of: group, from: from, to: node)
        case .heartbeat(let heartbeat, let from): self.deliver(heartbeat, from: from, to: node)
        case .peer(let message, let from): self.hear(message, from: from, to: node)
        case .wake:
            self.mix(3, id.raw, 0, 0, 0)
            self.enter(node) { host, now, effects in
                host.wake(node.vitals(self.now), at: now, into: &effects)
            }
        case .synced: self.synced(node)
        case .reported(let event): self.reported(event, to: node)
        case .checkpoint: self.checkpoint(node)
        case .overdue(let token): self.overdue(token, on: node)
        case .resume(let sleep): for part in node.parts { part.life.wake(sleep) }
        case .linkLost(let other): node.shells?.lost(other)
        case .ended(let other, let otherLife):
            // The next process takes connections again, and through a cut nobody hears of a
            // refusal.
            guard self.node(other).incarnation == otherLife, !self.node(other).isUp,
                self.passes(from: id, to: other), self.passes(from: other, to: id)
            else { return }
            self.processEnded(other, for: node)
        case .linkTurn(let turn): self.linkTurn(node, turn)
        case .mail(let event): self.handle(event, on: node)
        }
    }

    func deliver(
        _ message: ConsensusMessage, of group: GroupID, from: NodeID, to node: SimulatedNode
    ) {
        guard self.isOpen(group, on: node),
            !self.tornTailLoses(message, from: from, to: node)
        else { return }
        self.enter(node, group) { host, now, effects in
            host.receive(message, of: group, from: from, at: now, into: &effects)
        }
        if case .heldAsk = message.body { node.assets?.post(.wantsHeld, of: group) }
    }

    private func deliver(_ heartbeat: NodeHeartbeat, from: NodeID, to node: SimulatedNode) {
        // The link of a process' successor takes the place of its own.
        guard heartbeat.incarnation.raw == self.node(from).incarnation else { return }
        self.enter(node) { host, now, effects in
            host.receive(heartbeat, from: from, node.vitals(self.now), at: now, into: &effects)
        }
    }
}
