package import StratusModel

/// The copies that one replica should have and lacks, and those that it has and should not.
///
/// A value that does nothing by itself: whoever owns it tells it what the rows say as entries are
/// applied, how far they are durable, and what the store has; and asks what to fetch, what to
/// remove and how far the replica is held. It lists differences alone. What it does not list it
/// takes for missing, never for held.
///
/// - Copies of a body that was dropped go once *durable* has passed the entry that dropped it.
/// - A copy that no row names is an orphan once an entry later than its `orphanAfter` is durable.
/// - The replica is held through the entry before the first one that names a copy it lacks.
package struct CopyWants: Sendable, Equatable {
    package struct Limits: Sendable, Equatable {
        /// Differences that are listed, of each kind. The next comparison finds the rest.
        package var countMax = 100_000
        package init() {}
    }

    /// A part of the names, as rows and store have it at one moment.
    package struct Page: Sendable {
        package var from: CopyName
        /// The first name behind the page. Nil: it goes to the end.
        package var end: CopyName?
        /// Every body that rows as applied name with a copy on the page.
        package var bodies: [BodyManifest]
        /// Every sound copy that the store has on the page.
        package var held: [HeldCopy]
        /// Those that were found damaged.
        package var damaged: [HeldCopy]

        package init(
            from: CopyName, end: CopyName?, bodies: [BodyManifest], held: [HeldCopy],
            damaged: [HeldCopy] = []
        ) {
            self.from = from
            self.end = end
            self.bodies = bodies
            self.held = held
            self.damaged = damaged
        }

        func contains(_ name: CopyName) -> Bool {
            name >= self.from && self.end.map { name < $0 } ?? true
        }
    }

    private struct Missing: Sendable, Equatable {
        var chunk: BodyManifest.Chunk
        var namedAt: LogIndex
    }

    private struct Dropped: Sendable, Equatable {
        var at: LogIndex
        var chunkCount: UInt32
        /// Copies before this one are gone from the store.
        var next: UInt32 = 0
    }

    private let limits: Limits
    /// Named by rows as applied; not here.
    private var missing: [CopyName: Missing] = [:]
    /// Here; named by no row as applied, nor by a durable one.
    private var unnamed: [CopyName: Int64] = [:]
    /// The same of copies that were found damaged: they go like the others, and are not here.
    private var damaged: [CopyName: Int64] = [:]
    /// Named by durable rows perhaps, by rows as applied no more.
    private var dropped: [BodyID: Dropped] = [:]
    /// Named by rows as applied, which call them lost. Their copies are neither missing nor unnamed:
    /// those that are here stay, and more may come from other disks.
    private var lost: Set<BodyID> = []
    /// More are lost than are listed. Nothing unnamed goes meanwhile: it may be a copy of these.
    private var hasUnlistedLost = false
    /// The same of the comparison that is under way.
    private var comparedUnlistedLost = false
    /// The last entry that dropped a body the list had no room for. Until it is durable nothing
    /// unnamed goes.
    private var unlistedDropAt = LogIndex.zero
    private var applied: LogIndex
    private var durable: LogIndex
    private var durableMilliseconds: Int64
    /// The entry of the first missing copy that the list had no room for.
    private var unlistedFrom: LogIndex?
    /// The same from before the comparison that is under way: it counts until that one is through.
    private var unlistedBefore: LogIndex?
    /// Copies that no row names had no room in the list: a comparison is due once those that are
    /// listed are gone.
    private var hasUnlistedOrphans = false
    /// The name that the comparison has reached; it began with the first. Nil: none has been to the
    /// end yet.
    private var comparedTo: CopyName? = .first
    private var isCompared = false

    /// - Parameters:
    ///   - applied: what the rows have, which are durable at the start.
    ///   - milliseconds: the time of that entry.
    package init(applied: LogIndex, milliseconds: Int64, limits: Limits = Limits()) {
        self.applied = applied
        self.durable = applied
        self.durableMilliseconds = milliseconds
        self.limits = limits
    }

    // MARK: What the rows say

    /// An entry that was applied named a body.
    package mutating func named(_ body: BodyManifest) {
        guard !body.isLost else { return self.list(lost: body.body) }
        self.lost.remove(body.body)
        for (offset, chunk) in body.chunks.enumerated() {
            let name = body.name(of: UInt32(offset))
            self.damaged[name] = nil
            if self.unnamed.removeValue(forKey: name) == nil {
                self.miss(name, Missing(chunk: chunk, namedAt: body.namedAt))
            }
        }
    }

    /// An entry that was applied let a body go, or called it lost.
    ///
    /// - Parameter isLost: its row stays, so its copies stay too; nobody waits for those that lack.
    package mutating func dropped(
        _ body: BodyID, chunkCount: UInt32, at index: LogIndex, isLost: Bool = false
    ) {
        for ordinal in 0..<chunkCount { self.missing[CopyName(body: body, ordinal: ordinal)] = nil }
        if isLost { return self.list(lost: body) }
        self.lost.remove(body)
        guard chunkCount > 0 else { return }
        if self.dropped.count < self.limits.countMax {
            self.dropped[body] = Dropped(at: index, chunkCount: chunkCount)
        } else {
            self.unlistedDropAt = max(self.unlistedDropAt, index)
            self.hasUnlistedOrphans = true
        }
    }

    /// More happened through this entry than was told, or the rows went back. What is listed counts
    /// no more, and nothing goes until another comparison is through and the entry is durable.
    package mutating func unlisted(through index: LogIndex) {
        self.missing = [:]
        self.unnamed = [:]
        self.damaged = [:]
        self.dropped = [:]
        self.lost = []
        self.hasUnlistedLost = false
        self.unlistedFrom = nil
        self.unlistedBefore = nil
        self.hasUnlistedOrphans = false
        self.unlistedDropAt = max(self.unlistedDropAt, index)
        self.comparedTo = .first
        self.isCompared = false
    }

    /// Everything through this entry was told.
    package mutating func applied(through index: LogIndex) {
        self.applied = max(self.applied, index)
    }

    /// The rows are durable through an entry, which has this time.
    package mutating func durable(through index: LogIndex, milliseconds: Int64) {
        guard index >= self.durable else { return }
        self.durable = index
        self.durableMilliseconds = max(self.durableMilliseconds, milliseconds)
    }

    // MARK: What the store says

    /// A copy is stored, whoever sent it.
    package mutating func stored(_ copy: HeldCopy) {
        self.damaged[copy.name] = nil
        if let missing = self.missing[copy.name] {
            guard missing.chunk.crc == copy.crc, missing.chunk.storedSize == copy.storedSize
            else { return }
            self.missing[copy.name] = nil
        } else if self.dropped[copy.name.body] == nil, !self.isLost(copy.name.body) {
            self.list(unnamed: copy)
        }
    }

    /// An entry that was applied calls a body lost no more.
    ///
    /// - Parameter held: the sound copies of it that the store has.
    package mutating func found(_ body: BodyManifest, held: [HeldCopy]) {
        self.named(body)
        for copy in held where self.missing[copy.name] != nil { self.stored(copy) }
    }

    /// Whether rows as applied call the body lost. False for some where there are too many to list.
    package func isLost(_ body: BodyID) -> Bool { self.lost.contains(body) }

    /// A copy was found damaged, or is gone.
    ///
    /// - Parameter body: as the rows as applied have it. Nil: no row names it.
    package mutating func forgotten(_ name: CopyName, of body: BodyManifest?) {
        self.unnamed[name] = nil
        guard let body, !body.isLost, Int(name.ordinal) < body.chunks.count else { return }
        self.miss(
            name, Missing(chunk: body.chunks[Int(name.ordinal)], namedAt: body.namedAt))
    }

    /// Copies that ``removable(limit:)`` named are gone from the store.
    package mutating func removed(_ names: [CopyName]) {
        for name in names {
            self.unnamed[name] = nil
            self.damaged[name] = nil
            guard var dropped = self.dropped[name.body], name.ordinal < dropped.chunkCount
            else { continue }
            dropped.next = max(dropped.next, name.ordinal + 1)
            self.dropped[name.body] = dropped.next == dropped.chunkCount ? nil : dropped
        }
    }

    // MARK: Comparing

    /// The name at which the next page of the comparison begins.
    package var nextPage: CopyName { self.comparedTo ?? .first }

    /// Puts right what is listed for a part of the names. Pages come in order, each from
    /// ``nextPage`` on; the first one begins a comparison, the one that goes to the end completes
    /// it.
    package mutating func compare(_ page: Page) {
        if page.from == .first {
            self.hasUnlistedOrphans = false
            self.unlistedBefore = Self.first(self.unlistedFrom, self.unlistedBefore)
            self.unlistedFrom = nil
            self.comparedUnlistedLost = false
        }
        self.missing = self.missing.filter { !page.contains($0.key) }
        self.unnamed = self.unnamed.filter { !page.contains($0.key) }
        self.damaged = self.damaged.filter { !page.contains($0.key) }
        let held = Dictionary(page.held.map { ($0.name, $0) }, uniquingKeysWith: { one, _ in one })
        var named: Set<CopyName> = []
        for body in page.bodies {
            for (offset, chunk) in body.chunks.enumerated() {
                let name = body.name(of: UInt32(offset))
                guard page.contains(name) else { continue }
                named.insert(name)
                if body.isLost {
                    self.list(lost: body.body)
                    continue
                }
                if let copy = held[name], copy.crc == chunk.crc,
                    copy.storedSize == chunk.storedSize
                {
                    continue
                }
                self.miss(name, Missing(chunk: chunk, namedAt: body.namedAt))
            }
        }
        for copy in page.held
        where !named.contains(copy.name) && self.dropped[copy.name.body] == nil {
            self.list(unnamed: copy)
        }
        for copy in page.damaged
        where !named.contains(copy.name) && self.dropped[copy.name.body] == nil {
            if self.damaged.count < self.limits.countMax {
                self.damaged[copy.name] = copy.orphanAfterMilliseconds
            } else {
                self.hasUnlistedOrphans = true
            }
        }
        self.comparedTo = page.end
        if page.end == nil {
            self.isCompared = true
            self.unlistedBefore = nil
            self.hasUnlistedLost = self.comparedUnlistedLost
        }
    }

    // MARK: What follows

    /// The last entry through which this replica has every copy that was named. Nil: not known
    /// before the first comparison is through.
    package var heldThrough: LogIndex? {
        guard self.isCompared else { return nil }
        var first = Self.first(self.unlistedFrom, self.unlistedBefore)
        for missing in self.missing.values { first = Self.first(first, missing.namedAt) }
        return first.map { $0 > .zero ? $0.previous : .zero } ?? self.applied
    }

    package var missingCount: Int { self.missing.count }
    package func isMissing(_ name: CopyName) -> Bool { self.missing[name] != nil }
    /// Copies that no row names.
    package var unnamedCount: Int { self.unnamed.count + self.damaged.count }
    /// When the first of them is an orphan: a time of the log.
    package var firstOrphanMilliseconds: Int64? {
        [self.unnamed.values.min(), self.damaged.values.min()].compactMap(\.self).min()
    }
    /// Whether more copies are missing than are listed.
    package var hasUnlisted: Bool { self.unlistedFrom != nil || self.unlistedBefore != nil }

    /// Whether another comparison is due: more is missing, or unnamed, than was listed, and there
    /// is room for it now.
    package var wantsComparison: Bool {
        self.hasUnlisted && self.missing.count <= self.limits.countMax / 2
            || self.hasUnlistedOrphans && self.unnamed.isEmpty && self.damaged.isEmpty
            || self.hasUnlistedLost && self.lost.count <= self.limits.countMax / 2
    }

    /// Whether a copy that is here goes before `milliseconds` of the log if no entry names it.
    package func isUnnamed(_ name: CopyName, before milliseconds: Int64) -> Bool {
        self.unnamed[name].map { $0 < milliseconds } ?? false
    }

    /// Whether the list has the copy as one that no row names.
    package func isUnnamed(_ name: CopyName) -> Bool { self.unnamed[name] != nil }

    /// The copies to fetch, in the order of their names from `first` on, and around: each with what
    /// the row says of it. Who asks on behind the last asks for all in turn.
    package func wanted(
        from first: CopyName = .first, limit: Int
    ) -> [(name: CopyName, chunk: BodyManifest.Chunk)] {
        let names = self.missing.keys.sorted()
        let start = names.firstIndex { $0 >= first } ?? 0
        return (names[start...] + names[..<start]).prefix(limit).map {
            ($0, self.missing[$0]!.chunk)
        }
    }

    /// Copies that are missing, from a name on.
    func missingNames(from first: CopyName, limit: Int) -> [CopyName] {
        Array(self.missing.keys.filter { $0 >= first }.sorted().prefix(limit))
    }

    /// Copies that no row names although the log has passed their time by so long.
    func overdueNames(from first: CopyName, limit: Int, by milliseconds: Int64) -> [CopyName] {
        let end = self.durableMilliseconds - milliseconds
        var names: [CopyName] = []
        for list in [self.unnamed, self.damaged] {
            names += list.filter { $0.key >= first && $0.value < end }.keys
        }
        return Array(names.sorted().prefix(limit))
    }

    /// The copies that the store may remove now, ascending.
    package func removable(limit: Int) -> [CopyName] {
        var names: [CopyName] = []
        for (body, dropped) in self.dropped.sorted(by: { $0.key < $1.key })
        where dropped.at <= self.durable {
            if names.count >= limit { break }
            names += (dropped.next..<dropped.chunkCount).prefix(limit - names.count).map {
                CopyName(body: body, ordinal: $0)
            }
        }
        if names.count < limit, self.unlistedDropAt <= self.durable, !self.hasUnlistedLost {
            for list in [self.unnamed, self.damaged] {
                names += list.filter { $0.value < self.durableMilliseconds }.map(\.key).sorted()
            }
        }
        return Array(names.prefix(limit))
    }

    // MARK: Lists with an end

    private mutating func miss(_ name: CopyName, _ missing: Missing) {
        if self.missing.count >= self.limits.countMax, self.missing[name] == nil {
            self.unlistedFrom = Self.first(self.unlistedFrom, missing.namedAt)
        } else {
            self.missing[name] = missing
        }
    }

    private static func first(_ one: LogIndex?, _ other: LogIndex?) -> LogIndex? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }

    private mutating func list(lost body: BodyID) {
        if self.lost.count < self.limits.countMax {
            self.lost.insert(body)
        } else if !self.lost.contains(body) {
            self.hasUnlistedLost = true
            self.comparedUnlistedLost = true
        }
    }

    private mutating func list(unnamed copy: HeldCopy) {
        // One that is not listed is found by a comparison once those that are listed have gone, and
        // fetched needlessly if it is named before.
        guard self.unnamed.count < self.limits.countMax || self.unnamed[copy.name] != nil else {
            self.hasUnlistedOrphans = true
            return
        }
        self.unnamed[copy.name] = copy.orphanAfterMilliseconds
    }
}
