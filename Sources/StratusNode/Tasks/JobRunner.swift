package import StratusCluster
package import StratusModel
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

    private let replicas: NodeReplicas
    private let router: ClusterRouter
    private let world: any World
    private let decided: @Sendable (Outcome) -> Void
    /// The system's own work belongs to no container; a command has to name one.
    private let place = ContainerReference(container: "stratus.jobs", environment: .production)

    /// - Parameter decided: what a partition said to a slice.
    package init(
        replicas: NodeReplicas, router: ClusterRouter, world: any World,
        decided: @escaping @Sendable (Outcome) -> Void = { _ in }
    ) {
        self.replicas = replicas
        self.router = router
        self.world = world
        self.decided = decided
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
        let command = RecordCommand.forgetOutcomes.enveloped(
            container: self.place, identity: self.world.drawIdentity(),
            deadlineMilliseconds: self.world.wallMilliseconds + 10_000, schemaVersion: 0,
            principal: Principal(kind: .system))
        // The next look tries it again, and others wait for this one.
        _ = try? await self.router.submit(
            command, to: group, deadline: self.world.now + .seconds(2))
    }

    /// - Returns: whether a slice was carried out.
    private func step(_ group: GroupID) async -> Bool {
        let principal = Principal(kind: .system)
        let query = RecordQuery(
            principal: principal, .work(asOf: self.world.wallMilliseconds)
        ).enveloped()
        // The state applied here is near enough: the command decides over the rows of its own
        // moment.
        guard let answer = await self.replicas.peek(query, in: group),
            case .work(let isWaiting, let willWait)? = try? RecordAnswer(decoding: answer.body)
        else { return false }
        // Nothing that is applied will say that its time has come.
        if willWait { await self.replicas.lookAgain(at: group) }
        guard isWaiting else { return false }
        let command = RecordCommand.continueJobs(ContinueJobs(budget: Self.budget)).enveloped(
            container: self.place, identity: self.world.drawIdentity(),
            deadlineMilliseconds: self.world.wallMilliseconds + 10_000, schemaVersion: 0,
            principal: principal)
        do throws(RouteError) {
            let outcome = try await self.router.submit(
                command, to: group, deadline: self.world.now + .seconds(10))
            self.decided(outcome)
            return true
        } catch {
            // The partition is busy or led elsewhere by now; its new leader looks for jobs itself.
            await self.replicas.lookAgain(at: group)
            return false
        }
    }
}
