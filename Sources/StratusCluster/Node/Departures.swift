import StratusModel

/// The output of one pass over a node's replicas: messages for peers and answers for waiting
/// callers. They leave together when the pass ends, so that a thread or a socket that takes them is
/// woken only once.
struct Departures {
    private var messages: [NodeID: [PeerMessage]] = [:]
    private var answers: [(to: ReplicaInbox.Question.Listener, answer: PeerResponse.Answer)] = []

    mutating func add(_ message: PeerMessage, to node: NodeID) {
        self.messages[node, default: []].append(message)
    }

    mutating func add(_ answer: PeerResponse.Answer, to asker: ReplicaInbox.Question.Asker) {
        switch asker {
        case .here(let listener): self.answers.append((listener, answer))
        case .peer(let node, let number):
            self.add(.response(PeerResponse(number: number, answer: answer)), to: node)
        }
    }

    /// Hands everything on.
    /// - Returns: the responses that found no link; other messages may be lost.
    mutating func leave(by sender: any PeerSender) -> [(to: NodeID, responses: [PeerMessage])] {
        var left: [(to: NodeID, responses: [PeerMessage])] = []
        for node in self.messages.keys.sorted() {
            let refused = sender.send(self.messages[node] ?? [], to: node).filter { message in
                if case .response = message { true } else { false }
            }
            if !refused.isEmpty { left.append((node, refused)) }
        }
        self.messages.removeAll(keepingCapacity: true)
        for (listener, answer) in self.answers { listener(answer) }
        self.answers.removeAll(keepingCapacity: true)
        return left
    }
}
