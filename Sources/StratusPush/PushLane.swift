package import StratusModel

/// The way to one provider: one APNs host with one team and key, or the origin of one Web Push
/// service.
///
/// A value: what happens goes in by ``handle(_:at:draw:)``, what is to be done comes out. Each lane
/// has its own queue, its own connection and its own rest, so that a provider that is dead, answers
/// 503 for ever or a byte a second costs its own pushes time and nobody else's (P-08).
///
/// Invariants:
/// - No more than ``Bounds/flightCountMax`` pushes are under way and ``Bounds/queueCountMax`` wait.
/// - A push that came in leaves exactly once: settled, parked or dropped, unless it is withdrawn.
/// - A push is sent again only under the same identity, and only after the lane has rested.
/// - Without an accepted push since it connected, one push is under way at a time.
package struct PushLane: Sendable, Equatable {
    package struct Bounds: Sendable, Equatable {
        package var flightCountMax = 2_000
        package var queueCountMax = 2_000
        /// How long an answer may take, from the sending to its last byte.
        package var answerDeadline: Duration = .seconds(15)
        package var connectDeadline: Duration = .seconds(20)
        /// A push that waits longer than this in a lane that does not open is parked.
        package var patience: Duration = .seconds(10)
        package var restMin: Duration = .seconds(1)
        package var restMax: Duration = .seconds(300)
        /// Times that one push is sent.
        package var attemptCountMax = 8

        package init() {}
    }

    package enum State: Sendable, Equatable {
        case idle
        case connecting(since: MonotonicTime)
        /// Connected; one push is under way until the first is accepted.
        case probing
        case open
        case resting(until: MonotonicTime)
        /// The provider does not believe our key; nothing is sent until it is changed.
        case refused(reason: String)
        case paused
    }

    /// One push, by the identity that all of its repeats carry.
    package struct Push: Sendable, Equatable {
        package var identity: UInt64
        package var attempts = 0
        fileprivate var sentAt = MonotonicTime(nanoseconds: 0)
        /// Which of the lane's tokens it was sent with.
        fileprivate var token = 0

        package init(identity: UInt64) { self.identity = identity }

        fileprivate init(again push: Push) {
            self.identity = push.identity
            self.attempts = push.attempts
        }
    }

    /// The meaning of an answer for the lane. Its meaning for push and device is in the provider's
    /// verdict.
    package enum Answer: Sendable, Equatable {
        case accepted
        /// It says something about this push alone: gone, too large, dropped, this device is busy.
        case final
        case tokenRefused(reason: String)
        /// Under the same identity, after a pause.
        case unavailable(after: Duration?)
        /// The connection ended with this push unanswered, or the provider says it has not looked
        /// at it.
        case unanswered
    }

    package enum Event: Sendable, Equatable {
        case push(Push)
        case connected
        case connectFailed
        case answered(identity: UInt64, Answer)
        /// The connection ended; its unanswered pushes come as `.answered(…, .unanswered)` or not
        /// at all.
        case disconnected
        case tokenRenewed
        /// Nobody could make one now. It says nothing about the key.
        case tokenNotRenewed
        case keyChanged
        case pause
        case resume
        /// It has become old, or its device has gone.
        case withdraw(identity: UInt64)
        case woke
    }

    package enum Action: Sendable, Equatable {
        case connect
        case disconnect
        case send(identity: UInt64)
        /// The dispatcher keeps it until this lane is open again.
        case park(identity: UInt64)
        /// An answer that ends this push has come.
        case settle(identity: UInt64)
        /// Sent as often as allowed.
        case drop(identity: UInt64)
        case renewToken
        /// An operator must look.
        case refused(reason: String)
        /// It takes pushes again: what was parked may come.
        case opened
        case wake(at: MonotonicTime)
    }

    package let bounds: Bounds
    package private(set) var state = State.idle
    /// In the order they came; those to be repeated first.
    private var queue: [Push] = []
    /// In the order they were sent.
    private var flight: [Push] = []
    private var failureCount = 0
    /// The token was renewed since a push was accepted.
    private var hasRenewed = false
    private var awaitsToken = false
    /// Counts the renewals: an answer to an older token says nothing about this one.
    private var token = 0
    /// Since when nothing was accepted although something waits; nil while all is well.
    private var stuckSince: MonotonicTime?

    package init(_ bounds: Bounds = Bounds()) { self.bounds = bounds }

    package var isRefused: Bool { if case .refused = self.state { true } else { false } }
    package var queueCount: Int { self.queue.count }
    package var flightCount: Int { self.flight.count }

    /// - Parameter draw: any number; decides the drawn part of a rest.
    package mutating func handle(
        _ event: Event, at now: MonotonicTime, draw: UInt64
    ) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .push(let push): self.take(push, now, &actions)
        case .connected:
            guard case .connecting = self.state else { break }
            self.state = .probing
        case .connectFailed:
            guard case .connecting = self.state else { break }
            self.rest(now, draw, nil, &actions)
        case .disconnected:
            self.loseFlight()
            switch self.state {
            case .connecting, .probing: self.rest(now, draw, nil, &actions)
            // After GOAWAY, or in a quiet hour: no failure of the provider's.
            case .open: self.state = .idle
            case .idle, .resting, .refused, .paused: break
            }
        case .answered(let identity, let answer):
            self.answered(identity, answer, now, draw, &actions)
        case .tokenRenewed:
            self.awaitsToken = false
            self.token += 1
        case .tokenNotRenewed:
            self.awaitsToken = false
            self.hasRenewed = false
            self.loseFlight()
            if self.isConnected { actions.append(.disconnect) }
            self.rest(now, draw, nil, &actions)
        case .keyChanged:
            self.hasRenewed = false
            self.awaitsToken = false
            self.token += 1
            if case .refused = self.state { self.state = .idle; actions.append(.opened) }
        case .pause:
            if self.isConnected { actions.append(.disconnect) }
            self.loseFlight()
            self.state = .paused
        case .resume:
            if self.state == .paused { self.state = .idle; actions.append(.opened) }
        case .withdraw(let identity):
            self.queue.removeAll { $0.identity == identity }
            self.flight.removeAll { $0.identity == identity }
        case .woke: break
        }
        self.watch(now, draw, &actions)
        self.advance(now, &actions)
        return actions
    }

    private var isConnected: Bool {
        switch self.state {
        case .connecting, .probing, .open: true
        case .idle, .resting, .refused, .paused: false
        }
    }

    private mutating func take(_ push: Push, _ now: MonotonicTime, _ actions: inout [Action]) {
        // The same push may be told twice; it is under way once.
        guard !self.queue.contains(where: { $0.identity == push.identity }),
            !self.flight.contains(where: { $0.identity == push.identity })
        else { return }
        guard self.queue.count < self.bounds.queueCountMax else {
            return actions.append(.park(identity: push.identity))
        }
        if self.stuckSince == nil, self.state != .open { self.stuckSince = now }
        self.queue.append(push)
    }

    private mutating func answered(
        _ identity: UInt64, _ answer: Answer, _ now: MonotonicTime, _ draw: UInt64,
        _ actions: inout [Action]
    ) {
        // Late: it was given up with its connection, and waits to be sent again.
        guard let index = self.flight.firstIndex(where: { $0.identity == identity }) else { return }
        let push = self.flight.remove(at: index)
        switch answer {
        case .accepted:
            self.failureCount = 0
            self.hasRenewed = false
            self.stuckSince = nil
            if self.state == .probing {
                self.state = .open
                actions.append(.opened)
            }
            actions.append(.settle(identity: identity))
        case .final:
            actions.append(.settle(identity: identity))
        case .unanswered:
            if self.state == .probing {
                // Another one is tried first: the provider may hang up because of this push.
                self.queue.append(Push(again: push))
            } else {
                self.putBack(push, &actions)
            }
            // Once may be an idle connection that had just ended. A provider that hangs up again
            // and again would be called in a circle.
            if self.state == .probing || push.attempts > 1 {
                self.loseFlight()
                if self.isConnected { actions.append(.disconnect) }
                self.rest(now, draw, nil, &actions)
            }
        case .unavailable(let after):
            self.putBack(push, &actions)
            self.loseFlight()
            if self.isConnected { actions.append(.disconnect) }
            self.rest(now, draw, after, &actions)
        case .tokenRefused(let reason):
            self.putBack(push, &actions)
            if self.awaitsToken || push.token < self.token { break }
            if self.hasRenewed {
                self.loseFlight()
                if self.isConnected { actions.append(.disconnect) }
                self.state = .refused(reason: reason)
                actions.append(.refused(reason: reason))
            } else {
                self.hasRenewed = true
                self.awaitsToken = true
                if self.state == .open { self.state = .probing }
                actions.append(.renewToken)
            }
        }
    }

    /// To the front: it has waited longest. Only a lane that takes others gives one up: a provider
    /// that takes none says nothing about this push.
    private mutating func putBack(_ push: Push, _ actions: inout [Action]) {
        if self.state == .open, push.attempts >= self.bounds.attemptCountMax {
            actions.append(.drop(identity: push.identity))
        } else {
            self.queue.insert(Push(again: push), at: 0)
        }
    }

    /// Makes pushes in flight wait again. Whether they were carried out is unknown, and their
    /// identity stays the same.
    private mutating func loseFlight() {
        self.queue.insert(contentsOf: self.flight.map { Push(again: $0) }, at: 0)
        self.flight = []
    }

    private mutating func rest(
        _ now: MonotonicTime, _ draw: UInt64, _ asked: Duration?, _ actions: inout [Action]
    ) {
        switch self.state {
        case .refused, .paused, .resting: return
        case .idle, .connecting, .probing, .open: break
        }
        var rest = self.bounds.restMin.clampedNanoseconds
        let longest = self.bounds.restMax.clampedNanoseconds
        for _ in 0..<min(self.failureCount, 40) where rest < longest {
            rest = min(rest * 2, longest)
        }
        self.failureCount += 1
        // A third of it is drawn, so that nodes do not come back together (P-09).
        let drawn = Int64(draw % UInt64(max(1, rest / 3)))
        var until = now + .nanoseconds(rest - rest / 3 + drawn)
        if let asked { until = max(until, now + asked) }
        if self.stuckSince == nil { self.stuckSince = now }
        self.state = .resting(until: until)
    }

    /// Deadlines: what took too long.
    private mutating func watch(
        _ now: MonotonicTime, _ draw: UInt64, _ actions: inout [Action]
    ) {
        if case .connecting(let since) = self.state, now >= since + self.bounds.connectDeadline {
            actions.append(.disconnect)
            self.rest(now, draw, nil, &actions)
        }
        // The oldest stands first. Silence is the connection's, so all of it is given up.
        if let oldest = self.flight.first, now >= oldest.sentAt + self.bounds.answerDeadline {
            self.loseFlight()
            if self.isConnected { actions.append(.disconnect) }
            self.rest(now, draw, nil, &actions)
        }
        if case .resting(let until) = self.state, now >= until { self.state = .idle }
        if let stuckSince = self.stuckSince, now >= stuckSince + self.bounds.patience {
            // One stays, by which the lane finds out when the provider is back.
            while self.queue.count + self.flight.count > 1, let last = self.queue.popLast() {
                actions.append(.park(identity: last.identity))
            }
        }
        switch self.state {
        case .refused, .paused:
            for push in self.queue { actions.append(.park(identity: push.identity)) }
            self.queue = []
        case .idle, .connecting, .probing, .open, .resting: break
        }
    }

    /// Sends what may be sent, and says when to look again.
    private mutating func advance(_ now: MonotonicTime, _ actions: inout [Action]) {
        switch self.state {
        case .idle where !self.queue.isEmpty:
            self.state = .connecting(since: now)
            actions.append(.connect)
        case .probing, .open:
            let countMax = self.state == .open ? self.bounds.flightCountMax : 1
            while !self.awaitsToken, self.flight.count < countMax, !self.queue.isEmpty {
                var push = self.queue.removeFirst()
                push.attempts += 1
                push.sentAt = now
                push.token = self.token
                self.flight.append(push)
                actions.append(.send(identity: push.identity))
            }
        default: break
        }
        if self.queue.isEmpty && self.flight.isEmpty { self.stuckSince = nil }
        if let wake = self.wake { actions.append(.wake(at: wake)) }
    }

    /// When time alone changes something.
    private var wake: MonotonicTime? {
        var wake: MonotonicTime?
        func at(_ time: MonotonicTime) { wake = wake.map { min($0, time) } ?? time }
        if let oldest = self.flight.first { at(oldest.sentAt + self.bounds.answerDeadline) }
        switch self.state {
        case .connecting(let since): at(since + self.bounds.connectDeadline)
        case .resting(let until): if !self.queue.isEmpty { at(until) }
        case .idle, .probing, .open, .refused, .paused: break
        }
        if let stuckSince = self.stuckSince, !self.queue.isEmpty,
            self.queue.count + self.flight.count > 1
        {
            at(stuckSince + self.bounds.patience)
        }
        return wake
    }
}
