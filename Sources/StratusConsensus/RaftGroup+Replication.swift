import StratusModel

// Replication: thesis §3.5, with asynchronous log writes (§10.2.1) and flow control.
extension RaftGroup {
    // MARK: Proposing

    mutating func propose(
        _ proposals: [Proposal], at now: MonotonicTime, into actions: inout [Action]
    ) {
        var hasAppended = false
        for proposal in proposals {
            if let refusal = self.refusal(of: proposal) {
                if refusal == .overloaded { actions.append(.reached(.overloaded)) }
                if refusal == .notHeld { actions.append(.reached(.copiesNotHeld)) }
                actions.append(.refused(proposal.token, refusal))
                continue
            }
            let point = self.appendOwn(
                proposal.kind, payload: proposal.payload,
                wallMilliseconds: proposal.wallMilliseconds, after: proposal.after,
                into: &actions)
            actions.append(.accepted(proposal.token, at: point))
            hasAppended = true
        }
        if hasAppended { self.replicateOwn(at: now, into: &actions) }
    }

    private func refusal(of proposal: Proposal) -> Refusal? {
        guard self.serves else { return .notLeader(self.servingLeader) }
        if let transfer = self.transfer { return .transferring(to: transfer.target) }
        let size = proposal.payload.count
        if size > self.tuning.proposalSizeMax || !self.isPlausible(proposal.after) {
            return .tooLarge
        }
        if let holdings = proposal.heldBy, !self.isHeld(by: holdings) { return .notHeld }
        // Mail is never gated: its sender waits for it and cannot be told to try again later.
        if proposal.kind != .mail, self.uncommittedSize > 0,
            self.uncommittedSize + size > self.tuning.uncommittedSizeMax
        {
            return .overloaded
        }
        // Others may have made durable what the own disk has not: it must not wait here without
        // bound.
        if proposal.kind != .mail, self.unsyncedSize > 0,
            self.unsyncedSize + size > self.tuning.uncommittedSizeMax,
            !self.bugs.contains(.flowCountsReceived)
        {
            return .overloaded
        }
        return nil
    }

    /// Appends an entry of the own term to the own log; the caller sends it on.
    @discardableResult
    mutating func appendOwn(
        _ kind: Entry.Kind, payload: Bytes, wallMilliseconds: Int64, after: HybridTime = .zero,
        into actions: inout [Action]
    ) -> LogPoint {
        let time =
            self.bugs.contains(.timeFromWallClock)
            ? HybridTime(milliseconds: wallMilliseconds)
            : max(self.log.lastTime, after).successor(wallMilliseconds: wallMilliseconds)
        let entry = Entry(
            index: self.log.last.next, term: self.term, time: time, kind: kind, payload: payload)
        self.log.append(entry)
        self.pendingWrite.entries.append(entry)
        self.uncommittedSize += entry.cost
        self.unsyncedSize += entry.cost
        if kind == .configuration { self.syncPeers(into: &actions) }
        return LogPoint(index: entry.index, term: entry.term)
    }

    /// Sends what was appended and starts to wait for its commitment.
    mutating func replicateOwn(at now: MonotonicTime, into actions: inout [Action]) {
        if self.quorumAt == nil { self.quorumAt = now + self.tuning.quorumTimeout }
        self.replicateAll(at: now, into: &actions)
        if self.bugs.contains(.countSelfBeforeSync) { self.advanceCommit(at: now, into: &actions) }
    }

    var uncommittedTailSize: Int {
        guard self.commit < self.log.last,
            let entries = self.log.entries(
                from: self.commit.next, through: self.log.last, sizeMax: .max)
        else { return 0 }
        return entries.reduce(0) { $0 + $1.cost }
    }

    // MARK: Sending

    mutating func replicateAll(at now: MonotonicTime, into actions: inout [Action]) {
        for position in self.peers.indices {
            self.replicate(toPeerAt: position, at: now, into: &actions)
        }
    }

    mutating func replicate(
        toPeerAt position: Int, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.peers[position].isReachable else { return }
        switch self.peers[position].mode {
        case .snapshot: return  // Driven by its own acknowledgements.
        case .probing:
            guard self.peers[position].resendAt == nil else { return }
            self.sendOne(toPeerAt: position, at: now, into: &actions)
        case .streaming:
            while self.peers[position].mode == .streaming, !self.peers[position].awaitsLog,
                self.peers[position].next <= self.log.last
            {
                guard self.maySend(toPeerAt: position) else {
                    actions.append(.reached(.inFlightFull))
                    return
                }
                self.sendOne(toPeerAt: position, at: now, into: &actions)
            }
            if self.peers[position].mode == .streaming, !self.peers[position].awaitsLog,
                self.peers[position].toldCommit < self.commit
            {
                self.sendOne(toPeerAt: position, at: now, into: &actions)
            }
        }
    }

    /// Whether the peer may be sent more. Entries that were sent before are counted already, even
    /// if they are sent again.
    private func maySend(toPeerAt position: Int) -> Bool {
        let peer = self.peers[position]
        return peer.next <= peer.sentThrough
            || peer.flights.count < self.tuning.inFlightMessageCountMax
                && peer.flightSize < self.tuning.inFlightSizeMax
    }

    /// Sends the next message to a peer: entries if there are any, else what is committed; a
    /// snapshot where the log does not reach back to what the peer needs.
    private mutating func sendOne(
        toPeerAt position: Int, at now: MonotonicTime, into actions: inout [Action]
    ) {
        let node = self.peers[position].node
        let next = self.peers[position].next
        guard let previousTerm = self.log.term(at: next.previous) else {
            self.startSnapshot(toPeerAt: position, at: now, into: &actions)
            return
        }
        let previous = LogPoint(index: next.previous, term: previousTerm)
        if self.peers[position].resendAt == nil {
            self.peers[position].resendAt = now + self.tuning.resendDelay
        }
        self.peers[position].toldCommit = self.commit
        guard next <= self.log.last, self.maySend(toPeerAt: position) else {
            self.say(
                .append(previous: previous, entries: [], commit: self.commit), to: node,
                into: &actions)
            return
        }
        let through = min(
            self.log.last, LogIndex(next.raw + UInt64(self.tuning.appendCountMax) - 1))
        guard
            let entries = self.log.entries(
                from: next, through: through, sizeMax: self.tuning.appendSizeMax)
        else {
            // Behind what is kept in memory: read from the log, the next when this one is on its
            // way.
            self.peers[position].awaitsLog = true
            actions.append(.reached(.sentFromLog))
            actions.append(
                .sendFromLog(
                    to: node, term: self.term, previous: previous, through: through,
                    commit: self.commit))
            return
        }
        let last = entries[entries.endIndex - 1].index
        self.peers[position].sent(
            from: next, through: last, size: entries.reduce(0) { $0 + $1.cost })
        if self.peers[position].mode == .streaming { self.peers[position].next = last.next }
        self.say(
            .append(previous: previous, entries: Array(entries), commit: self.commit), to: node,
            into: &actions)
    }

    mutating func sentFromLog(
        to node: NodeID, through: LogIndex?, size: Int, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard self.role == .leader,
            let position = self.peers.firstIndex(where: { $0.node == node }),
            self.peers[position].awaitsLog
        else { return }
        self.peers[position].awaitsLog = false
        guard let through, through <= self.log.last else {
            // Asked again when nothing is heard.
            if self.peers[position].mode == .streaming { self.peers[position].mode = .probing }
            return
        }
        self.peers[position].sent(
            from: self.peers[position].next, through: through, size: size)
        guard self.peers[position].mode == .streaming else { return }
        self.peers[position].next = max(self.peers[position].next, through.next)
        self.replicate(toPeerAt: position, at: now, into: &actions)
    }

    mutating func resendIfDue(
        toPeerAt position: Int, at now: MonotonicTime, into actions: inout [Action]
    ) {
        if let time = self.peers[position].stateResendAt, now >= time {
            self.sendState(toPeerAt: position, at: now, into: &actions)
        }
        guard let time = self.peers[position].resendAt, now >= time else { return }
        actions.append(.reached(.resent))
        if self.peers[position].mode == .snapshot {
            self.peers[position].resendAt = now + self.tuning.resendDelay
            actions.append(.sendSnapshot(to: self.peers[position].node, term: self.term))
            return
        }
        // What was in flight may be lost: ask where the peer is, from what it is known to have.
        let received = self.peers[position].received
        self.peers[position].probe(
            from: received > .zero ? received.next : self.peers[position].next)
        self.replicate(toPeerAt: position, at: now, into: &actions)
    }

    // MARK: Taking entries (§3.5, receiver)

    mutating func takeAppend(
        previous: LogPoint, entries: [Entry], commit: LogIndex, from: NodeID,
        at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.installing == nil else { return }
        self.verified = max(self.verified, self.commit)
        let end = LogIndex(previous.index.raw + UInt64(entries.count))
        if self.bugs.contains(.followerCommitsUnchecked) {
            self.commit = max(self.commit, min(commit, self.log.last))
        }
        // Committed here means equal there: only what follows can differ.
        if previous.index >= self.commit, !self.log.holds(previous),
            !self.bugs.contains(.skipPreviousCheck) || previous.index > self.log.last
        {
            actions.append(.reached(.appendRefused))
            let hint = self.log.latestPoint(notAfter: previous)
            // Index zero: whatever the leader knows to be here, it is not any more.
            let refused = self.mustReach == nil ? previous.index : .zero
            self.say(.appendRefused(previous: refused, hint: hint), to: from, into: &actions)
            return
        }
        if self.unsyncedSize >= self.tuning.unsyncedSizeMax, let last = entries.last,
            last.index > self.log.last
                || !self.log.holds(LogPoint(index: last.index, term: last.term)),
            !self.bugs.contains(.flowCountsReceived)
        {
            // The own disk is full or hangs: what would only wait in memory is not taken.
            actions.append(.reached(.appendDropped))
            self.acknowledge(to: from, into: &actions)
            return
        }
        var isNew = false
        for entry in entries where entry.index > self.log.base.index {
            if !isNew {
                if let term = self.log.term(at: entry.index) {
                    if term == entry.term || self.bugs.contains(.keepConflictingTail) { continue }
                    guard entry.index > self.commit else {
                        actions.append(.alarm(.conflictWithCommitted(entry.index, from: from)))
                        return
                    }
                    self.cutOwnLog(from: entry.index, into: &actions)
                }
                isNew = true
            }
            guard entry.term >= self.log.lastPoint.term else {
                // What the log begins behind was committed in a later term than this.
                actions.append(.alarm(.conflictWithCommitted(entry.index, from: from)))
                return
            }
            self.log.append(entry)
            self.pendingWrite.entries.append(entry)
            self.unsyncedSize += entry.cost
        }
        if !isNew, !entries.isEmpty { actions.append(.reached(.prefixAlreadyHere)) }
        if self.bugs.contains(.truncateOnOlderAppend), !isNew, !entries.isEmpty,
            end < self.log.last, end > self.commit
        {
            self.cutOwnLog(from: end.next, into: &actions)
        }
        self.verified = max(self.verified, end)
        // Not past this message: what follows it here may be of another leader.
        self.commit = max(self.commit, min(commit, self.verified))
        if self.bugs.contains(.acknowledgeBeforeSync) {
            self.say(
                .appendAccepted(
                    match: self.verified, received: self.verified, commit: self.commit),
                to: from, into: &actions)
            return
        }
        // New entries are acknowledged when they are durable; anything else now.
        if !isNew {
            self.standAgainIfWhole(at: now, into: &actions)
            self.acknowledge(to: from, into: &actions)
        }
    }

    private mutating func cutOwnLog(from index: LogIndex, into actions: inout [Action]) {
        actions.append(.reached(.conflictTruncated))
        if self.log.configurationIndex >= index { actions.append(.reached(.jointRolledBack)) }
        self.log.cut(from: index)
        if !self.bugs.contains(.durableKeptOnCut) {
            self.durable = min(self.durable, index.previous)
        }
        self.verified = min(self.verified, index.previous)
        self.countUnsynced()
        self.pendingWrite.truncateFrom = min(self.pendingWrite.truncateFrom ?? index, index)
    }

    /// Tells the leader what is on stable storage here and agrees with it.
    mutating func acknowledge(to leader: NodeID, into actions: inout [Action]) {
        guard self.durableHardState.term == self.term || self.bugs.contains(.voteNotSynced) else {
            return  // Follows when the term is durable.
        }
        var received = max(self.verified, self.commit)
        // A leader that counts what was received would send more: it is told of no more than fits.
        if self.unsyncedSize > self.tuning.inFlightSizeMax, !self.bugs.contains(.flowCountsReceived)
        {
            received = min(received, self.durable)
        }
        self.say(
            .appendAccepted(
                match: min(received, self.durable), received: received, commit: self.commit),
            to: leader, into: &actions)
    }

    // MARK: Counting acknowledgements

    mutating func peerAccepted(
        _ node: NodeID, match: LogIndex, received: LogIndex, commit: LogIndex,
        at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.role == .leader,
            let position = self.peers.firstIndex(where: { $0.node == node })
        else { return }
        guard received <= self.log.last || self.bugs.contains(.answerOfOlderTermCounts) else {
            actions.append(.alarm(.malformedMessage(from: node)))
            return
        }
        let match = self.bugs.contains(.receivedCountsAsMatch) ? received : match
        let isMatchHigher = match > self.peers[position].match
        self.peers[position].isHeard = true
        if isMatchHigher {
            self.peers[position].match = match
            self.peers[position].movedAt = now
        }
        if match >= self.peers[position].match { self.peers[position].isProven = true }
        if received > self.peers[position].received { self.peers[position].received = received }
        self.peers[position].knownCommit = max(self.peers[position].knownCommit, commit)
        self.peers[position].landed(
            through: self.bugs.contains(.flowCountsReceived) ? received : match)
        if self.peers[position].mode == .snapshot {
            guard self.log.term(at: match) != nil else { return }
            actions.append(.stopSnapshot(to: node))
            self.peers[position].next = match.next
        }
        self.peers[position].next = max(self.peers[position].next, received.next)
        // A late acknowledgement of less than the probe asked about leaves the probe unanswered.
        let isAgreed =
            self.peers[position].mode != .probing
            || received >= self.peers[position].next.previous
        if isAgreed {
            // Entries are accepted in this mode only behind the snapshot.
            if self.peers[position].mode == .snapshot { self.peers[position].lacksRows = false }
            self.peers[position].mode = .streaming
            let isBehind =
                self.peers[position].match < self.log.last
                || self.peers[position].knownCommit < self.commit
            self.peers[position].resendAt = isBehind ? now + self.tuning.resendDelay : nil
        }
        if isMatchHigher { self.advanceCommit(at: now, into: &actions) }
        guard self.role == .leader, position < self.peers.count,
            self.peers[position].node == node
        else { return }
        self.replicate(toPeerAt: position, at: now, into: &actions)
        if self.transfer?.target == node { self.completeTransfer(into: &actions) }
    }

    mutating func peerRefused(
        _ node: NodeID, previous: LogIndex, hint: LogPoint, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard self.role == .leader,
            let position = self.peers.firstIndex(where: { $0.node == node })
        else { return }
        self.peers[position].isHeard = true
        // Asked for what it had acknowledged before it restarted, it does not have it.
        let isGone =
            !self.peers[position].isProven && self.peers[position].mode == .probing
            && previous == self.peers[position].match
            && previous == self.peers[position].next.previous
        if isGone {
            actions.append(.alarm(.acknowledgedGone(through: previous, at: node)))
            // Until this leader has filled its log again, its vote must not help somebody who lacks
            // the same. Shells keep it from builds that do not read it.
            if let term = self.log.term(at: previous) {
                self.say(
                    .acknowledged(through: LogPoint(index: previous, term: term)), to: node,
                    into: &actions)
            }
        }
        // Index zero: a log that was damaged. What it acknowledged counted when it did, and is gone
        // there.
        let isLoss = previous == .zero && self.peers[position].mode != .snapshot || isGone
        if isLoss {
            self.peers[position].isProven = true
            self.peers[position].match = min(self.peers[position].match, hint.index)
            self.peers[position].forgetFlights()
        }
        let peer = self.peers[position]
        // Late or repeated: what it says about an earlier question is no news.
        guard peer.mode != .snapshot,
            isLoss
                || previous > peer.match
                    && (peer.mode == .streaming || previous == peer.next.previous)
        else {
            actions.append(.reached(.refusalIgnored))
            return
        }
        self.peers[position].received = peer.match
        let hinted = isLoss ? hint.index : min(hint.index, previous.previous)
        let agreed = self.log.latestPoint(notAfter: LogPoint(index: hinted, term: hint.term))
        if hinted < self.log.base.index || agreed.term > hint.term {
            // The logs part before ours begins.
            self.peers[position].next = self.log.base.index
        } else {
            self.peers[position].next = agreed.index.next
        }
        self.peers[position].probe(from: max(self.peers[position].next, peer.match.next))
        self.replicate(toPeerAt: position, at: now, into: &actions)
    }

    // MARK: Commitment (§3.6.2)

    mutating func advanceCommit(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.role == .leader else { return }
        let quorum = self.quorumIndex
        guard quorum > self.commit else { return }
        // Counting replicas proves nothing for entries of older terms: they become committed with
        // the first entry of the own term that is (figure 3.7).
        guard
            self.log.term(at: quorum) == self.term
                || self.bugs.contains(.commitOlderTermByCounting)
        else {
            actions.append(.reached(.quorumIndexOfOlderTerm))
            return
        }
        if self.commit.next < self.termStart {
            actions.append(.reached(.ownEntryCommitsOlderTerms))
        }
        if quorum > self.durable { actions.append(.reached(.commitWithoutOwnSync)) }
        if let entries = self.log.entries(
            from: self.commit.next, through: quorum, sizeMax: .max)
        {
            for entry in entries { self.uncommittedSize -= entry.cost }
        }
        self.commit = quorum
        if quorum == self.log.last { self.uncommittedSize = 0 }
        self.quorumAt = quorum < self.log.last ? now + self.tuning.quorumTimeout : nil
        self.membershipCommitted(at: now, into: &actions)
        if self.role == .leader { self.replicateAll(at: now, into: &actions) }
    }

    private var quorumIndex: LogIndex {
        var configuration = self.configuration
        if self.bugs.contains(.configurationOnCommit) {
            configuration = self.log.configuration(at: self.commit)
        }
        if self.bugs.contains(.jointNeedsOnlyNew), configuration.isJoint {
            configuration.voters = configuration.incoming
        }
        if self.bugs.contains(.learnerCounts) {
            configuration.voters += configuration.learners
        }
        let own = self.bugs.contains(.countSelfBeforeSync) ? self.log.last : self.durable
        func match(_ node: NodeID) -> LogIndex {
            if node == self.node { return own }
            for peer in self.peers where peer.node == node { return peer.match }
            return .zero
        }
        if self.bugs.contains(.commitByMinority), configuration.voters.count > 2 {
            let sorted = configuration.voters.map(match).sorted()
            return sorted[(sorted.count - 1) / 2 + 1]
        }
        return configuration.quorumIndex(match)
    }

    // MARK: Peers come and go

    /// One ``Progress`` per member of the configuration in force, in the order of nodes.
    mutating func syncPeers(into actions: inout [Action]) {
        var peers: [Progress] = []
        for node in self.configuration.members where node != self.node {
            if let known = self.peers.first(where: { $0.node == node }) {
                peers.append(known)
            } else {
                var peer = Progress(
                    node: node, next: self.log.last.next, assumed: self.log.base.index)
                peer.isReachable = !self.suspects.contains(node)
                peers.append(peer)
            }
        }
        for old in self.peers
        where old.isSentSnapshot && !peers.contains(where: { $0.node == old.node }) {
            actions.append(.stopSnapshot(to: old.node))
        }
        self.peers = peers
    }

    /// Says something to a peer now, whatever it is known to have.
    mutating func remind(_ node: NodeID, at now: MonotonicTime, into actions: inout [Action]) {
        guard let position = self.peers.firstIndex(where: { $0.node == node }),
            self.peers[position].mode != .snapshot
        else { return }
        self.peers[position].probe(from: self.peers[position].next)
        self.replicate(toPeerAt: position, at: now, into: &actions)
    }

    mutating func peerBecameUnreachable(
        _ node: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard let position = self.peers.firstIndex(where: { $0.node == node }) else { return }
        self.stopSnapshot(toPeerAt: position, into: &actions)
        self.peers[position].isReachable = false
        self.peers[position].probe(from: self.peers[position].next)
        let reachable = self.peers.filter(\.isReachable).map(\.node) + [self.node]
        if !self.configuration.isQuorum(reachable) { self.startRound(at: now, into: &actions) }
    }

    mutating func peerBecameReachable(
        _ node: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard let position = self.peers.firstIndex(where: { $0.node == node }) else { return }
        self.peers[position].isReachable = true
        self.peers[position].probe(from: self.peers[position].next)
        self.replicate(toPeerAt: position, at: now, into: &actions)
    }

    /// Its memory is gone: what it had received but not made durable may be gone too.
    mutating func peerRestarted(
        _ node: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard let position = self.peers.firstIndex(where: { $0.node == node }) else { return }
        self.stopSnapshot(toPeerAt: position, into: &actions)
        let match = self.peers[position].match
        self.peers[position].lacksRows = false
        self.peers[position].received = match
        self.peers[position].forgetFlights()
        self.peers[position].knownCommit = .zero
        self.peers[position].isProven = match == .zero
        self.peers[position].probe(
            from: match > .zero ? match.next : self.peers[position].next)
        self.replicate(toPeerAt: position, at: now, into: &actions)
    }

    mutating func stopSnapshot(toPeerAt position: Int, into actions: inout [Action]) {
        guard self.peers[position].isSentSnapshot else { return }
        actions.append(.stopSnapshot(to: self.peers[position].node))
        self.peers[position].stateResendAt = nil
        if self.peers[position].mode == .snapshot { self.peers[position].mode = .probing }
    }
}
