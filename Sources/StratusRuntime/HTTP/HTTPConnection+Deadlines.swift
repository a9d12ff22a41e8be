import StratusHTTP
import StratusModel

/// Carries out what ``ConnectionDeadlines`` decides.
///
/// One timer for each connection. It is moved only towards the present: a deadline that moves away,
/// as with every request of a busy client, costs nothing, and the timer finds out when it fires.
extension HTTPConnection {
    /// Sees to it that the timer fires no later than the next deadline.
    func watchDeadline() {
        let deadline: MonotonicTime
        switch self.stage {
        case .handshake, .lingering: deadline = self.stageDeadline
        case .open: deadline = self.deadlines.wake
        case .closed: return
        }
        guard deadline < self.timerTime else { return }
        self.timerTime = deadline
        if let timer = self.timer, self.loop.move(timer, to: deadline) { return }
        self.timer = self.loop.schedule(at: deadline) { self.timerFired() }
    }

    private func timerFired() {
        self.timer = nil
        self.timerTime = MonotonicTime(nanoseconds: .max)
        let now = self.loop.now
        switch self.stage {
        case .closed: return
        // Not cut: the kernel may still hold an answer for a client that reads slowly.
        case .handshake where self.stageDeadline <= now, .lingering where self.stageDeadline <= now:
            return self.close(isCut: false)
        case .handshake, .lingering: return self.watchDeadline()
        case .open: break
        }
        switch self.deadlines.expiry(at: now) {
        case nil: self.watchDeadline()
        case .idle: self.close(isCut: false)
        case .headersTooSlow: self.cutShort(.headersTooSlow)
        case .bodyTooSlow where !self.machine.hasResponseBegun: self.cutShort(.bodyTooSlow)
        case .bodyTooSlow, .readerTooSlow, .total: self.close(isCut: true)
        }
    }

    private func cutShort(_ refusal: HTTPRefusal) {
        self.dropExchange()
        self.writeRefusal(refusal)
        self.tellRequestEnded()
        self.flush()
        self.settle()
    }
}
