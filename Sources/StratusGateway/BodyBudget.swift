package import StratusModel
import Synchronization

/// The memory that requests' bodies may take in all connections together, from their first byte to their
/// answers.
///
/// A limit on one body and one on connections bound their product only: a thousand clients with the
/// largest body each would take sixteen gigabytes. Large bodies may have three quarters: whoever sends
/// them cannot keep out the small requests that most are.
package final class BodyBudget: Sendable {
    /// Up to this size a body is small.
    package static let smallSizeMax = 64 << 10

    private let sizeMax: Int
    private let taken = Atomic(0)

    package init(_ sizeMax: ByteCount) { self.sizeMax = sizeMax.raw }

    /// Bytes taken now.
    package var size: Int { self.taken.load(ordering: .relaxed) }

    fileprivate func take(_ size: Int, isLarge: Bool) -> Bool {
        let most = isLarge ? self.sizeMax - self.sizeMax / 4 : self.sizeMax
        let now = self.taken.add(size, ordering: .relaxed).newValue
        if now <= most { return true }
        self.taken.subtract(size, ordering: .relaxed)
        return false
    }

    fileprivate func give(_ size: Int) { self.taken.subtract(size, ordering: .relaxed) }

    /// One request's part, given back when it is dropped.
    struct Share: ~Copyable {
        private let budget: BodyBudget
        private var size = 0

        init(of budget: BodyBudget) { self.budget = budget }

        deinit { self.budget.give(self.size) }

        /// - Returns: whether there is room for `count` more bytes; if not, nothing is taken.
        mutating func grow(by count: Int) -> Bool {
            let isLarge = self.size + count > BodyBudget.smallSizeMax
            guard self.budget.take(count, isLarge: isLarge) else { return false }
            self.size += count
            return true
        }
    }
}
