import StratusModel

// Elections: thesis §3.4, with pre-vote (§9.6), check-quorum (§6.2), transfer (§3.10) and the rule
// against disruptive servers (§4.2.3).
extension RaftGroup {
    /// There is a leader, and by the pair heartbeats its node is well.
    private var hasLiveLeader: Bool {
        if self.role == .leader { return true }
        guard let leader = self.leader, self.resignedTerm != self.term, !self.isLeaderUnconfirmed
        else { return false }
        return !self.suspects.contains(leader) && !self.decliners.contains(leader)
    }

    /// Whether this replica may stand for election. A replica that its newest configuration leaves
    /// out still may until that configuration is committed. It can be the only one with the entries
    /// that the others need (§4.2.2).
    var mayCampaign: Bool {
        !self.isInhibited && self.installing == nil && !self.isImpaired && !self.isSilent
            && self.isElectable
    }

    /// Whether this replica may lead in order to replicate: its log is whole and its rows are gone.
    /// It may have entries that nobody else has who has rows. Then no other can be elected.
    ///
    /// Such a leader takes no command and answers no read. It brings a voter that has rows up to
    /// date, and hands over to it.
    var mayStandIn: Bool {
        // Its last entry tells the latest time. Without one it has nothing that others could lack.
        self.lacksState && self.log.last > self.log.base.index && !self.hasDiverged
            && self.mustReach == nil && !self.isInhibited
            && self.installing == nil && !self.isSilent && !self.isAlone && self.isElectable
    }

    /// By the configurations that it knows.
    private var isElectable: Bool {
        if self.configuration.isVoter(self.node) { return true }
        let newest = self.log.configurationIndex
        return newest > self.commit && newest > self.log.base.index
            && self.log.configuration(at: newest.previous).isVoter(self.node)
    }

    /// The only voter: nobody else can win an election, or help to win one.
    package var isAlone: Bool { self.configuration.isQuorum([self.node]) }

    /// Something of what it held is lost: it serves nobody.
    private var isImpaired: Bool { self.lacksState || self.mustReach != nil }
    /// See ``silentThrough``.
    private var isSilent: Bool { self.commit < self.silentThrough }

    private var isLearner: Bool {
        !self.isInhibited && self.configuration.members.contains(self.node)
            && !self.configuration.isVoter(self.node)
    }

    // MARK: The election timer

    mutating func armElection(at now: MonotonicTime) {
        guard self.mayCampaign || self.installing != nil || self.isLearner || self.isImpaired
        else {
            self.electionAt = nil
            return
        }
        if self.isAlone {
            if self.installing == nil, !self.mayCampaign {
                // It lacks something, and nobody else may lead or vote: time changes nothing.
                self.electionAt = nil
                return
            }
            if self.role == .follower, self.installing == nil {
                self.electionAt = now  // Nobody to wait for.
                return
            }
        }
        if self.promptElectionCount > 0 {
            self.promptElectionCount -= 1
            let least = self.tuning.promptDelayMin.clampedNanoseconds
            let most = max(least, self.tuning.promptDelayMax.clampedNanoseconds)
            self.electionAt =
                now + .nanoseconds(Int64.random(in: least...most, using: &self.random))
            return
        }
        let least = self.tuning.electionDelayMin.clampedNanoseconds
        let most = max(least, self.tuning.electionDelayMax.clampedNanoseconds)
        let delay = Int64.random(in: least...most, using: &self.random)
        self.electionAt = now + .nanoseconds(delay * self.electionBackoff)
    }

    /// Grows with every term after the first that brought no leader. When disks are slower than the
    /// time-outs, two candidates with equal time-outs would collide again and again. §9.3 asks for
    /// time-outs well above the time of a broadcast, which is not known beforehand.
    private var electionBackoff: Int64 {
        if self.bugs.contains(.electionsNeverBackOff) { return 1 }
        let doublings = min(62, max(0, self.leaderlessTermCount - 1))
        return min(max(1, self.tuning.electionBackoffMax), 1 << Int64(doublings))
    }

    mutating func armElectionIfLeaderless(at now: MonotonicTime) {
        if !self.hasLiveLeader, self.electionAt == nil { self.armElection(at: now) }
    }

    mutating func electionTimedOut(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.role != .leader, self.mayCampaign || self.standsInNow() else {
            self.electionAt = nil
            if self.role != .leader { self.armElection(at: now) }
            // Whoever leads takes the question for "who leads?".
            if self.role != .leader, self.isLearner || self.isImpaired {
                self.askForPreVotes(into: &actions)
            }
            return
        }
        if self.configuration.isQuorum([self.node]) {
            self.campaign(isTransfer: false, at: now, into: &actions)
        } else {
            self.preCampaign(at: now, into: &actions)
        }
    }

    /// Whether this replica stands although it has no rows: after several time-outs without a
    /// leader. Those that have rows are elected first, where they can be.
    private mutating func standsInNow() -> Bool {
        guard self.mayStandIn, self.role != .leader else { return false }
        guard self.rowlessTimeoutCount >= Self.standInTimeoutCount else {
            self.rowlessTimeoutCount += 1
            return false
        }
        return true
    }

    private static let standInTimeoutCount = 4

    // MARK: Asking

    /// Asks whether an election would succeed before disturbing anybody with a new term (§9.6).
    private mutating func preCampaign(at now: MonotonicTime, into actions: inout [Action]) {
        self.votes = [self.node]
        self.setRole(.preCandidate, leader: self.leader, into: &actions)
        self.armElection(at: now)
        self.askForPreVotes(into: &actions)
    }

    private func askForPreVotes(into actions: inout [Action]) {
        let message = ConsensusMessage(
            term: self.term.next, .preVoteRequest(last: self.log.lastPoint))
        for voter in self.configuration.allVoters where voter != self.node {
            actions.append(.send(message, to: voter))
        }
    }

    mutating func campaign(isTransfer: Bool, at now: MonotonicTime, into actions: inout [Action]) {
        self.remember(HardState(term: self.term.next, vote: self.node))
        self.votes = []
        self.verified = self.commit
        // A vote takes as long as a disk does: whoever waits for it is in no hurry any more.
        self.promptElectionCount = 0
        self.setRole(.candidate, leader: nil, into: &actions)
        self.armElection(at: now)
        self.campaignIsTransfer = isTransfer
        self.askForVotes(into: &actions)
        if self.bugs.contains(.voteNotSynced) { self.countOwnVote(at: now, into: &actions) }
    }

    /// Asks every other voter, once this replica's own vote is durable. Called when the campaign
    /// begins, and again when the vote is durable. The questions are not held back among other
    /// messages, where a small bound would drop those to the same voters in every term.
    mutating func askForVotes(into actions: inout [Action]) {
        guard self.mayBeSaid(speaksOfVote: true) else {
            actions.append(.reached(.answerGatedOnVote))
            return
        }
        let message = ConsensusMessage(
            term: self.term,
            .voteRequest(last: self.log.lastPoint, isTransfer: self.campaignIsTransfer))
        for voter in self.configuration.allVoters where voter != self.node {
            actions.append(.send(message, to: voter))
        }
    }

    // MARK: Answering

    mutating func answerPreVote(
        for term: Term, last: LogPoint, from: NodeID, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        if self.leader == from, self.role != .leader, term > self.term {
            // The leader itself asks for a later term, so it no longer leads. A delayed question
            // from before its term says nothing.
            self.loseLeader(at: now, into: &actions)
        }
        if term > self.term, !self.hasLiveLeader, !self.isSilent, self.mustReach == nil,
            !self.hasDiverged,
            last.isAtLeastAsUpToDate(as: self.log.lastPoint)
                || self.bugs.contains(.ignoreLogUpToDate)
        {
            actions.append(
                .send(ConsensusMessage(term: term, .preVoteAnswer(granted: true)), to: from))
            if self.promptElectionCount > 0 {
                // Somebody else is about to win: two candidates at once would split the votes.
                self.promptElectionCount = 0
                if self.role == .follower { self.armElection(at: now) }
            }
            return
        }
        if self.hasLiveLeader { actions.append(.reached(.preVoteRefusedLeaderAlive)) }
        if self.role == .leader {
            // Whoever asks does not know who leads, and a group without work would not tell it.
            self.remind(from, at: now, into: &actions)
        }
        // With the own term, so that a candidate whose term is behind catches up instead of asking
        // for ever (etcd #8243). Term zero has nothing to tell.
        guard self.term > .zero else { return }
        actions.append(
            .send(ConsensusMessage(term: self.term, .preVoteAnswer(granted: false)), to: from))
    }

    mutating func answerVote(
        for term: Term, last: LogPoint, isTransfer: Bool, from: NodeID, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        if term > self.term {
            if !isTransfer, self.hasLiveLeader, self.leader != from {
                // §4.2.3: who hears a leader does not help to replace it.
                actions.append(.reached(.voteIgnoredLeaderAlive))
                return
            }
            self.becomeFollower(in: term, of: nil, at: now, into: &actions)
        }
        guard term == self.term else {
            self.say(.voteAnswer(granted: false), to: from, into: &actions)
            return
        }
        let isFree = self.hardState.vote == nil || self.hardState.vote == from
        let isUpToDate = last.isAtLeastAsUpToDate(as: self.log.lastPoint)
        if !isUpToDate { actions.append(.reached(.voteRefusedLogBehind)) }
        if self.mustReach != nil { actions.append(.reached(.voteRefusedLogDamaged)) }
        let mayVote =
            isFree && self.leader == nil && !self.hasDiverged
            && (self.mustReach == nil || self.bugs.contains(.damagedLogVotes))
        guard !self.isSilent,
            mayVote || (self.bugs.contains(.voteTwiceInATerm) && self.role != .leader),
            isUpToDate || self.bugs.contains(.ignoreLogUpToDate)
        else {
            self.say(.voteAnswer(granted: false), to: from, into: &actions)
            return
        }
        self.remember(HardState(term: term, vote: from))
        self.setRole(.follower, leader: nil, into: &actions)
        self.armElection(at: now)
        self.say(.voteAnswer(granted: true), to: from, speaksOfVote: true, into: &actions)
    }

    // MARK: Counting

    mutating func countPreVote(
        of term: Term, from: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.role == .preCandidate, term == self.term.next, !self.votes.contains(from) else {
            return
        }
        self.votes.append(from)
        if self.configuration.isQuorum(self.votes) {
            self.campaign(isTransfer: false, at: now, into: &actions)
        }
    }

    mutating func countOwnVote(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.durableHardState == self.hardState || self.bugs.contains(.voteNotSynced),
            !self.votes.contains(self.node)
        else { return }
        self.votes.append(self.node)
        self.leadIfElected(at: now, into: &actions)
    }

    mutating func countVote(
        of term: Term, granted: Bool, from: NodeID, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard self.role == .candidate, granted, !self.votes.contains(from),
            term == self.term || self.bugs.contains(.countVotesOfAnyTerm)
        else { return }
        self.votes.append(from)
        self.leadIfElected(at: now, into: &actions)
    }

    private mutating func leadIfElected(at now: MonotonicTime, into actions: inout [Action]) {
        var isElected = self.configuration.isQuorum(self.votes)
        if self.bugs.contains(.jointNeedsOnlyNew), self.configuration.isJoint {
            isElected = Configuration(voters: self.configuration.incoming).isQuorum(self.votes)
        }
        if self.bugs.contains(.electWithMinority) {
            isElected = self.votes.count * 2 >= self.configuration.voters.count
        }
        guard isElected else { return }
        self.becomeLeader(at: now, into: &actions)
    }

    // MARK: Changing roles

    private mutating func becomeLeader(at now: MonotonicTime, into actions: inout [Action]) {
        self.electionAt = nil
        self.votes = []
        self.peers = []
        self.round = nil
        self.waitingReads = []
        self.transfer = nil
        self.setRole(.leader, leader: self.node, into: &actions)
        self.syncPeers(into: &actions)
        self.uncommittedSize = self.uncommittedTailSize
        // An entry of this leader's own term. Only through it do older entries become committed
        // (§3.6.2), and reads wait until it is applied (§6.4).
        self.termStart = self.log.last.next
        self.appendOwn(.noop, payload: [], wallMilliseconds: 0, into: &actions)
        self.quorumAt = now + self.tuning.quorumTimeout
        self.replicateAll(at: now, into: &actions)
        self.advanceCommit(at: now, into: &actions)
    }

    /// Takes on `term` (or stays in it) with the leader, if one is known.
    mutating func becomeFollower(
        in term: Term, of leader: NodeID?, at now: MonotonicTime, into actions: inout [Action]
    ) {
        if term > self.term {
            self.remember(HardState(term: term, vote: nil))
            self.verified = self.commit
            if self.installing != nil { actions.append(.reached(.newTermWhileInstalling)) }
        }
        self.leaveLeadership(into: &actions)
        self.votes = []
        self.setRole(.follower, leader: leader, into: &actions)
        if self.hasLiveLeader {
            self.promptElectionCount = 0
            self.electionAt = nil  // The leader's node is watched instead.
        } else if self.electionAt == nil {
            self.armElection(at: now)
        }
    }

    /// Accepts `node` as the leader of the current term. False when that cannot be.
    mutating func follow(_ node: NodeID, at now: MonotonicTime, into actions: inout [Action])
        -> Bool
    {
        if self.role == .leader || (self.leader != nil && self.leader != node) {
            actions.append(.alarm(.twoLeadersInOneTerm(self.term, node)))
            return false
        }
        let wasUnconfirmed = self.isLeaderUnconfirmed
        self.isLeaderUnconfirmed = false
        if self.role != .follower || self.leader != node || wasUnconfirmed {
            self.becomeFollower(in: self.term, of: node, at: now, into: &actions)
        }
        return true
    }

    /// The current term has no leader any more, whatever messages of it are still on their way.
    mutating func loseLeader(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.role != .leader else { return }
        self.resignedTerm = self.term
        self.setRole(self.role, leader: nil, into: &actions)
        self.armElectionIfLeaderless(at: now)
    }

    /// Leads no more, in the same term, and tells everybody so that they need not find out.
    mutating func resign(at now: MonotonicTime, into actions: inout [Action]) {
        precondition(self.role == .leader)
        for peer in self.peers { self.say(.resigned, to: peer.node, into: &actions) }
        self.becomeFollower(in: self.term, of: nil, at: now, into: &actions)
    }

    /// Leads nothing for these reasons.
    mutating func inhibit(
        _ reasons: Inhibition, at now: MonotonicTime, into actions: inout [Action]
    ) {
        self.inhibition.formUnion(reasons)
        self.electionAt = nil
        switch self.role {
        case .leader:
            actions.append(.reached(.resignedInhibited))
            self.handOver(at: now, into: &actions)
        case .preCandidate, .candidate:
            self.becomeFollower(in: self.term, of: self.leader, at: now, into: &actions)
        case .follower: break
        }
    }

    /// Resigns in favour of the peer that lacks least, of those one that has its rows.
    mutating func handOver(at now: MonotonicTime, into actions: inout [Action]) {
        let heirs = self.peers.filter { $0.isReachable && self.configuration.isVoter($0.node) }
        let heir = heirs.max {
            ($0.match, $0.lacksRows ? 0 : 1) < ($1.match, $1.lacksRows ? 0 : 1)
        }
        if let heir {
            self.say(.transferNow, to: heir.node, into: &actions)
        }
        self.resign(at: now, into: &actions)
    }

    private mutating func leaveLeadership(into actions: inout [Action]) {
        guard self.role == .leader else { return }
        for peer in self.peers where peer.isSentSnapshot {
            actions.append(.stopSnapshot(to: peer.node))
        }
        self.peers = []
        self.quorumAt = nil
        self.transfer = nil
        self.uncommittedSize = 0
        self.verified = self.commit
        self.refuseReads(into: &actions)
    }

    mutating func setRole(_ role: Role, leader: NodeID?, into actions: inout [Action]) {
        guard role != self.role || leader != self.leader else { return }
        if leader != self.leader { self.isLeaderUnconfirmed = false }
        self.role = role
        self.leader = leader
        if leader != nil {
            self.leaderlessTermCount = 0
            self.rowlessTimeoutCount = 0
        }
        actions.append(.roleChanged(role, term: self.term, leader: leader))
    }

    // MARK: What the pair heartbeats say

    mutating func suspect(_ node: NodeID, at now: MonotonicTime, into actions: inout [Action]) {
        guard !self.suspects.contains(node) else { return }
        self.suspects.append(node)
        self.suspects.sort()
        if self.role == .leader {
            self.peerBecameUnreachable(node, at: now, into: &actions)
        } else if self.leader == node {
            self.armElectionIfLeaderless(at: now)
        }
    }

    /// Takes the node as silent at once, without waiting for its time-out. If it was the leader, a
    /// pre-vote asks the others whether it is gone: a replica that still hears it refuses.
    mutating func noteEnded(_ node: NodeID, at now: MonotonicTime, into actions: inout [Action]) {
        self.suspect(node, at: now, into: &actions)
        guard self.role == .follower, self.leader == node, self.mayCampaign else { return }
        self.promptElectionCount = self.tuning.promptElectionCountMax
        self.armElection(at: now)
    }

    mutating func trust(_ node: NodeID, at now: MonotonicTime, into actions: inout [Action]) {
        if self.bugs.contains(.endedSuspectedForEver) { return }
        let wasSuspect = self.suspects.contains(node)
        self.suspects.removeAll { $0 == node }
        if self.role == .leader {
            self.peerBecameReachable(node, at: now, into: &actions)
        } else if wasSuspect, self.leader == node {
            self.awaitWordOfLeader(at: now, into: &actions)
        } else {
            self.standDownIfLed(at: now, into: &actions)
        }
    }

    /// The leader's node is heard again. What it said meanwhile is lost, and it may have said that
    /// it leads no more. A leader sends to a peer that it hears again, or answers its pre-vote; one
    /// that leads no more does neither.
    private mutating func awaitWordOfLeader(at now: MonotonicTime, into actions: inout [Action]) {
        self.isLeaderUnconfirmed = true
        self.promptElectionCount = 0
        if self.role == .preCandidate {
            self.setRole(.follower, leader: self.leader, into: &actions)
        }
        self.electionAt = nil
        self.armElection(at: now)
    }

    mutating func decline(_ node: NodeID, at now: MonotonicTime) {
        guard !self.decliners.contains(node) else { return }
        self.decliners.append(node)
        self.decliners.sort()
        if self.leader == node { self.armElectionIfLeaderless(at: now) }
    }

    mutating func recover(_ node: NodeID, at now: MonotonicTime, into actions: inout [Action]) {
        self.decliners.removeAll { $0 == node }
        self.standDownIfLed(at: now, into: &actions)
    }

    /// The leader is well after all: no reason to replace it.
    private mutating func standDownIfLed(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.role != .leader, self.hasLiveLeader else { return }
        self.promptElectionCount = 0
        self.electionAt = nil
        if self.role == .preCandidate {
            self.setRole(.follower, leader: self.leader, into: &actions)
        }
    }

    mutating func forgetMemory(of node: NodeID, at now: MonotonicTime, into actions: inout [Action])
    {
        if self.role == .leader {
            self.peerRestarted(node, at: now, into: &actions)
        } else if self.leader == node {
            // Perhaps: the news may be older than a reign that the new process has begun since.
            actions.append(.reached(.leaderRestarted))
            self.setRole(self.role, leader: nil, into: &actions)
            self.armElectionIfLeaderless(at: now)
        }
    }

    // MARK: Transfer (§3.10)

    mutating func requestTransfer(
        to target: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.role == .leader, self.configuration.isVoter(target),
            let position = self.peers.firstIndex(where: { $0.node == target }),
            self.peers[position].isReachable
        else { return }
        actions.append(.reached(self.transfer == nil ? .transferStarted : .transferReplaced))
        self.transfer = Transfer(target: target, deadline: now + self.tuning.transferTimeout)
        self.completeTransfer(into: &actions)
    }

    /// A leader without rows hands over to a voter that has them, as soon as that has every entry
    /// and knows them to be committed. The voters are asked in turn: one may be unable to lead.
    mutating func handOverIfStandingIn(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.role == .leader, self.lacksState, self.transfer == nil,
            self.commit == self.log.last
        else { return }
        let heirs = self.peers.filter {
            $0.isReachable && !$0.lacksRows && $0.match == self.log.last
                && self.configuration.isVoter($0.node)
        }.map(\.node).sorted()
        let last = self.lastHeir
        guard let heir = heirs.first(where: { $0 > last ?? NodeID(0) }) ?? heirs.first else {
            return
        }
        actions.append(.reached(.standInHandsOver))
        self.lastHeir = heir
        self.requestTransfer(to: heir, at: now, into: &actions)
    }

    /// Once the target has everything, it may campaign. Said again with every acknowledgement: the
    /// message may be lost, and a second election in a later term does no harm.
    mutating func completeTransfer(into actions: inout [Action]) {
        guard let transfer = self.transfer,
            let peer = self.peers.first(where: { $0.node == transfer.target }),
            peer.match == self.log.last
        else { return }
        self.say(.transferNow, to: transfer.target, into: &actions)
    }
}
