import StratusConsensus
package import StratusModel
package import StratusPlacement
import StratusStorage
import Synchronization

/// Carries out changes of the cluster's membership on a node's replicas.
extension NodeReplicas {
    /// The groups led here as the membership sees them, in the order of their numbers.
    package func observations() -> [GroupObservation] {
        self.fault == nil ? self.host.observations() : []
    }

    /// Opens replicas that nobody has asked for, so that their groups get a leader.
    package func wake(_ groups: [GroupID]) {
        guard self.fault == nil else { return }
        for group in groups {
            var effects: [ReplicaHost.Effect] = []
            _ = self.open(group, at: self.world.now, into: &effects)
            self.carryOut(effects)
        }
    }

    /// Changes the configuration of a group led here, if the latest one still stands at `index`.
    /// - Returns: whether it was proposed. Whether it was committed shows in the next observation.
    package func configure(
        _ group: GroupID, at index: LogIndex, voters: [NodeID], learners: [NodeID]
    ) -> Bool {
        guard self.fault == nil else { return false }
        let token = self.nextToken()
        var effects: [ReplicaHost.Effect] = []
        let isProposed = self.host.configure(
            group, at: index, voters: voters, learners: learners, as: token,
            wallMilliseconds: self.world.wallMilliseconds, at: self.world.now, into: &effects)
        self.carryOut(effects)
        return isProposed
    }

    /// Hands the leadership of a group over, if it is led here.
    package func transfer(_ group: GroupID, to node: NodeID) -> Bool {
        guard self.fault == nil else { return false }
        var effects: [ReplicaHost.Effect] = []
        let isLed = self.host.transfer(group, to: node, at: self.world.now, into: &effects)
        self.carryOut(effects)
        return isLed
    }

    /// Sets the nodes to send heartbeats to, and whose silence to notice.
    package func setPeers(_ nodes: [NodeID]) {
        var effects: [ReplicaHost.Effect] = []
        self.host.setPeers(nodes, at: self.world.now, into: &effects)
        self.reserve.keep(only: nodes + [self.node])
        self.carryOut(effects)
    }

    // MARK: Deleting

    /// Stops the replicas that are not to be kept, and forgets their log. ``discard(_:)`` deletes
    /// their files once that is on stable storage: a file without its log could be taken for a
    /// loss.
    /// - Returns: groups to discard. One that is being checkpointed is left for the next call.
    package func retire(keeping keeps: @Sendable (GroupID) -> Bool) -> [GroupID] {
        guard self.fault == nil else { return [] }
        var retired: [GroupID] = []
        for group in Set(self.host.allGroups + self.log.groupIDs).sorted() where !keeps(group) {
            var isThere = self.log.last(of: group).index > .zero
            if let member = self.members[group] {
                isThere = true
                guard !member.isCheckpointing else { continue }
                self.host.remove(group)
                self.members[group] = nil
                self.kept.remove(group)
                self.told.withLock { $0[group] = nil }
                self.leaders.withLock { $0[group] = nil }
                self.answerWaiting(for: group)
                // A partition that cannot be closed is deleted all the same.
                _ = try? member.partition.close()
            }
            self.unopenable[group] = nil
            self.log.forget(group)
            if isThere { retired.append(group) }
        }
        return retired
    }

    /// A replica that goes did not lead; what waits for it may have been committed by others.
    func answerWaiting(for group: GroupID) {
        for token in self.waiting.tokens(where: { $0.group == group }) {
            let isCommand = self.waiting[token]?.isCommand == true
            self.answer(token, isCommand ? .outcomeUnknown : .notLeader(nil))
        }
        self.carryOut([])
    }

    /// Removes the files of retired groups. Called again after a crash, it finishes what was begun.
    package nonisolated func discard(_ groups: [GroupID]) async throws(StoreError) {
        let files = self.world.files
        var waits = 0
        while groups.contains(where: { self.log.hasUnsyncedCut(of: $0) }) {
            waits += 1
            guard waits < 2_000, self.fault == nil else {
                throw StoreError(.busy, "the log has not yet written that the replicas are gone")
            }
            await self.setup.sleep(self.world.now + .milliseconds(5))
        }
        let result = await Task(executorPreference: self.checkpointer) {
            () -> Result<Void, StoreError> in
            do throws(StoreError) {
                return .success(
                    try PartitionRemoval.remove(groups, in: "partitions", from: files))
            } catch { return .failure(error) }
        }.value
        try result.get()
        for group in groups { self.setup.bodies?.removed(group) }
    }
}
