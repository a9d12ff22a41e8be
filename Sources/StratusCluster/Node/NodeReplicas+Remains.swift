import StratusConsensus
package import StratusModel
import StratusStorage
import Synchronization

/// Removes what is left on this node's disk of what was erased: in files of partitions, and in the
/// log. See *After an erasure* in `Docs/internals/data-files.md`.
extension NodeReplicas {
    private static let remainsInterval = Duration.seconds(1)

    package struct RemainsFigures: Sendable, Equatable {
        /// Partitions whose files may hold what was erased.
        package var partitionCount = 0
        /// The log may hold it.
        package var isInLog = false
        /// When the oldest of these erasures was applied; nil: nothing is left.
        package var sinceMilliseconds: Int64?
        /// When nothing was left for the last time, after something was; nil: not since the start.
        package var clearedMilliseconds: Int64?
        /// Files made anew since the start.
        package var rebuiltCount: UInt64 = 0
    }

    /// The figures as of the last look, a second ago where something is left.
    package nonisolated var remainsFigures: RemainsFigures { self.remained.withLock { $0 } }

    /// What this node has to do, and how far its partitions are.
    package func nodeRemains() -> NodeRemains {
        self.lookForMarks(at: self.world.now)
        let figures = self.remainsFigures
        var remains = NodeRemains()
        // A partition that nobody has opened since the start may have a mark.
        remains.isComplete = self.hasOpenedAll && self.unopenable.isEmpty && self.fault == nil
        remains.partitionCount = figures.partitionCount
        remains.isInLog = figures.isInLog
        remains.sinceMilliseconds = figures.sinceMilliseconds ?? 0
        remains.clearedMilliseconds = figures.clearedMilliseconds ?? 0
        for group in self.host.allGroups {
            guard let replica = self.host.replica(of: group) else { continue }
            remains.positions.append(
                NodeRemains.Position(group: group, applied: replica.state.applied))
        }
        return remains
    }

    /// Groups in which no command has forgotten the outcomes from before an erasure, although their
    /// time is over: they name what was erased.
    ///
    /// That is up to the leader. But one that has its rows from a snapshot has no mark, and then
    /// this node asks it.
    package func groupsThatRemember() -> [GroupID] {
        let wall = self.world.wallMilliseconds
        return self.remains.rows.keys.sorted().filter { group in
            guard let replica = self.host.replica(of: group), self.isWell(group),
                let partition = self.members[group]?.partition, let mark = partition.erasure,
                mark.outcomesThrough > 0,
                let standing = try? partition.erasureStanding(), standing != .removing
            else { return false }
            let patience = replica.raft.role == .leader ? 0 : Remains.leaderPatience
            return mark.outcomesThrough + patience < wall
        }
    }

    /// An earlier process may have ended before its log had let go.
    func recallRemains() {
        do throws(StoreError) {
            self.remains.notedSince = try ErasureNote.read(in: self.world.files)
        } catch {
            // As if there were one: the log lets go of what it has.
            self.remains.notedSince = 0
        }
        guard !self.remains.isNothing else { return }
        self.remains.notedAt = self.world.now
        self.wake(at: self.world.now + Self.remainsInterval)
    }

    /// A partition may have got a mark: somebody has to look, even if nothing else happens.
    func noteErasure(of group: GroupID) {
        guard let mark = self.members[group]?.partition.erasure,
            self.remains.rows[group]?.index != mark.index
        else { return }
        self.wake(at: self.world.now + Self.remainsInterval)
    }

    /// One look, and what is due.
    func lookAtRemains(at now: MonotonicTime) {
        let next = self.remainsAskedAt + Self.remainsInterval
        guard now >= next else {
            if !self.remains.isNothing { self.wake(at: next) }
            return
        }
        self.remainsAskedAt = now
        self.lookForMarks(at: now)
        guard !self.remains.isNothing else { return }
        // Whether or not anybody asks meanwhile.
        self.wake(at: now + Self.remainsInterval)
        // Nothing is done before it is sure that a restart goes on with it.
        guard self.noteRemains() else { return }
        if self.remains.rows.isEmpty || self.remains.isLogOverdue(at: now) {
            self.expireLog(at: now)
        }
        if !self.remains.rows.isEmpty { self.rebuildNext(at: now) }
    }

    private func lookForMarks(at now: MonotonicTime) {
        var marked: [GroupID: LogIndex] = [:]
        var since = self.remains.notedSince
        for (group, member) in self.members {
            guard let mark = member.partition.erasure else { continue }
            marked[group] = mark.index
            since = min(since ?? .max, mark.sinceMilliseconds)
        }
        if marked.isEmpty, self.remains.isNothing { return }
        self.remains.see(marked, at: now)
        self.remained.withLock {
            $0.partitionCount = marked.count
            $0.isInLog = !self.remains.isNothing
            $0.sinceMilliseconds = since
        }
    }

    /// - Returns: whether the note is on the disk.
    private func noteRemains() -> Bool {
        if self.remains.notedSince != nil { return true }
        let since = self.remainsFigures.sinceMilliseconds ?? self.world.wallMilliseconds
        do throws(StoreError) { try ErasureNote.write(since, in: self.world.files) } catch {
            return false
        }
        self.remains.notedSince = since
        self.remains.notedAt = self.world.now
        return true
    }

    // MARK: Rows

    private func rebuildNext(at now: MonotonicTime) {
        // One at a time, and beside no other copy of a partition: each holds up checkpoints.
        let isBusy = self.host.allGroups.contains { group in
            guard let replica = self.host.replica(of: group) else { return false }
            return replica.isRebuilding || replica.isSpooling || replica.isInstalling
        }
        guard !isBusy, !self.log.isFull else { return }
        for group in self.remains.due(at: now) {
            guard let member = self.members[group], self.isWell(group), !member.isCheckpointing
            else { continue }
            do throws(StoreError) {
                // Jobs remove most of it, and outcomes are forgotten when their time is over. Both
                // are up to the leader, which may be another node.
                let isOver =
                    try member.partition.erasureStanding() == .over
                    && !self.isForgettingAwaited(member.partition)
                guard isOver || self.remains.isOverdue(group, at: now) else { continue }
            } catch {
                self.rebuildFailed(group, error)
                continue
            }
            var effects: [ReplicaHost.Effect] = []
            self.host.with(group, at: now, into: &effects) { replica, out in
                replica.rebuild(at: now, into: &out)
            }
            self.remains.rebuildBegun(group, at: now)
            self.carryOut(effects)
            if self.host.replica(of: group)?.isRebuilding == true { return }
        }
    }

    /// Outcomes may be gone from these rows without a command, and not from those of another replica.
    private func isForgettingAwaited(_ partition: any NodePartition) -> Bool {
        guard let through = partition.erasure?.outcomesThrough, through > 0 else { return false }
        return self.world.wallMilliseconds <= through + Remains.forgettingPatience
    }

    func fileRebuilt(_ group: GroupID) {
        self.remains.rebuilt(group, at: self.world.now)
        self.remained.withLock { $0.rebuiltCount += 1 }
    }

    func rebuildFailed(_ group: GroupID, _ error: StoreError) {
        self.remains.failed(group, at: self.world.now)
        if self.members[group]?.partition.hasFailedSync == true {
            return self.fence("the rows of \(group) cannot be written: \(error)")
        }
        if error.kind == .busy { return }
        self.setup.events.alarm(
            group, "its file cannot be made anew, and may hold what was erased: \(error)")
    }

    // MARK: The log

    private func expireLog(at now: MonotonicTime) {
        if self.remains.expiringSince == nil {
            self.remains.expiringSince = now
            self.log.expire()
        }
        if !self.log.hasExpired {
            self.freeOldestSegment(
                at: now, isExpiring: true,
                keepsForFollowers: !self.remains.isPatienceOver(at: now))
            self.log.advanceExpiry()
        }
        guard self.log.hasExpired else { return }
        let wall = self.world.wallMilliseconds
        let isLast = self.remains.rows.isEmpty
        do throws(StoreError) {
            if isLast {
                try ErasureNote.remove(in: self.world.files, log: self.log.directory)
            } else {
                // The log begins again with what was erased since.
                try ErasureNote.write(wall, in: self.world.files)
            }
        } catch { return }
        self.remains.notedSince = isLast ? nil : wall
        self.remains.notedAt = isLast ? nil : now
        self.remains.expiringSince = nil
        guard isLast else { return }
        self.remained.withLock {
            $0.isInLog = false
            $0.sinceMilliseconds = nil
            $0.clearedMilliseconds = wall
        }
    }
}
