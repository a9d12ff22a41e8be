import StratusCoding
import StratusModel

/// The rows of one table that are in memory: those that were changed, and those of the file that
/// were read. A row that every command writes again is here once.
struct RecentRows {
    struct Entry {
        let key: Bytes
        /// Nil: there is none, or it was removed.
        var row: Bytes?
        /// What the digest has of `row`. Nil too where the row is not changed: then nobody has
        /// computed it.
        var hash: StateDigest?
        /// Whether there is a row under this key beneath, as far as anybody has looked.
        var isStored = false
        /// Nobody has looked: most likely the file has none.
        var isExpectedNew = false
        /// False: it was only read, and is as it is beneath.
        var isChanged = false

        var size: Int { self.key.count + (self.row?.count ?? 0) }
    }

    private(set) var entries: [Entry] = []
    private var index = KeyIndex()
    /// The places of changed entries, in the order of their keys.
    private(set) var order: [Int] = []
    /// The places of changed entries that are not yet in `order`.
    private var unordered: [Int] = []
    /// Bytes of keys and rows.
    private(set) var size = 0

    var isEmpty: Bool { self.entries.isEmpty }
    var count: Int { self.entries.count }
    var changeCount: Int { self.order.count + self.unordered.count }
    var hasChanges: Bool { self.changeCount > 0 }

    /// Nil: what lies beneath has the last word.
    func place(of key: borrowing RawSpan, _ hash: UInt64) -> Int? {
        if self.entries.isEmpty { return nil }
        return unsafe key.withUnsafeBytes { key in
            self.index.place(hash) { place in
                unsafe self.entries[place].key.withUnsafeBytes { own in
                    unsafe own.count == key.count
                        && RawSpan(_unsafeBytes: own).order(to: RawSpan(_unsafeBytes: key)) == 0
                }
            }
        }
    }

    /// - Parameter hash: of its key.
    mutating func append(_ entry: Entry, _ hash: UInt64) {
        let place = self.entries.count
        self.index.append(hash)
        self.size += entry.size
        self.entries.append(entry)
        if entry.isChanged { self.unordered.append(place) }
    }

    /// Replaces an entry by another one with its key.
    mutating func set(_ place: Int, to entry: Entry) {
        if entry.isChanged, !self.entries[place].isChanged { self.unordered.append(place) }
        self.size += entry.size - self.entries[place].size
        self.entries[place] = entry
    }

    /// Takes back an append: there is no row.
    mutating func clear(_ place: Int) {
        self.size -= self.entries[place].row?.count ?? 0
        self.entries[place].row = nil
        self.entries[place].hash = nil
    }

    /// Brings `order` up to date.
    mutating func sort() {
        if self.unordered.isEmpty { return }
        var new = self.unordered
        self.unordered.removeAll(keepingCapacity: true)
        // Feeds and outcomes are written in order.
        if !self.isOrdered(new) {
            new.sort { Bytes.isOrdered(self.entries[$0].key, before: self.entries[$1].key) }
        }
        guard let last = self.order.last, let first = new.first,
            !Bytes.isOrdered(self.entries[last].key, before: self.entries[first].key)
        else {
            self.order.append(contentsOf: new)
            return
        }
        if new.count * 16 < self.order.count {
            for place in new {
                self.order.insert(place, at: self.position(of: self.entries[place].key))
            }
        } else {
            self.merge(new)
        }
    }

    private func isOrdered(_ places: [Int]) -> Bool {
        for next in places.indices.dropFirst() {
            let (one, other) = (places[next - 1], places[next])
            if !Bytes.isOrdered(self.entries[one].key, before: self.entries[other].key) {
                return false
            }
        }
        return true
    }

    private mutating func merge(_ new: [Int]) {
        var merged: [Int] = []
        merged.reserveCapacity(self.order.count + new.count)
        var next = 0
        for place in self.order {
            let key = self.entries[place].key
            while next < new.count, Bytes.isOrdered(self.entries[new[next]].key, before: key) {
                merged.append(new[next])
                next += 1
            }
            merged.append(place)
        }
        merged.append(contentsOf: new[next...])
        self.order = merged
    }

    /// The position in `order` of the first changed entry at or behind `key`; after ``sort()``.
    func position(of key: Bytes) -> Int {
        var low = 0
        var high = self.order.count
        while low < high {
            let middle = (low + high) / 2
            if Bytes.isOrdered(self.entries[self.order[middle]].key, before: key) {
                low = middle + 1
            } else {
                high = middle
            }
        }
        return low
    }

    /// What the file must be told, in the order of the keys.
    mutating func changes() -> [RowChange] {
        self.sort()
        var changes: [RowChange] = []
        changes.reserveCapacity(self.order.count)
        for place in self.order {
            let entry = self.entries[place]
            // A row that was made and removed here never gets there.
            guard entry.row != nil || entry.isStored else { continue }
            changes.append(
                RowChange(key: entry.key, row: entry.row, isExpectedNew: entry.isExpectedNew))
        }
        return changes
    }

    mutating func removeAll() {
        self.entries.removeAll(keepingCapacity: self.entries.count <= 4_096)
        self.index.removeAll()
        self.order.removeAll(keepingCapacity: true)
        self.unordered.removeAll(keepingCapacity: true)
        self.size = 0
    }
}
