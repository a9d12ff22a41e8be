package import StratusModel

/// The partitions to who does not look into refusals: their reason is a text. By default Stratus
/// itself asks.
package struct PlainPartitions: Sendable {
    fileprivate let client: PartitionClient

    package func ask<Question: Askable>(
        _ question: Question, at address: PartitionAddress, as caller: Caller = .system(),
        within: Duration? = nil
    ) async throws(RouteError) -> Question.Response {
        do throws(PartitionError<Question.Refusal>) {
            return try await self.client.ask(question, at: address, as: caller, within: within)
        } catch { throw RouteError(error) }
    }

    package func submit<Operation: Submittable>(
        _ operation: Operation, at address: PartitionAddress, as caller: Caller = .system(),
        schemaVersion: UInt64 = 0, within: Duration? = nil
    ) async throws(RouteError) -> Operation.Response {
        do throws(PartitionError<Operation.Refusal>) {
            return try await self.client.submit(
                operation, at: address, as: caller, schemaVersion: schemaVersion, within: within)
        } catch { throw RouteError(error) }
    }
}

extension PartitionClient {
    package var plain: PlainPartitions { PlainPartitions(client: self) }
}
