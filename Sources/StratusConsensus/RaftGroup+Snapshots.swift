package import StratusModel

// Snapshots (thesis §5): for a peer that needs entries the log has let go. The bytes are the
// shell's business; what may be installed, and what the log is then, is decided here.
extension RaftGroup {
    // MARK: The leader's side

    mutating func startSnapshot(
        toPeerAt position: Int, at now: MonotonicTime, into actions: inout [Action]
    ) {
        actions.append(.reached(.snapshotNeeded))
        self.peers[position].mode = .snapshot
        self.peers[position].stateResendAt = nil
        self.peers[position].awaitsLog = false
        self.peers[position].forgetFlights()
        self.peers[position].movedAt = self.peers[position].movedAt ?? now
        self.peers[position].resendAt = now + self.tuning.resendDelay
        actions.append(.sendSnapshot(to: self.peers[position].node, term: self.term))
    }

    /// To a peer that has its log and lacks its rows. Entries go on beside it: the peer may be
    /// needed for the quorum, and what it acknowledges of its log says nothing of its rows.
    mutating func sendState(
        toPeerAt position: Int, at now: MonotonicTime, into actions: inout [Action]
    ) {
        self.peers[position].stateResendAt = now + self.tuning.resendDelay
        actions.append(.sendSnapshot(to: self.peers[position].node, term: self.term))
    }

    mutating func peerTookChunk(
        _ node: NodeID, index: LogIndex, next: UInt32, unneeded: Bool, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard self.role == .leader,
            let position = self.peers.firstIndex(where: { $0.node == node })
        else { return }
        self.peers[position].isHeard = true
        self.peers[position].movedAt = now
        if index == .zero {
            self.peers[position].lacksRows = true
            // Neither has this leader any.
            if self.lacksState { return }
        }
        if index == .zero, !self.peers[position].isSentSnapshot {
            if self.log.term(at: self.peers[position].match) != nil {
                actions.append(.reached(.snapshotNeeded))
                self.sendState(toPeerAt: position, at: now, into: &actions)
            } else {
                self.startSnapshot(toPeerAt: position, at: now, into: &actions)
            }
        }
        if index > .zero, self.peers[position].stateResendAt != nil {
            guard !unneeded else {
                self.peers[position].lacksRows = false
                self.stopSnapshot(toPeerAt: position, into: &actions)
                return
            }
            self.peers[position].stateResendAt = now + self.tuning.resendDelay
            actions.append(
                .snapshotAcknowledged(by: node, index: index, next: next, term: self.term))
            return
        }
        guard index > .zero, self.peers[position].mode == .snapshot else { return }
        self.peers[position].resendAt = now + self.tuning.resendDelay
        actions.append(
            .snapshotAcknowledged(by: node, index: index, next: next, term: self.term))
    }

    // MARK: The follower's side

    mutating func takeChunk(
        _ chunk: SnapshotChunk, from: NodeID, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.installing == nil else {
            if self.installing == chunk.identity {
                // Nothing is missing: the leader hears that somebody is at work.
                self.say(
                    .snapshotAnswer(
                        index: chunk.identity.index, next: chunk.sequence &+ 1, unneeded: false),
                    to: from, into: &actions)
            }
            return
        }
        if self.isUnneeded(chunk.identity), !self.bugs.contains(.lateSnapshotInstalled) {
            self.declineSnapshot(chunk.identity, from: from, into: &actions)
        } else {
            actions.append(.receiveChunk(chunk, from: from))
        }
    }

    mutating func considerSnapshot(
        _ identity: SnapshotIdentity, at now: MonotonicTime, into actions: inout [Action]
    ) {
        guard self.installing == nil else { return }
        if self.isUnneeded(identity), !self.bugs.contains(.lateSnapshotInstalled) {
            if let leader = self.leader, leader != self.node {
                self.declineSnapshot(identity, from: leader, into: &actions)
            }
            return
        }
        guard self.role != .leader else { return }
        self.installing = identity
        actions.append(.install(identity))
    }

    /// The own rows are not to be trusted any more: they are replaced by the leader's, as if they
    /// were lost. How they came to differ is not known, so that the log is not trusted with a vote
    /// either.
    mutating func noteDivergence(at now: MonotonicTime, into actions: inout [Action]) {
        guard !self.hasDiverged, !self.isAlone else { return }
        actions.append(.reached(.diverged))
        self.hasDiverged = true
        self.hasWrongRows = true
        self.lacksState = true
        self.stateWantedAt = now
        self.inhibit(.divergence, at: now, into: &actions)
    }

    /// The own rows have rotted: they are replaced by the leader's, as if they were lost. The log is
    /// what it was, so that this replica votes, and may stand in where nobody else can lead.
    mutating func noteRottenRows(at now: MonotonicTime, into actions: inout [Action]) {
        guard !self.lacksState, !self.isAlone else { return }
        actions.append(.reached(.rowsRotten))
        self.hasWrongRows = true
        self.lacksState = true
        self.stateWantedAt = now
        self.keepLastRows(into: &actions)
        guard self.lacksState else { return }
        switch self.role {
        case .leader: self.handOver(at: now, into: &actions)
        case .preCandidate, .candidate:
            self.becomeFollower(in: self.term, of: self.leader, at: now, into: &actions)
        case .follower: break
        }
    }

    /// Every other voter has asked for rows, and these are wrong: they are all there is. The group goes
    /// on with them, as a replica alone does, and nobody gets a snapshot of them.
    mutating func keepLastRows(into actions: inout [Action]) {
        guard self.role == .leader, self.hasWrongRows, !self.hasDiverged,
            self.peers.allSatisfy({ $0.lacksRows || !self.configuration.isVoter($0.node) })
        else { return }
        actions.append(.reached(.lastRowsKept))
        self.lacksState = false
        self.hasWrongRows = false
        self.stateWantedAt = nil
        actions.append(.keepRows)
    }

    /// Asks the leader for its state: an answer about a snapshot that was never sent.
    mutating func askForState(at now: MonotonicTime, into actions: inout [Action]) {
        self.stateWantedAt = nil
        guard self.lacksState else { return }
        self.stateWantedAt = now + self.tuning.resendDelay * 4
        guard self.installing == nil, let leader = self.leader, leader != self.node else { return }
        actions.append(.reached(.stateAskedFor))
        self.say(
            .snapshotAnswer(index: .zero, next: 0, unneeded: false), to: leader, into: &actions)
    }

    /// Whether everything the snapshot covers is here already, in the state or as entries of the
    /// same log.
    private func isUnneeded(_ identity: SnapshotIdentity) -> Bool {
        // One that ends before the log begins would leave a gap.
        if self.lacksState {
            // Rows that are there never go back.
            return identity.index < self.log.base.index
                || self.hasWrongRows && identity.index < self.handed
        }
        return identity.index <= self.commit
            || self.log.holds(LogPoint(index: identity.index, term: identity.term))
    }

    private mutating func declineSnapshot(
        _ identity: SnapshotIdentity, from: NodeID, into actions: inout [Action]
    ) {
        actions.append(.reached(.snapshotUnneeded))
        if identity.index > self.commit {
            // Same index and term, same prefix: all of it is committed, and agrees with the leader.
            self.commit = identity.index
            actions.append(.reached(.snapshotKeptTail))
        }
        self.verified = max(self.verified, self.commit)
        self.say(
            .snapshotAnswer(index: identity.index, next: 0, unneeded: true), to: from,
            into: &actions)
        self.acknowledge(to: from, into: &actions)
    }

    mutating func snapshotInstalled(
        _ identity: SnapshotIdentity, at now: MonotonicTime, into actions: inout [Action]
    ) {
        precondition(self.installing == identity, "a snapshot nobody asked for was installed")
        self.installing = nil
        actions.append(.reached(.snapshotInstalled))
        // A snapshot of what is here is taken only by who lacks its state.
        if self.lacksState {
            actions.append(.reached(.stateRegained))
            self.lacksState = false
            self.stateWantedAt = nil
            if self.hasDiverged { self.inhibition.remove(.divergence) }
            self.hasDiverged = false
            self.hasWrongRows = false
        }
        if self.keepsLog(after: identity) {
            // What follows it here was acknowledged: it stays, and is applied again as it is
            // committed.
            self.log.rebase(on: identity)
            self.commit = max(self.commit, identity.index)
            self.durable = max(self.durable, identity.index)
            self.handed = identity.index
            self.verified = max(self.verified, identity.index)
            self.countUnsynced()
            if let leader = self.leader, leader != self.node {
                self.acknowledge(to: leader, into: &actions)
            }
            self.armElectionIfLeaderless(at: now)
            return
        }
        // The own tail is of another history, or ends earlier: it was not committed.
        let vouches =
            self.bugs.contains(.snapshotVouchesForTail) && self.log.last > identity.index
        if vouches {
            self.log.compact(through: identity.index)
        } else {
            self.log.restart(after: identity)
        }
        self.durable = max(identity.index, min(self.durable, self.log.last))
        self.commit = identity.index
        self.handed = identity.index
        self.verified = vouches ? self.log.last : identity.index
        self.countUnsynced()
        self.standAgainIfWhole(at: now, into: &actions)
        if let leader = self.leader, leader != self.node {
            self.acknowledge(to: leader, into: &actions)
        }
        self.armElectionIfLeaderless(at: now)
    }

    /// Whether the own log goes on behind a snapshot, which then stands for its beginning only.
    package func keepsLog(after identity: SnapshotIdentity) -> Bool {
        self.log.holds(LogPoint(index: identity.index, term: identity.term))
    }

    // MARK: A damaged log

    /// This replica had acknowledged the log through `point`, and took it for torn when it started
    /// (S-09): it owes what is missing.
    mutating func oweAcknowledged(through point: LogPoint, into actions: inout [Action]) {
        guard self.installing == nil,
            !self.log.lastPoint.isAtLeastAsUpToDate(as: point),
            self.mustReach.map({ !$0.isAtLeastAsUpToDate(as: point) }) ?? true
        else { return }
        if !self.bugs.contains(.acknowledgedTailForgotten) { self.mustReach = point }
        actions.append(.reached(.acknowledgedTailOwed))
    }

    /// The log is again at least as complete as it ever was. Every entry that this replica may have
    /// acknowledged is here, or a leader of a later term has replaced it.
    mutating func standAgainIfWhole(at now: MonotonicTime, into actions: inout [Action]) {
        guard let mustReach else { return }
        let index = min(self.verified, self.durable)
        guard let term = self.log.term(at: index),
            LogPoint(index: index, term: term).isAtLeastAsUpToDate(as: mustReach)
        else { return }
        actions.append(.reached(.logWholeAgain))
        self.mustReach = nil
        // What the disk has behind that is of nobody's log.
        let end = self.pendingWrite.entries.first?.index ?? self.log.last.next
        self.pendingWrite.truncateFrom = min(self.pendingWrite.truncateFrom ?? end, end)
        self.armElectionIfLeaderless(at: now)
    }
}
