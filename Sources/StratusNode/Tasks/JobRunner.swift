package import StratusCluster
import StratusModel
import StratusRecords

/// Continues the work that commands left behind: purging deleted zones, long cascades, old
/// tombstones, filling new indexes.
///
/// The work consists of commands itself, each one bounded slice, so it is durable, replayed and
/// spread between clients' commands like everything else. Nothing is lost if this stops at any
/// point.
package struct JobRunner: Sendable {
    /// Rows a slice touches: a few milliseconds of the partition's time.
    private static let budget = 500
    /// Between slices, so that clients' commands come first even while there is much to do.
    private static let breath = Duration.milliseconds(5)
    /// Between looks when there is nothing to do, or when the partition cannot be asked.
    private static let patience = Duration.milliseconds(500)
    /// How long a slice may wait for its turn, and how long one that only makes room.
    private static let slice = Duration.seconds(10)
    private static let forgetting = Duration.seconds(2)

    private let replicas: NodeReplicas
    private let partitions: PartitionClient

    package init(replicas: NodeReplicas, partitions: PartitionClient) {
        self.replicas = replicas
        self.partitions = partitions
    }

    /// Carries out one slice in each partition that is led here and has a job waiting. It looks
    /// only at partitions that have applied something since: the others have nothing new.
    /// - Returns: how long to wait before the next call.
    package func step() async -> Duration {
        var pause = await self.replicas.openNext() ? Self.breath : Self.patience
        for group in await self.replicas.groupsWithNews() {
            if await self.step(group) { pause = Self.breath }
        }
        for group in await self.replicas.groupsThatRemember() {
            await self.forgetOutcomes(in: group)
        }
        return pause
    }

    /// A slice of them. Whether some remain shows at the next look.
    private func forgetOutcomes(in group: GroupID) async {
        // The next look tries it again, and others wait for this one.
        _ = try? await self.partitions.submit(
            RecordCommand.forgetOutcomes, at: .group(group), as: .system(), within: Self.forgetting)
    }

    /// - Returns: whether a slice was carried out.
    private func step(_ group: GroupID) async -> Bool {
        let query = RecordQuery(
            principal: Principal(kind: .system),
            .work(asOf: self.partitions.world.wallMilliseconds)
        ).enveloped()
        // The state applied here is near enough: the command decides over the rows of its own
        // moment.
        guard let answer = await self.replicas.peek(query, in: group),
            case .work(let isWaiting, let willWait)? = try? RecordAnswer(decoding: answer.body)
        else { return false }
        // Nothing that is applied will say that its time has come.
        if willWait { await self.replicas.lookAgain(at: group) }
        guard isWaiting else { return false }
        do throws(PartitionError<RequestRefusal>) {
            _ = try await self.partitions.submit(
                RecordCommand.continueJobs(ContinueJobs(budget: Self.budget)), at: .group(group),
                as: .system(), within: Self.slice)
            return true
        } catch {
            // The partition is busy or led elsewhere by now; its new leader looks for jobs itself.
            await self.replicas.lookAgain(at: group)
            return false
        }
    }
}
