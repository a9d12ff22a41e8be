package import StratusModel
package import StratusRows

/// The replicated state of a partition. It gives each command and each query to the state of its
/// kind: records, identity, or the mail between partitions.
///
/// A command or a query of another kind changes nothing and is refused.
package struct DataState: ReplicatedState {
    private(set) var records: RecordState
    /// Not yet taken by ``takeErased()``.
    private var hasErased = false

    package init(
        bounds: RecordState.Bounds = RecordState.Bounds(), bugs: PlantedBugs = PlantedBugs()
    ) {
        self.records = RecordState(bounds: bounds, bugs: bugs)
    }

    /// The state in a cluster of `partitionCount` partitions.
    package init(partitionCount: Int) {
        var bounds = RecordState.Bounds()
        bounds.partitionCount = partitionCount
        self.init(bounds: bounds)
    }

    package mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        switch command.kind {
        case .records: try self.records.apply(command, at: position, over: rows)
        case .identity:
            try IdentityState.apply(
                command, at: position.time, hasErased: &self.hasErased, over: rows)
        case .mail: try self.records.take(command, at: position, over: rows)
        case .system, .reference: Outcome(.unreadable)
        }
    }

    package mutating func answer(_ query: Query, over rows: RowView)
        throws(StoreError) -> QueryAnswer
    {
        try self.answer(query, within: nil, over: rows)
    }

    package mutating func answer(
        _ query: Query, within time: ReadTime?, over rows: RowView
    ) throws(StoreError) -> QueryAnswer {
        try self.answer(query, within: time, ReadMeter(within: time), over: rows)
    }

    /// - Parameter meter: counts what the answer costs, and bounds it. The pages of queries bring a
    ///   bound of their own, and end it by `time`.
    package mutating func answer(
        _ query: Query, within time: ReadTime?, _ meter: ReadMeter,
        over source: RowView
    ) throws(StoreError) -> QueryAnswer {
        let rows = source.metered(by: meter)
        return switch query.kind {
        case .identity: try IdentityState.answer(query, over: rows)
        case .mail: try self.records.outbox(query, over: rows)
        case .records, .system, .reference:
            try self.records.answer(query, within: time, meter, over: rows)
        }
    }

    package mutating func forget() {
        self.records.forget()
        self.hasErased = false
    }

    package mutating func takeBodyChanges() -> [BodyChange] { self.records.takeBodyChanges() }

    package mutating func takeErased() -> Bool {
        defer { self.hasErased = false }
        return self.records.takeErased() || self.hasErased
    }

    package func forgetsOutcomes(_ command: Command) -> Bool {
        guard command.kind == .records, command.principal.kind == .system,
            command.body.count == 3
        else { return false }
        return command.body == RecordCommand.forgetOutcomes.encoded()
    }

    package func removing(over rows: RowView) throws(StoreError)
        -> ClosedRange<UInt64>?
    { try RecordState.removing(over: rows) }

    /// Beside the command's own numbers, those of the rows that it names and of the mail that it
    /// brings.
    package func reading(of command: Command) -> CommandReading {
        let reading = command.reading
        guard case .readable = reading else { return reading }
        return switch command.kind {
        case .identity: reading.joined(with: IdentityState.reading(ofRowsIn: command.body))
        case .mail: reading.joined(with: PostOffice.reading(of: command.body))
        case .records: reading.joined(with: RecordState.operations.reading(ofRowsIn: command))
        case .system, .reference: reading
        }
    }

    package func holdings(in command: Command) -> [CopyHolding]? {
        command.kind == .records ? self.records.holdings(in: command) : nil
    }
}
