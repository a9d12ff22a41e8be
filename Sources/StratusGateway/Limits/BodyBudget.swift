package import StratusModel
import StratusRuntime
import Synchronization

/// The memory that requests' bodies may take in all connections together, from their first byte to
/// their answers.
///
/// A limit on one body and one on connections bound their product only: a thousand clients with the
/// largest body each would take sixteen gigabytes.
package final class BodyBudget: Sendable {
    /// The largest size of a small body.
    package static let smallSizeMax = 64 << 10

    /// From this size on a body counts three times: it is in memory as it came, as it was parsed,
    /// and as the command that was made of it.
    package static let largeSizeMin = 1 << 20
    /// The peak that must have been reached before it is worth giving memory back to the system.
    package static let emptiedSizeMin = 64 << 20

    private let bytes: ByteBudget
    /// The largest charge of one body, so that each fits into an empty budget.
    private let chargeMax: Int
    private let peak = Atomic(0)
    private let whenEmptied: @Sendable () -> Void

    /// - Parameter whenEmptied: called where the last body has gone after many were held.
    package init(_ sizeMax: ByteCount, whenEmptied: @escaping @Sendable () -> Void = {}) {
        self.bytes = ByteBudget(sizeMax)
        self.chargeMax = sizeMax.raw - sizeMax.raw / 4
        self.whenEmptied = whenEmptied
    }

    /// Bytes taken now.
    package var size: Int { self.bytes.size }

    /// The charge of a body of `size` bytes.
    func charge(of size: Int) -> Int {
        let whole = size + 2 * max(0, size - Self.largeSizeMin)
        return max(size, min(whole, self.chargeMax))
    }

    private func take(_ count: Int, isLarge: Bool) -> Bool {
        guard self.bytes.take(count, isLarge: isLarge) else { return false }
        let size = self.bytes.size
        if size > self.peak.load(ordering: .relaxed) { self.peak.store(size, ordering: .relaxed) }
        return true
    }

    private func give(_ count: Int) {
        if count == 0 { return }
        self.bytes.give(count)
        guard self.bytes.size == 0,
            self.peak.exchange(0, ordering: .relaxed) >= Self.emptiedSizeMin
        else { return }
        self.whenEmptied()
    }

    /// One request's part, given back when it is dropped.
    struct Share: ~Copyable {
        private let budget: BodyBudget
        private var size = 0
        private var charge = 0

        init(of budget: BodyBudget) { self.budget = budget }

        deinit { self.budget.give(self.charge) }

        /// - Returns: whether there is room for `count` more bytes; if not, nothing is taken.
        mutating func grow(by count: Int) -> Bool {
            let size = self.size + count
            let charge = self.budget.charge(of: size)
            guard
                self.budget.take(charge - self.charge, isLarge: size > BodyBudget.smallSizeMax)
            else { return false }
            self.size = size
            self.charge = charge
            return true
        }
    }
}
