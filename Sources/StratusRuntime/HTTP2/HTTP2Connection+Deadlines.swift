import StratusHTTP
import StratusHTTP2
import StratusModel

/// Carries out what the deadlines of the connection and of its streams decide.
///
/// One timer for each connection. While there are streams it fires a few times within the shortest
/// of the timeouts and looks at all of them: there are at most as many as the limits allow.
extension HTTP2Connection {
    private var tick: Duration {
        let timeouts = self.shard.limits.timeouts
        let shortest = min(timeouts.grace, timeouts.header, timeouts.total, timeouts.idle)
        return max(.milliseconds(10), min(.seconds(1), shortest / 4))
    }

    /// Sees to it that the timer fires no later than the next deadline.
    func watchDeadline() {
        var deadline: MonotonicTime
        switch self.stage {
        case .closed: return
        case .lingering: deadline = self.stageDeadline
        case .open:
            deadline = self.deadlines.wake
            if let reset = self.nextReset { deadline = min(deadline, reset) }
            if !self.streams.isEmpty { deadline = min(deadline, self.loop.now + self.tick) }
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
        case .lingering:
            if self.stageDeadline <= now { return self.close(isCut: false) }
        case .open:
            switch self.deadlines.expiry(at: now) {
            case nil, .bodyTooSlow: break
            case .idle:
                self.session.terminate(.none)
            case .headersTooSlow, .total:
                self.session.terminate(.enhanceYourCalm)
            case .readerTooSlow: return self.close(isCut: true)
            }
            self.checkStreams(now)
            self.pumpSoon()
        }
        self.watchDeadline()
    }

    private func checkStreams(_ now: MonotonicTime) {
        for id in self.streams.keys.sorted() {
            guard let stream = self.streams[id], !stream.isOver else { continue }
            if !stream.isWhole {
                stream.deadlines.handle(
                    stream.isClientsTurn ? .readingResumed : .readingPaused, at: now)
            }
            switch stream.deadlines.expiry(at: now) {
            case nil, .idle: continue
            case .headersTooSlow, .bodyTooSlow:
                if stream.hasAnswerBegun {
                    self.end(stream, .cancel)
                } else {
                    self.writeRefusal(.bodyTooSlow, to: id)
                    stream.drop()
                    self.finishRefused(stream)
                }
            case .readerTooSlow, .total: self.end(stream, .cancel)
            }
        }
    }

    private func end(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        self.session.reset(stream.id, code)
        self.streams[stream.id] = nil
        stream.drop()
    }
}
