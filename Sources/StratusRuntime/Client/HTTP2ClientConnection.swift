import StratusHTTP
import StratusHTTP2
import StratusModel
import StratusTLS

/// One connection of an ``HTTP2Client``: moves bytes between its socket and the session, and the
/// session's events to the requests.
///
/// `@unchecked`: everything happens on the client's loop.
final class HTTP2ClientConnection: Channel, @unchecked Sendable {
    private let client: HTTP2Client
    private let loop: EventLoop
    private let transport: Transport
    private var registration: Registration?
    private let session: HTTP2ClientSession
    private var streams: [Int32: HTTP2Client.Pending] = [:]
    private var output: Bytes = []
    private var outputStart = 0
    private var room = Bytes(repeating: 0, count: 32 << 10)
    private var isPumping = false
    private var isPumpDue = false
    private var hasAnswered = false
    private var heardAt: MonotonicTime
    private var pingedAt: MonotonicTime?
    private var timer: EventLoop.Timer?

    init(_ transport: Transport, _ registration: Registration, of client: HTTP2Client) {
        self.client = client
        self.loop = client.loop
        self.transport = transport
        self.registration = registration
        self.session = HTTP2ClientSession(client.limits.session)
        self.heardAt = client.loop.now
        client.loop.replace(registration, with: self)
        self.watchSilence()
        self.pumpSoon()
    }

    /// Whether one more stream may be opened now.
    var hasRoom: Bool {
        guard self.registration != nil, !self.session.isGoingAway else { return false }
        var countMax = min(self.session.streamCountMax, self.client.limits.streamCountMax)
        if !self.hasAnswered, let first = self.client.limits.firstStreamCountMax {
            countMax = min(countMax, first)
        }
        return self.streams.count < countMax
            && self.output.count - self.outputStart < self.client.limits.outputSizeMax.raw
    }

    func begin(_ pending: HTTP2Client.Pending) {
        let hasBody = !pending.body.isEmpty
        let block = FieldBlock(
            method: pending.request.method,
            scheme: self.transport.session == nil ? "http" : "https",
            authority: self.client.endpoint.host, target: pending.request.target,
            headers: pending.request.headers, bodyLength: hasBody ? pending.body.count : nil)
        guard let stream = self.session.request(block, hasBody: hasBody) else {
            return self.client.end(pending, .failure(.notProcessed))
        }
        if hasBody {
            self.session.append(pending.body, to: stream)
            self.session.endBody(of: stream)
        }
        pending.stream = stream
        pending.connection = self
        self.streams[stream] = pending
    }

    /// Nobody waits for this answer any more.
    func forget(_ pending: HTTP2Client.Pending) {
        guard self.streams.removeValue(forKey: pending.stream) != nil else { return }
        self.session.reset(pending.stream)
        self.pumpSoon()
    }

    // MARK: Bytes

    func becameReady(_ readiness: Readiness) {
        self.readAll()
        self.pump()
    }

    private func readAll() {
        repeat {
            guard self.registration != nil else { return }
            switch self.room.withUnsafeMutableBytes({ self.transport.read(into: $0) }) {
            case .moved(let count):
                self.heardAt = self.loop.now
                self.room.withUnsafeBufferPointer {
                    self.session.receive(
                        UnsafeBufferPointer(rebasing: $0[..<count]), at: self.loop.now)
                }
                self.handleEvents()
            case .blocked: return
            case .ended, .failed: return self.close(.cutShort)
            }
        } while self.transport.hasPending
    }

    private func handleEvents() {
        let wasPumping = self.isPumping
        self.isPumping = true
        defer { self.isPumping = wasPumping }
        for event in self.session.takeEvents() { self.handle(event) }
    }

    private func handle(_ event: HTTP2ClientSession.Event) {
        switch event {
        case .head(let stream, let head):
            self.streams[stream]?.head = head
            guard head.status / 100 == 2 || self.client.limits.firstStreamCountMax == nil else {
                return
            }
            self.hasAnswered = true
            self.client.wasAnswered()
        case .body(let stream, let bytes):
            self.session.consume(bytes.count, of: stream)
            guard let pending = self.streams[stream] else { return }
            pending.answer += bytes
            if pending.answer.count > pending.bodySizeMax.raw {
                self.streams[stream] = nil
                self.session.reset(stream)
                self.client.end(pending, .failure(.tooLarge))
            }
        case .taken, .pingAnswered: break
        case .closed(let stream, let code, let isWhole):
            guard let pending = self.streams.removeValue(forKey: stream) else { return }
            if isWhole, let head = pending.head {
                self.client.end(
                    pending, .success(HTTP2Answer(head: head, body: pending.answer)))
            } else {
                let refused = code == .refusedStream && pending.head == nil
                self.client.end(pending, .failure(refused ? .notProcessed : .reset(code)))
            }
        case .goneAway:
            self.client.isLeaving(self)
        }
    }

    func pumpSoon() {
        guard !self.isPumping, !self.isPumpDue, self.registration != nil else { return }
        self.isPumpDue = true
        self.loop.submit {
            self.isPumpDue = false
            self.pump()
        }
    }

    private func pump() {
        guard !self.isPumping, self.registration != nil else { return }
        self.isPumping = true
        var isBlocked = false
        while self.registration != nil, !isBlocked {
            self.handleEvents()
            self.client.advance()
            if self.output.count - self.outputStart < self.client.limits.outputSizeMax.raw {
                self.session.send(
                    into: &self.output,
                    sizeMax: self.outputStart + self.client.limits.outputSizeMax.raw)
            }
            self.handleEvents()
            guard self.outputStart < self.output.count else { break }
            isBlocked = !self.write()
        }
        self.isPumping = false
        guard let registration = self.registration else { return }
        let isDone = self.session.isGoingAway && self.session.openCount == 0
        if self.output.isEmpty, self.session.isOver || isDone { return self.close(.cutShort) }
        var interest = self.transport.readNeeds
        if !self.output.isEmpty { interest.formUnion(self.transport.writeNeeds) }
        self.loop.watch(registration, for: interest)
    }

    /// - Returns: whether all of it is gone.
    private func write() -> Bool {
        while self.outputStart < self.output.count {
            let transfer = self.output.withUnsafeBytes {
                self.transport.write(UnsafeRawBufferPointer(rebasing: $0[self.outputStart...]))
            }
            switch transfer {
            case .moved(let count): self.outputStart += count
            case .blocked:
                self.output.removeFirst(self.outputStart)
                self.outputStart = 0
                return false
            case .ended, .failed:
                self.close(.cutShort)
                return false
            }
        }
        self.output.removeAll(keepingCapacity: true)
        self.outputStart = 0
        return true
    }

    // MARK: Silence and the end

    private func watchSilence() {
        let limits = self.client.limits
        let next = self.pingedAt.map { $0 + limits.pingDeadline } ?? self.heardAt + limits.silence
        self.timer = self.loop.schedule(at: max(next, self.loop.now + .milliseconds(1))) {
            self.timer = nil
            guard self.registration != nil else { return }
            let now = self.loop.now
            if let pingedAt = self.pingedAt {
                if self.heardAt > pingedAt {
                    self.pingedAt = nil
                } else if now >= pingedAt + limits.pingDeadline {
                    return self.close(.cutShort)
                }
            } else if now >= self.heardAt + limits.silence {
                self.pingedAt = now
                self.session.ping()
                self.pumpSoon()
            }
            self.watchSilence()
        }
    }

    func close(_ error: HTTP2ClientError) {
        guard let registration = self.registration else { return }
        self.loop.deregister(registration)
        self.registration = nil
        if let timer = self.timer { self.loop.cancel(timer) }
        self.timer = nil
        if self.transport.isReady { self.transport.session?.sayGoodbye() }
        self.transport.close(isCut: false)
        for stream in self.streams.keys.sorted() {
            guard let pending = self.streams.removeValue(forKey: stream) else { continue }
            self.client.end(pending, .failure(error))
        }
        self.output = []
        self.outputStart = 0
        self.client.hasEnded(self, wasHealthy: self.hasAnswered || error == .closed)
    }
}
