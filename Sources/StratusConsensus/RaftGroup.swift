package import StratusModel

/// One replica's part in one Raft group, after Ongaro's thesis ("Consensus: Bridging Theory and
/// Practice", 2014): sections are cited where a rule is carried out.
///
/// A `RaftGroup` performs no I/O, reads no clock and draws only from the generator it was given.
/// Pass each ``Event`` to ``handle(_:at:into:)`` and carry out the ``Action``s in order.
///
/// Where it differs from the thesis:
/// - Writes to the log are asynchronous (§10.2.1): entries are sent and written at the same time.
///   A replica, the leader too, counts only for what its own log has reported durable.
/// - A group sends no heartbeats. Heartbeats between pairs of nodes (``NodeLiveness``) say which
///   nodes are silent. A follower's election timer runs only while its leader is silent, so an idle
///   group costs nothing.
/// - A leader confirms itself by rounds of `probe` messages that name the group and the term: for
///   reads (§6.4) and to learn that it is cut off (§6.2). No leases (§6.4.1).
/// - Membership changes are joint (§4.3), never single-server steps.
///
/// Invariants:
/// - `handed <= min(commit, durable)`: only what is committed and durable here is applied.
/// - `commit` never falls; entries at or below it are never cut.
/// - Nothing is said in a term before the term is durable, and no vote before the vote is.
package struct RaftGroup: ConsensusCore, Equatable {
    /// The state that a replica finds on its own disk when it starts.
    package struct Recovered: Sendable, Equatable {
        package var hardState: HardState
        /// The identity of the state as a snapshot; the log holds what follows. For a state that
        /// was lost it is zero, before `base`.
        package var snapshot: SnapshotIdentity
        /// The log starts here: at or before the snapshot, unless the state was lost.
        package var base: LogPoint
        /// In force at `base`.
        package var baseConfiguration: Configuration
        /// The terms of entries after `base` that a start does not keep in memory. Either the state
        /// already contains them, or no state could apply them, or they exceed the tail's bound.
        package var passedTerms: [Term] = []
        /// Those of them that changed who votes.
        package var passedConfigurations: [LogIndex: Configuration] = [:]
        /// The entries of the log after those, all durable.
        package var entries: [Entry]
        /// The last entry that the log ever held, if entries after those above were lost. It may
        /// have been acknowledged. A term of zero means that its term is unknown.
        package var lost: LogPoint?
        /// See ``RaftGroup/silentThrough``.
        package var silentThrough = LogIndex.zero

        package init(
            hardState: HardState, snapshot: SnapshotIdentity, base: LogPoint? = nil,
            baseConfiguration: Configuration? = nil, entries: [Entry] = [], lost: LogPoint? = nil
        ) {
            self.hardState = hardState
            self.snapshot = snapshot
            self.base = base ?? LogPoint(index: snapshot.index, term: snapshot.term)
            self.baseConfiguration = baseConfiguration ?? snapshot.configuration
            self.entries = entries
            self.lost = lost
        }
    }

    package let group: GroupID
    package let node: NodeID
    package let tuning: RaftTuning
    let bugs: PlantedBugs
    var random: SeededGenerator
    /// The index through which this replica, which begins anew, neither votes nor stands for
    /// election until it knows everything up to there as committed. Its node may have deleted an
    /// earlier replica, and what that one acknowledged is not here. A candidate that lacks it could
    /// win by a vote that the deleted replica would have refused.
    package let silentThrough: LogIndex

    // MARK: What is remembered across a restart

    package internal(set) var hardState: HardState
    package internal(set) var durableHardState: HardState
    package internal(set) var log: ReplicatedLog
    /// Own log, through here, is on stable storage and is what `log` says.
    package internal(set) var durable: LogIndex
    package internal(set) var commit: LogIndex
    /// `.apply` was ordered through here.
    package internal(set) var handed: LogIndex

    // MARK: What every role has

    package internal(set) var role = Role.follower
    package internal(set) var leader: NodeID?
    /// The leader of this term is known to lead no more: late messages do not bring it back.
    var resignedTerm: Term?
    /// The leader's node was silent and is heard again, and the leader has said nothing in its term
    /// since: it may have resigned in the silence, and tells that for two seconds only.
    var isLeaderUnconfirmed = false
    /// Own log, through here, is known to agree with the log of the current term's leader.
    var verified: LogIndex
    /// Nodes that the pair heartbeats do not trust now, sorted.
    var suspects: [NodeID] = []
    /// Nodes that are there but should not lead now, sorted.
    var decliners: [NodeID] = []
    /// Why this replica must not lead now; empty when it may.
    package internal(set) var inhibition: Inhibition = []
    package var isInhibited: Bool { !self.inhibition.isEmpty }
    /// Whether the state is lost and the log no longer holds the entries that would rebuild it. The
    /// log is intact, so this replica votes and acknowledges. It applies nothing, and leads only in
    /// order to replicate, until a snapshot reaches to where the log begins.
    package internal(set) var lacksState: Bool
    /// Whether the rows differ from those of a majority of the voters. In addition to what
    /// ``lacksState`` forbids, this replica votes for nobody.
    package internal(set) var hasDiverged = false
    /// Whether ``lacksState`` speaks of rows that are there, and wrong.
    var hasWrongRows = false
    /// While it does: when the leader is asked for one again.
    var stateWantedAt: MonotonicTime?
    /// The last of the entries that the log has lost, which may have been acknowledged. This
    /// replica votes for nobody, itself included, until a leader elected without it has filled the
    /// log up to there.
    package internal(set) var mustReach: LogPoint?
    /// A snapshot is being made the state; no entries are taken meanwhile.
    var installing: SnapshotIdentity?
    /// Messages that speak of a term or vote not yet durable.
    var held: [HeldMessage] = []
    /// Runs only while there is no leader to wait for.
    var electionAt: MonotonicTime?
    /// Elections that may still begin sooner than others, after the leader's process has ended.
    var promptElectionCount = 0
    /// Terms entered since there was last a leader.
    var leaderlessTermCount = 0
    /// Time-outs of a replica without rows since there was last a leader.
    var rowlessTimeoutCount = 0
    /// The nodes that said yes to this pre-candidate or candidate. It includes itself once its own
    /// vote is durable.
    var votes: [NodeID] = []
    /// Whether the campaign of this term was asked for by the leader before.
    var campaignIsTransfer = false

    // MARK: What a leader has

    package internal(set) var peers: [Progress] = []
    /// The first entry of the own term. Whatever an earlier leader has answered lies before it.
    var termStart = LogIndex.zero
    /// What the state had applied when a read arrived, the largest that was said.
    var applied = LogIndex.zero
    var uncommittedSize = 0
    /// The size of the entries behind `durable`, which wait in memory for the own disk.
    package internal(set) var unsyncedSize = 0
    /// Runs while something is uncommitted.
    var quorumAt: MonotonicTime?
    var transfer: Transfer?
    /// The voter that a leader without rows last wanted to hand over to.
    var lastHeir: NodeID?
    var round: Round?
    var roundCount: UInt64 = 0
    var waitingReads: [RequestToken] = []
    /// While a joint configuration waits for copies.
    var gate: Gate?
    /// This replica has every copy that entries through here have named, synced.
    var copiesHeld = LogIndex.zero
    /// See ``RaftTuning/awaitsCopies``.
    package let awaitsCopies: Bool

    // MARK: What this call to `handle` has gathered

    var pendingWrite = LogWrite()
    private var wakeAt: MonotonicTime?

    struct HeldMessage: Sendable, Equatable {
        var message: ConsensusMessage
        var to: NodeID
        var speaksOfVote: Bool
    }

    struct Transfer: Sendable, Equatable {
        var target: NodeID
        var deadline: MonotonicTime
    }

    /// "Do you have the copies?", asked of the incoming voters of a joint configuration.
    struct Gate: Sendable, Equatable {
        var term: Term
        /// The entry of the joint configuration.
        var index: LogIndex
        /// Those who have every copy that was named before it.
        var holders: [NodeID]
        var resendAt: MonotonicTime
    }

    /// "Do you still follow me?", asked once for all reads that wait.
    struct Round: Sendable, Equatable {
        var number: UInt64
        /// What its reads must see at least: see `readIndex`.
        var index: LogIndex
        var tokens: [RequestToken]
        var answers: [NodeID]
        var deadline: MonotonicTime
        var resendAt: MonotonicTime
    }

    package init(
        group: GroupID, node: NodeID, recovered: Recovered, tuning: RaftTuning = RaftTuning(),
        seed: UInt64, bugs: PlantedBugs = PlantedBugs()
    ) {
        self.group = group
        self.node = node
        self.tuning = tuning
        self.awaitsCopies = tuning.awaitsCopies
        self.bugs = bugs
        self.random = SeededGenerator(seed: seed)
        self.hardState = recovered.hardState
        self.log = ReplicatedLog(
            base: recovered.base, configuration: recovered.baseConfiguration,
            time: recovered.snapshot.time)
        for term in recovered.passedTerms {
            let index = self.log.last.next
            self.log.pass(
                index, term: term, configuration: recovered.passedConfigurations[index])
        }
        for entry in recovered.entries { self.log.append(entry) }
        self.silentThrough = recovered.silentThrough
        self.durable = self.log.last
        self.lacksState = recovered.snapshot.index < self.log.base.index
        self.mustReach = recovered.lost.map { lost in
            // If the entry's term is lost too, all we know is that it is at most the current term.
            lost.term > .zero ? lost : LogPoint(index: lost.index, term: recovered.hardState.term)
        }
        if bugs.contains(.termForgottenOnRestart) {
            self.hardState = HardState(term: self.log.lastPoint.term, vote: nil)
        }
        if bugs.contains(.forgetVoteOnRestart) { self.hardState.vote = nil }
        self.durableHardState = self.hardState
        let snapshot = recovered.snapshot
        if snapshot.index > self.log.last
            || self.log.term(at: snapshot.index).map({ $0 != snapshot.term }) == true
        {
            // The state is ahead of the log: the process ended after a snapshot was installed and
            // before the log was restarted.
            self.log.restart(after: snapshot)
            self.durable = snapshot.index
        }
        // What the log has let go was committed.
        self.commit = max(snapshot.index, self.log.base.index)
        self.handed = self.commit
        self.verified = self.commit
    }

    package var term: Term { self.hardState.term }
    /// Whether this replica leads and has rows: only then it takes commands and answers.
    package var serves: Bool { self.role == .leader && !self.lacksState }
    /// The leader to name to who asks for something.
    var servingLeader: NodeID? { self.role == .leader && self.lacksState ? nil : self.leader }
    /// Whether a leader sends to the node: false while the node is silent, nil if it is no member.
    package func isReachable(_ node: NodeID) -> Bool? {
        self.peers.first { $0.node == node }?.isReachable
    }
    package var configuration: Configuration { self.log.configuration }

    /// The identity of a snapshot of the state at `index`, or nil if there is none. A leader that
    /// has just begun has applied no entry yet; a replica without a state asks it again.
    package func snapshotIdentity(at index: LogIndex, time: HybridTime, digest: StateDigest)
        -> SnapshotIdentity?
    {
        guard index > .zero, let term = self.log.term(at: index) else { return nil }
        let configuration =
            self.bugs.contains(.snapshotWithStaleConfiguration)
            ? self.log.configuration(at: self.log.base.index) : self.log.configuration(at: index)
        return SnapshotIdentity(
            index: index, term: term, time: time, configuration: configuration, digest: digest)
    }

    // MARK: The entry point

    package mutating func handle(
        _ event: Event, at now: MonotonicTime, into actions: inout [Action]
    ) {
        let first = actions.count
        switch event {
        case .started:
            self.armElection(at: now)
            if self.lacksState { self.stateWantedAt = now + self.tuning.resendDelay }
        case .received(let message, let from):
            self.receive(message, from: from, at: now, into: &actions)
        case .durable(let through, let term, let hardState):
            self.becameDurable(
                through: through, term: term, hardState: hardState, at: now, into: &actions)
        case .woke:
            self.wakeAt = nil
            self.runTimers(at: now, into: &actions)
        case .proposed(let proposals):
            self.propose(proposals, at: now, into: &actions)
        case .readsRequested(let tokens, let applied):
            self.applied = max(self.applied, applied)
            for token in tokens { self.requestRead(token, into: &actions) }
            self.startRoundIfWanted(at: now, into: &actions)
        case .configurationProposed(let token, let voters, let learners, let wallMilliseconds):
            self.proposeConfiguration(
                token, voters: voters, learners: learners, wallMilliseconds: wallMilliseconds,
                at: now, into: &actions)
        case .copiesHeld(let index):
            self.copiesHeld = index
            if self.openGate != nil { self.membershipCommitted(at: now, into: &actions) }
        case .transferRequested(let target):
            self.requestTransfer(to: target, at: now, into: &actions)
        case .inhibited(let reasons):
            self.inhibit(reasons, at: now, into: &actions)
        case .diverged: self.noteDivergence(at: now, into: &actions)
        case .rowsRotten: self.noteRottenRows(at: now, into: &actions)
        case .permitted(let reasons):
            self.inhibition.subtract(reasons)
            if self.bugs.contains(.permitLiftsAll) { self.inhibition = [] }
            if !self.isInhibited { self.armElectionIfLeaderless(at: now) }
        case .suspected(let node):
            self.suspect(node, at: now, into: &actions)
        case .ended(let node):
            self.noteEnded(node, at: now, into: &actions)
        case .trusted(let node):
            self.trust(node, at: now, into: &actions)
        case .declined(let node):
            self.decline(node, at: now)
        case .recovered(let node):
            self.recover(node, at: now, into: &actions)
        case .restarted(let node):
            self.forgetMemory(of: node, at: now, into: &actions)
        case .leaderResigned(let node, let term):
            if self.leader == node, self.role != .leader, self.term == term {
                self.loseLeader(at: now, into: &actions)
            }
        case .sentFromLog(let node, let through, let size):
            self.sentFromLog(to: node, through: through, size: size, at: now, into: &actions)
        case .released(let through):
            precondition(through <= self.handed, "released what is not applied")
            self.log.compact(through: through)
        case .snapshotArrived(let identity):
            self.considerSnapshot(identity, at: now, into: &actions)
        case .snapshotInstalled(let identity):
            self.snapshotInstalled(identity, at: now, into: &actions)
        case .snapshotRefused:
            self.installing = nil
        case .snapshotProgressed(let identity, let next):
            if let leader = self.leader, leader != self.node {
                self.say(
                    .snapshotAnswer(index: identity.index, next: next, unneeded: false),
                    to: leader, into: &actions)
            }
        }
        self.settle(at: now, from: first, into: &actions)
    }

    /// Orders what the events have made possible: the write first, then the rest as it came.
    private mutating func settle(
        at now: MonotonicTime, from first: Int, into actions: inout [Action]
    ) {
        self.keepLastRows(into: &actions)
        self.handOverIfStandingIn(at: now, into: &actions)
        if self.pendingWrite != LogWrite() {
            actions.insert(.persist(self.pendingWrite), at: first)
            self.pendingWrite = LogWrite()
        }
        let ready = min(self.commit, self.durable)
        if ready > self.handed, self.installing == nil, !self.lacksState {
            self.handed = ready
            actions.append(.apply(through: ready))
        }
        // A replica that waits for its state hands nothing on, and its tail is bounded all the
        // same: what is committed and durable can be read from the shared log.
        self.log.trimTail(to: self.tuning.tailSizeMax, before: max(self.handed, ready))
        if let deadline = self.earliestDeadline, self.wakeAt.map({ deadline < $0 }) ?? true {
            self.wakeAt = deadline
            actions.append(.wake(at: deadline))
        }
    }

    private var earliestDeadline: MonotonicTime? {
        var earliest = self.electionAt
        func consider(_ time: MonotonicTime?) {
            if let time { earliest = min(earliest ?? time, time) }
        }
        consider(self.stateWantedAt)
        if self.role == .leader {
            consider(self.quorumAt)
            consider(self.transfer?.deadline)
            consider(self.openGate?.resendAt)
            consider(self.round.map { min($0.resendAt, $0.deadline) })
            for peer in self.peers {
                consider(peer.resendAt)
                consider(peer.stateResendAt)
            }
        }
        return earliest
    }

    private mutating func runTimers(at now: MonotonicTime, into actions: inout [Action]) {
        if let time = self.electionAt, now >= time {
            self.electionTimedOut(at: now, into: &actions)
        }
        if let time = self.stateWantedAt, now >= time { self.askForState(at: now, into: &actions) }
        guard self.role == .leader else { return }
        if let transfer = self.transfer, now >= transfer.deadline {
            self.transfer = nil
            actions.append(.reached(.transferTimedOut))
        }
        self.checkQuorum(at: now, into: &actions)
        guard self.role == .leader else { return }
        for position in self.peers.indices {
            self.resendIfDue(toPeerAt: position, at: now, into: &actions)
        }
        if let gate = self.openGate, now >= gate.resendAt {
            self.askHolders(at: now, into: &actions)
        }
    }

    // MARK: Messages

    /// The rules of terms (thesis §3.3), then one handler per message.
    private mutating func receive(
        _ message: ConsensusMessage, from: NodeID, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard from != self.node, message.isWellFormed, self.isPlausible(message) else {
            actions.append(.alarm(.malformedMessage(from: from)))
            return
        }
        switch message.body {
        case .preVoteRequest(let last):
            // Asks about a term without entering it: no term is adopted.
            self.answerPreVote(
                for: message.term, last: last, from: from, at: now, into: &actions)
            return
        case .preVoteAnswer(granted: true):
            self.countPreVote(of: message.term, from: from, at: now, into: &actions)
            return
        case .voteRequest(let last, let isTransfer):
            self.answerVote(
                for: message.term, last: last, isTransfer: isTransfer, from: from, at: now,
                into: &actions)
            return
        // The shell's business: consensus goes by the log alone.
        case .digest, .snapshotUntrue: return
        default: break
        }
        if message.term < self.term {
            self.answerStale(message, from: from, into: &actions)
            switch message.body {
            case .voteAnswer where self.bugs.contains(.countVotesOfAnyTerm): break
            default: if !self.bugs.contains(.answerOfOlderTermCounts) { return }
            }
        }
        if message.term > self.term {
            self.becomeFollower(
                in: message.term, of: message.isFromLeader ? from : nil, at: now, into: &actions)
        }
        if message.isFromLeader {
            guard self.follow(from, at: now, into: &actions) else { return }
        }
        switch message.body {
        case .preVoteRequest, .voteRequest, .preVoteAnswer, .digest, .snapshotUntrue:
            break  // Handled above; a refused pre-vote says only its term.
        case .voteAnswer(let granted):
            self.countVote(
                of: message.term, granted: granted, from: from, at: now, into: &actions)
        case .append(let previous, let entries, let commit):
            self.takeAppend(
                previous: previous, entries: entries, commit: commit, from: from, at: now,
                into: &actions)
        case .appendAccepted(let match, let received, let commit):
            self.peerAccepted(
                from, match: match, received: received, commit: commit, at: now, into: &actions)
        case .appendRefused(let previous, let hint):
            self.peerRefused(from, previous: previous, hint: hint, at: now, into: &actions)
        case .probe(let round):
            self.say(.probeAnswer(round: round), to: from, into: &actions)
        case .probeAnswer(let round):
            self.countProbe(round, from: from, at: now, into: &actions)
        case .transferNow:
            guard self.mayCampaign else { return }
            actions.append(.reached(.transferCompleted))
            self.campaign(isTransfer: true, at: now, into: &actions)
        case .resigned:
            self.loseLeader(at: now, into: &actions)
        case .snapshotChunk(let chunk):
            self.takeChunk(chunk, from: from, at: now, into: &actions)
        case .snapshotAnswer(let index, let next, let unneeded):
            self.peerTookChunk(
                from, index: index, next: next, unneeded: unneeded, at: now, into: &actions)
        case .heldAsk: self.say(.held(through: self.copiesHeld), to: from, into: &actions)
        case .acknowledged(let point): self.oweAcknowledged(through: point, into: &actions)
        case .held(let index):
            self.peerHolds(from, through: index, at: now, into: &actions)
        }
    }

    /// Whether the message's terms and times are within bounds. Terms rise by one in an election
    /// and times by the clock, so anything beyond comes from a broken or hostile peer. Accepting it
    /// would use up the terms or times that are left.
    private func isPlausible(_ message: ConsensusMessage) -> Bool {
        let (termMax, isEndless) = self.term.raw.addingReportingOverflow(Self.termLeap)
        guard message.term.raw <= (isEndless ? .max - Self.termLeap : termMax) else { return false }
        switch message.body {
        case .append(_, let entries, _):
            return entries.allSatisfy {
                self.isPlausible($0.time) && $0.payload.count <= self.tuning.proposalSizeMax
            }
        case .snapshotChunk(let chunk): return self.isPlausible(chunk.identity.time)
        default: return true
        }
    }

    func isPlausible(_ time: HybridTime) -> Bool {
        time.milliseconds <= max(0, self.log.lastTime.milliseconds) + Self.timeLeap
            && time.milliseconds <= .max - Self.timeLeap
    }

    private static let termLeap: UInt64 = 1 << 32
    /// Milliseconds: some nine thousand years.
    static let timeLeap: Int64 = 1 << 48

    /// Tells a leader of an older term that its term is over. Other late messages need no answer.
    private mutating func answerStale(
        _ message: ConsensusMessage, from: NodeID, into actions: inout [Action]
    ) {
        guard message.isFromLeader else { return }
        actions.append(.reached(.staleTermAnswered))
        self.say(
            .appendRefused(previous: .zero, hint: self.log.lastPoint), to: from, into: &actions)
    }

    // MARK: Speaking

    /// Sends in the current term, once the term is durable, and the vote too if the message reports
    /// it (thesis §3.8). A crash must not make the replica forget what it told others.
    mutating func say(
        _ body: ConsensusMessage.Body, to node: NodeID, speaksOfVote: Bool = false,
        into actions: inout [Action]
    ) {
        let message = ConsensusMessage(term: self.term, body)
        if self.mayBeSaid(speaksOfVote: speaksOfVote) {
            actions.append(.send(message, to: node))
            return
        }
        // The network may lose what does not fit here.
        if self.held.count >= self.tuning.heldMessageCountMax { self.held.removeFirst() }
        self.held.append(HeldMessage(message: message, to: node, speaksOfVote: speaksOfVote))
        if speaksOfVote { actions.append(.reached(.answerGatedOnVote)) }
    }

    func mayBeSaid(speaksOfVote: Bool) -> Bool {
        self.bugs.contains(.voteNotSynced)
            || (speaksOfVote
                ? self.durableHardState == self.hardState
                : self.durableHardState.term == self.hardState.term)
    }

    private mutating func sayWhatWasHeld(into actions: inout [Action]) {
        guard !self.held.isEmpty else { return }
        let held = self.held
        self.held = []
        for item in held where item.message.term == self.term {
            if self.mayBeSaid(speaksOfVote: item.speaksOfVote) {
                actions.append(.send(item.message, to: item.to))
            } else {
                self.held.append(item)
            }
        }
    }

    // MARK: The own log

    /// Called before `durable` says so.
    private mutating func noteSynced(through index: LogIndex) {
        if index < self.log.last,
            let entries = self.log.entries(
                from: self.durable.next, through: index, sizeMax: .max)
        {
            for entry in entries { self.unsyncedSize -= entry.cost }
        } else {
            self.unsyncedSize = 0
        }
    }

    /// After a cut or a snapshot: what is left of it.
    mutating func countUnsynced() {
        self.unsyncedSize = 0
        guard self.durable < self.log.last,
            let entries = self.log.entries(
                from: self.durable.next, through: self.log.last, sizeMax: .max)
        else { return }
        for entry in entries { self.unsyncedSize += entry.cost }
    }

    mutating func remember(_ hardState: HardState) {
        guard hardState != self.hardState else { return }
        precondition(hardState.term >= self.hardState.term, "terms never fall")
        if hardState.term > self.hardState.term { self.leaderlessTermCount += 1 }
        self.hardState = hardState
        self.pendingWrite.hardState = hardState
    }

    private mutating func becameDurable(
        through: LogIndex, term: Term, hardState: HardState?, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        let termWasDurable = self.durableHardState.term == self.term
        if let hardState {
            self.durableHardState = hardState
            self.sayWhatWasHeld(into: &actions)
            if self.role == .candidate {
                if !self.bugs.contains(.voteNotSynced) { self.askForVotes(into: &actions) }
                self.countOwnVote(at: now, into: &actions)
            }
        }
        // Writes become durable in order. While an older term is the durable one, entries written
        // in it may since have been truncated and rewritten. Their report proves nothing now.
        guard self.durableHardState.term == self.term || self.bugs.contains(.durableIgnoresTerm)
        else {
            actions.append(.reached(.lateDurableIgnored))
            return
        }
        let isPresent =
            self.log.term(at: through) == term
            || (self.bugs.contains(.durableIgnoresTerm) && through <= self.log.last)
        if !isPresent, through > self.durable { actions.append(.reached(.durableAfterCut)) }
        let advanced = isPresent && through > self.durable
        if advanced {
            self.noteSynced(through: through)
            self.durable = through
            self.standAgainIfWhole(at: now, into: &actions)
        }
        switch self.role {
        case .leader:
            if advanced { self.advanceCommit(at: now, into: &actions) }
        case .follower:
            if let leader = self.leader, advanced || !termWasDurable {
                self.acknowledge(to: leader, into: &actions)
            }
        case .preCandidate, .candidate: break
        }
    }
}

extension ConsensusMessage {
    /// Said only by the leader of the message's term.
    var isFromLeader: Bool {
        switch self.body {
        case .append, .probe, .transferNow, .resigned, .snapshotChunk, .heldAsk,
            .acknowledged:
            true
        case .preVoteRequest, .preVoteAnswer, .voteRequest, .voteAnswer, .appendAccepted,
            .appendRefused, .probeAnswer, .snapshotAnswer, .digest, .held, .snapshotUntrue:
            false
        }
    }

    /// Whether a correct sender could have sent this; otherwise the peer is broken or hostile.
    var isWellFormed: Bool {
        guard self.term > .zero else { return false }
        switch self.body {
        case .append(let previous, let entries, _):
            var index = previous.index
            var term = previous.term
            for entry in entries {
                guard index.raw < .max, entry.index == index.next, entry.term >= term,
                    entry.term <= self.term
                else { return false }
                index = entry.index
                term = entry.term
            }
            return previous.term <= self.term
        case .appendAccepted(let match, let received, _):
            return match <= received
        case .appendRefused(_, let hint), .preVoteRequest(let hint), .voteRequest(let hint, _):
            return hint.index.raw < .max
        case .acknowledged(let point):
            return point.index.raw < .max && point.term <= self.term
        case .snapshotChunk(let chunk):
            return chunk.identity.term <= self.term && chunk.identity.index > .zero
                && !chunk.identity.configuration.voters.isEmpty
        case .preVoteAnswer, .voteAnswer, .probe, .probeAnswer, .transferNow, .resigned,
            .snapshotAnswer, .digest, .heldAsk, .held, .snapshotUntrue:
            return true
        }
    }
}
