import Synchronization

/// A number of the node that rises whenever the node itself withdraws what it believed of
/// credentials: a session, a key, a password, a role, a container, a sealing key.
///
/// Whoever keeps something that credentials proved reads the number before the proof, and believes
/// it for as long as the number is the same. What other nodes change ends by its age.
package final class CredentialEpoch: Sendable {
    private let number = Atomic<UInt64>(0)

    package init() {}

    package var current: UInt64 { self.number.load(ordering: .acquiring) }

    package func rise() { self.number.wrappingAdd(1, ordering: .acquiringAndReleasing) }
}
