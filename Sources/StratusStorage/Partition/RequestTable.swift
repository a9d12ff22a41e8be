import StratusCoding
package import StratusModel
package import StratusRows

// A row of Table.request, version 1
//
// | bytes  | key                                                           |
// | ------ | ------------------------------------------------------------- |
// | 8      | the command's deadline, wall milliseconds, big-endian, top bit flipped |
// | 8 + 8  | identity: high, low, big-endian                               |
//
// | bytes  | row                                                           |
// | ------ | ------------------------------------------------------------- |
// | 1      | version, 1                                                    |
// | 1      | the outcome's verdict                                         |
// | rest   | the outcome's body                                            |
//
// The floor, where outcomes were forgotten before their deadlines: its key is 24 bytes of zero
//
// | bytes  | row                                                           |
// | ------ | ------------------------------------------------------------- |
// | 1      | version, 1                                                    |
// | 8      | the last deadline among those forgotten, big-endian, top bit flipped |

/// Remembers the outcome of each command until its deadline, so that a second copy answers the same
/// and does nothing.
///
/// Rows lie in the order of their deadlines: remembering appends, forgetting removes from the
/// front, and a commit dirties few pages. Memory keeps the place of each identity's row, read back
/// from the rows when first needed.
///
/// Invariants:
/// - Whether an identity is known depends only on the rows and the entry's time, never on what has
///   been cleaned up: every replica answers the same.
/// - A row is removed only after its deadline, or when there are more than ``countMax``. The time of
///   a partition may stand still, ahead of a clock that was wrong once, and then no deadline passes.
///   A command whose deadline is not after the *floor* may be one of those that were forgotten so:
///   nobody may apply it.
package struct RequestTable: Sendable {
    /// Every so many entries, so many rows are removed at most: twice as many as can have come.
    static let cleanupInterval: UInt64 = 64
    static let cleanupCountMax = 128
    /// Outcomes that one partition remembers. It is more than can come in the usual life of a
    /// command, so that it bounds only what a wrong clock keeps.
    package static let countMax = 1 << 18
    /// Bytes of outcomes that are held while they are removed; the one that passes it is the last.
    static let sliceSizeMax = 1 << 20

    /// The deadline of each identity; nil until read from the rows.
    private var deadlines: [RequestIdentity: Int64]?
    /// The last deadline of those that were forgotten for want of room. Read with the others.
    private var floor: Int64?
    /// No outcome has a key before this one; nil: not known. Rows that were removed are in the file
    /// until a flush, and each scan over them would pass them again.
    private var front: Bytes?
    private let countMax: Int

    package init(countMax: Int = Self.countMax) { self.countMax = countMax }

    /// How many are remembered, as far as is known without reading rows.
    package var count: Int { self.deadlines?.count ?? 0 }

    /// The outcome of the command, if it was applied and `time` is not past the deadline it came
    /// with.
    package mutating func outcome(
        of identity: RequestIdentity, at time: HybridTime, in rows: RowView
    ) throws(StoreError) -> Outcome? {
        try self.load(rows)
        guard let deadline = self.deadlines?[identity], time.milliseconds <= deadline else {
            return nil
        }
        guard let row = try rows.row(.request, Self.key(deadline, identity).span.bytes) else {
            throw StoreError(.corrupt, "the outcome of \(identity) is missing")
        }
        guard row.count >= 2, row[0] == 1, let verdict = Outcome.Verdict(rawValue: row[1]) else {
            throw StoreError(.unreadable, "the outcome of \(identity), version \(row.first ?? 0)")
        }
        return Outcome(verdict, body: Bytes(row[2...]))
    }

    /// Whether a command that is not remembered may have been forgotten: until when, if so.
    package mutating func floor(over deadline: Int64, in rows: RowView)
        throws(StoreError) -> HybridTime?
    {
        try self.load(rows)
        guard let floor = self.floor, deadline <= floor else { return nil }
        return HybridTime(milliseconds: floor)
    }

    package mutating func remember(
        _ outcome: Outcome, of identity: RequestIdentity, deadlineMilliseconds deadline: Int64,
        in rows: Rows
    ) throws(StoreError) {
        try self.load(rows.view)
        var row = Bytes()
        row.reserveCapacity(2 + outcome.body.count)
        row.append(1)
        row.append(outcome.verdict.rawValue)
        row.append(contentsOf: outcome.body)
        let key = Self.key(deadline, identity)
        try rows.putNew(.request, key.span.bytes, row.span.bytes)
        self.deadlines?[identity] = deadline
        if let front, Bytes.isOrdered(key, before: front) { self.front = key }
    }

    /// Removes rows whose deadline is past, oldest first. Call it for every entry, so that every
    /// replica removes the same rows at the same index.
    package mutating func cleanUp(
        at position: EntryPosition, in rows: Rows, bugs: PlantedBugs = PlantedBugs()
    ) throws(StoreError) {
        guard position.index.raw % Self.cleanupInterval == 0 else { return }
        try self.load(rows.view)
        let early: Int64 = bugs.contains(.identityForgottenEarly) ? 60_000 : 0
        try self.remove(
            before: position.time.milliseconds + early, countMax: Self.cleanupCountMax, in: rows)
        try self.makeRoom(at: position.time, in: rows)
    }

    /// Forgets the outcomes that are too many, those with the earliest deadlines first.
    private mutating func makeRoom(at time: HybridTime, in rows: Rows)
        throws(StoreError)
    {
        let surplus = self.count - self.countMax
        if surplus > 0 {
            let last = try self.remove(
                before: .max, countMax: min(surplus, Self.cleanupCountMax), in: rows)
            guard let last, last > self.floor ?? .min else { return }
            self.floor = last
            var row: Bytes = [1]
            Self.append(UInt64(bitPattern: last) ^ 1 << 63, to: &row)
            try rows.put(.request, Self.floorKey.span.bytes, row.span.bytes)
        } else if let floor, floor < time.milliseconds {
            self.floor = nil
            try rows.remove(.request, Self.floorKey.span.bytes)
        }
    }

    private static let floorKey = Bytes(repeating: 0, count: 24)

    /// Removes rows whose deadline is past, some of them, whatever the entry's index.
    package mutating func forgetExpired(at time: HybridTime, in rows: Rows)
        throws(StoreError)
    {
        try self.load(rows.view)
        try self.remove(before: time.milliseconds, countMax: 10_000, in: rows)
    }

    /// - Returns: the deadline of the last row removed.
    @discardableResult
    private mutating func remove(
        before time: Int64, countMax: Int, in rows: Rows
    ) throws(StoreError) -> Int64? {
        let end = Self.order(time)
        var left = countMax
        var last: Int64?
        while left > 0 {
            // Outcomes of large batches are large: only some are held at once. How many are removed
            // in all does not depend on that, as every replica must remove the same.
            var expired: [(key: Bytes, row: Bytes)] = []
            var size = 0
            let start = self.front ?? Self.order(.min + 1)
            if !Bytes.isOrdered(start, before: end) { return last }
            try rows.scan(
                .request, from: start.span.bytes, to: end.span.bytes, descending: false
            ) { key, row in
                expired.append((Bytes(copying: key), Bytes(copying: row)))
                size += row.byteCount
                return expired.count < left && size < Self.sliceSizeMax ? .next : .stop
            }
            for (key, row) in expired {
                try rows.remove(.request, key.span.bytes, holding: row.span.bytes)
                let (deadline, identity) = try Self.read(key)
                last = deadline
                // A later command may have used the identity again.
                if self.deadlines?[identity] == deadline { self.deadlines?[identity] = nil }
                self.front = key + [0]
            }
            left -= expired.count
            if size < Self.sliceSizeMax { return last }
        }
        return last
    }

    /// The first deadline of those that are remembered, or the last one; nil: nothing is.
    package static func deadline(isLast: Bool, in rows: RowView)
        throws(StoreError) -> Int64?
    {
        var found: Bytes?
        try rows.scan(
            .request, from: Self.order(.min + 1).span.bytes, to: Bytes().span.bytes,
            descending: isLast
        ) { key, _ in
            found = Bytes(copying: key)
            return .stop
        }
        return try found.map { (key) throws(StoreError) in try Self.read(key).0 }
    }

    /// The rows may have gone back.
    package mutating func forget() {
        self.deadlines = nil
        self.floor = nil
        self.front = nil
    }

    private mutating func load(_ rows: RowView) throws(StoreError) {
        if self.deadlines != nil { return }
        var deadlines: [RequestIdentity: Int64] = [:]
        var unreadable: StoreError?
        let (start, end) = (Self.order(.min + 1), Bytes())
        try rows.scan(.request, from: start.span.bytes, to: end.span.bytes, descending: false) {
            key, _ in
            do throws(StoreError) {
                let (deadline, identity) = try Self.read(Bytes(copying: key))
                // In the order of deadlines, so the latest of an identity stays.
                deadlines[identity] = deadline
                return .next
            } catch {
                unreadable = error
                return .stop
            }
        }
        if let unreadable { throw unreadable }
        self.floor = try Self.readFloor(rows)
        self.deadlines = deadlines
    }

    private static func readFloor(_ rows: RowView) throws(StoreError) -> Int64? {
        guard let row = try rows.row(.request, Self.floorKey.span.bytes) else { return nil }
        guard row.count == 9, row[0] == 1 else {
            throw StoreError(.unreadable, "the floor of requests, version \(row.first ?? 0)")
        }
        let word = row[1...].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
        return Int64(bitPattern: word ^ 1 << 63)
    }

    private static func order(_ milliseconds: Int64) -> Bytes {
        var key = Bytes()
        key.reserveCapacity(24)
        Self.append(UInt64(bitPattern: milliseconds) ^ 1 << 63, to: &key)
        return key
    }

    private static func key(_ deadline: Int64, _ identity: RequestIdentity) -> Bytes {
        var key = Self.order(deadline)
        Self.append(identity.high, to: &key)
        Self.append(identity.low, to: &key)
        return key
    }

    private static func append(_ value: UInt64, to key: inout Bytes) {
        for shift in stride(from: 56 as UInt64, through: 0, by: -8) {
            key.append(UInt8(truncatingIfNeeded: value >> shift))
        }
    }

    private static func read(_ key: Bytes) throws(StoreError) -> (Int64, RequestIdentity) {
        guard key.count == 24 else {
            throw StoreError(.corrupt, "a request's key of \(key.count) bytes")
        }
        func word(_ position: Int) -> UInt64 {
            key[position..<(position + 8)].reduce(0) { $0 << 8 | UInt64($1) }
        }
        return (
            Int64(bitPattern: word(0) ^ 1 << 63), RequestIdentity(high: word(8), low: word(16))
        )
    }
}
