import StratusCoding
import StratusModel

/// The rows that a transaction has put and removed in one table before SQLite is told. A row that
/// every command of a batch writes again reaches SQLite once.
struct PendingRows {
    struct Change {
        let key: Bytes
        /// Nil: removed.
        var row: Bytes?
        /// The hash of `row` that is part of the digest.
        var hash: StateDigest?
        /// Whether SQLite has a row under this key, as far as anybody has looked.
        var isStored: Bool
        /// Nobody has looked: most likely there is none.
        var isExpectedNew: Bool
    }

    /// A key as one piece of memory to hash: an array hashes its bytes one by one.
    private struct Key: Hashable {
        let bytes: Bytes

        func hash(into hasher: inout Hasher) {
            self.bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        }
    }

    private var changes: [Change] = []
    private var positions: [Key: Int] = [:]
    /// Bytes put since this was last empty.
    private(set) var size = 0

    var isEmpty: Bool { self.changes.isEmpty }
    var count: Int { self.changes.count }

    /// Nil where SQLite has the last word.
    subscript(_ key: Bytes) -> Change? {
        self.changes.isEmpty ? nil : self.positions[Key(bytes: key)].map { self.changes[$0] }
    }

    /// Notes what is under a key now.
    ///
    /// - Parameters:
    ///   - isExpectedNew: SQLite is not asked what is there, but finds out when it gets the row.
    ///   - stored: the hash of SQLite's row there; asked when the key is new here.
    /// - Returns: the hash of the row that was there, as far as anybody has looked.
    mutating func set(
        _ key: Bytes, to row: Bytes?, hash: StateDigest?, isExpectedNew: Bool = false,
        stored: () throws(StoreError) -> StateDigest?
    ) throws(StoreError) -> StateDigest? {
        self.size += row?.count ?? 0
        let known = Key(bytes: key)
        if let position = self.positions[known] {
            var old = self.changes[position].hash
            if row == nil, self.changes[position].isExpectedNew {
                // A row that goes must be known to have been there or not.
                let stored = try stored()
                if let stored {
                    var both = old ?? .empty
                    both.add(stored)
                    old = both
                }
                self.changes[position].isStored = stored != nil
                self.changes[position].isExpectedNew = false
            }
            self.changes[position].row = row
            self.changes[position].hash = hash
            return old
        }
        let isExpectedNew = isExpectedNew && row != nil
        let old = isExpectedNew ? nil : try stored()
        // An absent row need not be removed.
        if row == nil, old == nil { return nil }
        self.positions[known] = self.changes.count
        self.changes.append(
            Change(
                key: key, row: row, hash: hash, isStored: old != nil, isExpectedNew: isExpectedNew))
        self.size += key.count
        return old
    }

    /// Takes every pending change; afterwards nothing is pending.
    ///
    /// - Returns: the changes, and the places of those that SQLite must be told, in the order of
    ///   their keys.
    mutating func take() -> (changes: [Change], order: [Int]) {
        let changes = self.changes
        var order: [Int] = []
        order.reserveCapacity(changes.count)
        var isInOrder = true
        for place in changes.indices where changes[place].row != nil || changes[place].isStored {
            if let last = order.last {
                isInOrder =
                    isInOrder && Bytes.isOrdered(changes[last].key, before: changes[place].key)
            }
            order.append(place)
        }
        // Feeds and outcomes are written in order.
        if !isInOrder {
            order.sort { Bytes.isOrdered(changes[$0].key, before: changes[$1].key) }
        }
        self.changes = []
        self.changes.reserveCapacity(changes.count)
        self.removeAll()
        return (changes, order)
    }

    mutating func removeAll() {
        self.changes.removeAll(keepingCapacity: true)
        self.positions.removeAll(keepingCapacity: true)
        self.size = 0
    }
}
