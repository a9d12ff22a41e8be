package import StratusModel
import Synchronization

/// Memory that many share: whoever wants some asks first, and gives it back.
///
/// Large wishes may have three quarters: whoever makes them cannot keep out the small ones that most are.
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
