import StratusModel
import Testing

@testable import StratusStorage

/// The entries after a damaged one, once another takes its place.
@Suite struct GroupTailTests {
    private static func slot(_ term: UInt64) -> GroupTail.Slot {
        GroupTail.Slot(
            term: Term(term),
            place: .located(
                GroupTail.Location(
                    segment: 1, offset: 0, size: 0, crc: 0, time: .zero, kind: .command)))
    }

    /// Entries at 1, 3 and 4; what 2 was is not known.
    private static func torn() -> GroupTail {
        var tail = GroupTail()
        tail.put(Self.slot(1), at: LogIndex(1))
        tail.put(Self.slot(3), at: LogIndex(3))
        tail.put(Self.slot(3), at: LogIndex(4))
        #expect(tail.damagedIndexes == [LogIndex(2)])
        return tail
    }

    @Test func `entries behind one that nobody knows are in doubt`() {
        let tail = Self.torn()
        #expect(tail.followers(of: LogIndex(2), as: Term(2)) == .inDoubt)
        #expect(tail.followers(of: LogIndex(2), as: Term(4)) == .go)
        #expect(tail.followers(of: LogIndex(3), as: Term(4)) == .stay, "3 is not damaged")
        // A copy that was moved, read back behind those that follow it.
        var moved = tail
        moved.put(Self.slot(2), at: LogIndex(2))
        #expect(moved.damagedIndexes.isEmpty && moved.last == LogIndex(4))
    }

    @Test func `releasing a few entries of many moves each but once`() {
        var tail = GroupTail()
        for index in 1...20_000 as ClosedRange<UInt64> {
            tail.put(Self.slot(index / 100 + 1), at: LogIndex(index))
        }
        var released: UInt64 = 0
        while released < 19_900 {
            released += 40
            tail.release(through: LogIndex(released))
            #expect(tail.start.index == LogIndex(released) && tail.last == LogIndex(20_000))
            #expect(tail.term(at: LogIndex(released + 60)) == Term((released + 60) / 100 + 1))
            #expect(tail.slots.deadCount <= tail.slots.count)
        }
        #expect(tail.slots.movedCount <= 20_000)
        tail.cut(from: LogIndex(19_990))
        tail.put(Self.slot(900), at: LogIndex(19_990))
        #expect(tail.last == LogIndex(19_990) && tail.term(at: tail.last) == Term(900))
    }

    @Test func `entries that cannot follow are gone`() {
        var tail = Self.torn()
        tail.put(Self.slot(4), at: LogIndex(2))
        #expect(tail.last == LogIndex(2) && tail.damagedIndexes.isEmpty)
        var other = Self.torn()
        other.markDamaged(at: LogIndex(3))
        other.put(Self.slot(1), at: LogIndex(3))
        #expect(other.last == LogIndex(3) && other.damagedIndexes == [LogIndex(2)])
    }

    /// Clusters of the simulator seldom come to this.
    @Test(.enabled(if: PlantedBugs.isPossible))
    func `a log that keeps the tail behind a damaged entry is found`() {
        #if STRATUS_PLANTED
            var tail = Self.torn()
            tail.put(
                Self.slot(4), at: LogIndex(2), bugs: PlantedBugs([.tailBehindDamageKept]))
            // Terms fall behind entry 2: such a log does not start.
            #expect(tail.last == LogIndex(4))
            #expect(tail.term(at: LogIndex(3))! < tail.term(at: LogIndex(2))!)
        #endif
    }

    @Test func `a start that a state vouches for ends what followed another entry`() {
        var tail = Self.torn()
        tail.markDamaged(at: LogIndex(3))
        tail.replay(start: GroupTail.LogPoint(index: LogIndex(3), term: Term(4)))
        #expect(tail.last == LogIndex(3) && tail.start.term == Term(4))
        var same = Self.torn()
        same.markDamaged(at: LogIndex(3))
        same.replay(start: GroupTail.LogPoint(index: LogIndex(3), term: Term(3)))
        #expect(same.last == LogIndex(4) && same.damagedIndexes.isEmpty)
    }
}
