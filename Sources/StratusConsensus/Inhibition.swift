/// Why a replica must not lead now. Each reason begins and ends by itself: the end of one lifts no
/// other.
package struct Inhibition: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The wall clock of the node is too far from the others'.
    package static let clock = Self(rawValue: 1 << 0)
    /// The log's writes wait too long for the disk.
    package static let log = Self(rawValue: 1 << 1)
    /// The rows of the replica refuse to work.
    package static let rows = Self(rawValue: 1 << 2)
    /// The scrub has found damage in this replica.
    package static let scrub = Self(rawValue: 1 << 3)
    /// The replica's state differs from that of its peers.
    package static let divergence = Self(rawValue: 1 << 4)
    /// The node is being stopped.
    package static let stop = Self(rawValue: 1 << 5)
    /// The replica stopped before an entry that only a newer build can apply. Nothing lifts it.
    package static let newer = Self(rawValue: 1 << 6)
}
