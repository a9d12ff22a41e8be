package import StratusModel

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
        _ command: Command, to key: ShardKey, deadline: MonotonicTime, mayRunLater: Bool
    ) async throws(RouteError) -> Outcome
    /// The same to a partition by its number: jobs and administration know no key.
    func submit(
        _ command: Command, to group: GroupID, deadline: MonotonicTime, mayRunLater: Bool
    ) async throws(RouteError) -> Outcome
    /// Linearizable: sees every command whose submit returned before this was called.
    func read(_ query: Query, at key: ShardKey, deadline: MonotonicTime)
        async throws(RouteError) -> QueryAnswer
    /// The same of a partition by its number: whoever looks through all of them knows no key.
    func read(_ query: Query, at group: GroupID, deadline: MonotonicTime)
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
    package func submit(_ command: Command, to key: ShardKey, deadline: MonotonicTime)
        async throws(RouteError) -> Outcome
    { try await self.submit(command, to: key, deadline: deadline, mayRunLater: true) }

    package func submit(_ command: Command, to group: GroupID, deadline: MonotonicTime)
        async throws(RouteError) -> Outcome
    { try await self.submit(command, to: group, deadline: deadline, mayRunLater: true) }

    package func submit(
        _ command: Command, to group: GroupID, deadline: MonotonicTime, mayRunLater: Bool
    ) async throws(RouteError) -> Outcome { throw .refused("there is no partition \(group)") }

    package var leadMilliseconds: Int64 { 0 }
    package func leadMilliseconds(at key: ShardKey) -> Int64 { self.leadMilliseconds }
    package var level: ClusterLevel { .build }
    package func group(of key: ShardKey) -> GroupID? { nil }
}
