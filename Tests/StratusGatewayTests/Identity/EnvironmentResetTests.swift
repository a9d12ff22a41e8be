import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusQuery
import StratusRecords
import Testing

@testable import WireScenarios

/// A development environment that begins anew.
@Suite struct EnvironmentResetTests {
    private let container = Neighbourhood.container

    private func registry(_ town: Neighbourhood) -> ContainerRegistry {
        town.authenticator.registry
    }

    private func save(
        _ town: Neighbourhood, _ path: String, _ field: String, _ value: JSON,
        _ who: (String, String)
    ) async throws -> JSON {
        let answer = try await town.post(
            path,
            [
                "operations": [
                    [
                        "operationType": "forceUpdate",
                        "record": [
                            "recordName": "planted", "recordType": "Book",
                            "fields": .object([.init(key: field, value: ["value": value])]),
                        ],
                    ]
                ]
            ], api: who.0, user: who.1)
        return try #require(answer.json["records"][0], "\(answer)")
    }

    private func schema(_ town: Neighbourhood, _ container: ContainerReference) async throws
        -> Schema
    {
        let answer = try await town.router.read(
            RecordQuery(principal: Principal(kind: .system), .schema(container)).enveloped(),
            at: .container(container), deadline: town.world.now)
        guard case .schema(let schema?) = try RecordAnswer(decoding: answer.body) else {
            throw Problem(text: "no schema")
        }
        return schema
    }

    /// Pieces until it is done, by a new caller each time: nobody needs to remember anything.
    private func resetAll(_ town: Neighbourhood) async throws -> (
        pieces: Int, records: UInt64, users: Int, version: UInt64
    ) {
        var records: UInt64 = 0
        var users = 0
        for piece in 1...1_000 {
            let progress = try #require(
                try await EnvironmentReset(town.service.directory, settling: .zero).step(
                    self.container))
            records += progress.recordCount
            users += progress.userCount
            if progress.isDone { return (piece, records, users, progress.version) }
        }
        throw Problem(text: "a reset does not end")
    }

    @Test(arguments: [1, 8])
    func `a reset leaves production's schema, no record, and who may get in`(buckets: Int)
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        try await town.install(
            "DEFINE SCHEMA RECORD TYPE Book (\"___recordID\" REFERENCE QUERYABLE, "
                + "title STRING QUERYABLE, GRANT READ TO \"_world\", GRANT CREATE TO \"_icloud\", GRANT WRITE TO \"_creator\");",
            in: Neighbourhood.production)
        _ = try await self.registry(town).create(self.container, buckets: buckets)
        let api = try await town.apiToken()
        var tokens: [String] = []
        var people: [AccountID] = []
        for number in 0..<25 {
            people.append(try await town.account("p\(number)@example.org"))
            let token = try await town.signIn(people[number])
            tokens.append(token)
            let saved = try await self.save(
                town, "private/records/modify", "pages", 7, (api, token))
            #expect(saved["serverErrorCode"] == nil, "\(saved)")
        }
        _ = try await self.save(town, "public/records/modify", "pages", 7, (api, tokens[0]))
        let production = try await town.signIn(people[0], in: Neighbourhood.production)
        let elsewhere = try await town.apiToken(in: Neighbourhood.production)
        _ = try await town.post(
            "private/records/modify",
            ["operations": [Operation.create("theirs", ["title": ["value": "kept"]])]],
            api: elsewhere, user: production, in: Neighbourhood.production)

        let changes = try await EnvironmentReset(town.service.directory).changes(of: self.container)
        #expect(changes.contains { $0.description.hasPrefix("- Book.pages") }, "\(changes)")
        #expect(try await EnvironmentReset(town.service.directory).step(self.container) == nil)
        #expect(try await self.registry(town).beginReset(of: self.container)?.state == .resetting)
        town.world.advance(by: .seconds(1))
        for user in [nil, tokens[3]] {
            let answer = try await town.post("private/zones/list", api: api, user: user)
            #expect(answer.status == 503 && answer.json["retryAfter"] == 5, "\(answer)")
            #expect(answer.json["serverErrorCode"] == "TRY_AGAIN_LATER")
        }
        #expect(
            try await town.post(
                "private/zones/list", api: elsewhere, user: production,
                in: Neighbourhood.production
            ).status == 200)
        #expect(try await self.registry(town).admit(self.container) == false)

        let done = try await self.resetAll(town)
        // The public database, twenty users a piece, the schema.
        #expect(done.pieces == 4 && done.users == 25)
        // One record each, one of the public database, and 25 users' own.
        #expect(done.records == 51)
        #expect(done.version == 1_000_000_001)
        let schema = try await self.schema(town, self.container)
        #expect(schema.version == done.version)
        #expect(schema.types == (try await self.schema(town, Neighbourhood.production)).types)
        town.authenticator.forget()
        // The gateway believes a schema for a second.
        town.world.advance(by: .seconds(2))

        for (token, scope) in [
            (tokens[0], "public"), (tokens[0], "private"), (tokens[24], "private"),
        ] {
            let found = try await town.post(
                "\(scope)/records/lookup", ["records": [["recordName": "planted"]]], api: api,
                user: token)
            #expect(found.json["records"][0]["serverErrorCode"] == "NOT_FOUND", "\(found)")
        }
        let own = try await town.post(
            "public/records/lookup",
            ["records": [["recordName": .string(town.recordName(people[7]))]]], api: api,
            user: tokens[7])
        #expect(own.json["records"][0]["recordType"] == "Users", "\(own)")
        let kept = try await town.post(
            "private/records/lookup", ["records": [["recordName": "theirs"]]], api: elsewhere,
            user: production, in: Neighbourhood.production)
        #expect(kept.text.contains("kept"), "\(kept)")
        let gone = try await self.save(
            town, "private/records/modify", "pages", 7, (api, tokens[0]))
        #expect(gone["serverErrorCode"] == "BAD_REQUEST", "\(gone)")
    }

    @Test func `a field that a reset took comes back with another type, wherever it was before`()
        async throws
    {
        let town = Neighbourhood(isOpen: true)
        let api = String(repeating: "ab", count: 32)
        _ = try await town.makeContainer()
        let people = (0..<8).map { (api, "stratus-user-\($0)") }
        for person in people {
            let saved = try await self.save(town, "private/records/modify", "pages", 7, person)
            #expect(saved["serverErrorCode"] == nil, "\(saved)")
        }
        // What an import took away may come back with another type: each partition clears the old
        // values when it hears of that.
        try await town.install(
            "DEFINE SCHEMA RECORD TYPE Book (\"___recordID\" REFERENCE QUERYABLE, title STRING);",
            in: self.container, version: 2)
        let otherwise =
            "DEFINE SCHEMA RECORD TYPE Book (\"___recordID\" REFERENCE QUERYABLE, "
            + "pages STRING QUERYABLE);"
        try await town.install(otherwise, in: self.container, version: 3)
        #expect(try await self.schema(town, self.container).version == 3)
        _ = try await self.registry(town).beginReset(of: self.container)
        let done = try await self.resetAll(town)
        // Everybody's own record in the public database, too.
        #expect(done.users == 8 && done.records == 16)
        town.authenticator.forget()
        // After a reset nothing is left that could hold it, in no partition.
        try await town.install(otherwise, in: self.container, version: done.version + 1)
        town.world.advance(by: .seconds(2))
        for person in people {
            let saved = try await self.save(town, "private/records/modify", "pages", "x", person)
            #expect(saved["fields"]["pages"]["value"] == "x", "\(saved)")
            let found = try await town.post(
                "private/records/query",
                [
                    "query": [
                        "recordType": "Book",
                        "filterBy": [
                            "fieldName": "pages", "comparator": "EQUALS",
                            "fieldValue": ["value": "x"],
                        ],
                    ]
                ], api: person.0, user: person.1)
            #expect(found.json["records"].elements.count == 1, "\(found)")
        }
    }

    @Test func `a reset waits for what was let in before, and goes on where it stands`()
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        _ = try await self.registry(town).create(self.container)
        let first = try #require(try await self.registry(town).beginReset(of: self.container))
        let reset = EnvironmentReset(town.service.directory)
        #expect(try #require(try await reset.step(self.container)).waitsMilliseconds > 30_000)
        town.world.advance(by: .seconds(31))
        #expect(try #require(try await reset.step(self.container)).waitsMilliseconds > 0)
        #expect(try await self.registry(town).beginReset(of: self.container) == first)
        town.world.advance(by: .seconds(2))
        #expect(try #require(try await reset.step(self.container)).waitsMilliseconds == 0)
        let noted = try #require(
            try await self.registry(town).descriptor(of: self.container)?.reset)
        #expect(noted.isPublicErased && noted.lastUser.isEmpty)
        // Somebody who is slow does not take back what is noted.
        try await self.registry(town).noteReset(
            .init(begunMilliseconds: noted.begunMilliseconds), of: self.container)
        #expect(try await self.registry(town).descriptor(of: self.container)?.reset == noted)
        #expect(try #require(try await reset.step(self.container)).isDone)
        #expect(try await reset.step(self.container) == nil)
        #expect(try await self.registry(town).finishReset(of: self.container) == nil)
        #expect(
            try await self.registry(town).descriptor(of: self.container)?.state == .active)
    }

    @Test func `a container being reset can be deleted, and one being deleted is not reset`()
        async throws
    {
        let town = Neighbourhood()
        #expect(try await self.registry(town).beginReset(of: self.container) == nil)
        _ = try await self.registry(town).create(self.container)
        _ = try await self.registry(town).beginReset(of: self.container)
        let deleted = try #require(
            try await self.registry(town).beginErasure(of: self.container))
        #expect(deleted.state == .erasing && deleted.reset == nil)
        #expect(try await self.registry(town).beginReset(of: self.container) == nil)
    }

    @Test func `a descriptor, format 2`() throws {
        var descriptor = ContainerDescriptor(
            state: .resetting, createdMilliseconds: 1_000, generation: 300)
        var reset = ContainerDescriptor.Reset(begunMilliseconds: 2_000)
        reset.isPublicErased = true
        reset.lastUser = "_a"
        descriptor.reset = reset
        let bytes = try #require(Hexadecimal.bytes("0204d00f00ac02a01f01025f61"))
        #expect(descriptor.encoded() == bytes)
        #expect(try ContainerDescriptor(decoding: bytes) == descriptor)
        for bad in ["0201d00f00ac02a01f01025f61", "0104d00f00ac02", "0204d00f00ac02a01f0102"] {
            #expect(throws: (any Error).self) {
                try ContainerDescriptor(decoding: try #require(Hexadecimal.bytes(bad)))
            }
        }
    }
}
