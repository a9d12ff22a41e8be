import StratusCoding
import StratusConsensus
package import StratusModel
import StratusRuntime
package import StratusStorage
import Synchronization

/// All replicas of a node at work: takes what clients, peers, the log and the clock bring, lets
/// ``ReplicaHost`` decide, and carries out what it asks for.
///
/// Everything here runs on `executor`, which owns a thread that may block; the log syncs on a
/// thread of its own, and checkpoints run on another. A replica is opened when somebody first asks
/// for it: a partition that nobody uses costs nothing.
///
/// Promises:
/// - A question gets one answer, at its deadline at the latest. `.notExecuted` and `.notLeader`
///   mean that it did not and will not happen.
/// - After a failed sync nothing is promised any more: what waits is answered `.outcomeUnknown`,
///   nothing new is taken, peers are not answered. Only a restart mends it.
/// - What waits is bounded; what comes beyond is `.notExecuted` with the time it takes to work off.
package actor NodeReplicas {
    struct Member {
        let partition: any NodePartition
        var usedAt: MonotonicTime
        var isCheckpointing = false
        /// The state's last refusal, until it works again.
        var problem: String?
        /// It was that the disk is full.
        var lacksRoom = false
        /// The follower that the log last kept no more for.
        var gaveUp: (node: NodeID, at: MonotonicTime)?
        /// When it was last said that a snapshot has no room.
        var lackedRoomAt: MonotonicTime?
        /// Applied up to here when jobs were last looked for.
        var jobsSeen: LogIndex?
        /// The partition's count of mail when it was last noted that there may be some to carry.
        var mailSeen = 0
        var eventsSeen = 0
        /// What was applied when the last checkpoint began.
        var checkpointFrom: (index: LogIndex, milliseconds: Int64)?

        /// Entries were applied: the state works. Returns whether they wrote mail or events.
        mutating func noteApplied() -> (mail: Bool, events: Bool) {
            if self.problem != nil { self.problem = nil }
            self.lacksRoom = false
            let (mail, events) = (self.partition.mailCount, self.partition.eventCount)
            defer { (self.mailSeen, self.eventsSeen) = (mail, events) }
            return (mail != self.mailSeen, events != self.eventsSeen)
        }
    }

    /// A group that cannot be opened now.
    struct Unopenable {
        /// It is tried again then.
        var until: MonotonicTime
        var why: String
        /// It was closed on purpose, for a moment.
        var isMending = false
    }

    /// Events dealt with before others get their turn on the executor.
    private static let turnCountMax = 1_024
    private static let sweepInterval = Duration.milliseconds(200)
    private static let housekeepingInterval = Duration.milliseconds(250)
    /// A group that could not be opened is tried again after this.
    private static let reopenDelay = Duration.seconds(1)

    /// A follower that is given up again within so long is not said again.
    static let givenUpInterval = Duration.seconds(600)

    /// Between two looks whether a full disk has room again.
    private static let roomInterval = Duration.seconds(1)

    /// Rounds of events in one turn.
    private static let roundCountMax = 8
    private static let responseDelay = Duration.milliseconds(100)

    let setup: Setup
    let world: any World
    let log: SegmentedLog
    let sender: any PeerSender
    private let executor: any SerialExecutor & TaskExecutor
    let checkpointer: any TaskExecutor
    var kept = KeptCheckpointers()
    nonisolated let inbox: ReplicaInbox
    nonisolated let leaders = Mutex<[GroupID: NodeID]>([:])
    private nonisolated let pace = Mutex(Duration.milliseconds(10))
    nonisolated let scrubbed = Mutex(ScrubFigures())
    nonisolated let reserved = Mutex(ReserveFigures())
    nonisolated let watched = Mutex(OwnState())
    nonisolated let retained = Mutex(RetentionFigures())
    nonisolated let remained = Mutex(RemainsFigures())
    var remains = Remains()
    var remainsAskedAt = MonotonicTime(nanoseconds: 0)
    /// See ``toldOfBodies(in:)``.
    nonisolated let told = Mutex<[GroupID: (index: LogIndex, milliseconds: Int64)]>([:])
    /// Shows what the storage thread is doing.
    package nonisolated let watch = WorkWatch()
    private nonisolated let faultText = Mutex<String?>(nil)
    private nonisolated let stoppedCount = Mutex(0)
    private nonisolated let divergedCount = Mutex(0)

    /// Groups whose bodies the keeper had no room to hear of.
    var untold: Set<GroupID> = []
    let host: ReplicaHost
    let snapshotPace: SnapshotPace
    var members: [GroupID: Member] = [:]
    /// Groups whose mail has moved since ``groupsWithMailNews()`` was last asked, or that are led
    /// by somebody else than before.
    private var mailNews: Set<GroupID> = []
    private nonisolated let mailSignal = AsyncStream<Void>.makeStream(
        bufferingPolicy: .bufferingNewest(1))
    /// The same of events that subscriptions may want.
    private var eventNews: Set<GroupID> = []
    private nonisolated let eventSignal = AsyncStream<Void>.makeStream(
        bufferingPolicy: .bufferingNewest(1))
    var unopenable: [GroupID: Unopenable] = [:]
    /// The last groups reported through `unopenedChanged`.
    private var unopened: [GroupID] = []
    /// Groups of the log that ``openNext()`` has not come to; nil before it was called.
    private var unasked: [GroupID]?
    private var foundCount = 0
    var waiting = WaitingQuestions()
    private var tokenCount: UInt64 = 0
    private var wakeAt: MonotonicTime?
    private var sweepAt: MonotonicTime?
    private var housekeepAt: MonotonicTime
    /// The last value reported through `roomChanged`.
    private var hasRoom = true
    private var roomAskedAt = MonotonicTime(nanoseconds: 0)
    var reserve: DiskReserve
    var spaceAskedAt: MonotonicTime?
    private(set) var isStopped = false
    var scrub = Scrub()
    private var departures = Departures()
    /// Within a turn, at whose end everything leaves.
    private var isInTurn = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        self.executor.asUnownedSerialExecutor()
    }

    /// - Parameters:
    ///   - inbox: where `log` and `sender`'s counterpart report.
    ///   - executor: owns one thread, which may block.
    ///   - checkpointer: another one.
    package init(
        _ setup: Setup, log: SegmentedLog, inbox: ReplicaInbox, sender: any PeerSender,
        in world: any World, on executor: any SerialExecutor & TaskExecutor,
        checkpointsOn checkpointer: any TaskExecutor
    ) {
        self.setup = setup
        self.world = world
        self.log = log
        self.inbox = inbox
        self.sender = sender
        self.executor = executor
        self.checkpointer = checkpointer
        self.housekeepAt = world.now
        self.reserve = DiskReserve(size: setup.reserve)
        self.snapshotPace = SnapshotPace(rate: setup.snapshotRate)
        self.host = ReplicaHost(
            node: setup.node,
            liveness: NodeLiveness(
                incarnation: setup.incarnation, peers: setup.peers, at: world.now))
    }

    // MARK: From anywhere

    package nonisolated var node: NodeID { self.setup.node }

    /// Why this node serves nothing any more, if so.
    package nonisolated var fault: String? { self.faultText.withLock { $0 } }

    /// Replicas here that have stopped before an entry of a newer build.
    package nonisolated var stoppedReplicaCount: Int { self.stoppedCount.withLock { $0 } }

    /// Replicas here that were found to differ from a majority of their group since the start.
    package nonisolated var divergedReplicaCount: Int { self.divergedCount.withLock { $0 } }

    /// Returns the leader of a group, as far as this node knows.
    package nonisolated func leader(of group: GroupID) -> NodeID? {
        self.leaders.withLock { $0[group] }
    }

    package nonisolated func ask(
        _ body: PeerRequest.Body, of group: GroupID, deadline: MonotonicTime
    ) async -> PeerResponse.Answer {
        await withCheckedContinuation { continuation in
            self.ask(body, of: group, deadline: deadline) { continuation.resume(returning: $0) }
        }
    }

    private nonisolated func ask(
        _ body: PeerRequest.Body, of group: GroupID, deadline: MonotonicTime,
        _ answer: @escaping @Sendable (PeerResponse.Answer) -> Void
    ) {
        let question = ReplicaInbox.Question(
            group: group, body: body, deadline: deadline, asker: .here(answer))
        let isTaken = self.inbox.ask(
            question, countMax: self.setup.limits.pendingCommandCountMax,
            sizeMax: self.setup.limits.pendingCommandSizeMax.raw)
        if !isTaken { answer(self.busy) }
    }

    /// Events that wait for the executor.
    nonisolated var inboxCount: Int { self.inbox.count }

    /// Not executed; come back when what waits now is done.
    private nonisolated var busy: PeerResponse.Answer {
        let milliseconds = self.pace.withLock { $0 }.clampedNanoseconds / 1_000_000
        return .notExecuted(retryAfterMilliseconds: UInt32(clamping: max(10, milliseconds)))
    }

    // MARK: Life

    /// Begins to work. What came in before waits in the inbox.
    package func start() {
        let files = self.world.files
        self.snapshotPace.room = { [unowned self] in
            guard let space = try? files.space() else { return nil }
            let reserve = self.reserved.withLock { $0.reserve.raw }
            return ByteCount(max(0, Int(clamping: space.free) - reserve))
        }
        self.recallRemains()
        // All of it was read back: damage from now on can be named.
        self.log.noteState()
        var effects: [ReplicaHost.Effect] = []
        // Alone there is nobody to beat to, and nobody to resign to.
        if self.setup.isClustered || !self.setup.peers.isEmpty {
            self.host.start(at: self.world.now, into: &effects)
        }
        self.carryOut(effects)
        let executor = self.executor
        self.inbox.start { [weak self] in
            Task(executorPreference: executor) { await self?.drain() }
        }
    }

    /// Hands leadership over where somebody can take it, answers what can be answered, and leaves
    /// rows that need no recovery and a log whose damage can be named.
    package func stop() async {
        guard !self.isStopped else { return }
        var effects: [ReplicaHost.Effect] = []
        // What has come in by now; what causes more of itself is not waited for.
        var roundCount = self.inbox.count / Self.turnCountMax + 1
        while roundCount > 0, self.work() { roundCount -= 1 }
        for group in self.host.allGroups {
            self.host.with(group, at: self.world.now, into: &effects) { replica, out in
                replica.handle(.inhibited(.stop), at: self.world.now, into: &out)
            }
        }
        self.carryOut(effects)
        self.inbox.stop()
        while self.work() {}
        self.isStopped = true
        self.answerAllUnknown()
        self.depart()
        self.kept.removeAll()
        let end = self.world.now + Self.checkpointPatience
        for group in self.members.keys.sorted() {
            guard let member = self.members[group], member.partition.isOpen, self.isWell(group),
                self.world.now < end
            else { continue }
            // What cannot be checkpointed is in the log.
            _ = try? member.partition.checkpoint()
        }
        await self.log.close()
    }

    /// Partitions may be many and the disk busy: what the next start replays for it is in the log.
    private static let checkpointPatience = Duration.seconds(2)

    /// Answers, unfinished, what might wait here until after `time`: its asker knows what to do
    /// with an outcome that is unknown.
    package func giveUp(dueAfter time: MonotonicTime) {
        self.answerUnknown { $0.deadline > time }
        self.depart()
    }

    // MARK: What is seen from outside

    /// Groups that are open, and those that cannot be.
    package func status() -> [GroupStatus] {
        let closed = self.unopenable.keys.sorted().map { group in
            GroupStatus(
                group: group, role: .follower, term: self.log.hardState(of: group)?.term ?? .zero,
                leader: nil, applied: .zero, durable: .zero,
                problem: "it cannot be opened: \(self.unopenable[group]?.why ?? "")",
                isOpen: false)
        }
        return (self.openStatus() + closed).sorted { $0.group < $1.group }
    }

    private func openStatus() -> [GroupStatus] {
        let wall = self.world.wallMilliseconds
        return self.host.allGroups.compactMap { group in
            guard let replica = self.host.replica(of: group), let member = self.members[group]
            else { return nil }
            return GroupStatus(
                group: group, role: replica.raft.role, term: replica.raft.term,
                leader: replica.raft.leader, applied: replica.state.applied,
                durable: replica.state.durable,
                problem: member.problem ?? replica.problem ?? self.problemOfFollower(of: member),
                aheadMilliseconds: replica.raft.log.lastTime.milliseconds &- wall)
        }
    }

    /// Groups led here that have applied something since they were last handed out by this.
    package func groupsWithNews() -> [GroupID] {
        self.host.allGroups.filter { group in
            guard let replica = self.host.replica(of: group), replica.raft.serves,
                let member = self.members[group], member.jobsSeen != replica.state.applied
            else { return false }
            self.members[group]?.jobsSeen = replica.state.applied
            return true
        }
    }

    /// Returns when ``groupsWithMailNews()`` has something to say that it had not said before, or
    /// the task is cancelled. For one caller at a time.
    package nonisolated func waitForMailNews() async {
        for await _ in self.mailSignal.stream { return }
    }

    /// Groups that may have posted something since they were last handed out by this: those led
    /// here, and those whose mail is another node's business.
    package func groupsWithMailNews() -> (led: [GroupID], others: [GroupID]) {
        defer { self.mailNews.removeAll(keepingCapacity: true) }
        let all = self.mailNews.sorted()
        func isLed(_ group: GroupID) -> Bool {
            self.host.replica(of: group)?.raft.serves == true
        }
        return (all.filter(isLed), all.filter { !isLed($0) })
    }

    /// Returns when ``groupsWithEventNews()`` has something to say that it had not said before, or
    /// the task is cancelled. For one caller at a time.
    package nonisolated func waitForEventNews() async {
        for await _ in self.eventSignal.stream { return }
    }

    /// Groups whose databases may have events since they were last handed out by this, or that are
    /// led by somebody else than before: those led here, and the others.
    package func groupsWithEventNews() -> (led: [GroupID], others: [GroupID]) {
        defer { self.eventNews.removeAll(keepingCapacity: true) }
        let all = self.eventNews.sorted()
        func isLed(_ group: GroupID) -> Bool {
            self.host.replica(of: group)?.raft.serves == true
        }
        return (all.filter(isLed), all.filter { !isLed($0) })
    }

    /// Opens the next group that the disk holds and nobody has asked for since the start: it may
    /// have work left that only its leader finds.
    /// - Returns: false when there is none.
    package func openNext() -> Bool {
        guard self.fault == nil, !self.isStopped else { return false }
        let now = self.world.now
        if self.unasked == nil {
            self.unasked = self.log.groupIDs.reversed()
            self.foundCount = self.unasked?.count ?? 0
            self.setup.events.opened(0, self.foundCount)
        }
        defer {
            self.setup.events.opened(
                self.foundCount - (self.unasked?.count ?? 0), self.foundCount)
        }
        while let group = self.unasked?.popLast() {
            guard self.members[group] == nil else { continue }
            var effects: [ReplicaHost.Effect] = []
            _ = self.open(group, at: now, into: &effects)
            self.carryOut(effects)
            return true
        }
        return false
    }

    /// Whether every group that the disk held at the start was opened, or could not be.
    var hasOpenedAll: Bool { self.unasked?.isEmpty ?? false }

    /// Hands the group out once more by ``groupsWithNews()``.
    package func lookAgain(at group: GroupID) { self.members[group]?.jobsSeen = nil }

    /// How much of snapshots is spooled and installed in a second; 0: as much as can be.
    package func paceSnapshots(at rate: ByteCount) { self.snapshotPace.rate = rate }

    /// Answers a read from what is applied here, which may be old.
    package func peek(_ query: Query, in group: GroupID) -> QueryAnswer? {
        self.fault == nil ? self.host.peek(query, in: group) : nil
    }

    // MARK: Working

    private func drain() {
        for _ in 0..<Self.roundCountMax where !self.work() { return }
        // Others wait for this executor too.
        Task(executorPreference: self.executor) { await self.drain() }
    }

    /// Deals with what waits, but for what is too much for one turn.
    /// - Returns: false when there was nothing.
    private func work() -> Bool {
        let events = self.inbox.take(countMax: Self.turnCountMax)
        if events.isEmpty { return false }
        let start = self.world.now
        self.isInTurn = true
        defer {
            self.isInTurn = false
            self.depart()
        }
        var effects: [ReplicaHost.Effect] = []
        var asked = Asked()
        for event in events {
            switch event {
            case .asked(let question): self.take(question, &asked, into: &effects)
            case .peer(let node, .request(let request), let receipt):
                self.take(request, from: node, &asked, into: &effects)
                receipt.settle()
            default: self.take(event, into: &effects)
            }
            if !effects.isEmpty {
                self.carryOut(effects)
                effects.removeAll(keepingCapacity: true)
            }
        }
        for (group, questions) in asked.byGroup {
            self.host.with(group, at: self.world.now, into: &effects) { replica, out in
                replica.submit(
                    questions.commands, wallMilliseconds: self.world.wallMilliseconds,
                    at: self.world.now, into: &out)
                replica.read(questions.queries, at: self.world.now, into: &out)
            }
        }
        self.carryOut(effects)
        self.keepHouse()
        let took = self.world.now - start
        self.pace.withLock { $0 = max(took * 2, ($0 * 7 + took) / 8) }
        return true
    }

    private func take(_ event: ReplicaInbox.Event, into effects: inout [ReplicaHost.Effect]) {
        guard self.fault == nil else {
            if case .peer(_, _, let receipt) = event { receipt.settle() }
            return
        }
        let now = self.world.now
        switch event {
        case .peer(let node, let message, let receipt):
            self.take(message, from: node, at: now, into: &effects)
            receipt.settle()
        case .peerEnded(let node): self.host.peerEnded(node, at: now, into: &effects)
        case .log(.durable(let group, let through, let term, let hardState)):
            self.host.becameDurable(
                group, through: through, term: term, hardState: hardState, at: now,
                into: &effects)
        case .log(.failed(let error)):
            self.fence("the log cannot be written: \(error.text)")
        case .checkpointed(let group, let result):
            self.checkpointed(group, result, at: now, into: &effects)
        case .copiesHeld(let group, let index):
            self.host.with(group, at: now, into: &effects) { replica, out in
                replica.handle(.copiesHeld(through: index), at: now, into: &out)
            }
        case .woke:
            if let wakeAt, now >= wakeAt { self.wakeAt = nil }
            self.host.wake(self.vitals, at: now, into: &effects)
            self.lookAtOwnState()
            self.sweep(at: now)
        case .asked: break
        }
    }

    private func take(
        _ message: PeerMessage, from node: NodeID, at now: MonotonicTime,
        into effects: inout [ReplicaHost.Effect]
    ) {
        switch message {
        case .heartbeat(let heartbeat):
            self.host.receive(heartbeat, from: node, self.vitals, at: now, into: &effects)
        case .consensus(let group, let message):
            guard self.open(group, at: now, into: &effects) == nil else { return }
            self.members[group]?.usedAt = now
            if case .heldAsk = message.body { self.setup.bodies?.wantsHeld(group) }
            self.host.receive(message, of: group, from: node, at: now, into: &effects)
        // Requests were taken before, and copies are the keeper's.
        case .request, .hello, .welcome, .join, .admission, .refusal, .starts, .purpose, .taken,
            .response, .copy:
            break
        }
    }

    private func take(
        _ request: PeerRequest, from node: NodeID, _ asked: inout Asked,
        into effects: inout [ReplicaHost.Effect]
    ) {
        // A fenced node does not speak to its peers.
        guard self.fault == nil else { return }
        let question = ReplicaInbox.Question(
            group: request.group, body: request.body,
            deadline: self.world.now + .milliseconds(Int64(request.remainingMilliseconds)),
            asker: .peer(node, number: request.number))
        if case .command(let command) = request.body,
            let refusal = PeerPrincipals.refusal(of: command)
        {
            return self.departures.add(.refused(refusal), to: question.asker)
        }
        self.take(question, &asked, into: &effects)
    }

    private func take(
        _ question: ReplicaInbox.Question, _ asked: inout Asked,
        into effects: inout [ReplicaHost.Effect]
    ) {
        let now = self.world.now
        if self.fault != nil || self.isStopped {
            return self.departures.add(
                .notExecuted(retryAfterMilliseconds: 1_000), to: question.asker)
        }
        guard question.deadline >= now else {
            return self.departures.add(
                .notExecuted(retryAfterMilliseconds: 100), to: question.asker)
        }
        if case .node = question.body {
            // The node's own: never a replica's.
            return self.departures.add(
                .refused("not a question for a partition"), to: question.asker)
        }
        guard self.waiting.hasRoom(for: question, within: self.setup.limits) else {
            return self.departures.add(self.busy, to: question.asker)
        }
        if let refusal = self.open(question.group, at: now, into: &effects) {
            return self.departures.add(refusal, to: question.asker)
        }
        if case .command = question.body, !self.log.takesMore {
            return self.departures.add(
                .notExecuted(retryAfterMilliseconds: 1_000), to: question.asker)
        }
        if let refusal = self.refusalForRoom(question.body, of: question.group) {
            return self.departures.add(refusal, to: question.asker)
        }
        self.members[question.group]?.usedAt = now
        let token = self.nextToken()
        self.waiting.add(question, as: token, at: now)
        asked.add(question.body, as: token, to: question.group)
        self.armSweep(at: now)
    }

    func nextToken() -> RaftGroup.RequestToken {
        self.tokenCount += 1
        return RaftGroup.RequestToken(self.tokenCount)
    }

    private var vitals: NodeLiveness.Vitals {
        let waits = self.log.oldestUnsyncedAt.map { self.world.now - $0 } ?? .zero
        return NodeLiveness.Vitals(
            wallMilliseconds: self.world.wallMilliseconds,
            unsyncedMilliseconds: UInt32(clamping: max(0, waits.clampedNanoseconds / 1_000_000)))
    }

    // MARK: Carrying out

    func carryOut(_ effects: [ReplicaHost.Effect]) {
        for effect in effects {
            switch effect {
            case .heartbeat(let heartbeat, let to):
                self.departures.add(.heartbeat(heartbeat), to: to)
            case .message(let group, let message, let to):
                self.departures.add(.consensus(group, message), to: to)
            case .wake(let time): self.wake(at: time)
            case .replica(let group, let effect): self.take(effect, of: group)
            }
        }
        if !self.isInTurn { self.depart() }
    }

    private func depart() {
        var left: [(to: NodeID, responses: [PeerMessage])] = []
        // The links' loop is often that of those who wait for answers.
        HeldWakes.during { left = self.departures.leave(by: self.sender) }
        for (node, responses) in left {
            // The link back to a peer that has just started may be a moment behind its own.
            let (sender, sleep) = (self.sender, self.setup.sleep)
            let time = self.world.now + Self.responseDelay
            Task {
                await sleep(time)
                _ = sender.send(responses, to: node)
            }
        }
    }

    private func take(_ effect: Replica.Effect, of group: GroupID) {
        switch effect {
        case .answered(let token, .success(let outcome)): self.answer(token, .outcome(outcome))
        case .answered(let token, .failure(let refusal)): self.answer(token, self.text(refusal))
        case .read(let token, .success(let answer)): self.answer(token, .answer(answer))
        case .read(let token, .failure(let refusal)): self.answer(token, self.text(refusal))
        case .roleChanged(let role, let term, let leader):
            self.leaders.withLock { $0[group] = leader }
            if role == .leader { self.members[group]?.jobsSeen = nil }
            self.noteMail(of: group)
            self.noteEvents(of: group)
            self.setup.events.roleChanged(group, role, term, leader)
        case .alarm(let alarm): self.setup.events.alarm(group, "\(alarm)")
        case .failed(let error): self.failed(group, error)
        case .stopped(let newer):
            self.stoppedCount.withLock { $0 += 1 }
            self.setup.events.alarm(group, newer.description)
            self.setup.events.stopped(group, newer)
        case .applied:
            // Looked up once: this follows every group of entries.
            let (hasMail, hasEvents) = self.members[group]?.noteApplied() ?? (false, false)
            if hasMail { self.noteMail(of: group) }
            if hasEvents { self.noteEvents(of: group) }
            self.tellBodies(of: group)
            self.noteErasure(of: group)
        case .snapshotLacksRoom: self.lacksSnapshotRoom(group)
        case .gaveUp(let node, let index): self.gaveUp(node, of: group, after: index)
        case .differs(let node, let index):
            self.setup.events.alarm(
                group, "after entry \(index) the rows of \(node) differ from those of this node")
        case .diverged:
            self.divergedCount.withLock { $0 += 1 }
            self.setup.events.alarm(
                group, self.host.replica(of: group)?.problem ?? "its rows differ")
        case .rotten:
            self.scrubbed.withLock { $0.damageCount += 1 }
            self.setup.events.alarm(
                group, self.host.replica(of: group)?.problem ?? "its rows are damaged")
        case .rowsChecked(let error): self.rowsChecked(group, error)
        case .rebuilt(let index):
            self.scrubbed.withLock { $0.repairCount += 1 }
            self.setup.events.alarm(
                group, "the wrong rows were replaced by a snapshot at entry \(index)")
        case .rebuildFailed(let error): self.rebuildFailed(group, error)
        case .fileRebuilt: self.fileRebuilt(group)
        case .send, .wake, .resigned, .changed, .reached: break
        }
    }

    /// Loudly, though not for every one of many in a row.
    private func gaveUp(_ node: NodeID, of group: GroupID, after index: LogIndex) {
        self.retained.withLock { $0.givenUpCount += 1 }
        let now = self.world.now
        if let last = self.members[group]?.gaveUp, last.node == node,
            now < last.at + Self.givenUpInterval
        {
            self.members[group]?.gaveUp = (node, now)
            return
        }
        self.members[group]?.gaveUp = (node, now)
        self.setup.events.alarm(
            group,
            "\(node) needs entries after \(index), which the log no longer keeps: it gets a "
                + "snapshot. See 'storage.retainedLogSizeMax'")
    }

    private func noteMail(of group: GroupID) {
        self.mailNews.insert(group)
        self.mailSignal.continuation.yield()
    }

    private func noteEvents(of group: GroupID) {
        self.eventNews.insert(group)
        self.eventSignal.continuation.yield()
    }

    func answer(_ token: RaftGroup.RequestToken, _ answer: PeerResponse.Answer) {
        // Nil when its deadline has passed: it was answered then.
        guard let item = self.waiting.remove(token) else { return }
        if case .outcome = answer { self.setup.events.committed(self.world.now - item.since) }
        self.departures.add(answer, to: item.question.asker)
    }

    private func text(_ refusal: ReplicaRefusal) -> PeerResponse.Answer {
        PeerResponse.Answer(refusal, by: self.setup.node, busy: self.busy)
    }

    private func failed(_ group: GroupID, _ error: StoreError) {
        let isNew = self.members[group]?.problem == nil
        self.members[group]?.problem = "\(error)"
        self.members[group]?.lacksRoom = error.kind == .full
        if self.members[group]?.partition.hasFailedSync == true {
            self.fence("the rows of \(group) cannot be written: \(error)")
        } else if isNew {
            self.setup.events.alarm(group, "the state refuses to work: \(error)")
        }
    }

    func fence(_ why: String) {
        guard self.fault == nil else { return }
        self.faultText.withLock { $0 = why }
        self.setup.events.fenced(why)
        self.answerAllUnknown()
    }

    private func answerAllUnknown() { self.answerUnknown { _ in true } }

    private func answerUnknown(where isMeant: (ReplicaInbox.Question) -> Bool) {
        for token in self.waiting.tokens(where: isMeant) {
            guard let item = self.waiting.remove(token) else { continue }
            self.departures.add(
                item.isCommand ? .outcomeUnknown : .notExecuted(retryAfterMilliseconds: 1_000),
                to: item.question.asker)
        }
    }

    // MARK: Time

    func wake(at time: MonotonicTime) {
        if let wakeAt, wakeAt <= time { return }
        self.wakeAt = time
        // Work goes on behind what has come in meanwhile.
        if time <= self.world.now { return self.inbox.post(.woke) }
        self.sleepAndWake(time)
    }

    private func sleepAndWake(_ time: MonotonicTime) {
        let (inbox, sleep) = (self.inbox, self.setup.sleep)
        Task(executorPreference: self.executor) {
            await sleep(time)
            inbox.post(.woke)
        }
    }

    private func armSweep(at now: MonotonicTime) {
        guard self.sweepAt == nil, !self.waiting.isEmpty else { return }
        let time = now + Self.sweepInterval
        self.sweepAt = time
        self.sleepAndWake(time)
    }

    /// Tells requests past their deadline that their outcome is unknown.
    private func sweep(at now: MonotonicTime) {
        guard let time = self.sweepAt, now >= time else { return }
        self.sweepAt = nil
        for token in self.waiting.tokens(where: { $0.deadline < now }) {
            guard let item = self.waiting.remove(token) else { continue }
            self.host.replica(of: item.question.group)?.abandon(token)
            self.departures.add(
                item.isCommand ? .outcomeUnknown : .notExecuted(retryAfterMilliseconds: 100),
                to: item.question.asker)
        }
        self.armSweep(at: now)
    }

    // MARK: Groups

    /// - Returns: why there is no replica of the group here, if so.
    func open(
        _ group: GroupID, at now: MonotonicTime, into effects: inout [ReplicaHost.Effect]
    ) -> PeerResponse.Answer? {
        if self.members[group] != nil { return nil }
        if let known = self.unopenable[group], now < known.until {
            return .notExecuted(retryAfterMilliseconds: 1_000)
        }
        guard let first = self.setup.firstConfiguration(group) else { return .notLeader(nil) }
        do {
            // What this node has promised is not known: it must not vote.
            if self.log.hasUnknownLoss {
                throw LogError(
                    .corrupt, "the log has lost entries, and it is unknown of which partitions")
            }
            let partition = try self.setup.openPartition(group)
            var recovered = try RaftGroup.Recovered(
                of: group, in: self.log, state: partition.appliedPosition, initial: first,
                hasPeers: self.setup.isClustered || !self.setup.peers.isEmpty,
                tailSizeMax: self.setup.tuning.raft.tailSizeMax)
            recovered.silentThrough = self.setup.silentThrough(group)
            let replica = Replica(
                group: group, node: self.setup.node, recovered: recovered, state: partition,
                log: self.log, tuning: self.setup.tuning, answers: self.setup.answers,
                pace: self.snapshotPace, watch: self.watch, clock: { [world] in world.now },
                level: self.setup.level,
                seed: self.world.random())
            self.members[group] = Member(partition: partition, usedAt: now)
            self.unopenable[group] = nil
            self.reportUnopened()
            if let problem = replica.problem { self.setup.events.alarm(group, problem) }
            self.tellOpened(group)
            self.noteErasure(of: group)
            self.host.add(replica, at: now, into: &effects)
            return nil
        } catch {
            let why = (error as? LogError)?.text ?? "\(error)"
            if self.unopenable[group]?.why != why {
                self.setup.events.alarm(group, "cannot be opened: \(why)")
            }
            self.unopenable[group] = Unopenable(until: now + Self.reopenDelay, why: why)
            self.reportUnopened()
            return .notExecuted(retryAfterMilliseconds: 1_000)
        }
    }

    /// Tells the node which groups cannot be opened, when that has changed.
    private func reportUnopened() {
        let groups = self.unopenable.filter { !$0.value.isMending }.keys.sorted()
        guard groups != self.unopened else { return }
        self.unopened = groups
        let why = groups.first.flatMap { self.unopenable[$0]?.why } ?? ""
        self.setup.events.unopenedChanged(groups, why)
    }

    // MARK: Keeping house

    private func keepHouse() {
        let now = self.world.now
        guard self.fault == nil else { return }
        guard now >= self.housekeepAt else {
            // What is due after an erasure, and a look for room, wait for nobody's events.
            if !self.remains.isNothing || !self.hasRoom { self.wake(at: self.housekeepAt) }
            return
        }
        self.housekeepAt = now + Self.housekeepingInterval
        for group in self.host.allGroups {
            // A WAL that was copied whole keeps its size until the next commit.
            guard let member = self.members[group],
                member.partition.walSize > self.setup.checkpointSize,
                member.partition.durable < member.partition.applied
            else { continue }
            self.checkpoint(group)
        }
        self.lookAtSpace()
        // The log has segments ready: the rows may lack room long before it does.
        let hasRoom = !self.log.isFull && !self.members.values.contains(where: \.lacksRoom)
        if hasRoom != self.hasRoom {
            self.hasRoom = hasRoom
            self.setup.events.roomChanged(hasRoom)
        }
        if !hasRoom {
            self.lookForRoom(at: now)
            // Whether or not anybody asks meanwhile: nobody will, of a node that says it is not
            // ready.
            self.wake(at: now + Self.roomInterval)
        }
        if self.log.segmentCount > self.setup.segmentCountMax { self.freeOldestSegment(at: now) }
        self.lookAtRetention(at: now)
        self.lookAtRemains(at: now)
        self.catchUpOnBodies()
        self.kept.keepOnly { self.members[$0]?.partition.isCurrent($1) == true }
        self.closeIdle()
    }

    /// The log needs a segment and the disk has no room: nothing is lost, and nothing is written.
    /// What can be let go is, and the disk is asked again now and then.
    private func lookForRoom(at now: MonotonicTime) {
        guard now >= self.roomAskedAt + Self.roomInterval else { return }
        self.roomAskedAt = now
        self.freeOldestSegment(at: now)
        self.log.retryIfFull()
        // Whether there is room again is told by a checkpoint that works, not by the next write.
        for group in self.host.allGroups where self.members[group]?.lacksRoom == true {
            self.checkpoint(group)
        }
    }

    func isWell(_ group: GroupID) -> Bool {
        self.host.replica(of: group)?.isStateWell ?? false
    }

    func checkpoint(_ group: GroupID) {
        guard let member = self.members[group], !member.isCheckpointing, self.isWell(group),
            !member.partition.isSpooling
        else { return }
        do throws(StoreError) {
            // A checkpoint copies what was committed.
            try member.partition.commit()
            let position = member.partition.appliedPosition
            self.members[group]?.checkpointFrom = (position.index, position.time.milliseconds)
            guard let checkpointer = try self.kept.checkpointer(of: group, member.partition) else {
                // Nothing but entries that needed no file: now they need one, to be let go.
                try member.partition.checkpoint()
                self.inbox.post(.checkpointed(group, .success(nil)))
                return
            }
            self.members[group]?.isCheckpointing = true
            // Used by that one task alone from here on, until `isCheckpointing` is taken back.
            nonisolated(unsafe) let run = checkpointer
            let inbox = self.inbox
            Task(executorPreference: self.checkpointer) {
                do throws(StoreError) {
                    inbox.post(.checkpointed(group, .success(try run.run())))
                } catch { inbox.post(.checkpointed(group, .failure(error))) }
            }
        } catch { self.failed(group, error) }
    }

    private func checkpointed(
        _ group: GroupID, _ result: Result<LogIndex?, StoreError>, at now: MonotonicTime,
        into effects: inout [ReplicaHost.Effect]
    ) {
        guard let member = self.members[group] else { return }
        self.members[group]?.isCheckpointing = false
        switch result {
        case .success(let index):
            if let index { member.partition.noteDurable(through: index) }
            self.tellDurable(group)
            // The disk takes the rows again: nobody needs to write for the node to say so.
            if self.isWell(group) {
                self.members[group]?.problem = nil
                self.members[group]?.lacksRoom = false
            }
            // The last of a round.
            if !self.members.values.contains(where: \.isCheckpointing) { self.log.noteState() }
            let mustFree =
                self.log.segmentCount > self.setup.segmentCountMax
                && self.log.holdersOfOldest.contains(group)
            let keepsForFollowers = !mustFree || !self.isLogTooLarge
            self.host.with(group, at: now, into: &effects) { replica, out in
                replica.release(
                    keepsTrail: !mustFree, keepsForFollowers: keepsForFollowers, at: now,
                    into: &out)
            }
        case .failure(let error):
            self.kept.remove(group)
            self.failed(group, error)
        }
    }

    /// The log may keep no more for followers: it has reached its bound, or the disk has no room
    /// for more.
    private var isLogTooLarge: Bool {
        self.log.isFull || self.reserve.isLow(self.setup.node)
            || self.log.sizeInUse > self.setup.retainedLogSizeMax
    }

    /// The log is long: those who hold its oldest part make their state durable, or are moved.
    ///
    /// - Parameters:
    ///   - isExpiring: all that the log holds is to go, not only what is too much.
    ///   - keepsForFollowers: whether followers that are behind may keep the log long.
    func freeOldestSegment(
        at now: MonotonicTime, isExpiring: Bool = false, keepsForFollowers: Bool = true
    ) {
        let keepsForFollowers = keepsForFollowers && !self.isLogTooLarge
        for group in self.log.holdersOfOldest {
            var effects: [ReplicaHost.Effect] = []
            guard self.open(group, at: now, into: &effects) == nil else { continue }
            self.carryOut(effects)
            guard let replica = self.host.replica(of: group) else { continue }
            if replica.state.durable < replica.state.applied,
                !keepsForFollowers || !replica.isHeldForFollowers
            {
                self.checkpoint(group)
                continue
            }
            effects = []
            self.host.with(group, at: now, into: &effects) { replica, out in
                replica.release(
                    keepsTrail: false, keepsForFollowers: keepsForFollowers, at: now, into: &out)
            }
            self.carryOut(effects)
        }
        // What is left is not committed, or a follower needs it. Little of it is written again, so
        // that it does not keep what others have written since.
        guard self.log.isOldestWorthMoving || (isExpiring && !keepsForFollowers) else { return }
        for group in self.log.holdersOfOldest
        where self.members[group]?.isCheckpointing != true {
            try? self.log.moveForward(group)
        }
    }

    /// Gives back what partitions hold that nobody has used for longest: a few at a time, since
    /// each is checkpointed first.
    private func closeIdle() {
        let open = self.members.filter { $0.value.partition.isOpen }
        let surplus = open.count - self.setup.openPartitionCountMax
        guard surplus > 0 else { return }
        let idle = open.filter {
            !$0.value.isCheckpointing && !$0.value.partition.isSpooling && self.isWell($0.key)
                && self.host.replica(of: $0.key)?.isRebuilding != true
        }.sorted {
            ($0.value.usedAt, $0.key) < ($1.value.usedAt, $1.key)
        }
        for (group, member) in idle.prefix(min(surplus, 4)) {
            self.kept.remove(group)
            do throws(StoreError) { try member.partition.close() } catch {
                self.failed(group, error)
            }
        }
    }
}
