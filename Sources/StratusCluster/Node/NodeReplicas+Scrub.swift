import StratusConsensus
package import StratusModel
import StratusStorage
import Synchronization

/// Reads cold data back, and has rotten data restored from peers.
///
/// A round goes through all groups. In each it reads the entries in the log, then the pages of the
/// rows, and then all rows, whose digest is added up (see ``Replica/checkRows(isPaced:at:into:)``):
/// an old page is sound. Rows with another digest are replaced where they are. Any other damaged
/// replica hands its leadership over. While another node leads, it is opened anew without the
/// damaged part, which it then gets back like any replica that has lost something (see
/// `Docs/internals/consensus.md`). Alone, or while nobody leads, it stays as it is: its sound part
/// is all there is.
extension NodeReplicas {
    /// The results so far.
    package struct ScrubFigures: Sendable, Equatable {
        package var readSize: UInt64 = 0
        package var roundCount: UInt64 = 0
        package var damageCount: UInt64 = 0
        package var repairCount: UInt64 = 0
        /// Replicas whose rows were found to add up to what was applied.
        package var provenCount: UInt64 = 0
        /// Checks of rows that came to nothing: the rows grew too fast, or a snapshot came.
        package var unprovenCount: UInt64 = 0
    }

    struct Scrub {
        /// Still to come in this round, last first.
        var groups: [GroupID] = []
        var isRoundOver = true
        /// The next position of the log in the current group; nil while its rows are read.
        var current: (group: GroupID, logFrom: LogIndex?)?
        var rows: PartitionScrub?
        /// Whether the digest of the current group's rows is being added up.
        var isChecking = false
        /// Found, and waiting until somebody else leads.
        var damaged: [GroupID: Damage] = [:]
        /// Since when a replica hands its leadership over, so that it can be repaired.
        var handingOver: [GroupID: MonotonicTime] = [:]
        /// Closed, and waiting until the log has synced what they submitted.
        var closed: [GroupID: Damage] = [:]

        var mustMend: Bool { !self.damaged.isEmpty || !self.closed.isEmpty }
    }

    /// The longest time for which nobody opens a group that was closed for repair.
    private static let mendingTime = Duration.seconds(10)
    /// The time for a hand-over. If no other replica can lead, the damaged one leads again, and is
    /// repaired later.
    private static let handoverTime = Duration.seconds(5)

    enum Damage: Equatable {
        case entry(LogIndex)
        case rows
    }

    private enum Found: Sendable {
        case more(LogIndex?)
        case end
        case entry(LogIndex)
        case page(UInt32)
        case failure(StoreError)
    }

    package nonisolated var scrubFigures: ScrubFigures { self.scrubbed.withLock { $0 } }

    /// Reads about so many bytes back. Call it again and again, as fast as the disk may be read.
    ///
    /// - Parameter rate: of the rows that are added up, in a second; 0: as fast as can be.
    /// - Returns: false if a round is over and nothing is left to repair.
    package func scrub(_ size: ByteCount, rate: ByteCount = ByteCount(0)) async -> Bool {
        self.snapshotPace.checkRate = rate
        guard self.fault == nil, !self.isStopped else { return false }
        self.mend()
        if self.scrub.isRoundOver {
            if self.scrub.mustMend { return true }
            self.scrub.isRoundOver = false
            self.scrub.groups = self.host.allGroups.reversed()
        }
        guard let (group, logFrom) = self.scrub.current else { return self.scrubNextGroup() }
        if self.scrub.isChecking {
            return self.host.replica(of: group)?.isChecking == true || self.scrubNextGroup()
        }
        if logFrom == nil, self.scrub.rows == nil {
            guard let member = self.members[group], self.isWell(group) else {
                return self.scrubNextGroup()
            }
            do throws(StoreError) {
                guard let rows = try member.partition.makeScrub() else {
                    return self.scrubNextGroup()
                }
                self.scrub.rows = rows
            } catch {
                self.note(error, of: group)
                return self.scrubNextGroup()
            }
        }
        // The first step of the rows is a checkpoint: no other meanwhile.
        if self.members[group]?.isCheckpointing == true { return true }
        self.members[group]?.isCheckpointing = true
        let found = await self.look(at: group, logFrom, size)
        self.members[group]?.isCheckpointing = false
        self.scrubbed.withLock { $0.readSize += UInt64(size.raw) }
        switch found {
        case .more(let next):
            self.scrub.current = (group, next)
            if let rows = self.scrub.rows,
                self.members[group]?.partition.isCurrent(rows.checkpointer) != true
            {
                return self.scrubNextGroup()
            }
            return true
        case .end:
            self.checkRows(of: group)
            return true
        case .failure(let error): self.note(error, of: group)
        case .entry(let index):
            self.note(.entry(index), of: group, "entry \(index) of the log is damaged")
        case .page(let page):
            // A result about a file that was replaced meanwhile is ignored.
            if let rows = self.scrub.rows,
                self.members[group]?.partition.isCurrent(rows.checkpointer) == true
            {
                self.note(.rows, of: group, "page \(page) of the rows is damaged")
            }
        }
        return self.scrubNextGroup()
    }

    private func checkRows(of group: GroupID) {
        self.scrub.rows = nil
        self.scrub.isChecking = true
        var effects: [ReplicaHost.Effect] = []
        self.host.with(group, at: self.world.now, into: &effects) { replica, out in
            replica.checkRows(isPaced: true, at: self.world.now, into: &out)
        }
        self.carryOut(effects)
    }

    func rowsChecked(_ group: GroupID, _ error: StoreError?) {
        self.scrubbed.withLock {
            if error == nil { $0.provenCount += 1 } else { $0.unprovenCount += 1 }
        }
        guard let error, error.kind != .busy else { return }
        self.setup.events.alarm(group, "its rows cannot be checked: \(error)")
    }

    private func look(at group: GroupID, _ logFrom: LogIndex?, _ size: ByteCount) async -> Found {
        let log = self.log
        // Used by that one task alone.
        nonisolated(unsafe) let rows = self.scrub.rows
        return await Task(executorPreference: self.checkpointer) { () -> Found in
            if let logFrom {
                do throws(LogError) {
                    let (next, damaged) = try log.scrub(group, from: logFrom, limit: size)
                    return damaged.map { .entry($0) } ?? .more(next)
                } catch { return .failure(StoreError(.io, error.text)) }
            }
            do throws(StoreError) {
                switch try rows?.next(size) {
                case .more: return .more(nil)
                case .whole, .busy, nil: return .end
                case .damaged(let page): return .page(page)
                }
            } catch { return .failure(error) }
        }.value
    }

    /// - Returns: false if no group is left in this round and nothing has to be repaired.
    private func scrubNextGroup() -> Bool {
        self.scrub.rows = nil
        self.scrub.isChecking = false
        self.scrub.current = nil
        if let group = self.scrub.groups.popLast() {
            self.scrub.current = (group, .zero)
            return true
        }
        self.scrub.isRoundOver = true
        self.scrubbed.withLock { $0.roundCount += 1 }
        return self.scrub.mustMend
    }

    private func note(_ error: StoreError, of group: GroupID) {
        if error.kind == .corrupt {
            self.note(.rows, of: group, "the rows are damaged: \(error)")
        } else {
            self.setup.events.alarm(group, "cannot be read back: \(error)")
        }
    }

    private func note(_ damage: Damage, of group: GroupID, _ what: String) {
        guard self.scrub.damaged[group] == nil else { return }
        // Alone nobody else has it: the next round says so again.
        if self.hasOthers(group) { self.scrub.damaged[group] = damage }
        self.scrubbed.withLock { $0.damageCount += 1 }
        self.setup.events.alarm(group, what)
    }

    private func hasOthers(_ group: GroupID) -> Bool {
        let voters = self.host.replica(of: group)?.raft.configuration.voters ?? []
        return voters.contains { $0 != self.setup.node }
    }

    // MARK: Mending

    private func mend() {
        for group in self.scrub.damaged.keys.sorted() {
            guard let damage = self.scrub.damaged[group] else { continue }
            guard let member = self.members[group], let raft = self.host.replica(of: group)?.raft
            else {
                self.scrub.damaged[group] = nil
                continue
            }
            guard self.hasOthers(group) else {
                self.scrub.damaged[group] = nil
                continue
            }
            guard !member.isCheckpointing else { continue }
            var effects: [ReplicaHost.Effect] = []
            guard raft.role != .leader else {
                // A leader must have everything that it may be asked for, so this one hands over
                // first.
                self.scrub.handingOver[group] = self.world.now
                self.host.with(group, at: self.world.now, into: &effects) { replica, out in
                    replica.handle(.inhibited(.scrub), at: self.world.now, into: &out)
                }
                self.carryOut(effects)
                continue
            }
            guard raft.leader != nil else {
                if let since = self.scrub.handingOver[group],
                    self.world.now >= since + Self.handoverTime
                {
                    self.scrub.handingOver[group] = nil
                    // The next round finds it again.
                    self.scrub.damaged[group] = nil
                    self.host.with(group, at: self.world.now, into: &effects) { replica, out in
                        replica.handle(.permitted(.scrub), at: self.world.now, into: &out)
                    }
                    self.carryOut(effects)
                }
                continue
            }
            self.scrub.handingOver[group] = nil
            self.scrub.damaged[group] = nil
            self.scrub.closed[group] = damage
            self.close(group)
        }
        // The entries read back must be on disk, because a replica takes them for that.
        for group in self.scrub.closed.keys.sorted() where self.log.isSettled(group) {
            guard let damage = self.scrub.closed.removeValue(forKey: group) else { continue }
            self.reopen(group, without: damage)
        }
    }

    private func reopen(_ group: GroupID, without damage: Damage) {
        guard self.members[group] == nil else {
            // The log took longer than anybody waits, and it was opened as it is: once more.
            self.scrub.damaged[group] = damage
            return
        }
        switch damage {
        case .entry(let index): self.log.giveUp(group, index)
        case .rows:
            do throws(StoreError) {
                try PartitionRemoval.setAside(group, in: "partitions", from: self.world.files)
            } catch {
                self.setup.events.alarm(group, "damaged rows cannot be set aside: \(error)")
            }
        }
        self.unopenable[group] = nil
        var effects: [ReplicaHost.Effect] = []
        if self.open(group, at: self.world.now, into: &effects) == nil {
            self.scrubbed.withLock { $0.repairCount += 1 }
        }
        self.carryOut(effects)
    }

    /// Forgets the replica in memory. Others may have committed the commands that wait for it.
    private func close(_ group: GroupID) {
        if self.scrub.current?.group == group {
            self.scrub.rows = nil
            self.scrub.isChecking = false
            self.scrub.current = nil
        }
        self.host.remove(group)
        self.members[group] = nil
        self.kept.remove(group)
        self.unopenable[group] = Unopenable(
            until: self.world.now + Self.mendingTime, why: "it is being repaired", isMending: true)
        self.leaders.withLock { $0[group] = nil }
        self.answerWaiting(for: group)
    }
}
