import StratusCoding
package import StratusModel
package import StratusRuntime

/// ``BodyService`` over a carrier of copies: sealing threads between clients' loops and disks.
package final class SealedBodies: BodyService {
    private let carrier: any CopyCarrier
    private let own: NodeID
    private let workers: SealingWorkers
    private let now: @Sendable () -> MonotonicTime
    private let sleep: @Sendable (Duration) async -> Void

    /// What is gathered of a body before a sealing thread is woken for it.
    private static let gatherSize = 64 << 10

    package init(
        _ carrier: any CopyCarrier, as own: NodeID, workers: SealingWorkers,
        now: @escaping @Sendable () -> MonotonicTime,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.carrier = carrier
        self.own = own
        self.workers = workers
        self.now = now
        self.sleep = sleep
    }

    package func write(_ source: any RequestBody, _ plan: BodyPlan) async throws(BodyFailure)
        -> WrittenBody
    {
        let writing = BodyWriting(
            BodyWriter(
                plan.body, orphanAfterMilliseconds: plan.orphanAfterMilliseconds,
                members: plan.members.all, voterSets: plan.members.voterSets,
                deadline: plan.deadline), of: plan.members.group, by: self.carrier,
            deadline: plan.deadline, now: self.now, sleep: self.sleep)
        do {
            return try await self.write(source, plan, writing)
        } catch {
            await writing.cancel()
            throw BodyFailure(error)
        }
    }

    private func write(
        _ source: any RequestBody, _ plan: BodyPlan, _ writing: BodyWriting
    ) async throws -> WrittenBody {
        let line = SealingActor(plan, on: self.workers.next())
        var chunks: [BodyManifest.Chunk] = []
        func store(_ sealed: [SealedChunk]) async throws {
            for chunk in sealed {
                chunks.append(
                    .init(
                        storedSize: UInt32(chunk.bytes.count), crc: CopyKeeper.checksum(chunk.bytes)
                    ))
                try await writing.add(chunk.bytes)
            }
        }
        var gathered = Bytes()
        while let bytes = try await source.next() {
            if gathered.isEmpty { gathered = bytes } else { gathered += bytes }
            guard gathered.count >= Self.gatherSize else { continue }
            let sealed = try await line.add(gathered)
            gathered = []
            try await store(sealed)
        }
        if !gathered.isEmpty { try await store(try await line.add(gathered)) }
        let (last, sums) = await line.finish()
        if let last { try await store([last]) }
        let storers = try await writing.finish()
        return WrittenBody(
            body: plan.body, sums: sums, chunkSize: plan.chunkSize, keyVersion: plan.keyVersion,
            chunks: chunks, storers: storers)
    }

    package func read(_ plan: BodyReadPlan) -> any ResponseBody { self.reading(plan) }

    package func begin(_ plan: BodyReadPlan) async -> BodyBeginning {
        let reading = self.reading(plan)
        return await reading.begin().map { .failed($0) } ?? .ready(reading)
    }

    package func confirm(
        _ body: WrittenBody, at members: BodyMembers, deadline: MonotonicTime
    ) async throws(BodyFailure) -> [CopyHolding] {
        let holdings = await self.carrier.holders(
            of: body.body, chunkCount: UInt32(body.chunks.count), among: members,
            deadline: min(deadline, self.now() + Self.confirmPatience))
        guard members.isMajority(Set(holdings.map(\.node))) else { throw .noMajority }
        return holdings
    }

    private static let confirmPatience = Duration.seconds(5)

    package func discard(_ body: BodyID, at members: BodyMembers) {
        for node in members.voterSets.reduce(members.all, { $0.union($1) }).sorted() {
            self.carrier.drop(body, of: members.group, on: node)
        }
    }

    private func reading(_ plan: BodyReadPlan) -> BodyReading {
        BodyReading(
            plan, by: self.carrier, as: self.own, on: self.workers.next(), now: self.now)
    }
}

extension BodyFailure {
    fileprivate init(_ error: any Error) {
        self =
            switch error {
            case SealingLine.Refusal.tooLarge, RequestBodyError.tooLarge: .tooLarge
            case BodyWriter.Failure.noMajority: .noMajority
            case BodyWriter.Failure.deadline: .deadline
            default: .cutShort
            }
    }
}
