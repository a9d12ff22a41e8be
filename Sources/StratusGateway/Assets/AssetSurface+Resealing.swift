import StratusAssets
import StratusCluster
package import StratusContainers
import StratusIdentity
package import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing
import Synchronization

// Files that are sealed anew, because their database got a newer key.
extension AssetSurface: FileResealing {
    /// The names under which a rotation shares the memory of transfers with users. Reading and
    /// writing wait for each other, so each has a part of its own.
    private static let reader = PlaceHolder(nil, "a rotation of keys, reading")
    private static let writer = PlaceHolder(nil, "a rotation of keys, writing")

    /// Reads the file, seals its bytes as a new body under the newest key, chunk by chunk, and puts
    /// that in the place of the old one.
    package func reseal(_ asset: AssetID, of database: DatabaseID) async throws -> ResealedFile {
        do { return try await self.sealAnew(asset, of: database) } catch {
            switch error {
            case is RouteError, is CancellationError: throw error
            default: return .left(reason: AssetFailure(error).error.reason)
            }
        }
    }

    private func sealAnew(_ asset: AssetID, of database: DatabaseID) async throws -> ResealedFile {
        guard let stored = try await self.stored(asset, in: database) else {
            return .left(reason: "a file is about to be removed")
        }
        let old = stored.body
        guard !old.isLost else { return .left(reason: "a file is lost") }
        let key = try await self.kit.keys.sealing(of: database)
        guard old.keyVersion < key.version else {
            return .left(reason: "a file is under the newest key already")
        }
        let (world, kit) = (self.world, self.kit)
        guard
            let share = await kit.buffers.wait(
                for: TransferBuffers.uploadSize(of: old.size), of: Self.writer,
                now: { world.now }, sleep: kit.sleep)
        else { return .left(reason: "too many transfers at once") }
        defer { withExtendedLifetime(share) {} }
        let (body, readShare) = try await self.begin(stored, 0..<old.size, by: Self.reader)
        defer { withExtendedLifetime(readShare) {} }
        guard let members = await kit.members(database) else {
            throw RouteError.notExecuted(retryAfter: .seconds(1))
        }
        var plan = self.plan(database, members, key, hashes: false, sizeMax: old.size)
        plan.chunkSize = old.chunkSize
        let paced = PacedBody(
            body, rate: kit.settings.resealingRate, now: { world.now }, sleep: kit.sleep)
        let written = try await kit.bodies.write(paced, plan)
        guard written.sums.size == old.size,
            Self.checksum(of: written.sums) == stored.fileChecksum
        else {
            kit.bodies.discard(written.body, at: members)
            return .left(reason: "the bytes of a file do not have its checksum")
        }
        return try await self.replace(stored, by: written, plan, members)
    }

    private func replace(
        _ stored: StoredAsset, by written: WrittenBody, _ plan: BodyPlan, _ members: BodyMembers
    ) async throws -> ResealedFile {
        var naming = Naming(written, until: self.kernel.partitions.term().end)
        let outcome = try await self.submit(&naming, to: stored.database) { storers in
            ReplaceBody(stored.database) {
                $0.asset = stored.asset
                $0.old = stored.body.body
                $0.new = written.stored(until: plan, by: storers)
            }
        }
        guard case .success(let replaced) = outcome else { throw AssetFailure.broken }
        if replaced == .replaced { return .sealed(size: written.sums.size) }
        // The row under its name may be its own.
        if replaced != .taken { self.kit.bodies.discard(written.body, at: members) }
        return .left(reason: "a file has changed meanwhile (\(replaced))")
    }

    /// Seals what an upload has stored anew: the database got a newer key while its bytes came. If
    /// the older key is gone, the database may have been erased meanwhile, and nothing from before
    /// comes back.
    func resealed(
        _ written: WrittenBody, _ old: BodyPlan, _ ticket: UploadTicket, _ members: BodyMembers
    ) async throws -> (WrittenBody, BodyPlan) {
        let (world, kit) = (self.world, self.kit)
        let size = written.sums.size
        guard try await kit.keys.key(written.keyVersion, of: ticket.database) != nil else {
            kit.bodies.discard(written.body, at: members)
            throw AssetFailure.later("the file could not be named: upload it again", seconds: 1)
        }
        guard
            let share = await kit.buffers.wait(
                for: min(TransferBuffers.downloadSize, 2 * Int(size) + 4_096), of: Self.reader,
                now: { world.now }, sleep: kit.sleep)
        else { throw AssetFailure.later("too many transfers at once", seconds: 10) }
        let key = try await kit.keys.sealing(of: ticket.database)
        var plan = self.plan(
            ticket.database, members, key, hashes: old.hashes, sizeMax: old.sizeMax)
        plan.chunkSize = old.chunkSize
        let manifest = BodyManifest(
            body: written.body, database: 0, namedAt: .zero, size: size,
            chunkSize: written.chunkSize, keyVersion: written.keyVersion, chunks: written.chunks)
        let body = kit.bodies.read(
            BodyReadPlan(
                manifest: manifest, members: members, range: 0..<size, sealer: old.sealer,
                deadline: plan.deadline, share: share))
        let paced = PacedBody(body, rate: 0, now: { world.now }, sleep: kit.sleep)
        let again = try await kit.bodies.write(paced, plan)
        // Nothing names the older one, and nothing will.
        kit.bodies.discard(written.body, at: members)
        return (again, plan)
    }
}

/// A body that is read, as one that is stored: no faster than a rate.
final class PacedBody: RequestBody {
    private let body: any ResponseBody
    private let rate: UInt64
    private let now: @Sendable () -> MonotonicTime
    private let sleep: @Sendable (Duration) async -> Void
    private let begun: MonotonicTime
    private let size = Mutex<UInt64>(0)

    /// - Parameter rate: bytes a second; 0: as fast as they come.
    init(
        _ body: any ResponseBody, rate: UInt64, now: @escaping @Sendable () -> MonotonicTime,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) {
        self.body = body
        self.rate = rate
        self.now = now
        self.sleep = sleep
        self.begun = now()
    }

    func next() async throws(RequestBodyError) -> Bytes? {
        let size = self.size.withLock { $0 }
        if self.rate > 0, size > 0 {
            // At the end too, so that many small files keep the rate.
            let due = self.begun + .seconds(Double(size) / Double(self.rate))
            let early = due - self.now()
            if early > .zero { await self.sleep(early) }
        }
        do {
            let bytes = try await self.body.next()
            self.size.withLock { $0 += UInt64(bytes?.count ?? 0) }
            return bytes
        } catch { throw .cutShort }
    }
}
