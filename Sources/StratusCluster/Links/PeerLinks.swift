package import StratusCoding
package import StratusModel
import Synchronization

/// The connections between this node and its peers: one for each direction of each pair.
///
/// A node opens a link to every peer, sends on it, and reads only how much was taken. The peer's
/// own messages come on the link that the peer opened. So no two nodes need to agree whose
/// connection counts.
///
/// Promises:
/// - A message arrives whole and unaltered, or not at all; those of one priority arrive in the
///   order sent, as long as the connection lasts.
/// - Only a node of this cluster with its own certificate is heard. It is heard only as long as it
///   works on the data it was first met with, and on no older copy of it.
/// - The queue for a peer is bounded, and dropped once its link breaks. Senders find out by the
///   silence, or by ``Events/linkChanged``.
///
/// `@unchecked`: the mutable state is the loop's, or behind a mutex; see ``LinkWorld``.
package final class PeerLinks: PeerSender, @unchecked Sendable {
    /// The events of the links, on the links' loop. Nothing here may block.
    package struct Events: Sendable {
        package var received: @Sendable (NodeID, PeerMessage, PeerReceipt) -> Void
        /// `isOpen`: the link to the node was opened, or one of the two broke.
        package var linkChanged: @Sendable (NodeID, _ isOpen: Bool) -> Void
        /// A link that the node opened is heard from here on. What the node had to say before, it may
        /// have had nowhere to say: its answers are lost, though its process lives.
        package var returned: @Sendable (NodeID) -> Void
        /// The peer's process has ended: both links with it are closed, and its system refuses
        /// connections. Reported once each time; the peer's next process opens links again.
        package var processEnded: @Sendable (NodeID) -> Void
        /// The peer took our hello and will not hear us.
        package var refused: @Sendable (NodeID, PeerRefusal) -> Void
        /// A member said hello. It is heard from here on, unless it is refused because of its data
        /// directory.
        package var greeted: @Sendable (_ name: String, PeerRefusal?) -> Void
        /// A node wants to become a member; its certificate names it. Answer once, from any thread.
        package var joining:
            @Sendable (PeerJoin, _ fingerprint: Bytes, @escaping JoinAnswer) -> Void
        package typealias JoinAnswer = @Sendable (Result<PeerAdmission, PeerRefusal>) -> Void
        /// For the log: what went wrong with whom. Told once for each change.
        package var trouble: @Sendable (_ peer: String, _ what: String) -> Void
        /// A link for bulk with the node ended: what was under way on it may be lost.
        package var bulkBroke: @Sendable (NodeID) -> Void

        package init(
            received: @escaping @Sendable (NodeID, PeerMessage, PeerReceipt) -> Void,
            linkChanged: @escaping @Sendable (NodeID, _ isOpen: Bool) -> Void = { _, _ in },
            returned: @escaping @Sendable (NodeID) -> Void = { _ in },
            processEnded: @escaping @Sendable (NodeID) -> Void = { _ in },
            refused: @escaping @Sendable (NodeID, PeerRefusal) -> Void = { _, _ in },
            greeted: @escaping @Sendable (_ name: String, PeerRefusal?) -> Void = { _, _ in },
            joining:
                @escaping @Sendable (PeerJoin, _ fingerprint: Bytes, @escaping JoinAnswer) -> Void =
                {
                    _, _, answer in
                    answer(.failure(PeerRefusal(.unknownNode, "nobody can join here")))
                },
            trouble: @escaping @Sendable (_ peer: String, _ what: String) -> Void = { _, _ in },
            bulkBroke: @escaping @Sendable (NodeID) -> Void = { _ in }
        ) {
            self.received = received
            self.linkChanged = linkChanged
            self.returned = returned
            self.processEnded = processEnded
            self.refused = refused
            self.greeted = greeted
            self.joining = joining
            self.trouble = trouble
            self.bulkBroke = bulkBroke
        }
    }

    package struct Tuning: Sendable {
        package var connectPatience: Duration = .seconds(2)
        /// To the end of the handshake of a connection that somebody else opened.
        package var handshakePatience: Duration = .milliseconds(500)
        package var admission = LinkAdmission.Bounds()
        package var backoffMin: Duration = .milliseconds(50)
        package var backoffMax: Duration = .seconds(1)
        /// To a peer that says again and again that this node is no member.
        package var strangerBackoffMax: Duration = .seconds(60)
        /// Bytes handed to a connection at a time: how much may stand before a heartbeat.
        package var fillSizeMax = 64 << 10
        package var frames = PeerFrameQueue.Limits()
        /// Of a link for copies: under way, and waiting.
        package var bulkWindowSize = 8 << 20
        package var bulkQueueSizeMax = 16 << 20
        package var bugs = PlantedBugs()
        package init() {}

        func frames(of purpose: PeerPurpose) -> PeerFrameQueue.Limits {
            guard purpose == .bulk else { return self.frames }
            var limits = self.frames
            limits.windowSize = self.bulkWindowSize
            limits.queueSizeMax = self.bulkQueueSizeMax
            return limits
        }
    }

    /// The links of one node for one purpose.
    private struct LinkKey: Hashable, Comparable {
        var node: NodeID
        var purpose: PeerPurpose

        static func < (one: Self, other: Self) -> Bool {
            (one.node, one.purpose.rawValue) < (other.node, other.purpose.rawValue)
        }
    }

    let own: PeerIdentity
    let memory: PeerMemory
    let world: any LinkWorld
    let events: Events
    let tuning: Tuning
    /// Peers of older builds are neither heard nor sent anything.
    let level: ClusterLevel
    private let outgoing = Mutex<[LinkKey: OutgoingLink]>([:])
    // Only on the loop.
    private(set) var peers: [PeerAddress] = []
    private var withdrawn: Set<Bytes> = []
    private var listener: (any LinkListener)?
    private var incoming: [IncomingLink] = []
    private var incomingCount: UInt64 = 0
    private var admission: LinkAdmission
    private let strangers = Mutex(Strangers())
    private var greetingCount: UInt64 = 0
    /// The last connection heard of each peer, by the order in which they said hello.
    private var newest: [LinkKey: UInt64] = [:]
    private var fold = TroubleFold()
    private(set) var isStopped = false

    package init(
        _ own: PeerIdentity, memory: PeerMemory, over world: any LinkWorld,
        tuning: Tuning = Tuning(), level: ClusterLevel = .fixed(.one), events: Events
    ) {
        self.own = own
        self.memory = memory
        self.world = world
        self.tuning = tuning
        self.level = level
        self.events = events
        self.admission = LinkAdmission(tuning.admission)
    }

    // MARK: From any thread

    package func send(_ message: PeerMessage, to node: NodeID) -> Bool {
        var purpose = PeerPurpose.ordinary
        if case .copy(let copy) = message, copy.isBulk { purpose = .bulk }
        return self.link(to: node, purpose)?.send([message]).isEmpty ?? false
    }

    /// None of them is about copies.
    package func send(_ messages: [PeerMessage], to node: NodeID) -> [PeerMessage] {
        self.link(to: node)?.send(messages) ?? messages
    }

    private func link(to node: NodeID, _ purpose: PeerPurpose = .ordinary) -> OutgoingLink? {
        self.outgoing.withLock { $0[LinkKey(node: node, purpose: purpose)] }
    }

    /// Links that can be sent on now.
    package var openCount: Int {
        self.outgoing.withLock {
            $0.values.count { $0.purpose == .ordinary && $0.isOpen }
        }
    }

    package func isOpen(to node: NodeID) -> Bool { self.link(to: node)?.isOpen ?? false }

    /// Connections that ended, or were closed, before a certificate was proven.
    package struct Strangers: Sendable, Equatable {
        /// The handshake failed, took too long, or never began.
        package var failed: UInt64 = 0
        /// The connection gave way to newer ones.
        package var displaced: UInt64 = 0
    }

    package var strangersSeen: Strangers { self.strangers.withLock { $0 } }

    /// Opens links to these peers and closes those to others. Addresses may change; a node's name
    /// may not. A link to one of the places where the peer may still be is left alone.
    package func setPeers(_ peers: [PeerAddress]) {
        self.world.perform {
            // A view may still come when the node has stopped talking.
            if !self.isStopped { self.adopt(peers) }
        }
    }

    /// Certificates with these fingerprints are refused from now on. Links that one of them opened,
    /// or answered, are closed.
    package func setWithdrawn(_ fingerprints: [Bytes]) {
        self.world.perform {
            let fingerprints = Set(fingerprints)
            guard !self.isStopped, fingerprints != self.withdrawn else { return }
            self.withdrawn = fingerprints
            for link in self.incoming where self.isWithdrawn(link.certificateFingerprint) {
                link.dropWithdrawn()
            }
            let links = self.outgoing.withLock {
                $0.values.sorted { $0.peer.node < $1.peer.node }
            }
            for link in links { link.dropWithdrawn() }
        }
    }

    package func stop() async {
        await self.world.run { self.withdraw() }
    }

    // MARK: On the loop

    /// Closes all links for good. A node that one peer knows to be an older copy talks to none of
    /// them: the others may not have heard of its later starts, and would count its vote.
    func withdraw() {
        self.isStopped = true
        self.listener?.close()
        self.listener = nil
        for link in self.incoming { link.close() }
        self.dropClosed()
        self.adopt([])
    }

    private func adopt(_ peers: [PeerAddress]) {
        self.peers = peers.filter { $0.node != self.own.node }
        let (old, new) = self.outgoing.withLock { links -> ([OutgoingLink], [OutgoingLink]) in
            let old = links.keys.sorted().compactMap { links[$0] }
                .filter { link in !self.peers.contains { link.adopt($0) } }
            for link in old {
                links[LinkKey(node: link.peer.node, purpose: link.purpose)] = nil
            }
            var new: [OutgoingLink] = []
            for peer in self.peers {
                for purpose in PeerPurpose.allCases {
                    let key = LinkKey(node: peer.node, purpose: purpose)
                    guard links[key] == nil else { continue }
                    let link = OutgoingLink(to: peer, for: purpose, of: self)
                    links[key] = link
                    new.append(link)
                }
            }
            return (old, new)
        }
        for link in old { link.stop() }
        for link in new { link.start() }
        // A connection without a name may be a newcomer that waits for its answer.
        for link in self.incoming {
            guard let node = link.node else { continue }
            if !self.peers.contains(where: { $0.node == node }) { link.close() }
        }
        self.dropClosed()
        self.newest = self.newest.filter { key, _ in
            self.peers.contains { $0.node == key.node }
        }
    }

    /// Connections come from `listener` from now on, until ``stop()``.
    func begin(with listener: any LinkListener) {
        if self.isStopped { return listener.close() }
        self.listener = listener
    }

    /// A connection that somebody has opened. Only on the loop.
    package func accept(_ seed: any LinkSeed) {
        guard !self.isStopped else { return }
        self.incomingCount += 1
        let link = IncomingLink(self.incomingCount, of: self, from: seed.origin)
        if let other = self.admission.open(link.number, from: link.host) { self.displace(other) }
        do throws(LinkFailure) {
            try link.open(seed)
            self.incoming.append(link)
        } catch {
            self.admission.close(link.number)
            self.tell("\(error)", of: seed.origin, knownAs: link.host)
        }
    }

    /// The certificate of an incoming connection is verified.
    func didProve(_ link: IncomingLink, name: String) {
        let isMember = self.peers.contains { $0.name == name }
        if let other = self.admission.prove(link.number, name: name, isMember: isMember) {
            self.displace(other)
        }
    }

    private func displace(_ number: UInt64) {
        guard let link = self.incoming.first(where: { $0.number == number }) else { return }
        if !link.isProven {
            self.strangers.withLock { $0.displaced += 1 }
            self.tell(
                "too many connections without a proven certificate: the oldest are closed",
                of: link.host, knownAs: "connections without a certificate")
        }
        link.close()
        self.incoming.removeAll { $0 === link }
    }

    private func dropClosed() {
        for link in self.incoming where link.isClosed { self.admission.close(link.number) }
        self.incoming.removeAll { $0.isClosed }
    }

    func isWithdrawn(_ fingerprint: Bytes) -> Bool { self.withdrawn.contains(fingerprint) }

    /// A hello is taken.
    func drawGreeting() -> UInt64 {
        self.greetingCount += 1
        return self.greetingCount
    }

    /// Whether a later connection of its node has been heard. Messages that still arrive on this
    /// one are older than that.
    func isOutdated(_ link: IncomingLink) -> Bool {
        link.node.flatMap { self.newest[LinkKey(node: $0, purpose: link.purpose)] }
            .map { link.greeting < $0 } ?? false
    }

    /// A node is heard on `link` from here on: whatever connection it had before is dead.
    func didGreet(_ link: IncomingLink) {
        guard let node = link.node else { return }
        self.newest[LinkKey(node: node, purpose: link.purpose)] = link.greeting
        self.admission.hear(link.number)
        let old = self.incoming.filter {
            $0 !== link && $0.node == node && $0.isHeard && $0.purpose == link.purpose
        }
        if !old.isEmpty, !self.tuning.bugs.contains(.oldConnectionKept) {
            for other in old { other.close() }
            self.dropClosed()
            // Answers that were under way on it will not come.
            self.didLose(link)
        }
        guard link.purpose == .ordinary else { return }
        self.events.returned(node)
        // It is there: no reason to wait before it is called back.
        self.link(to: node)?.hurry()
    }

    /// The system of `node` refuses connections after a link to it broke.
    /// - Returns: whether that is its end. While a link that it opened stands, its process lives.
    func isRefused(by node: NodeID) -> Bool {
        guard !self.incoming.contains(where: { $0.node == node && $0.isHeard }) else {
            return false
        }
        self.events.processEnded(node)
        return true
    }

    /// A trouble of a peer that may come back with its next connection.
    func tell(_ trouble: String, of name: String, knownAs peer: String) {
        guard let text = self.fold.tell(trouble, of: peer, at: self.world.now) else { return }
        self.events.trouble(name, text)
    }

    func didClose(_ link: IncomingLink) {
        self.incoming.removeAll { $0 === link }
        self.admission.close(link.number)
        if !link.isProven { self.strangers.withLock { $0.failed += 1 } }
        if link.isHeard { self.didLose(link) }
    }

    private func didLose(_ link: IncomingLink) {
        guard let node = link.node else { return }
        if link.purpose == .bulk {
            self.events.bulkBroke(node)
        } else {
            self.events.linkChanged(node, false)
        }
    }
}
