package import StratusModel
package import StratusStorage
import Synchronization

/// The queue of events for a node's replicas, from any thread, in the order of arrival.
///
/// Made before the log and the links, which report here; ``NodeReplicas`` empties it.
package final class ReplicaInbox: Sendable {
    enum Event: Sendable {
        case peer(NodeID, PeerMessage, PeerReceipt)
        case peerEnded(NodeID)
        case log(LogEvent)
        case asked(Question)
        case checkpointed(GroupID, Result<LogIndex?, StoreError>)
        case copiesHeld(GroupID, LogIndex)
        case woke
    }

    /// One command or read that somebody waits for.
    struct Question: Sendable {
        let group: GroupID
        let body: PeerRequest.Body
        let deadline: MonotonicTime
        let asker: Asker

        typealias Listener = @Sendable (PeerResponse.Answer) -> Void

        enum Asker: Sendable {
            case here(Listener)
            case peer(NodeID, number: UInt64)
        }

        /// Whether it is mail. Mail is never refused: its couriers bound it, and its sender cannot
        /// be told to come again.
        var isMail: Bool {
            if case .command(let command) = self.body { command.kind == .mail } else { false }
        }

        var size: Int {
            switch self.body {
            case .command(let command): command.body.count + 256
            case .query(let query): query.body.count + 128
            case .node(let question): question.count + 128
            }
        }
    }

    private struct State {
        var events: [Event] = []
        var questionCount = 0
        var questionSize = 0
        var isScheduled = false
        var isStopped = false
        var drain: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    package init() {}

    /// A message of a peer.
    package func receive(_ message: PeerMessage, from node: NodeID, _ receipt: PeerReceipt) {
        self.post(.peer(node, message, receipt))
    }

    /// The process of a peer has ended.
    package func noteEnded(_ node: NodeID) { self.post(.peerEnded(node)) }

    /// News of the log.
    package func receive(_ event: LogEvent) { self.post(.log(event)) }

    func post(_ event: Event) {
        let drain = self.state.withLock { state -> (@Sendable () -> Void)? in
            guard !state.isStopped else { return nil }
            state.events.append(event)
            return Self.claim(&state)
        }
        drain?()
    }

    /// - Returns: false when as many wait as may, and nothing will happen.
    func ask(_ question: Question, countMax: Int, sizeMax: Int) -> Bool {
        let (isTaken, drain) = self.state.withLock { state -> (Bool, (@Sendable () -> Void)?) in
            let hasRoom =
                state.questionCount < countMax
                && (state.questionCount == 0 || state.questionSize + question.size <= sizeMax)
            guard !state.isStopped, hasRoom || question.isMail else { return (false, nil) }
            state.events.append(.asked(question))
            state.questionCount += 1
            state.questionSize += question.size
            return (true, Self.claim(&state))
        }
        drain?()
        return isTaken
    }

    /// Calls `drain` from now on when an event arrives: once, until ``take(countMax:)`` has found
    /// nothing.
    func start(_ drain: @escaping @Sendable () -> Void) {
        let first = self.state.withLock { state -> (@Sendable () -> Void)? in
            state.drain = drain
            return state.events.isEmpty ? nil : Self.claim(&state)
        }
        first?()
    }

    /// How much waits.
    var count: Int { self.state.withLock { $0.events.count } }

    /// Accepts no more events. Those in the queue are still handed out.
    func stop() { self.state.withLock { $0.isStopped = true } }

    /// - Returns: empty when there is nothing, and then the next event calls `drain` again.
    func take(countMax: Int) -> [Event] {
        self.state.withLock { state in
            if state.events.isEmpty {
                state.isScheduled = false
                return []
            }
            let events: [Event]
            if state.events.count <= countMax {
                events = state.events
                state.events = []
            } else {
                events = Array(state.events[..<countMax])
                state.events.removeFirst(countMax)
            }
            for case .asked(let question) in events {
                state.questionCount -= 1
                state.questionSize -= question.size
            }
            return events
        }
    }

    private static func claim(_ state: inout State) -> (@Sendable () -> Void)? {
        guard !state.isScheduled, let drain = state.drain else { return nil }
        state.isScheduled = true
        return drain
    }
}
