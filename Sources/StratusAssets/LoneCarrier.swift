package import StratusModel

/// The carrier of a node alone: all copies are here.
package struct LoneCarrier: CopyCarrier {
    private let keeper: CopyKeeper
    private let own: NodeID

    package init(_ keeper: CopyKeeper, as own: NodeID) {
        self.keeper = keeper
        self.own = own
    }

    package func put(
        _ copy: StoredCopy, of group: GroupID, on node: NodeID, deadline: MonotonicTime
    ) async -> CopyAnswer {
        node == self.own ? await self.keeper.put(copy, of: group) : .silent
    }

    package func fetch(
        _ name: CopyName, of group: GroupID, from node: NodeID, deadline: MonotonicTime
    ) async -> CopyFetch {
        node == self.own ? await self.keeper.fetch(name, of: group) : .silent
    }

    package func confirm(
        _ body: BodyID, chunkCount: UInt32, of group: GroupID, on node: NodeID,
        deadline: MonotonicTime
    ) async -> CopyAnswer {
        node == self.own
            ? await self.keeper.confirm(body, chunkCount: chunkCount, of: group) : .silent
    }

    package func drop(_ body: BodyID, of group: GroupID, on node: NodeID) {
        guard node == self.own else { return }
        let keeper = self.keeper
        Task { await keeper.drop(body, of: group) }
    }
}
