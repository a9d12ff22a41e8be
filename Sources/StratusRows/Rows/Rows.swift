package import StratusModel

/// The rows of one partition: ordered tables of keys and rows, both of them bytes. Whatever decides
/// about rows reads and writes them here.
///
/// Beneath lies a ``RowFile``, or nothing: then all rows are in memory, as tests and benchmarks
/// want it. Over a file there are two generations in memory. *Fresh* rows were changed since the
/// last ``freeze()``. *Frozen* ones are being written to the file; after that they stay as a cache
/// until the next freeze.
///
/// Promises:
/// - A read sees every put and remove before it. A scan shows fresh rows, frozen rows and the file
///   as one sorted list, without any removed row.
/// - The file has all rows of a freeze or none, from one ``endFlush(_:)`` to the next.
/// - ``discard()`` brings back the rows and the digest of the last ``publish()``, or over a file
///   those of the last ``endFlush(_:)``.
/// - After an error that a put or a remove throws, only ``discard()`` may follow. After one of a
///   flush, ``backOff()`` may follow too: the rows stay in memory and are written again.
///
/// Not `Sendable`: it has one owner.
package final class Rows {
    /// Rows that were only read are remembered while those in memory have no more bytes than this,
    /// and those of their table are no more than the number.
    private static let rememberedSizeMax = 2 << 20
    private static let rememberedCountMax = 4_096

    private let file: (any RowFile)?
    private let bugs: PlantedBugs
    /// The digest of all rows but those of `Table.meta`. A row that is there under a key that was
    /// expected to have none is part of it until it is written over.
    package private(set) var digest: StateDigest
    /// Of the last publish, or over a file of the last flush: what a discard goes back to.
    private var keptDigest: StateDigest
    /// Rows put and removed so far: what bounds a batch.
    package private(set) var writeCount = 0
    /// The number of rows put into `Table.mail`: the mail carrier looks only if this has changed.
    package private(set) var mailCount = 0
    /// The number of rows put into `Table.event`: the same for whoever sends pushes.
    package private(set) var eventCount = 0

    /// By the number of the table.
    private var fresh = Array(repeating: RecentRows(), count: Table.slotCount)
    private var frozen = Array(repeating: RecentRows(), count: Table.slotCount)
    /// Changed rows that are fresh, and the bytes of all rows there.
    package private(set) var freshCount = 0
    package private(set) var freshSize = 0
    /// How far the frozen rows were written; nil: the file has them all.
    private var flush: Flush?
    /// Where nothing lies beneath: what was here before each change of the batch.
    private var undo: [Undo] = []
    /// Whether a batch has begun. Its reads are remembered: what is read is often replaced next.
    package private(set) var isInBatch = false
    /// Scans under way.
    private var scanCount = 0

    private struct Undo {
        let table: Int
        let place: Int
        /// Nil: there was none.
        let entry: RecentRows.Entry?
    }

    private struct Flush {
        /// The digest of the frozen rows and all beneath.
        var digest: StateDigest
        /// What the transaction has replaced though nobody expected it.
        var unexpected = StateDigest.empty
        /// What is written next: of which table, and its changes that are left. Nil: not begun.
        var number = 0
        var left: ArraySlice<RowChange>?
    }

    /// - Parameter digest: of the rows in `file`.
    package init(
        over file: (any RowFile)? = nil, digest: StateDigest = .empty,
        bugs: PlantedBugs = PlantedBugs()
    ) {
        self.file = file
        self.bugs = bugs
        self.digest = digest
        self.keptDigest = digest
    }

    /// The rows as something that reads them sees them, without a meter.
    package var view: RowView { RowView(self, meter: nil) }

    // MARK: Reading

    package func row(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) -> Bytes? {
        let number = Int(table.rawValue)
        let hash = KeyIndex.hash(key)
        if let place = self.fresh[number].place(of: key, hash) {
            return self.fresh[number].entries[place].row
        }
        if let place = self.frozen[number].place(of: key, hash) {
            return self.frozen[number].entries[place].row
        }
        guard let file else { return nil }
        var row: Bytes?
        try file.withRow(table, key) { row = Bytes(copying: $0) }
        if self.isInBatch { self.remember(row, number, key, hash) }
        return row
    }

    /// Keeps a row that the file has, or that it has none.
    private func remember(
        _ row: Bytes?, _ number: Int, _ key: borrowing RawSpan, _ hash: UInt64
    ) {
        guard self.scanCount == 0, self.freshSize < Self.rememberedSizeMax,
            self.fresh[number].count < Self.rememberedCountMax
        else { return }
        self.append(
            .init(key: Bytes(copying: key), row: row, isStored: row != nil), number, hash)
    }

    /// Hands a row to `body` without copying it. Nil: there is none.
    package func withRow<Result>(
        _ table: Table, _ key: borrowing RawSpan, _ body: (_ row: borrowing RawSpan) -> Result
    ) throws(StoreError) -> Result? {
        let number = Int(table.rawValue)
        let hash = KeyIndex.hash(key)
        var known: Bytes??
        if let place = self.fresh[number].place(of: key, hash) {
            known = .some(self.fresh[number].entries[place].row)
        } else if let place = self.frozen[number].place(of: key, hash) {
            known = .some(self.frozen[number].entries[place].row)
        }
        if let known {
            guard let row = known else { return nil }
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
        let hasFrozen =
            self.flush != nil && self.frozen[number].hasChanges
            && !self.bugs.contains(.scanMissesRecent)
        guard hasFrozen || self.fresh[number].hasChanges else {
            try self.file?.scan(table, from: from, to: to, descending: descending, body)
            return
        }
        self.fresh[number].sort()
        let (first, end) = (Bytes(copying: from), Bytes(copying: to))
        var upper = MergedScan(
            of: self.fresh[number], from: first, to: end, descending: descending)
        if hasFrozen {
            self.frozen[number].sort()
            var lower = MergedScan(
                of: self.frozen[number], from: first, to: end, descending: descending)
            try self.file?.scan(table, from: from, to: to, descending: descending) { key, row in
                lower.step(key, row) { upper.step($0, $1, body) }
            }
            lower.finish { upper.step($0, $1, body) }
        } else {
            try self.file?.scan(table, from: from, to: to, descending: descending) { key, row in
                upper.step(key, row, body)
            }
        }
        upper.finish(body)
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
        let keyHash = KeyIndex.hash(key)
        let hash = table == .meta ? nil : RowHash.of(table, key, row)
        if let place = self.fresh[number].place(of: key, keyHash) {
            var entry = self.fresh[number].entries[place]
            if let old = self.hash(of: entry, in: table) { self.digest.subtract(old) }
            self.note(number, place, entry)
            entry.row = Bytes(copying: row)
            entry.hash = hash
            entry.isChanged = true
            self.set(place, to: entry, number)
        } else {
            let new = try self.entry(replacedBy: key, keyHash, in: table, isExpectedNew)
            self.note(number, self.fresh[number].count, nil)
            self.append(
                .init(
                    key: Bytes(copying: key), row: Bytes(copying: row), hash: hash,
                    isStored: new.isStored || table == .meta,
                    isExpectedNew: new.isExpectedNew, isChanged: true), number, keyHash)
        }
        if let hash { self.digest.add(hash) }
        self.writeCount += 1
        if table == .mail { self.mailCount += 1 }
        if table == .event { self.eventCount += 1 }
    }

    /// Takes what lies beneath out of the digest, unless nobody looks.
    private func entry(
        replacedBy key: borrowing RawSpan, _ keyHash: UInt64, in table: Table,
        _ isExpectedNew: Bool
    ) throws(StoreError) -> (isStored: Bool, isExpectedNew: Bool) {
        if let place = self.frozen[Int(table.rawValue)].place(of: key, keyHash) {
            let entry = self.frozen[Int(table.rawValue)].entries[place]
            if let old = self.hash(of: entry, in: table) { self.digest.subtract(old) }
            return (entry.row != nil, false)
        }
        if isExpectedNew, self.file != nil, table != .meta { return (false, true) }
        guard let old = try self.storedHash(table, key) else { return (false, false) }
        self.digest.subtract(old)
        return (true, false)
    }

    /// Removing an absent row is no error.
    package func remove(_ table: Table, _ key: borrowing RawSpan) throws(StoreError) {
        precondition(self.scanCount == 0, "a row was removed within a scan")
        let number = Int(table.rawValue)
        let keyHash = KeyIndex.hash(key)
        if let place = self.fresh[number].place(of: key, keyHash) {
            var entry = self.fresh[number].entries[place]
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
            self.set(place, to: entry, number)
        } else {
            let beneath = try self.entry(replacedBy: key, keyHash, in: table, false)
            guard beneath.isStored || table == .meta, self.file != nil else { return }
            self.append(
                .init(key: Bytes(copying: key), row: nil, isStored: true, isChanged: true),
                number, keyHash)
        }
        self.writeCount += 1
    }

    /// Removes a row that a scan has just found, so that it need not be read again.
    package func remove(_ table: Table, _ key: borrowing RawSpan, holding row: borrowing RawSpan)
        throws(StoreError)
    {
        let number = Int(table.rawValue)
        let keyHash = KeyIndex.hash(key)
        if self.file != nil, self.fresh[number].place(of: key, keyHash) == nil,
            self.frozen[number].place(of: key, keyHash) == nil
        {
            let row = Bytes(copying: row)
            assert(self.isStored(table, key, row), "a wrong claim goes into the digest")
            self.append(
                .init(key: Bytes(copying: key), row: row, isStored: true), number, keyHash)
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

    private func append(_ entry: RecentRows.Entry, _ number: Int, _ hash: UInt64) {
        self.freshSize += entry.size
        if entry.isChanged { self.freshCount += 1 }
        self.fresh[number].append(entry, hash)
    }

    private func set(_ place: Int, to entry: RecentRows.Entry, _ number: Int) {
        let old = self.fresh[number].size
        if entry.isChanged, !self.fresh[number].entries[place].isChanged { self.freshCount += 1 }
        self.fresh[number].set(place, to: entry)
        self.freshSize += self.fresh[number].size - old
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

    /// Begins a batch, if none has begun: what it reads is remembered.
    package func begin() {
        if self.isInBatch { return }
        self.isInBatch = true
        self.file?.beginReads()
    }

    /// Ends the batch: everybody may see it. A file has nothing of it yet.
    package func publish() throws(StoreError) {
        self.undo = []
        if self.file == nil { self.keptDigest = self.digest }
        guard self.isInBatch else { return }
        self.isInBatch = false
        try self.file?.endReads()
    }

    /// Throws away the batch, and over a file everything that the file has not committed. An error
    /// is one of the file: it must be opened anew.
    package func discard() throws(StoreError) {
        for change in self.undo.reversed() {
            if let entry = change.entry {
                self.fresh[change.table].set(change.place, to: entry)
            } else {
                self.fresh[change.table].clear(change.place)
            }
        }
        self.undo = []
        self.digest = self.keptDigest
        self.isInBatch = false
        guard let file else { return }
        for number in self.fresh.indices {
            if !self.fresh[number].isEmpty { self.fresh[number] = RecentRows() }
            if !self.frozen[number].isEmpty { self.frozen[number] = RecentRows() }
        }
        (self.freshCount, self.freshSize, self.flush) = (0, 0, nil)
        do throws(StoreError) { try file.endReads() } catch {
            try? file.rollBack()
            throw error
        }
        try file.rollBack()
    }

    // MARK: Flushes

    /// Whether frozen rows are not yet in the file, whole.
    package var isFlushing: Bool { self.flush != nil }

    /// Sets all fresh rows aside, to be written. What is put from here on is not part of it.
    package func freeze() {
        precondition(!self.isInBatch && self.flush == nil, "a freeze within a batch or a flush")
        guard self.file != nil else { return }
        for number in self.fresh.indices
        where !self.fresh[number].isEmpty || !self.frozen[number].isEmpty {
            swap(&self.fresh[number], &self.frozen[number])
            self.fresh[number].removeAll()
        }
        (self.freshCount, self.freshSize) = (0, 0)
        self.flush = Flush(digest: self.digest)
    }

    /// Writes some of the frozen rows, in the order of their keys.
    ///
    /// - Returns: whether all of them are written. Then ``endFlush(_:)`` follows.
    package func writeFrozen(upTo countMax: Int = .max) throws(StoreError) -> Bool {
        precondition(!self.isInBatch, "a flush within a batch")
        guard let file, var flush = self.flush else { return true }
        if flush.left == nil {
            try file.begin()
            flush.left = []
        }
        var room = countMax
        while room > 0 {
            if let left = flush.left, !left.isEmpty {
                let table = Table(rawValue: UInt8(flush.number - 1))
                let part = left.prefix(room)
                let unexpected = try file.write(part, to: table)
                flush.unexpected.add(unexpected)
                flush.digest.subtract(unexpected)
                self.digest.subtract(unexpected)
                room -= part.count
                flush.left = left.dropFirst(part.count)
            } else if flush.number < self.frozen.count {
                flush.left = self.changes(flush.number)[...]
                flush.number += 1
            } else {
                break
            }
            self.flush = flush
        }
        self.flush = flush
        return flush.number == self.frozen.count && flush.left?.isEmpty ?? true
    }

    private func changes(_ number: Int) -> [RowChange] {
        guard self.frozen[number].hasChanges else { return [] }
        let changes = self.frozen[number].changes()
        if self.bugs.contains(.rowsDroppedBeforeCommit) { self.frozen[number].removeAll() }
        if self.bugs.contains(.flushForgetsRemoval) { return changes.filter { $0.row != nil } }
        return changes
    }

    /// The digest of the rows that the flush under way brings to the file.
    package var frozenDigest: StateDigest { self.flush?.digest ?? self.keptDigest }

    /// Whether the flush under way has replaced rows though nobody expected them.
    package var hasFoundUnexpected: Bool { self.flush.map { $0.unexpected != .empty } ?? false }

    /// Ends the flush: from here on the file has all frozen rows, and these changes of
    /// `Table.meta`.
    package func endFlush(_ changes: [RowChange] = []) throws(StoreError) {
        guard let file, let flush = self.flush else { return }
        if !changes.isEmpty { _ = try file.write(changes[...], to: .meta) }
        try file.commit()
        self.keptDigest = flush.digest
        self.flush = nil
    }

    /// After an error of a flush: its rows stay in memory, and are written again from the first.
    ///
    /// - Throws: only ``discard()`` may follow, and the file must be opened anew.
    package func backOff() throws(StoreError) {
        guard let file, let flush = self.flush else { return }
        self.digest.add(flush.unexpected)
        var digest = flush.digest
        digest.add(flush.unexpected)
        self.flush = Flush(digest: digest)
        try file.rollBack()
    }

    /// Publishes, and writes everything to the file at once.
    package func commit() throws(StoreError) {
        try self.publish()
        if self.isFlushing {
            _ = try self.writeFrozen()
            try self.endFlush()
        }
        self.freeze()
        _ = try self.writeFrozen()
        try self.endFlush()
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
