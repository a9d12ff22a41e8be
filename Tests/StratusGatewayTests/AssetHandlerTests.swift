import StratusAssets
import StratusCluster
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing
import Synchronization
import Testing
import WireScenarios

/// Uploads and downloads without a socket: partitions and copies in memory, a clock that the test
/// sets.
@Suite struct AssetHandlerTests {
    /// Copies of one node in memory.
    final class Copies: CopyCarrier {
        let all = Mutex<[CopyName: Bytes]>([:])
        let refuses = Mutex(false)
        /// A copy that comes behind its body's drop is not taken.
        private let dropped = Mutex<Set<BodyID>>([])

        func put(
            _ copy: StoredCopy, of group: GroupID, on node: NodeID, deadline: MonotonicTime
        ) async -> CopyAnswer {
            if self.refuses.withLock({ $0 }) { return .refused(.nearlyFull) }
            if self.dropped.withLock({ $0.contains(copy.name.body) }) { return .refused(.failed) }
            self.all.withLock { $0[copy.name] = copy.bytes }
            return .stored(at: .zero)
        }
        func fetch(
            _ name: CopyName, of group: GroupID, from node: NodeID, deadline: MonotonicTime
        ) async -> CopyFetch {
            self.all.withLock { $0[name].map { .found($0) } ?? .absent }
        }
        func confirm(
            _ body: BodyID, chunkCount: UInt32, of group: GroupID, on node: NodeID,
            deadline: MonotonicTime
        ) async -> CopyAnswer { .stored(at: LogIndex(9)) }
        func drop(_ body: BodyID, of group: GroupID, on node: NodeID) {
            _ = self.dropped.withLock { $0.insert(body) }
            self.all.withLock { $0 = $0.filter { $0.key.body != body } }
        }
    }

    /// A leader that does not count the storers of some bodies.
    final class Doubting: PartitionRouter {
        let router: MemoryRouter
        let doubtCount = Mutex(0)
        let pins = Mutex<[PinAsset]>([])
        let replacements = Mutex<[ReplaceBody]>([])

        init(_ router: MemoryRouter) { self.router = router }

        func submit(
            _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
            mayRunLater: Bool
        ) async throws(RouteError) -> Outcome {
            let operation =
                command.kind == .records ? RecordState.operations.operation(in: command) : nil
            var namesBody = true
            switch operation {
            case let pin as PinAsset: self.pins.withLock { $0.append(pin) }
            case let replace as ReplaceBody: self.replacements.withLock { $0.append(replace) }
            default: namesBody = false
            }
            if namesBody {
                let isDoubted = self.doubtCount.withLock { count in
                    defer { count = max(0, count - 1) }
                    return count > 0
                }
                if isDoubted { throw .notExecuted(retryAfter: .milliseconds(100)) }
            }
            return try await self.router.submit(
                command, to: address, deadline: deadline, mayRunLater: mayRunLater)
        }

        func read(_ query: Query, at address: PartitionAddress, deadline: MonotonicTime)
            async throws(RouteError) -> QueryAnswer
        { try await self.router.read(query, at: address, deadline: deadline) }

        func hasPartition(_ group: GroupID) -> Bool { self.router.hasPartition(group) }
    }

    /// A body that nobody may read.
    struct Unread: RequestBody {
        func next() async throws(RequestBodyError) -> Bytes? {
            Issue.record("a byte was read")
            throw .cutShort
        }
    }

    /// A body in pieces, whose size nothing says.
    final class Pieces: RequestBody {
        private let left: Mutex<Int>
        init(_ size: Int) { self.left = Mutex(size) }
        func next() async throws(RequestBodyError) -> Bytes? {
            self.left.withLock { left in
                guard left > 0 else { return nil }
                let size = min(left, 10_000)
                left -= size
                return Bytes(repeating: 65, count: size)
            }
        }
    }

    final class Switch: Sendable {
        let isOn = Mutex(true)
    }

    final class Town: Sendable {
        static let container = Neighbourhood.container
        let world = SimulatedWorld(seed: 5, wallMilliseconds: 1_709_631_000_000)
        let router: MemoryRouter
        let doubting: Doubting
        let copies = Copies()
        let workers = SealingWorkers(count: 1)
        let authenticator: CredentialAuthenticator
        let gateway: Gateway
        /// Whose partitions are in doubt.
        let transfers: Gateway
        var assets: AssetSurface { self.transfers.assets! }
        let keys: DatabaseKeys
        let buffers = TransferBuffers(.mebibytes(16))
        let members = Switch()

        init(_ change: (inout AssetSettings, inout Limits) -> Void = { _, _ in }) {
            let world = self.world
            let router = MemoryRouter(world: world)
            self.router = router
            self.doubting = Doubting(router)
            let master = Bytes(repeating: 9, count: 32)
            let ciphers = AssetCiphers(master: master)
            let authenticator = CredentialAuthenticator(
                accounts: Accounts(
                    store: IdentityStore(
                        partitions: PartitionClient(router, in: world),
                        keys: IdentityKeys(master: master)),
                    hasher: PasswordHasher(cost: .init(memoryKibibytes: 64, passes: 1))),
                development: DevelopmentAuthenticator(), assets: ciphers)
            self.authenticator = authenticator
            var settings = AssetSettings()
            settings.sizeMax = 2_000_000
            var limits = Limits()
            change(&settings, &limits)
            let members = self.members
            let own: Set<NodeID> = [NodeID(1)]
            self.keys = DatabaseKeys(
                store: authenticator.store,
                containers: ContainerKeys(
                    store: authenticator.store, master: InstallationMaster(secret: master)))
            let kit = AssetKit(
                ciphers: ciphers, keys: self.keys,
                bodies: SealedBodies(
                    self.copies, as: NodeID(1), workers: self.workers, now: { world.now },
                    sleep: { _ in await Task.yield() }), buffers: self.buffers,
                members: { _ in
                    members.isOn.withLock { $0 }
                        ? BodyMembers(group: GroupID(1), all: own, voterSets: [own]) : nil
                }, keepUp: { try await authenticator.keepUp() },
                isOpen: { container, _ in
                    let known = try await authenticator.registry.descriptor(of: container)
                    return known.map { $0.state == .active } ?? true
                }, sleep: { world.advance(by: $0) }, settings: settings)
            var gateway = GatewaySettings()
            gateway.developmentSchema = .justInTime
            let keys = self.keys
            func kernel(_ router: any PartitionRouter) -> GatewayKernel {
                GatewayKernel(
                    partitions: PartitionClient(router, in: world, limits: limits),
                    authenticator: authenticator, keys: keys, tokenKey: master, settings: gateway,
                    limits: limits)
            }
            self.gateway = Gateway(kernel(router), GatewayNeeds(assets: kit))
            self.transfers = Gateway(kernel(self.doubting), GatewayNeeds(assets: kit))
        }

        /// The asset as the rows of its partition have it.
        func stored(_ asset: AssetID, in database: DatabaseID) async throws -> StoredAsset? {
            try await PartitionClient(self.router, in: self.world).ask(
                AssetAsk(database) { $0.asset = asset }, at: .database(database), as: .system())
        }

        deinit { self.workers.stop() }

        func api(
            _ operation: String, _ body: JSON, in database: String = "private"
        ) async throws -> (status: Int, JSON) {
            let path =
                "/database/1/\(Self.container.container)/development/\(database)/\(operation)"
            let head = RequestHead(
                method: "POST", path: path,
                query: "ckAPIToken=\(String(repeating: "a", count: 64))&ckWebAuthToken=t",
                headers: HeaderFields([.init(name: "Host", value: "ck.example.org")]))
            let response = await self.gateway.respond(
                to: HTTPRequest(
                    head: head, body: CollectedBody(Bytes(body.description.utf8)),
                    peer: "192.0.2.7",
                    identity: self.world.drawIdentity()))
            guard case .bytes(let bytes) = response.body else { return (response.status, nil) }
            return (response.status, try JSON(parsing: bytes))
        }

        func send(
            _ method: String, _ url: String, _ headers: [(String, String)] = [],
            _ body: any RequestBody = CollectedBody([])
        ) async throws -> (status: Int, headers: HeaderFields, body: Bytes) {
            let head = RequestHead(
                method: method,
                path: String(url.dropFirst("http://ck.example.org".count)), query: nil,
                headers: HeaderFields(
                    headers.map { HeaderFields.Line(name: $0.0, value: $0.1) }))
            let response = await self.transfers.respond(
                to: HTTPRequest(
                    head: head, body: body, peer: "192.0.2.7",
                    identity: self.world.drawIdentity()))
            switch response.body {
            case .empty: return (response.status, response.headers, [])
            case .bytes(let bytes): return (response.status, response.headers, bytes)
            case .stream(let stream, _):
                var all = Bytes()
                while let more = try await stream.next() { all += more }
                return (response.status, response.headers, all)
            }
        }

        func ticket(
            _ record: String = "one", in database: String = "private"
        ) async throws -> String {
            let (status, answer) = try await self.api(
                "assets/upload",
                [
                    "tokens": [
                        ["recordType": "Book", "recordName": .string(record), "fieldName": "cover"]
                    ]
                ], in: database)
            #expect(status == 200, "\(answer)")
            return try #require(answer["tokens"]?[0]?["url"]?.text)
        }

        func upload(_ bytes: Bytes, to url: String) async throws -> JSON {
            let answer = try await self.send("POST", url, [], CollectedBody(bytes))
            #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
            return try #require(try JSON(parsing: answer.body)["singleFile"])
        }

        func save(_ value: JSON, in record: String = "one") async throws -> JSON {
            let (_, answer) = try await self.api(
                "records/modify",
                [
                    "operations": [
                        [
                            "operationType": "forceUpdate",
                            "record": [
                                "recordName": .string(record), "recordType": "Book",
                                "fields": ["cover": ["value": value]],
                            ],
                        ]
                    ]
                ])
            return try #require(answer["records"]?[0])
        }

        func link(_ record: String = "one") async throws -> String {
            let (_, answer) = try await self.api(
                "records/lookup", ["records": [["recordName": .string(record)]]])
            return try #require(
                answer["records"]?[0]?["fields"]?["cover"]?["value"]?["downloadURL"]?.text)
        }
    }

    static let bytes = Bytes((0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 7) })

    @Test func `check 25, 26, 27: a file goes up, is saved, and comes down`() async throws {
        let town = Town()
        let file = try await town.upload(Self.bytes, to: try await town.ticket())
        #expect(file["size"] == 700_000)
        _ = try await town.save(file)
        let link = try await town.link()
        #expect(link.hasSuffix("/${f}"))
        #expect(try await town.send("GET", link).body == Self.bytes)
        #expect(try await town.link() == link)
        // What lies in memory for the packs is sealed.
        let stored = town.copies.all.withLock { Array($0.values) }
        #expect(stored.count == 3)
        #expect(town.buffers.size == 0)
    }

    @Test func `promise: a file's two opaque keys are in every answer, and say nothing`()
        async throws
    {
        let town = Town()
        let file = try await town.upload(Self.bytes, to: try await town.ticket())
        let key = try #require(file["wrappingKey"]?.text.flatMap { Base64.decode($0) })
        let reference = try #require(file["referenceChecksum"]?.text.flatMap { Base64.decode($0) })
        #expect(key.count == 16 && reference.count == 21 && reference.first == 1)
        let saved = try await town.save(file)
        let (_, found) = try await town.api(
            "records/lookup", ["records": [["recordName": "one"]]])
        let (_, again) = try await town.api(
            "assets/rereference", ["assets": [["recordName": "one", "fieldName": "cover"]]])
        for answer in [
            saved["fields"]?["cover"]?["value"],
            found["records"]?[0]?["fields"]?["cover"]?["value"], again["assets"]?[0],
        ] {
            for name in ["wrappingKey", "referenceChecksum"] {
                #expect(answer?[name] == file[name], "\(name): \(answer ?? .null)")
            }
        }
        // Clients send them back.
        #expect(try await town.save(try #require(again["assets"]?[0]), in: "two")["fields"] != nil)
    }

    @Test func `a file that was uploaded twice is gone with its second record`() async throws {
        let town = Town()
        for name in ["one", "two"] {
            let file = try await town.upload(Self.bytes, to: try await town.ticket(name))
            _ = try await town.save(file, in: name)
        }
        let link = try await town.link("two")
        let (_, deleted) = try await town.api(
            "records/modify",
            [
                "operations": .array(
                    ["one", "two"].map {
                        ["operationType": "forceDelete", "record": ["recordName": .string($0)]]
                    })
            ])
        #expect(deleted["records"]?[1]?["deleted"] == true, "\(deleted)")
        town.world.advance(by: .seconds(20 * 3_600))
        let (_, caller) = try await town.api("users/current", [:])
        let database = DatabaseID(
            container: Town.container, scope: .private,
            owner: try #require(caller["userRecordName"]?.text))
        let slice = RecordCommand.continueJobs(ContinueJobs()).enveloped(
            container: Town.container, identity: town.world.drawIdentity(),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system))
        _ = try await town.router.submit(
            slice, to: .database(database), deadline: town.world.now + .seconds(1))
        let (_, use) = try await town.api("usage", [:])
        #expect(use["assetBytes"] == 0, "\(use)")
        #expect(try await town.send("GET", link).status != 200)
    }

    @Test func `promise: a zone that is not there is said before bytes are sent`() async throws {
        let town = Town()
        let token: JSON = ["recordType": "Book", "recordName": "one", "fieldName": "cover"]
        let (status, answer) = try await town.api(
            "assets/upload", ["zoneID": ["zoneName": "Nope"], "tokens": [token]])
        #expect(status == 404 && answer["serverErrorCode"] == "ZONE_NOT_FOUND", "\(answer)")
    }

    @Test func `the checksums of the reference`() async throws {
        let town = Town()
        for (text, sum) in [
            ("", "AW2cWT2PxzWixMKuuNMTHJ8CJ3sH"), ("hello\n", "Abv+EeVEGAQ0o5/2szwFFOVX1ICw"),
            (
                "The quick brown fox jumps over the lazy dog", "ATE6W0VAGbjhs9B5SmRCwt9Y3yxl"
            ),
        ] {
            let file = try await town.upload(
                Bytes(text.utf8), to: try await town.ticket())
            #expect(file["fileChecksum"]?.text == sum)
        }
    }

    @Test func `check 28: tickets, receipts and links end`() async throws {
        let town = Town()
        let ticket = try await town.ticket()
        let file = try await town.upload(Self.bytes, to: ticket)
        town.world.advance(by: .seconds(15 * 60))
        #expect(try await town.send("POST", ticket, [], Unread()).status == 403)
        _ = try await town.save(file)
        let link = try await town.link()
        town.world.advance(by: .seconds(3_600 + 300))
        #expect(try await town.send("GET", link).status == 410)
        #expect(try await town.send("GET", try await town.link()).status == 200)
        let late = try await town.upload(Self.bytes, to: try await town.ticket("two"))
        town.world.advance(by: .seconds(24 * 3_600))
        let refused = try await town.save(late, in: "two")
        #expect(refused["serverErrorCode"]?.text == "BAD_REQUEST")
    }

    @Test func `check 31: what is too large is refused before it is read, and while it is`()
        async throws
    {
        let town = Town()
        let ticket = try await town.ticket()
        let announced = try await town.send(
            "POST", ticket, [("Content-Length", "2000001")], Unread())
        #expect(announced.status == 413)
        #expect(
            String(decoding: announced.body, as: UTF8.self).contains("QUOTA_EXCEEDED"))
        #expect(try await town.send("PUT", ticket, [], Pieces(2_000_001)).status == 413)
        #expect(town.copies.all.withLock { $0.isEmpty })
        #expect(try await town.send("PUT", ticket, [], Pieces(2_000_000)).status == 200)
        #expect(town.buffers.size == 0)
    }

    @Test func `a quota counts files`() async throws {
        let town = Town { _, limits in limits.privateDatabaseSizeMax = ByteCount(1_000_000) }
        _ = try await town.upload(Self.bytes, to: try await town.ticket())
        let answer = try await town.send(
            "POST", try await town.ticket("two"), [], CollectedBody(Self.bytes.reversed()))
        #expect(answer.status == 413)
        #expect(String(decoding: answer.body, as: UTF8.self).contains("QUOTA_EXCEEDED"))
    }

    @Test func `what no record holds is bounded`() async throws {
        let town = Town { settings, _ in settings.unattachedSizeMax = 1_000_000 }
        let file = try await town.upload(Self.bytes, to: try await town.ticket())
        let ticket = try await town.ticket("two")
        #expect(
            try await town.send("POST", ticket, [], CollectedBody(Self.bytes.reversed())).status
                == 413)
        _ = try await town.save(file)
        #expect(
            try await town.send("POST", ticket, [], CollectedBody(Self.bytes.reversed())).status
                == 200)
    }

    @Test func `a ticket may be used again until a record holds its file`() async throws {
        let town = Town()
        let ticket = try await town.ticket()
        _ = try await town.upload(Self.bytes, to: ticket)
        let second = try await town.upload(Bytes("second".utf8), to: ticket)
        _ = try await town.save(second)
        #expect(try await town.send("GET", try await town.link()).body == Bytes("second".utf8))
        #expect(
            try await town.send("POST", ticket, [], CollectedBody(Bytes("third".utf8))).status
                == 403)
    }

    @Test func `without copies a link is gone, and without its asset it is not found`()
        async throws
    {
        let town = Town()
        _ = try await town.save(try await town.upload(Self.bytes, to: try await town.ticket()))
        let link = try await town.link()
        let kept = town.copies.all.withLock { all in
            defer { all = [:] }
            return all
        }
        #expect(try await town.send("GET", link).status == 410)
        town.copies.all.withLock { $0 = kept }
        #expect(try await town.send("GET", link).status == 200)
        let altered = town.copies.all.withLock { all -> CopyName? in
            let name = all.keys.sorted().first
            if let name { all[name]![20] ^= 1 }
            return name
        }
        #expect(altered != nil)
        #expect(try await town.send("GET", link).status == 410)
    }

    @Test func `who finds no room for ten seconds comes later`() async throws {
        let town = Town()
        let ticket = try await town.ticket()
        var shares: [TransferBuffers.Share] = []
        for user in 0..<100 {
            let holder = PlaceHolder(
                ContainerReference(container: "iCloud.\(user)", environment: .production),
                "\(user)")
            while let share = town.buffers.share(1 << 20, for: holder) { shares.append(share) }
        }
        let before = town.world.now
        let answer = try await town.send("POST", ticket, [], Unread())
        #expect(answer.status == 503 && answer.headers["Retry-After"] == "10")
        #expect(town.world.now >= before + .seconds(10))
        shares = []
        #expect(try await town.send("POST", ticket, [], Pieces(10)).status == 200)
    }

    @Test func `without members or a majority an upload comes later`() async throws {
        let town = Town()
        let ticket = try await town.ticket()
        town.members.isOn.withLock { $0 = false }
        #expect(try await town.send("POST", ticket, [], Unread()).status == 503)
        town.members.isOn.withLock { $0 = true }
        town.copies.refuses.withLock { $0 = true }
        #expect(try await town.send("POST", ticket, [], Pieces(10)).status == 503)
    }

    @Test func `after an erasure of its database a user uploads again`() async throws {
        let town = Town()
        _ = try await town.save(try await town.upload(Self.bytes, to: try await town.ticket()))
        let link = try await town.link()
        let (_, caller) = try await town.api("users/current", [:])
        let database = DatabaseID(
            container: Town.container, scope: .private,
            owner: try #require(caller["userRecordName"]?.text))
        let erase = RecordCommand.eraseDatabase(EraseDatabase(database: database)).enveloped(
            container: Town.container, identity: town.world.drawIdentity(),
            deadlineMilliseconds: .max, schemaVersion: 0, principal: Principal(kind: .system))
        let outcome = try await town.router.submit(
            erase, to: .database(database), deadline: town.world.now + .seconds(1))
        guard
            case .erased(let progress) = try RecordOutcome(
                decoding: outcome.body, detail: outcome.detail)
        else {
            Issue.record("the database was not erased")
            return
        }
        #expect(progress.recordCount == 1)
        #expect(try await town.send("GET", link).status == 404)
        _ = try await town.save(
            try await town.upload(Bytes("again".utf8), to: try await town.ticket("two")), in: "two")
        #expect(try await town.send("GET", try await town.link("two")).body == Bytes("again".utf8))
    }

    @Test func `a ticket makes nothing in a container that was deleted`() async throws {
        let town = Town()
        let ticket = try await town.ticket()
        _ = try await town.authenticator.registry.beginErasure(of: Town.container)
        #expect(try await town.send("POST", ticket, [], Unread()).status == 404)
    }

    @Test func `a body that is no form with a file is malformed`() async throws {
        let town = Town()
        let ticket = try await town.ticket()
        let type = [("Content-Type", "multipart/form-data; boundary=x")]
        for body in ["", "--x\r\n", "--x--", "no form", "--x\r\nnothing\r\n\r\na\r\n--x--"] {
            let answer = try await town.send(
                "POST", ticket, type, CollectedBody(Bytes(body.utf8)))
            #expect(answer.status == 400, "\(body)")
        }
        let form =
            "--x\r\nContent-Disposition: form-data; name=\"files\"; filename=\"f\"\r\n\r\nabc\r\n--x--\r\n"
        let answer = try await town.send("POST", ticket, type, CollectedBody(Bytes(form.utf8)))
        #expect(answer.status == 200)
        #expect(try JSON(parsing: answer.body)["singleFile"]?["size"] == 3)
    }

    @Test func `methods, paths and texts that lead nowhere`() async throws {
        let town = Town()
        let ticket = try await town.ticket()
        #expect(try await town.send("GET", ticket).status == 405)
        let root = "http://ck.example.org/assets/"
        #expect(try await town.send("GET", root).status == 404)
        #expect(try await town.send("GET", root + "x/y").status == 404)
        #expect(try await town.send("POST", root + "d/x/f").status == 405)
        #expect(try await town.send("GET", root + "d/x/f").status == 403)
        #expect(try await town.send("POST", root + "u/x", [], Unread()).status == 403)
        #expect(try await town.send("POST", ticket + "/more", [], Unread()).status == 403)
        let preflight = try await town.send("OPTIONS", ticket)
        #expect(preflight.status == 204)
        #expect(preflight.headers["Access-Control-Allow-Origin"] == "*")
    }

    @Test func `storers that the leader does not count are asked again`() async throws {
        let town = Town()
        let url = try await town.ticket()
        town.doubting.doubtCount.withLock { $0 = 2 }
        let file = try await town.upload(Bytes("file".utf8), to: url)
        let saved = try await town.save(file)
        #expect(saved["serverErrorCode"] == nil, "\(saved)")
        let pins = town.doubting.pins.withLock { $0 }
        #expect(
            pins.map { $0.stored.storers.map(\.at) } == [[.zero], [LogIndex(9)], [LogIndex(9)]])
        // It stays the same body, under another identity each time.
        #expect(Set(pins.map(\.stored.body)).count == 1)
    }

    @Test func `an upload whose storers are never counted is answered 503`() async throws {
        let town = Town()
        let url = try await town.ticket()
        town.doubting.doubtCount.withLock { $0 = 1_000 }
        let answer = try await town.send("POST", url, [], CollectedBody(Bytes("file".utf8)))
        #expect(answer.status == 503)
        #expect(answer.headers["Retry-After"] != nil)
        #expect(town.doubting.pins.withLock { $0.count } == 10)
    }
}
