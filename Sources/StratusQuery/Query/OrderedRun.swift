import StratusCoding
import StratusModel
import StratusRows

/// A page of a sorted query.
///
/// The order is total: sort keys, then names, then zones. A page is "what follows this position",
/// so any plan may continue what another began. For each zone there are two plans, and the better
/// one for the data at hand is found by trying. *Gather* reads the records that a selective filter
/// names and sorts them. *Walk* reads the sort's own index and keeps what the filters accept.
/// Several zones are merged.
struct OrderedRun {
    struct Item {
        var position: OrderedPosition
        var record: Record
        /// The row as it is stored.
        var row: Bytes

        var size: Int { self.row.count }
    }

    private var reader: QueryReader
    private let order: QueryOrder
    private let limit: Int
    private let touchCountMax: Int
    private let beginTouchCountMax: Int
    private let sizeMax: Int
    private let wantsPlaces: Bool

    init(_ reader: QueryReader, _ order: QueryOrder, _ request: QueryPageRequest) {
        self.wantsPlaces = request.wantsPlaces
        self.reader = reader
        self.order = order
        self.limit = max(1, request.limit)
        self.touchCountMax = max(1, request.touchCountMax)
        self.beginTouchCountMax = max(request.touchCountMax, request.beginTouchCountMax)
        self.sizeMax = request.sizeMax
    }

    mutating func page(
        of targets: some Sequence<QueryTarget>, count: Int, after: OrderedPosition?
    ) throws(StoreError) -> QueryOutcome {
        let order = self.order
        var items: [Item] = []
        // The nearest position that some zone has not looked beyond; nil: all have seen their end.
        var frontier: OrderedPosition?
        let share = max(1, self.touchCountMax / max(1, count))
        let start = self.reader.touchCount
        for target in targets {
            // All zones together may take so much to begin; each may take its share.
            let begin = max(start + self.beginTouchCountMax, self.reader.touchCount + share)
            var zone = OrderedZone(
                target, order, after: after, want: self.limit + 1, budget: share,
                beginningBefore: begin, sizeMax: self.sizeMax, self.reader)
            if let refusal = try zone.run() { return .failure(refusal) }
            self.reader = zone.reader
            // One zone at a time: what several zones found is cut before the next adds to it.
            if items.isEmpty { items = zone.takeItems() } else { items += zone.items }
            if let end = zone.frontier,
                frontier.map({ order.isOrdered(end, before: $0) }) ?? true
            {
                frontier = end
            }
            if order.keepFirst(self.limit + 1, sizeMax: self.sizeMax, of: &items),
                let end = items.last?.position,
                frontier.map({ order.isOrdered(end, before: $0) }) ?? true
            {
                frontier = end
            }
        }
        if let frontier, let last = items.last?.position, order.isOrdered(frontier, before: last) {
            items.removeAll { order.isOrdered(frontier, before: $0.position) }
        }
        // They are in order since the last zone was added.
        let isCut = QueryOrder.cut(self.limit, sizeMax: self.sizeMax, of: &items)
        let next = isCut ? items.last?.position : frontier
        return .success(
            QueryFound(
                records: items.map(\.record), rows: items.map(\.row),
                next: next.map(QueryPosition.ordered), counters: self.reader.counters,
                positions: self.wantsPlaces ? items.map(\.position) : []))
    }
}

/// One zone's part of a sorted page: its first records after a position.
struct OrderedZone {
    /// The touches that sorting the caller's own records may always cost, however small the budget.
    private static let ownTouchCountMin = 10_000

    private let target: QueryTarget
    private let order: QueryOrder
    private let after: OrderedPosition?
    private let want: Int
    private var spentMax: Int
    private let budget: Int
    /// The touches of the page at which a walk that has found nothing gives up.
    private let beginMax: Int
    /// A walk gave up before it came further than the last page.
    private var isStuck = false
    private let sizeMax: Int
    /// Stored bytes of `items`.
    private var size = 0

    private(set) var reader: QueryReader
    /// The records in order; `want` at most, unless a whole group was taken.
    private(set) var items: [OrderedRun.Item] = []
    /// Everything up to here has been looked at; nil once that is everything.
    private(set) var frontier: OrderedPosition?

    init(
        _ target: QueryTarget, _ order: QueryOrder, after: OrderedPosition?, want: Int, budget: Int,
        beginningBefore beginMax: Int, sizeMax: Int, _ reader: QueryReader
    ) {
        self.target = target
        self.order = order
        self.after = after
        self.want = want
        self.budget = budget
        self.beginMax = beginMax
        self.sizeMax = sizeMax
        self.reader = reader
        self.spentMax = reader.touchCount + budget
    }

    /// Hands its records over, so that they are not copied.
    mutating func takeItems() -> [OrderedRun.Item] {
        defer { self.items = [] }
        return self.items
    }

    /// Asked only after a step that brings the page further.
    private var isSpent: Bool { self.isOver || self.reader.isLate }
    private var isOver: Bool { self.reader.touchCount >= self.spentMax }
    private var isFull: Bool { self.items.count >= self.want || self.size >= self.sizeMax }

    mutating func run() throws(StoreError) -> QueryRefusal? {
        if let path = self.target.ownPath {
            // One plan, whatever the filters: the others' records must not be told from how long it
            // takes.
            self.reader.counters.plan = .gathered
            // There is no other plan: the small share of one bucket of many must not refuse it.
            self.spentMax = max(self.spentMax, self.reader.touchCount + Self.ownTouchCountMin)
            if try self.gather(path, isLast: true) { return nil }
            return .invalid("More records of one's own than one page may sort")
        }
        if try self.runPlans() { return nil }
        if self.isStuck { return .tooManyPlaces }
        return .invalid("More than \(self.budget) records to sort without an index")
    }

    /// - Returns: false where nothing but sorting everything would do, and there is too much of it;
    ///   and where a walk by distance cannot begin.
    private mutating func runPlans() throws(StoreError) -> Bool {
        let first = self.target.query.sorts.first
        // A filter on the first sort's own field bounds the walk already: no path is shorter.
        let filters = self.target.query.filters.filter {
            first?.centre != nil || $0.target != first?.target
        }
        var paths = self.target.planner.paths(for: filters)
        if let path = try self.shortest(paths) {
            self.reader.counters.plan = .gathered
            if case .names = path.access { self.reader.counters.plan = .names }
            if try self.gather(path) { return true }
        }
        var levels: [SortedRows] = []
        for sort in self.target.query.sorts {
            guard
                let rows = SortedRows(
                    sort, self.target.planner, filters: self.target.query.filters)
            else { break }
            levels.append(rows)
        }
        guard levels.count == self.target.query.sorts.count else {
            // Only where no index is required: everything is gathered and sorted, or refused.
            if paths.isEmpty { paths = self.target.paths }
            self.reader.counters.plan = .scan
            return try self.gather(paths[0], isLast: true)
        }
        let start = self.reader.touchCount
        let end = start + self.budget
        self.spentMax = paths.isEmpty ? end : start + self.budget / 2
        self.reader.counters.plan = .ordered
        let isFinished = try self.walk(levels, 0, fixed: [])
        if isFinished {
            self.frontier = nil
            return true
        }
        if self.isFull || paths.isEmpty { return !self.isStuck }
        // The walk found too little in half the budget: perhaps a filter's index is short enough.
        let walked = (self.items, self.frontier)
        self.spentMax = self.isStuck ? self.reader.touchCount + self.budget : end
        if try self.gather(paths[0]) {
            self.reader.counters.plan = .gathered
            return true
        }
        (self.items, self.frontier) = walked
        return !self.isStuck
    }

    /// A path so short that sorting what it names costs less than anything else.
    private mutating func shortest(_ paths: [IndexPath]) throws(StoreError) -> IndexPath? {
        let cap = min(max(32, 2 * self.want), max(1, self.budget / 4))
        let touchCountMax = self.reader.touchCount + self.budget / 4
        var best: (path: IndexPath, count: Int)?
        for path in paths {
            let count: Int
            switch path.access {
            case .names: return path
            case .ranges(let ranges):
                count = try self.reader.count(ranges, cap: cap, touchCountMax: touchCountMax)
            case .records: continue
            }
            if count < min(cap, best?.count ?? .max) { best = (path, count) }
            if count == 0 { break }
        }
        return best?.path
    }

    // MARK: Gather

    /// Reads everything a path names, and sorts it.
    ///
    /// - Parameter isLast: there is no other plan: only work ends it, and not the time.
    /// - Returns: false if that was more than the budget; then nothing is taken.
    private mutating func gather(
        _ path: IndexPath, isLast: Bool = false
    ) throws(StoreError) -> Bool {
        func isSpent(_ zone: Self) -> Bool { isLast ? zone.isOver : zone.isSpent }
        var found: [OrderedRun.Item] = []
        var isCut = false
        switch path.access {
        case .names(let names):
            for (position, name) in names.enumerated() {
                if position > 0, isSpent(self) { return false }
                try self.collect(name, fixed: [], into: &found)
                isCut = self.prune(&found) || isCut
            }
        case .records:
            var last: Bytes?
            while true {
                let slice = try self.reader.records(
                    for: self.target, after: last, limit: 64, sizeMax: min(self.sizeMax, 1 << 20))
                for (record, row) in slice.records {
                    self.collect(record, row, fixed: [], into: &found)
                }
                isCut = self.prune(&found) || isCut
                guard let seen = slice.last else { break }
                last = seen
                if isSpent(self) { return false }
            }
        case .ranges(let ranges):
            var names = Set<Bytes>()
            for range in ranges {
                let width = IndexKey.start(self.target.zone, range.index.number).count
                var lower = range.lower
                while true {
                    let rest = max(1, self.spentMax - self.reader.touchCount)
                    let chunk = try self.reader.indexRows(
                        from: lower, to: range.upper, limit: min(256, rest),
                        sizeMax: range.sought == nil ? .max : rest * ReadWork.bytesPerTouch)
                    for row in chunk {
                        self.reader.counters.work.comparisonCount +=
                            range.sought?.words.count ?? 0
                        guard try range.admits(row.row) else { continue }
                        guard
                            let start = IndexKey.nameStart(
                                in: row.key, of: range.index, after: width)
                        else { throw StoreError(.unreadable, "index row") }
                        let name = Bytes(row.key[start...])
                        if names.insert(name).inserted {
                            try self.collect(name, fixed: [], into: &found)
                            isCut = self.prune(&found) || isCut
                            if isSpent(self), row.key != chunk.last?.key { return false }
                        }
                    }
                    guard let last = chunk.last else { break }
                    lower = last.key + [0]
                    if isSpent(self) { return false }
                }
            }
        }
        isCut = self.order.keepFirst(self.want, sizeMax: self.sizeMax, of: &found) || isCut
        self.items = found
        self.frontier = isCut ? found.last?.position : nil
        return true
    }

    /// Lets go of what can no longer be on this page, once it is as much again as what can.
    private func prune(_ found: inout [OrderedRun.Item]) -> Bool {
        let isLong = found.count >= 2 * self.want
        // Adding up is looked at now and then: a record is a megabyte at most.
        guard isLong || found.count % 16 == 0 && Self.size(of: found) >= 2 * self.sizeMax else {
            return false
        }
        return self.order.keepFirst(self.want, sizeMax: self.sizeMax, of: &found)
    }

    private static func size(of items: [OrderedRun.Item]) -> Int {
        items.reduce(0) { $0 + $1.size }
    }

    private mutating func collect(
        _ name: Bytes, fixed: [Bytes], into found: inout [OrderedRun.Item]
    ) throws(StoreError) {
        if let record = try self.reader.record(name, for: self.target) {
            self.collect(record, self.reader.recordRow, name: name, fixed: fixed, into: &found)
        }
    }

    private mutating func collect(
        _ record: Record, _ row: Bytes, name: Bytes? = nil, fixed: [Bytes],
        into found: inout [OrderedRun.Item]
    ) {
        guard self.target.accepts(record, &self.reader.counters.work) else { return }
        self.target.query.count(record, in: &self.reader.counters.work)
        let keys = self.target.query.keys(of: record)
        guard keys.starts(with: fixed) else { return }
        let position = OrderedPosition(
            keys: keys, name: name ?? Bytes(record.name.utf8), zone: self.target.zone.prefix)
        if let after = self.after, !self.order.isOrdered(after, before: position) { return }
        found.append(OrderedRun.Item(position: position, record: record, row: row))
    }

    // MARK: Walk

    /// Walks one sort's rows with the keys of the sorts before it `fixed`.
    ///
    /// At the last sort the rows are the order. Before that, records with equal keys form groups: a
    /// small group is gathered and sorted, a large one is walked by the next sort.
    /// - Returns: whether the end was reached; if not, the page is full or its budget spent.
    private mutating func walk(
        _ levels: [SortedRows], _ level: Int, fixed: [Bytes]
    ) throws(StoreError) -> Bool {
        if level == levels.count - 1 { return try self.walkLast(levels[level], fixed: fixed) }
        let groupMax = min(256, max(1, self.budget / 8))
        var from = self.start(level, fixed: fixed, isLast: false)
        while true {
            let slice = try levels[level].next(
                from, limit: groupMax + 1, within: self.bound, &self.reader)
            let rows = slice.rows
            self.allowPage(levels[level])
            guard let first = rows.first, let last = rows.last else {
                return self.end(of: slice)
            }
            var position = 0
            let isEnd = rows.count <= groupMax && !slice.isCut
            // The last key's group may go on beyond what was read.
            while position < rows.count, isEnd || rows[position].key != last.key {
                let key = rows[position].key
                let group = rows[position...].prefix { $0.key == key }
                if try !self.takeGroup(group, fixed: fixed + [key]) {
                    // Its records are too large to be sorted at once. Where the page has come
                    // further, it ends before them; otherwise they are walked by the next sort.
                    if self.frontier != nil { return false }
                    guard try self.walk(levels, level + 1, fixed: fixed + [key]) else {
                        return false
                    }
                    self.frontier = self.end(of: fixed + [key])
                }
                position += group.count
                if self.isFull || self.isSpent { return false }
            }
            if isEnd { return true }
            if position == 0 {
                guard try self.walk(levels, level + 1, fixed: fixed + [first.key]) else {
                    return false
                }
                self.frontier = self.end(of: fixed + [first.key])
                from = .afterAll(first.key)
            } else {
                from = .at(last.key)
            }
            if self.isSpent { return false }
        }
    }

    private mutating func walkLast(
        _ rows: SortedRows, fixed: [Bytes]
    ) throws(StoreError) -> Bool {
        var from = self.start(fixed.count, fixed: fixed, isLast: true)
        var size = min(self.want - self.items.count, 200)
        while true {
            let slice = try rows.next(
                from, limit: max(1, min(size, self.spentMax - self.reader.touchCount)),
                within: self.bound, &self.reader)
            self.allowPage(rows)
            guard let last = slice.rows.last else { return self.end(of: slice) }
            var reached: SortedRow?
            for row in slice.rows {
                let count = self.items.count
                var items = self.takeItems()
                try self.collect(row.name, fixed: fixed, into: &items)
                self.items = items
                if self.items.count > count { self.size += self.items[count].size }
                // Where the last page ended in another zone, one row may lie before that end.
                if let after = self.after,
                    self.order.isOrdered(self.position(of: row, fixed), before: after)
                {
                    continue
                }
                reached = row
                if self.isFull || self.isSpent {
                    self.frontier = self.position(of: row, fixed)
                    return false
                }
            }
            if let reached { self.frontier = self.position(of: reached, fixed) }
            from = .after(last.key, name: last.name)
            size = min(size * 2, 200)
        }
    }

    private func position(of row: SortedRow, _ fixed: [Bytes]) -> OrderedPosition {
        OrderedPosition(keys: fixed + [row.key], name: row.name, zone: self.target.zone.prefix)
    }

    /// - Returns: false where its records come to more than half of what is left; then nothing is
    ///   taken.
    private mutating func takeGroup(
        _ group: ArraySlice<SortedRow>, fixed: [Bytes]
    ) throws(StoreError) -> Bool {
        var found: [OrderedRun.Item] = []
        var isCut = false
        let start = self.reader.touchCount
        // Small records are read all the same, so that pages with small budgets do not read them
        // twice.
        let touchCountMax = max(2 * group.count, (self.spentMax - start) / 2)
        for row in group {
            if self.reader.touchCount - start > touchCountMax { return false }
            try self.collect(row.name, fixed: fixed, into: &found)
            isCut = self.prune(&found) || isCut
        }
        isCut = self.order.keepFirst(self.want, sizeMax: self.sizeMax, of: &found) || isCut
        self.items += found
        self.size += Self.size(of: found)
        // What is cut has filled the page.
        self.frontier = isCut ? found.last?.position : self.end(of: fixed)
        return true
    }

    private var bound: SortedBound {
        // A page that has come further ends where it is.
        SortedBound(
            touchCountMax: self.spentMax,
            beginTouchCountMax: self.frontier == nil ? self.beginMax : self.spentMax)
    }

    /// Where beginning has used the budget up, a page still gets a quarter of it: one that has a
    /// single record would begin as dearly for each.
    private mutating func allowPage(_ rows: SortedRows) {
        guard self.frontier == nil, rows.sort.centre != nil else { return }
        self.spentMax = max(self.spentMax, self.reader.touchCount + self.budget / 4)
    }

    /// What a slice without rows means.
    /// - Returns: whether the end was reached.
    private mutating func end(of slice: SortedSlice) -> Bool {
        if slice.isCut, self.frontier == nil { self.isStuck = true }
        return !slice.isCut
    }

    private func end(of keys: [Bytes]) -> OrderedPosition {
        OrderedPosition(keys: keys, name: nil, zone: self.target.zone.prefix)
    }

    /// The start of a level: the beginning, or the end of the last page if that page ended in this
    /// group.
    private func start(_ level: Int, fixed: [Bytes], isLast: Bool) -> SortedStart {
        guard let after = self.after, after.keys.count > level,
            Array(after.keys.prefix(level)) == fixed
        else { return .beginning }
        let key = after.keys[level]
        guard after.keys.count == level + 1 else { return .at(key) }
        guard let name = after.name else { return .afterAll(key) }
        guard isLast else { return .at(key) }
        if after.zone == self.target.zone.prefix { return .after(key, name: name) }
        // The page ended in another zone: this one may have a record of the same name yet.
        return .from(key, name: name)
    }
}

extension QueryOrder {
    /// Sorts and keeps the first `countMax`, or as many as reach `sizeMax` bytes.
    ///
    /// - Returns: whether anything was let go.
    func keepFirst(
        _ countMax: Int, sizeMax: Int, of items: inout [OrderedRun.Item]
    ) -> Bool {
        // A walk finds them in order.
        let isInOrder = items.indices.dropFirst().allSatisfy {
            !self.isOrdered(items[$0].position, before: items[$0 - 1].position)
        }
        if !isInOrder { items.sort { self.isOrdered($0.position, before: $1.position) } }
        return Self.cut(countMax, sizeMax: sizeMax, of: &items)
    }

    /// The same of items that are in order.
    static func cut(_ countMax: Int, sizeMax: Int, of items: inout [OrderedRun.Item]) -> Bool {
        var size = 0
        var kept = 0
        while kept < min(items.count, countMax), size < sizeMax {
            size += items[kept].size
            kept += 1
        }
        guard kept < items.count else { return false }
        items.removeSubrange(kept...)
        return true
    }
}
