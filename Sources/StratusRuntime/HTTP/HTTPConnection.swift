import StratusHTTP
import StratusModel
import StratusTLS

/// One client's connection: moves bytes between its socket, the protocol's state machine and the
/// handler, and keeps the deadlines.
///
/// - All of it happens on one loop, and everything the loop calls returns without waiting.
/// - Neither direction runs ahead: a body that is not asked for is not read, an answer that is not
///   taken is not pulled. What waits in memory is bounded by ``HTTPServerLimits``.
/// - An idle connection owns no buffers: it reads and writes through its shard's.
///
/// `@unchecked`: a task that answers a request holds it, and every entry from there demands the
/// loop; see ``EventLoop`` for why this is not an actor.
final class HTTPConnection: Channel, BodySource, ServedConnection, @unchecked Sendable {
    /// The connection's activity, beside the state machine's own phase.
    enum Stage {
        case handshake
        case open
        /// The last answer is on its way or out; what still comes in is thrown away.
        case lingering
        case closed
    }

    let loop: EventLoop
    let shard: HTTPServerShard
    let transport: Transport
    /// Without port; nil on a Unix socket.
    let address: String?
    let place: UInt64
    let peer: String
    private(set) var certificate: PeerCertificate?

    var stage: Stage
    var machine: HTTPServerConnection
    var exchange: HTTPExchange?
    /// The callers of earlier requests that need not be proved again.
    private let callers = KnownCallers()

    /// Received and not yet used: only while a request is in progress or a body is not asked for.
    var input: Bytes = []
    var inputStart = 0
    var hasInputEnded = false
    private var isInputPaused = false
    /// Whether the deadlines know that the client need not send.
    private var isOurTurn = false
    /// Written and not yet sent.
    var output: Bytes = []
    var outputStart = 0
    /// The socket did not take everything.
    var isSendingBlocked = false
    /// The waiter that resumes when the output shrinks.
    var outputWaiter: CheckedContinuation<Bool, Never>?
    var isAdvancing = false

    var registration: Registration?
    var timer: EventLoop.Timer?
    var timerTime = MonotonicTime(nanoseconds: .max)
    /// The deadlines of an open connection.
    var deadlines: ConnectionDeadlines
    /// The deadline of the handshake, or of lingering.
    private(set) var stageDeadline: MonotonicTime
    /// Whether the deadlines know of the head that is arriving.
    private var isHeadTold = false
    /// Whether the deadlines know of the request in progress, and when it began.
    private var isRequestTold = false
    private var requestStart: MonotonicTime
    private var lingeredCount = 0
    private var lingerEnd = MonotonicTime(nanoseconds: .max)
    private var hasCarriedRequest = false
    /// Whether the bytes received so far may be the beginning of HTTP/2's preface.
    private var mayBeHTTP2: Bool
    /// Another connection has its place.
    private var isGivingWay = false
    /// Until when an end waits for the first request.
    private var stopGraceEnd = MonotonicTime(nanoseconds: .min)

    init(
        transport: Transport, from address: SocketAddress, countingFor host: String?,
        at place: UInt64, isSecure: Bool, shard: HTTPServerShard
    ) {
        self.loop = shard.loop
        self.shard = shard
        self.transport = transport
        self.address = host
        self.place = place
        if case .ip(let text, _) = address {
            self.peer = text
        } else {
            self.peer = TrustedProxies.unix
        }
        self.stage = isSecure ? .handshake : .open
        self.mayBeHTTP2 = !isSecure && shard.plainHTTP2
        self.machine = HTTPServerConnection(limits: shard.limits.message)
        let now = shard.loop.now
        self.deadlines = ConnectionDeadlines(shard.limits.timeouts, connectedAt: now)
        self.stageDeadline = now + shard.limits.handshakeDeadline
        self.requestStart = now
    }

    func open() {
        do throws(SocketError) {
            self.registration = try self.loop.register(
                self.transport.descriptor, for: .readable, self)
        } catch {
            return self.close(isCut: true)
        }
        self.watchDeadline()
    }

    // MARK: Readiness

    func becameReady(_ readiness: Readiness) {
        if !readiness.isDisjoint(with: .broken) {
            // Both directions are dead: nothing that could still be read can be answered.
            return self.close(isCut: true)
        }
        if self.stage == .handshake {
            guard self.goOnWithHandshake() else { return self.settle() }
        }
        // Under TLS either direction may have waited for either readiness.
        if !self.output.isEmpty && readiness.contains(self.transport.writeNeeds) {
            self.flush()
            // Requests may have waited for their predecessors' answers to leave.
            if self.stage == .open && !self.input.isEmpty && !self.isOutputBlocked {
                self.advance()
            }
        }
        if self.stage != .closed && readiness.contains(self.transport.readNeeds) { self.readAll() }
        self.settle()
    }

    /// - Returns: whether it is done.
    private func goOnWithHandshake() -> Bool {
        switch self.transport.handshake() {
        case .moved:
            self.certificate = self.transport.session?.peerCertificate
            self.stage = .open
            self.deadlines = ConnectionDeadlines(
                self.shard.limits.timeouts, connectedAt: self.loop.now)
            if self.transport.session?.applicationProtocol == "h2" {
                self.handOver([])
                return false
            }
            if self.endsSoon { self.beginStopGrace() }
            return true
        case .blocked(let needs):
            if let registration = self.registration { self.loop.watch(registration, for: needs) }
        case .ended, .failed:
            self.close(isCut: false)
        }
        return false
    }

    /// After anything happened: what to wait for next.
    func settle() {
        guard self.stage != .closed else { return }
        if self.hasInputEnded && self.mayBeHTTP2 && !self.input.isEmpty {
            self.mayBeHTTP2 = false
            self.advance()
        }
        if self.hasInputEnded {
            // Most clients that close their half of a long wait are gone.
            self.exchange?.hurry()
            if self.input.isEmpty { self.concludeInput() }
        }
        if self.stage == .open && self.machine.mustClose && self.exchange == nil
            && self.output.isEmpty
        {
            self.linger()
            guard self.stage != .closed else { return }
        }
        self.endIfStopping()
        guard self.stage != .closed else { return }
        if self.stage != .handshake, let registration = self.registration {
            var interest: Readiness = []
            let wasPaused = self.isInputPaused
            self.pauseInput(!self.wantsInput)
            // What TLS holds already is no news to the loop.
            if wasPaused && !self.isInputPaused && self.transport.hasPending { self.readSoon() }
            if !self.isInputPaused { interest.formUnion(self.transport.readNeeds) }
            if !self.output.isEmpty { interest.formUnion(self.transport.writeNeeds) }
            self.loop.watch(registration, for: interest)
        }
        self.tellDeadlines()
        self.watchDeadline()
    }

    /// A request that is answered as soon as it is read, like most, never troubles the deadlines:
    /// they are told of what is still unfinished when the loop moves on.
    private func tellDeadlines() {
        guard self.stage == .open else { return }
        guard let exchange = self.exchange else {
            if !self.isHeadTold && self.machine.phase == .head {
                self.isHeadTold = true
                self.deadlines.handle(.headBegan, at: self.loop.now)
            }
            return
        }
        guard !self.isRequestTold else { return }
        self.isRequestTold = true
        if !self.isHeadTold { self.deadlines.handle(.headBegan, at: self.requestStart) }
        self.isHeadTold = false
        self.deadlines.handle(
            .headEnded(total: exchange.patience.total), at: self.requestStart)
        if case .arriving = exchange.state {
            if self.isOurTurn { self.deadlines.handle(.readingPaused, at: self.loop.now) }
        } else {
            self.deadlines.handle(.bodyEnded, at: self.loop.now)
        }
    }

    /// The answer is complete: the next request may take its time.
    func tellRequestEnded() {
        self.isHeadTold = false
        self.deadlines.handle(.requestEnded, at: self.loop.now)
    }

    // MARK: Reading

    private func pauseInput(_ isPaused: Bool) {
        self.isInputPaused = isPaused
        // A client that waits for the go-ahead waits for us.
        let isOurTurn = isPaused || self.machine.awaitsContinue
        guard isOurTurn != self.isOurTurn else { return }
        self.isOurTurn = isOurTurn
        if self.exchange != nil && self.isRequestTold {
            self.deadlines.handle(isOurTurn ? .readingPaused : .readingResumed, at: self.loop.now)
        }
    }

    private var wantsInput: Bool {
        guard !self.hasInputEnded else { return false }
        switch self.stage {
        case .handshake, .closed: return false
        case .lingering: return true
        case .open:
            // While a request is being answered some input may wait, and the end of it is heard.
            return !self.isBodyBlocked && !self.isOutputBlocked
                && self.input.count - self.inputStart < self.shard.limits.bodyBufferSizeMax.raw
        }
    }

    /// The handler has not asked for what is here already.
    private var isBodyBlocked: Bool {
        guard let exchange = self.exchange else { return false }
        return exchange.bufferedCount >= self.shard.limits.bodyBufferSizeMax.raw
    }

    /// The client does not take its answers, so it gets no more of them.
    var isOutputBlocked: Bool {
        self.output.count - self.outputStart >= self.shard.limits.outputBufferSizeMax.raw
    }

    private func readAll() {
        // One read tells nearly always all there is; the loop says when there is more.
        repeat {
            guard self.wantsInput else { return }
            let room = self.shard.room
            switch self.transport.read(into: UnsafeMutableRawBufferPointer(room)) {
            case .moved(let count):
                self.received(UnsafeBufferPointer(rebasing: room[..<count]))
            case .blocked: return
            case .ended:
                self.hasInputEnded = true
                return
            case .failed:
                return self.close(isCut: true)
            }
        } while self.transport.hasPending && self.stage != .closed
    }

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
        if self.mayBeHTTP2, self.isPreface(bytes) { return }
        guard self.input.isEmpty else {
            self.input += bytes
            return self.advance()
        }
        // The common case: whole requests, used where they lie.
        var at = 0
        let mayGoOn = self.consume(bytes.span, &at)
        if at < bytes.count { self.input = Bytes(bytes[at...]) }
        if mayGoOn { self.advance() } else { self.flush() }
    }

    /// A connection that begins with HTTP/2's preface goes on in HTTP/2 (RFC 9113 §3.3).
    /// - Returns: whether the bytes are kept until more is known, or handed over.
    private func isPreface(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let begun = self.input + bytes
        let preface = HTTP2Connection.preface
        guard begun.prefix(preface.count).elementsEqual(preface.prefix(begun.count)) else {
            self.mayBeHTTP2 = false
            return false
        }
        if begun.count < preface.count { self.input = begun } else { self.handOver(begun) }
        return true
    }

    /// The rest of this connection is HTTP/2's.
    private func handOver(_ received: Bytes) {
        self.stage = .closed
        if let timer = self.timer { self.loop.cancel(timer) }
        self.timer = nil
        self.machine.abandon()
        self.input = []
        self.shard.handOver(self, received)
    }

    /// Uses up the input as far as it goes, then sends what came of it.
    func advance() {
        // An answer that is given at once comes back here from within: the loop below goes on with
        // it.
        guard !self.isAdvancing, self.stage == .open else { return }
        self.isAdvancing = true
        repeat {
            self.startHandler()
            if self.isOutputBlocked { self.flush() }
            guard self.stage == .open, !self.isOutputBlocked else { break }
        } while self.consumeInput()
        self.isAdvancing = false
        self.flush()
    }

    /// - Returns: whether there may be more to do.
    private func consumeInput() -> Bool {
        var at = self.inputStart
        let mayGoOn = self.consume(self.input.span, &at)
        if at == self.input.count {
            self.input = []
            self.inputStart = 0
        } else {
            self.inputStart = at
        }
        return mayGoOn
    }

    /// Feeds the state machine until it needs something else: more input (false), or that the
    /// handler be started or asked (true).
    private func consume(_ bytes: Span<UInt8>, _ at: inout Int) -> Bool {
        while true {
            if let exchange = self.exchange {
                if self.isBodyBlocked { return !exchange.hasBegun }
            } else if self.isOutputBlocked {
                return true
            } else if self.takeView(bytes, &at) {
                continue
            }
            switch self.machine.next(bytes, &at) {
            case .needsMore:
                return self.exchange?.hasBegun == false
            case .head(let head):
                self.begin(head)
            case .body(let range):
                if self.isRequestTold {
                    self.deadlines.handle(.bodyReceived(ByteCount(range.count)), at: self.loop.now)
                }
                self.exchange?.append(bytes.extracting(range).withUnsafeBufferPointer { Bytes($0) })
            case .bodyEnd:
                if self.isRequestTold { self.deadlines.handle(.bodyEnded, at: self.loop.now) }
                self.exchange?.end(.complete)
            case .waiting:
                return self.exchange?.hasBegun == false
            case .refused(let refusal):
                self.refuse(refusal)
                return self.exchange?.hasBegun == false
            case .closed:
                return false
            }
        }
    }

    /// The peer has said its last byte and all of it is used; it may still listen.
    private func concludeInput() {
        guard self.stage == .open else { return self.close(isCut: false) }
        if let exchange = self.exchange {
            // A client that has closed its half gets its answer, if its request is whole.
            guard case .arriving = exchange.state else { return }
            self.dropExchange()
        }
        self.machine.abandon()
    }

    // MARK: Requests

    private func begin(_ head: RequestHead) {
        self.begin(
            head, self.shard.world.drawIdentity(), by: self.shard.handler.plan(for: head))
    }

    private func begin(_ head: RequestHead, _ identity: RequestIdentity, by plan: RequestPlan) {
        self.hasCarriedRequest = true
        self.machine.bodySizeMax = plan.bodySizeMax
        if self.endsSoon { self.machine.stopKeepingAlive() }
        self.exchange = HTTPExchange(
            head: head, identity: identity, plan: plan, source: self, loop: self.loop)
        self.isRequestTold = false
        self.requestStart = self.loop.now
    }

    /// Takes a request whose head lies whole in the input, and answers it if it can be done at once.
    ///
    /// - Returns: false where the state machine has to be asked what there is.
    private func takeView(_ bytes: Span<UInt8>, _ at: inout Int) -> Bool {
        let start = at
        guard let view = self.machine.nextView(bytes, &at) else { return false }
        let lying = bytes.extracting(start..<bytes.count)
        let identity = self.shard.world.drawIdentity()
        var step = AnswerStep.plan
        if view.isWhole(in: lying) {
            self.hasCarriedRequest = true
            if self.endsSoon { self.machine.stopKeepingAlive() }
            step = self.answer(view, lying, identity)
            if case .done = step {
                self.machine.endAnswer(&at)
                self.tellRequestEnded()
                return true
            }
        }
        let head = self.machine.keptHead(lying)
        if case .task(let plan) = step {
            self.begin(head, identity, by: plan)
        } else {
            self.begin(head, identity, by: self.shard.handler.plan(for: head))
        }
        return true
    }

    private func answer(
        _ view: RequestView, _ bytes: Span<UInt8>, _ identity: RequestIdentity
    ) -> AnswerStep {
        self.borrowOutput()
        var output: Bytes = []
        swap(&output, &self.output)
        var answer = self.machine.answer(behind: consume output, date: self.shard.dateLine())
        let step = self.shard.handler.answer(
            view, bytes,
            SurfaceCall(
                identity: identity, peer: self.peer, isSecure: self.transport.session != nil,
                version: .http1, callers: self.callers), into: &answer)
        if case .done = step {
            self.output = answer.taken(isAnswered: true)
        } else {
            self.output = answer.taken(isAnswered: false)
        }
        return step
    }

    /// A message that breaks the rules is answered here, unless it is only too large: then the
    /// handler, who knows the form of its errors, finds out when it reads the body.
    private func refuse(_ refusal: HTTPRefusal) {
        if let exchange = self.exchange {
            if refusal == .bodyTooLarge && !self.machine.hasResponseBegun {
                exchange.refusal = refusal
                return exchange.end(.failed(.tooLarge))
            }
            self.dropExchange()
        }
        self.writeRefusal(refusal)
    }

    func writeRefusal(_ refusal: HTTPRefusal) {
        self.shard.admission.count(refusal)
        self.borrowOutput()
        let isUnanswered = !self.machine.hasResponseBegun
        let form = isUnanswered ? self.shard.handler.form(of: refusal) : nil
        self.machine.writeRefusal(
            refusal, headers: form?.headers ?? HeaderFields(), body: form?.body,
            prewritten: self.shard.dateLine(), into: &self.output)
    }

    private func startHandler() {
        guard let exchange = self.exchange, !exchange.hasBegun else { return }
        exchange.hasBegun = true
        let request = HTTPRequest(
            head: exchange.head, body: exchange.body(), peer: self.peer,
            identity: exchange.identity, isSecure: self.transport.session != nil,
            certificate: self.certificate, longWork: self.shard.longWork,
            patience: exchange.patience, callers: self.callers)
        let task = Task.immediate(executorPreference: self.loop) {
            let response = await self.shard.respond(to: request, by: exchange.plan)
            await self.answer(exchange, with: response)
        }
        // An answer given at once has let go of its exchange already.
        guard self.exchange === exchange else { return }
        exchange.task = task
        if self.endsSoon { exchange.hurry() }
    }

    /// Ends the request without an answer: its handler is cancelled, what it answers is dropped.
    func dropExchange() {
        guard let exchange = self.exchange else { return }
        self.exchange = nil
        exchange.letGo()
        exchange.task?.cancel()
        exchange.task = nil
        self.resumeOutputWaiter(false)
    }

    func bodyIsAwaited() {
        self.borrowOutput()
        self.machine.writeContinue(into: &self.output)
        self.goOn()
    }

    func bodyWasTaken() {
        if self.isInputPaused || !self.input.isEmpty { self.goOn() }
    }

    /// Something outside of the socket has happened. Not at once: the caller may stand in the
    /// middle of the handler, who must not be entered again.
    private func goOn() {
        guard !self.isAdvancing, self.stage == .open else { return }
        self.loop.submit {
            guard self.stage == .open else { return }
            self.advance()
            self.settle()
        }
    }

    private func readSoon() {
        self.loop.submit {
            guard self.stage == .open || self.stage == .lingering else { return }
            self.readAll()
            self.settle()
        }
    }

    // MARK: Closing

    /// Everything is said. The peer is told, and given a moment to take it: closing at once would
    /// throw away what it has not read yet if more of its own is on the way (RFC 9112 §9.6).
    func linger() {
        if self.hasInputEnded { return self.close(isCut: false) }
        self.stage = .lingering
        self.input = []
        self.inputStart = 0
        self.transport.endWriting()
        self.stageDeadline = self.loop.now + self.shard.limits.lingerDeadline
        self.lingerEnd = self.loop.now + self.shard.limits.lingerTotal
    }

    func close(isCut: Bool) {
        guard self.stage != .closed else { return }
        self.stage = .closed
        if let registration = self.registration { self.loop.deregister(registration) }
        self.registration = nil
        if let timer = self.timer { self.loop.cancel(timer) }
        self.timer = nil
        self.transport.close(isCut: isCut)
        self.machine.abandon()
        self.dropExchange()
        self.output = []
        self.outputStart = 0
        self.input = []
        self.shard.didClose(self)
    }

    /// Whether it ends after what is in flight.
    var endsSoon: Bool { self.isGivingWay || self.shard.isStopping }

    /// For a graceful stop: what the kernel holds already is read and answered, then it closes. A
    /// connection that has carried nothing yet is given a moment: its client has only just
    /// connected, and has no other answer to learn from that it was too late.
    func closeWhenDone() {
        self.isGivingWay = true
        switch self.stage {
        case .closed, .lingering: return
        case .handshake:
            self.stageDeadline = min(
                self.stageDeadline, self.loop.now + self.shard.limits.stopHandshakeDeadline)
        case .open:
            self.beginStopGrace()
            self.readAll()
            if self.stage == .open && self.machine.phase != .idle {
                self.machine.stopKeepingAlive()
            }
            self.exchange?.hurry()
        }
        self.settle()
    }

    private func beginStopGrace() {
        if self.hasCarriedRequest { return }
        self.stopGraceEnd = self.loop.now + self.shard.limits.stopGrace
        _ = self.loop.schedule(at: self.stopGraceEnd) { self.settle() }
    }

    /// Nothing is in flight while the server stops: this connection is over.
    private func endIfStopping() {
        guard self.endsSoon, self.stage == .open, self.exchange == nil,
            self.machine.phase == .idle, self.output.isEmpty, self.input.isEmpty,
            self.hasCarriedRequest || self.loop.now >= self.stopGraceEnd
        else { return }
        self.machine.stopKeepingAlive()
        self.linger()
    }
}
