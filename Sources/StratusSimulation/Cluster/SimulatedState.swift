import StratusCoding
import StratusDoubles
package import StratusModel
import StratusPlacement
import StratusQuery
import StratusRecords
package import StratusRows

/// The state of a simulated partition: the reference state, or the real state of records. In a
/// cluster with a placement table the system group has its real one. With a bug planted it writes
/// down which node it is on.
package struct SimulatedState: ReplicatedState {
    package enum Content: Sendable { case registers, records, system }

    private let content: Content
    private var registers = RegisterState()
    private var records: DataState
    private var system = SystemState()
    private let node: NodeID
    private let bugs: PlantedBugs
    private let readTouchCountMax: Int
    /// The cost of the last step of a page, beyond its bound: a record with its feed row, or a zone
    /// and the search for its position, of the small worlds here.
    private static let readSlack = 60

    /// - Parameters:
    ///   - partitionCount: of records: among how many groups buckets are.
    ///   - deletedZoneCountMax: of records: how many deleted zones a database remembers.
    package init(
        _ content: Content, node: NodeID, partitionCount: Int = 1,
        deletedZoneCountMax: UInt64 = RecordState.Bounds().deletedZoneCountMax,
        readTouchCountMax: Int = ReadMeter.pageTouchCountMax, bugs: PlantedBugs
    ) {
        self.content = content
        self.readTouchCountMax = readTouchCountMax
        var bounds = RecordState.Bounds()
        bounds.partitionCount = partitionCount
        bounds.deletedZoneCountMax = deletedZoneCountMax
        self.records = DataState(bounds: bounds, bugs: bugs)
        self.node = node
        self.bugs = bugs
    }

    package mutating func apply(
        _ command: Command, at position: EntryPosition, over rows: Rows
    ) throws(StoreError) -> Outcome {
        let outcome =
            switch self.content {
            case .registers: try self.registers.apply(command, at: position, over: rows)
            case .records: try self.records.apply(command, at: position, over: rows)
            case .system: try self.system.apply(command, at: position, over: rows)
            }
        if self.bugs.contains(.applyDependsOnReplica), position.index.raw % 7 == 0 {
            let planted = [UInt8(truncatingIfNeeded: self.node.raw)]
            try rows.put(.job, Bytes("planted".utf8).span.bytes, planted.span.bytes)
        }
        return outcome
    }

    package mutating func takeErased() -> Bool {
        self.content == .records && self.records.takeErased()
    }

    package func forgetsOutcomes(_ command: Command) -> Bool {
        self.content == .records && self.records.forgetsOutcomes(command)
    }

    package func removing(over rows: RowView) throws(StoreError)
        -> ClosedRange<UInt64>?
    { self.content == .records ? try self.records.removing(over: rows) : nil }

    package mutating func answer(_ query: Query, over rows: RowView)
        throws(StoreError) -> QueryAnswer
    {
        switch self.content {
        case .registers: try self.registers.answer(query, over: rows)
        case .records where query.kind == .reference:
            try self.links(query, over: rows)
        case .records: try self.metered(query, over: rows)
        case .system: try self.system.answer(query, over: rows)
        }
    }

    /// No page passes its bound by more than one step.
    private mutating func metered(
        _ query: Query, over rows: RowView
    ) throws(StoreError) -> QueryAnswer {
        let meter = ReadMeter(touchCountMax: self.readTouchCountMax)
        let answer = try self.records.answer(query, within: nil, meter, over: rows)
        if query.kind == .records,
            let question = RecordState.questions.question(in: query)?.question
        {
            let bound = type(of: question).bound
            var unitsMax = bound.units
            if case .page(let step) = bound { unitsMax = meter.touchCountMax + step }
            precondition(
                meter.work.touchCount <= unitsMax,
                "a question took \(meter.work), its bound is \(bound): \(question)")
            return answer
        }
        // Mail and questions about jobs come in no pages.
        if query.kind == .records, let ask = try? RecordQuery(decoding: query.body), ask.ask.isPaged
        {
            precondition(
                meter.work.touchCount <= self.readTouchCountMax + Self.readSlack,
                "a read took \(meter.work), its bound is \(self.readTouchCountMax): \(ask)")
        }
        return answer
    }

    /// Answers a question that no client can ask: both ends of the references that leave a bucket.
    private func links(_ query: Query, over rows: RowView) throws(StoreError)
        -> QueryAnswer
    {
        if let groups = MailNumbers.groups(askedIn: query.body) {
            return QueryAnswer(body: try MailNumbers(groups, over: rows).answerBody())
        }
        guard let ask = try? LinkEnds.Ask(decoding: query.body) else {
            throw StoreError(.unreadable, "a question about links")
        }
        return QueryAnswer(body: try LinkEnds(ask, over: rows).encoded())
    }

    package func reading(of command: Command) -> CommandReading {
        switch self.content {
        case .registers: self.registers.reading(of: command)
        case .records: self.records.reading(of: command)
        case .system: self.system.reading(of: command)
        }
    }

    package func holdings(in command: Command) -> [CopyHolding]? {
        if case .records = self.content { self.records.holdings(in: command) } else { nil }
    }

    package mutating func takeBodyChanges() -> [BodyChange] { self.records.takeBodyChanges() }

    package mutating func forget() {
        self.registers.forget()
        self.records.forget()
        self.system.forget()
    }
}

extension RecordQuery.Ask {
    /// Whether the answer may end before everything is told, so that it is asked again.
    fileprivate var isPaged: Bool {
        switch self {
        case .lookup, .zoneChanges, .databaseChanges, .zonePage, .documents, .heldRecords:
            true
        case .zones, .page, .schema, .jobs, .work, .judge, .use, .buckets:
            false
        }
    }
}
