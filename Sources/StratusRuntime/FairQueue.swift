/// What waits, for several who take turns: the oldest of the one whose turn it is, then of the next.
///
/// Somebody with a thousand waiting keeps another from nothing but its own turn. Turns follow the order in which somebody
/// first came to wait.
package struct FairQueue<Key: Hashable, Element> {
    private var waiting: [Key: [Element]] = [:]
    /// Who has something waiting, whose turn is next first.
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
