import StratusCoding
package import StratusConsensus
package import StratusModel
package import StratusStorage

extension RaftGroup.Recovered {
    /// The content that a replica begins with, as found in the node's log and its own state.
    ///
    /// - Parameters:
    ///   - initial: the configuration the group was made with, in force until an entry or a
    ///     snapshot contains another.
    ///   - hasPeers: whether others may have what is lost here. If so, a log that begins behind the
    ///     state is that of a replica that lacks its state, and entries damaged here are owed.
    ///   - tailSizeMax: how many bytes of entries to keep in memory. Older ones are read from the
    ///     log when they are applied or sent.
    /// - Throws: the log's error if it cannot be read. `.released` if the state was lost and nobody
    ///   has another; `.corrupt` if entries were lost, or cannot follow one another.
    package init(
        of group: GroupID, in log: SegmentedLog, state position: AppliedPosition,
        initial: Configuration, hasPeers: Bool, tailSizeMax: Int = RaftTuning().tailSizeMax
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
            // The state holds the effects of these entries, and a restart has made it durable, so
            // the log may release them. Later entries may stay if they followed from the state's
            // position.
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
        // The entries before the state's position are kept for followers, and may be more than
        // memory should hold. Where the state is lost nothing is applied before a snapshot comes:
        // the last entry is enough then, since no time is later than its.
        var passed: [Term] = []
        let isLost = position.index < start.index && last > start.index
        var through = isLost ? last.previous : min(position.index, last)
        while start.index.raw + UInt64(passed.count) < through.raw {
            let next = LogIndex(start.index.raw + UInt64(passed.count) + 1)
            guard let term = log.term(of: group, at: next), term > .zero else {
                throw LogError(.corrupt, "\(group): entry \(next)")
            }
            passed.append(term)
        }
        // The last entry stays in any case: it tells the latest time.
        var entries: [Entry] = []
        var size = 0
        through = max(through, start.index)
        while (entries.last?.index ?? through) < last {
            let next = (entries.last?.index ?? through).next
            let more = try log.read(group, from: next, limit: .mebibytes(1)).prefix {
                $0.index <= last
            }
            guard !more.isEmpty else { throw LogError(.corrupt, "\(group): entry \(next)") }
            entries += more
            for entry in more { size += entry.cost }
            var dropped = 0
            while size > tailSizeMax, dropped < entries.count - 1 {
                size -= entries[dropped].cost
                passed.append(entries[dropped].term)
                dropped += 1
            }
            entries.removeFirst(dropped)
            through = LogIndex(through.raw + UInt64(dropped))
        }
        var term = start.term
        for (number, next) in (passed + entries.map(\.term)).enumerated() {
            guard next >= term else {
                let index = start.index.raw + UInt64(number) + 1
                throw LogError(.corrupt, "\(group): terms fall at entry \(index)")
            }
            term = next
        }
        self.init(
            hardState: log.hardState(of: group) ?? HardState(term: .zero, vote: nil),
            snapshot: snapshot, base: start, entries: entries, lost: lost)
        self.passedTerms = passed
        try self.readConfigurations(of: group, in: log, after: start.index, through: through)
    }

    private mutating func readConfigurations(
        of group: GroupID, in log: SegmentedLog, after: LogIndex, through: LogIndex
    ) throws(LogError) {
        guard through > after else { return }
        let indexes = log.configurationIndexes(of: group, from: after.next, through: through)
        for index in indexes {
            guard let entry = try log.read(group, from: index, limit: 1).first else { continue }
            self.passedConfigurations[index] = try? Configuration(decoding: entry.payload)
        }
    }
}
