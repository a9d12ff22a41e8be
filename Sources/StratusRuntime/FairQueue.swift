/// A fair queue of several owners: it gives out the oldest element of one owner, then of the next.
///
/// An owner with a thousand waiting elements delays another by one turn only. Owners take turns in
/// the order in which they first had to wait.
package struct FairQueue<Key: Hashable, Element> {
    private var waiting: [Key: [Element]] = [:]
    /// The owners with elements waiting; the first has the next turn.
    private var turns: [Key] = []

    package init() {}

    package private(set) var count = 0

    package mutating func append(_ element: Element, for key: Key) {
        if self.waiting[key] == nil { self.turns.append(key) }
        self.waiting[key, default: []].append(element)
        self.count += 1
    }

    package mutating func popFirst() -> Element? {
        guard !self.turns.isEmpty else { return nil }
        let key = self.turns.removeFirst()
        guard let first = self.waiting[key]?.removeFirst() else { return nil }
        if self.waiting[key]?.isEmpty == true {
            self.waiting[key] = nil
        } else {
            self.turns.append(key)
        }
        self.count -= 1
        return first
    }
}
