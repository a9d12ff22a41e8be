import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRuntime

/// A subscription that fires once, in a database in parts: the part that settles its notification
/// deletes its own copy, and this the others.
///
/// It comes before the settlement. So what is cut short on the way is told again under the same
/// identity and then settled as a whole, and no copy is left behind to fire later.
struct SpentCopies: Sendable {
    let router: any PartitionRouter
    let world: any World

    /// Deletes the copies that equal the one in the part that has fired. Where that one is there no
    /// more, or was replaced by one of another kind, nothing is deleted.
    func delete(
        _ id: String, firedIn database: DatabaseID, of registration: Device.Registration,
        _ layout: ContainerLayout, until deadline: MonotonicTime
    ) async throws {
        let others = registration.databases(layout).filter {
            $0.scope == database.scope && $0 != database
        }
        guard !others.isEmpty else { return }
        let principal = Principal(kind: .user, userRecordName: registration.userRecordName)
        let fired = try await self.subscription(id, in: database, principal, until: deadline)
        guard let fired, fired.firesOnce else { return }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for part in others {
                tasks.addTask {
                    let copy = try await self.subscription(
                        id, in: part, principal, until: deadline)
                    guard copy == fired else { return }
                    try await self.delete(id, in: part, principal, until: deadline)
                }
            }
            try await tasks.waitForAll()
        }
    }

    private func subscription(
        _ id: String, in part: DatabaseID, _ principal: Principal, until deadline: MonotonicTime
    ) async throws -> Subscription? {
        let query = RecordQuery(
            principal: principal, .subscriptions(part, isShared: false, names: [id]))
        let answer = try await self.router.read(
            query.enveloped(), at: .database(part), deadline: deadline)
        guard case .subscriptions(let found) = try RecordAnswer(decoding: answer.body) else {
            throw RouteError.refused("no subscriptions where some were asked for")
        }
        return found.first ?? nil
    }

    private func delete(
        _ id: String, in part: DatabaseID, _ principal: Principal, until deadline: MonotonicTime
    ) async throws {
        let command = RecordCommand.modifySubscriptions(
            ModifySubscriptions(database: part, operations: [.delete(id)])
        ).enveloped(
            container: part.container, identity: self.world.drawIdentity(),
            deadlineMilliseconds: self.world.wallMilliseconds + 10_000,
            schemaVersion: 0, principal: principal)
        let outcome = try await self.router.submit(
            command, to: .database(part), deadline: deadline)
        guard outcome.verdict == .decided else {
            throw RouteError.notExecuted(retryAfter: .seconds(1))
        }
    }
}
