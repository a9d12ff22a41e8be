import StratusCluster
import StratusDoubles
import StratusModel
import StratusRecords

/// Work on groups of records through a process' client, step by step, as a gateway does it.
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
            let partitions = self.shells.partitions
            let deadline = self.world.wallMilliseconds + Self.patienceMilliseconds
            let identity = self.world.drawIdentity()
            var caller = Caller(
                principal, in: RecordWorld.container, until: self.world.now + .seconds(5))
            caller.deadlineMilliseconds = deadline
            // The router adds the lead of a partition whose time is ahead of this clock.
            func decided(_ outcome: RecordOutcome) -> (RecordOutcome, RequestIdentity, Int64) {
                (outcome, identity, deadline + partitions.leadMilliseconds)
            }
            do throws(PartitionError<RequestRefusal>) {
                return decided(
                    try await partitions.submit(
                        body, at: .group(group), as: caller, identity: identity))
            } catch {
                if case .refused(let refusal) = error { return decided(.refused(refusal)) }
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
        await self.ask(ask, as: Caller(principal), in: group)
    }

    func ask<Question: Askable>(
        _ question: Question, as caller: Caller = .system(), in group: GroupID
    ) async -> Question.Response? {
        for _ in 0..<Self.tryCountMax where !self.shells.life.isGone {
            do throws(PartitionError<Question.Refusal>) {
                return try await self.shells.partitions.ask(
                    question, at: .group(group), as: caller, within: .seconds(5))
            } catch { await self.shells.life.sleep(for: Self.pause) }
        }
        return nil
    }
}
