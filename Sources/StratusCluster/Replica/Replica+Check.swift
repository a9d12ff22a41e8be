import StratusConsensus
package import StratusModel
import StratusStorage

/// Rows that are looked at as a whole: their digest is added up, a slice a turn, and compared with
/// the one that was carried forward from write to write.
///
/// A page that the disk has lost or put elsewhere is old and sound: no checksum shows it, and the
/// digests that replicas tell each other show it only when one of its rows is written over. The sum
/// does.
extension Replica {
    package var isChecking: Bool { self.checking != nil }

    /// The text with which `doctor` reports rows that are not what was applied.
    var rot: String? {
        if let index = self.rottenAlone {
            return
                "its rows are not what was applied to them through entry \(index), and no other voter has "
                + "any: it goes on with these. Restore them from a backup"
        }
        guard let rottenAt else { return nil }
        return
            "its rows are not what was applied to them through entry \(rottenAt): the disk has lost a write. "
            + "It does not lead, and asks for a snapshot"
    }

    /// Begins to add up the digest of the rows, if nothing else works on them.
    ///
    /// - Parameter isPaced: whether it may take long: nobody waits for it.
    /// - Returns: false if it was not begun. A snapshot that is being made looks at them as well.
    @discardableResult
    package func checkRows(
        isPaced: Bool = false, at now: MonotonicTime, into effects: inout [Effect]
    ) -> Bool {
        guard self.checking == nil else {
            if !isPaced { self.checking?.isPaced = false }
            return true
        }
        guard !self.isSpooling, !self.isInstalling, !self.isRebuilding, self.isStateWell,
            !self.hasWrongRows, self.rottenAlone == nil, !self.raft.lacksState
        else { return false }
        do throws(StoreError) {
            self.checking = (try self.state.check(), isPaced)
        } catch {
            effects.append(.rowsChecked(error))
            return false
        }
        self.checkOpensAt = nil
        self.requestTurn(at: now, into: &effects)
        return true
    }

    func advance(
        _ work: any ViewWork, isPaced: Bool, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        do throws(StoreError) {
            if let size = try work.advance() {
                let rate = self.pace?.checkRate.raw ?? 0
                self.checkOpensAt =
                    isPaced && rate > 0
                    ? now + .nanoseconds(Int64(size.raw) * 1_000_000_000 / Int64(rate)) : now
                return
            }
            self.checking = nil
            self.areRowsProven = true
            effects.append(.reached(.rowsChecked))
            effects.append(.rowsChecked(nil))
        } catch {
            self.checking = nil
            guard error.kind == .corrupt else { return effects.append(.rowsChecked(error)) }
            self.foundRotten(error, at: now, into: &effects)
        }
    }

    /// The own rows are damaged: from here on nothing is answered from them. They are replaced by a
    /// snapshot from a leader, as if they were lost. Where no other voter has rows it goes on with
    /// them.
    func foundRotten(
        _ error: StoreError, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        guard !self.hasWrongRows, self.rottenAlone == nil else { return }
        effects.append(.reached(.rowsFoundRotten))
        self.mark(.rotten, into: &effects)
        if self.raft.isAlone {
            self.rottenAlone = self.state.applied
        } else {
            self.rottenAt = self.state.applied
        }
        effects.append(.rotten(at: self.state.applied))
        guard self.rottenAt != nil else { return }
        self.refuseAll(into: &effects)
        self.run(.rowsRotten, at: now, into: &effects)
    }

    func keepRows() {
        self.rottenAlone = self.rottenAt
        self.rottenAt = nil
    }

    /// So that a restart does not forget it. Where the disk takes nothing it is found again.
    func mark(_ wrong: WrongRows, into effects: inout [Effect]) {
        do throws(StoreError) { try self.state.mark(wrong) } catch {
            effects.append(.failed(error))
        }
    }

    /// What an earlier process found about these rows still holds.
    func recallWrongRows(at now: MonotonicTime, into effects: inout [Effect]) {
        guard let wrong = self.state.wrongRows, !self.raft.lacksState else { return }
        switch wrong {
        case .rotten where self.raft.isAlone: self.rottenAlone = self.state.applied
        case .rotten:
            self.rottenAt = self.state.applied
            self.run(.rowsRotten, at: now, into: &effects)
        case .differ where self.raft.isAlone: break
        case .differ:
            self.divergedAt = self.state.applied
            self.run(.diverged, at: now, into: &effects)
        }
    }

    /// A snapshot that is not what it says it is: the rows of its sender may be wrong.
    func refuse(_ identity: SnapshotIdentity, _ error: StoreError, into effects: inout [Effect]) {
        guard let leader = self.raft.leader, leader != self.node else { return }
        self.snapshotProblem =
            "the snapshot of \(leader) at entry \(identity.index) was refused: its rows are not those that it "
            + "promises. \(leader) checks its own"
        self.say(.snapshotUntrue(index: identity.index), to: leader, into: &effects)
    }
}
