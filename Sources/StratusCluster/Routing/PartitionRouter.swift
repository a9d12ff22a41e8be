package import StratusModel

/// Which partition is meant: the one that owns a key, or one by its number. Whoever looks through
/// all of them knows no key, and neither do jobs.
package enum PartitionAddress: Sendable, Hashable {
    case key(ShardKey)
    case group(GroupID)

    package static let system = PartitionAddress.group(.system)
    package static func database(_ database: DatabaseID) -> Self { .key(.database(database)) }
    package static func container(_ container: ContainerReference) -> Self {
        .key(.container(container))
    }
    package static func account(_ account: String) -> Self { .key(.account(account)) }
}

/// Takes a command or a read to the partition that owns its key, wherever that is.
///
/// Only ``PartitionClient`` asks it.
package protocol PartitionRouter: Sendable {
    /// Returns once the outcome is durable on a majority; the command was then applied exactly
    /// once.
    ///
    /// - Parameter mayRunLater: whether a command too late for its partition's time may be sent
    ///   again, with a deadline counted from there. Pass false if the deadline tells until when a
    ///   copy can come from elsewhere.
    func submit(
        _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
        mayRunLater: Bool
    ) async throws(RouteError) -> Outcome
    /// Linearizable: sees every command whose submit returned before this was called.
    func read(_ query: Query, at address: PartitionAddress, deadline: MonotonicTime)
        async throws(RouteError) -> QueryAnswer
    /// Whether there is a partition of data of this number. They are numbered from 1 without a gap,
    /// and their count never changes.
    func hasPartition(_ group: GroupID) -> Bool
    /// How far some partition is known to be ahead of this node's wall clock. Zero unless a clock is
    /// or was wrong. For deadlines that are fixed before it is known where they count: a command
    /// that may run later gets the lead of its partition from the router.
    var leadMilliseconds: Int64 { get }
    /// How far the partition that owns a key is.
    func leadMilliseconds(at key: ShardKey) -> Int64
    /// The level that all nodes of the cluster can read: asked before a command or question is made
    /// in a format that not every level has.
    var level: ClusterLevel { get }
    /// The partition that owns a key, for who asks where something lies; nil: there is only one.
    func group(of key: ShardKey) -> GroupID?
}

extension PartitionRouter {
    /// Submits a command that nobody else has a copy of, so it may run later.
    package func submit(_ command: Command, to address: PartitionAddress, deadline: MonotonicTime)
        async throws(RouteError) -> Outcome
    { try await self.submit(command, to: address, deadline: deadline, mayRunLater: true) }

    package var leadMilliseconds: Int64 { 0 }
    package func leadMilliseconds(at key: ShardKey) -> Int64 { self.leadMilliseconds }
    package var level: ClusterLevel { .build }
    package func group(of key: ShardKey) -> GroupID? { nil }
}
