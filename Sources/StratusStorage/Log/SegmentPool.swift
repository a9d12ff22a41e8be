import StratusModel

/// The files of a shared log: those in use, oldest first, and those that wait to be used again.
///
/// A value without I/O, guarded by the log's lock. Invariants:
/// - The oldest are freed first, without gaps: a missing sequence is damage.
/// - A segment is freed only when no group holds it: every entry in it is released, cut or written
///   elsewhere, and the record of that is synced.
struct SegmentPool {
    private let size: Int
    private let spareCountMax: Int
    private let bugs: PlantedBugs
    /// In the order of their sequence; the last is the active one.
    private(set) var inUse: [LogSegment]
    private(set) var spares: [LogSegment]
    /// Whether something was released since the last look.
    private var mayFree = false
    /// Segments through this sequence hold what was erased: they are not used again.
    private(set) var expired: UInt64 = 0
    /// The sequence of the segment that was last taken for use.
    private var taken: UInt64 = 0
    /// Files of expired segments that nobody needs: they are to be removed.
    private(set) var condemned: [LogSegment] = []

    init(inUse: [LogSegment], spares: [LogSegment], limits: SegmentedLog.Limits) {
        self.inUse = inUse
        self.spares = spares
        self.size = limits.segmentSize.raw
        self.spareCountMax = limits.spareCountMax
        self.bugs = limits.bugs
    }

    var active: LogSegment? { self.inUse.last }
    /// The one that would be used again next; nil when it is the active one.
    var oldest: LogSegment? { self.inUse.count > 1 ? self.inUse[0] : nil }

    func segment(_ number: UInt32) -> LogSegment? { self.inUse.first { $0.number == number } }

    // MARK: Taking

    /// The lowest number no file has.
    var freeNumber: UInt32 {
        var number: UInt32 = 1
        let used = Set((self.inUse + self.spares + self.condemned).map(\.number))
        while used.contains(number) { number += 1 }
        return number
    }

    mutating func takeSpare() -> LogSegment? {
        self.taken = (self.active?.header?.sequence ?? 0) + 1
        return self.spares.popLast()
    }
    /// A spare that must be made again before it is used.
    mutating func takeDoubtfulSpare() -> LogSegment? {
        self.spares.firstIndex { !$0.isWhole }.map { self.spares.remove(at: $0) }
    }
    mutating func addSpare(_ segment: LogSegment) { self.spares.append(segment) }

    /// Gives a segment its next use: a sequence that follows, a salt nobody knows.
    func label(_ segment: LogSegment, salt: UInt64) {
        segment.lastIndexes = [:]
        segment.header = LogFormat.SegmentHeader(
            sequence: (self.active?.header?.sequence ?? 0) + 1, salt: salt,
            size: UInt64(segment.size))
    }

    /// The segment's first batch is synced: from now on it is the active one.
    mutating func activate(_ segment: LogSegment) {
        self.inUse.append(segment)
        self.mayFree = true
    }

    // MARK: Expiring

    /// All segments that there are, and one that is being taken for use, hold what was erased: each
    /// is removed as soon as nobody needs it. Those that wait for their next use go at once.
    mutating func expire() {
        self.expired = max(self.active?.header?.sequence ?? 0, self.taken, self.expired)
        self.condemned += self.spares
        self.spares = []
        self.mayFree = true
    }

    /// Whether the next batch has to begin another segment.
    var isActiveExpired: Bool { (self.active?.header?.sequence ?? .max) <= self.expired }
    /// Whether nothing from before the last ``expire()`` is left.
    var hasExpired: Bool {
        self.condemned.isEmpty && (self.inUse.first?.header?.sequence ?? .max) > self.expired
    }

    mutating func takeCondemned() -> [LogSegment] {
        defer { self.condemned = [] }
        return self.condemned
    }
    mutating func condemn(_ segments: [LogSegment]) { self.condemned += segments }

    // MARK: Letting go

    mutating func noteRelease() { self.mayFree = true }

    /// Notes a synced cut: the entries it removed are no longer needed, except those in the batch
    /// of the cut itself.
    mutating func noteCut(of group: GroupID, from index: LogIndex, by segment: LogSegment) {
        self.mayFree = true
        for other in self.inUse where other !== segment {
            guard let last = other.lastIndexes[group], last >= index else { continue }
            other.lastIndexes[group] = index > LogIndex(1) ? index.previous : nil
        }
    }

    /// The groups that need something in a segment.
    func holders(of segment: LogSegment, among groups: [GroupID: GroupTail]) -> [GroupID] {
        segment.lastIndexes.filter { group, last in
            guard let tail = groups[group], last > tail.durableStart.index else { return false }
            // Released, but the record of that is not on disk yet: a crash would bring it back as
            // damaged.
            if tail.start.index > tail.durableStart.index,
                !self.bugs.contains(.segmentFreedOnRelease)
            {
                return true
            }
            return tail.isHeld(by: segment.number)
        }.keys.sorted()
    }

    /// Makes spares of what nobody holds. Returns those that are too many: their files may go.
    mutating func free(among groups: [GroupID: GroupTail]) -> [LogSegment] {
        // What has expired is let go of as soon as it can be: nothing else may come that frees it.
        let isExpiring = (self.inUse.first?.header?.sequence ?? .max) <= self.expired
        guard self.mayFree || isExpiring else { return [] }
        self.mayFree = false
        var surplus: [LogSegment] = []
        while let oldest, self.holders(of: oldest, among: groups).isEmpty {
            self.inUse.removeFirst()
            let sequence = oldest.header?.sequence ?? 0
            oldest.header = nil
            if sequence <= self.expired {
                self.condemned.append(oldest)
                continue
            }
            // One of another size than new ones have is not used again.
            if self.spares.count < self.spareCountMax, oldest.size == self.size {
                self.spares.append(oldest)
            } else {
                surplus.append(oldest)
            }
        }
        return surplus
    }
}
