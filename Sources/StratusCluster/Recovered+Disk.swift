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
    /// - Throws: what the log could not read; `.released` if the log begins behind the state, which
    ///   means that the state was lost.
    package init(
        of group: GroupID, in log: SegmentedLog, state position: AppliedPosition,
        initial: Configuration
    ) throws(LogError) {
        let start = log.start(of: group)
        guard position.index >= start.index else {
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
        let last = log.last(of: group).index
        var entries: [Entry] = []
        while (entries.last?.index ?? start.index) < last {
            let next = (entries.last?.index ?? start.index).next
            let read = try log.read(group, from: next, limit: .mebibytes(16))
            guard !read.isEmpty else { throw LogError(.corrupt, "\(group): entry \(next)") }
            entries += read
        }
        self.init(
            hardState: log.hardState(of: group) ?? HardState(term: .zero, vote: nil),
            snapshot: SnapshotIdentity(
                index: position.index, term: position.term, time: position.time,
                configuration: configuration, digest: position.digest),
            base: LogPoint(index: start.index, term: start.term), entries: entries)
    }
}
