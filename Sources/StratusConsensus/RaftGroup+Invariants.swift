import StratusModel

// What must hold after every event. A replica that breaks one of these has a bug and may already
// have told others something wrong: it stops before it carries out what the event asked for.
extension RaftGroup {
    /// What later events may not take back.
    struct Before {
        var term: Term
        var vote: NodeID?
        var commit: LogIndex

        init(_ group: RaftGroup) {
            self.term = group.term
            self.vote = group.hardState.vote
            self.commit = group.commit
        }
    }

    /// The sentence of the first invariant that does not hold; nil if all do.
    func broken(since before: Before) -> StaticString? {
        if self.term < before.term { return "a term falls" }
        if self.term == before.term, before.vote != nil, self.hardState.vote != before.vote {
            return "a vote is given twice in one term"
        }
        if self.durableHardState.term > self.term { return "a term is durable that nobody entered" }
        if self.commit < before.commit { return "the commit index falls" }
        if self.commit > self.log.last { return "an entry is committed that is not here" }
        if self.durable > self.log.last { return "an entry is durable that is not here" }
        if self.verified > self.log.last { return "an entry agrees that is not here" }
        if self.handed > self.commit { return "an entry is applied that is not committed" }
        if self.handed > self.durable { return "an entry is applied that is not durable" }
        if self.role == .leader {
            if self.leader != self.node { return "a leader follows another node" }
            if self.termStart == .zero || self.termStart > self.log.last {
                return "a leader has no entry of its term"
            }
        }
        return self.brokenPeer
    }

    private var brokenPeer: StaticString? {
        for peer in self.peers {
            if peer.match >= peer.next { return "a peer is sent what it has on stable storage" }
            if peer.match > peer.received { return "a peer has synced what it has not received" }
            if peer.received > self.log.last { return "a peer has what the leader never had" }
        }
        return nil
    }

    /// Stops the process if an invariant does not hold. A planted bug breaks them on purpose: the
    /// simulator finds it by what clients see.
    func requireInvariants(since before: Before) {
        guard self.bugs.isEmpty, let broken = self.broken(since: before) else { return }
        preconditionFailure("\(broken), in group \(self.group) of node \(self.node): \(self)")
    }
}
