import StratusConsensus
package import StratusModel
import StratusStorage
import Synchronization

/// What the keeper of this node's copies hears of the rows of bodies. Called on the replicas'
/// executor, in the order in which entries were applied; nothing here may block.
package struct BodyFeed: Sendable {
    /// Whether the keeper takes more changes now. What is not taken stays with its partition.
    package var hasRoom: @Sendable () -> Bool
    /// A replica is open, with rows through an entry of this time.
    package var opened: @Sendable (GroupID, LogIndex, _ milliseconds: Int64) -> Void
    package var changed:
        @Sendable (GroupID, [BodyChange], _ through: LogIndex, _ milliseconds: Int64) -> Void
    package var durable: @Sendable (GroupID, LogIndex, _ milliseconds: Int64) -> Void
    package var page:
        @Sendable (GroupID, _ from: CopyName, _ end: CopyName?, [BodyManifest]) -> Void
    /// A leader waits to hear through which entry the replica has every copy.
    /// ``NodeReplicas/copiesHeld(_:through:)`` is to be told.
    package var wantsHeld: @Sendable (GroupID) -> Void
    /// The replica's rows and log are gone.
    package var removed: @Sendable (GroupID) -> Void

    package init(
        hasRoom: @escaping @Sendable () -> Bool,
        opened: @escaping @Sendable (GroupID, LogIndex, Int64) -> Void,
        changed: @escaping @Sendable (GroupID, [BodyChange], LogIndex, Int64) -> Void,
        durable: @escaping @Sendable (GroupID, LogIndex, Int64) -> Void,
        page: @escaping @Sendable (GroupID, CopyName, CopyName?, [BodyManifest]) -> Void,
        wantsHeld: @escaping @Sendable (GroupID) -> Void = { _ in },
        removed: @escaping @Sendable (GroupID) -> Void
    ) {
        self.hasRoom = hasRoom
        self.opened = opened
        self.changed = changed
        self.durable = durable
        self.page = page
        self.wantsHeld = wantsHeld
        self.removed = removed
    }
}

extension NodeReplicas {
    /// Bodies of one page of a comparison: a body of 64 GiB has a row of 2.4 MB.
    private static let bodyPageCount = 32
    private static let bodyRetryDelay = Duration.seconds(1)

    /// Tells the keeper what entries did to bodies since it was last told.
    func tellBodies(of group: GroupID) {
        guard let feed = self.setup.bodies, let partition = self.members[group]?.partition else {
            return
        }
        guard feed.hasRoom(), !partition.isReplaying else {
            self.untold.insert(group)
            return
        }
        self.untold.remove(group)
        let changes = partition.takeBodyChanges()
        let position = partition.appliedPosition
        if !changes.isEmpty {
            feed.changed(group, changes, position.index, position.time.milliseconds)
        }
        // Behind the changes: whoever reads it finds all of them in the queue.
        self.told.withLock { $0[group] = (position.index, position.time.milliseconds) }
    }

    /// The last entry applied of which the keeper was told all that it did to bodies, with its
    /// time.
    package nonisolated func toldOfBodies(in group: GroupID) -> (
        index: LogIndex, milliseconds: Int64
    )? {
        self.told.withLock { $0[group] }
    }

    /// The replica has every copy that entries through this one named.
    package nonisolated func copiesHeld(_ group: GroupID, through index: LogIndex) {
        self.inbox.post(.copiesHeld(group, index))
    }

    /// What the keeper had no room for is told, although perhaps nothing more is applied. Where a
    /// joint configuration waits for copies, its leader must know of its own.
    func catchUpOnBodies() {
        guard let feed = self.setup.bodies else { return }
        for group in self.untold.sorted() {
            if self.members[group] == nil { self.untold.remove(group) }
            self.tellDurable(group)
        }
        for group in self.host.allGroups {
            guard let raft = self.host.replica(of: group)?.raft, raft.role == .leader,
                raft.awaitsCopies, raft.configuration.isJoint
            else { continue }
            feed.wantsHeld(group)
        }
    }

    func tellOpened(_ group: GroupID) {
        guard let feed = self.setup.bodies, let partition = self.members[group]?.partition else {
            return
        }
        let position = partition.appliedPosition
        feed.opened(group, position.index, position.time.milliseconds)
        self.told.withLock { $0[group] = (position.index, position.time.milliseconds) }
    }

    /// A checkpoint has ended. The time is that of an entry which it holds for certain.
    func tellDurable(_ group: GroupID) {
        guard let feed = self.setup.bodies, let member = self.members[group],
            let replica = self.host.replica(of: group)
        else { return }
        self.tellBodies(of: group)
        // A keeper that has not heard what entries named must not hear that they are durable: it
        // removes what no row names by then. Both are told once there is room.
        guard !self.untold.contains(group) else { return }
        let durable = replica.state.durable
        let position = member.partition.appliedPosition
        var milliseconds: Int64 = 0
        if position.index == durable {
            milliseconds = position.time.milliseconds
        } else if let begun = member.checkpointFrom, begun.index <= durable {
            milliseconds = begun.milliseconds
        }
        feed.durable(group, durable, milliseconds)
    }

    /// Reads the bodies that a partition's rows name from a name on, and tells them behind
    /// everything that was told before.
    package nonisolated func askBodies(of group: GroupID, from name: CopyName) {
        Task { await self.readBodies(of: group, from: name) }
    }

    private func readBodies(of group: GroupID, from name: CopyName) async {
        while let feed = self.setup.bodies, let partition = self.members[group]?.partition,
            self.fault == nil, !self.isStopped
        {
            if feed.hasRoom(),
                let bodies = try? partition.bodies(from: name.body, limit: Self.bodyPageCount)
            {
                self.tellBodies(of: group)
                let last = bodies.count == Self.bodyPageCount ? bodies.last?.body : nil
                let end = last.flatMap { CopyName(body: $0, ordinal: .max).next }
                return feed.page(group, name, end, bodies)
            }
            await self.setup.sleep(self.world.now + Self.bodyRetryDelay)
        }
    }

    /// Makes a partition's rows durable soon: copies that rows have let go wait for that.
    package nonisolated func makeDurable(_ group: GroupID) {
        Task { await self.checkpointNow(group) }
    }

    private func checkpointNow(_ group: GroupID) {
        guard let replica = self.host.replica(of: group), self.fault == nil, !self.isStopped else {
            return
        }
        if replica.state.durable == replica.state.applied { return self.tellDurable(group) }
        self.checkpoint(group)
    }
}
