package import StratusModel

/// Takes copies to other nodes and brings them: lost, repeated or late, never altered.
///
/// Here and not in StratusModel: a pure module says `async` nowhere.
package protocol CopyCarrier: Sendable {
    func put(_ copy: StoredCopy, of group: GroupID, on node: NodeID, deadline: MonotonicTime) async
        -> CopyAnswer
    func fetch(_ name: CopyName, of group: GroupID, from node: NodeID, deadline: MonotonicTime)
        async -> Bytes?
    /// Answers like a put of the copies the peer should have: `.stored` only if all of it is there.
    func confirm(
        _ body: BodyID, chunkCount: UInt32, of group: GroupID, on node: NodeID,
        deadline: MonotonicTime
    ) async -> CopyAnswer
    func drop(_ body: BodyID, of group: GroupID, on node: NodeID)
}
