import StratusCoding
import StratusModel
import StratusRecords

/// The decisions of one group's log, by the simplest rules. Every entry's outcome must be the
/// model's. Every read must match the model at the tag that the answer names.
struct RecordLedger {
    private var model: RecordModel
    let deletedZoneCountMax: UInt64
    private(set) var databases: [DatabaseID: DatabaseHistory] = [:]
    /// The model of the zone of long cascades.
    private var cascades = CascadeModel(field: RecordWorld.reference)
    private var documents = DocumentLedger()
    /// The outcome of each command when it was applied, and the command.
    private var outcomes: [RequestIdentity: Bytes] = [:]
    private var commands: [RequestIdentity: Bytes] = [:]
    private var incarnations: [RecordModel.Place: ZoneIncarnation] = [:]
    private var histories: [ZoneIncarnation: ZoneHistory] = [:]
    /// Numbers that were written, each by one save.
    private var savedNumbers: Set<Int> = []
    /// Zero: there is none, so that nobody can ask by a type.
    private(set) var schemaVersion: UInt64 = 0
    private(set) var counts: [String: Int] = [:]
    /// The turn that the feed of a command's database had come to when it was applied.
    private(set) var turns: [RequestIdentity: UInt64] = [:]

    init(deletedZoneCountMax: UInt64 = RecordState.Bounds().deletedZoneCountMax) {
        self.deletedZoneCountMax = deletedZoneCountMax
        self.model = RecordModel(deletedZoneCountMax: deletedZoneCountMax)
    }

    // MARK: Entries

    /// An entry that no replica has applied before.
    mutating func apply(_ entry: Entry, _ outcome: Outcome) -> Violation? {
        guard entry.kind == .command, let command = try? Command(decoding: entry.payload),
            command.kind == .records,
            let body = try? RecordCommand(decoding: command.body, container: command.container)
        else { return nil }
        if entry.time.milliseconds > command.deadlineMilliseconds {
            if outcome.verdict == .expired { return nil }
            return Violation("I-4 exactly once", "\(entry.index) is applied after its deadline")
        }
        if let known = self.commands[command.identity], known != command.body {
            return Violation(
                "I-4 exactly once", "\(entry.index) has the identity of another command")
        }
        if let known = self.outcomes[command.identity] {
            self.counts["repeated", default: 0] += 1
            if outcome.verdict == .decided, outcome.body == known { return nil }
            return Violation(
                "I-4 exactly once", "\(entry.index) repeats a command and is answered otherwise")
        }
        guard outcome.verdict == .decided,
            let decided = try? RecordOutcome(decoding: outcome.body, detail: outcome.detail)
        else { return Violation("I-5 records", "\(entry.index): \(outcome.verdict)") }
        self.outcomes[command.identity] = outcome.body
        self.commands[command.identity] = command.body
        defer {
            if let database = body.changedDatabase {
                self.turns[command.identity] = self.turn(of: database)
            }
        }
        return self.apply(body, of: command, at: entry.time.milliseconds, decided).map {
            Violation("I-5 records", "\(entry.index): \($0)")
        }
    }

    /// - Returns: what should not be; nil: nothing.
    private mutating func apply(
        _ body: RecordCommand, of command: Command, at milliseconds: Int64,
        _ outcome: RecordOutcome
    ) -> String? {
        switch body {
        case .modifyRecords(let modify):
            let place = RecordModel.Place(database: modify.database, zone: modify.zone)
            guard RecordWorld.isModelled(place) else {
                if place == RecordWorld.deep { self.follow(modify, outcome) }
                return self.countOnly(outcome)
            }
            return self.apply(modify, by: command.principal, at: milliseconds, outcome)
        case .modifyZones(let modify): return self.apply(modify, outcome)
        case .schema(.install(let schema)):
            self.schemaVersion = max(self.schemaVersion, schema.version)
            self.counts["schemas", default: 0] += 1
            return outcome == .schema(version: self.schemaVersion)
                ? nil : "the schema is of version \(self.schemaVersion), not \(outcome)"
        case .continueJobs:
            guard case .jobs(let progress) = outcome else { return "jobs: \(outcome)" }
            if progress.rowCount > 0 { self.counts["slices of jobs", default: 0] += 1 }
            return nil
        case .reserveReferences:
            guard case .reserved = outcome else { return "reservations: \(outcome)" }
            self.counts["reservations", default: 0] += 1
            return nil
        case .eraseDatabase(let erase): return self.apply(erase, outcome)
        case .modifyDocuments(let modify):
            let before = self.documents.counts
            let problem = self.documents.apply(modify, at: milliseconds, outcome)
            for (kind, count) in self.documents.counts {
                self.counts[kind, default: 0] += count - (before[kind] ?? 0)
            }
            return problem
        case .noteBuckets:
            guard case .bucketsNoted = outcome else { return "bits: \(outcome)" }
            return nil
        case .schema, .recover, .auditLinks, .forgetOutcomes:
            return "nobody asks for this"
        }
    }

    private mutating func apply(
        _ modify: ModifyRecords, by principal: Principal, at milliseconds: Int64,
        _ outcome: RecordOutcome
    ) -> String? {
        let place = RecordModel.Place(database: modify.database, zone: modify.zone)
        let base = self.model.zones[place]?.lastTag ?? 0
        let expected = self.model.apply(modify, by: principal, at: milliseconds)
        switch (outcome, expected) {
        case (.refused, nil): return nil
        case (.records(let modified), .some(let expected)):
            for (position, result) in modified.results.enumerated() {
                let operation = modify.operations[position]
                guard RecordModel.Result(result) == expected[position] else {
                    return "\(operation.kind) of \(operation.recordName) in \(place.zone) is "
                        + "\(result), not \(expected[position])"
                }
                if let problem = self.count(result) { return problem }
            }
            guard let zone = self.model.zones[place] else { return nil }
            guard modified.zone.lastTag.raw == zone.lastTag,
                modified.zone.recordCount == UInt64(zone.records.count)
            else {
                return "\(place.zone) is at \(modified.zone), not at \(zone.lastTag) with "
                    + "\(zone.records.count) records"
            }
            if self.incarnations[place] == nil {
                self.begin(place, modify.drawnIncarnation, after: base)
            }
            if zone.lastTag != base, place.zone != ZoneID.defaultName {
                self.databases[place.database, default: DatabaseHistory()].changed(place.zone)
            }
            self.histories[self.incarnations[place]!]?.advance(to: zone)
            return nil
        default: return "\(outcome), not \(String(describing: expected))"
        }
    }

    private mutating func count(_ result: ModifiedRecords.Result) -> String? {
        switch result {
        case .saved(let saved):
            self.counts["saved", default: 0] += 1
            guard let record = saved.record, let number = RecordWorld.number(of: record),
                !self.savedNumbers.insert(number).inserted
            else { return nil }
            return "what was written to \(record.name) once is saved twice"
        case .deleted: self.counts["deleted", default: 0] += 1
        case .refused, .left: self.counts["refused", default: 0] += 1
        }
        return nil
    }

    /// Only counts an outcome: for commands that the model does not fully follow.
    private mutating func countOnly(_ outcome: RecordOutcome) -> String? {
        guard case .records(let modified) = outcome else { return nil }
        for result in modified.results {
            if let problem = self.count(result) { return problem }
        }
        return nil
    }

    private mutating func follow(_ modify: ModifyRecords, _ outcome: RecordOutcome) {
        guard case .records(let modified) = outcome else { return }
        for (operation, result) in zip(modify.operations, modified.results) {
            self.cascades.apply(operation, result)
        }
    }

    /// The error in the zone of long cascades when all jobs are done; nil if there is none.
    func problem(ofCascadesIn records: [String: Record]) -> String? {
        self.cascades.problem(in: records)
    }

    private mutating func apply(_ modify: ModifyZones, _ outcome: RecordOutcome) -> String? {
        let isThere = modify.operations.map { operation in
            self.model.zones[
                RecordModel.Place(database: modify.database, zone: operation.zone)] != nil
        }
        let expected = self.model.apply(modify)
        guard case .zones(let results) = outcome, results.count == expected.count else {
            return "zones: \(outcome)"
        }
        for (position, result) in results.enumerated() {
            let operation = modify.operations[position]
            let place = RecordModel.Place(database: modify.database, zone: operation.zone)
            switch (result, expected[position]) {
            case (.created(let summary), true) where operation.kind == .create:
                if !isThere[position] {
                    self.begin(
                        place, operation.drawnIncarnation,
                        after: self.model.zones[place]?.lastTag ?? 0)
                    self.databases[place.database, default: DatabaseHistory()].made(
                        place.zone, operation.drawnIncarnation)
                    self.counts["zones made", default: 0] += 1
                }
                guard summary.incarnation == self.incarnations[place] else {
                    return "\(place.zone) is made again over itself"
                }
            case (.deleted, true) where operation.kind == .delete:
                self.incarnations[place] = nil
                self.databases[place.database, default: DatabaseHistory()].deleted(place.zone)
                self.counts["zones deleted", default: 0] += 1
            case (.refused, false): break
            default: return "zone \(place.zone): \(result), not \(expected[position])"
            }
        }
        return nil
    }

    private mutating func apply(_ erase: EraseDatabase, _ outcome: RecordOutcome) -> String? {
        let isThere = self.model.remembers(erase.database)
        let zoneCount = self.model.zones.keys.count {
            $0.database == erase.database && $0.zone != ZoneID.defaultName
        }
        let recordCount = self.model.erase(erase.database)
        let expected = ErasureProgress(
            zoneCount: UInt64(zoneCount), recordCount: UInt64(recordCount), hasMore: false)
        guard outcome == .erased(expected) else { return "erased: \(outcome), not \(expected)" }
        self.incarnations = self.incarnations.filter { $0.key.database != erase.database }
        if isThere {
            self.databases[erase.database, default: DatabaseHistory()].erased()
            self.counts["databases erased", default: 0] += 1
        }
        return nil
    }

    private mutating func begin(
        _ place: RecordModel.Place, _ incarnation: ZoneIncarnation, after tag: UInt64
    ) {
        self.incarnations[place] = incarnation
        self.histories[incarnation] = ZoneHistory(after: tag)
    }

    // MARK: Answers

    /// A client was told what the log decided.
    func check(_ outcome: Outcome, of identity: RequestIdentity) -> String? {
        guard let known = self.outcomes[identity] else { return "nothing was decided" }
        return known == outcome.body ? nil : "something else was decided"
    }

    func history(_ incarnation: ZoneIncarnation) -> ZoneHistory? { self.histories[incarnation] }

    func incarnation(of place: RecordModel.Place) -> ZoneIncarnation? { self.incarnations[place] }

    /// The records that a read must have seen if it reports this state of the zone.
    ///
    /// - Returns: nil for a zone that nobody has seen in that state.
    func records(in summary: ZoneSummary) -> [String: Record]? {
        if summary.incarnation.raw == 0, summary.lastTag.raw == 0 { return [:] }
        guard let history = self.histories[summary.incarnation],
            summary.lastTag.raw <= history.lastTag
        else { return nil }
        return history.records(at: summary.lastTag)
    }

    /// The records of a place at the end of the log.
    func records(in place: RecordModel.Place) -> [String: Record]? {
        self.model.zones[place]?.records
    }
}

extension RecordModel.Result {
    /// Nil for a save that does not say what it saved: one that is told again.
    fileprivate init?(_ result: ModifiedRecords.Result) {
        switch result {
        case .saved(let saved):
            guard let record = saved.record else { return nil }
            self = .saved(record)
        case .deleted(let tag): self = .deleted(tag)
        case .refused(let refusal): self = .refused(refusal.reason)
        case .left: self = .deleted(nil)
        }
    }
}
