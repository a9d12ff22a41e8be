import StratusHTTP
import StratusModel

/// How long a client may take for what.
///
/// One timer for each connection. It is moved only towards the present: a deadline that moves away, as
/// with every request of a busy client, costs nothing, and the timer finds out when it fires.
extension HTTPConnection {
    /// When what the connection waits for now began, and what moved since.
    struct Clock {
        /// Connected, answered, or the first byte of an unfinished head.
        var waitStart: MonotonicTime
        var isInHead = false
        var requestStart: MonotonicTime
        /// The window over which a transfer's speed is measured; nil while it is not the peer's turn.
        var windowStart: MonotonicTime?
        var windowMoved = 0
        var received = 0
        var sent = 0

        init(now: MonotonicTime) {
            self.waitStart = now
            self.requestStart = now
        }

        mutating func startIdling(at now: MonotonicTime) {
            self.waitStart = now
            self.isInHead = false
            self.windowStart = nil
        }

        mutating func startRequest(at now: MonotonicTime) {
            self.requestStart = self.isInHead ? self.waitStart : now
            self.isInHead = false
            self.startTransfer(at: now)
        }

        mutating func startTransfer(at now: MonotonicTime) {
            self.windowStart = now
            self.windowMoved = self.received + self.sent
        }

        mutating func startTransferUnlessRunning(at now: MonotonicTime) {
            if self.windowStart == nil { self.startTransfer(at: now) }
        }

        mutating func startLingering(at now: MonotonicTime) {
            self.waitStart = now
            self.received = 0
        }
    }

    private enum Wait { case handshake, idle, head, body, output, handler, linger }

    private var wait: Wait {
        switch self.stage {
        case .handshake: return .handshake
        case .lingering: return .linger
        case .closed: return .idle
        case .open: break
        }
        if !self.output.isEmpty { return .output }
        if let exchange = self.exchange {
            if case .arriving = exchange.state, exchange.isWaiting || !exchange.hasBegun {
                return .body
            }
            return .handler
        }
        switch self.machine.phase {
        case .idle, .response, .closed: return .idle
        case .head: return .head
        case .body: return .body
        }
    }

    /// Sees to it that the timer fires no later than the next deadline.
    func watchDeadline() {
        guard self.stage != .closed else { return }
        let deadline = self.deadline()
        guard deadline < self.timerTime else { return }
        self.timerTime = deadline
        if let timer = self.timer, self.loop.move(timer, to: deadline) { return }
        self.timer = self.loop.schedule(at: deadline) { self.timerFired() }
    }

    private func deadline() -> MonotonicTime {
        let limits = self.shard.limits
        switch self.wait {
        case .handshake: return self.clock.waitStart + limits.handshakeDeadline
        case .linger: return self.clock.waitStart + limits.lingerDeadline
        case .idle: return self.clock.waitStart + limits.idleDeadline
        case .head:
            if !self.clock.isInHead {
                self.clock.isInHead = true
                self.clock.waitStart = self.loop.now
            }
            return self.clock.waitStart + limits.headDeadline
        case .body, .output:
            self.clock.startTransferUnlessRunning(at: self.loop.now)
            let window = (self.clock.windowStart ?? self.loop.now) + limits.transferWindow
            return min(window, self.clock.requestStart + limits.requestDeadline)
        case .handler:
            self.clock.windowStart = nil
            return self.clock.requestStart + limits.requestDeadline
        }
    }

    private func timerFired() {
        self.timer = nil
        self.timerTime = MonotonicTime(nanoseconds: .max)
        let now = self.loop.now
        guard self.deadline() <= now else { return self.watchDeadline() }
        let isLate =
            self.exchange != nil
            && self.clock.requestStart + self.shard.limits.requestDeadline <= now
        switch self.wait {
        case .handshake, .idle: return self.close(isCut: false)
        case .linger, .handler: return self.close(isCut: true)
        case .head: self.cutShort(.headersTooSlow)
        case .body where isLate || !self.hasMovedEnough: self.cutShort(.bodyTooSlow)
        case .output where isLate || !self.hasMovedEnough: return self.close(isCut: true)
        case .body, .output: self.clock.startTransfer(at: now)
        }
        self.settle()
    }

    private var hasMovedEnough: Bool {
        self.clock.received + self.clock.sent - self.clock.windowMoved
            >= self.shard.limits.transferSizePerWindowMin.raw
    }

    private func cutShort(_ refusal: HTTPRefusal) {
        self.dropExchange()
        self.writeRefusal(refusal)
        self.flush()
    }
}
