/// Who has most, of many whose sizes change. Of two who have as much, the one with the smaller
/// number.
struct LargestFirst<ID: Hashable & Sendable>: Sendable {
    private struct Item {
        let id: ID
        let number: UInt64
        var size: Int

        func precedes(_ other: Item) -> Bool {
            (self.size, other.number) > (other.size, self.number)
        }
    }

    /// A heap: none precedes the one at half its index.
    private var items: [Item] = []
    private var indices: [ID: Int] = [:]

    var first: ID? { self.items.first?.id }

    /// - Parameter number: the same each time.
    mutating func set(_ id: ID, _ number: UInt64, to size: Int) {
        let index = self.indices[id] ?? self.items.count
        if index == self.items.count {
            self.items.append(Item(id: id, number: number, size: size))
            self.indices[id] = index
        } else {
            self.items[index].size = size
        }
        self.settle(index)
    }

    mutating func remove(_ id: ID) {
        guard let index = self.indices.removeValue(forKey: id) else { return }
        let last = self.items.removeLast()
        guard index < self.items.count else { return }
        self.put(last, at: index)
        self.settle(index)
    }

    private mutating func settle(_ start: Int) {
        var index = start
        while index > 0, self.items[index].precedes(self.items[(index - 1) / 2]) {
            self.swap(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
        while true {
            var best = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < self.items.count && self.items[child].precedes(self.items[best]) {
                best = child
            }
            if best == index { return }
            self.swap(index, best)
            index = best
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        let item = self.items[one]
        self.put(self.items[other], at: one)
        self.put(item, at: other)
    }

    private mutating func put(_ item: Item, at index: Int) {
        self.items[index] = item
        self.indices[item.id] = index
    }
}
