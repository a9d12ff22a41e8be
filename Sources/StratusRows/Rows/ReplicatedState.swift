package import StratusModel

/// The meaning of a partition's rows: decisions over rows, without a disk, a clock or a random
/// draw.
///
/// The same entries over the same rows give the same rows and outcomes on every replica, for ever:
/// a change of meaning is a new command kind or version, never a new reading of an old one.
package protocol ReplicatedState: Sendable {
    /// Decides one command: reads first, then writes, then the outcome.
    ///
    /// - Throws: only what `rows` threw. The caller then rolls everything back to the last commit,
    ///   calls ``forget()`` and replays; nothing decided since may be answered.
    mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome

    /// Answers a read over one state of the rows: the one that the commands applied so far have
    /// left. May keep what it read in memory until ``forget()``.
    mutating func answer(_ query: Query, over rows: RowView) throws(StoreError)
        -> QueryAnswer

    /// The same, and whatever can be asked for in pages ends its page when the time is over.
    mutating func answer(
        _ query: Query, within time: ReadTime?, over rows: RowView
    ) throws(StoreError) -> QueryAnswer

    /// Drops whatever is kept in memory about the rows: they may have gone back.
    mutating func forget()

    /// The nodes that hold the copies that the command names; nil: it names none. The leader
    /// appends it only if they are enough.
    func holdings(in command: Command) -> [CopyHolding]?

    /// What the entries applied since the last call did to the rows of bodies. The list ends with
    /// ``forget()``.
    mutating func takeBodyChanges() -> [BodyChange]

    /// Whether an entry applied since the last call has erased what somebody had, at once or by work
    /// that it left. The answer ends with ``forget()``.
    mutating func takeErased() -> Bool

    /// The numbers of what was taken out of reach and is not removed yet: the least and the
    /// greatest. They are given in ascending order and never twice. Nil: all is removed.
    func removing(over rows: RowView) throws(StoreError) -> ClosedRange<UInt64>?

    /// Whether outcomes whose time is over are to be removed with the command: they name what was
    /// erased, and nothing else may come for a long time.
    func forgetsOutcomes(_ command: Command) -> Bool

    /// Tells which builds can apply the command. A leader asks before it appends and every replica
    /// before it applies: a command from a later build must stop the replica, not change nothing.
    func reading(of command: Command) -> CommandReading
}

extension ReplicatedState {
    package func reading(of command: Command) -> CommandReading { command.reading }

    package func holdings(in command: Command) -> [CopyHolding]? { nil }

    package mutating func takeBodyChanges() -> [BodyChange] { [] }

    package mutating func takeErased() -> Bool { false }

    package func forgetsOutcomes(_ command: Command) -> Bool { false }

    package func removing(over rows: RowView) throws(StoreError)
        -> ClosedRange<UInt64>?
    { nil }
}

extension ReplicatedState {
    package mutating func answer(
        _ query: Query, within time: ReadTime?, over rows: RowView
    ) throws(StoreError) -> QueryAnswer {
        try self.answer(query, over: rows)
    }
}

/// The position and time at which a command is applied: the only time its decisions may know.
package struct EntryPosition: Sendable, Equatable {
    package var index: LogIndex
    package var time: HybridTime
    package init(index: LogIndex, time: HybridTime) {
        self.index = index
        self.time = time
    }
}
