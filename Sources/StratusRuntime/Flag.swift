import Synchronization

/// Raised once.
final class Flag: Sendable {
    private let raised = Atomic(false)

    /// - Returns: whether it was up already.
    func raise() -> Bool { self.raised.exchange(true, ordering: .acquiringAndReleasing) }
}
