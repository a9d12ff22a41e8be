import StratusCoding
package import StratusModel
package import StratusRows

/// A request for one page of a query.
package struct QueryPageRequest: Sendable {
    package var predicate: RecordPredicate
    /// The zones to look in. Any order; each once.
    package var zones: [ZoneScope]
    package var limit: Int
    /// The marker from the last page's answer; nil for the first page.
    package var after: Bytes?
    /// The work, as ``ReadWork`` counts it, that a page may take before it answers with what it
    /// has. It may pass this by what one record costs, and by a few touches for each zone: a page
    /// never ends where it began.
    package var touchCountMax: Int
    /// The work that a page sorted by distance may take before its first record is certain, if that
    /// is more. A page that does not come so far is refused.
    package var beginTouchCountMax = 10_000
    /// Stored bytes of the records on a page; the one that passes it is the last.
    package var sizeMax: Int
    package var requiresIndexes: Bool
    /// Whether the answer says where its records and its end stand among those of other parts.
    package var wantsPlaces = true
    /// This part's number, where the zones are those of one part of a database among several; see
    /// ``MergePlace``.
    package var part: UInt8?

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
    /// The marker at which the next page starts; nil when this was the last page.
    package var next: Bytes?
    package var counters: QueryCounters
    /// The place of each record in the order of all zones, and of the page's end. Only for a sorted
    /// page.
    package var places: [MergePlace] = []
    package var end: MergePlace?
    package var isSorted = false
}

/// Answers pages of queries over one state of the rows.
///
/// Promises, for any writes between pages: a page ends at a key or a value, so a record that did
/// not change is on exactly one page. A page takes about `touchCountMax` of work at most and always
/// gets further, or is refused. With indexes required, no plan reads the records of a zone that no
/// index row named. For a caller who may read only records they created, no plan comes to a row of
/// another's.
package struct QueryExecutor: Sendable {
    private let schema: IndexedSchema
    private let source: any RecordSource

    package init(_ schema: IndexedSchema, _ source: any RecordSource) {
        self.schema = schema
        self.source = source
    }

    /// - Parameters:
    ///   - time: the page ends when it is over.
    ///   - visible: what the caller may read: anything else does not exist, and is not looked at.
    package func page(
        _ request: QueryPageRequest, over rows: RowView, within time: ReadTime? = nil,
        visible: VisibleRecords = .all
    ) throws(StoreError) -> Result<QueryResult, QueryRefusal> {
        let fingerprint = QueryPosition.fingerprint(of: request.predicate)
        let zones = request.zones.sorted { Bytes.isOrdered($0.prefix, before: $1.prefix) }
        let first: CompiledQuery
        let position: QueryPosition?
        do {
            // Refuses what is wrong even where there is nothing to look in.
            first = try self.compile(request, for: zones.first)
            position = try request.after.map { after throws(QueryRefusal) in
                try QueryPosition(decoding: after, for: fingerprint)
            }
        } catch {
            return .failure(error)
        }
        if zones.isEmpty || visible == .none {
            return .success(
                QueryResult(records: [], rows: [], next: nil, counters: QueryCounters()))
        }
        if !first.sorts.isEmpty, zones.count > Self.sortedZoneCountMax(request) {
            return .failure(.tooManyZones(Self.sortedZoneCountMax(request)))
        }
        // A zone is compiled for when a page comes to it: there may be thousands.
        let targets = zones.indices.lazy.map { place in
            let zone = zones[place]
            let query = place == 0 ? first : (try? self.compile(request, for: zone)) ?? first
            return QueryTarget(
                zone: zone, query: query,
                planner: PathPlanner(query, in: self.schema, zone: zone), visible: visible)
        }
        if visible != .all, let first = targets.first, first.ownPath == nil {
            return .failure(.indexBuilding)
        }
        let reader = QueryReader(rows, self.source, within: time)
        let answer: QueryOutcome
        switch position {
        case .ordered(var position)?:
            guard !first.sorts.isEmpty, position.keys.count <= first.sorts.count else {
                return .failure(.markerInvalid)
            }
            if let part = request.part {
                position.zone = MergePlace.zone(position.zone, seenBy: part)
            } else if position.zone.isEmpty, let zone = zones.first {
                // Of one zone among several that know nothing of each other: here it is this
                // zone's.
                position.zone = zone.prefix
            }
            var run = OrderedRun(reader, QueryOrder(first), request)
            answer = try run.page(of: targets, count: zones.count, after: position)
        case .named(let zone, let name, let range, let last)?:
            guard first.sorts.isEmpty else { return .failure(.markerInvalid) }
            var run = UnorderedRun(reader, request)
            answer = try run.page(of: targets, after: (zone, name, range, last))
        case nil where first.sorts.isEmpty:
            var run = UnorderedRun(reader, request)
            answer = try run.page(of: targets, after: nil)
        case nil:
            var run = OrderedRun(reader, QueryOrder(first), request)
            answer = try run.page(of: targets, count: zones.count, after: nil)
        }
        return answer.map { page in
            var result = QueryResult(
                records: page.records, rows: page.rows,
                next: page.next?.encoded(fingerprint), counters: page.counters)
            let order = QueryOrder(first)
            result.isSorted = !first.sorts.isEmpty
            guard request.wantsPlaces else { return result }
            result.places = page.positions.map {
                MergePlace($0, order, fingerprint, part: request.part)
            }
            if case .ordered(let end)? = page.next {
                result.end = MergePlace(end, order, fingerprint, part: request.part)
            }
            return result
        }
    }

    /// Every page of a sorted query begins in every zone.
    private static func sortedZoneCountMax(_ request: QueryPageRequest) -> Int {
        max(8, request.touchCountMax / 2)
    }

    private func compile(
        _ request: QueryPageRequest, for zone: ZoneScope?
    ) throws(QueryRefusal) -> CompiledQuery {
        try CompiledQuery(
            request.predicate, in: self.schema, home: zone?.id ?? ZoneID(name: "", owner: ""),
            requiresIndexes: request.requiresIndexes)
    }
}

/// A page as a run finds it.
struct QueryFound {
    var records: [Record] = []
    /// The records as they are stored.
    var rows: [Bytes] = []
    var next: QueryPosition?
    var counters: QueryCounters
    /// The position of each record. Only for a sorted page.
    var positions: [OrderedPosition] = []
}

typealias QueryOutcome = Result<QueryFound, QueryRefusal>

/// One zone of a query, with all that is known before reading.
struct QueryTarget {
    let zone: ZoneScope
    let query: CompiledQuery
    let planner: PathPlanner
    let visible: VisibleRecords

    func accepts(_ record: Record, _ work: inout ReadWork) -> Bool {
        guard record.type == self.query.recordType.name else { return false }
        return self.query.filters.allSatisfy { filter in
            filter.count(record, in: &work)
            return filter.matches(record)
        }
    }

    /// Every path to this query's records, best rank first. With indexes required there is one: the
    /// compiler refused the query otherwise.
    var paths: [IndexPath] {
        if self.visible != .all { return self.ownPath.map { [$0] } ?? [] }
        let paths = self.planner.paths(for: self.query.filters)
        if !paths.isEmpty { return paths }
        return [self.planner.extent ?? .records]
    }

    /// The path to the records of a caller who may read those they created; nil for other callers,
    /// and while the index of creators is being built. Filters choose no other path than names: how
    /// long it takes must not depend on records that the caller may not read.
    var ownPath: IndexPath? {
        guard case .created(let user) = self.visible else { return nil }
        return self.planner.names(for: self.query.filters) ?? self.planner.created(by: user)
    }
}
