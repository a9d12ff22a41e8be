import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime

/// A subscription that fires once, in a database in parts: the part that settles its notification
/// deletes its own copy, and this the others.
///
/// It comes before the settlement. So what is cut short on the way is told again under the same
/// identity and then settled as a whole, and no copy is left behind to fire later.
struct SpentCopies: Sendable {
    let partitions: PartitionClient

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
        let caller = Caller(
            Principal(kind: .user, userRecordName: registration.userRecordName), until: deadline)
        let fired = try await self.subscription(id, in: database, caller)
        guard let fired, fired.firesOnce else { return }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for part in others {
                tasks.addTask {
                    let copy = try await self.subscription(id, in: part, caller)
                    guard copy == fired else { return }
                    let modify = ModifySubscriptions(part) { $0.operations = [.delete(id)] }
                    _ = try await self.partitions.plain.submit(
                        modify, at: .database(part), as: caller)
                }
            }
            try await tasks.waitForAll()
        }
    }

    private func subscription(
        _ id: String, in part: DatabaseID, _ caller: Caller
    ) async throws -> Subscription? {
        let ask = SubscriptionsAsk(part) { $0.names = [id] }
        let answer = try await self.partitions.plain.ask(ask, at: .database(part), as: caller)
        return answer.found.first ?? nil
    }
}
