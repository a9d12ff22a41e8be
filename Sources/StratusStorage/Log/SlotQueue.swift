/// The slots of a group, from which the first are taken away again and again.
///
/// Half of the array may be dead before the living are moved to its front, so that each slot is
/// moved once on average, however few are released at a time.
struct SlotQueue: RandomAccessCollection, MutableCollection {
    private var all: [GroupTail.Slot] = []
    private(set) var deadCount = 0
    /// Slots that were moved so far.
    private(set) var movedCount = 0

    var startIndex: Int { 0 }
    var endIndex: Int { self.all.count - self.deadCount }

    subscript(position: Int) -> GroupTail.Slot {
        get { self.all[self.deadCount + position] }
        set { self.all[self.deadCount + position] = newValue }
    }

    mutating func append(_ slot: GroupTail.Slot) { self.all.append(slot) }

    mutating func removeFirst(_ count: Int) {
        precondition(count <= self.count)
        self.deadCount += count
        guard self.deadCount * 2 >= self.all.count else { return }
        self.movedCount += self.count
        self.all.removeFirst(self.deadCount)
        self.deadCount = 0
    }

    mutating func removeLast(_ count: Int) {
        precondition(count <= self.count)
        self.all.removeLast(count)
    }

    mutating func removeAll() { self = Self() }
}
