import StratusCluster
import StratusConsensus
import StratusModel
import StratusStorage

extension Simulation {
    /// An event at a simulated time. Each part of the simulation has events of its own, and
    /// handles them in a file of its own.
    enum Event {
        /// Reaches one life of a node's process, and nobody if that life is over.
        case process(ProcessEvent, NodeID, life: UInt64)
        case client(ClientEvent)
        case fault(FaultEvent)
        case link(LinkEvent)
        case level(LevelEvent)
        case check(CheckEvent)
    }

    enum ProcessEvent {
        case message(GroupID, ConsensusMessage, from: NodeID)
        case heartbeat(NodeHeartbeat, from: NodeID)
        case peer(PeerMessage, from: NodeID)
        case wake
        case synced
        case reported(LogEvent)
        case checkpoint
        /// The deadline of a request that waits here has passed.
        case overdue(RaftGroup.RequestToken)
        /// A task of the process has slept long enough.
        case resume(sleep: UInt64)
        case linkLost(to: NodeID)
        /// Another node's process is found to have ended.
        case ended(NodeID, life: UInt64)
        /// The event loop of the real links has something to do.
        case linkTurn(UInt64)
        case mail(MailEvent)
    }

    enum ClientEvent {
        case think(Int)
        case request(client: Int, number: Int, identity: RequestIdentity, NodeID)
        case response(client: Int, number: Int, Answer)
        case impatience(client: Int, number: Int, attempt: Int)
    }

    enum FaultEvent {
        /// Time to draw the next one.
        case draw
        /// The power goes, if that process still lives.
        case powerLoss(NodeID, life: UInt64)
        case cut([(NodeID, NodeID)], for: Int64)
        case heal(Int)
        case restart(NodeID)
        case diskRoom(NodeID)
    }

    enum LinkEvent {
        case stream(StreamEvent)
        case stranger
    }

    enum LevelEvent {
        case exchange(NodeID, for: FeatureLevel)
        case finishExchange(NodeID)
        case raise
        case hear(NodeID)
    }

    enum CheckEvent {
        case logs
        case convergence
        case streaming
        case rows
        case endRotten(NodeID)
        case tearTail(attempt: Int)
        case endTornLeader
    }

    enum Answer {
        case outcome(Outcome)
        case answer(QueryAnswer)
        case refused(ReplicaRefusal)
    }
}

extension Simulation.Event {
    /// The node whose process would take the event; nil for what is no process' business. A paused
    /// process takes it when it goes on.
    var receiver: NodeID? {
        switch self {
        case .process(_, let id, _), .client(.request(_, _, _, let id)): id
        case .client, .fault, .link, .level, .check: nil
        }
    }
}
