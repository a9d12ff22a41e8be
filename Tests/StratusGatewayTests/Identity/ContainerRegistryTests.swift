import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRecords
import Synchronization
import Testing

@testable import WireScenarios

/// The beginning and the end of a container.
@Suite struct ContainerRegistryTests {
    private static let book: JSON = [
        "operations": [
            [
                "operationType": "create",
                "record": [
                    "recordName": "planted", "recordType": "Book",
                    "fields": ["title": ["value": "planted"]],
                ],
            ]
        ]
    ]

    private func registry(_ town: Neighbourhood) -> ContainerRegistry {
        town.authenticator.registry
    }

    /// Pieces until nothing is left; how many that took.
    private func eraseAll(_ town: Neighbourhood, _ container: ContainerReference) async throws
        -> (pieces: Int, records: UInt64, users: Int)
    {
        let erasure = ContainerErasure(town.service.directory, settling: .zero)
        var records: UInt64 = 0
        var users = 0
        for piece in 1...1_000 {
            let progress = try #require(try await erasure.step(container))
            records += progress.recordCount
            users += progress.userCount
            if progress.isDone { return (piece, records, users) }
        }
        throw Problem(text: "an erasure does not end")
    }

    @Test func `a deleted container lets nobody in, and in the end holds nothing`() async throws {
        let town = Neighbourhood()
        let container = Neighbourhood.container
        _ = try await town.makeContainer()
        guard case .created(let first) = try await self.registry(town).create(container) else {
            Issue.record("not created")
            return
        }
        #expect(first.generation == 1)
        let api = try await town.apiToken()
        let elsewhere = try await town.apiToken(in: Neighbourhood.production)
        var people: [AccountID] = []
        for number in 0..<25 {
            let id = try await town.account("p\(number)@example.org")
            let token = try await town.signIn(id)
            people.append(id)
            let answer = try await town.post(
                "private/records/modify", Self.book, api: api, user: token)
            #expect(!answer.text.contains("serverErrorCode"), "\(answer)")
        }
        let token = try await town.signIn(people[0])
        let other = try await town.signIn(people[0], in: Neighbourhood.production)
        _ = try await town.post("public/records/modify", Self.book, api: api, user: token)

        #expect(try await self.registry(town).beginErasure(of: container)?.state == .erasing)
        // What this node itself did it knows at once; others within a second.
        town.authenticator.forget()
        for path in ["public/users/caller", "private/zones/list"] {
            #expect(try await town.post(path, api: api, user: token).status == 401)
            #expect(try await town.post(path, api: api).status == 401)
        }
        #expect(
            try await town.post(
                "public/users/caller", api: elsewhere, user: other,
                in: Neighbourhood.production
            ).status == 200)
        #expect(try await self.registry(town).create(container) == .isErasing)
        #expect(try await self.registry(town).admit(container) == false)

        let done = try await self.eraseAll(town, container)
        // Twenty users a piece, then the public database and the token, then nothing.
        #expect(done.pieces == 4)
        #expect(done.users == 25)
        // One record each, one of the public database, and 25 users' own.
        #expect(done.records == 51)
        #expect(
            try await ContainerErasure(town.service.directory, settling: .zero).step(container)
                == nil)
        #expect(try await self.registry(town).descriptor(of: container)?.state == .erased)
        #expect(try await town.access.users(in: container).isEmpty)
        #expect(try await town.access.tokens(in: container).isEmpty)
        #expect(
            try await town.accounts.sessions(of: people[0]).map(\.session.container)
                == [Neighbourhood.production])
        #expect(
            try await town.accounts.containers(of: people[0]) == [Neighbourhood.production])
        #expect(try await town.post("public/users/caller", api: api).status == 401)

        // The name can be used again: with nothing of what was, and with nobody's old session.
        guard case .created(let second) = try await self.registry(town).create(container) else {
            Issue.record("not created again")
            return
        }
        #expect(second.generation == 2)
        let fresh = try await town.apiToken()
        #expect(try await town.post("public/users/caller", api: api).status == 401)
        #expect(
            try await town.post("private/zones/list", api: fresh, user: token).status == 421)
        let again = try await town.signIn(people[0])
        for scope in ["public", "private"] {
            let found = try await town.post(
                "\(scope)/records/lookup", ["records": [["recordName": "planted"]]],
                api: fresh, user: again)
            #expect(found.text.contains("NOT_FOUND"), "\(found)")
        }
    }

    /// Everything that has to do with a public database as a whole has to do with every bucket.
    @Test func `a container with buckets is counted whole and goes whole`() async throws {
        let town = Neighbourhood()
        // Nothing waits for a job: signing in teaches a bucket the schema before it saves.
        town.router.runsJobs.withLock { $0 = false }
        let container = Neighbourhood.container
        let registry = self.registry(town)
        guard case .created(let first) = try await registry.create(container, buckets: 8) else {
            Issue.record("not created")
            return
        }
        #expect(first.publicBucketCount == 8)
        _ = try await town.makeContainer()
        // Never changed: neither by who creates it again, nor by who makes it known.
        #expect(try await registry.create(container, buckets: 4) == .exists(first))
        #expect(try await registry.admit(container))
        #expect(try await registry.all().map(\.descriptor) == [first])

        let api = try await town.apiToken()
        var names: [String] = []
        var token = ""
        for number in 0..<25 {
            let id = try await town.account("p\(number)@example.org")
            token = try await town.signIn(id)
            names.append(town.recordName(id))
        }
        let database = first.publicDatabase(of: container)
        #expect(Set(names.map { database.part(of: $0) }).count > 4)
        let books = (0..<40).map { "b\($0)" }
        _ = try await town.post(
            "public/records/modify",
            [
                "operations": .array(
                    books.map { Operation.create($0, ["title": ["value": "planted"]]) })
            ], api: api, user: token)
        let found = try await town.post(
            "public/records/lookup",
            ["records": .array((names + books).map { ["recordName": .string($0)] })], api: api,
            user: token)
        #expect(
            found.json["records"].elements.map { $0["recordType"].text }
                == names.map { _ in "Users" } + books.map { _ in "Book" })
        let query: JSON = [
            "query": ["recordType": "Book", "sortBy": [["fieldName": "title"]]]
        ]
        let all = try await town.post("public/records/query", query, api: api, user: token)
        #expect(all.json["records"].elements.count == 40, "\(all)")

        let usage = try await ContainerUsage(town.service.directory).page(of: container, after: nil)
        #expect(usage.databases[0].use.recordCount == 65)
        let whole = try await ContainerUsage(town.service.directory).held(
            by: PublicDatabase(of: container))
        #expect(whole.use == .none)

        _ = try await registry.beginErasure(of: container)
        town.authenticator.forget()
        // Cut short among the buckets, it begins again.
        let last = ShardKey.database(database.parts[5])
        _ = town.router.away.withLock { $0.insert(last) }
        let erasure = ContainerErasure(town.service.directory, settling: .zero)
        var before: UInt64 = 0
        for _ in 0..<2 { before += try await erasure.step(container)?.recordCount ?? 0 }
        #expect(before == 0)
        await #expect(throws: (any Error).self) { try await erasure.step(container) }
        _ = town.router.away.withLock { $0.remove(last) }
        let left = try await ContainerUsage(town.service.directory).held(by: database)
        #expect(left.use.recordCount > 0 && left.use.recordCount < 65)
        let done = try await self.eraseAll(town, container)
        #expect(done.records == left.use.recordCount)
        #expect(try await ContainerUsage(town.service.directory).held(by: database).use == .none)

        // Another life, with other buckets.
        guard case .created(let second) = try await registry.create(container, buckets: 2) else {
            Issue.record("not created again")
            return
        }
        #expect(second.publicBucketCount == 2 && second.generation == 2)
        let fresh = try await town.apiToken()
        let nothing = try await town.post(
            "public/records/lookup",
            ["records": .array((names + books).map { ["recordName": .string($0)] })], api: fresh)
        #expect(
            nothing.json["records"].elements.allSatisfy { $0["serverErrorCode"] == "NOT_FOUND" })
    }

    /// Such as were saved by builds that knew no descriptors.
    @Test func `records that are there already are not hidden by buckets`() async throws {
        let town = Neighbourhood()
        let container = Neighbourhood.container
        let whole = PublicDatabase(of: container).parts[0]
        let saved = try await town.router.submit(
            RecordCommand.modifyRecords(
                ModifyRecords(
                    database: whole, drawnIncarnation: ZoneIncarnation(1),
                    operations: [
                        RecordOperation(.create, recordName: "_a", recordType: "Users")
                    ])
            ).enveloped(
                container: container, identity: town.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0,
                principal: Principal(kind: .system, userRecordName: "_a")),
            to: .database(whole), deadline: town.world.now)
        #expect(saved.verdict == .decided)
        let creation = ContainerCreation(town.service.directory)
        #expect(try await creation.run(container, buckets: 8) == .hasRecords)
        #expect(try await self.registry(town).descriptor(of: container) == nil)
        guard case .created(let descriptor) = try await creation.run(container, buckets: 1) else {
            Issue.record("not created")
            return
        }
        #expect(try await creation.run(container, buckets: 8) == .exists(descriptor))
    }

    private final class Note: Sendable {
        let text = Mutex("")
    }

    @Test func `whoever finds a token knows the buckets`() async throws {
        for isOpen in [false, true] {
            let town = Neighbourhood(isOpen: isOpen)
            let container = Neighbourhood.container
            _ = try await town.makeContainer()
            let open = String(repeating: "ab", count: 32)
            // The descriptor was looked for before the container was there, and its tokens after.
            let made = Note()
            town.router.afterRead.withLock { hook in
                hook = { [registry = self.registry(town), town] key in
                    guard key == .container(container) else { return }
                    town.router.afterRead.withLock { $0 = nil }
                    _ = try? await registry.create(container, buckets: 8)
                    let token = try? await town.access.createToken(
                        APIToken(name: "t", createdMilliseconds: 0), in: container)
                    made.text.withLock { $0 = token ?? "" }
                }
            }
            let authentication = try? await town.authenticator.authenticate(
                PresentedRequest(
                    head: RequestHead(
                        method: "POST", path: town.path("public/records/lookup"),
                        query: "ckAPIToken=\(open)"), container: container, scope: .public))
            #expect(made.text.withLock { $0 } != "")
            if isOpen { #expect(authentication?.publicBucketCount == 8) }
            let later = try await town.authenticator.authenticate(
                PresentedRequest(
                    head: RequestHead(
                        method: "POST", path: town.path("public/records/lookup"),
                        query: "ckAPIToken=\(made.text.withLock { $0 })"), container: container,
                    scope: .public))
            #expect(later.publicBucketCount == 8)
        }
    }

    @Test func `a piece waits for what was let in before`() async throws {
        let town = Neighbourhood()
        let container = Neighbourhood.container
        _ = try await self.registry(town).create(container)
        _ = try await self.registry(town).beginErasure(of: container)
        let erasure = ContainerErasure(town.service.directory)
        #expect(try #require(try await erasure.step(container)).waitsMilliseconds > 30_000)
        town.world.advance(by: .seconds(31))
        #expect(try #require(try await erasure.step(container)).waitsMilliseconds > 0)
        town.world.advance(by: .seconds(2))
        let progress = try #require(try await erasure.step(container))
        #expect(progress.isDone && progress.waitsMilliseconds == 0)
    }

    @Test func `who was believed a second ago is refused a second later`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        _ = try await self.registry(town).create(Neighbourhood.container)
        let api = try await town.apiToken()
        #expect(try await town.post("public/users/caller", api: api).status != 401)
        _ = try await self.registry(town).beginErasure(of: Neighbourhood.container)
        town.world.advance(by: .seconds(1))
        #expect(try await town.post("public/users/caller", api: api).status == 401)
    }

    @Test func `a container in development is known once it is used, and closed once deleted`()
        async throws
    {
        let town = Neighbourhood(isOpen: true)
        let container = Neighbourhood.container
        let api = String(repeating: "ab", count: 32)
        #expect(try await self.registry(town).all().isEmpty)
        _ = try await town.makeContainer()
        _ = try await town.post(
            "private/records/modify", Self.book, api: api, user: "stratus-user-ann")
        #expect(try await self.registry(town).all().map(\.container) == [container])
        _ = try await self.registry(town).beginErasure(of: container)
        town.authenticator.forget()
        #expect(
            try await town.post("private/zones/list", api: api, user: "stratus-user-ann").status
                == 401)
        let done = try await self.eraseAll(town, container)
        // The book, and the user's own record.
        #expect(done.users == 1 && done.records == 2)
        #expect(try await self.registry(town).all().map(\.descriptor.state) == [.erased])
        // Still shut: only whoever creates it again opens it.
        town.authenticator.forget()
        #expect(
            try await town.post("private/zones/list", api: api, user: "stratus-user-ann").status
                == 401)
    }

    @Test func `the list misses no container, wherever somebody was cut short`() async throws {
        let town = Neighbourhood()
        let registry = self.registry(town)
        #expect(try await registry.beginErasure(of: Neighbourhood.container) == nil)
        #expect(try await registry.finishErasure(of: Neighbourhood.container) == nil)
        #expect(try await registry.all().isEmpty)
        for container in [Neighbourhood.production, Neighbourhood.container] {
            #expect(try await registry.admit(container))
        }
        #expect(
            try await registry.all().map(\.container)
                == [Neighbourhood.container, Neighbourhood.production])
        guard case .exists = try await registry.create(Neighbourhood.container) else {
            Issue.record("created twice")
            return
        }
        // Deleting again is going on with it.
        let first = try await registry.beginErasure(of: Neighbourhood.container)
        town.world.advance(by: .seconds(5))
        #expect(try await registry.beginErasure(of: Neighbourhood.container) == first)
    }

    @Test func `a descriptor, format 1`() throws {
        let descriptor = ContainerDescriptor(
            state: .erasing, createdMilliseconds: 1_000, deletedMilliseconds: 2_000,
            generation: 300)
        let bytes = try #require(Hexadecimal.bytes("0102d00fa01fac02"))
        #expect(descriptor.encoded() == bytes)
        #expect(try ContainerDescriptor(decoding: bytes) == descriptor)
        #expect(throws: (any Error).self) {
            try ContainerDescriptor(decoding: [1, 4, 0, 0, 1])
        }
    }

    @Test func `a descriptor, format 4`() throws {
        var descriptor = ContainerDescriptor(
            state: .erasing, createdMilliseconds: 1_000, deletedMilliseconds: 2_000,
            generation: 300, zoneBucketCount: 16)
        let bytes = try #require(Hexadecimal.bytes("0402d00fa01fac020110"))
        #expect(descriptor.encoded() == bytes)
        #expect(try ContainerDescriptor(decoding: bytes) == descriptor)

        descriptor = ContainerDescriptor(
            state: .resetting, createdMilliseconds: 1_000, generation: 300, publicBucketCount: 8,
            zoneBucketCount: 4)
        var reset = ContainerDescriptor.Reset(begunMilliseconds: 2_000)
        reset.lastUser = "_a"
        descriptor.reset = reset
        let resetting = try #require(Hexadecimal.bytes("0404d00f00ac020804a01f00025f61"))
        #expect(descriptor.encoded() == resetting)
        #expect(try ContainerDescriptor(decoding: resetting) == descriptor)
        // No zone buckets, one, too many; no public ones; a reset without its place.
        for bad in [
            "0401d00f00ac020100", "0401d00f00ac020101", "0401d00f00ac020141",
            "0401d00f00ac020004", "0404d00f00ac020804", "0401d00f00ac0201",
        ] {
            #expect(throws: (any Error).self) {
                try ContainerDescriptor(decoding: try #require(Hexadecimal.bytes(bad)))
            }
        }
    }

    @Test func `the layout is kept, and told with each request's credentials`() async throws {
        let town = Neighbourhood(isOpen: true)
        let registry = town.authenticator.registry
        guard
            case .created(let first) = try await registry.create(
                Neighbourhood.container, buckets: 8, zoneBuckets: 4)
        else {
            Issue.record("not created")
            return
        }
        #expect(first.layout == ContainerLayout(publicBucketCount: 8, zoneBucketCount: 4))
        #expect(try await registry.layout(of: Neighbourhood.container) == first.layout)
        #expect(
            try await town.authenticator.layout(of: Neighbourhood.container) == first.layout)
        #expect(try await registry.layout(of: Neighbourhood.production) == ContainerLayout())
    }

    @Test func `a descriptor, format 3`() throws {
        var descriptor = ContainerDescriptor(
            state: .erasing, createdMilliseconds: 1_000, deletedMilliseconds: 2_000,
            generation: 300, publicBucketCount: 16)
        let bytes = try #require(Hexadecimal.bytes("0302d00fa01fac0210"))
        #expect(descriptor.encoded() == bytes)
        #expect(try ContainerDescriptor(decoding: bytes) == descriptor)

        descriptor = ContainerDescriptor(
            state: .resetting, createdMilliseconds: 1_000, generation: 300, publicBucketCount: 16)
        var reset = ContainerDescriptor.Reset(begunMilliseconds: 2_000)
        reset.isPublicErased = true
        reset.lastUser = "_a"
        descriptor.reset = reset
        let resetting = try #require(Hexadecimal.bytes("0304d00f00ac0210a01f01025f61"))
        #expect(descriptor.encoded() == resetting)
        #expect(try ContainerDescriptor(decoding: resetting) == descriptor)
        // No buckets, one, more than allowed; a reset without its place, a place without a reset.
        for bad in [
            "0301d00f00ac0200", "0301d00f00ac0201", "0301d00f00ac0241", "0304d00f00ac0210",
            "0301d00f00ac0210a01f01025f61", "0301d00f00ac02",
        ] {
            #expect(throws: (any Error).self) {
                try ContainerDescriptor(decoding: try #require(Hexadecimal.bytes(bad)))
            }
        }
    }
}
