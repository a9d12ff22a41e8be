import StratusCoding
import StratusModel

/// A record's place in one sort: the key as ``CompiledSort/key(of:)`` makes it, and the name.
struct SortedRow: Sendable, Equatable {
    var key: Bytes
    var name: Bytes
}

/// The point at which one sort continues.
enum SortedStart: Sendable, Equatable {
    case beginning
    /// With the first record of this key.
    case at(Bytes)
    /// With the next record of this key.
    case after(Bytes, name: Bytes)
    /// With the record of this key and name, or the next.
    case from(Bytes, name: Bytes)
    /// With the next key.
    case afterAll(Bytes)

    var key: Bytes? {
        switch self {
        case .beginning: nil
        case .at(let key), .after(let key, _), .from(let key, _), .afterAll(let key): key
        }
    }
}

/// Rows of one sort, in order.
struct SortedSlice: Sendable, Equatable {
    var rows: [SortedRow] = []
    /// The reading ended at its bound: more rows may follow, although these are fewer than asked
    /// for.
    var isCut = false
}

/// The work after which the reading of one slice ends.
struct SortedBound: Sendable {
    /// Once a row was found.
    var touchCountMax: Int
    /// Before a row was found. The reading then has come nowhere, and the next page would not come
    /// further.
    var beginTouchCountMax: Int

    func isReached(by reader: QueryReader, found count: Int) -> Bool {
        if count == 0 { return reader.touchCount >= self.beginTouchCountMax }
        return reader.touchCount >= self.touchCountMax || reader.isLate
    }
}

/// Every record of a type in the order of one sort, read from index rows.
///
/// Values come from one index, the records that lack the field from another: before the values in
/// ascending order, after the places in order of distance.
struct SortedRows: Sendable {
    let sort: CompiledSort
    let zone: ZoneScope
    let values: FieldIndex
    let absence: FieldIndex?
    /// The range of values that filters on the same field leave; nil: all.
    let bound: KeyRange?

    private let start: Bytes

    /// Nil where an index is missing or being built.
    init?(_ sort: CompiledSort, _ planner: PathPlanner, filters: [CompiledFilter]) {
        guard let values = planner.ready(sort.centre == nil ? .values : .cells, sort.field) else {
            return nil
        }
        self.sort = sort
        self.zone = planner.zone
        self.values = values
        self.start = IndexKey.start(planner.zone, values.number)
        let own = filters.filter { $0.target == sort.target }
        if case .system(let field) = sort.target, field.isAlwaysPresent {
            self.absence = nil
        } else {
            guard let absence = planner.ready(.absence, sort.field) else { return nil }
            // A filter never matches a record that lacks its field.
            self.absence = own.isEmpty ? absence : nil
        }
        var bound: KeyRange?
        if sort.centre == nil, !own.isEmpty {
            var narrowed = planner.whole(values)
            for filter in own {
                let ranges = planner.valueRanges(filter.test, values)
                guard let first = ranges.first, let last = ranges.last else {
                    narrowed.upper = narrowed.lower
                    continue
                }
                if Bytes.isOrdered(narrowed.lower, before: first.lower) {
                    narrowed.lower = first.lower
                }
                if Bytes.isOrdered(last.upper, before: narrowed.upper) {
                    narrowed.upper = last.upper
                }
            }
            bound = narrowed
        }
        self.bound = bound
    }

    /// The next `limit` rows; fewer only at the end, or if the slice is cut.
    func next(
        _ from: SortedStart, limit: Int, within bound: SortedBound, _ reader: inout QueryReader
    ) throws(StoreError) -> SortedSlice {
        var rows: [SortedRow] = []
        // The parts in the order of their keys: missing, values; or places, missing.
        let isMissingFirst = (self.sort.centre == nil) == self.sort.ascending
        for isMissing in isMissingFirst ? [true, false] : [false, true] {
            let left = limit - rows.count
            guard left > 0 else { break }
            var from = rows.isEmpty ? from : .beginning
            if let key = from.key {
                if (key == self.sort.absent) != isMissing {
                    // Another part's key: before this part, or past it.
                    if isMissing == isMissingFirst { continue }
                    from = .beginning
                }
            }
            if isMissing {
                rows += try self.missing(from, limit: left, &reader)
            } else if self.sort.centre == nil {
                rows += try self.valued(from, limit: left, &reader)
            } else {
                var bound = bound
                // The page has come further, and may end here.
                if !rows.isEmpty { bound.beginTouchCountMax = bound.touchCountMax }
                let slice = try DistanceWalk(self).next(
                    from, limit: left, within: bound, &reader)
                rows += slice.rows
                // What follows the places is not next while some of them may be.
                if slice.isCut { return SortedSlice(rows: rows, isCut: true) }
            }
        }
        return SortedSlice(rows: rows)
    }

    private func missing(
        _ from: SortedStart, limit: Int, _ reader: inout QueryReader
    ) throws(StoreError) -> [SortedRow] {
        guard let absence = self.absence else { return [] }
        let start = IndexKey.start(self.zone, absence.number)
        var lower = start
        var upper = OrderedKey.successor(ofPrefix: start)
        switch from {
        case .beginning, .at: break
        case .afterAll: return []
        case .after(_, let name):
            if self.sort.ascending { lower = start + name + [0] } else { upper = start + name }
        case .from(_, let name):
            if self.sort.ascending { lower = start + name } else { upper = start + name + [0] }
        }
        return try reader.indexRows(
            from: lower, to: upper, descending: !self.sort.ascending, limit: limit
        ).map { SortedRow(key: self.sort.absent, name: Bytes($0.key[start.count...])) }
    }

    private func valued(
        _ from: SortedStart, limit: Int, _ reader: inout QueryReader
    ) throws(StoreError) -> [SortedRow] {
        var lower = self.bound?.lower ?? self.start
        var upper = self.bound?.upper ?? OrderedKey.successor(ofPrefix: self.start)
        if let key = from.key {
            let exact = self.start + key.dropFirst()
            let edge: Bytes
            switch (from, self.sort.ascending) {
            case (.at, true): edge = exact
            case (.at, false): edge = OrderedKey.successor(ofPrefix: exact)
            case (.after(_, let name), true): edge = exact + name + [0]
            case (.after(_, let name), false): edge = exact + name
            case (.from(_, let name), true): edge = exact + name
            case (.from(_, let name), false): edge = exact + name + [0]
            case (_, true): edge = OrderedKey.successor(ofPrefix: exact)
            case (_, false): edge = exact
            }
            if self.sort.ascending {
                if Bytes.isOrdered(lower, before: edge) { lower = edge }
            } else if Bytes.isOrdered(edge, before: upper) {
                upper = edge
            }
        }
        var rows: [SortedRow] = []
        for row in try reader.indexRows(
            from: lower, to: upper, descending: !self.sort.ascending, limit: limit)
        {
            guard
                let name = IndexKey.nameStart(
                    in: row.key, of: self.values, after: self.start.count)
            else { throw StoreError(.unreadable, "index row") }
            var key = Bytes()
            key.reserveCapacity(name - self.start.count + 1)
            key.append(CompiledSort.present)
            key.append(contentsOf: row.key[self.start.count..<name])
            rows.append(SortedRow(key: key, name: Bytes(row.key[name...])))
        }
        return rows
    }
}
