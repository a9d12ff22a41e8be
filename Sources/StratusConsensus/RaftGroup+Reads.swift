import StratusModel

// Reads by read index (thesis §6.4) and the leader's own check that it still leads (§6.2). Both ask
// the voters the same question, by group and term: one round answers for everything that waits.
extension RaftGroup {
    mutating func requestRead(_ token: RequestToken, into actions: inout [Action]) {
        if self.bugs.contains(.followerAnswersReads), self.role == .follower, self.leader != nil {
            actions.append(.readReady(token, at: self.commit))
            return
        }
        guard self.serves else {
            actions.append(.refused(token, .notLeader(self.servingLeader)))
            return
        }
        if self.bugs.contains(.readWithoutRound) {
            actions.append(.readReady(token, at: self.readIndex))
            return
        }
        if self.bugs.contains(.heartbeatForReadIndex),
            self.configuration.isQuorum(
                self.peers.filter(\.isReachable).map(\.node) + [self.node])
        {
            actions.append(.readReady(token, at: self.readIndex))
            return
        }
        guard self.waitingReads.count < self.tuning.waitingReadCountMax else {
            actions.append(.reached(.overloaded))
            actions.append(.refused(token, .overloaded))
            return
        }
        self.waitingReads.append(token)
        if self.commit < self.termStart { actions.append(.reached(.readBeforeOwnTermCommit)) }
        if self.round != nil { actions.append(.reached(.readRoundBatched)) }
    }

    /// The entries that a read must see: all that were answered before it arrived. This leader
    /// answers a command once it has applied it. What an earlier leader has answered lies before
    /// the first entry of the own term.
    ///
    /// The index of the thesis (§6.4) is `commit`. A read would then wait for entries that nobody
    /// has been told of: for a backlog, and for the own disk where the others' suffice. One index
    /// serves a whole round, since what was applied when one of its reads arrived still is.
    private var readIndex: LogIndex {
        self.bugs.contains(.readBelowTermStart)
            ? self.applied : max(self.termStart, self.applied)
    }

    /// A round that began earlier cannot serve a read that arrived since: the answers may be older
    /// than the read. It waits for the next one.
    mutating func startRoundIfWanted(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.round == nil, !self.waitingReads.isEmpty else {
            if self.bugs.contains(.readCountsOldRound), self.round != nil {
                self.round?.tokens += self.waitingReads
                self.waitingReads = []
            }
            return
        }
        self.startRound(at: now, into: &actions)
    }

    mutating func startRound(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.round == nil else { return }
        var tokens: [RequestToken] = []
        swap(&tokens, &self.waitingReads)
        self.roundCount += 1
        self.round = Round(
            number: self.roundCount, index: self.readIndex, tokens: tokens, answers: [self.node],
            deadline: now + self.tuning.quorumTimeout, resendAt: now + self.tuning.resendDelay)
        if self.finishRound(at: now, into: &actions) { return }
        self.sendProbes(into: &actions)
    }

    private mutating func sendProbes(into actions: inout [Action]) {
        guard let round = self.round else { return }
        for voter in self.configuration.allVoters
        where voter != self.node && !round.answers.contains(voter) {
            self.say(.probe(round: round.number), to: voter, into: &actions)
        }
    }

    mutating func countProbe(
        _ number: UInt64, from: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.role == .leader, let round = self.round,
            round.number == number || self.bugs.contains(.readCountsOldRound),
            !round.answers.contains(from)
        else { return }
        self.round?.answers.append(from)
        if self.finishRound(at: now, into: &actions) {
            self.startRoundIfWanted(at: now, into: &actions)
        }
    }

    private mutating func finishRound(at now: MonotonicTime, into actions: inout [Action]) -> Bool {
        guard let round = self.round, self.configuration.isQuorum(round.answers) else {
            return false
        }
        self.round = nil
        for token in round.tokens { actions.append(.readReady(token, at: round.index)) }
        return true
    }

    /// Steps down when a round is not answered; begins one when commitment stands still.
    mutating func checkQuorum(at now: MonotonicTime, into actions: inout [Action]) {
        if let round = self.round {
            if now >= round.deadline {
                actions.append(.reached(.steppedDownNoQuorum))
                self.resign(at: now, into: &actions)
                return
            }
            if now >= round.resendAt {
                self.round?.resendAt = now + self.tuning.resendDelay
                self.sendProbes(into: &actions)
            }
        }
        guard let time = self.quorumAt, now >= time else { return }
        self.quorumAt = self.commit < self.log.last ? now + self.tuning.quorumTimeout : nil
        if self.quorumAt != nil { self.startRound(at: now, into: &actions) }
    }

    mutating func refuseReads(into actions: inout [Action]) {
        var tokens = self.waitingReads
        if let round = self.round { tokens = round.tokens + tokens }
        if !tokens.isEmpty { actions.append(.reached(.readRoundSteppedDown)) }
        for token in tokens { actions.append(.refused(token, .notLeader(nil))) }
        self.waitingReads = []
        self.round = nil
    }
}
