import StratusCoding
package import StratusConsensus
package import StratusModel
package import StratusStorage

/// One node's copy of one partition: consensus, log, state, snapshots and the requests that wait.
///
/// A thin shell: ``StratusConsensus/RaftGroup`` decides, and this carries out. It never waits; what
/// it cannot do at once (send, wake) it asks of its node by an ``Effect``. The simulator and the
/// node run the same type. Owned by one executor.
///
/// Promises:
/// - A request gets one answer. `.notExecuted` means that it did not and will not happen.
/// - A read is answered over a state that holds everything acknowledged before it was asked.
/// - After an error of the state nothing is answered from it until it has come back to where it
///   was.
package final class Replica {
    package enum Effect: Sendable, Equatable {
        case send(ConsensusMessage, to: NodeID)
        /// Call ``Replica/wake(at:into:)`` at this time, instead of any earlier request.
        case wake(at: MonotonicTime)
        case answered(Request, Result<Outcome, ReplicaRefusal>)
        case read(Request, Result<QueryAnswer, ReplicaRefusal>)
        case changed(Request, Result<LogPoint, ReplicaRefusal>)
        case roleChanged(RaftGroup.Role, term: Term, leader: NodeID?)
        /// To be told to the other nodes with the heartbeats.
        case resigned(term: Term)
        case applied(through: LogIndex)
        case reached(RarePath)
        case alarm(RaftGroup.Alarm)
        /// The log keeps no more for this follower: what it needs next is let go, and it gets a
        /// snapshot.
        case gaveUp(NodeID, after: LogIndex)
        /// A snapshot is not sent, or not received, for want of room on the disk:
        /// ``Replica/problem`` says what is missing.
        case snapshotLacksRoom
        /// The rows of this member are others than the own, after the same entry.
        case differs(NodeID, at: LogIndex)
        /// The own rows are others than those of a majority. Nothing is answered from them until a
        /// snapshot has come.
        case diverged(at: LogIndex)
        /// The own rows are not what was applied. Nothing is answered from them until a snapshot has
        /// come; alone they are all there is.
        case rotten(at: LogIndex)
        /// A check of the rows has ended: they are what was applied, or it came to nothing.
        case rowsChecked(StoreError?)
        /// The rows that were wrong have been replaced.
        case rebuilt(at: LogIndex)
        /// The state refused to work. It is tried again; somebody should look.
        case failed(StoreError)
        /// The file was made anew after an erasure.
        case fileRebuilt
        /// The file was not made anew; nothing has changed, and it may be begun again.
        case rebuildFailed(StoreError)
        /// The state applies nothing any more: only a newer build can apply what comes next.
        case stopped(NewerEntry)
    }

    /// The owner's name for a request.
    package typealias Request = RaftGroup.RequestToken

    package struct Tuning: Sendable, Equatable {
        package var raft = RaftTuning()
        /// Entries kept in the log behind the state, for followers that are a little slow.
        package var trailingEntryCount: UInt64 = 4_096
        /// Kept in the log for followers that are further behind, by size and by number: beyond it
        /// the one that is furthest behind is given up and gets a snapshot. From half of it on a
        /// leader takes commands in more slowly. 0: nothing is kept but what comes behind a
        /// snapshot on its way.
        package var retainedSizeMax: ByteCount = .mebibytes(2_048)
        package var retainedEntryCountMax = 1 << 19
        package var applySizeMax: ByteCount = .kibibytes(256)
        /// Replicas compare their digests at every index that this divides; 0: never.
        package var digestInterval: UInt64 = 1_024
        /// They compare them also where so much time has passed since the last time, once nothing is
        /// applied any more; nil: never.
        package var digestPause: Duration? = .seconds(60)
        /// The number of reads and runs of entries that a replica handles before the others of its
        /// node get their turn. It starts none after `turnTimeMax`.
        package var turnCountMax = 256
        package var turnTimeMax: Duration = .milliseconds(2)
        /// A read that answers in pages ends its page after this. A page's work is counted, too:
        /// this is for what counting misjudges.
        package var readTimeMax: Duration = .milliseconds(100)
        /// See ``RaftTuning/awaitsCopies``.
        package var awaitsCopies: Bool {
            get { self.raft.awaitsCopies }
            set { self.raft.awaitsCopies = newValue }
        }
        /// A state that failed is tried again after this.
        package var retryDelay: Duration = .milliseconds(100)
        package init() {}
    }

    struct Waiting {
        let request: Request
        let point: LogPoint
    }

    private struct WaitingRead {
        let request: Request
        let query: Query
        /// Nil until the leader has confirmed itself.
        var index: LogIndex?
    }

    package let group: GroupID
    package let node: NodeID
    package private(set) var raft: RaftGroup
    package let state: any PartitionState
    let log: any SharedLog
    let tuning: Tuning
    /// The budget that counts the answers to reads; nil if nothing does.
    private let answers: AnswerBudget?
    /// The watch to which the replica reports what it is doing; nil if nobody looks.
    private let watch: WorkWatch?
    let bugs: PlantedBugs

    /// In the order of their indices.
    var waiting: [Waiting] = []
    private var reads: [WaitingRead] = []
    /// Some of `reads` got their index since they were last looked through.
    private var hasReadyReads = false
    private var changes: [Request] = []
    /// Ordered by consensus, perhaps not yet applied.
    var ordered: LogIndex
    package internal(set) var appliedTime: HybridTime
    var released: LogIndex
    /// The newer entry before which the state stopped. It stays so until the node is started again,
    /// with another build.
    package private(set) var newer: NewerEntry?
    let level: ClusterLevel
    var comparison = DigestComparison()
    /// The index at which the own rows were found to differ from those of a majority, until they
    /// are replaced.
    package internal(set) var divergedAt: LogIndex?
    /// The index at which the own rows were found not to be what was applied, until they are
    /// replaced.
    package internal(set) var rottenAt: LogIndex?
    /// The same where no voter has other rows: it goes on with them.
    var rottenAlone: LogIndex?
    /// When digests were last told, and which entry they were of.
    var toldDigest: (index: LogIndex, at: MonotonicTime)?
    /// When digests may be told, if nothing was applied since `appliedAtRest`.
    var tellDigestAt: MonotonicTime?
    var appliedAtRest = LogIndex.zero
    /// While the state is not well: when it is tried again.
    var retryAt: MonotonicTime?
    /// An error of the state was not yet followed by a `reset()` that worked: nothing may be asked
    /// of it.
    var mustReset = false
    private var raftWakeAt: MonotonicTime?
    var streams = SnapshotStreams()
    /// The snapshot that is being spooled, a slice a turn. It is sent to the peer when it is
    /// complete.
    var spooling: (peer: NodeID, identity: SnapshotIdentity, work: any SnapshotSpooling)?
    var installation: (identity: SnapshotIdentity, work: any SnapshotWork)?
    /// The digest of the rows is being added up, a slice a turn.
    var checking: (work: any ViewWork, isPaced: Bool)?
    /// When the next slice of a check is due.
    var checkOpensAt: MonotonicTime?
    /// The rows passed their last check: who differs from them is wrong.
    var areRowsProven = false
    /// The file is being made anew, because the state erased something.
    var rebuilding: (any RebuildWork)?
    var installationPause = SnapshotPause()
    var spoolingPause = SnapshotPause()
    var arrivalPause = SnapshotPause()
    /// Why a snapshot can be neither sent nor received, while that is so.
    var snapshotProblem: String?
    private var intake = IntakePace()
    /// When the next slice is due.
    var turnAt: MonotonicTime?
    /// Entries or reads are left for the next turn, which begins then.
    private var goesOnAt: MonotonicTime?
    /// When rows in memory are looked at next.
    private var flushAt: MonotonicTime?
    /// The last flush has failed, and the next one waits until `flushAt`.
    private var hasFailedFlush = false
    /// Tells how long a turn has lasted; nil: turns are counted only.
    private let clock: (() -> MonotonicTime)?
    /// Nil: slices follow each other at once.
    let pace: SnapshotPace?
    /// The events that consensus asked for while its actions are being carried out.
    var pendingEvents: [RaftGroup.Event] = []
    private var isRunning = false

    /// - Parameters:
    ///   - recovered: what the log and the state were found to hold. `recovered.snapshot` is where
    ///     the state stands.
    ///   - level: what it may append while it leads.
    package init(
        group: GroupID, node: NodeID, recovered: RaftGroup.Recovered, state: any PartitionState,
        log: any SharedLog, tuning: Tuning = Tuning(), answers: AnswerBudget? = nil,
        pace: SnapshotPace? = nil, watch: WorkWatch? = nil, clock: (() -> MonotonicTime)? = nil,
        level: ClusterLevel = .build, seed: UInt64, bugs: PlantedBugs = PlantedBugs()
    ) {
        self.watch = watch
        self.clock = clock
        self.level = level
        self.group = group
        self.node = node
        self.state = state
        self.log = log
        self.tuning = tuning
        self.answers = answers
        self.pace = pace
        self.bugs = bugs
        self.raft = RaftGroup(
            group: group, node: node, recovered: recovered, tuning: tuning.raft, seed: seed,
            bugs: bugs)
        self.ordered = recovered.snapshot.index
        self.appliedTime = recovered.snapshot.time
        self.released = self.raft.log.base.index
        if self.raft.log.base.index > recovered.base.index {
            // A snapshot was installed and the process ended before the log was told.
            log.restart(group, after: recovered.snapshot, owing: self.owed)
        }
    }

    // MARK: Events

    package func start(at now: MonotonicTime, into effects: inout [Effect]) {
        self.recallWrongRows(at: now, into: &effects)
        self.run(.started, at: now, into: &effects)
    }

    package func receive(
        _ message: ConsensusMessage, from node: NodeID, at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        if case .digest(let index, let digest) = message.body {
            return self.compare(index, digest, from: node, at: now, into: &effects)
        }
        if case .snapshotUntrue = message.body {
            effects.append(.reached(.snapshotRefusedByPeer))
            // They were sound while it was spooled: a peer that says so again and again is to cost
            // little.
            self.checkRows(isPaced: true, at: now, into: &effects)
            return
        }
        if case .append(_, let entries, _) = message.body, !entries.isEmpty, !self.takesEntries {
            // The leader sends them again.
            return effects.append(.reached(.appendDropped))
        }
        self.run(.received(message, from: node), at: now, into: &effects)
    }

    /// A log without room, or with too much to write, is given no more; nor one whose entries the
    /// state cannot take.
    private var takesEntries: Bool {
        if self.bugs.contains(.flowCountsReceived) { return true }
        return self.log.takesMore && (self.isStateWell || self.share(ofLog: self.log) < 1)
    }

    /// The share of this group's allowance in the log that it uses.
    private func share(ofLog log: any SharedLog) -> Double {
        guard self.tuning.retainedSizeMax.raw > 0 else { return 0 }
        let held = log.held(of: self.group)
        return max(
            Double(held.size.raw) / Double(max(1, self.tuning.retainedSizeMax.raw)),
            Double(held.count) / Double(max(1, self.tuning.retainedEntryCountMax)))
    }

    package func becameDurable(
        through: LogIndex, term: Term, hardState: HardState?, at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        self.run(
            .durable(through: through, term: term, hardState: hardState), at: now, into: &effects)
    }

    /// News of the pair heartbeats, or of an operator.
    package func handle(
        _ event: RaftGroup.Event, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.run(event, at: now, into: &effects)
    }

    package func wake(at now: MonotonicTime, into effects: inout [Effect]) {
        if let time = self.raftWakeAt, now >= time { self.raftWakeAt = nil }
        if let time = self.retryAt, now >= time {
            self.retryAt = nil
            self.catchUp(at: now, into: &effects)
        }
        if let time = self.goesOnAt, now >= time {
            self.goesOnAt = nil
            self.catchUp(at: now, into: &effects)
        }
        if let time = self.turnAt, now >= time { self.takeTurn(at: now, into: &effects) }
        if let time = self.flushAt, now >= time { self.flush(at: now, into: &effects) }
        if let time = self.tellDigestAt, now >= time {
            self.tellDigestAtRest(at: now, into: &effects)
        }
        self.run(.woke, at: now, into: &effects)
        // Consensus may have nothing to wait for while the state still has.
        self.requestWake(into: &effects)
    }

    func requestWake(into effects: inout [Effect]) {
        let times = [
            self.raftWakeAt, self.retryAt, self.turnAt, self.goesOnAt, self.flushAt,
            self.tellDigestAt,
        ].compactMap(\.self)
        if let time = times.min() { effects.append(.wake(at: time)) }
    }

    package func submit(
        _ commands: [(request: Request, command: Command)], wallMilliseconds: Int64,
        at now: MonotonicTime, into effects: inout [Effect]
    ) {
        var commands = commands
        commands.removeAll { request, command in
            guard self.isAboveLevel(command) else { return false }
            effects.append(.answered(request, .failure(.upgrading)))
            return true
        }
        commands = self.admitted(commands, at: now, into: &effects)
        if commands.isEmpty { return }
        let proposals = commands.map { request, command in
            let isMail = command.kind == .mail
            return RaftGroup.Proposal(
                token: request, kind: isMail ? .mail : .command, payload: command.encoded(),
                wallMilliseconds: wallMilliseconds,
                after: isMail ? Self.latestTime(in: command) : .zero,
                heldBy: self.state.holdings(in: command))
        }
        self.run(.proposed(proposals), at: now, into: &effects)
    }

    /// Whether some member could not read the command. What no build can read is appended all the
    /// same: its outcome says so.
    private func isAboveLevel(_ command: Command) -> Bool {
        if self.bugs.contains(.newKindUngated) { return false }
        if case .newer = self.state.reading(of: command).asSeen(by: self.level.now) { return true }
        return false
    }

    /// While a follower that comes closer is far behind, no more than lets it.
    private func admitted(
        _ commands: [(request: Request, command: Command)], at now: MonotonicTime,
        into effects: inout [Effect]
    ) -> [(request: Request, command: Command)] {
        guard let rate = self.intakeRate(at: now) else { return commands }
        return commands.filter { request, command in
            // Mail is never gated: see `RaftGroup.refusal(of:)`.
            if command.kind == .mail { return true }
            if self.intake.admits(command.body.count + 256, at: rate, now: now) { return true }
            effects.append(.reached(.intakeSlowed))
            effects.append(.answered(request, .failure(.overloaded)))
            return false
        }
    }

    /// Bytes of commands in a second; nil: as many as come.
    package func intakeRate(at now: MonotonicTime) -> Double? {
        guard self.raft.role == .leader,
            let rate = IntakePace.rate(
                filledTo: self.share(ofLog: self.log), of: self.tuning.retainedSizeMax)
        else { return nil }
        let last = self.raft.log.last.raw
        let middle = LogIndex(last - (last - min(last, self.released.raw)) / 2)
        let isWaitedFor = self.needs.contains {
            $0.after < middle && self.raft.isMoving($0.node, at: now)
        }
        return isWaitedFor ? rate : nil
    }

    /// The latest time in mail: its contents happened elsewhere, and before they happen here. Mail
    /// that cannot be read is refused when it is applied.
    private static func latestTime(in mail: Command) -> HybridTime {
        (try? MailCommand(decoding: mail.body))?.after ?? .zero
    }

    package func read(
        _ query: Query, as request: Request, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.read([(request, query)], at: now, into: &effects)
    }

    /// Several at once: one confirmation of the leader serves them all.
    package func read(
        _ queries: [(request: Request, query: Query)], at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        if queries.isEmpty { return }
        for (request, query) in queries {
            self.reads.append(WaitingRead(request: request, query: query, index: nil))
        }
        self.run(
            .readsRequested(queries.map(\.request), applied: self.state.applied), at: now,
            into: &effects)
    }

    package func changeMembers(
        voters: [NodeID], learners: [NodeID], as request: Request, wallMilliseconds: Int64,
        at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.changes.append(request)
        self.run(
            .configurationProposed(
                request, voters: voters, learners: learners, wallMilliseconds: wallMilliseconds),
            at: now, into: &effects)
    }

    /// The requester has given up: its answer goes nowhere. It may still happen.
    package func abandon(_ request: Request) {
        self.waiting.removeAll { $0.request == request }
        self.reads.removeAll { $0.request == request }
    }

    package var waitingCount: Int { self.waiting.count + self.reads.count }

    /// Whether the state is well: only then may its owner commit, checkpoint or read it.
    package var isStateWell: Bool {
        self.retryAt == nil && !self.mustReset && !self.state.mustReset
    }

    /// Describes what this replica has lost and has not yet got back from its peers.
    package var problem: String? {
        self.newer?.description ?? self.rot ?? self.divergence ?? self.loss ?? self.snapshotProblem
    }

    private var loss: String? {
        if self.raft.isAlone, self.raft.lacksState || self.raft.mustReach != nil {
            let what = self.raft.lacksState ? "its rows are gone" : "its log has lost entries"
            return
                "\(what), and this node is the only voter: no peer can send them. Restore the data directory"
        }
        if self.raft.lacksState {
            return
                "its rows are lost, and the log no longer holds the entries to rebuild them: "
                + "it asks for a snapshot"
        }
        if let end = self.raft.mustReach {
            return
                "its log has lost entries: it votes again when a leader has filled it to \(end.index)"
        }
        return nil
    }

    /// The followers that still need something of the log, with those that are being sent a
    /// snapshot and need what comes behind it; the one that is furthest behind first.
    var needs: [RaftGroup.FollowerNeed] {
        var needs = self.tuning.retainedSizeMax.raw > 0 ? self.raft.followerNeeds : []
        needs += self.streams.sent
        if let spooling, !needs.contains(where: { $0.node == spooling.peer }) {
            needs.append(
                RaftGroup.FollowerNeed(node: spooling.peer, after: spooling.identity.index))
        }
        return needs.sorted { ($0.after, $0.node) < ($1.after, $1.node) }
    }

    /// A checkpoint would not let the log go of anything: a follower needs it.
    package var isHeldForFollowers: Bool {
        self.needs.first.map { $0.after < self.state.durable } ?? false
    }

    /// Lets go what the state has on stable storage, but for what followers need and for a trail
    /// that one which becomes leader may be asked for.
    ///
    /// - Parameters:
    ///   - keepsTrail: false where an old segment of the log must go.
    ///   - keepsForFollowers: false where the node's log has no room for that: who is behind gets a
    ///     snapshot.
    package func release(
        keepsTrail: Bool = true, keepsForFollowers: Bool = true, at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        // The new file follows by the entries behind where it began.
        guard self.rebuilding == nil else { return }
        let durable =
            self.bugs.contains(.releaseThroughApplied) ? self.state.applied : self.state.durable
        let trailing = keepsTrail ? self.tuning.trailingEntryCount : 0
        guard durable.raw > trailing else { return }
        let own = LogIndex(durable.raw - trailing)
        var needs = self.needs.filter { $0.after < own }
        if !keepsForFollowers {
            for need in needs { self.giveUp(need, into: &effects) }
            needs = []
        } else if needs.count > 0, self.share(ofLog: self.log) > 1 {
            self.giveUp(needs.removeFirst(), into: &effects)
        }
        let limit = min(own, needs.first?.after ?? own)
        guard limit > self.released else { return }
        self.released = limit
        self.run(.released(through: limit), at: now, into: &effects)
        self.log.release(self.group, through: limit)
    }

    private func giveUp(_ need: RaftGroup.FollowerNeed, into effects: inout [Effect]) {
        // A snapshot behind which entries are missing helps nobody: the next one is of a later
        // state.
        self.streams.stop(to: need.node)
        if self.spooling?.peer == need.node { self.spooling = nil }
        effects.append(.reached(.followerGivenUp))
        effects.append(.gaveUp(need.node, after: need.after))
    }

    // MARK: Carrying out

    func run(
        _ event: RaftGroup.Event, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.pendingEvents.append(event)
        // Carrying out may cause further events: they wait for their turn, so that the actions of
        // one are complete before the next is decided.
        guard !self.isRunning else { return }
        self.isRunning = true
        defer { self.isRunning = false }
        var actions: [RaftGroup.Action] = []
        var next = 0
        while next < self.pendingEvents.count {
            let event = self.pendingEvents[next]
            next += 1
            actions.removeAll(keepingCapacity: true)
            let termLed = self.raft.role == .leader ? self.raft.term : nil
            self.raft.handle(event, at: now, into: &actions)
            for action in actions { self.carryOut(action, at: now, into: &effects) }
            if self.hasReadyReads, self.goesOnAt == nil {
                var turn = self.newTurn()
                self.answerReads(within: &turn, at: now, into: &effects)
            }
            if let termLed, self.raft.role != .leader || self.raft.term != termLed {
                self.refuseConfirmedReads(into: &effects)
                effects.append(.resigned(term: termLed))
            }
        }
        self.pendingEvents.removeAll(keepingCapacity: true)
    }

    private func carryOut(
        _ action: RaftGroup.Action, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        switch action {
        case .persist(let write):
            self.log.submit([
                LogBatch(
                    group: self.group, hardState: write.hardState,
                    truncateFrom: write.truncateFrom, entries: write.entries)
            ])
        case .send(let message, let to):
            effects.append(.send(message, to: to))
        case .sendFromLog(let to, let term, let previous, let through, let commit):
            self.sendFromLog(
                to: to, term: term, previous: previous, through: through, commit: commit,
                into: &effects)
        case .wake(let time):
            self.raftWakeAt = time
            self.requestWake(into: &effects)
        case .apply(let through):
            self.ordered = max(self.ordered, through)
            self.catchUp(at: now, into: &effects)
        case .accepted(let request, let point):
            if let position = self.changes.firstIndex(of: request) {
                self.changes.remove(at: position)
                effects.append(.changed(request, .success(point)))
            } else if self.bugs.contains(.answerBeforeCommit) {
                effects.append(.answered(request, .success(Outcome(.none))))
            } else {
                self.waiting.append(Waiting(request: request, point: point))
            }
        case .refused(let request, let refusal):
            self.refuse(request, ReplicaRefusal(refusal), into: &effects)
        case .readReady(let request, let index):
            guard let position = self.reads.firstIndex(where: { $0.request == request }) else {
                return  // Abandoned.
            }
            self.reads[position].index = index
            self.hasReadyReads = true
        case .roleChanged(let role, let term, let leader):
            effects.append(.roleChanged(role, term: term, leader: leader))
        case .sendSnapshot(let to, let term):
            self.sendSnapshot(to: to, term: term, at: now, into: &effects)
        case .snapshotAcknowledged(let node, let index, let next, let term):
            if self.streams.acknowledged(by: node, index: index, next: next) {
                self.sendSnapshot(to: node, term: term, at: now, into: &effects)
            }
        case .stopSnapshot(let node):
            self.streams.stop(to: node)
            if self.spooling?.peer == node { self.spooling = nil }
        case .receiveChunk(let chunk, _):
            self.receive(chunk, at: now, into: &effects)
        case .install(let identity):
            self.install(identity, at: now, into: &effects)
        case .keepRows: self.keepRows()
        case .reached(let path):
            effects.append(.reached(path))
        case .alarm(let alarm):
            effects.append(.alarm(alarm))
        }
    }

    private func refuse(
        _ request: Request, _ refusal: ReplicaRefusal, into effects: inout [Effect]
    ) {
        if let position = self.reads.firstIndex(where: { $0.request == request }) {
            self.reads.remove(at: position)
            effects.append(.read(request, .failure(refusal)))
        } else if let position = self.changes.firstIndex(of: request) {
            self.changes.remove(at: position)
            effects.append(.changed(request, .failure(refusal)))
        } else {
            effects.append(.answered(request, .failure(refusal)))
        }
    }

    private func sendFromLog(
        to node: NodeID, term: Term, previous: LogPoint, through: LogIndex, commit: LogIndex,
        into effects: inout [Effect]
    ) {
        let limit = ByteCount(self.tuning.raft.appendSizeMax)
        // What cannot be read is not sent; the leader asks again when nothing is acknowledged.
        let read = try? self.log.read(self.group, from: previous.index.next, limit: limit)
        let entries = (read ?? []).prefix { $0.index <= through }
        self.pendingEvents.append(
            .sentFromLog(
                to: node, through: entries.last?.index,
                size: entries.reduce(0) { $0 + $1.cost }))
        guard !entries.isEmpty else { return }
        effects.append(
            .send(
                ConsensusMessage(
                    term: term,
                    .append(previous: previous, entries: Array(entries), commit: commit)),
                to: node))
    }

    // MARK: Applying

    private func newTurn() -> WorkTurn {
        WorkTurn(
            countMax: self.tuning.turnCountMax, timeMax: self.tuning.turnTimeMax, clock: self.clock)
    }

    /// Arranges for the rest of this turn's work to be done after the others had their turns.
    private func goOnLater(at now: MonotonicTime, into effects: inout [Effect]) {
        self.goesOnAt = now
        self.requestWake(into: &effects)
    }

    /// Brings the state towards where consensus is for one turn, answers what waited for it, and
    /// comes back later if the state refuses.
    private func catchUp(at now: MonotonicTime, into effects: inout [Effect]) {
        guard self.retryAt == nil, self.goesOnAt == nil, self.newer == nil, !self.hasWrongRows
        else { return }
        var turn = self.newTurn()
        let before = self.state.applied
        do throws(StoreError) {
            // A checkpoint or a snapshot may have failed since: the state says so itself.
            if self.mustReset || self.state.mustReset { try self.resetState(into: &effects) }
            while self.state.applied < self.ordered, self.newer == nil, !self.hasWrongRows,
                !self.state.isFull, turn.begins()
            {
                try self.applyOnce(at: now, into: &effects)
            }
        } catch {
            self.recover(from: error, at: now, into: &effects)
            return
        }
        self.flush(at: now, into: &effects)
        guard self.retryAt == nil else { return }
        if let newer = self.newer { return self.stop(before: newer, at: now, into: &effects) }
        self.judgeRoom(at: now, into: &effects)
        if self.state.applied > before {
            effects.append(.applied(through: self.state.applied))
            self.release(at: now, into: &effects)
        }
        if self.hasWrongRows { return }
        self.armDigest(at: now, into: &effects)
        if self.state.applied < self.ordered, !self.state.isFull, self.goesOnAt == nil {
            self.goOnLater(at: now, into: &effects)
        }
        // Their own turn: entries that keep coming would leave them none.
        var reading = self.newTurn()
        self.answerReads(within: &reading, at: now, into: &effects)
    }

    /// Who cannot apply must not hold up the others.
    private func judgeRoom(at now: MonotonicTime, into effects: inout [Effect]) {
        let isStuck = self.hasFailedFlush && self.state.isFull
        guard isStuck != self.raft.inhibition.contains(.rows) else { return }
        self.run(isStuck ? .inhibited(.rows) : .permitted(.rows), at: now, into: &effects)
    }

    /// Brings what is in memory nearer to the file, if it is time: a slice a turn.
    private func flush(at now: MonotonicTime, into effects: inout [Effect]) {
        guard self.isStateWell else {
            self.flushAt = nil
            return
        }
        if self.hasFailedFlush, let time = self.flushAt, now < time { return }
        let before = self.flushAt
        do throws(StoreError) {
            self.flushAt = try self.state.flushIfDue(at: now)
            self.hasFailedFlush = false
            self.tellDigests(at: now, into: &effects)
        } catch {
            if self.state.mustReset { return self.recover(from: error, at: now, into: &effects) }
            effects.append(.failed(error))
            self.hasFailedFlush = true
            self.flushAt = now + self.tuning.retryDelay
        }
        // A checkpoint or a snapshot may have made the room that entries wait for.
        if self.state.applied < self.ordered, !self.state.isFull, self.goesOnAt == nil {
            self.goOnLater(at: now, into: &effects)
        }
        if self.flushAt != before { self.requestWake(into: &effects) }
    }

    private func applyOnce(at now: MonotonicTime, into effects: inout [Effect]) throws(StoreError) {
        let from = self.state.applied.next
        let end = min(self.ordered, self.nextComparison)
        let limit = self.tuning.applySizeMax
        let entries: ArraySlice<Entry>
        if let cached = self.raft.log.entries(
            from: from, through: end, sizeMax: limit.raw)
        {
            entries = cached
        } else {
            do throws(LogError) {
                entries = try self.log.read(self.group, from: from, limit: limit).prefix {
                    $0.index <= end
                }
            } catch {
                throw StoreError(.io, "the log cannot be read: \(error.text)")
            }
            guard entries.first?.index == from else {
                throw StoreError(.corrupt, "the log lacks entry \(from)")
            }
        }
        if let clock { self.watch?.begin(.apply(entries), in: self.group, at: clock()) }
        defer { self.watch?.end() }
        var outcomes: [Outcome] = []
        try self.state.apply(entries, into: &outcomes)
        try self.state.publish()
        self.newer = self.state.newer
        precondition(
            !outcomes.isEmpty || self.newer != nil, "entries without an outcome")
        let applied = entries.prefix(outcomes.count)
        if let last = applied.last { self.appliedTime = max(self.appliedTime, last.time) }
        self.answer(applied, outcomes, into: &effects)
        self.noteDigest(at: now)
    }

    /// From here on the state stays where it is, and so do its rows and their digest. The replica
    /// goes on to write the log and to vote, since the log needs no reading, but it leads nothing:
    /// nobody could be answered. The build that can read the entry goes on from there after a
    /// restart.
    private func stop(
        before newer: NewerEntry, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        effects.append(.applied(through: self.state.applied))
        effects.append(.stopped(newer))
        self.refuseAll(into: &effects)
        self.run(.inhibited(.newer), at: now, into: &effects)
    }

    /// Nothing that waits can be answered from this state.
    func refuseAll(into effects: inout [Effect]) {
        for read in self.reads { effects.append(.read(read.request, .failure(.notExecuted))) }
        self.reads.removeAll()
        for item in self.waiting {
            effects.append(.answered(item.request, .failure(.outcomeUnknown)))
        }
        self.waiting.removeAll()
    }

    private func answer(
        _ entries: ArraySlice<Entry>, _ outcomes: [Outcome], into effects: inout [Effect]
    ) {
        guard let first = entries.first?.index, let last = entries.last?.index else { return }
        var kept: [Waiting] = []
        for item in self.waiting {
            // An earlier index was passed by a snapshot: what happened there is not known here.
            if item.point.index < first {
                effects.append(.answered(item.request, .failure(.outcomeUnknown)))
            } else if item.point.index > last {
                kept.append(item)
            } else {
                let offset = Int(item.point.index.raw - first.raw)
                let entry = entries[entries.startIndex + offset]
                // Another entry in its place: this one can never be committed any more.
                effects.append(
                    .answered(
                        item.request,
                        entry.term == item.point.term
                            ? .success(outcomes[offset]) : .failure(.notExecuted)))
            }
        }
        self.waiting = kept
    }

    /// Refuses what was confirmed while this replica led, once it leads no more. A follower may apply
    /// an entry before its leader does. A read that shows the entry would be newer than a later one
    /// that the leader answers from what it has applied.
    private func refuseConfirmedReads(into effects: inout [Effect]) {
        if self.raft.role == .leader || self.reads.isEmpty { return }
        if self.bugs.contains(.confirmedReadKept) || self.bugs.contains(.followerAnswersReads) {
            return
        }
        for read in self.reads where read.index != nil {
            effects.append(.read(read.request, .failure(.notLeader(self.raft.leader))))
        }
        self.reads.removeAll { $0.index != nil }
    }

    private func answerReads(
        within turn: inout WorkTurn, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        self.hasReadyReads = false
        // The group has decided already: what it has said before may be carried out now.
        self.refuseConfirmedReads(into: &effects)
        guard !self.reads.isEmpty, self.isStateWell, !self.hasWrongRows else { return }
        var kept: [WaitingRead] = []
        for (position, item) in self.reads.enumerated() {
            guard let index = item.index, index <= self.state.applied else {
                kept.append(item)
                continue
            }
            guard turn.begins() else {
                kept += self.reads[position...]
                if self.goesOnAt == nil { self.goOnLater(at: now, into: &effects) }
                break
            }
            if let clock { self.watch?.begin(.read(item.query), in: self.group, at: clock()) }
            defer { self.watch?.end() }
            do throws(StoreError) {
                var answer = try self.state.answer(item.query, within: self.readTime)
                // One after the other: what has no room goes before the next is made. What nodes
                // ask of each other always has some: it is little, and clears what clients wait
                // for.
                let isOwn = [.identity, .system, .mail].contains(item.query.kind)
                let hasRoom = self.answers?.admit(&answer, always: isOwn) ?? true
                effects.append(
                    .read(item.request, hasRoom ? .success(answer) : .failure(.overloaded)))
            } catch {
                effects.append(.read(item.request, .failure(.notExecuted)))
            }
        }
        self.reads = kept
    }

    private var readTime: ReadTime? {
        self.clock.map { clock in
            ReadTime(until: clock() + self.tuning.readTimeMax, clock: clock)
        }
    }

    /// Back to the last commit, and again from there after a while. Meanwhile nothing is answered,
    /// and nothing led: a replica that cannot apply must not hold up the others.
    private func recover(
        from error: StoreError, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        effects.append(.failed(error))
        self.mustReset = true
        // If this fails too, it is the first thing tried again.
        try? self.resetState(into: &effects)
        let time = now + self.tuning.retryDelay
        self.retryAt = time
        self.requestWake(into: &effects)
        if !self.raft.inhibition.contains(.rows) {
            self.run(.inhibited(.rows), at: now, into: &effects)
        }
    }

    func resetState(into effects: inout [Effect]) throws(StoreError) {
        let index = try self.state.reset()
        self.mustReset = false
        // A commit that reported an error may have been kept: what it answered is not known here.
        for item in self.waiting where item.point.index <= index {
            effects.append(.answered(item.request, .failure(.outcomeUnknown)))
        }
        self.waiting.removeAll { $0.point.index <= index }
    }
}

/// Why a replica gives no outcome.
package enum ReplicaRefusal: Error, Sendable, Equatable {
    /// It did not happen; the leader, if known, may take it.
    case notLeader(NodeID?)
    /// It did not happen and will not: safe to send again under a new identity.
    case notExecuted
    /// It may have happened: send it again under the same identity, or ask.
    case outcomeUnknown
    case overloaded
    case tooLarge
    /// Not every member can read it until the upgrade of the cluster is finalised.
    case upgrading
    /// The membership is changing already, or the change makes no sense.
    case membershipRefused
    /// It did not happen: too few members are known to hold the copies that it names.
    case notHeld

    init(_ refusal: RaftGroup.Refusal) {
        self =
            switch refusal {
            case .notLeader(let leader): .notLeader(leader)
            case .transferring(let target): .notLeader(target)
            case .overloaded: .overloaded
            case .tooLarge: .tooLarge
            case .changing, .badConfiguration: .membershipRefused
            case .notHeld: .notHeld
            }
    }
}

extension PeerResponse.Answer {
    /// Translates a refusal of a replica on `node` for the requester.
    package init(_ refusal: ReplicaRefusal, by node: NodeID, busy: Self) {
        self =
            switch refusal {
            case .notLeader(let leader): .notLeader(leader == node ? nil : leader)
            case .notExecuted, .notHeld: .notExecuted(retryAfterMilliseconds: 100)
            case .outcomeUnknown: .outcomeUnknown
            case .overloaded: busy
            case .upgrading: .notExecuted(retryAfterMilliseconds: 5_000)
            case .tooLarge: .refused("the command is larger than one entry may be")
            case .membershipRefused: .refused("the membership is changing")
            }
    }
}
