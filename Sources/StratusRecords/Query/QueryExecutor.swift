import StratusCoding
package import StratusModel

/// What a page of a query asks.
package struct QueryPageRequest: Sendable {
    package var predicate: RecordPredicate
    /// The zones to look in. Any order; each once.
    package var zones: [ZoneScope]
    package var limit: Int
    /// What the last page's answer said; nil for the first page.
    package var after: Bytes?
    /// Rows a page may touch before it answers with what it has. A little more may be touched: a page
    /// never ends where it began.
    package var touchCountMax: Int
    /// Stored bytes of the records on a page; the one that passes it is the last.
    package var sizeMax: Int
    package var requiresIndexes: Bool

    package init(
        _ predicate: RecordPredicate, zones: [ZoneScope], limit: Int = 200, after: Bytes? = nil,
        touchCountMax: Int = 10_000, sizeMax: Int = 16 << 20, requiresIndexes: Bool = true
    ) {
        self.predicate = predicate
        self.zones = zones
        self.limit = limit
        self.after = after
        self.touchCountMax = touchCountMax
        self.sizeMax = sizeMax
        self.requiresIndexes = requiresIndexes
    }
}

package struct QueryResult: Sendable, Equatable {
    package var records: [Record]
    /// The records as they are stored.
    package var rows: [Bytes]
    /// Where the next page starts; nil when this was the last.
    package var next: Bytes?
    package var counters: QueryCounters
    /// Of a sorted page, where each record stands in the order of all zones, and where the page ends.
    var places: [MergePlace] = []
    var end: MergePlace?
    var isSorted = false
}

/// Answers pages of queries over one state of the rows.
///
/// Promises, for any writes between pages: a page ends at a key or a value, so a record that did not
/// change is on exactly one page. A page touches about `touchCountMax` rows at most and always gets
/// further. With indexes required no plan reads the records of a zone that no index row named.
package struct QueryExecutor: Sendable {
    private let schema: IndexedSchema
    private let source: any RecordSource

    package init(_ schema: IndexedSchema, _ source: any RecordSource) {
        self.schema = schema
        self.source = source
    }

    /// - Parameter isVisible: whether the caller may read the record: what one may not read does not
    ///   exist.
    package func page(
        _ request: QueryPageRequest, over rows: any RowReader,
        isVisible: (Record) -> Bool = { _ in true }
    ) throws(StoreError) -> Result<QueryResult, QueryRefusal> {
        let fingerprint = QueryPosition.fingerprint(of: request.predicate)
        let zones = request.zones.sorted { Bytes.isOrdered($0.prefix, before: $1.prefix) }
        var queries: [CompiledQuery] = []
        let position: QueryPosition?
        do {
            for zone in zones {
                queries.append(
                    try CompiledQuery(
                        request.predicate, in: self.schema, home: zone.id,
                        requiresIndexes: request.requiresIndexes))
            }
            if zones.isEmpty {
                // Refuses what is wrong even where there is nothing to look in.
                _ = try CompiledQuery(
                    request.predicate, in: self.schema, home: ZoneID(name: "", owner: ""),
                    requiresIndexes: request.requiresIndexes)
            }
            position = try request.after.map { after throws(QueryRefusal) in
                try QueryPosition(decoding: after, for: fingerprint)
            }
        } catch {
            return .failure(error)
        }
        guard let first = queries.first else {
            return .success(
                QueryResult(records: [], rows: [], next: nil, counters: QueryCounters()))
        }
        let visible = isVisible
        return try withoutActuallyEscaping(visible) { isVisible throws(StoreError) in
            let targets = zip(zones, queries).map { zone, query in
                QueryTarget(
                    zone: zone, query: query,
                    planner: PathPlanner(query, in: self.schema, zone: zone), isVisible: isVisible)
            }
            let reader = QueryReader(rows, self.source)
            let answer: QueryOutcome
            switch position {
            case .ordered(var position)?:
                guard !first.sorts.isEmpty, position.keys.count <= first.sorts.count else {
                    return .failure(.markerInvalid)
                }
                // Of one zone among several that know nothing of each other: here it is this zone's.
                if position.zone.isEmpty, let zone = zones.first { position.zone = zone.prefix }
                var run = OrderedRun(reader, targets, request)
                answer = try run.page(after: position)
            case .unordered(let zone, let path, let range, let last)?:
                guard first.sorts.isEmpty else { return .failure(.markerInvalid) }
                var run = UnorderedRun(reader, targets, request)
                answer = try run.page(after: (zone, path, range, last))
            case nil where first.sorts.isEmpty:
                var run = UnorderedRun(reader, targets, request)
                answer = try run.page(after: nil)
            case nil:
                var run = OrderedRun(reader, targets, request)
                answer = try run.page(after: nil)
            }
            return answer.map { page in
                var result = QueryResult(
                    records: page.records, rows: page.rows,
                    next: page.next?.encoded(fingerprint), counters: page.counters)
                let order = QueryOrder(first)
                result.isSorted = !first.sorts.isEmpty
                result.places = page.positions.map { MergePlace($0, order, fingerprint) }
                if case .ordered(let end)? = page.next {
                    result.end = MergePlace(end, order, fingerprint)
                }
                return result
            }
        }
    }
}

/// A page as a run finds it.
struct QueryFound {
    var records: [Record] = []
    /// The records as they are stored.
    var rows: [Bytes] = []
    var next: QueryPosition?
    var counters: QueryCounters
    /// Of a sorted page: where each record stands.
    var positions: [OrderedPosition] = []
}

typealias QueryOutcome = Result<QueryFound, QueryRefusal>

/// One zone of a query, with all that is known before reading.
struct QueryTarget {
    let zone: ZoneScope
    let query: CompiledQuery
    let planner: PathPlanner
    let isVisible: (Record) -> Bool

    func accepts(_ record: Record) -> Bool {
        self.query.matches(record) && self.isVisible(record)
    }

    /// Every path to this query's records, best rank first. With indexes required there is one: the
    /// compiler refused the query otherwise.
    var paths: [IndexPath] {
        let paths = self.planner.paths(for: self.query.filters)
        if !paths.isEmpty { return paths }
        return [self.planner.extent ?? .records]
    }
}
