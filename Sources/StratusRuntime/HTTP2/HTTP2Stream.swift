import StratusHTTP
import StratusHTTP2
import StratusModel

/// One request on its way through an HTTP/2 connection.
///
/// Lives on the connection's loop. `@unchecked`: a task that answers it holds it, and every entry
/// from there demands the loop.
final class HTTP2Stream: BodySource, @unchecked Sendable {
    let id: Int32
    private(set) var exchange: HTTPExchange!
    private unowned let connection: HTTP2Connection
    var deadlines: ConnectionDeadlines
    /// Nothing more may be said: the client has ended the stream, or we have.
    var isOver = false
    var hasAnswerBegun = false
    var isWhole: Bool
    let bodySizeMax: ByteCount
    private var received = 0
    private var consumed = 0
    /// The client holds its body back until it is told to go on.
    var awaitsContinue: Bool
    var isSendingBlocked = false
    /// The task that waits for the answer's bytes to leave, and down to how many.
    var outputWaiter: CheckedContinuation<Bool, Never>?
    var outputGoal = 0

    init(
        _ id: Int32, _ request: RequestHeadAssembly.Request, isWhole: Bool,
        connection: HTTP2Connection
    ) {
        let shard = connection.shard
        self.id = id
        self.connection = connection
        self.isWhole = isWhole
        self.awaitsContinue = request.expectsContinue && !isWhole
        let plan = shard.handler.plan(for: request.head)
        self.bodySizeMax = plan.bodySizeMax
        let now = connection.loop.now
        self.deadlines = ConnectionDeadlines(shard.limits.timeouts, connectedAt: now)
        self.deadlines.handle(.headBegan, at: now)
        self.deadlines.handle(.headEnded(total: plan.patience.total), at: now)
        self.exchange = HTTPExchange(
            head: request.head, identity: shard.world.drawIdentity(), plan: plan,
            source: self, loop: connection.loop)
        if isWhole { self.bodyEnded() }
        if let length = request.bodyLength, length > self.bodySizeMax.raw { self.refuseBody() }
    }

    // MARK: The connection's side

    func bodyReceived(_ bytes: Bytes) {
        self.awaitsContinue = false
        self.received += bytes.count
        self.deadlines.handle(.bodyReceived(ByteCount(bytes.count)), at: self.connection.loop.now)
        guard self.received <= self.bodySizeMax.raw else { return self.refuseBody() }
        self.exchange.append(bytes)
        self.giveBack()
    }

    func bodyEnded() {
        self.isWhole = true
        self.deadlines.handle(.bodyEnded, at: self.connection.loop.now)
        self.exchange.end(.complete)
    }

    /// Only too large: the handler, who knows the form of its errors, finds out when it reads the
    /// body.
    private func refuseBody() {
        self.exchange.refusal = .bodyTooLarge
        self.exchange.end(.failed(.tooLarge))
        self.connection.session.dropBody(of: self.id)
    }

    /// The client may send as much more as was taken.
    private func giveBack() {
        let taken = self.received - self.exchange.bufferedCount
        self.connection.session.consume(taken - self.consumed, of: self.id)
        self.consumed = taken
    }

    /// Whether the client can go on with the body, so that slowness is its own.
    var isClientsTurn: Bool {
        !self.awaitsContinue && self.exchange.bufferedCount == 0
            && self.connection.session.window(of: self.id) > 1_024
    }

    func resumeOutputWaiter(_ isOpen: Bool) {
        guard let waiter = self.outputWaiter else { return }
        self.outputWaiter = nil
        waiter.resume(returning: isOpen)
    }

    /// Nobody hears the answer any more: its handler is cancelled.
    func drop() {
        guard !self.isOver else { return }
        self.isOver = true
        self.exchange.letGo()
        self.exchange.task?.cancel()
        self.exchange.task = nil
        self.resumeOutputWaiter(false)
    }

    // MARK: The handler's side

    func bodyIsAwaited() {
        guard !self.isOver, self.awaitsContinue, !self.hasAnswerBegun else { return }
        self.awaitsContinue = false
        self.connection.session.sendContinue(self.id)
        self.connection.pumpSoon()
    }

    func bodyWasTaken() {
        guard !self.isOver else { return }
        self.giveBack()
        self.connection.pumpSoon()
    }
}
