import StratusConsensus
package import StratusModel
import StratusStorage
import Synchronization

/// S-05: what stays free on the disk, so that a node with a full one can still delete.
extension NodeReplicas {
    /// Short, because what is written between two looks comes out of the reserve.
    private static let spaceInterval = Duration.milliseconds(100)
    /// A client that is sent away for want of room comes back after this.
    private static let retryMilliseconds: UInt32 = 30_000

    package struct ReserveFigures: Sendable, Equatable {
        /// Nil until the disk was first asked, and while it does not say.
        package var space: DiskSpace?
        package var reserve = ByteCount(0)
        package var isLow = false
        /// Commands refused since the start.
        package var refusedCount: UInt64 = 0
    }

    /// The figures as of the last look.
    package nonisolated var reserveFigures: ReserveFigures { self.reserved.withLock { $0 } }

    /// The reserve may change while the node runs.
    package func keepFree(_ size: ByteCount) {
        self.reserve.size = size
        self.spaceAskedAt = nil
        self.lookAtSpace()
    }

    /// Whether anybody asks for something or not.
    package func watchSpace() { self.lookAtSpace() }

    /// Notes the free space that a peer reports for its disk.
    package func heard(free: UInt64, of node: NodeID) {
        self.reserve.note(free, on: node)
    }

    func lookAtSpace() {
        let now = self.world.now
        if let spaceAskedAt, now < spaceAskedAt + Self.spaceInterval { return }
        self.spaceAskedAt = now
        guard let space = try? self.world.files.space() else { return }
        self.reserve.note(space.free, on: self.node)
        let isLow = self.reserve.isLow(self.node)
        let wasLow = self.reserved.withLock { figures in
            defer {
                figures.space = space
                figures.reserve = self.reserve.size
                figures.isLow = isLow
            }
            return figures.isLow
        }
        if isLow != wasLow { self.setup.events.reserveChanged(isLow, space.free) }
    }

    /// The reason to refuse a command, if there is one: it adds data, and most of its partition's
    /// replicas have no room for more.
    func refusalForRoom(_ body: PeerRequest.Body, of group: GroupID) -> PeerResponse.Answer? {
        guard case .command(let command) = body else { return nil }
        self.lookAtSpace()
        guard self.reserve.isNear, let replica = self.host.replica(of: group),
            replica.raft.role == .leader, self.setup.adds(command)
        else { return nil }
        let spare = (try? self.members[group]?.partition.spareSize) ?? ByteCount(0)
        let voters = replica.raft.configuration.voters
        if self.reserve.takesIn(group, on: voters, spare: spare) { return nil }
        self.reserved.withLock { $0.refusedCount += 1 }
        return .notExecuted(retryAfterMilliseconds: Self.retryMilliseconds)
    }
}
