package import StratusCluster
package import StratusModel
import StratusRecords

/// Continues what commands left to be done: purging deleted zones, long cascades, old tombstones,
/// filling new indexes.
///
/// The work is itself commands, each of them one bounded slice, so it is durable, replayed and spread
/// between clients' commands like everything else. Nothing is lost when this stops at any point.
package struct JobRunner: Sendable {
    /// Rows a slice touches: a few milliseconds of the partition's time.
    private static let budget = 500
    /// Between slices, so that clients' commands come first even while there is much to do.
    private static let breath = Duration.milliseconds(5)
    /// Between looks when there is nothing to do, or when the partition cannot be asked.
    private static let patience = Duration.milliseconds(500)

    private let router: any PartitionRouter
    private let world: any World
    /// The system's own work belongs to no container: any will do to name the node's one partition.
    private let place = ContainerReference(container: "stratus.jobs", environment: .production)

    package init(router: any PartitionRouter, world: any World) {
        self.router = router
        self.world = world
    }

    /// Carries out one slice if any job waits.
    /// - Returns: how long to wait before the next call.
    package func step() async -> Duration {
        let deadline = self.world.now + .seconds(10)
        let principal = Principal(kind: .system)
        do {
            let answer = try await self.router.read(
                RecordQuery(principal: principal, .jobs).enveloped(), at: .container(self.place),
                deadline: deadline)
            guard case .jobs(isWaiting: true) = try RecordAnswer(decoding: answer.body) else {
                return Self.patience
            }
            let command = RecordCommand.continueJobs(ContinueJobs(budget: Self.budget)).enveloped(
                container: self.place, identity: self.world.drawIdentity(),
                deadlineMilliseconds: self.world.wallMilliseconds + 10_000, schemaVersion: 0,
                principal: principal)
            _ = try await self.router.submit(
                command, to: .container(self.place), deadline: deadline)
            return Self.breath
        } catch {
            // The partition is busy, stopping or failed, and says so itself; jobs can wait.
            return Self.patience
        }
    }
}
