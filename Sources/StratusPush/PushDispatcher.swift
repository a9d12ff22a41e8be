package import StratusModel

/// Decides which devices are asked about, sent to and settled: for the partitions that one node
/// leads.
///
/// A value: what happens goes in by ``handle(_:at:)``, what is to be done comes out. It keeps
/// nothing that must last. A device's place in the news of its database is a row; what was in
/// memory when a process ended is found again by looking for devices that stand before the end.
///
/// Invariants:
/// - A device has at most one push under way, and its row moves only after the provider's verdict.
/// - No more than ``Bounds/activeCountMax`` devices are worked on; a partition with more is looked
///   through further when there is room. No more than ``Bounds/restingCountMax`` wait for a time or
///   a lane; of more, the partition is looked through again. That asks about no more than
///   ``Bounds/leftOutCountPerPause`` of them in each ``Bounds/retryMin``, and nobody else rests for it.
/// - A device that waits for a lane takes no room from the others.
/// - Nothing is sent for a partition that is led elsewhere, beyond what is under way.
package struct PushDispatcher: Sendable {
    package struct Bounds: Sendable {
        package var activeCountMax = 8_192
        /// Devices that are asked about at once.
        package var askCountMax = 32
        package var restingCountMax = 16_384
        /// Devices that could not be kept, and that are asked about again in each ``retryMin``.
        package var leftOutCountPerPause: Int64 = 2_048
        /// Devices of which it is remembered how far they were looked at in vain.
        package var seenCountMax = 65_536
        package var retryMin: Duration = .seconds(1)
        package var retryMax: Duration = .seconds(60)
        /// A device that waits for its lane is tried again after this at the latest.
        package var laneWait: Duration = .seconds(300)
        /// Times that one push is put back because of its device.
        package var attemptCountMax = 8

        package init() {}
    }

    /// What a look for a device's next push has found.
    package enum Found: Sendable, Equatable {
        /// Nothing through this event.
        case nothing(through: UInt64)
        /// A push for this lane, which the shell holds.
        case push(LaneName)
        /// Its container sends nothing now: paused, or without a key.
        case held(Duration)
        /// The device is no more; its rows were removed.
        case gone
        /// The partition or the device's home did not answer.
        case failed
    }

    /// What became of a push in its lane.
    package enum Ending: Sendable, Equatable {
        /// Accepted, or given up for good.
        case settle
        /// The lane takes nothing now.
        case park(LaneName)
        /// The lane has as much as it takes.
        case busy
        /// The provider asks to leave this device alone for a while.
        case retry(after: Duration)
        case gone
    }

    package enum Event: Sendable, Equatable {
        /// A partition led here may have events, or is led here anew.
        case news(GroupID)
        /// A partition is led by another node now.
        case lost(GroupID)
        /// Devices that stand before the end; `next`: where to go on, nil at the end. Nil instead
        /// of devices: the partition did not answer. `number`: the scan's.
        case scanned(GroupID, number: UInt64, [Waiting]?, next: Bytes?)
        case asked(PushTarget, Found)
        case ended(PushTarget, Ending)
        /// Whether the row has moved.
        case settled(PushTarget, Bool)
        case laneOpened(LaneName)
        case woke
    }

    /// A device that a scan has found, and the last event of its database.
    package struct Waiting: Sendable, Equatable {
        package var target: PushTarget
        package var through: UInt64

        package init(_ target: PushTarget, through: UInt64) {
            self.target = target
            self.through = through
        }
    }

    package enum Action: Sendable, Equatable {
        case scan(GroupID, number: UInt64, after: Bytes?)
        /// `after`: the event through which the device was looked at in vain.
        case ask(PushTarget, after: UInt64?)
        /// The push that was found goes into its lane.
        case send(PushTarget, LaneName)
        case settle(PushTarget)
        /// The push is given up: the device refuses it again and again.
        case giveUp(PushTarget)
    }

    private enum Stage: Sendable, Equatable {
        case waiting, asking, sending, settling
    }

    private struct Active: Sendable {
        var stage = Stage.waiting
        var through: UInt64
        var attempts: Int
        /// The partition is led elsewhere: nothing more is begun.
        var isLost = false
    }

    private struct Rest: Sendable {
        var until: MonotonicTime
        var lane: LaneName?
        var through: UInt64
        var attempts: Int
    }

    private struct Scan: Sendable {
        /// An answer to an earlier one says nothing.
        var number: UInt64
        var after: Bytes?
        var isUnderWay = true
        /// Something happened meanwhile: from the beginning once more.
        var again = false
        /// To be tried again then.
        var until: MonotonicTime?
    }

    /// The latest look through a partition from its beginning, for as long as it is led here.
    private struct Pass: Sendable {
        var beganAt: MonotonicTime
        /// Devices that should rest were not kept, and are looked for again then.
        var due: MonotonicTime?
        var leftOutCount: Int64 = 0
    }

    package let bounds: Bounds
    private var active: [PushTarget: Active] = [:]
    /// Those of them that wait to be asked about, in order.
    private var queue: [PushTarget] = []
    private var queueStart = 0
    private var askingCount = 0
    private var resting: [PushTarget: Rest] = [:]
    private var seen: [PushTarget: UInt64] = [:]
    private var scans: [GroupID: Scan] = [:]
    private var passes: [GroupID: Pass] = [:]
    private var scanCount: UInt64 = 0
    /// When time alone changes something, or earlier.
    package private(set) var wake: MonotonicTime?

    private let bugs: PlantedBugs

    package init(_ bounds: Bounds = Bounds(), bugs: PlantedBugs = PlantedBugs()) {
        self.bounds = bounds
        self.bugs = bugs
    }

    package var activeCount: Int { self.active.count }
    package var restingCount: Int { self.resting.count }

    /// Whether the device is asked about, sent to or settled now.
    package func works(on target: PushTarget) -> Bool { self.active[target] != nil }

    package mutating func handle(_ event: Event, at now: MonotonicTime) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .news(let group): self.look(at: group, now, &actions)
        case .lost(let group): self.lose(group)
        case .scanned(let group, let number, let found, let next):
            self.scanned(group, number, found, next, now, &actions)
        case .asked(let target, let found): self.asked(target, found, now, &actions)
        case .ended(let target, let ending): self.ended(target, ending, now, &actions)
        case .settled(let target, let isDone): self.settled(target, isDone, now)
        case .laneOpened(let lane):
            self.release(now) { $0.lane == lane }
            self.expectOverdue(now)
        case .woke: break
        }
        self.awaken(now, &actions)
        self.advance(now, &actions)
        return actions
    }

    // MARK: Looking through partitions

    private mutating func look(
        at group: GroupID, _ now: MonotonicTime, _ actions: inout [Action]
    ) {
        if self.scans[group] != nil {
            self.scans[group]?.again = true
        } else {
            self.scan(group, Scan(number: 0), now, &actions)
        }
    }

    private mutating func scan(
        _ group: GroupID, _ scan: Scan, _ now: MonotonicTime, _ actions: inout [Action]
    ) {
        var scan = scan
        if scan.after == nil {
            if let pass = self.passes[group], pass.leftOutCount > 0, now < self.end(of: pass) {
                let time = self.end(of: pass)
                scan.isUnderWay = false
                scan.until = time
                self.note(wake: time)
                self.scans[group] = scan
                return
            }
            scan.again = false
            self.passes[group] = Pass(beganAt: now, due: self.passes[group]?.due)
        }
        self.scanCount += 1
        scan.number = self.scanCount
        scan.isUnderWay = true
        scan.until = nil
        self.scans[group] = scan
        actions.append(.scan(group, number: scan.number, after: scan.after))
    }

    private mutating func scanned(
        _ group: GroupID, _ number: UInt64, _ found: [Waiting]?, _ next: Bytes?,
        _ now: MonotonicTime, _ actions: inout [Action]
    ) {
        guard var scan = self.scans[group], scan.number == number, scan.isUnderWay else { return }
        scan.isUnderWay = false
        guard let found else {
            scan.until = now + self.bounds.retryMin
            self.note(wake: now + self.bounds.retryMin)
            self.scans[group] = scan
            return
        }
        for waiting in found where !self.admit(waiting) {
            // The page is read again when there is room: nothing of it is kept here.
            self.scans[group] = scan
            return
        }
        if next != nil || scan.again {
            scan.after = next
            self.scan(group, scan, now, &actions)
        } else {
            self.scans[group] = nil
        }
    }

    /// - Returns: false where there is no room.
    private mutating func admit(_ waiting: Waiting) -> Bool {
        let target = waiting.target
        if let known = self.active[target] {
            self.active[target]?.through = max(known.through, waiting.through)
            self.active[target]?.isLost = false
            return true
        }
        if let rest = self.resting[target] {
            self.resting[target]?.through = max(rest.through, waiting.through)
            return true
        }
        if let seen = self.seen[target], seen >= waiting.through { return true }
        guard self.active.count < self.bounds.activeCountMax else { return false }
        self.begin(target, Active(through: waiting.through, attempts: 0))
        return true
    }

    private mutating func begin(_ target: PushTarget, _ active: Active) {
        var active = active
        active.stage = .waiting
        self.active[target] = active
        self.queue.append(target)
    }

    private mutating func lose(_ group: GroupID) {
        self.scans[group] = nil
        self.passes[group] = nil
        for (target, active) in self.active where target.group == group {
            if active.stage == .waiting {
                if self.bugs.contains(.parkedLostOnLeaderChange) {
                    self.active[target]?.stage = .settling
                    continue
                }
                self.active[target] = nil
            } else {
                self.active[target]?.isLost = true
            }
        }
        self.resting = self.resting.filter { $0.key.group != group }
        self.seen = self.seen.filter { $0.key.group != group }
    }

    // MARK: One device

    private mutating func asked(
        _ target: PushTarget, _ found: Found, _ now: MonotonicTime, _ actions: inout [Action]
    ) {
        guard var active = self.active[target], active.stage == .asking else { return }
        self.askingCount -= 1
        if active.isLost {
            self.active[target] = nil
            return
        }
        switch found {
        case .nothing(let through):
            if self.seen.count >= self.bounds.seenCountMax { self.seen = [:] }
            let before = self.seen.updateValue(through, forKey: target)
            self.active[target] = nil
            guard active.through > through else { break }
            // An event came meanwhile. An answer that gets on no further is not asked for at once.
            if before == through {
                self.retry(target, active, now)
            } else {
                self.begin(target, active)
            }
        case .push(let lane):
            active.stage = .sending
            self.active[target] = active
            actions.append(.send(target, lane))
            if self.bugs.contains(.settledBeforeAnswered) {
                self.active[target]?.stage = .settling
                actions.append(.settle(target))
            }
        case .held(let pause): self.rest(target, active, until: now + pause, nil)
        case .gone: self.forget(target)
        case .failed: self.retry(target, active, now)
        }
    }

    private mutating func ended(
        _ target: PushTarget, _ ending: Ending, _ now: MonotonicTime, _ actions: inout [Action]
    ) {
        guard var active = self.active[target], active.stage == .sending else { return }
        switch ending {
        case .settle:
            // Also for a partition that was lost: the push has left, and its leader should know.
            active.stage = .settling
            self.active[target] = active
            actions.append(.settle(target))
        case .gone: self.forget(target)
        case .busy: self.rest(target, active, until: now + self.bounds.retryMin, nil)
        case .park(let lane):
            self.rest(target, active, until: now + self.bounds.laneWait, lane)
        case .retry(let pause):
            active.attempts += 1
            if active.attempts >= self.bounds.attemptCountMax {
                active.stage = .settling
                self.active[target] = active
                actions.append(.giveUp(target))
                actions.append(.settle(target))
            } else {
                self.rest(target, active, until: now + pause, nil)
            }
        }
    }

    /// A device of that name that registers later begins anew.
    private mutating func forget(_ target: PushTarget) {
        self.active[target] = nil
        self.seen[target] = nil
    }

    private mutating func settled(_ target: PushTarget, _ isDone: Bool, _ now: MonotonicTime) {
        guard var active = self.active[target], active.stage == .settling else { return }
        if active.isLost {
            self.active[target] = nil
        } else if isDone {
            // There may be more.
            active.attempts = 0
            self.begin(target, active)
        } else {
            self.retry(target, active, now)
        }
    }

    private mutating func retry(_ target: PushTarget, _ active: Active, _ now: MonotonicTime) {
        var active = active
        var pause = self.bounds.retryMin
        for _ in 0..<min(active.attempts, 16) where pause < self.bounds.retryMax { pause *= 2 }
        active.attempts += 1
        self.rest(target, active, until: now + min(pause, self.bounds.retryMax), nil)
    }

    private mutating func rest(
        _ target: PushTarget, _ active: Active, until time: MonotonicTime, _ lane: LaneName?
    ) {
        if lane == nil || !self.bugs.contains(.laneHoldsOthers) { self.active[target] = nil }
        if active.isLost { return }
        self.note(wake: time)
        guard self.resting.count < self.bounds.restingCountMax else {
            if self.bugs.contains(.overdueForgotten) { return }
            return self.leaveOut(target.group, until: time)
        }
        self.resting[target] = Rest(
            until: time, lane: lane, through: active.through, attempts: active.attempts)
    }

    /// A device is not kept. Its row says that it waits, so a later look finds it.
    private mutating func leaveOut(_ group: GroupID, until time: MonotonicTime) {
        guard var pass = self.passes[group] else { return }
        pass.due = pass.due.map { min($0, time) } ?? time
        pass.leftOutCount += 1
        self.passes[group] = pass
    }

    /// When another look may begin. It finds those again who were not kept.
    private func end(of pass: Pass) -> MonotonicTime {
        let pauses = 1 + pass.leftOutCount / self.bounds.leftOutCountPerPause
        return pass.beganAt + .nanoseconds(self.bounds.retryMin.clampedNanoseconds * pauses)
    }

    /// Some of the devices that were not kept may be sent to now.
    private mutating func expectOverdue(_ now: MonotonicTime) {
        for (group, pass) in self.passes where pass.due != nil {
            self.passes[group]?.due = now
            self.note(wake: now)
        }
    }

    // MARK: Time and room

    private mutating func note(wake time: MonotonicTime) {
        self.wake = self.wake.map { min($0, time) } ?? time
    }

    private mutating func awaken(_ now: MonotonicTime, _ actions: inout [Action]) {
        guard let wake = self.wake, now >= wake else { return }
        self.wake = nil
        self.release(now) { now >= $0.until }
        for rest in self.resting.values { self.note(wake: rest.until) }
        for (group, scan) in self.scans.sorted(by: { $0.key < $1.key }) {
            guard !scan.isUnderWay, let until = scan.until else { continue }
            guard now >= until else {
                self.note(wake: until)
                continue
            }
            self.scan(group, scan, now, &actions)
        }
        for (group, pass) in self.passes.sorted(by: { $0.key < $1.key }) {
            guard let due = pass.due else { continue }
            guard now >= due else {
                self.note(wake: due)
                continue
            }
            self.passes[group]?.due = nil
            self.look(at: group, now, &actions)
        }
    }

    /// Begins with those who have rested, as far as there is room; the rest of them have rested
    /// long enough and are next.
    private mutating func release(_ now: MonotonicTime, where isOver: (Rest) -> Bool) {
        for (target, rest) in self.resting.filter({ isOver($0.value) }).sorted(by: {
            $0.key < $1.key
        }) {
            guard self.active.count < self.bounds.activeCountMax else {
                self.resting[target]?.until = now + self.bounds.retryMin
                self.resting[target]?.lane = nil
                self.note(wake: now + self.bounds.retryMin)
                continue
            }
            self.resting[target] = nil
            self.begin(target, Active(through: rest.through, attempts: rest.attempts))
        }
    }

    private mutating func advance(_ now: MonotonicTime, _ actions: inout [Action]) {
        while self.askingCount < self.bounds.askCountMax, self.queueStart < self.queue.count {
            let target = self.queue[self.queueStart]
            self.queueStart += 1
            // It was lost meanwhile, or stands here twice because it was lost and came back.
            guard self.active[target]?.stage == .waiting else { continue }
            self.active[target]?.stage = .asking
            self.askingCount += 1
            actions.append(.ask(target, after: self.seen[target]))
        }
        if self.queueStart > 1_024 || self.queueStart == self.queue.count {
            self.queue.removeFirst(self.queueStart)
            self.queueStart = 0
        }
        guard self.active.count <= self.bounds.activeCountMax / 2 else { return }
        for (group, scan) in self.scans.sorted(by: { $0.key < $1.key })
        where !scan.isUnderWay && scan.until == nil {
            self.scan(group, scan, now, &actions)
        }
    }
}
