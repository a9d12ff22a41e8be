import StratusIdentity
import StratusModel
import StratusRecords

/// The parts of a database that subscriptions are kept in: of a private one whose custom zones lie
/// in buckets, or of a public one whose records do.
struct SubscribedParts: Sendable {
    let all: [DatabaseID]
    /// Nil: the public one, whose only zone is in all parts.
    private let zones: PrivateDatabase?

    init(_ database: PrivateDatabase) { (self.all, self.zones) = (database.parts, database) }

    init(_ database: PublicDatabase) { (self.all, self.zones) = (database.parts, nil) }

    func homes(of subscription: Subscription) -> [DatabaseID] {
        guard let zones, let zone = subscription.zone else { return self.all }
        return [zones.part(of: zone)]
    }
}

/// Subscriptions to a database in parts.
///
/// A subscription to one zone is kept where the zone is, since a change is matched where it is
/// applied. One to all zones, or to a zone that is spread, is kept in every part, in use or not: so
/// none is missed by a zone that comes later. What is kept in several parts is written to all of
/// them before the answer. A request that fails on the way may be repeated: each step is what it
/// leads to.
extension SubscriptionService {
    /// Nil: the database of this request is whole.
    var parts: SubscribedParts? {
        if let database = self.exchange.holder.spread { return SubscribedParts(database) }
        let count = self.exchange.holder.layout.publicBucketCount
        guard self.exchange.route.scope == .public, count > 1 else { return nil }
        return SubscribedParts(
            PublicDatabase(of: self.exchange.route.container, bucketCount: count))
    }

    /// By ID; or in the order of `ids`, nil where there is none.
    func found(_ ids: [String]?, of parts: SubscribedParts) async throws -> [Subscription?] {
        var known: [String: Subscription] = [:]
        for (_, found) in try await Self.inParts(parts.all, { try await self.found(ids, in: $0) }) {
            for case let subscription? in found { known[subscription.id] = subscription }
        }
        if let ids { return ids.map { known[$0] } }
        return known.values.sorted { $0.id.utf8.lexicographicallyPrecedes($1.id.utf8) }
    }

    /// In order, each on its own.
    func modify(
        _ operations: [ModifySubscriptions.Operation], of parts: SubscribedParts
    ) async throws -> [SubscriptionResult] {
        var results: [SubscriptionResult] = []
        for (position, operation) in operations.enumerated() {
            results.append(
                try await self.modify(operation, UInt8(clamping: position), of: parts))
        }
        return results
    }

    private func modify(
        _ operation: ModifySubscriptions.Operation, _ position: UInt8,
        of parts: SubscribedParts
    ) async throws -> SubscriptionResult {
        let known = try await Self.inParts(parts.all) {
            try await self.found([operation.id], in: $0)
        }
        let holders = known.filter { $0.answer.first ?? nil != nil }.map(\.part)
        let homes: [DatabaseID]
        let wanted: ModifySubscriptions.Operation
        switch operation {
        case .delete:
            (homes, wanted) = ([], operation)
        case .update(let subscription), .create(let subscription):
            if case .update = operation, holders.isEmpty { return .notFound }
            homes = parts.homes(of: subscription)
            wanted = .create(subscription)
        }
        for (_, results) in try await self.submit(wanted, to: homes, position, step: 0) {
            if let result = results.first, result != .saved { return result }
        }
        let others = holders.filter { !homes.contains($0) }
        _ = try await self.submit(.delete(operation.id), to: others, position, step: 1)
        if case .delete = operation { return holders.isEmpty ? .notFound : .deleted }
        return .saved
    }

    private func submit(
        _ operation: ModifySubscriptions.Operation, to parts: [DatabaseID], _ position: UInt8,
        step: UInt8
    ) async throws -> [(part: DatabaseID, answer: [SubscriptionResult])] {
        try await Self.inParts(parts) { part in
            try await self.submit(
                [operation], to: part,
                part: [5, position, step, part.bucket.map { $0.number + 1 } ?? 0])
        }
    }

    /// All at the same time; the answers in the order of the parts.
    private static func inParts<Answer: Sendable>(
        _ parts: [DatabaseID], _ ask: @escaping @Sendable (DatabaseID) async throws -> Answer
    ) async throws -> [(part: DatabaseID, answer: Answer)] {
        try await withThrowingTaskGroup(of: (Int, Answer).self) { tasks in
            for (position, part) in parts.enumerated() {
                tasks.addTask { (position, try await ask(part)) }
            }
            var answers: [Answer?] = parts.map { _ in nil }
            for try await (position, answer) in tasks { answers[position] = answer }
            return zip(parts, answers).compactMap { part, answer in
                answer.map { (part, $0) }
            }
        }
    }
}
