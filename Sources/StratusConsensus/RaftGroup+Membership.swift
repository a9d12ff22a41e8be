import StratusCoding
import StratusModel

// Membership: joint consensus (thesis §4.3). A configuration is in force as soon as it is in the
// log, committed or not (§4.1), and rolled back with the entry if that is cut.
extension RaftGroup {
    mutating func proposeConfiguration(
        _ token: RequestToken, voters: [NodeID], learners: [NodeID], wallMilliseconds: Int64,
        at now: MonotonicTime, into actions: inout [Action]
    ) {
        if let refusal = self.refusalOfChange(voters: voters, learners: learners) {
            actions.append(.refused(token, refusal))
            return
        }
        let current = self.configuration
        let sortedVoters = voters.sorted()
        let sortedLearners = learners.sorted()
        let isStep = sortedVoters == current.voters || self.bugs.contains(.singleStepMembership)
        if sortedVoters.contains(where: { current.learners.contains($0) }) {
            actions.append(.reached(.learnerPromoted))
        }
        // Learners decide nothing, so a change of learners alone needs no joint step. In a joint
        // configuration the learners are those of the next one: some may still be old voters.
        let next =
            isStep
            ? Configuration(voters: sortedVoters, learners: sortedLearners)
            : Configuration(
                voters: current.voters, incoming: sortedVoters, learners: sortedLearners)
        let point = self.appendOwn(
            .configuration, payload: next.encoded(), wallMilliseconds: wallMilliseconds,
            into: &actions)
        actions.append(.accepted(token, at: point))
        self.replicateOwn(at: now, into: &actions)
    }

    private func refusalOfChange(voters: [NodeID], learners: [NodeID]) -> Refusal? {
        guard self.serves else { return .notLeader(self.servingLeader) }
        if let transfer = self.transfer { return .transferring(to: transfer.target) }
        let all = (voters + learners).sorted()
        let repeats = zip(all, all.dropFirst()).contains { $0 == $1 }
        guard !voters.isEmpty, !repeats else { return .badConfiguration }
        if self.bugs.contains(.changeBeforeOwnTermCommit) { return nil }
        // One change at a time, and none before an entry of the own term is committed: two leaders
        // could otherwise change from configurations that do not overlap.
        guard self.commit >= self.termStart, self.log.configurationIndex <= self.commit,
            !self.configuration.isJoint
        else { return .changing }
        return nil
    }

    /// Follows up on configurations that are now committed.
    mutating func membershipCommitted(at now: MonotonicTime, into actions: inout [Action]) {
        guard self.log.configurationIndex <= self.commit else { return }
        if self.configuration.isJoint {
            guard self.incomingHold(at: now, into: &actions) else { return }
            actions.append(.reached(.jointLeft))
            let joint = self.configuration
            let next = Configuration(voters: joint.incoming, learners: joint.learners)
            self.appendOwn(
                .configuration, payload: next.encoded(), wallMilliseconds: 0, into: &actions)
            self.replicateOwn(at: now, into: &actions)
        } else if !self.configuration.isVoter(self.node) {
            // §4.2.2: a leader that is no longer a voter leads until the change is committed.
            actions.append(.reached(.leaderRemoved))
            self.replicateAll(at: now, into: &actions)
            self.handOver(at: now, into: &actions)
        }
    }
}
