import StratusAssets
import StratusCluster
import StratusModel
import Synchronization

/// The receivers of the peers' messages, set once all of them exist: links are made before the
/// parts they serve.
final class PeerReceivers: Sendable {
    private struct Ready {
        let questions: NodeQuestions
        let sender: any PeerSender
        let admission: SystemPartition?
    }

    let router = Mutex<ClusterRouter?>(nil)
    let copies = Mutex<CopyCourier?>(nil)
    private let ready = Mutex<Ready?>(nil)

    func become(
        questions: NodeQuestions, sender: any PeerSender, admission: SystemPartition?
    ) {
        self.ready.withLock {
            $0 = Ready(questions: questions, sender: sender, admission: admission)
        }
    }

    /// Answers a question for the node itself. Its sender may send more once it is answered.
    func answer(_ question: Bytes, _ number: UInt64, to node: NodeID, _ receipt: PeerReceipt) {
        guard let ready = self.ready.withLock({ $0 }) else { return receipt.settle() }
        Task {
            let answer = await ready.questions.answer(question)
            let response = PeerMessage.response(PeerResponse(number: number, answer: answer))
            receipt.settle()
            if ready.sender.send(response, to: node) { return }
            // The link back may be a moment behind its own.
            try? await Task.sleep(for: .milliseconds(100))
            ready.sender.send(response, to: node)
        }
    }

    /// A message about copies. Its sender may send more once it is dealt with.
    func take(_ message: CopyMessage, from node: NodeID, _ receipt: PeerReceipt) {
        guard let courier = self.copies.withLock({ $0 }) else { return receipt.settle() }
        courier.receive(message, from: node) { receipt.settle() }
    }

    /// A link to or from the node broke.
    func lostCopies(of node: NodeID) { self.copies.withLock { $0 }?.lost(node) }

    func admit(
        _ join: PeerJoin, _ fingerprint: Bytes, _ answer: @escaping PeerLinks.Events.JoinAnswer
    ) {
        guard let admission = self.ready.withLock({ $0 })?.admission else {
            return answer(.failure(PeerRefusal(.unknownNode, "nobody can join here yet")))
        }
        Task { answer(await admission.admit(join, fingerprint)) }
    }
}
