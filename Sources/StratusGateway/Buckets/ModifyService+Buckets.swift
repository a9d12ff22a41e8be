import StratusCluster
import StratusCoding
import StratusModel
import StratusRecords

/// Requests to a public default zone whose records lie in buckets: each operation goes to its
/// record's bucket, and the answers come back in the order of the request.
extension ModifyService {
    typealias OperationResult = Result<ModifiedRecords.Result, ClientError>

    /// Returns the result of each operation. Buckets work side by side; one that cannot be reached
    /// fails its own operations.
    func modify(
        _ modify: ModifyRecords, in buckets: Bucket, at place: ZonePlace, schema: Schema
    ) async -> [OperationResult] {
        var results: [OperationResult?] = modify.operations.map { _ in nil }
        // What only takes away meets no quota.
        let bounds =
            modify.operations.allSatisfy(\.kind.isDelete)
            ? nil
            : await self.sizeBounds(
                of: SpreadParts(place.database.whole, bucketCount: Int(buckets.count)))
        let plan = BucketPlan(modify.operations, buckets: buckets)
        for (number, wave) in plan.waves.enumerated() {
            await withTaskGroup(of: (BucketPlan.Part, [OperationResult]).self) { tasks in
                for part in wave {
                    tasks.addTask {
                        (
                            part,
                            await self.carryOut(
                                part, in: UInt8(clamping: number), of: modify, at: place,
                                sizeMax: bounds?[Int(part.bucket.number)], schema)
                        )
                    }
                }
                for await (part, partResults) in tasks {
                    for (position, result) in zip(part.positions, partResults) {
                        results[position] = result
                    }
                }
            }
        }
        return results.map { $0 ?? .failure(ClientError(RouteError.outcomeUnknown)) }
    }

    /// One bucket's operations of one wave, in their order.
    private func carryOut(
        _ part: BucketPlan.Part, in wave: UInt8, of modify: ModifyRecords, at place: ZonePlace,
        sizeMax: UInt64?, _ schema: Schema
    ) async -> [OperationResult] {
        do {
            var operations = part.positions.map { modify.operations[$0] }
            var results: [OperationResult?] = operations.map { _ in nil }
            let refusals = try await self.prepare(&operations, part, wave, at: place, schema)
            for (position, refusal) in refusals.enumerated() {
                if let refusal { results[position] = .success(.refused(refusal)) }
            }
            let accepted = operations.indices.filter { results[$0] == nil }
            if !accepted.isEmpty {
                var rest = modify
                rest.database = place.database(in: part.bucket)
                rest.operations = accepted.map { operations[$0] }
                if let sizeMax { rest.rules.databaseSizeMax = sizeMax }
                // Every bucket's zone is one of its own.
                rest.drawnIncarnation = ZoneIncarnation(
                    modify.drawnIncarnation.raw &+ UInt64(part.bucket.number))
                await self.cutWords(of: &rest, by: schema)
                let outcome = try await self.exchange.submit(
                    .modifyRecords(rest), to: rest.database, schema: schema,
                    part: [2, wave, part.bucket.number]
                ).outcome
                guard case .records(let modified) = outcome,
                    modified.results.count == accepted.count
                else { throw RouteError.otherKind }
                for (position, result) in zip(accepted, modified.results) {
                    results[position] = .success(Self.saying(modify.rules, result))
                }
            }
            return results.map { $0 ?? .failure(ClientError(RouteError.outcomeUnknown)) }
        } catch {
            let failure = ClientError(error)
            return part.positions.map { _ in .failure(failure) }
        }
    }

    /// Reserves what saves refer to in other buckets, and looks for their parents there.
    ///
    /// - Returns: for each operation why it cannot be carried out; nil: it may be.
    private func prepare(
        _ operations: inout [RecordOperation], _ part: BucketPlan.Part, _ wave: UInt8,
        at place: ZonePlace, _ schema: Schema
    ) async throws -> [RecordRefusal?] {
        var refusals: [RecordRefusal?] = operations.map { _ in nil }
        var wishes: [Bucket: [(position: Int, wish: ReserveReferences.Wish)]] = [:]
        var parents: [String] = []
        for (position, operation) in operations.enumerated() where !operation.kind.isDelete {
            for (target, action) in operation.actingTargets where !part.bucket.holds(target) {
                let wish = ReserveReferences.Wish(
                    target: target, action: action, referrer: operation.recordName)
                wishes[part.bucket.sibling(of: target), default: []].append((position, wish))
            }
            if case .set(let parent) = operation.parent, !part.bucket.holds(parent),
                !parents.contains(parent)
            {
                parents.append(parent)
            }
        }
        for (bucket, wanted) in wishes.sorted(by: { $0.key.number < $1.key.number }) {
            let reserve = ReserveReferences(
                database: place.database(in: bucket),
                drawnIncarnation: ZoneIncarnation(self.exchange.kernel.world.random()),
                referrerCountMax: self.exchange.rules.deleteSelfReferrerCountMax,
                wishes: wanted.map(\.wish))
            let (outcome, identity) = try await self.exchange.submit(
                .reserveReferences(reserve), to: reserve.database, schema: schema,
                part: [1, wave, part.bucket.number, bucket.number])
            guard case .reserved(let answers) = outcome, answers.count == wanted.count else {
                throw RouteError.otherKind
            }
            for ((position, wish), refusal) in zip(wanted, answers) {
                if let refusal {
                    refusals[position] = refusals[position] ?? refusal
                } else {
                    operations[position].reservations.append(
                        ReferenceReservation(
                            target: wish.target, action: wish.action, identity: identity,
                            deadlineMilliseconds: self.exchange.deadlineMilliseconds))
                }
            }
        }
        guard !parents.isEmpty else { return refusals }
        let (found, _) = try await self.lookUps.lookUp(parents, at: place)
        for (parent, item) in zip(parents, found) {
            if case .found = item { continue }
            for (position, operation) in operations.enumerated()
            where operation.parent == .set(parent) {
                refusals[position] = refusals[position] ?? RecordRefusal(.parentMissing, parent)
            }
        }
        return refusals
    }
}
