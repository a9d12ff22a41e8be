import StratusCoding
import StratusModel

/// Finds places in the order of their distance from a centre, near or far first.
///
/// Cells wait in the order of the least distance they could hold; the first is read if it holds few
/// rows and split into four otherwise. A row is certain once nothing that waits could come before
/// it. Cells wholly before the start are dropped unread. Those that cross the distance of the start
/// are opened before the first row is certain: that is what a later page costs more than the first.
struct DistanceWalk {
    private let rows: SortedRows
    private let centre: SpherePoint
    private let start: Bytes
    private let ascending: Bool

    /// A cell with at most this many rows is read whole.
    private static let cellRowCountMax = 32

    init(_ rows: SortedRows) {
        self.rows = rows
        guard let centre = rows.sort.centre else {
            preconditionFailure("a walk by distance needs a centre")
        }
        self.centre = centre
        self.start = IndexKey.start(rows.zone, rows.values.number)
        self.ascending = rows.sort.ascending
    }

    /// Something that waits: nothing in it comes before its score and name.
    private struct Waiting {
        enum What {
            case cell(GeoCell)
            /// The rest of a finest cell after a name.
            case rest(GeoCell)
            case row(SortedRow)
        }
        var what: What
        /// The squared chord, negated where far comes first.
        var score: Double
        /// Nil: before every name.
        var name: Bytes?
    }

    /// Returns the next `limit` rows, or fewer: the reading ends at its bound, or everything was
    /// read.
    func next(
        _ from: SortedStart, limit: Int, within bound: SortedBound, _ reader: inout QueryReader
    ) throws(StoreError) -> SortedSlice {
        let origin = from.key.flatMap(self.score)
        var waiting = Heap<Waiting>(self.isOrdered)
        for face in GeoCell.faces { self.add(face, from: origin, to: &waiting) }
        var found: [SortedRow] = []
        while found.count < limit, let next = waiting.popFirst() {
            // Every turn of this loop takes a bounded part of a cell.
            if case .row = next.what {
            } else if bound.isReached(by: reader, found: found.count) {
                return SortedSlice(rows: found, isCut: true)
            }
            switch next.what {
            case .row(let row):
                found.append(row)
            case .rest(let cell):
                try self.readRest(of: cell, after: next.name, limit, from, to: &waiting, &reader)
            case .cell(let cell) where cell.level == GeoCell.levelMax:
                try self.readRest(of: cell, after: nil, limit, from, to: &waiting, &reader)
            case .cell(let cell):
                let rows = try self.read(cell, limit: Self.cellRowCountMax + 1, &reader)
                if rows.count > Self.cellRowCountMax {
                    for child in cell.children { self.add(child, from: origin, to: &waiting) }
                } else {
                    for row in rows where self.isAfter(row, from) {
                        waiting.insert(
                            Waiting(
                                what: .row(row), score: self.score(row.key) ?? 0, name: row.name))
                    }
                }
            }
        }
        return SortedSlice(rows: found)
    }

    private func add(_ cell: GeoCell, from origin: Double?, to waiting: inout Heap<Waiting>) {
        var first: Double
        var last: Double
        if cell.level == GeoCell.levelMax {
            first = cell.middle.squaredChord(to: self.centre)
            last = first
        } else {
            (first, last) = cell.bounds(from: self.centre)
        }
        if !self.ascending { (first, last) = (-last, -first) }
        if let origin, last < origin { return }
        waiting.insert(Waiting(what: .cell(cell), score: first, name: nil))
    }

    /// All places of a finest cell are one place: their order is that of their names.
    private func readRest(
        of cell: GeoCell, after name: Bytes?, _ limit: Int, _ from: SortedStart,
        to waiting: inout Heap<Waiting>, _ reader: inout QueryReader
    ) throws(StoreError) {
        let key = CompiledSort.key(distanceFrom: self.centre, code: cell.codes.lowerBound)
        var name = name
        var isIncluded = false
        switch from {
        case .afterAll(key): return
        case .after(key, let last) where name == nil: name = last
        case .from(key, let first) where name == nil: (name, isIncluded) = (first, true)
        default: break
        }
        let rows = try self.read(
            cell, after: name, isIncluded: isIncluded, limit: limit, &reader)
        for row in rows {
            waiting.insert(
                Waiting(what: .row(row), score: self.score(row.key) ?? 0, name: row.name))
        }
        if rows.count == limit, let last = rows.last {
            waiting.insert(
                Waiting(what: .rest(cell), score: self.score(key) ?? 0, name: last.name))
        }
    }

    private func read(
        _ cell: GeoCell, after name: Bytes? = nil, isIncluded: Bool = false, limit: Int,
        _ reader: inout QueryReader
    ) throws(StoreError) -> [SortedRow] {
        let codes = cell.codes
        var lower = self.start
        OrderedKey.append(bits: codes.lowerBound, to: &lower)
        var upper = self.start
        OrderedKey.append(bits: codes.upperBound + 1, to: &upper)
        if let name {
            let edge = self.ascending == isIncluded ? lower + name : lower + name + [0]
            if self.ascending { lower = edge } else { upper = edge }
        }
        let width = self.start.count
        return try reader.indexRows(
            from: lower, to: upper, descending: !self.ascending, limit: limit
        ).map { row in
            var code: UInt64 = 0
            for byte in row.key[width..<(width + 8)] { code = code << 8 | UInt64(byte) }
            return SortedRow(
                key: CompiledSort.key(distanceFrom: self.centre, code: code),
                name: Bytes(row.key[(width + 8)...]))
        }
    }

    private func isAfter(_ row: SortedRow, _ from: SortedStart) -> Bool {
        guard let key = from.key else { return true }
        let isBefore = Bytes.isOrdered(
            self.ascending ? row.key : key, before: self.ascending ? key : row.key)
        if isBefore { return false }
        if row.key != key { return true }
        switch from {
        case .beginning, .at: return true
        case .afterAll: return false
        case .after(_, let name):
            return Bytes.isOrdered(
                self.ascending ? name : row.name, before: self.ascending ? row.name : name)
        case .from(_, let name):
            return !Bytes.isOrdered(
                self.ascending ? row.name : name, before: self.ascending ? name : row.name)
        }
    }

    private func score(_ key: Bytes) -> Double? {
        guard key.count == 9 else { return nil }
        var bits: UInt64 = 0
        for byte in key[1...] { bits = bits << 8 | UInt64(byte) }
        // Chords are never negative: their ordered form has the sign bit set.
        let chord = Double(bitPattern: bits & ~(1 << 63))
        return self.ascending ? chord : -chord
    }

    private func isOrdered(_ one: Waiting, _ other: Waiting) -> Bool {
        if one.score != other.score { return one.score < other.score }
        switch (one.name, other.name) {
        case (nil, nil): return false
        // What may hold any name is opened before a name is certain.
        case (nil, _?): return true
        case (_?, nil): return false
        case (let first?, let second?):
            if first != second {
                return self.ascending
                    ? Bytes.isOrdered(first, before: second)
                    : Bytes.isOrdered(second, before: first)
            }
            // A row before the rest that follows it.
            if case .row = one.what, case .rest = other.what { return true }
            return false
        }
    }
}

/// A binary heap: the first element by an order.
struct Heap<Element> {
    private var elements: [Element] = []
    private let isOrdered: (Element, Element) -> Bool

    init(_ isOrdered: @escaping (Element, Element) -> Bool) { self.isOrdered = isOrdered }

    mutating func insert(_ element: Element) {
        self.elements.append(element)
        var child = self.elements.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard self.isOrdered(self.elements[child], self.elements[parent]) else { return }
            self.elements.swapAt(child, parent)
            child = parent
        }
    }

    mutating func popFirst() -> Element? {
        guard let first = self.elements.first else { return nil }
        let last = self.elements.removeLast()
        guard !self.elements.isEmpty else { return first }
        self.elements[0] = last
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < self.elements.count else { return first }
            if child + 1 < self.elements.count,
                self.isOrdered(self.elements[child + 1], self.elements[child])
            {
                child += 1
            }
            guard self.isOrdered(self.elements[child], self.elements[parent]) else { return first }
            self.elements.swapAt(child, parent)
            parent = child
        }
    }
}
