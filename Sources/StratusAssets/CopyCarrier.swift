package import StratusModel

/// Takes copies to other nodes and brings them: lost, repeated or late, never altered.
///
/// Here and not in StratusModel: a pure module says `async` nowhere.
package protocol CopyCarrier: Sendable {
    func put(_ copy: StoredCopy, of group: GroupID, on node: NodeID, deadline: MonotonicTime) async
        -> CopyAnswer
    func fetch(_ name: CopyName, of group: GroupID, from node: NodeID, deadline: MonotonicTime)
        async -> CopyFetch
    /// Answers like a put of the copies the peer should have: `.stored` only if all of it is there.
    func confirm(
        _ body: BodyID, chunkCount: UInt32, of group: GroupID, on node: NodeID,
        deadline: MonotonicTime
    ) async -> CopyAnswer
    func drop(_ body: BodyID, of group: GroupID, on node: NodeID)
}

/// What came of asking a node for a copy.
package enum CopyFetch: Sendable, Hashable {
    case found(Bytes)
    /// The node says that it has no such copy.
    case absent
    /// It did not answer, or could not tell.
    case silent

    package var bytes: Bytes? {
        if case .found(let bytes) = self { bytes } else { nil }
    }
}
