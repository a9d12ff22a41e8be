/// The work that one piece of a removal did: of a container, or of a development environment's
/// records.
package struct RemovalProgress: Sendable, Equatable {
    package var userCount = 0
    package var zoneCount: UInt64 = 0
    package var recordCount: UInt64 = 0
    package var isDone = false
    /// The schema's version once a reset is done.
    package var version: UInt64 = 0
    /// The time until requests that were admitted earlier can no longer arrive. Ask again then.
    package var waitsMilliseconds: Int64 = 0
}
