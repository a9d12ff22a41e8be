import StratusCoding
import StratusModel
import StratusRows

/// Decides at which row of a path a record is taken, if it has several. The first range that holds
/// one of its rows decides, and in it the first key. So the record is on no page twice, and no page
/// needs to remember.
///
/// What is computed from a record is kept for the page, which is as long as its work allows.
struct FirstRows {
    let indexes: [FieldIndex]
    /// The ranges, sorted by their lower bounds. They are disjoint: each is one word's or one
    /// element's, or that of all which share its cut key.
    private let ranges: [(range: KeyRange, number: Int)]
    private let zone: ZoneScope
    /// By record name: the one row at which it is taken; nil where the query does not accept it.
    private var decided: [Bytes: Bytes?] = [:]

    init(_ ranges: [KeyRange], zone: ZoneScope) {
        self.zone = zone
        self.ranges = ranges.enumerated().map { ($0.element, $0.offset) }.sorted {
            Bytes.isOrdered($0.range.lower, before: $1.range.lower)
        }
        var indexes: [FieldIndex] = []
        for range in ranges where !indexes.contains(where: { $0.number == range.index.number }) {
            indexes.append(range.index)
        }
        self.indexes = indexes
    }

    /// Whether the record was looked at on this page, and is not to be taken at this row.
    func isSettled(_ name: Bytes, at key: Bytes) -> Bool {
        guard let decided = self.decided[name] else { return false }
        return decided != key
    }

    mutating func refuse(_ name: Bytes) { self.decided[name] = .some(nil) }

    /// Whether `record` is to be taken at the row of this key.
    mutating func takes(
        _ record: Record, _ name: Bytes, at key: Bytes, _ work: inout ReadWork
    ) -> Bool {
        // A text has either rows for its words or one for all of them: in one field's indexes,
        // the row that summarises it is its only one.
        if self.isOneText, self.ranges.contains(where: { $0.range.isSummary(key) }) {
            self.decided[name] = .some(key)
            return true
        }
        let rows = IndexMaintenance.rows(of: record, for: self.indexes, zone: self.zone)
        work.comparisonCount += rows.count + self.ranges.count
        for index in self.indexes {
            work.cutByteCount += Self.textSize(record.value(of: index.field))
        }
        let first = self.first(of: rows)
        self.decided[name] = .some(first)
        return first == key
    }

    private var isOneText: Bool {
        self.indexes.allSatisfy {
            $0.field == self.indexes[0].field && ($0.kind == .tokens || $0.kind == .longTexts)
        }
    }

    /// One walk over both: neither is gone through again for the other.
    ///
    /// A summary that does not admit its record was passed over, and is no row of it here.
    private func first(of rows: [IndexRow]) -> Bytes? {
        var best: (number: Int, key: Bytes)?
        var position = 0
        for (range, number) in self.ranges {
            while position < rows.count,
                Bytes.isOrdered(rows[position].key, before: range.lower)
            {
                position += 1
            }
            guard position < rows.count else { break }
            let row = rows[position]
            if number < best?.number ?? .max, Bytes.isOrdered(row.key, before: range.upper),
                (try? range.admits(row.row)) ?? true
            {
                best = (number, row.key)
            }
        }
        return best?.key
    }

    private static func textSize(_ value: FieldValue?) -> Int {
        Tokeniser.texts(value).reduce(0) { $0 + $1.utf8.count }
    }
}

extension KeyRange {
    /// Whether the key is in this range, and its row summarises a long text.
    fileprivate func isSummary(_ key: Bytes) -> Bool {
        self.index.kind == .longTexts && self.contains(key)
    }
}
