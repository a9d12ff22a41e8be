/// The future events, in the order of time, then of asking: a binary heap.
struct EventQueue<Event> {
    private struct Item {
        let time: Int64
        let order: UInt64
        let event: Event

        func isBefore(_ other: Item) -> Bool {
            self.time != other.time ? self.time < other.time : self.order < other.order
        }
    }

    private var heap: [Item] = []
    private var count: UInt64 = 0

    mutating func add(_ event: Event, at time: Int64) {
        self.count += 1
        self.heap.append(Item(time: time, order: self.count, event: event))
        var child = self.heap.count - 1
        while child > 0, self.heap[child].isBefore(self.heap[(child - 1) / 2]) {
            self.heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func popFirst() -> (time: Int64, event: Event)? {
        guard let first = self.heap.first else { return nil }
        let last = self.heap.removeLast()
        if !self.heap.isEmpty {
            self.heap[0] = last
            var parent = 0
            while true {
                var least = parent
                for child in [2 * parent + 1, 2 * parent + 2]
                where child < self.heap.count && self.heap[child].isBefore(self.heap[least]) {
                    least = child
                }
                if least == parent { break }
                self.heap.swapAt(parent, least)
                parent = least
            }
        }
        return (first.time, first.event)
    }
}
