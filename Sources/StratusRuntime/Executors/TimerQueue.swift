package import StratusModel

/// A queue of payloads by time: a binary heap whose entries can be moved and removed.
///
/// Inserting, moving and removing cost O(log n); a cancelled entry leaves nothing behind. Equal
/// times fire in the order inserted.
package struct TimerQueue<Payload> {
    /// Names one entry until it fires or is removed. After that it names nothing, even if its slot
    /// is used again.
    package struct Token: Sendable, Hashable {
        fileprivate let slot: Int32
        fileprivate let generation: UInt32
    }

    private struct Entry {
        var time: MonotonicTime
        var order: UInt64
        var slot: Int32

        func isBefore(_ other: Entry) -> Bool {
            (self.time, self.order) < (other.time, other.order)
        }
    }

    private struct Slot {
        /// The position of its entry in the heap.
        var position: Int32
        var generation: UInt32
        var payload: Payload?
    }

    private var heap: [Entry] = []
    private var slots: [Slot] = []
    private var free: [Int32] = []
    private var inserted: UInt64 = 0

    package init() {}

    package var count: Int { self.heap.count }
    package var first: MonotonicTime? { self.heap.first?.time }

    package mutating func insert(at time: MonotonicTime, _ payload: Payload) -> Token {
        let slot: Int32
        if let reused = self.free.popLast() {
            slot = reused
        } else {
            slot = Int32(self.slots.count)
            self.slots.append(Slot(position: 0, generation: 0, payload: nil))
        }
        self.slots[Int(slot)].payload = payload
        self.inserted += 1
        self.heap.append(Entry(time: time, order: self.inserted, slot: slot))
        self.slots[Int(slot)].position = Int32(self.heap.count - 1)
        self.rise(from: self.heap.count - 1)
        return Token(slot: slot, generation: self.slots[Int(slot)].generation)
    }

    /// - Returns: false when it has fired or was removed.
    package mutating func move(_ token: Token, to time: MonotonicTime) -> Bool {
        guard let position = self.position(of: token) else { return false }
        self.inserted += 1
        self.heap[position].time = time
        self.heap[position].order = self.inserted
        self.settle(at: position)
        return true
    }

    /// - Returns: its payload, unless it has fired or was removed.
    @discardableResult
    package mutating func remove(_ token: Token) -> Payload? {
        guard let position = self.position(of: token) else { return nil }
        return self.remove(at: position)
    }

    /// The next payload whose time has come.
    package mutating func popDue(at now: MonotonicTime) -> Payload? {
        guard let first = self.heap.first, first.time <= now else { return nil }
        return self.remove(at: 0)
    }

    private func position(of token: Token) -> Int? {
        let slot = self.slots[Int(token.slot)]
        return slot.generation == token.generation ? Int(slot.position) : nil
    }

    private mutating func remove(at position: Int) -> Payload? {
        let slot = Int(self.heap[position].slot)
        let payload = self.slots[slot].payload
        self.slots[slot].payload = nil
        self.slots[slot].generation &+= 1
        self.free.append(Int32(slot))
        let last = self.heap.removeLast()
        if position < self.heap.count {
            self.place(last, at: position)
            self.settle(at: position)
        }
        return payload
    }

    private mutating func settle(at position: Int) {
        self.rise(from: position)
        self.sink(from: position)
    }

    private mutating func rise(from start: Int) {
        var position = start
        let entry = self.heap[position]
        while position > 0 {
            let parent = (position - 1) / 2
            guard entry.isBefore(self.heap[parent]) else { break }
            self.place(self.heap[parent], at: position)
            position = parent
        }
        self.place(entry, at: position)
    }

    private mutating func sink(from start: Int) {
        var position = start
        let entry = self.heap[position]
        while true {
            var child = 2 * position + 1
            guard child < self.heap.count else { break }
            if child + 1 < self.heap.count, self.heap[child + 1].isBefore(self.heap[child]) {
                child += 1
            }
            guard self.heap[child].isBefore(entry) else { break }
            self.place(self.heap[child], at: position)
            position = child
        }
        self.place(entry, at: position)
    }

    private mutating func place(_ entry: Entry, at position: Int) {
        self.heap[position] = entry
        self.slots[Int(entry.slot)].position = Int32(position)
    }
}
