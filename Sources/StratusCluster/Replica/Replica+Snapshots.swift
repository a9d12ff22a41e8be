import StratusConsensus
import StratusModel
import StratusStorage

/// Snapshots that leave and arrive: spooled and installed a slice at a time, each in a turn of its
/// own.
extension Replica {
    /// The last entry of a damaged log, as long as it is not whole again.
    var owed: (LogIndex, Term)? { self.raft.mustReach.map { ($0.index, $0.term) } }

    func sendSnapshot(
        to node: NodeID, term: Term, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        do throws(StoreError) {
            guard self.streams.isSending(to: node) else {
                return try self.spool(for: node, at: now, into: &effects)
            }
            if let chunk = try self.streams.chunk(for: node) {
                effects.append(.send(ConsensusMessage(term: term, .snapshotChunk(chunk)), to: node))
            }
        } catch {
            self.streams.stop(to: node)
            self.spoolingPause.fail(at: now)
            effects.append(.failed(error))
        }
    }

    /// Whether the disk has room for so much beside its reserve.
    func hasRoom(for size: ByteCount) -> Bool {
        guard let room = self.pace?.room?() else { return true }
        return size <= room
    }

    private func spool(for node: NodeID, at now: MonotonicTime, into effects: inout [Effect])
        throws(StoreError)
    {
        // One after the other, on the whole node: each holds up the checkpoints of its rows.
        // Consensus asks again, also while this one is spooled.
        guard self.spooling == nil, self.pace?.spooling == nil, self.rebuilding == nil,
            self.isStateWell, !self.hasWrongRows, self.rottenAlone == nil,
            self.spoolingPause.isOver(at: now)
        else { return }
        // What is in memory is part of it, and the digest is exact then.
        try self.state.commit()
        guard
            let identity = self.raft.snapshotIdentity(
                at: self.state.applied, time: self.appliedTime, digest: self.state.digest)
        else { return }
        // The copy stands beside the rows until it is sent: not at the price of what everybody else
        // needs.
        let size = try self.state.snapshotSize
        guard self.hasRoom(for: size) else {
            self.spoolingPause.fail(at: now)
            self.snapshotProblem =
                "a snapshot for \(node) needs \(size.raw >> 20) MiB on this disk, and there is less beside 'storage.reserve'"
            return effects.append(.snapshotLacksRoom)
        }
        self.snapshotProblem = nil
        let work = try self.state.snapshot()
        self.pace?.spooling = work
        self.spooling = (node, identity, work)
        self.requestTurn(at: now, into: &effects)
    }

    /// A snapshot is begun, and not all of it is spooled.
    package var isSpooling: Bool { self.spooling != nil }
    /// One has arrived, and not all of it is installed.
    package var isInstalling: Bool { self.installation != nil }

    func requestTurn(at now: MonotonicTime, into effects: inout [Effect]) {
        self.turnAt = nil
        guard self.isSpooling || self.isInstalling || self.isRebuilding || self.isChecking
        else { return }
        self.turnAt = max(now, self.nextTurn ?? now)
        self.requestWake(into: &effects)
    }

    /// Nothing is done before; nil: at once.
    private var nextTurn: MonotonicTime? {
        if self.spooling?.work.isUrgent == true || self.rebuilding?.isUrgent == true { return nil }
        // A check waits for nothing else, and nothing else for it.
        if self.isChecking, !self.isInstalling, !self.isSpooling, !self.isRebuilding {
            return self.checking?.work.isUrgent == true ? nil : self.checkOpensAt
        }
        let pauseEnd = self.isInstalling ? self.installationPause.endsAt : nil
        return [self.pace?.opensAt, pauseEnd].compactMap(\.self).max()
    }

    /// One slice, if no other replica of the node was first.
    func takeTurn(at now: MonotonicTime, into effects: inout [Effect]) {
        defer { self.requestTurn(at: now, into: &effects) }
        if self.spooling?.work.isUrgent == true {
            effects.append(.reached(.spoolingHurried))
        } else if let time = self.nextTurn, now < time {
            return
        }
        if let installation {
            self.advance(installation.identity, installation.work, at: now, into: &effects)
        } else if let spooling {
            self.advance(spooling.work, for: spooling.peer, at: now, into: &effects)
        } else if let rebuilding {
            self.advance(rebuilding, at: now, into: &effects)
        } else if let checking {
            self.advance(checking.work, isPaced: checking.isPaced, at: now, into: &effects)
        }
    }

    private func advance(
        _ work: any SnapshotSpooling, for peer: NodeID, at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        do throws(StoreError) {
            if let size = try work.advance() {
                // The others do not wait for what could not.
                if !work.isUrgent { self.pace?.spend(size, at: now) }
                effects.append(.reached(.spooledInSlices))
                return
            }
            guard let identity = self.spooling?.identity else { return }
            self.spooling = nil
            self.spoolingPause = SnapshotPause()
            try self.streams.open(to: peer, identity, from: work.source())
            self.pace?.noteSpooled()
        } catch {
            // Consensus asks again.
            self.spooling = nil
            self.spoolingPause.fail(at: now)
            if error.kind == .corrupt { return self.foundRotten(error, at: now, into: &effects) }
            effects.append(.failed(error))
            return
        }
        self.sendSnapshot(to: peer, term: self.raft.term, at: now, into: &effects)
    }

    func receive(
        _ chunk: SnapshotChunk, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        // Without a word: an answer would have the leader make the whole snapshot again.
        guard self.arrivalPause.isOver(at: now) else { return }
        guard self.hasRoom(for: ByteCount(chunk.bytes.count)) else {
            self.streams.dropArrival()
            self.arrivalPause.fail(at: now)
            self.snapshotProblem =
                "a snapshot cannot be received: this disk is down to 'storage.reserve'"
            return effects.append(.snapshotLacksRoom)
        }
        let mixes = self.bugs.contains(.mixedSnapshotStreams)
        let next: UInt32
        do throws(StoreError) {
            next = try self.streams.receive(
                chunk, in: self.raft.term, of: self.state, mixes: mixes)
        } catch {
            // The stream begins again, when there is room.
            self.arrivalPause.fail(at: now)
            return effects.append(.failed(error))
        }
        if self.streams.isComplete {
            self.arrivalPause = SnapshotPause()
            self.snapshotProblem = nil
        }
        self.pendingEvents.append(.snapshotProgressed(chunk.identity, next: next))
        if self.streams.isComplete { self.pendingEvents.append(.snapshotArrived(chunk.identity)) }
    }

    func install(
        _ identity: SnapshotIdentity, at now: MonotonicTime, into effects: inout [Effect]
    ) {
        // What the snapshot brings is in a new file too.
        self.rebuilding = nil
        do throws(StoreError) {
            guard let source = try self.streams.takeComplete(identity) else {
                self.pendingEvents.append(.snapshotRefused(identity))
                return
            }
            self.installation = (identity, try self.state.install(identity, from: source))
            self.requestTurn(at: now, into: &effects)
        } catch {
            self.pendingEvents.append(.snapshotRefused(identity))
            effects.append(.failed(error))
        }
    }

    private func advance(
        _ identity: SnapshotIdentity, _ work: any SnapshotWork, at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        do throws(StoreError) {
            if let size = try work.advance() {
                self.pace?.spend(size, at: now)
                effects.append(.reached(.installedInSlices))
                return
            }
        } catch {
            self.installation = nil
            self.installationPause.fail(at: now)
            effects.append(.failed(error))
            if error.kind == .corrupt { self.refuse(identity, error, into: &effects) }
            self.mustReset = true
            do throws(StoreError) { try self.resetState(into: &effects) } catch {
                self.retryAt = now + self.tuning.retryDelay
                self.requestWake(into: &effects)
            }
            self.run(.snapshotRefused(identity), at: now, into: &effects)
            return
        }
        self.installation = nil
        self.pace?.noteInstalled()
        self.installationPause = SnapshotPause()
        // The state first: if the process ends here, the log is restarted when it comes back.
        if !self.raft.keepsLog(after: identity) {
            self.log.restart(self.group, after: identity, owing: self.owed)
        }
        self.ordered = identity.index
        self.released = identity.index
        self.appliedTime = max(self.appliedTime, identity.time)
        self.retryAt = nil
        self.mustReset = false
        for item in self.waiting where item.point.index <= identity.index {
            effects.append(.answered(item.request, .failure(.outcomeUnknown)))
        }
        self.waiting.removeAll { $0.point.index <= identity.index }
        self.rowsReplaced(at: identity.index, into: &effects)
        effects.append(.applied(through: identity.index))
        self.run(.snapshotInstalled(identity), at: now, into: &effects)
    }
}
