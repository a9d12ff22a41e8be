import Synchronization

/// Raised once.
final class Flag: Sendable {
    private let raised = Atomic(false)

    /// - Returns: whether it was up already.
    @discardableResult
    func raise() -> Bool { self.raised.exchange(true, ordering: .acquiringAndReleasing) }

    var isRaised: Bool { self.raised.load(ordering: .acquiring) }
}
