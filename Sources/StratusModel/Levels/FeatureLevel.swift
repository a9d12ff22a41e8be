/// The set of formats that all builds of one release can read: the unit in which a cluster is
/// upgraded.
///
/// A cluster has one level, which only rises, and only when an administrator finalises an upgrade.
/// Until then every node writes what the level allows, so nodes of the build before can read all of
/// it, and the way back is open. The level of each format stands in ``NumberFamily``.
package struct FeatureLevel: RawRepresentable, Sendable, Hashable, Comparable,
    CustomStringConvertible
{
    /// The number is on disk and on the wire for ever.
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package init(_ rawValue: UInt32) { self.rawValue = rawValue }

    /// Release 0.1.0.
    package static let one = FeatureLevel(1)

    /// The highest level that this build reads and writes.
    package static let build = FeatureLevel.one
    /// The level after this build's, which no release has. The simulator and tests run builds of it
    /// beside this one's. So an upgrade is proven before there is a release to upgrade to. The only
    /// format at this level is version 2 of a register command, which nodes never write.
    package static let next = FeatureLevel(FeatureLevel.build.rawValue + 1)
    /// The level of a number that is in no table. No cluster ever reaches it, so nobody may write
    /// the number.
    package static let unregistered = FeatureLevel(.max)

    /// The first release that reads this level; nil for a level that this build does not know.
    package var release: String? {
        switch self {
        case .one: "0.1.0"
        default: nil
        }
    }

    package static func < (one: Self, other: Self) -> Bool { one.rawValue < other.rawValue }

    package var description: String { String(self.rawValue) }
}
