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
            "its rows and those of \(nodes) differ, and no majority of the replicas agrees: nobody can say which are "
            + "right"
    }

    /// Keeps the digest of the state when it reaches an index at which digests are compared.
    func noteDigest() {
        let index = self.state.applied
        let interval = self.tuning.digestInterval
        guard interval > 0, index > .zero, index.raw % interval == 0 else { return }
        self.state.noteDigest()
    }

    /// Tells the other replicas the digests that a flush has made exact.
    func tellDigests(at now: MonotonicTime, into effects: inout [Effect]) {
        let configuration = self.raft.configuration
        // What is said belongs to no term, but no message may name one that is not on disk.
        let term = self.raft.durableHardState.term
        for noted in self.state.takeDigests() {
            if term > .zero {
                for member in configuration.members where member != self.node {
                    let message = ConsensusMessage(
                        term: term, .digest(index: noted.index, noted.digest))
                    effects.append(.send(message, to: member))
                }
            }
            self.act(
                on: self.comparison.applied(
                    noted.index, noted.digest, as: self.node, in: configuration), at: now,
                into: &effects)
        }
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
            case .ownDiffers(let index):
                guard self.divergedAt == nil, !self.raft.isAlone else { continue }
                self.divergedAt = index
                effects.append(.diverged(at: index))
                self.refuseAll(into: &effects)
                self.run(.diverged, at: now, into: &effects)
            }
        }
    }

    /// A snapshot has taken the place of the rows.
    func rowsReplaced(at index: LogIndex, into effects: inout [Effect]) {
        self.comparison.replaced()
        guard self.divergedAt != nil else { return }
        self.divergedAt = nil
        effects.append(.rebuilt(at: index))
    }
}
