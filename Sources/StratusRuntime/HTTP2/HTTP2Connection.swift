import StratusHTTP
import StratusHTTP2
import StratusModel
import StratusTLS

/// One client's HTTP/2 connection: moves bytes between its socket, the session and the handlers of
/// its streams, and keeps the deadlines. Begins where ``HTTPConnection`` hands over.
///
/// - All of it happens on one loop, and everything the loop calls returns without waiting.
/// - Neither direction runs ahead: a body that is not taken closes its stream's window, an answer
///   that the client's windows do not admit is not pulled.
/// - Requests of one read are begun after all of it was looked at, and what they answer at once
///   leaves in one write.
///
/// `@unchecked`: a task that answers a request holds it, and every entry from there demands the
/// loop; see ``EventLoop`` for why this is not an actor.
final class HTTP2Connection: Channel, ServedConnection, @unchecked Sendable {
    enum Stage {
        case open
        /// The last bytes are on their way or out; what still comes in is thrown away.
        case lingering
        case closed
    }

    /// The bytes that every client begins with (RFC 9113 §3.4).
    static let preface = Bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    let loop: EventLoop
    let shard: HTTPServerShard
    let transport: Transport
    let address: String?
    let place: UInt64
    let peer: String
    let certificate: PeerCertificate?
    let session: HTTP2ServerSession
    private var registration: Registration?

    var stage = Stage.open
    /// Those whose handlers have not ended, and those that the client has not ended.
    var streams: [Int32: HTTP2Stream] = [:]
    /// The new streams of this batch of events. They begin when the whole batch has been looked at.
    private var beginning: [HTTP2Stream] = []
    /// Answered before the request was complete, in the order of their times. The rest of it is
    /// thrown away for a moment before the stream is reset: many clients read nothing while they
    /// send.
    private var resetsDue: [(stream: Int32, time: MonotonicTime)] = []
    private var hasInputEnded = false
    private var isPumping = false
    private var isPumpDue = false
    private var output: Bytes = []
    private var outputStart = 0
    private var isSendingBlocked = false

    /// The deadlines of the connection: idleness, a head that does not end, a client that takes
    /// nothing.
    var deadlines: ConnectionDeadlines
    private var isHeadTold = false
    private var isActiveTold = false
    var timer: EventLoop.Timer?
    var timerTime = MonotonicTime(nanoseconds: .max)
    private(set) var stageDeadline = MonotonicTime(nanoseconds: .max)
    private var lingerEnd = MonotonicTime(nanoseconds: .max)
    private var lingeredCount = 0
    /// Another connection has its place, or the server stops.
    private var isGivingWay = false
    /// No further stream is served.
    private var isDraining = false
    private var isFloodTold = false
    /// The callers of earlier requests that need not be proved again.
    let callers = KnownCallers()
    /// Where a whole request is laid out while its handler is asked.
    var laid: Bytes = []

    init(of old: HTTPConnection, shard: HTTPServerShard) {
        self.loop = old.loop
        self.shard = shard
        self.transport = old.transport
        self.address = old.address
        self.place = old.place
        self.peer = old.peer
        self.certificate = old.certificate
        self.registration = old.registration
        var limits = shard.limits.http2
        limits.message = shard.limits.message
        self.session = HTTP2ServerSession(limits)
        self.deadlines = ConnectionDeadlines(
            shard.limits.timeouts, connectedAt: old.loop.now)
    }

    func open(_ received: Bytes) {
        self.shard.http2Metrics?.connections.add(1)
        guard let registration = self.registration else { return self.close(isCut: true) }
        self.loop.replace(registration, with: self)
        if !received.isEmpty {
            received.withUnsafeBufferPointer { self.session.receive($0, at: self.loop.now) }
        }
        // TLS may hold more already.
        self.readAll()
        self.pump()
        self.settle()
    }

    // MARK: Readiness

    func becameReady(_ readiness: Readiness) {
        if !readiness.isDisjoint(with: .broken) { return self.close(isCut: true) }
        if readiness.contains(self.transport.readNeeds) { self.readAll() }
        self.pump()
        self.settle()
    }

    private func readAll() {
        repeat {
            guard self.wantsInput else { return }
            let room = self.shard.room
            switch self.transport.read(into: UnsafeMutableRawBufferPointer(room)) {
            case .moved(let count): self.received(UnsafeBufferPointer(rebasing: room[..<count]))
            case .blocked: return
            case .ended:
                self.hasInputEnded = true
                return
            case .failed: return self.close(isCut: true)
            }
        } while self.transport.hasPending && self.stage != .closed
    }

    private var wantsInput: Bool {
        guard !self.hasInputEnded else { return false }
        switch self.stage {
        case .closed: return false
        case .lingering: return true
        // A client that does not take what we say gets nothing more to be answered.
        case .open: return self.unsentCount < self.shard.limits.http2OutputSizeMax.raw
        }
    }

    var unsentCount: Int { self.output.count - self.outputStart }

    private func received(_ bytes: UnsafeBufferPointer<UInt8>) {
        if self.stage == .lingering {
            self.lingeredCount += bytes.count
            if self.lingeredCount > self.shard.limits.lingerSizeMax.raw {
                return self.close(isCut: true)
            }
            self.stageDeadline = min(
                self.loop.now + self.shard.limits.lingerDeadline, self.lingerEnd)
            return
        }
        self.session.receive(bytes, at: self.loop.now)
        self.handleEvents()
    }

    // MARK: Events

    private func handleEvents() {
        let wasPumping = self.isPumping
        self.isPumping = true
        defer { self.isPumping = wasPumping }
        while true {
            let events = self.session.takeEvents()
            guard !events.isEmpty else { return }
            for event in events { self.handle(event) }
            let beginning = self.beginning
            self.beginning = []
            for stream in beginning { self.start(stream) }
        }
    }

    private func handle(_ event: HTTP2ServerSession.Event) {
        switch event {
        case .request(let id, let request, let isWhole):
            guard self.shard.admission.enterRequest(self.address) else {
                self.session.handlerEnded(id)
                return self.session.reset(id, .refusedStream)
            }
            self.shard.http2Metrics?.streams.add(1)
            let stream = HTTP2Stream(id, request, isWhole: isWhole, connection: self)
            self.streams[id] = stream
            self.beginning.append(stream)
        case .refused(let id, let refusal):
            self.writeRefusal(refusal, to: id)
            self.session.handlerEnded(id)
            self.resetLater(id)
        case .body(let id, let bytes):
            guard let stream = self.streams[id], !stream.isOver else {
                return self.session.consume(bytes.count, of: id)
            }
            stream.bodyReceived(bytes)
        case .bodyEnded(let id):
            self.streams[id]?.bodyEnded()
        case .taken(let id, let count):
            self.took(count, of: id)
        case .closed(let id, _):
            self.resetsDue.removeAll { $0.stream == id }
            guard let stream = self.streams.removeValue(forKey: id) else { return }
            stream.drop()
        }
    }

    private func took(_ count: Int, of id: Int32) {
        guard let stream = self.streams[id], !stream.isOver else { return }
        let pending = self.session.pendingCount(of: id)
        if stream.isSendingBlocked {
            stream.deadlines.handle(.sent(ByteCount(count)), at: self.loop.now)
            if pending == 0 {
                stream.isSendingBlocked = false
                stream.deadlines.handle(.sendingDrained, at: self.loop.now)
            }
        }
        if stream.outputWaiter != nil, pending <= stream.outputGoal {
            stream.resumeOutputWaiter(true)
        }
    }

    private func start(_ stream: HTTP2Stream) {
        // Reset by its client in the same read: no work is begun for it.
        guard !stream.isOver, self.stage == .open else { return self.ended(stream) }
        let exchange = stream.exchange!
        exchange.hasBegun = true
        let step = self.answerAtOnce(exchange)
        if let response = step?.response {
            exchange.task = Task.immediate(executorPreference: self.loop) {
                await self.answer(stream, with: response)
            }
            if stream.isOver { exchange.task = nil }
            return
        }
        let plan = step?.plan ?? exchange.plan
        let request = HTTPRequest(
            head: exchange.head, body: exchange.body(), peer: self.peer,
            identity: exchange.identity, isSecure: self.transport.session != nil,
            certificate: self.certificate, longWork: self.shard.longWork, version: .http2,
            patience: plan.patience, callers: self.callers)
        let task = Task.immediate(executorPreference: self.loop) {
            let response = await self.shard.respond(to: request, by: plan)
            await self.answer(stream, with: response)
        }
        guard !stream.isOver else { return }
        exchange.task = task
        if self.isGivingWay || self.shard.isStopping { exchange.hurry() }
    }

    /// The handler of a stream is done with it.
    func ended(_ stream: HTTP2Stream) {
        self.session.handlerEnded(stream.id)
        self.shard.admission.leaveRequest(self.address)
        self.shard.http2Metrics?.streams.add(-1)
    }

    /// A complete answer to a request that may not be: what is left of it is not wanted.
    func finish(_ stream: HTTP2Stream) {
        stream.isOver = true
        stream.exchange.task = nil
        stream.exchange.letGo()
        if !stream.isWhole {
            self.session.dropBody(of: stream.id)
            self.resetLater(stream.id)
        }
        self.streams[stream.id] = nil
    }

    /// The refusal is written; the handler's own answer is not heard.
    func finishRefused(_ stream: HTTP2Stream) {
        self.session.dropBody(of: stream.id)
        self.resetLater(stream.id)
        self.streams[stream.id] = nil
    }

    private func resetLater(_ id: Int32) {
        // A client that has ended it by itself is done with it.
        guard self.session.isOpen(id) else { return }
        self.resetsDue.append((id, self.loop.now + self.shard.limits.lingerDeadline))
    }

    /// When the first of the streams that linger is reset.
    var nextReset: MonotonicTime? { self.resetsDue.first?.time }

    // MARK: Output

    /// Something outside of the socket has happened. Once for all that happens in this round of the
    /// loop.
    func pumpSoon() {
        guard !self.isPumping, !self.isPumpDue, self.stage == .open else { return }
        self.isPumpDue = true
        self.loop.submit {
            self.isPumpDue = false
            guard self.stage == .open else { return }
            self.pump()
            self.settle()
        }
    }

    /// Moves what the session has to say to where it leaves from, as far as there is room.
    func gather() {
        let sizeMax = self.shard.limits.http2OutputSizeMax.raw
        guard self.unsentCount < sizeMax else { return }
        if self.output.capacity == 0 { swap(&self.output, &self.shard.spareOutput) }
        self.session.send(into: &self.output, sizeMax: self.outputStart + sizeMax)
        guard !self.resetsDue.isEmpty, self.unsentCount < sizeMax else { return }
        let now = self.loop.now
        let due = self.resetsDue.prefix { self.isDraining || $0.time <= now }
        guard !due.isEmpty else { return }
        self.resetsDue.removeFirst(due.count)
        for (stream, _) in due { self.session.reset(stream, .none) }
        self.session.send(into: &self.output, sizeMax: self.outputStart + sizeMax)
    }

    /// Handles what happened and sends what came of it, as much as the socket takes.
    private func pump() {
        guard !self.isPumping, self.stage == .open else { return }
        self.isPumping = true
        defer { self.isPumping = false }
        while self.stage == .open {
            self.handleEvents()
            self.gather()
            self.handleEvents()
            guard self.unsentCount > 0 else { break }
            guard self.write() else { return }
        }
        self.returnOutput()
    }

    /// - Returns: whether all of it is gone.
    private func write() -> Bool {
        while self.outputStart < self.output.count {
            let transfer = self.output.withUnsafeBytes {
                self.transport.write(UnsafeRawBufferPointer(rebasing: $0[self.outputStart...]))
            }
            switch transfer {
            case .moved(let count):
                self.outputStart += count
                if self.isSendingBlocked {
                    self.deadlines.handle(.sent(ByteCount(count)), at: self.loop.now)
                }
            case .blocked:
                if self.outputStart > self.shard.limits.http2OutputSizeMax.raw {
                    self.output.removeFirst(self.outputStart)
                    self.outputStart = 0
                }
                self.isSendingBlocked = true
                self.deadlines.handle(.sendingBlocked, at: self.loop.now)
                return false
            case .ended, .failed:
                self.close(isCut: true)
                return false
            }
        }
        self.output.removeAll(keepingCapacity: true)
        self.outputStart = 0
        if self.isSendingBlocked {
            self.isSendingBlocked = false
            self.deadlines.handle(.sendingDrained, at: self.loop.now)
        }
        return true
    }

    /// An idle connection owns no buffer.
    private func returnOutput() {
        guard self.output.isEmpty, self.output.capacity > 0 else { return }
        self.outputStart = 0
        if self.shard.spareOutput.capacity == 0
            && self.output.capacity <= 2 * self.shard.limits.http2OutputSizeMax.raw
        {
            self.output.removeAll(keepingCapacity: true)
            swap(&self.output, &self.shard.spareOutput)
        } else {
            self.output = []
        }
    }

    // MARK: What next

    /// After anything happened: what to wait for next.
    private func settle() {
        guard self.stage != .closed else { return }
        if self.stage == .open { self.endIfDone() }
        guard self.stage != .closed, let registration = self.registration else { return }
        if self.stage == .lingering && self.hasInputEnded { return self.close(isCut: false) }
        var interest: Readiness = []
        if self.wantsInput {
            interest.formUnion(self.transport.readNeeds)
            // What TLS holds already is no news to the loop.
            if self.transport.hasPending { self.readSoon() }
        }
        if self.unsentCount > 0 { interest.formUnion(self.transport.writeNeeds) }
        self.loop.watch(registration, for: interest)
        self.tellDeadlines()
        self.watchDeadline()
    }

    private func readSoon() {
        self.loop.submit {
            guard self.stage != .closed else { return }
            self.readAll()
            self.pump()
            self.settle()
        }
    }

    private func tellDeadlines() {
        guard self.stage == .open else { return }
        let now = self.loop.now
        if self.session.isInsideHead != self.isHeadTold {
            self.isHeadTold = self.session.isInsideHead
            self.isActiveTold = false
            self.deadlines.handle(self.isHeadTold ? .headBegan : .requestEnded, at: now)
        }
        guard !self.isHeadTold else { return }
        let isActive = !self.streams.isEmpty
        guard isActive != self.isActiveTold else { return }
        self.isActiveTold = isActive
        if isActive {
            // Streams have deadlines of their own.
            self.deadlines.handle(.headEnded(total: .seconds(1 << 32)), at: now)
            self.deadlines.handle(.bodyEnded, at: now)
        } else {
            self.deadlines.handle(.requestEnded, at: now)
        }
    }

    private func endIfDone() {
        let code = self.session.sentGoAway
        if !self.isFloodTold, self.session.flood != nil || (code?.rawValue ?? 0) != 0 {
            self.isFloodTold = true
            self.shard.http2Metrics?.goneAway(code ?? .enhanceYourCalm)
        }
        if self.hasInputEnded {
            for id in self.streams.keys.sorted() where self.streams[id]?.isWhole == false {
                self.streams.removeValue(forKey: id)?.drop()
            }
            self.hurryHeld()
            // A client that has closed its half gets the answers to what is whole.
            if self.streams.isEmpty && self.unsentCount == 0 { return self.close(isCut: false) }
        }
        guard self.unsentCount == 0, !self.session.wantsWrite else { return }
        if self.session.isOver || self.isDraining && self.session.openCount == 0 { self.linger() }
    }

    // MARK: Closing

    private func linger() {
        if self.hasInputEnded { return self.close(isCut: false) }
        self.stage = .lingering
        self.dropStreams()
        self.transport.endWriting()
        self.stageDeadline = self.loop.now + self.shard.limits.lingerDeadline
        self.lingerEnd = self.loop.now + self.shard.limits.lingerTotal
    }

    /// Streams whose handlers wait for something are answered now.
    private func hurryHeld() {
        for id in self.streams.keys.sorted() { self.streams[id]?.exchange.hurry() }
    }

    private func dropStreams() {
        for id in self.streams.keys.sorted() { self.streams[id]?.drop() }
        self.streams = [:]
    }

    func close(isCut: Bool) {
        guard self.stage != .closed else { return }
        self.stage = .closed
        if let registration = self.registration { self.loop.deregister(registration) }
        self.registration = nil
        if let timer = self.timer { self.loop.cancel(timer) }
        self.timer = nil
        self.transport.close(isCut: isCut)
        self.dropStreams()
        self.output = []
        self.outputStart = 0
        self.shard.http2Metrics?.connections.add(-1)
        self.shard.didClose(self)
    }

    /// For a graceful stop: clients are told first, what they have sent until they know is
    /// answered, then the last stream is named and the rest awaited.
    func closeWhenDone() {
        guard self.stage == .open, !self.isDraining, !self.isGivingWay else { return }
        self.isGivingWay = true
        self.session.announceShutdown()
        self.readAll()
        self.hurryHeld()
        self.pump()
        self.settle()
        _ = self.loop.schedule(at: self.loop.now + self.shard.limits.stopGrace) {
            guard self.stage == .open, !self.isDraining else { return }
            self.isDraining = true
            self.session.goAway()
            self.pump()
            self.settle()
        }
    }
}
