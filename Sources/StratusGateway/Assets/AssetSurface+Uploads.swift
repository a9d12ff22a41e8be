import StratusAssets
import StratusCluster
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing
import Synchronization

extension AssetSurface {
    /// What CloudKit's checksum of a file begins with.
    static let checksumSalt = FileChecksum.salt
    /// How long copies are kept of which no row speaks yet.
    static let orphanMilliseconds: Int64 = 3_600_000
    /// Times that an upload is named. In between it is sealed anew, under a newer key.
    private static let keyTriesMax = 3
    /// The shortest time that an upload may take, and the least speed beyond it.
    private static let patienceMin = Duration.seconds(300)
    private static let speedMin: UInt64 = 16 << 10
    /// Times that a body is named anew because its name or its key was taken meanwhile, or because
    /// the leader knew too few of its storers as members.
    private static let pinTriesMax = 10
    /// Between two tries.
    private static let pinPause = Duration.milliseconds(100)

    func upload(_ request: HTTPRequest, ticket text: String) async throws -> HTTPResponse {
        let ticket: UploadTicket
        do throws(AssetTextRefusal) {
            ticket = try UploadTicket(
                text, openedWith: self.kit.ciphers.tickets, at: self.world.wallMilliseconds)
        } catch {
            throw AssetFailure.forbidden(
                error == .expired
                    ? "the upload URL has expired: ask for a new one" : "unknown upload URL")
        }
        let boundary = request.head.headers["Content-Type"].flatMap(MultipartReader.boundary)
        let length = request.head.headers["Content-Length"].flatMap { UInt64($0) }
        let form = boundary.map { FirstFile(request.body, boundary: $0) }
        let pinned: PinnedAsset
        let size: UInt64
        do {
            (pinned, size) = try await self.store(
                form ?? request.body, of: length, isWrapped: form != nil, ticket)
        } catch BodyFailure.cutShort where form?.isNoForm == true {
            throw AssetFailure.malformed("the body is no multipart form with a file")
        }
        var writer = JSONWriter()
        writer.object {
            $0.key("singleFile")
            $0.writeUploaded(
                checksum: pinned.fileChecksum, size: size,
                receipt: AssetReceipt(
                    asset: pinned.asset, pin: UploadID(ticket.upload),
                    database: ticket.database, user: ticket.user,
                    expiresMilliseconds: self.world.wallMilliseconds
                        + AssetReceipt.lifeMilliseconds
                ).text(sealedWith: self.kit.ciphers.receipts))
        }
        return HTTPResponse(
            status: 200,
            headers: [
                "Content-Type": "application/json; charset=UTF-8", "Cache-Control": "no-store",
            ], body: .bytes(writer.finish()))
    }

    /// A permission that nobody asked for: bytes that come another way than by an address.
    func ticket(for database: DatabaseID, by user: String, sizeMax: UInt64) -> UploadTicket {
        UploadTicket(
            upload: UInt128(self.world.random()) << 64 | UInt128(self.world.random()),
            database: database, user: user, sizeMax: sizeMax,
            expiresMilliseconds: self.world.wallMilliseconds + UploadTicket.lifeMilliseconds)
    }

    /// Takes a file to the disks of a majority, and names it.
    ///
    /// - Parameters:
    ///   - isWrapped: whether `length` counts more than the file.
    ///   - pin: how long the asset stays, and what is asked before it is named.
    func store(
        _ body: any RequestBody, of length: UInt64?, isWrapped: Bool = false,
        _ ticket: UploadTicket, pin: PinTerms = PinTerms()
    ) async throws -> (asset: PinnedAsset, size: UInt64) {
        let sizeMax = min(ticket.sizeMax, self.kit.settings.sizeMax)
        if let length, !isWrapped, length > sizeMax { throw AssetFailure.tooLarge(sizeMax) }
        try await self.requireOpen(ticket)
        let rules = self.rules(of: ticket.database, pin)
        let claim = try await self.claim(isWrapped ? nil : length, of: ticket.database, rules)
        defer { withExtendedLifetime(claim) {} }
        let claiming = isWrapped || length == nil ? ClaimingBody(body, claim) : nil
        let (world, kit) = (self.world, self.kit)
        guard
            let share = await kit.buffers.wait(
                for: TransferBuffers.uploadSize(of: length),
                of: PlaceHolder(ticket.database.container, ticket.user),
                now: { world.now }, sleep: kit.sleep)
        else { throw AssetFailure.later("too many transfers at once", seconds: 10) }
        defer { withExtendedLifetime(share) {} }
        guard let members = await kit.members(ticket.database) else {
            throw AssetFailure.later("the database cannot be reached", seconds: 1)
        }
        let key = try await kit.keys.sealing(of: ticket.database)
        let secret =
            kit.settings.deduplicates ? try await kit.keys.secret(of: ticket.database) : nil
        var plan = self.plan(
            ticket.database, members, key, hashes: secret != nil, sizeMax: sizeMax)
        var written: WrittenBody
        do throws(BodyFailure) {
            written = try await kit.bodies.write(claiming ?? body, plan)
        } catch {
            if claiming?.isFull == true {
                throw Self.full(
                    self.kit.rules(of: ticket.database, self.kernel.limits).databaseSizeMax)
            }
            if error == .tooLarge { throw AssetFailure.tooLarge(sizeMax) }
            throw error
        }
        do {
            try await self.requireOpen(ticket)
            try await pin.judge()
        } catch {
            // Nothing names the body, and nothing will: its bytes go at once.
            kit.bodies.discard(written.body, at: members)
            throw error
        }
        for _ in 1..<Self.keyTriesMax {
            do {
                let pinned = try await self.pin(written, ticket, plan, secret, rules, members)
                return (pinned, written.sums.size)
            } catch is NewerKey {
                (written, plan) = try await self.resealed(written, plan, ticket, members)
            }
        }
        do {
            let pinned = try await self.pin(written, ticket, plan, secret, rules, members)
            return (pinned, written.sums.size)
        } catch is NewerKey {
            throw AssetFailure.later("the file could not be named: upload it again", seconds: 1)
        }
    }

    /// What the quota leaves for one more file, as far as its size is known before it comes. The
    /// pin is judged again, with what is stored by then.
    private func claim(
        _ length: UInt64?, of database: DatabaseID, _ rules: AssetRules
    ) async throws -> UploadClaims.Claim {
        var room: UInt64?
        if rules.databaseSizeMax != 0 {
            guard
                case .use(let use, _, let assets) = try await self.kernel.partitions.plain.ask(
                    RecordQuery.Ask.use(database), at: .database(database), as: .system())
            else { throw AssetFailure.broken }
            let (held, isOver) = use.size.addingReportingOverflow(assets.size)
            room = isOver || held >= rules.databaseSizeMax ? 0 : rules.databaseSizeMax - held
        }
        let claim = UploadClaims.Claim(self.kit.claims, of: database, room: room)
        guard claim.grow(by: length ?? 0) else {
            throw Self.full(self.kit.rules(of: database, self.kernel.limits).databaseSizeMax)
        }
        return claim
    }

    private static func full(_ sizeMax: UInt64) -> AssetFailure {
        .full("the database may hold \(sizeMax) bytes")
    }

    private func rules(of database: DatabaseID, _ pin: PinTerms) -> AssetRules {
        var rules = self.kit.rules(of: database, self.kernel.limits)
        if let milliseconds = pin.milliseconds { rules.pinMilliseconds = milliseconds }
        if rules.databaseSizeMax != 0 {
            let (size, isOver) = rules.databaseSizeMax.addingReportingOverflow(pin.freedSize)
            rules.databaseSizeMax = isOver ? .max : size
        }
        return rules
    }

    /// A ticket makes nothing in a container that was shut, or for a user who is gone.
    private func requireOpen(_ ticket: UploadTicket) async throws {
        guard try await self.kit.isOpen(ticket.database.container, ticket.user) else {
            throw AssetFailure.notFound
        }
    }

    /// How a new body is written.
    func plan(
        _ database: DatabaseID, _ members: BodyMembers, _ key: DatabaseKeys.Sealing,
        hashes: Bool, sizeMax: UInt64
    ) -> BodyPlan {
        let body = BodyID(self.drawName())
        let lead = self.kernel.partitions.leadMilliseconds(at: .database(database))
        let patience = max(
            Self.patienceMin, .seconds(Int64(clamping: sizeMax / Self.speedMin)))
        var plan = BodyPlan(
            members: members, body: body,
            // Counted from the end of the longest upload: a pin that comes later does nothing.
            orphanAfterMilliseconds: self.world.wallMilliseconds + lead
                + patience.clampedNanoseconds / 1_000_000 + Self.orphanMilliseconds,
            sealer: BodySealer(
                databaseKey: key.key, version: key.version, database: database,
                body: body), keyVersion: key.version, sizeMax: sizeMax,
            checksumPrefix: Self.checksumSalt, deadline: self.world.now + patience)
        plan.compresses = self.kit.settings.compresses
        plan.hashes = hashes
        return plan
    }

    private func drawName() -> UInt128 {
        UInt128(self.world.random()) << 64 | UInt128(self.world.random())
    }

    /// Names the body: from here on the file is an asset, for 24 hours or until a record holds it.
    private func pin(
        _ written: WrittenBody, _ ticket: UploadTicket, _ plan: BodyPlan,
        _ secret: SecretBytes?, _ rules: AssetRules, _ members: BodyMembers
    ) async throws -> PinnedAsset {
        let digest = self.digest(of: written.sums, ticket, secret)
        var naming = Naming(written, until: self.kernel.partitions.term().end)
        var mayBeNamed = false
        while naming.triesLeft > 0 {
            let outcome = try await self.submit(&naming, to: ticket.database) { storers in
                PinAsset(ticket.database) {
                    $0.upload = UploadID(ticket.upload)
                    $0.asset = AssetID(self.drawName())
                    $0.stored = written.stored(until: plan, by: storers)
                    $0.fileChecksum = Self.checksum(of: written.sums)
                    $0.digest = digest
                    $0.rules = rules
                }
            }
            switch outcome {
            case .success(let pinned):
                // An equal file was there: the body was not named.
                if pinned.isShared, !mayBeNamed {
                    self.kit.bodies.discard(written.body, at: members)
                }
                return pinned
            case .failure(let refusal) where refusal.reason == .assetTaken:
                mayBeNamed = true
                continue
            case .failure(let refusal):
                if refusal.reason == .keyMissing, !mayBeNamed { throw NewerKey() }
                if !mayBeNamed { self.kit.bodies.discard(written.body, at: members) }
                if refusal.reason == .databaseFull {
                    let rules = self.kit.rules(of: ticket.database, self.kernel.limits)
                    throw Self.full(rules.databaseSizeMax)
                }
                throw Self.failure(refusal)
            }
        }
        throw RouteError.notExecuted(retryAfter: .seconds(1))
    }

    /// A body that is to be named.
    struct Naming {
        let written: WrittenBody
        let end: MonotonicTime
        var storers: [CopyHolding]
        var triesLeft = AssetSurface.pinTriesMax

        init(_ written: WrittenBody, until end: MonotonicTime) {
            self.written = written
            self.storers = written.storers
            self.end = end
        }
    }

    /// Submits an operation that names a body, each time under another identity.
    func submit<Operation: DatabaseOperation<RecordState>>(
        _ naming: inout Naming, to database: DatabaseID,
        _ command: ([CopyHolding]) -> Operation
    ) async throws -> Result<Operation.Outcome, StratusRecords.RequestRefusal> {
        while true {
            naming.triesLeft -= 1
            do throws(RecordsError) {
                return .success(
                    try await self.kernel.partitions.submit(
                        command(naming.storers), at: .database(database),
                        as: .system(until: naming.end)))
            } catch {
                if case .refused(let refusal) = error { return .failure(refusal) }
                // The members may have changed since a storer answered: each says an index of now.
                guard case .notExecuted(let after) = error, naming.triesLeft > 0,
                    self.world.now + after + Self.pinPause < naming.end,
                    let members = await self.kit.members(database)
                else { throw RouteError(error) }
                await self.kit.sleep(after + Self.pinPause)
                naming.storers = try await self.kit.bodies.confirm(
                    naming.written, at: members, deadline: naming.end)
            }
        }
    }

    /// What CloudKit knows the file by.
    static func checksum(of sums: BodySums) -> String {
        Base64.encode(FileChecksum.checksum(ofSHA1: sums.sha1))
    }

    private static func failure(_ refusal: StratusRecords.RequestRefusal) -> any Error {
        switch refusal.reason {
        case .uploadAttached:
            AssetFailure.forbidden("a record holds what was uploaded here: ask for a new URL")
        case .tooMuchUnattached:
            AssetFailure.full(
                "files that no record holds may have \(refusal.subject) bytes together")
        case .pinTooLate, .keyMissing:
            AssetFailure.later("the file could not be named: upload it again", seconds: 1)
        case .accessDenied: AssetFailure.notFound
        default: ClientError(refusal)
        }
    }

    /// Equal for equal files of one database. In the public one nobody shares with anybody else.
    private func digest(of sums: BodySums, _ ticket: UploadTicket, _ secret: SecretBytes?)
        -> AssetDigest?
    {
        guard let secret, let sha256 = sums.sha256 else { return nil }
        let size = withUnsafeBytes(of: sums.size.bigEndian) { Bytes($0) }
        let user = ticket.database.scope == .public ? Bytes(ticket.user.utf8) : []
        let key = secret.withBytes { Bytes($0) }
        let digest = KeyedHash.derive(key, "stratus equal files 1", size, sha256, user)
        return AssetDigest(digest.prefix(16).reduce(0) { $0 << 8 | UInt128($1) })
    }
}

extension WrittenBody {
    /// As an operation names it.
    func stored(until plan: BodyPlan, by storers: [CopyHolding]) -> StoredBody {
        StoredBody(
            body: self.body, size: self.sums.size, chunkSize: self.chunkSize,
            keyVersion: self.keyVersion, chunks: self.chunks,
            orphanAfterMilliseconds: plan.orphanAfterMilliseconds, storers: storers)
    }
}

/// The database got a newer key since the body was sealed.
struct NewerKey: Error {}

/// What an upload is named by.
struct PinTerms: Sendable {
    /// How long the asset stays if no record holds it; nil: as its receipt.
    var milliseconds: Int64?
    /// Bytes of a content whose place the file takes: the quota need not hold both.
    var freedSize: UInt64 = 0
    /// Asked once the bytes are there and before they are named.
    var judge: @Sendable () async throws -> Void = {}
}

/// The first file of a `multipart/form-data` body.
final class FirstFile: RequestBody {
    private struct State {
        var reader: MultipartReader
        var isNoForm = false
    }

    private let source: any RequestBody
    private let state: Mutex<State>

    init(_ source: any RequestBody, boundary: String) {
        self.source = source
        self.state = Mutex(State(reader: MultipartReader(boundary: boundary)))
    }

    /// Whether it was found to be no form with a file.
    var isNoForm: Bool { self.state.withLock { $0.isNoForm } }

    func next() async throws(RequestBodyError) -> Bytes? {
        while let bytes = try await self.source.next() {
            let file = self.take(bytes)
            guard let file else { throw .cutShort }
            if !file.isEmpty { return file }
        }
        guard self.finish() else { throw .cutShort }
        return nil
    }

    private func take(_ bytes: Bytes) -> Bytes? {
        self.state.withLock { state in
            do throws(MultipartReader.Refusal) { return try state.reader.read(bytes) } catch {
                state.isNoForm = true
                return nil
            }
        }
    }

    private func finish() -> Bool {
        self.state.withLock { state in
            do throws(MultipartReader.Refusal) { try state.reader.finish() } catch {
                state.isNoForm = true
                return false
            }
            return true
        }
    }
}
