import StratusModel
import Synchronization
import Testing

@testable import StratusCluster

/// The output of one pass leaves together.
@Suite struct DeparturesTests {
    @Test func `messages leave in one batch for each peer, in order, before any answer`() {
        let sender = BatchSender()
        var departures = Departures()
        let messages = (1...3).map { PeerMessage.taken($0) }
        let answered = Mutex<[PeerResponse.Answer]>([])
        departures.add(messages[0], to: NodeID(3))
        departures.add(
            .notLeader(nil),
            to: .here { answer in
                #expect(sender.batches.withLock { $0.count } == 2)
                answered.withLock { $0.append(answer) }
            })
        departures.add(messages[1], to: NodeID(2))
        departures.add(messages[2], to: NodeID(3))
        departures.add(.outcomeUnknown, to: .peer(NodeID(2), number: 7))
        #expect(departures.leave(by: sender).isEmpty)
        let response = PeerMessage.response(PeerResponse(number: 7, answer: .outcomeUnknown))
        #expect(
            sender.batches.withLock { $0 } == [
                BatchSender.Batch(to: NodeID(2), messages: [messages[1], response]),
                BatchSender.Batch(to: NodeID(3), messages: [messages[0], messages[2]]),
            ])
        #expect(answered.withLock { $0 } == [.notLeader(nil)])
        // Nothing leaves twice.
        #expect(departures.leave(by: sender).isEmpty)
        #expect(sender.batches.withLock { $0.count } == 2)
    }

    @Test func `a response that finds no link comes back, other messages do not`() {
        var departures = Departures()
        departures.add(.taken(1), to: NodeID(2))
        departures.add(.outcomeUnknown, to: .peer(NodeID(2), number: 7))
        let left = departures.leave(by: NoPeers())
        #expect(left.map(\.to) == [NodeID(2)])
        #expect(
            left.first?.responses == [
                .response(PeerResponse(number: 7, answer: .outcomeUnknown))
            ])
    }
}

private final class BatchSender: PeerSender {
    struct Batch: Equatable {
        var to: NodeID
        var messages: [PeerMessage]
    }
    let batches = Mutex<[Batch]>([])

    func send(_ message: PeerMessage, to node: NodeID) -> Bool {
        self.send([message], to: node).isEmpty
    }

    func send(_ messages: [PeerMessage], to node: NodeID) -> [PeerMessage] {
        self.batches.withLock { $0.append(Batch(to: node, messages: messages)) }
        return []
    }
}
