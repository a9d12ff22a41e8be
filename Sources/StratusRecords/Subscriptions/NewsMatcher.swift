import StratusCoding
import StratusModel
import StratusQuery
import StratusRows

/// Asks subscriptions about events.
///
/// A predicate is compiled once, when the first event is asked about it. What filters need of an
/// event's fields is made once for all of them. So an event costs its own text, and the operands of
/// the filters that it is asked.
struct NewsMatcher {
    /// A predicate made ready to be asked.
    struct Compiled: Sendable {
        /// Nil: the schema as it is now cannot ask it, so it does not fire.
        var filters: [CompiledFilter]?
        /// The zone that it was compiled for; nil: it says the same in every zone.
        var home: ZoneID?
    }

    /// An event, with what was made of it for the subscriptions that were asked so far.
    struct Asked: Sendable {
        let event: NewsEvent
        fileprivate var values: RecordValues?

        init(_ event: NewsEvent) {
            self.event = event
            if case .record(_, let record, _) = event { self.values = RecordValues(record) }
        }
    }

    private let database: DatabaseID
    private let principal: Principal
    private let schema: IndexedSchema?
    /// By record type; nil where the schema has none.
    private var compilers: [String: FilterCompiler?] = [:]

    init(
        _ database: DatabaseID, _ principal: Principal, _ schema: IndexedSchema?
    ) {
        self.database = database
        self.principal = principal
        self.schema = schema
    }

    // MARK: Asking

    /// Whether a subscription fires for an event, and why it does not. With it the filter that
    /// fails, from 1.
    ///
    /// - Parameter compiled: its predicate as an earlier event left it.
    mutating func verdict(
        of subscription: Subscription, on asked: inout Asked, _ compiled: inout Compiled?,
        _ meter: ReadMeter
    ) -> (NewsVerdict, filter: Int) {
        let found = self.match(subscription, on: &asked, &compiled, meter)
        guard found.0 == .fires, case .record(_, let record, _) = asked.event,
            !self.mayRead(record.type, of: record.created.userRecordName)
        else { return found }
        return (.mayNotRead, 0)
    }

    /// The same, whoever asks: who may not read the record must not be told.
    mutating func match(
        _ subscription: Subscription, on asked: inout Asked, _ compiled: inout Compiled?,
        _ meter: ReadMeter
    ) -> (NewsVerdict, filter: Int) {
        meter.count(ReadWork(comparisonCount: 1))
        switch (asked.event, subscription.kind) {
        case (.zone, .database): return (.fires, 0)
        case (.zone(let zone, _), .zone):
            let isIts = subscription.zone.map { $0.utf8.elementsEqual(zone.utf8) } ?? false
            return (isIts ? .fires : .otherZone, 0)
        case (.zone, .query), (.record, .zone), (.record, .database): return (.otherKind, 0)
        case (.record(let reason, let record, let omitted), .query):
            guard subscription.reasons.contains(reason) else { return (.otherReason, 0) }
            guard let predicate = subscription.predicate, record.type == predicate.recordType
            else { return (.otherType, 0) }
            let isIts =
                subscription.zone.map { $0.utf8.elementsEqual(record.zone.name.utf8) } ?? true
            guard isIts else { return (.otherZone, 0) }
            self.compile(predicate, home: record.zone, &compiled, meter)
            guard let filters = compiled?.filters else { return (.filterBroken, 0) }
            // A notification is a hint: one too many is harmless, one too few is not.
            var work = ReadWork()
            let failing = filters.firstIndex {
                !($0.names(any: omitted) || Self.matches($0, &asked, &work))
            }
            meter.count(work)
            if let failing { return (.filterFails, failing + 1) }
            return (.fires, 0)
        }
    }

    private static func matches(
        _ filter: CompiledFilter, _ asked: inout Asked, _ work: inout ReadWork
    ) -> Bool {
        guard var values = asked.values else { return false }
        // Taken out meanwhile, so that what it keeps is not copied.
        asked.values = nil
        defer { asked.values = values }
        return filter.matches(&values, &work)
    }

    func mayRead(_ type: String, of creator: String) -> Bool {
        AccessRules.allows(
            .read, self.schema?.schema.type(named: type), creator: creator, in: self.database,
            self.principal)
    }

    // MARK: Compiling

    /// - Parameter home: the record's zone, which an operand without a zone means.
    private mutating func compile(
        _ predicate: RecordPredicate, home: ZoneID, _ compiled: inout Compiled?,
        _ meter: ReadMeter
    ) {
        if let compiled, compiled.home ?? home == home { return }
        guard var compiler = self.compiler(of: predicate.recordType, home: home) else {
            compiled = Compiled(filters: nil, home: nil)
            return
        }
        compiler.home = home
        var work = ReadWork()
        for filter in predicate.filters { filter.countCompiling(in: &work) }
        meter.count(work)
        let filters = try? predicate.filters.map { filter throws(QueryRefusal) in
            try compiler.compile(filter)
        }
        compiled = Compiled(
            filters: filters,
            home: predicate.filters.contains(where: compiler.namesHome) ? home : nil)
    }

    private mutating func compiler(of type: String, home: ZoneID) -> FilterCompiler? {
        if let known = self.compilers[type] { return known }
        let compiler = self.schema.flatMap { schema in
            schema.schema.type(named: type).map {
                FilterCompiler($0, in: schema, home: home, requiresIndexes: false)
            }
        }
        self.compilers[type] = .some(compiler)
        return compiler
    }
}

extension CompiledFilter {
    /// Whether it asks about one of these fields.
    func names(any fields: [String]) -> Bool {
        if fields.isEmpty { return false }
        switch self.target {
        case .field(let name): return fields.contains(name)
        case .fields(let names): return names.contains { fields.contains($0) }
        case .system: return false
        }
    }
}
