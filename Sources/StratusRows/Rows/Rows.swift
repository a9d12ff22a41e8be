package import StratusModel

/// The rows of one partition: ordered tables of keys and rows, both of them bytes. Whatever decides
/// about rows reads and writes them here.
///
/// Beneath lies a ``RowFile``, or nothing: then all rows are in memory, as tests and benchmarks
/// want it. A batch is what was put and removed since the last ``publish()``. It stays in memory
/// until then; only a large one is given to the file's transaction before.
///
/// Promises:
/// - A read sees every put and remove before it. A scan shows memory and file as one sorted list,
///   without any removed row.
/// - ``discard()`` brings back the rows and the digest of the last ``publish()``.
/// - After an error that ``put(_:_:_:)``, ``publish()`` or another change throws, only
///   ``discard()`` may follow.
///
/// Not `Sendable`: it has one owner.
package final class Rows {
    /// Bytes of one table in memory, and their number, before they are given to the file after all.
    private static let recentSizeMax = 1 << 20
    private static let recentCountMax = 4_096

    private let file: (any RowFile)?
    /// The digest of all rows but those of `Table.meta`. A row that is there under a key that was
    /// expected to have none is part of it until ``writeOut()``.
    package private(set) var digest: StateDigest
    private var publishedDigest: StateDigest
    /// Rows put and removed so far: what bounds a batch.
    package private(set) var writeCount = 0
    /// The number of rows put into `Table.mail`: the mail carrier looks only if this has changed.
    package private(set) var mailCount = 0
    /// The number of rows put into `Table.event`: the same for whoever sends pushes.
    package private(set) var eventCount = 0

    /// By the number of the table.
    private var recent = Array(repeating: RecentRows(), count: Table.slotCount)
    /// Where nothing lies beneath: what was here before each change of the batch.
    private var undo: [Undo] = []
    /// Whether a batch has begun. Its reads are remembered: what is read is often replaced next.
    package private(set) var isInBatch = false
    /// Whether rows of the batch are in the file's transaction.
    private var isPartlyWritten = false
    /// Scans under way.
    private var scanCount = 0

    private struct Undo {
        let table: Int
        let place: Int
        /// Nil: there was none.
        let entry: RecentRows.Entry?
    }

    /// - Parameter digest: of the rows in `file`.
    package init(over file: (any RowFile)? = nil, digest: StateDigest = .empty) {
        self.file = file
        self.digest = digest
        self.publishedDigest = digest
    }

    /// The rows as something that reads them sees them, without a meter.
    package var view: RowView { RowView(self, meter: nil) }

    // MARK: Reading

    package func row(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) -> Bytes? {
        let number = Int(table.rawValue)
        var copy: Bytes?
        if !self.recent[number].isEmpty {
            let key = Bytes(copying: key)
            if let place = self.recent[number].place(of: key) {
                return self.recent[number].entries[place].row
            }
            copy = key
        }
        guard let file else { return nil }
        var row: Bytes?
        try file.withRow(table, key) { row = Bytes(copying: $0) }
        if self.isInBatch { self.remember(row, number, copy ?? Bytes(copying: key)) }
        return row
    }

    /// Keeps a row that the file has, or that it has none, until the batch ends.
    private func remember(_ row: Bytes?, _ number: Int, _ key: Bytes) {
        guard self.scanCount == 0, !self.isFull(number) else { return }
        self.recent[number].append(.init(key: key, row: row, isStored: row != nil))
    }

    /// Hands a row to `body` without copying it. Nil: there is none.
    package func withRow<Result>(
        _ table: Table, _ key: borrowing RawSpan, _ body: (_ row: borrowing RawSpan) -> Result
    ) throws(StoreError) -> Result? {
        let number = Int(table.rawValue)
        if !self.recent[number].isEmpty,
            let place = self.recent[number].place(of: Bytes(copying: key))
        {
            guard let row = self.recent[number].entries[place].row else { return nil }
            return unsafe body(row.span.bytes)
        }
        guard let file else { return nil }
        var result: Result?
        try file.withRow(table, key) { result = body($0) }
        return result
    }

    /// The first bytes of a row, at most `sizeMax` of them.
    package func head(_ table: Table, _ key: borrowing RawSpan, sizeMax: Int) throws(StoreError)
        -> Bytes?
    {
        try self.withRow(table, key) { Bytes(copying: $0.extracting(first: sizeMax)) }
    }

    /// Visits the rows with `from <= key < to` in key order, or from the end when `descending`.
    /// An empty `to` means "to the end of the table". `body` may read, but not change anything.
    package func scan(
        _ table: Table, from: borrowing RawSpan, to: borrowing RawSpan, descending: Bool,
        _ body: (_ key: borrowing RawSpan, _ row: borrowing RawSpan) -> ScanStep
    ) throws(StoreError) {
        let number = Int(table.rawValue)
        self.scanCount += 1
        defer { self.scanCount -= 1 }
        guard self.recent[number].hasChanges else {
            try self.file?.scan(table, from: from, to: to, descending: descending, body)
            return
        }
        self.recent[number].sort()
        var merge = MergedScan(
            of: self.recent[number], from: Bytes(copying: from), to: Bytes(copying: to),
            descending: descending)
        if let file {
            try file.scan(table, from: from, to: to, descending: descending) { key, row in
                merge.step(key, row, body)
            }
        }
        merge.finish(body)
    }

    // MARK: Writing

    package func put(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan)
        throws(StoreError)
    {
        try self.put(table, key, row, isExpectedNew: false)
    }

    /// Puts a row under a key that most likely has none, so that the file need not be read. Where a
    /// row is there after all, this is a put like any other.
    package func putNew(_ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan)
        throws(StoreError)
    {
        try self.put(table, key, row, isExpectedNew: true)
    }

    private func put(
        _ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan, isExpectedNew: Bool
    ) throws(StoreError) {
        precondition(self.scanCount == 0, "a row was put within a scan")
        let number = Int(table.rawValue)
        let copy = Bytes(copying: key)
        let hash = table == .meta ? nil : RowHash.of(table, key, row)
        if let place = self.recent[number].place(of: copy) {
            var entry = self.recent[number].entries[place]
            if let old = self.hash(of: entry, in: table) { self.digest.subtract(old) }
            self.note(number, place, entry)
            entry.row = Bytes(copying: row)
            entry.hash = hash
            entry.isChanged = true
            self.recent[number].set(place, to: entry)
        } else {
            let isExpectedNew = isExpectedNew && self.file != nil && table != .meta
            let old = isExpectedNew ? nil : try self.storedHash(table, key)
            if let old { self.digest.subtract(old) }
            self.note(number, self.recent[number].count, nil)
            self.recent[number].append(
                .init(
                    key: copy, row: Bytes(copying: row), hash: hash,
                    isStored: old != nil || table == .meta, isExpectedNew: isExpectedNew,
                    isChanged: true))
        }
        if let hash { self.digest.add(hash) }
        self.writeCount += 1
        if table == .mail { self.mailCount += 1 }
        if table == .event { self.eventCount += 1 }
        try self.writeOutIfFull(table)
    }

    /// Removing an absent row is no error.
    package func remove(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) {
        precondition(self.scanCount == 0, "a row was removed within a scan")
        let number = Int(table.rawValue)
        let copy = Bytes(copying: key)
        if let place = self.recent[number].place(of: copy) {
            var entry = self.recent[number].entries[place]
            guard entry.row != nil else { return }
            var old = self.hash(of: entry, in: table)
            self.note(number, place, entry)
            if entry.isExpectedNew {
                // A row that goes must be known to have been there or not.
                let stored = try self.storedHash(table, key)
                entry.isExpectedNew = false
                entry.isStored = stored != nil
                if let stored {
                    var both = old ?? .empty
                    both.add(stored)
                    old = both
                }
            }
            if let old { self.digest.subtract(old) }
            entry.row = nil
            entry.hash = nil
            entry.isChanged = true
            self.recent[number].set(place, to: entry)
        } else {
            let old = try self.storedHash(table, key)
            guard old != nil || table == .meta, self.file != nil else { return }
            if let old { self.digest.subtract(old) }
            self.recent[number].append(
                .init(key: copy, row: nil, isStored: true, isChanged: true))
        }
        self.writeCount += 1
        try self.writeOutIfFull(table)
    }

    /// Removes a row that a scan has just found, so that it need not be read again.
    package func remove(_ table: Table, _ key: borrowing RawSpan, holding row: borrowing RawSpan)
        throws(StoreError)
    {
        let number = Int(table.rawValue)
        let copy = Bytes(copying: key)
        if self.file != nil, self.recent[number].place(of: copy) == nil {
            let row = Bytes(copying: row)
            assert(self.isStored(table, key, row), "a wrong claim goes into the digest")
            self.recent[number].append(.init(key: copy, row: row, isStored: true))
        }
        try self.remove(table, key)
    }

    /// Whether the file has this row, as far as it can say.
    private func isStored(_ table: Table, _ key: borrowing RawSpan, _ row: Bytes) -> Bool {
        do throws(StoreError) {
            var found: Bytes?
            try self.file?.withRow(table, key) { found = Bytes(copying: $0) }
            return found == row
        } catch { return true }
    }

    /// What the digest has of an entry.
    private func hash(of entry: RecentRows.Entry, in table: Table) -> StateDigest? {
        if entry.isChanged || table == .meta { return entry.hash }
        return entry.row.map { unsafe RowHash.of(table, entry.key.span.bytes, $0.span.bytes) }
    }

    /// The hash of the row that the file has under `key`; nil too for what no digest has.
    private func storedHash(_ table: Table, _ key: borrowing RawSpan) throws(StoreError)
        -> StateDigest?
    {
        guard let file, table != .meta else { return nil }
        var hash: StateDigest?
        let copy = Bytes(copying: key)
        try file.withRow(table, key) { hash = unsafe RowHash.of(table, copy.span.bytes, $0) }
        return hash
    }

    private func note(_ number: Int, _ place: Int, _ entry: RecentRows.Entry?) {
        guard self.file == nil else { return }
        self.undo.append(Undo(table: number, place: place, entry: entry))
    }

    // MARK: Batches

    /// Begins the transaction that a batch's reads and writes share, if none has begun.
    package func begin() throws(StoreError) {
        guard let file else { return }
        if !file.isInTransaction {
            // The rows that it has lost would be missing from the batch.
            if self.isPartlyWritten {
                throw StoreError(.io, "the file has ended a transaction with rows of the batch")
            }
            try file.begin()
        }
        self.isInBatch = true
    }

    /// Gives the file all changes. A publish does that too; doing it earlier makes the digest
    /// exact, and holds no lock meanwhile.
    package func writeOut() throws(StoreError) {
        guard self.file != nil else { return }
        for table in Table.all { try self.writeOut(table) }
    }

    private func writeOut(_ table: Table) throws(StoreError) {
        let number = Int(table.rawValue)
        guard let file, self.recent[number].hasChanges else { return }
        try self.begin()
        let changes = self.recent[number].changes()
        if !changes.isEmpty {
            self.isPartlyWritten = true
            self.digest.subtract(try file.write(changes[...], to: table))
        }
        self.recent[number].removeAll()
    }

    private func isFull(_ number: Int) -> Bool {
        self.recent[number].size > Self.recentSizeMax
            || self.recent[number].count > Self.recentCountMax
    }

    private func writeOutIfFull(_ table: Table) throws(StoreError) {
        guard self.file != nil, self.isFull(Int(table.rawValue)) else { return }
        try self.writeOut(table)
    }

    /// Ends the batch: from here on nothing takes it back. A file has it whole or not at all.
    package func publish() throws(StoreError) {
        try self.writeOut()
        if self.isInBatch, let file {
            try self.begin()
            try file.commit()
        }
        self.publishedDigest = self.digest
        self.endBatch()
    }

    /// Throws the batch away. An error is one of the file: it must be opened anew.
    package func discard() throws(StoreError) {
        for change in self.undo.reversed() {
            if let entry = change.entry {
                self.recent[change.table].set(change.place, to: entry)
            } else {
                self.recent[change.table].clear(change.place)
            }
        }
        self.digest = self.publishedDigest
        self.endBatch()
        try self.file?.rollBack()
    }

    private func endBatch() {
        self.undo = []
        self.isInBatch = false
        self.isPartlyWritten = false
        guard self.file != nil else { return }
        for number in self.recent.indices where !self.recent[number].isEmpty {
            self.recent[number].removeAll()
        }
    }

    /// The digest of every row, computed anew.
    package func computeDigest() throws(StoreError) -> StateDigest {
        var digest = StateDigest.empty
        let all = Bytes()
        for table in Table.all where table != .meta {
            try unsafe self.scan(table, from: all.span.bytes, to: all.span.bytes, descending: false)
            { key, row in
                digest.add(RowHash.of(table, key, row))
                return .next
            }
        }
        return digest
    }
}

/// Shows the changed rows of a table and those of a file as one sorted list.
private struct MergedScan {
    private let recent: RecentRows
    private let isDescending: Bool
    /// What is left of the changed rows, as positions in their order.
    private var left: Range<Int>
    private var isStopped = false

    init(of recent: RecentRows, from: Bytes, to: Bytes, descending: Bool) {
        self.recent = recent
        self.isDescending = descending
        let first = recent.position(of: from)
        let end = to.isEmpty ? recent.order.count : recent.position(of: to)
        self.left = first..<max(first, end)
    }

    private var next: RecentRows.Entry? {
        if self.left.isEmpty { return nil }
        let position = self.isDescending ? self.left.upperBound - 1 : self.left.lowerBound
        return self.recent.entries[self.recent.order[position]]
    }

    private mutating func advance() {
        self.left =
            self.isDescending
            ? self.left.lowerBound..<self.left.upperBound - 1
            : self.left.lowerBound + 1..<self.left.upperBound
    }

    /// Takes the file's next row.
    mutating func step(
        _ key: borrowing RawSpan, _ row: borrowing RawSpan,
        _ body: (borrowing RawSpan, borrowing RawSpan) -> ScanStep
    ) -> ScanStep {
        while let entry = self.next {
            switch unsafe entry.key.span.bytes.order(to: key) {
            case 0:
                // The file's row is not the last one.
                self.advance()
                return self.show(entry, body)
            case let order where (order < 0) != self.isDescending:
                self.advance()
                if self.show(entry, body) == .stop { return .stop }
            default:
                return self.noting(body(key, row))
            }
        }
        return self.noting(body(key, row))
    }

    /// The file has no more rows.
    mutating func finish(_ body: (borrowing RawSpan, borrowing RawSpan) -> ScanStep) {
        while !self.isStopped, let entry = self.next {
            self.advance()
            _ = self.show(entry, body)
        }
    }

    private mutating func show(
        _ entry: RecentRows.Entry, _ body: (borrowing RawSpan, borrowing RawSpan) -> ScanStep
    ) -> ScanStep {
        guard let row = entry.row else { return .next }
        return unsafe self.noting(body(entry.key.span.bytes, row.span.bytes))
    }

    private mutating func noting(_ step: ScanStep) -> ScanStep {
        if step == .stop { self.isStopped = true }
        return step
    }
}
