import StratusCluster
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRecords
import StratusSimulation
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
        let erasure = ContainerErasure(town.service, settling: .zero)
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
        #expect(try await ContainerErasure(town.service, settling: .zero).step(container) == nil)
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

    @Test func `a piece waits for what was let in before`() async throws {
        let town = Neighbourhood()
        let container = Neighbourhood.container
        _ = try await self.registry(town).create(container)
        _ = try await self.registry(town).beginErasure(of: container)
        let erasure = ContainerErasure(town.service)
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
        #expect(done.users == 1 && done.records == 1)
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
}
