import StratusCoding
import StratusConsensus
import StratusModel
import StratusStorage

/// Makes this node the only voter of groups by entries that it writes itself, and brings their rows
/// to the end of them.
struct SoleVoter {
    let node: NodeID
    let log: SegmentedLog
    let world: any World

    /// Submits what the group goes on with.
    ///
    /// - Returns: whether it has a first command.
    func submit(_ group: GroupID, after replica: Salvage.Replica, _ first: FirstCommand) -> Bool {
        // No other survivor's log may hold another entry of this index and term.
        let term = Term((replica.term.raw >> 20 + 1) << 20 + UInt64(self.node.raw))
        var time = replica.time.successor(wallMilliseconds: self.world.wallMilliseconds)
        var entries = [
            Entry(
                index: replica.index.next, term: term, time: time, kind: .configuration,
                payload: Configuration(voters: [self.node]).encoded())
        ]
        time = time.successor(wallMilliseconds: self.world.wallMilliseconds)
        let command = first.make(group, time)
        if let command {
            entries.append(
                Entry(
                    index: replica.index.next.next, term: term, time: time, kind: .command,
                    payload: command.encoded()))
        }
        self.log.submit([
            LogBatch(group: group, hardState: HardState(term: term, vote: nil), entries: entries)
        ])
        return command != nil
    }

    func flush() throws(Salvage.Refusal) {
        while self.log.flush() {}
        if let fault = self.log.fault { throw .disk("the log: \(fault.text)") }
        if self.log.hasWork { throw .disk("the log: the disk is full") }
    }

    /// Brings the rows of a group to the end of its log, which ends with its first command. This
    /// node is the group's only voter, so everything there is committed.
    func apply(_ group: GroupID, _ first: FirstCommand) throws(Salvage.Refusal) {
        do {
            let rows = try first.open(group)
            let last = try self.bring(rows, of: group, to: self.log.last(of: group).index)
            try rows.close()
            guard first.isDone(last) else { throw Salvage.Refusal.notDone(group, last) }
        } catch let refusal as Salvage.Refusal {
            throw refusal
        } catch let error as LogError {
            throw .unusable("\(group): \(error.text)")
        } catch { throw .unusable("\(group): \(error)") }
    }

    /// - Returns: the outcome of the last entry.
    @discardableResult
    func bring(_ rows: any NodePartition, of group: GroupID, to end: LogIndex) throws -> Outcome {
        var last = Outcome(.none)
        while rows.applied < end {
            let entries = try self.log.read(group, from: rows.applied.next, limit: .mebibytes(1))
                .prefix { $0.index <= end }
            guard !entries.isEmpty else {
                throw Salvage.Refusal.unusable(
                    "\(group): the log lacks entry \(rows.applied.next)")
            }
            var outcomes: [Outcome] = []
            try rows.apply(entries, into: &outcomes)
            try rows.commit()
            guard let outcome = outcomes.last else {
                throw Salvage.Refusal.unusable(
                    "\(group): only a newer release can apply entry \(rows.applied.next)")
            }
            last = outcome
        }
        return last
    }
}
