import StratusCoding
import StratusModel
import StratusRows

/// A page of a query without sorts: in the order of one index path, zone after zone.
struct UnorderedRun {
    private var reader: QueryReader
    private let limit: Int
    private let touchCountMax: Int
    private let sizeMax: Int

    private var size = 0
    private var records: [Record] = []
    private var rows: [Bytes] = []
    /// The position of the page's last record. If one more record is found, the next page starts
    /// here.
    private var lastTaken: Place?

    /// A place on a path of the list that this page goes along.
    private struct Place {
        var zone: Bytes
        var path: Int
        var range: Int
        var last: Bytes

        /// The same for the next page, which may have another list.
        func named(in paths: [IndexPath]) -> QueryPosition {
            .named(
                zone: self.zone, path: PathName(of: self.path, in: paths), range: self.range,
                last: self.last)
        }
    }

    init(_ reader: QueryReader, _ request: QueryPageRequest) {
        self.reader = reader
        self.limit = max(1, request.limit)
        self.touchCountMax = max(1, request.touchCountMax)
        self.sizeMax = request.sizeMax
    }

    /// Asked only after a step that brings the page further: a page never ends where it began.
    private var isSpent: Bool {
        self.reader.touchCount >= self.touchCountMax || self.reader.isLate
    }

    mutating func page(
        of targets: some Sequence<QueryTarget>,
        after position: (zone: Bytes, path: PathName, range: Int, last: Bytes)?
    ) throws(StoreError) -> QueryOutcome {
        var isFirst = true
        for target in targets {
            if let position, Bytes.isOrdered(target.zone.prefix, before: position.zone) { continue }
            if !isFirst, self.isSpent {
                return .success(
                    self.found(
                        .named(zone: target.zone.prefix, path: .none, range: 0, last: [])))
            }
            isFirst = false
            let paths = target.paths
            var choice: Int
            var start: (range: Int, last: Bytes)?
            if let position, position.zone == target.zone.prefix, !position.last.isEmpty {
                guard let known = position.path.choice(in: paths) else {
                    return .failure(.markerInvalid)
                }
                choice = known
                start = (position.range, position.last)
            } else {
                choice = try self.choose(paths)
            }
            self.note(paths[choice])
            let next: Place?
            switch paths[choice].access {
            case .names(let names):
                next = try self.take(names, target, choice, after: start?.last)
            case .ranges(let ranges):
                assert(KeyRange.areDisjoint(ranges), "a path reads a row twice")
                if let start {
                    guard start.range < ranges.count, ranges[start.range].contains(start.last)
                    else { return .failure(.markerInvalid) }
                }
                next = try self.take(ranges, target, choice, after: start)
            case .records:
                next = try self.takeAll(target, choice, after: start?.last)
            }
            if let next { return .success(self.found(next.named(in: paths))) }
        }
        return .success(self.found(nil))
    }

    private func found(_ next: QueryPosition?) -> QueryFound {
        QueryFound(
            records: self.records, rows: self.rows, next: next, counters: self.reader.counters)
    }

    private mutating func note(_ path: IndexPath) {
        switch path.access {
        case .names: self.reader.counters.plan = .names
        case .ranges: self.reader.counters.plan = path.rank == 90 ? .extent : .index
        case .records: self.reader.counters.plan = .scan
        }
    }

    /// The path with the fewest rows, looked at no further than it takes to tell.
    private mutating func choose(_ paths: [IndexPath]) throws(StoreError) -> Int {
        if paths.count == 1 { return 0 }
        let touchCountMax = self.reader.touchCount + self.touchCountMax / 4
        for cap in [16, 256] {
            var best: (choice: Int, count: Int)?
            for (choice, path) in paths.enumerated() {
                let count: Int
                switch path.access {
                case .names(let names): count = names.count
                case .ranges(let ranges):
                    count = try self.reader.count(
                        ranges, cap: cap, touchCountMax: touchCountMax)
                case .records: continue
                }
                if count < min(cap, best?.count ?? .max) { best = (choice, count) }
                if count == 0 { return choice }
            }
            if let best { return best.choice }
        }
        return 0
    }

    /// Takes a record that the query accepts.
    ///
    /// - Returns: where the next page starts, once this one is full and there is more.
    private mutating func take(
        _ record: Record, _ row: Bytes, at position: Place
    ) -> Place? {
        if self.records.count == self.limit || self.size >= self.sizeMax { return self.lastTaken }
        self.records.append(record)
        self.rows.append(row)
        self.size += row.count
        self.lastTaken = position
        return nil
    }

    private mutating func take(
        _ names: [Bytes], _ target: QueryTarget, _ choice: Int, after last: Bytes?
    ) throws(StoreError) -> Place? {
        for name in names {
            if let last, !Bytes.isOrdered(last, before: name) { continue }
            let position = Place(
                zone: target.zone.prefix, path: choice, range: 0, last: name)
            if let record = try self.reader.record(name, for: target),
                target.accepts(record, &self.reader.counters.work),
                let next = self.take(record, self.reader.recordRow, at: position)
            {
                return next
            }
            if self.isSpent { return position }
        }
        return nil
    }

    private mutating func take(
        _ ranges: [KeyRange], _ target: QueryTarget, _ choice: Int,
        after start: (range: Int, last: Bytes)?
    ) throws(StoreError) -> Place? {
        var first: FirstRows?
        if ranges.contains(where: { $0.index.hasManyRows }) {
            first = FirstRows(ranges, zone: target.zone)
        }
        for number in (start?.range ?? 0)..<max(ranges.count, start?.range ?? 0) {
            let range = ranges[number]
            guard Bytes.isOrdered(range.lower, before: range.upper) else { continue }
            var lower = range.lower
            if let start, start.range == number {
                lower = start.last + [0]
            } else if number > start?.range ?? 0, self.isSpent {
                // Ranges with nothing in them were work, too. No row has a bound for its key: a
                // name follows in it.
                return Place(
                    zone: target.zone.prefix, path: choice, range: number, last: range.lower)
            }
            while true {
                let wanted = max(8, self.limit + 1 - self.records.count)
                let rest = max(1, self.touchCountMax - self.reader.touchCount)
                let chunk = try self.reader.indexRows(
                    from: lower, to: range.upper, limit: min(wanted, rest),
                    sizeMax: range.sought == nil ? .max : rest * ReadWork.bytesPerTouch)
                for row in chunk {
                    let position = Place(
                        zone: target.zone.prefix, path: choice, range: number, last: row.key)
                    if let record = try self.record(of: row, range, target, &first),
                        let next = self.take(record, self.reader.recordRow, at: position)
                    {
                        return next
                    }
                    if self.isSpent { return position }
                }
                guard let last = chunk.last else { break }
                lower = last.key + [0]
            }
        }
        return nil
    }

    /// The record an index row names, if the query accepts it and finds it here first.
    private mutating func record(
        of row: IndexRow, _ range: KeyRange, _ target: QueryTarget, _ first: inout FirstRows?
    ) throws(StoreError) -> Record? {
        self.reader.counters.work.comparisonCount += range.sought?.words.count ?? 0
        guard try range.admits(row.row) else { return nil }
        let index = range.index
        let width = IndexKey.start(target.zone, index.number).count
        guard let start = IndexKey.nameStart(in: row.key, of: index, after: width) else {
            throw StoreError(.unreadable, "index row")
        }
        let name = Bytes(row.key[start...])
        if first?.isSettled(name, at: row.key) == true { return nil }
        guard let record = try self.reader.record(name, for: target),
            target.accepts(record, &self.reader.counters.work)
        else {
            first?.refuse(name)
            return nil
        }
        return first?.takes(record, name, at: row.key, &self.reader.counters.work) ?? true
            ? record : nil
    }

    private mutating func takeAll(
        _ target: QueryTarget, _ choice: Int, after last: Bytes?
    ) throws(StoreError) -> Place? {
        var last = last
        while true {
            // Small slices: what a page does not come to is read again by the next.
            let slice = try self.reader.records(
                for: target, after: last,
                limit: min(64, max(1, self.touchCountMax - self.reader.touchCount)),
                sizeMax: min(self.sizeMax, 1 << 20))
            for (record, row) in slice.records {
                let position = Place(
                    zone: target.zone.prefix, path: choice, range: 0, last: Bytes(record.name.utf8))
                if target.accepts(record, &self.reader.counters.work),
                    let next = self.take(record, row, at: position)
                {
                    return next
                }
                if self.isSpent { return position }
            }
            guard let seen = slice.last else { return nil }
            last = seen
            if self.isSpent {
                return Place(zone: target.zone.prefix, path: choice, range: 0, last: seen)
            }
        }
    }
}

extension FieldIndex {
    /// Whether one record may have many rows in it.
    fileprivate var hasManyRows: Bool {
        self.kind == .elements || self.kind == .tokens || self.kind == .longTexts
    }
}
