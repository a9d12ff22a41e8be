import StratusCoding
import StratusModel
import Synchronization

/// A link that a peer opened: takes its hello, then hands on what it sends.
///
/// `@unchecked`: touched only on the loop, but for the credit behind the mutex.
final class IncomingLink: LinkStreamUser, PeerCreditor, @unchecked Sendable {
    private struct Credit {
        var taken: UInt64 = 0
        /// The credit that the peer has been told of, or is about to be.
        var signalled: UInt64 = 0
    }

    /// The step in which the peer is told how much was taken: a small part of what it may have
    /// under way. It is told of the rest with its next heartbeat, because a large message waits for
    /// all of it.
    private var creditStep: UInt64 { UInt64(self.links.tuning.frames.windowSize / 64) }

    /// A peer that has opened a link beats on it many times a second.
    private static let silenceMax = Duration.seconds(10)

    private unowned let links: PeerLinks
    private let origin: String
    /// Which of the connections that others opened it is, in their order.
    let number: UInt64
    /// The origin without its port, which differs from one connection to the next.
    let host: String
    /// Whether the other side has proven a certificate of the cluster's authority.
    private(set) var isProven = false
    private let credit = Mutex(Credit())
    private var stream: (any LinkStream)?
    private var reader: PeerFrameReader
    private var answer: Bytes = []
    private var endsAfterAnswer = false
    private var told: UInt64 = 0
    private var heardAt: MonotonicTime
    private(set) var isClosed = false
    /// The peer's number, once it has said hello.
    private(set) var node: NodeID?
    /// Whether what it says counts: it has said all that it must say first.
    private(set) var isHeard = false
    /// When it said hello, among all that did.
    private(set) var greeting: UInt64 = 0
    /// What its peer opened it for.
    private(set) var purpose = PeerPurpose.ordinary
    private var name = ""
    private var certificateName: String?
    private(set) var certificateFingerprint: Bytes = []
    private var isJoining = false

    init(_ number: UInt64, of links: PeerLinks, from origin: String) {
        self.links = links
        self.number = number
        self.origin = origin
        self.host = origin.lastIndex(of: ":").map { String(origin[..<$0]) } ?? origin
        self.reader = PeerFrameReader(limits: links.tuning.frames)
        self.heardAt = links.world.now
    }

    func open(_ seed: any LinkSeed) throws(LinkFailure) {
        self.stream = try seed.open(within: self.links.tuning.handshakePatience, user: self)
        self.watchSilence()
    }

    func close() {
        guard !self.isClosed else { return }
        self.isClosed = true
        self.stream?.close()
        self.stream = nil
    }

    /// The certificate that opened this link is withdrawn.
    func dropWithdrawn() { self.end(PeerGreeting.withdrawn.text) }

    private func end(_ trouble: String?) {
        guard !self.isClosed else { return }
        self.close()
        if let trouble {
            let name = self.certificateName.map { "\($0) at \(self.origin)" } ?? self.origin
            self.tell(trouble, of: name)
        }
        self.links.didClose(self)
    }

    /// Reports a trouble under the certificate's name, or else the address: every connection comes
    /// from another port.
    private func tell(_ trouble: String, of name: String) {
        self.links.tell(trouble, of: name, knownAs: self.certificateName ?? self.host)
    }

    private func watchSilence() {
        let world = self.links.world
        world.schedule(at: world.now + Self.silenceMax / 2) { [weak self] in
            guard let self, !self.isClosed else { return }
            if self.links.world.now - self.heardAt > Self.silenceMax {
                // Nobody beats on a link for copies: it ends when there are none.
                self.end(self.purpose == .bulk ? nil : "was silent for \(Self.silenceMax)")
            } else {
                self.watchSilence()
            }
        }
    }

    // MARK: Credit, from any thread

    func credit(_ size: Int) {
        guard size > 0 else { return }
        let mustSignal = self.credit.withLock { credit -> Bool in
            credit.taken += UInt64(size)
            guard credit.taken - credit.signalled >= self.creditStep else { return false }
            credit.signalled = credit.taken
            return true
        }
        if mustSignal { self.links.world.submit { self.stream?.wantsToSend() } }
    }

    private func tellCredit() {
        let isNews = self.credit.withLock { credit -> Bool in
            defer { credit.signalled = credit.taken }
            return credit.taken > credit.signalled
        }
        if isNews { self.stream?.wantsToSend() }
    }

    // MARK: LinkStreamUser

    func opened(by certificate: LinkCertificate?) {
        self.certificateName = certificate?.name
        self.certificateFingerprint = certificate?.fingerprint ?? []
        self.isProven = true
        self.links.didProve(self, name: self.certificateName ?? "")
    }

    func fill(_ output: inout Bytes) {
        if !self.answer.isEmpty {
            swap(&output, &self.answer)
            return
        }
        if self.endsAfterAnswer {
            // The kernel has all bytes of the last fill.
            self.links.world.submit { self.end(nil) }
            return
        }
        let taken = self.credit.withLock { $0.signalled }
        if taken > self.told {
            self.told = taken
            Self.frame(.taken(taken), into: &output)
        }
    }

    func received(_ bytes: Bytes) {
        guard !self.endsAfterAnswer, !self.isJoining else { return }
        self.heardAt = self.links.world.now
        var messages: [PeerFrameReader.Message] = []
        do throws(PeerFrameReader.Violation) {
            try self.reader.take(bytes, into: &messages)
        } catch { return self.end("broke the protocol: \(error)") }
        for framed in messages {
            guard let message = try? PeerMessage(decoding: framed.bytes),
                message.priority == framed.priority
            else { return self.end("sent a message that cannot be decoded") }
            if let node = self.node {
                let goesOn =
                    self.isHeard
                    ? self.take(message, from: node, size: framed.bytes.count) : self.prove(message)
                guard goesOn else { return }
            } else if case .join(let join) = message {
                return self.admit(join)
            } else {
                guard case .hello(let hello) = message else {
                    return self.end("did not send its hello in time")
                }
                guard self.greet(hello) else { return }
            }
        }
    }

    func ended(_ end: LinkEnd) {
        // A peer that goes and comes is told of by the link to it.
        self.end(self.node == nil && end != .closed ? end.description : nil)
    }

    private func take(_ message: PeerMessage, from node: NodeID, size: Int) -> Bool {
        if self.purpose == .bulk {
            guard case .copy = message else {
                self.end("sent an unexpected message on a link for copies")
                return false
            }
        }
        switch message {
        case .hello, .welcome, .join, .admission, .refusal, .starts, .purpose, .taken:
            self.end("sent an unexpected message")
            return false
        case .heartbeat:
            self.tellCredit()
            self.links.events.received(node, message, .none)
        case .consensus, .request, .response, .copy:
            self.links.events.received(node, message, PeerReceipt(self, size: size))
        }
        return true
    }

    /// - Returns: whether it is heard from here on.
    private func greet(_ hello: PeerHello) -> Bool {
        let verdict = PeerGreeting.answer(
            to: hello, certificateName: self.certificateName, own: self.links.own,
            peers: self.links.peers)
        let isWithdrawn = self.links.isWithdrawn(self.certificateFingerprint)
        // Whoever shows such a certificate is remembered as nobody.
        switch isWithdrawn ? verdict : self.remembered(hello, self.levelled(hello, verdict)) {
        case .success where isWithdrawn:
            self.refuse(PeerGreeting.withdrawn, hello.name)
        case .success(let welcome):
            self.node = hello.node
            self.greeting = self.links.drawGreeting()
            self.name = hello.name
            Self.frame(.welcome(welcome), into: &self.answer)
        case .failure(let refusal): self.refuse(refusal, hello.name)
        }
        self.stream?.wantsToSend()
        return self.node != nil
    }

    /// The first messages behind a welcome: what the link is for, if it is not ordinary, and the
    /// starts.
    ///
    /// - Returns: whether the link goes on.
    private func prove(_ message: PeerMessage) -> Bool {
        if case .purpose(let purpose) = message, self.purpose == .ordinary {
            self.purpose = purpose
            return true
        }
        guard case .starts(let starts) = message else {
            self.end("did not say which starts its data directory has seen")
            return false
        }
        guard !self.links.isOutdated(self) else {
            self.end(nil)
            return false
        }
        if let refusal = PeerGreeting.refusal(
            of: self.name, self.links.memory.hear(self.name, starts))
        {
            self.refuse(refusal, self.name)
            self.stream?.wantsToSend()
        } else {
            self.becomeHeard()
        }
        return self.isHeard
    }

    private func becomeHeard() {
        self.isHeard = true
        self.links.didGreet(self)
        self.links.events.greeted(self.name, nil)
    }

    /// The certificate has shown who it is: that its build is too old is told by its name.
    private func levelled(
        _ hello: PeerHello, _ verdict: Result<PeerWelcome, PeerRefusal>
    ) -> Result<PeerWelcome, PeerRefusal> {
        guard case .success = verdict,
            let refusal = PeerGreeting.refusal(
                of: hello.name, build: FeatureLevel(hello.featureLevel),
                in: self.links.level.now)
        else { return verdict }
        self.links.events.greeted(hello.name, refusal)
        return .failure(refusal)
    }

    private func refuse(_ refusal: PeerRefusal, _ name: String) {
        self.endsAfterAnswer = true
        Self.frame(.refusal(refusal), into: &self.answer)
        self.tell("was refused: \(refusal.text)", of: "\(name) at \(self.origin)")
        // Before that nobody knows whether it is who it says it is.
        if refusal.reason == .otherData || refusal.reason == .olderCopy {
            self.links.events.greeted(name, refusal)
        }
    }

    /// Somebody who is no member yet: gets one answer, and that is all.
    private func admit(_ join: PeerJoin) {
        guard self.certificateName == join.name else {
            return self.finish(
                .failure(
                    PeerRefusal(
                        .unknownNode,
                        "the certificate names "
                            + "\(self.certificateName.map { "'\($0)'" } ?? "nobody"), not "
                            + "'\(join.name)'")), of: join)
        }
        guard !self.links.isWithdrawn(self.certificateFingerprint) else {
            return self.finish(.failure(PeerGreeting.withdrawn), of: join)
        }
        self.isJoining = true
        let world = self.links.world
        self.links.events.joining(join, self.certificateFingerprint) { [weak self] result in
            world.perform { [weak self] in self?.finish(result, of: join) }
        }
    }

    private func finish(_ result: Result<PeerAdmission, PeerRefusal>, of join: PeerJoin) {
        guard !self.isClosed, !self.endsAfterAnswer else { return }
        self.endsAfterAnswer = true
        switch result {
        case .success(let admission): Self.frame(.admission(admission), into: &self.answer)
        case .failure(let refusal):
            Self.frame(.refusal(refusal), into: &self.answer)
            self.links.events.trouble(
                "\(join.name) at \(self.origin)", "may not join: \(refusal.text)")
        }
        self.stream?.wantsToSend()
    }

    /// The first meeting is on disk before the peer is heard: what it says from here on counts.
    private func remembered(
        _ hello: PeerHello, _ verdict: Result<PeerWelcome, PeerRefusal>
    ) -> Result<PeerWelcome, PeerRefusal> {
        guard case .success = verdict,
            let refusal = PeerGreeting.refusal(
                of: hello.name, self.links.memory.meet(hello.name, hello.data))
        else { return verdict }
        return .failure(refusal)
    }

    private static func frame(_ message: PeerMessage, into output: inout Bytes) {
        var frames = PeerFrameQueue()
        _ = frames.add(message.encoded(), .vital)
        frames.fill(&output, sizeMax: .max)
    }
}
