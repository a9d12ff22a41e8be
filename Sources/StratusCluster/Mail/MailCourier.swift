package import StratusModel

/// Decides when the mail of the partitions that this node leads is delivered, and when it is
/// released.
///
/// Pure: pass each ``Event`` to ``handle(_:at:into:)`` and carry out the ``Action``s in order. Its
/// only promises are those of the rows: it may forget, repeat or race with an old leader's courier,
/// and the sequence numbers keep the result right. It decides when, and how much.
///
/// Invariants:
/// - At most one delivery or release of a route is under way here, so mail is sent in its order.
/// - The number of deliveries under way at once is bounded. A route that fails waits longer each
///   time, and holds up no other.
/// - A group that has mail neither under way nor waiting out a failure will be looked at.
package struct MailCourier: Sendable {
    package struct Tuning: Sendable, Equatable {
        /// Deliveries and releases under way at once.
        package var underWayCountMax = 16
        /// The most mails of one delivery.
        package var mailCountMax = 64
        package var bagSizeMax = 256 << 10
        /// After a failure, and twice as long after each one that follows.
        package var pauseMin: Duration = .milliseconds(50)
        package var pauseMax: Duration = .seconds(5)
        package init() {}
    }

    package enum Event: Sendable, Equatable {
        /// The group is led here and has applied something since it was last named.
        case news(GroupID)
        /// Answers `.look`; nil: the group cannot be asked here.
        case found(GroupID, Outbox?)
        /// Answers `.deliver`; nil: it is not known whether it was received.
        case delivered(MailRoute, MailOutcome?)
        /// Answers `.release`; nil: it is not known whether it was taken.
        case released(MailRoute, MailOutcome?)
        /// A wake-up asked for with `.wake`. May be late or spurious.
        case woke
    }

    package enum Action: Sendable, Equatable {
        case look(GroupID, OutboxAsk)
        case deliver(MailBag)
        case release(MailReceipt)
        case wake(at: MonotonicTime)
        /// Said once for as long as it lasts.
        case alarm(MailRoute, Trouble)
    }

    /// A trouble that waiting does not cure.
    package enum Trouble: Sendable, Equatable {
        /// The receiver has seen less than the sender has released.
        case gap(through: UInt64, first: UInt64)
        /// The receiver cannot read it.
        case refused
    }

    private enum Route {
        case delivering(first: UInt64)
        case releasing
        /// After a failure.
        case resting(until: MonotonicTime)
    }

    /// A route that does not work.
    package struct Failing: Sendable, Equatable {
        package var since: MonotonicTime
        /// Nil: nobody answered yet.
        package var trouble: Trouble?

        package init(since: MonotonicTime, trouble: Trouble? = nil) {
            self.since = since
            self.trouble = trouble
        }
    }

    /// A group that is being looked at; whether it has to be looked at once more.
    private struct Look {
        /// Their mail was not asked for.
        var except: [GroupID]
        var mustRepeat = false
    }

    private let tuning: Tuning
    private var routes: [MailRoute: Route] = [:]
    /// The next pause of each route that has failed, until it works.
    private var pauses: [MailRoute: Duration] = [:]
    /// Kept until mail of theirs is released again, or none waits.
    package private(set) var failing: [MailRoute: Failing] = [:]
    private var looks: [GroupID: Look] = [:]
    /// Groups that have mail for which there was no room among what is under way.
    private var heldUp: Set<GroupID> = []
    private var wakeAt: MonotonicTime?
    private var underWayCount = 0

    package init(tuning: Tuning = Tuning()) { self.tuning = tuning }

    /// Whether an answer is still to come; resting routes are not counted.
    package var isBusy: Bool { self.underWayCount > 0 || !self.looks.isEmpty }

    package mutating func handle(
        _ event: Event, at now: MonotonicTime, into actions: inout [Action]
    ) {
        switch event {
        case .news(let group): self.look(at: group, into: &actions)
        case .found(let group, let outbox):
            guard let look = self.looks.removeValue(forKey: group) else { return }
            if let outbox {
                self.forgive(group, look, outbox)
                self.take(outbox, of: group, into: &actions)
            }
            if look.mustRepeat { self.look(at: group, into: &actions) }
        case .delivered(let route, let outcome):
            guard case .delivering(let first) = self.routes[route] else { return }
            self.delivered(route, outcome, first: first, at: now, into: &actions)
        case .released(let route, let outcome):
            guard case .releasing = self.routes[route] else { return }
            self.underWayCount -= 1
            if outcome == .released {
                self.routes[route] = nil
                self.pauses[route] = nil
                self.failing[route] = nil
                self.look(at: route.sender, into: &actions)
            } else {
                self.fail(route, nil, at: now)
                self.rest(route, at: now, into: &actions)
            }
            self.resumeHeldUp(into: &actions)
        case .woke: self.wake(at: now, into: &actions)
        }
    }

    // MARK: Looking

    private mutating func look(at group: GroupID, into actions: inout [Action]) {
        if self.looks[group] != nil {
            self.looks[group]?.mustRepeat = true
            return
        }
        guard self.underWayCount < self.tuning.underWayCountMax else {
            self.heldUp.insert(group)
            return
        }
        let except = self.routes.keys.filter { $0.sender == group }.map(\.receiver).sorted()
        self.looks[group] = Look(except: except)
        actions.append(
            .look(
                group,
                OutboxAsk(
                    except: except,
                    bagCountMax: self.tuning.underWayCountMax - self.underWayCount,
                    mailCountMax: self.tuning.mailCountMax, bagSizeMax: self.tuning.bagSizeMax)))
    }

    private mutating func take(
        _ outbox: Outbox, of group: GroupID, into actions: inout [Action]
    ) {
        for pile in outbox.piles {
            let route = MailRoute(from: group, to: pile.receiver)
            // Under way since it was looked for, or a pile of nothing.
            guard self.routes[route] == nil, let first = pile.mails.first?.sequence else {
                continue
            }
            guard self.underWayCount < self.tuning.underWayCountMax else {
                self.heldUp.insert(group)
                return
            }
            self.underWayCount += 1
            self.routes[route] = .delivering(first: first)
            actions.append(.deliver(MailBag(route, pile.mails)))
        }
        if outbox.hasMore { self.heldUp.insert(group) }
    }

    /// Forgets the failures of routes whose mail is gone: somebody else has delivered it.
    private mutating func forgive(_ group: GroupID, _ look: Look, _ outbox: Outbox) {
        if self.failing.isEmpty || outbox.hasMore { return }
        let waiting = Set(outbox.piles.map(\.receiver) + look.except)
        for route in self.failing.keys
        where route.sender == group && !waiting.contains(route.receiver) {
            self.failing[route] = nil
        }
    }

    /// There is room among what is under way again.
    private mutating func resumeHeldUp(into actions: inout [Action]) {
        while self.underWayCount < self.tuning.underWayCountMax, let group = self.heldUp.min() {
            self.heldUp.remove(group)
            self.look(at: group, into: &actions)
        }
    }

    // MARK: Carrying

    private mutating func delivered(
        _ route: MailRoute, _ outcome: MailOutcome?, first: UInt64, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        var trouble: Trouble?
        switch outcome {
        case .received(let through, let time) where through >= first:
            self.failing[route]?.trouble = nil
            self.routes[route] = .releasing
            actions.append(.release(MailReceipt(route, through: through, at: time)))
            return
        case .received(let through, _):
            // The very next was offered, and not taken: it cannot be read there.
            trouble = through + 1 == first ? .refused : .gap(through: through, first: first)
        case .refused, .released: trouble = .refused
        case nil: break
        }
        self.underWayCount -= 1
        if let trouble, self.failing[route]?.trouble == nil {
            actions.append(.alarm(route, trouble))
        }
        self.fail(route, trouble, at: now)
        self.rest(route, at: now, into: &actions)
        self.resumeHeldUp(into: &actions)
    }

    private mutating func fail(_ route: MailRoute, _ trouble: Trouble?, at now: MonotonicTime) {
        var failing = self.failing[route] ?? Failing(since: now)
        failing.trouble = trouble ?? failing.trouble
        self.failing[route] = failing
    }

    private mutating func rest(
        _ route: MailRoute, at now: MonotonicTime, into actions: inout [Action]
    ) {
        let pause = self.pauses[route] ?? self.tuning.pauseMin
        self.pauses[route] = min(pause * 2, self.tuning.pauseMax)
        self.routes[route] = .resting(until: now + pause)
        self.requestWake(into: &actions)
    }

    private mutating func wake(at now: MonotonicTime, into actions: inout [Action]) {
        // It may have come early, where a clock has been slowed since: then another is asked for.
        self.wakeAt = nil
        var senders: Set<GroupID> = []
        for (route, state) in self.routes {
            if case .resting(let until) = state, until <= now {
                self.routes[route] = nil
                senders.insert(route.sender)
            }
        }
        for sender in senders.sorted() { self.look(at: sender, into: &actions) }
        self.requestWake(into: &actions)
    }

    private mutating func requestWake(into actions: inout [Action]) {
        var earliest: MonotonicTime?
        for case .resting(let until) in self.routes.values {
            earliest = min(earliest ?? until, until)
        }
        guard let earliest, self.wakeAt.map({ earliest < $0 }) ?? true else { return }
        self.wakeAt = earliest
        actions.append(.wake(at: earliest))
    }
}
