import StratusCoding
package import StratusConsensus
package import StratusModel
package import StratusStorage

extension RaftGroup.Recovered {
    /// What a replica begins with: what the node's log and its own state were found to hold.
    ///
    /// - Parameters:
    ///   - initial: the configuration the group was made with, in force until an entry or a snapshot
    ///     says another.
    ///   - hasPeers: whether others may have what is lost here. If so, a log that begins behind the state
    ///     is what a replica begins with that lacks its state; and entries that are damaged here are owed.
    /// - Throws: what the log could not read; `.released` if the state was lost and nobody has another,
    ///   `.corrupt` if entries were, or cannot follow one another.
    package init(
        of group: GroupID, in log: SegmentedLog, state position: AppliedPosition,
        initial: Configuration, hasPeers: Bool
    ) throws(LogError) {
        var start = LogPoint(index: log.start(of: group).index, term: log.start(of: group).term)
        guard position.index >= start.index || hasPeers else {
            throw LogError(
                .released,
                "\(group): the state is at \(position.index), the log after \(start.index)"
            )
        }
        var configuration = initial
        if !position.configuration.isEmpty {
            do throws(DecodingError) {
                configuration = try Configuration(decoding: position.configuration)
            } catch {
                throw LogError(.corrupt, "\(group): the configuration in the state: \(error)")
            }
        }
        let snapshot = SnapshotIdentity(
            index: position.index, term: position.term, time: position.time,
            configuration: configuration, digest: position.digest)
        var last = log.last(of: group).index
        if position.index > start.index, position.index <= last,
            let loss = log.loss(of: group, from: start.index), loss.first <= position.index
        {
            // The state holds what they did, and a restart has made it durable: the log may let go of them. What it holds
            // behind them may stay if it followed from where the state stands.
            let term = log.term(of: group, at: position.index) ?? .zero
            if term == position.term || term == .zero && !hasPeers {
                log.release(group, through: position.index)
            } else {
                let owed = term == .zero ? (loss.last, loss.lastTerm) : nil
                log.restart(group, after: snapshot, owing: owed)
                last = log.last(of: group).index
            }
            start = LogPoint(index: position.index, term: position.term)
        }
        var lost: LogPoint?
        if let loss = log.loss(of: group, from: start.index.next) {
            guard hasPeers else {
                throw LogError(.corrupt, "\(group): entry \(loss.first) is damaged")
            }
            last = loss.first.previous
            lost = LogPoint(index: loss.last, term: loss.lastTerm)
        }
        var entries: [Entry] = []
        while (entries.last?.index ?? start.index) < last {
            let next = (entries.last?.index ?? start.index).next
            let read = try log.read(group, from: next, limit: .mebibytes(16))
            guard !read.isEmpty else { throw LogError(.corrupt, "\(group): entry \(next)") }
            entries += read
        }
        var term = start.term
        for entry in entries {
            guard entry.term >= term else {
                throw LogError(.corrupt, "\(group): terms fall at entry \(entry.index)")
            }
            term = entry.term
        }
        self.init(
            hardState: log.hardState(of: group) ?? HardState(term: .zero, vote: nil),
            snapshot: snapshot, base: start, entries: entries, lost: lost)
    }
}
