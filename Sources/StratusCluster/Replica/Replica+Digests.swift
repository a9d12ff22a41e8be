import StratusConsensus
import StratusModel
import StratusStorage

/// Digests of the rows, told to the other replicas now and then and compared with theirs.
extension Replica {
    /// Runs of entries end there, so that every replica knows its digest at the same index.
    var nextComparison: LogIndex {
        let interval = self.tuning.digestInterval
        guard interval > 0 else { return LogIndex(.max) }
        return LogIndex((self.state.applied.raw / interval + 1) * interval)
    }

    /// Whether nothing may be answered from the rows, which a snapshot is to replace.
    var hasWrongRows: Bool { self.divergedAt != nil || self.rottenAt != nil }

    /// The text with which `doctor` reports rows that differ.
    var divergence: String? {
        if let divergedAt {
            return
                "its rows differ from those of most replicas at entry \(divergedAt): it neither votes nor leads, and "
                + "asks for a snapshot"
        }
        guard !self.comparison.undecided.isEmpty else { return nil }
        let nodes = self.comparison.undecided.map(\.description).joined(separator: ", ")
        return
            "its rows and those of \(nodes) differ, and no majority of the replicas agrees: "
            + (self.areRowsProven
                ? "these are what was applied here" : "each checks its own")
    }

    /// Keeps the digest of the state when it reaches an index at which digests are compared.
    func noteDigest(at now: MonotonicTime) {
        let index = self.state.applied
        let interval = self.tuning.digestInterval
        guard interval > 0, index > .zero, index.raw % interval == 0 else { return }
        self.keepDigest(at: now)
    }

    private func keepDigest(at now: MonotonicTime) {
        self.toldDigest = (self.state.applied, now)
        self.state.noteDigest()
    }

    /// Tells the other replicas the digests that a flush has made exact.
    func tellDigests(at now: MonotonicTime, into effects: inout [Effect]) {
        let configuration = self.raft.configuration
        for noted in self.state.takeDigests() {
            for member in configuration.members where member != self.node {
                self.say(.digest(index: noted.index, noted.digest), to: member, into: &effects)
            }
            self.act(
                on: self.comparison.applied(
                    noted.index, noted.digest, as: self.node, in: configuration), at: now,
                into: &effects)
        }
    }

    /// What is said so belongs to no term, but no message may name one that is not on disk.
    func say(_ body: ConsensusMessage.Body, to node: NodeID, into effects: inout [Effect]) {
        let term = self.raft.durableHardState.term
        guard term > .zero else { return }
        effects.append(.send(ConsensusMessage(term: term, body), to: node))
    }

    /// Entries were applied: where few come, digests are told by time.
    func armDigest(at now: MonotonicTime, into effects: inout [Effect]) {
        guard let pause = self.tuning.digestPause, self.tuning.digestInterval > 0,
            self.tellDigestAt == nil, self.state.applied > self.toldDigest?.index ?? .zero
        else { return }
        let next = (self.toldDigest?.at).map { $0 + pause } ?? now
        self.appliedAtRest = self.state.applied
        self.tellDigestAt = max(next, now + Self.restTime)
        self.requestWake(into: &effects)
    }

    /// The others are told once all is likely to be applied everywhere: digests of different
    /// entries cannot be compared.
    private static let restTime = Duration.seconds(1)

    func tellDigestAtRest(at now: MonotonicTime, into effects: inout [Effect]) {
        self.tellDigestAt = nil
        guard !self.hasWrongRows, self.isStateWell else { return }
        let isAtRest =
            self.state.applied == self.appliedAtRest && self.state.applied == self.ordered
        if isAtRest, self.state.applied > self.toldDigest?.index ?? .zero {
            self.keepDigest(at: now)
            return self.tellDigests(at: now, into: &effects)
        }
        self.armDigest(at: now, into: &effects)
    }

    func compare(
        _ index: LogIndex, _ digest: StateDigest, from peer: NodeID, at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        if self.bugs.contains(.digestsNotCompared) { return }
        self.act(
            on: self.comparison.heard(
                index, digest, from: peer, as: self.node, in: self.raft.configuration),
            at: now, into: &effects)
    }

    private func act(
        on findings: [DigestComparison.Finding], at now: MonotonicTime,
        into effects: inout [Effect]
    ) {
        for finding in findings {
            switch finding {
            case .memberDiffers(let node, let index):
                effects.append(.differs(node, at: index))
                // It may have been started since this was told.
                if let digest = self.comparison.digest(at: index) {
                    self.say(.digest(index: index, digest), to: node, into: &effects)
                }
            case .ownDiffers(let index):
                guard !self.hasWrongRows, !self.raft.isAlone else { continue }
                self.divergedAt = index
                self.mark(.differ, into: &effects)
                effects.append(.diverged(at: index))
                self.refuseAll(into: &effects)
                self.run(.diverged, at: now, into: &effects)
            }
        }
        // Two in dispute look at themselves: rows that are not what was applied are the wrong ones.
        if !findings.isEmpty, !self.comparison.undecided.isEmpty {
            self.areRowsProven = false
            self.checkRows(at: now, into: &effects)
        }
    }

    /// A snapshot has taken the place of the rows.
    func rowsReplaced(at index: LogIndex, into effects: inout [Effect]) {
        self.comparison.replaced()
        self.areRowsProven = false
        self.toldDigest = nil
        self.rottenAlone = nil
        guard self.hasWrongRows else { return }
        self.divergedAt = nil
        self.rottenAt = nil
        effects.append(.rebuilt(at: index))
    }
}
