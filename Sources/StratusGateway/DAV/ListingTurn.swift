/// Lets the others on an event loop have their turn while a long listing is written.
///
/// A listing may never wait for anything: its items are read, and its client takes all that comes.
struct ListingTurn: Sendable {
    static let itemCountMax = 32
    static let sizeMax = 64 << 10

    private var itemCount = 0
    private var size = 0

    /// Notes what was written, and waits until the others had their turn if it is enough for once.
    mutating func spend(items: Int, size: Int) async {
        self.itemCount += items
        self.size += size
        guard self.itemCount >= Self.itemCountMax || self.size >= Self.sizeMax else { return }
        self.itemCount = 0
        self.size = 0
        await Task.yield()
    }
}
