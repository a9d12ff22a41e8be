import StratusCluster
import StratusDoubles
import StratusModel
import StratusRecords

/// Work on groups of records through the router of a process, step by step, as a gateway does it.
struct RecordErrand: Sendable {
    let shells: ClusterShells
    /// How often a step is tried again: a group may have no leader yet.
    private static let tryCountMax = 60
    private static let pause = Duration.milliseconds(250)
    private static let patienceMilliseconds: Int64 = 20_000

    private var world: SimulatedWorld { self.shells.life.node.world }

    /// - Returns: nil if nothing was decided.
    func command(_ body: RecordCommand, as principal: Principal, in group: GroupID) async
        -> (outcome: RecordOutcome, identity: RequestIdentity, deadline: Int64)?
    {
        for _ in 0..<Self.tryCountMax where !self.shells.life.isGone {
            let router = self.shells.router
            let deadline = self.world.wallMilliseconds + Self.patienceMilliseconds
            let envelope = body.enveloped(
                container: RecordWorld.container, identity: self.world.drawIdentity(),
                deadlineMilliseconds: deadline, schemaVersion: 0, principal: principal)
            do throws(RouteError) {
                let outcome = try await router.submit(
                    envelope, to: group, deadline: self.world.now + .seconds(5))
                guard outcome.verdict == .decided,
                    let decided = try? RecordOutcome(
                        decoding: outcome.body, detail: outcome.detail)
                else { return nil }
                // The router adds the lead of a partition whose time is ahead of this clock.
                return (decided, envelope.identity, deadline + router.leadMilliseconds)
            } catch {
                self.shells.life.simulation.note("\(group) errand: \(error)")
                await self.shells.life.sleep(for: Self.pause)
            }
        }
        return nil
    }

    func command(_ work: RecordWork, in group: GroupID) async
        -> (outcome: RecordOutcome, identity: RequestIdentity, deadline: Int64)?
    {
        guard case .command(let body, let principal) = work else { return nil }
        return await self.command(body, as: principal, in: group)
    }

    func ask(_ ask: RecordQuery.Ask, as principal: Principal, in group: GroupID) async
        -> RecordAnswer?
    {
        let query = RecordQuery(principal: principal, ask).enveloped()
        guard let answer = await self.read(query, in: group) else { return nil }
        return try? RecordAnswer(decoding: answer.body)
    }

    func read(_ query: Query, in group: GroupID) async -> QueryAnswer? {
        for _ in 0..<Self.tryCountMax where !self.shells.life.isGone {
            do throws(RouteError) {
                return try await self.shells.router.read(
                    query, at: group, deadline: self.world.now + .seconds(5))
            } catch { await self.shells.life.sleep(for: Self.pause) }
        }
        return nil
    }
}
