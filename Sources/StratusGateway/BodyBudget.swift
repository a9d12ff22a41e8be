package import StratusModel
import StratusRuntime

/// The memory that requests' bodies may take in all connections together, from their first byte to their
/// answers.
///
/// A limit on one body and one on connections bound their product only: a thousand clients with the
/// largest body each would take sixteen gigabytes.
package final class BodyBudget: Sendable {
    /// Up to this size a body is small.
    package static let smallSizeMax = 64 << 10

    private let bytes: ByteBudget

    package init(_ sizeMax: ByteCount) { self.bytes = ByteBudget(sizeMax) }

    /// Bytes taken now.
    package var size: Int { self.bytes.size }

    /// One request's part, given back when it is dropped.
    struct Share: ~Copyable {
        private let budget: BodyBudget
        private var size = 0

        init(of budget: BodyBudget) { self.budget = budget }

        deinit { self.budget.bytes.give(self.size) }

        /// - Returns: whether there is room for `count` more bytes; if not, nothing is taken.
        mutating func grow(by count: Int) -> Bool {
            let isLarge = self.size + count > BodyBudget.smallSizeMax
            guard self.budget.bytes.take(count, isLarge: isLarge) else { return false }
            self.size += count
            return true
        }
    }
}
