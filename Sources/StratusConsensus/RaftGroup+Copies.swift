import StratusModel

// Bytes that are outside the log and that entries name: an entry that names some is appended only
// where a majority of every voter set holds them.
//
// It is checked when the entry is appended, not when it is applied. Whoever commits the entry has
// the same configurations before it (log matching), so the answer is the same everywhere.
extension RaftGroup {
    func isHeld(by holdings: [CopyHolding]) -> Bool {
        let nodes = holdings.filter { holding in
            self.log.isMember(holding.node, since: holding.at)
                || self.bugs.contains(.oldStoringCounts)
        }.map(\.node)
        if self.bugs.contains(.pinWithoutMajority) { return true }
        if self.bugs.contains(.pinAskedOfOneVoterSet) {
            return Configuration(voters: self.configuration.voters).isQuorum(nodes)
        }
        return self.configuration.isQuorum(nodes)
    }

    // MARK: The gate of joint configurations

    /// The gate of this reign, if it waits.
    var openGate: Gate? {
        guard let gate = self.gate, self.role == .leader, gate.term == self.term,
            self.configuration.isJoint, gate.index == self.log.configurationIndex
        else { return nil }
        return gate
    }

    /// Whether a majority of the incoming voters has every copy that was named before the joint
    /// configuration. What is named behind it is asked of both majorities when it is appended, so
    /// the incoming voters may then decide alone.
    ///
    /// Where nobody knows yet, they are asked. Nothing of it is on a disk: a new leader asks anew.
    mutating func incomingHold(at now: MonotonicTime, into actions: inout [Action]) -> Bool {
        guard self.awaitsCopies, !self.bugs.contains(.jointLeftWithoutCopies) else {
            return true
        }
        if self.openGate == nil {
            self.gate = Gate(
                term: self.term, index: self.log.configurationIndex, holders: [], resendAt: now)
            self.askHolders(at: now, into: &actions)
        }
        guard let gate = self.openGate else { return false }
        var holders = gate.holders
        if self.copiesHeld >= gate.index { holders.append(self.node) }
        guard Configuration(voters: self.configuration.incoming).isQuorum(holders) else {
            return false
        }
        self.gate = nil
        return true
    }

    /// Asks the incoming voters that have not said yet that they have everything.
    mutating func askHolders(at now: MonotonicTime, into actions: inout [Action]) {
        guard let gate = self.openGate else { return }
        self.gate?.resendAt = now + self.tuning.resendDelay
        for node in self.configuration.incoming
        where node != self.node && !gate.holders.contains(node) {
            self.say(.heldAsk, to: node, into: &actions)
        }
    }

    mutating func peerHolds(
        _ node: NodeID, through index: LogIndex, at now: MonotonicTime,
        into actions: inout [Action]
    ) {
        guard let gate = self.openGate, self.configuration.incoming.contains(node) else { return }
        guard index >= gate.index else {
            actions.append(.reached(.gateWaits))
            return
        }
        if !gate.holders.contains(node) { self.gate?.holders.append(node) }
        self.membershipCommitted(at: now, into: &actions)
    }
}
