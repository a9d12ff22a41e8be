package import StratusModel
import Synchronization

/// A memory budget that many share: each user takes from it first, and gives back later.
///
/// Large requests may use three quarters of it, so that they cannot crowd out the many small ones.
package final class ByteBudget: Sendable {
    private let sizeMax: Int
    private let taken = Atomic(0)

    package init(_ sizeMax: ByteCount) { self.sizeMax = sizeMax.raw }

    /// Bytes taken now.
    package var size: Int { self.taken.load(ordering: .relaxed) }

    /// - Parameter always: whether or not there is room.
    /// - Returns: whether it was taken.
    package func take(_ size: Int, isLarge: Bool, always: Bool = false) -> Bool {
        let most = isLarge ? self.sizeMax - self.sizeMax / 4 : self.sizeMax
        let now = self.taken.add(size, ordering: .relaxed).newValue
        if now <= most || always { return true }
        self.taken.subtract(size, ordering: .relaxed)
        return false
    }

    package func give(_ size: Int) { self.taken.subtract(size, ordering: .relaxed) }
}
