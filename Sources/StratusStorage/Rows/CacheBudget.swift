package import StratusModel
import Synchronization

/// The memory for the page caches of all partitions of a node.
///
/// A node that serves few partitions gives each of them much, because a page outside the cache
/// costs a read, its checksum and a copy. The more are open, the less the next one gets, but none
/// less than ``sizeMin``. A partition keeps its part until it is closed. So all parts together stay
/// below the total times the logarithm of their number, or their minimum.
package final class CacheBudget: Sendable {
    private static let sizeMin = ByteCount.mebibytes(2)
    private static let sizeMax = ByteCount.mebibytes(32)

    private let total: ByteCount
    private let openCount = Mutex(0)

    package init(total: ByteCount = .mebibytes(128)) { self.total = total }

    /// One partition's part, given back with the last reference to it.
    package final class Share: Sendable {
        package let size: ByteCount
        private let budget: CacheBudget

        fileprivate init(_ size: ByteCount, of budget: CacheBudget) {
            self.size = size
            self.budget = budget
        }

        deinit { self.budget.openCount.withLock { $0 -= 1 } }
    }

    package func share() -> Share {
        let count = self.openCount.withLock { count in
            count += 1
            return count
        }
        let size = ByteCount(self.total.raw / count)
        return Share(min(max(size, Self.sizeMin), Self.sizeMax), of: self)
    }
}

extension CacheBudget: Equatable {
    package static func == (one: CacheBudget, other: CacheBudget) -> Bool { one === other }
}
