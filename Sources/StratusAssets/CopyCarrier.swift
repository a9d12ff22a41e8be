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

extension CopyCarrier {
    /// What each member says of a body, in the order of the nodes: `stored` if it has all of it, by
    /// its log of now.
    func confirmations(
        of body: BodyID, chunkCount: UInt32, by members: BodyMembers, deadline: MonotonicTime
    ) async -> [(node: NodeID, answer: CopyAnswer)] {
        await withTaskGroup(of: (node: NodeID, answer: CopyAnswer).self) { tasks in
            for node in members.all.sorted() {
                tasks.addTask {
                    let answer = await self.confirm(
                        body, chunkCount: chunkCount, of: members.group, on: node,
                        deadline: deadline)
                    return (node, answer)
                }
            }
            var answers: [(node: NodeID, answer: CopyAnswer)] = []
            for await answer in tasks { answers.append(answer) }
            return answers.sorted { $0.node < $1.node }
        }
    }

    /// The members that have all of a body, with their indexes of now.
    func holders(
        of body: BodyID, chunkCount: UInt32, among members: BodyMembers, deadline: MonotonicTime
    ) async -> [CopyHolding] {
        await self.confirmations(
            of: body, chunkCount: chunkCount, by: members, deadline: deadline
        ).compactMap {
            guard case .stored(let index) = $0.answer else { return nil }
            return CopyHolding(node: $0.node, at: index)
        }
    }
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
