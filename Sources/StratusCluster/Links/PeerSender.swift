package import StratusModel

/// Sends to other nodes: at once, or not at all.
package protocol PeerSender: AnyObject, Sendable {
    /// - Returns: false if the message was not taken and will certainly not be sent. True promises
    ///   nothing: it may be lost on its way.
    @discardableResult
    func send(_ message: PeerMessage, to node: NodeID) -> Bool

    /// Several at once, which leave together.
    /// - Returns: those that were not taken.
    func send(_ messages: [PeerMessage], to node: NodeID) -> [PeerMessage]
}

extension PeerSender {
    package func send(_ messages: [PeerMessage], to node: NodeID) -> [PeerMessage] {
        messages.filter { !self.send($0, to: node) }
    }
}

/// A cluster of one: there is nobody to send to.
package final class NoPeers: PeerSender {
    package init() {}
    package func send(_ message: PeerMessage, to node: NodeID) -> Bool { false }
}

/// Says that a message has been dealt with, so that its sender may send more.
package struct PeerReceipt: Sendable {
    private let link: (any PeerCreditor)?
    private let size: Int

    init(_ link: any PeerCreditor, size: Int) {
        self.link = link
        self.size = size
    }

    /// For messages that no link brought.
    package static let none = PeerReceipt()
    private init() {
        self.link = nil
        self.size = 0
    }

    package func settle() { self.link?.credit(self.size) }
}

protocol PeerCreditor: AnyObject, Sendable {
    func credit(_ size: Int)
}
