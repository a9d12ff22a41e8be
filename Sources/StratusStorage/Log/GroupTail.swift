import StratusModel

/// The shared log's knowledge of one group: which entries it holds, and where.
///
/// A value without I/O. Invariant: `slots[i]` is the entry at index `start.index + 1 + i`.
struct GroupTail {
    struct Location: Equatable {
        var segment: UInt32
        var offset: UInt32
        var size: UInt32
        var crc: UInt32
        var time: HybridTime
        var kind: Entry.Kind
    }

    enum Place {
        case located(Location)
        /// Submitted and not yet synced; the token tells it from another entry at the same index.
        /// `copy` is the segment that holds it until then, if it is only being moved.
        case pending(Entry, token: UInt64, copy: UInt32? = nil)
        /// It was here and its bytes are damaged or gone: to be fetched from a peer.
        case damaged
    }

    struct Slot {
        var term: Term
        var place: Place

        /// Its approximate size on disk.
        var cost: Int {
            switch self.place {
            case .located(let location): Int(location.size) + LogFormat.itemSize
            case .pending(let entry, _, _): entry.payload.count + LogFormat.itemSize
            case .damaged: LogFormat.itemSize
            }
        }

        var isDamaged: Bool { if case .damaged = self.place { true } else { false } }
    }

    /// The entry before the first one kept.
    private(set) var start: LogPoint
    private(set) var slots = SlotQueue()
    /// The approximate size of all slots on disk.
    private(set) var heldSize = 0
    var hardState: HardState?
    /// The hard state as of the last sync.
    var durableHardState: HardState?
    /// The newest start that a sync has covered: segments go by it.
    var durableStart: LogPoint
    /// Cuts that no sync has covered: until then a crash brings back what they removed.
    var unsyncedCutCount = 0
    /// Every entry up to here is on stable storage, as far as it is not damaged.
    private(set) var durableThrough: LogIndex

    init(start: LogPoint = LogPoint(index: .zero, term: .zero)) {
        self.start = start
        self.durableStart = start
        self.durableThrough = start.index
    }

    struct LogPoint: Equatable {
        var index: LogIndex
        var term: Term
    }

    var last: LogIndex { LogIndex(self.start.index.raw + UInt64(self.slots.count)) }

    /// Holds nothing and begins at the beginning.
    var isUntouched: Bool { self.slots.isEmpty && self.start.index == .zero }

    func term(at index: LogIndex) -> Term? {
        if index == self.start.index { return self.start.term }
        return self.position(of: index).map { self.slots[$0].term }
    }

    func slot(at index: LogIndex) -> Slot? { self.position(of: index).map { self.slots[$0] } }

    private func position(of index: LogIndex) -> Int? {
        guard index > self.start.index, index <= self.last else { return nil }
        return Int(index.raw - self.start.index.raw - 1)
    }

    /// Removes the entries from `index` on.
    mutating func cut(from index: LogIndex) {
        guard index <= self.last else { return }
        let keep = index > self.start.index ? Int(index.raw - self.start.index.raw - 1) : 0
        for slot in self.slots[keep...] { self.heldSize -= slot.cost }
        self.slots.removeLast(self.slots.count - keep)
        self.durableThrough = min(self.durableThrough, self.last)
    }

    /// Puts an entry where it belongs: behind the last; in the place of a damaged or equal one; or,
    /// where another term stood, in the place of it and all that followed. Entries that are missing
    /// before it are noted as damaged. Returns whether any were.
    @discardableResult
    mutating func put(_ slot: Slot, at index: LogIndex, bugs: PlantedBugs = PlantedBugs()) -> Bool {
        if index <= self.start.index { return false }
        if let position = self.position(of: index) {
            if self.slots[position].isDamaged {
                if self.followers(of: index, as: slot.term) == .go,
                    !bugs.contains(.tailBehindDamageKept)
                {
                    self.cut(from: index.next)
                }
                self.replace(at: position, by: slot)
                return false
            }
            if self.slots[position].term == slot.term {
                let copy: UInt32? =
                    switch self.slots[position].place {
                    case .located(let location): location.segment
                    case .pending(_, _, let copy): copy
                    case .damaged: nil
                    }
                self.replace(at: position, by: slot)
                if case .pending(let entry, let token, _) = slot.place {
                    self.slots[position].place = .pending(entry, token: token, copy: copy)
                }
                return false
            }
            self.cut(from: index)
        }
        var hasGap = false
        while self.last.next < index {
            self.append(Slot(term: .zero, place: .damaged))
            hasGap = true
        }
        self.append(slot)
        return hasGap
    }

    private mutating func append(_ slot: Slot) {
        self.slots.append(slot)
        self.heldSize += slot.cost
    }

    private mutating func replace(at position: Int, by slot: Slot) {
        self.heldSize += slot.cost - self.slots[position].cost
        self.slots[position] = slot
    }

    /// The fate of the entries behind a damaged one, once one of `term` takes its place: they
    /// followed from the damaged one.
    enum Followers { case stay, go, inDoubt }

    func followers(of index: LogIndex, as term: Term) -> Followers {
        guard let position = self.position(of: index), self.slots[position].isDamaged else {
            return .stay
        }
        let old = self.slots[position].term
        let behind = self.slots[(position + 1)...]
        guard let next = behind.first, old != term else { return .stay }
        if old > .zero || behind.contains(where: { $0.term > .zero && $0.term < term }) {
            return .go
        }
        // If the term of the entry is unknown, the next entry decides, if its term is known.
        return next.isDamaged ? .stay : .inDoubt
    }

    /// A pending entry is on disk now, if it is still the one that was written.
    mutating func locate(_ location: Location, at index: LogIndex, token: UInt64) {
        guard let position = self.position(of: index),
            case .pending(_, token, _) = self.slots[position].place
        else { return }
        self.slots[position].place = .located(location)
        guard index == self.durableThrough.next else { return }
        self.durableThrough = index
        self.passWhatIsHere()
    }

    /// Behind an entry that was missing there may be others that never were.
    private mutating func passWhatIsHere() {
        while let next = self.slot(at: self.durableThrough.next), case .located = next.place {
            self.durableThrough = self.durableThrough.next
        }
    }

    /// After reading the log back: what is here was on stable storage.
    mutating func settleDurable() {
        self.durableThrough = self.damagedIndexes.first?.previous ?? self.last
        self.durableStart = self.start
        self.durableHardState = self.hardState
    }

    /// Marks an entry whose stored bytes are not those that were written; an entry that is being
    /// written again is not lost.
    mutating func markDamaged(at index: LogIndex) {
        guard let position = self.position(of: index),
            case .located = self.slots[position].place
        else { return }
        self.replace(
            at: position, by: Slot(term: self.slots[position].term, place: .damaged))
        self.durableThrough = min(self.durableThrough, index.previous)
    }

    /// Entries through `index` are needed no more.
    mutating func release(through index: LogIndex) {
        guard index > self.start.index else { return }
        precondition(index <= self.last, "released \(index) of \(self.last)")
        let term = self.term(at: index)!
        let count = Int(index.raw - self.start.index.raw)
        for slot in self.slots[..<count] { self.heldSize -= slot.cost }
        self.slots.removeFirst(count)
        self.start = LogPoint(index: index, term: term)
        guard index > self.durableThrough else { return }
        self.durableThrough = index
        self.passWhatIsHere()
    }

    /// Forgets everything: a snapshot through `start` takes its place.
    mutating func restart(after start: LogPoint) {
        self.start = start
        self.slots.removeAll()
        self.heldSize = 0
        self.durableThrough = start.index
    }

    /// Replays the log's own record of a start: keeps the entries after it that are known here. A
    /// start of zero is that of a forgotten group: nothing of it counts.
    mutating func replay(start: LogPoint) {
        if start.index == .zero { return self.restart(after: start) }
        guard start.index > self.start.index else { return }
        if let position = self.position(of: start.index) {
            if self.slots[position].isDamaged || self.slots[position].term == start.term {
                if start.term > .zero, self.followers(of: start.index, as: start.term) == .go {
                    self.cut(from: start.index.next)
                }
                self.slots[position].term = start.term
                self.release(through: start.index)
                return
            }
        }
        self.restart(after: start)
    }

    /// The last entry that this log has ever reported durable, as far as it knows. If it or an
    /// earlier one is missing, that is owed.
    var owedThrough: LogPoint {
        var index = self.last
        while index > self.durableThrough, let slot = self.slot(at: index),
            case .pending = slot.place
        {
            index = index.previous
        }
        return LogPoint(index: index, term: self.term(at: index) ?? .zero)
    }

    /// Takes from `other`, an earlier state of this log, the entries that those known here prove to
    /// be in it still.
    ///
    /// A log that holds an entry of a term agrees, up to there, with that of the term's leader. So
    /// every earlier entry of the same term is in it, with all that stands before that.
    ///
    /// - Parameter last: the last entry of the log, if its head says so.
    mutating func adopt(_ other: Self, last: LogPoint?) {
        if self.start.index < other.start.index {
            // The state at the segment's head counts: the log began anew.
            guard last == nil else { return }
            self.replay(start: other.start)
        }
        var furthest: [Term: LogIndex] = [:]
        for (offset, slot) in self.slots.enumerated() where slot.term > .zero {
            furthest[slot.term] = LogIndex(self.start.index.raw + 1 + UInt64(offset))
        }
        if let last, last.term > .zero {
            furthest[last.term] = max(furthest[last.term] ?? .zero, last.index)
        }
        var proven = other.last
        while proven > self.start.index {
            let term = other.term(at: proven) ?? .zero
            if term > .zero, let index = furthest[term], index >= proven { break }
            proven = proven.previous
        }
        var index = self.start.index
        while index < proven {
            index = index.next
            guard let slot = other.slot(at: index) else { continue }
            if let position = self.position(of: index) {
                if self.slots[position].isDamaged { self.slots[position] = slot }
            } else {
                self.slots.append(slot)
            }
        }
    }

    /// Makes room for entries through `point` that were here and are lost, so that nobody takes the
    /// log for whole before they are back.
    mutating func owe(through point: LogPoint) {
        while self.last < point.index {
            let term = self.last.next == point.index ? point.term : .zero
            self.append(Slot(term: term, place: .damaged))
        }
    }

    var damagedIndexes: [LogIndex] {
        self.slots.indices.compactMap { position in
            guard self.slots[position].isDamaged else { return nil }
            return LogIndex(self.start.index.raw + 1 + UInt64(position))
        }
    }
}

extension GroupTail {
    /// Whether the group still needs anything in a segment that holds entries of it.
    func isHeld(by segment: UInt32) -> Bool {
        if self.unsyncedCutCount > 0 { return true }
        return self.slots.contains { slot in
            switch slot.place {
            case .located(let location): location.segment == segment
            case .pending(_, _, let copy): copy == segment
            case .damaged: false
            }
        }
    }

    var isSettled: Bool {
        self.unsyncedCutCount == 0 && self.hardState == self.durableHardState
            && !self.slots.contains { if case .pending = $0.place { true } else { false } }
    }

    /// The approximate size of the group's entries in a segment.
    func size(in segment: UInt32) -> Int {
        self.slots.reduce(0) { sum, slot in
            guard case .located(let location) = slot.place, location.segment == segment else {
                return sum
            }
            return sum + slot.cost
        }
    }

    func indexes(in segment: UInt32) -> [LogIndex] {
        self.slots.indices.compactMap { position in
            guard case .located(let location) = self.slots[position].place,
                location.segment == segment
            else { return nil }
            return LogIndex(self.start.index.raw + 1 + UInt64(position))
        }
    }
}
