import StratusCoding
import StratusModel
import StratusRuntime

/// The link to one peer: connects, says hello, sends the queued messages, and starts again when it
/// breaks.
///
/// A link for bulk is opened when there is something to send, and the peer closes it when nothing
/// has come for a while. Its messages wait while it is being opened.
///
/// `@unchecked`: touched only on the loop, except for the state behind the mutex.
final class OutgoingLink: LinkStreamUser, @unchecked Sendable {
    private struct Outbox {
        var frames: PeerFrameQueue
        var isOpen = false
        /// The loop knows that there is something to send.
        var isSignalled = false
        /// The loop knows that a link for bulk is to be opened.
        var isCalled = false
        /// A link for bulk could not be opened: it takes nothing until the next try.
        var isPausing = false
    }

    private enum Phase { case resting, connecting, greeting, open, stopped }

    private(set) var peer: PeerAddress
    let purpose: PeerPurpose
    /// Where the peer is called now: one of its places.
    private var place: PeerAddress.Place
    /// Where the link was open last.
    private var openPlace: PeerAddress.Place?
    private unowned let links: PeerLinks
    private let outbox: SystemMutex<Outbox>
    private var phase = Phase.resting
    private var stream: (any LinkStream)?
    /// Of the certificate that the peer has shown on this stream.
    private var fingerprint: Bytes = []
    private var reader: PeerFrameReader
    private var greeting: Bytes = []
    private var backoff: Duration
    /// When the link was opened; nil while it is not open.
    private var openedAt: MonotonicTime?
    /// When a link that broke was last called again at once.
    private var promptAt: MonotonicTime?
    /// The last pause after the peer said that this node is no member; nil otherwise. A peer that
    /// has not heard of a newcomer yet calls as soon as it has.
    private var strangerPause: Duration?
    private var lastTrouble = ""
    /// Whether the connection was open and broke, and it is unknown whether the peer's process has
    /// ended.
    private var wondersWhetherEnded = false

    init(to peer: PeerAddress, for purpose: PeerPurpose = .ordinary, of links: PeerLinks) {
        self.peer = peer
        self.purpose = purpose
        self.place = peer.places[0]
        self.links = links
        self.outbox = SystemMutex(
            Outbox(frames: PeerFrameQueue(limits: links.tuning.frames(of: purpose))))
        self.reader = PeerFrameReader(limits: links.tuning.frames)
        self.backoff = links.tuning.backoffMin
    }

    // MARK: From any thread

    var isOpen: Bool { self.outbox.withLock { $0.isOpen } }

    /// - Returns: the messages that were not taken.
    func send(_ messages: [PeerMessage]) -> [PeerMessage] {
        // Most messages are for links that are open; encoding for one that is not would be wasted.
        guard self.purpose == .bulk || self.isOpen else { return messages }
        let encoded = messages.map { $0.encoded() }
        if self.purpose == .bulk { return self.sendBulk(messages, encoded) }
        let (refused, mustSignal) = self.outbox.withLock { outbox -> ([PeerMessage], Bool) in
            guard outbox.isOpen else { return (messages, false) }
            var refused: [PeerMessage] = []
            for (message, bytes) in zip(messages, encoded)
            where !outbox.frames.add(bytes, message.priority) { refused.append(message) }
            guard refused.count < messages.count, !outbox.isSignalled else {
                return (refused, false)
            }
            outbox.isSignalled = true
            return (refused, true)
        }
        // Soon, not at once: what the loop is about to add leaves in the same write.
        if mustSignal { self.links.world.submit { self.stream?.wantsToSend() } }
        return refused
    }

    private func sendBulk(_ messages: [PeerMessage], _ encoded: [Bytes]) -> [PeerMessage] {
        let (refused, mustSignal, mustCall) = self.outbox.withLock {
            outbox -> ([PeerMessage], Bool, Bool) in
            guard outbox.isOpen || !outbox.isPausing else { return (messages, false, false) }
            var refused: [PeerMessage] = []
            for (message, bytes) in zip(messages, encoded)
            where !outbox.frames.add(bytes, message.priority) { refused.append(message) }
            guard refused.count < messages.count else { return (refused, false, false) }
            if outbox.isOpen {
                defer { outbox.isSignalled = true }
                return (refused, !outbox.isSignalled, false)
            }
            defer { outbox.isCalled = true }
            return (refused, false, !outbox.isCalled)
        }
        if mustSignal { self.links.world.submit { self.stream?.wantsToSend() } }
        if mustCall { self.links.world.submit { self.connect() } }
        return refused
    }

    // MARK: On the loop

    func start() {
        if self.purpose == .ordinary { self.connect() }
    }

    /// Takes on what is known now of where the peer is.
    ///
    /// - Returns: false if it is somewhere else than where this link calls it, or another node.
    func adopt(_ peer: PeerAddress) -> Bool {
        guard peer.node == self.peer.node, peer.name == self.peer.name,
            peer.places.contains(self.place)
        else { return false }
        self.peer = peer
        return true
    }

    func stop() {
        self.phase = .stopped
        self.outbox.withLock {
            $0.isOpen = false
            $0.isPausing = true
        }
        self.stream?.close()
        self.stream = nil
    }

    /// The peer is known to be there now.
    func hurry() {
        self.backoff = self.links.tuning.backoffMin
        self.strangerPause = nil
        self.connect()
    }

    /// Waits after the peer said that this node is no member: mostly it was removed, and then the
    /// answer never changes.
    private func backOffAsStranger() {
        let most = self.links.tuning.strangerBackoffMax
        let last = self.strangerPause ?? self.links.tuning.backoffMax / 2
        let pause = min(last * 2, most)
        self.strangerPause = pause
        // Several that were removed, or several links of one, are not to come at the same moments.
        var random = SeededGenerator(
            seed: self.links.own.incarnation.raw ^ UInt64(self.peer.node.raw) << 32
                ^ UInt64(clamping: pause.clampedNanoseconds))
        self.backoff = pause * Int.random(in: 75...100, using: &random) / 100
        if pause == most, last < most {
            self.links.events.trouble(
                self.peer.name,
                "still says that this node is not a member: from now on this node asks it "
                    + "once in \(most.components.seconds) s")
        }
    }

    private func connect() {
        guard self.phase == .resting else { return }
        self.phase = .connecting
        self.fingerprint = []
        self.reader = PeerFrameReader(limits: self.links.tuning.frames)
        self.stream = self.links.world.connect(
            to: self.peer.at(self.place), within: self.links.tuning.connectPatience, user: self)
    }

    /// The next call goes to another place where the peer may be.
    private func tryElsewhere() {
        if let other = self.peer.places.first(where: { $0 != self.place }) { self.place = other }
    }

    /// Waits, then tries again: longer each time.
    ///
    /// - Parameter isBroken: whether the other side closed the connection, or it failed. The first
    ///   attempt is then made at once, but only once in ``PeerLinks/Tuning/backoffMax``. A link
    ///   that opens and breaks each time waits longer and longer.
    private func rest(_ trouble: String?, isBroken: Bool = false) {
        self.stream?.close()
        self.stream = nil
        let wasOpen = self.outbox.withLock { outbox -> Bool in
            defer {
                outbox.isPausing = self.purpose == .bulk && !outbox.isOpen
                outbox.isOpen = false
                outbox.isSignalled = false
                outbox.isCalled = false
                // The queue is dropped: the receiver may be another process when the link is back.
                if self.links.tuning.bugs.contains(.outboxKeptOverBreak) {
                    outbox.frames.restart()
                } else {
                    outbox.frames = PeerFrameQueue(
                        limits: self.links.tuning.frames(of: self.purpose))
                }
            }
            return outbox.isOpen
        }
        guard self.phase != .stopped else { return }
        // Whoever is there may be another node, or none.
        if !wasOpen { self.tryElsewhere() }
        self.phase = .resting
        if let trouble, trouble != self.lastTrouble, !(self.purpose == .bulk && wasOpen) {
            self.lastTrouble = trouble
            self.links.events.trouble(self.peer.name, trouble)
        }
        if self.purpose == .bulk { return self.restUntilCalled(wasOpen: wasOpen) }
        if wasOpen { self.links.events.linkChanged(self.peer.node, false) }
        let world = self.links.world
        let long = self.links.tuning.backoffMax
        if let time = self.openedAt, world.now >= time + long {
            self.backoff = self.links.tuning.backoffMin
        }
        self.openedAt = nil
        if wasOpen, isBroken {
            // Whether its process has ended shows at the next call.
            self.wondersWhetherEnded = true
            if self.promptAt.map({ world.now >= $0 + long }) ?? true {
                self.promptAt = world.now
                world.schedule(at: world.now) { [weak self] in self?.connect() }
                return
            }
        }
        let pause = self.backoff
        self.backoff = min(
            self.backoff * 2, max(self.links.tuning.backoffMax, self.strangerPause ?? .zero))
        world.schedule(at: world.now + pause) { [weak self] in self?.connect() }
    }

    /// What waited on a link for bulk is lost, and its senders are told. The next message opens it
    /// again: at once if it had been open, after a pause if it could not be opened.
    private func restUntilCalled(wasOpen: Bool) {
        self.openedAt = nil
        self.links.events.bulkBroke(self.peer.node)
        if wasOpen {
            self.backoff = self.links.tuning.backoffMin
            return
        }
        let (world, pause) = (self.links.world, self.backoff)
        self.backoff = min(self.backoff * 2, self.links.tuning.backoffMax)
        world.schedule(at: world.now + pause) { [weak self] in
            guard let self, self.phase != .stopped else { return }
            self.outbox.withLock { $0.isPausing = false }
        }
    }

    // MARK: LinkStreamUser

    /// The certificate that the peer has shown is withdrawn.
    func dropWithdrawn() {
        guard self.stream != nil, self.links.isWithdrawn(self.fingerprint) else { return }
        self.rest(Self.withdrawn)
    }

    private static let withdrawn = "shows a certificate that was withdrawn"

    func opened(by certificate: LinkCertificate?) {
        self.fingerprint = certificate?.fingerprint ?? []
        if self.links.isWithdrawn(self.fingerprint) { return self.rest(Self.withdrawn) }
        // The handshake has checked that the certificate names the peer.
        self.greeting = []
        self.phase = .greeting
        self.awaitWelcome()
        self.sayFirst(.hello(PeerGreeting.hello(from: self.links.own, to: self.peer.node)))
        self.stream?.wantsToSend()
    }

    /// Before all that waits; to be sent once ``LinkStream/wantsToSend()`` is called.
    private func sayFirst(_ message: PeerMessage) {
        var frames = PeerFrameQueue()
        _ = frames.add(message.encoded(), .vital)
        frames.fill(&self.greeting, sizeMax: .max)
    }

    /// Once the hello is there nothing is under way, and nothing would tell of a peer that is gone.
    private func awaitWelcome() {
        if self.links.tuning.bugs.contains(.welcomeAwaitedForever) { return }
        let world = self.links.world
        world.schedule(at: world.now + self.links.tuning.connectPatience) {
            [weak self, weak stream = self.stream] in
            guard let self, let stream, self.phase == .greeting, self.stream === stream else {
                return
            }
            self.rest("did not answer our hello in time")
        }
    }

    func fill(_ output: inout Bytes) {
        // By itself: a fill is bounded, and the stream asks again until there is nothing left.
        if !self.greeting.isEmpty { return swap(&output, &self.greeting) }
        guard self.phase == .open else { return }
        self.outbox.withLock { outbox in
            outbox.isSignalled = false
            outbox.frames.fill(&output, sizeMax: self.links.tuning.fillSizeMax)
        }
    }

    func received(_ bytes: Bytes) {
        var messages: [PeerFrameReader.Message] = []
        do throws(PeerFrameReader.Violation) {
            try self.reader.take(bytes, into: &messages)
        } catch { return self.rest("broke the protocol: \(error)") }
        for message in messages {
            guard let message = try? PeerMessage(decoding: message.bytes) else {
                return self.rest("sent a message that cannot be decoded")
            }
            guard self.take(message) else { return }
        }
    }

    /// - Returns: false when that was the end of the link.
    private func take(_ message: PeerMessage) -> Bool {
        switch (self.phase, message) {
        case (.greeting, .welcome(let welcome)):
            guard welcome.protocolVersion <= PeerGreeting.protocolMax,
                welcome.protocolVersion >= PeerGreeting.protocolMin
            else {
                self.rest("chose link protocol \(welcome.protocolVersion), which was not offered")
                return false
            }
            if let refusal = PeerGreeting.refusal(
                of: self.peer.name, build: FeatureLevel(welcome.featureLevel),
                in: self.links.level.now)
            {
                // It hears of it on the link that it opens.
                self.backoff = self.links.tuning.backoffMax
                self.rest("gets no messages: \(refusal.text)")
                return false
            }
            let met = self.links.memory.meet(self.peer.name, welcome.data)
            if let refusal = PeerGreeting.refusal(of: self.peer.name, met) {
                // It hears of it on the link that it opens.
                self.backoff = self.links.tuning.backoffMax
                self.rest("gets no messages: \(refusal.text)")
                return false
            }
            if self.purpose == .bulk { self.sayFirst(.purpose(.bulk)) }
            self.sayFirst(.starts(self.links.own.starts))
            // It may end the stream at once, and then the link rests already.
            self.stream?.wantsToSend()
            guard self.phase == .greeting else { return false }
            self.phase = .open
            self.wondersWhetherEnded = false
            self.openedAt = self.links.world.now
            self.openPlace = self.place
            self.strangerPause = nil
            self.lastTrouble = ""
            self.outbox.withLock {
                $0.isOpen = true
                $0.isCalled = false
            }
            if self.purpose == .ordinary {
                self.links.events.linkChanged(self.peer.node, true)
            } else {
                // Messages have waited for it.
                self.stream?.wantsToSend()
            }
            return self.phase == .open
        case (.greeting, .refusal(let refusal)), (.open, .refusal(let refusal)):
            self.backoff = self.links.tuning.backoffMax
            if refusal.reason == .unknownNode { self.backOffAsStranger() }
            self.links.events.refused(self.peer.node, refusal)
            self.rest("refused us: \(refusal.text)")
            if refusal.reason == .olderCopy { self.links.withdraw() }
            return false
        case (.open, .taken(let count)):
            let (isPossible, canSend) = self.outbox.withLock { outbox -> (Bool, Bool) in
                (outbox.frames.noteTaken(count), outbox.frames.canSend)
            }
            guard isPossible else {
                self.rest("acknowledged messages that were not sent")
                return false
            }
            if canSend { self.stream?.wantsToSend() }
            return true
        default:
            self.rest("sent an unexpected message")
            return false
        }
    }

    func ended(_ end: LinkEnd) {
        if case .failed(let failure) = end, failure.isRefusal, self.wondersWhetherEnded,
            self.place == self.openPlace, self.links.isRefused(by: self.peer.node)
        {
            self.wondersWhetherEnded = false
        }
        self.rest(end.description, isBroken: true)
    }
}
