import StratusModel
import StratusRecords

/// What `lockdiscovery` says of the items of one answer: those of a place, and what is in it.
///
/// Every lock is written once. Those that hold for all items of the answer are together; those of
/// single items are found by their IDs.
struct DAVLockDiscovery: Sendable {
    typealias Write = @Sendable (_ lock: DocumentLock, _ root: String) -> Bytes

    /// The infinite locks of the place and of the folders above it.
    private let everywhere: Bytes
    /// The others on the place and above it, by item. The parts of a package have its ID.
    private let above: [String: Bytes]
    /// Locks on items elsewhere, which may be in the place.
    private let others: [String: [DocumentLock]]
    private let write: Write

    /// For answers that show no locks.
    static let none = DAVLockDiscovery([], at: nil, root: { _ in "" }, write: { _, _ in [] })

    /// - Parameter root: the address of a lock's item, which is the place or a folder above it.
    init(
        _ locks: [DocumentLock], at place: DAVService.Place?, root: (DocumentLock) -> String,
        write: @escaping Write
    ) {
        let ids = Set(place?.ids ?? [])
        var everywhere: Bytes = []
        var above: [String: Bytes] = [:]
        var others: [String: [DocumentLock]] = [:]
        for lock in locks {
            if !ids.contains(lock.item) {
                others[lock.item, default: []].append(lock)
            } else if lock.isInfinite {
                everywhere += write(lock, root(lock))
            } else {
                above[lock.item, default: []] += write(lock, root(lock))
            }
        }
        self.everywhere = everywhere
        self.above = above
        self.others = others
        self.write = write
    }

    /// The element of an item.
    func element(of item: DocumentItem, href: String) -> Bytes {
        var written = self.everywhere
        if let known = self.above[item.id] { written += known }
        for lock in self.others[item.id] ?? [] { written += self.write(lock, href) }
        return DAVLocks.discovery(written)
    }
}
