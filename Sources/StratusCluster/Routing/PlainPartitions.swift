package import StratusModel

/// The partitions to who does not look into refusals: their reason is a text. By default Stratus
/// itself asks.
package struct PlainPartitions: Sendable {
    fileprivate let client: PartitionClient

    package func ask<Question: Askable>(
        _ question: Question, at key: ShardKey, as caller: Caller = .system(),
        within: Duration? = nil
    ) async throws(RouteError) -> Question.Response {
        do throws(PartitionError<Question.Refusal>) {
            return try await self.client.ask(question, at: key, as: caller, within: within)
        } catch { throw RouteError(error) }
    }

    package func ask<Question: Askable>(
        _ question: Question, at group: GroupID, as caller: Caller = .system(),
        within: Duration? = nil
    ) async throws(RouteError) -> Question.Response {
        do throws(PartitionError<Question.Refusal>) {
            return try await self.client.ask(question, at: group, as: caller, within: within)
        } catch { throw RouteError(error) }
    }

    package func submit<Operation: Submittable>(
        _ operation: Operation, at key: ShardKey, as caller: Caller = .system(),
        identity: RequestIdentity? = nil, schemaVersion: UInt64 = 0, within: Duration? = nil
    ) async throws(RouteError) -> Operation.Response {
        do throws(PartitionError<Operation.Refusal>) {
            return try await self.client.submit(
                operation, at: key, as: caller, identity: identity, schemaVersion: schemaVersion,
                within: within)
        } catch { throw RouteError(error) }
    }

    package func submit<Operation: Submittable>(
        _ operation: Operation, at group: GroupID, as caller: Caller = .system(),
        identity: RequestIdentity? = nil, within: Duration? = nil
    ) async throws(RouteError) -> Operation.Response {
        do throws(PartitionError<Operation.Refusal>) {
            return try await self.client.submit(
                operation, at: group, as: caller, identity: identity, within: within)
        } catch { throw RouteError(error) }
    }
}

extension PartitionClient {
    package var plain: PlainPartitions { PlainPartitions(client: self) }
}
