import StratusCluster
import StratusContainers
import StratusDoubles
import StratusIdentity
import StratusModel
import StratusRecords
import Synchronization
import Testing

@testable import StratusGateway
@testable import WireScenarios

/// A gateway's operations on a whole public database that lies in buckets.
@Suite struct BucketGatewayTests {
    private static let count = 4
    private static let database = PublicDatabase(
        of: Neighbourhood.container, bucketCount: Self.count)
    private static let api = String(repeating: "ab", count: 32)

    private func town(_ limits: Limits = Limits()) async throws -> Neighbourhood {
        let town = Neighbourhood(isOpen: true, requests: limits)
        _ = try await town.authenticator.registry.create(
            Neighbourhood.container, buckets: Self.count)
        _ = try await town.makeContainer()
        return town
    }

    private func modify(_ town: Neighbourhood, _ operations: [JSON]) async throws -> [JSON] {
        let answer = try await town.post(
            "public/records/modify", ["operations": .array(operations)], api: Self.api,
            user: "stratus-user-ann")
        try #require(answer.status == 200, "\(answer)")
        return answer.json["records"].elements
    }

    private func query(_ town: Neighbourhood, _ query: JSON, limit: JSON = 200) async throws
        -> WireAnswer
    {
        try await town.post(
            "public/records/query", ["query": query, "resultsLimit": limit], api: Self.api,
            user: "stratus-user-ann")
    }

    // MARK: Indexes

    private static let plain = """
        DEFINE SCHEMA RECORD TYPE Note ("___recordID" REFERENCE QUERYABLE, text STRING,
            GRANT READ TO "_world", GRANT CREATE TO "_icloud", GRANT WRITE TO "_creator");
        """

    @Test func `no bucket answers by a new index until all have it`() async throws {
        let town = try await self.town()
        try await town.install(Self.plain, version: 2)
        town.world.advance(by: .seconds(2))
        let names = (0..<40).map { "n\($0)" }
        let saved = try await self.modify(
            town,
            names.map {
                [
                    "operationType": "create",
                    "record": [
                        "recordName": .string($0), "recordType": "Note",
                        "fields": ["text": ["value": "t"]],
                    ],
                ]
            })
        #expect(saved.allSatisfy { $0["serverErrorCode"] == nil }, "\(saved)")
        town.router.runsJobs.withLock { $0 = false }
        try await town.install(
            Self.plain.replacing("text STRING", with: "text STRING QUERYABLE SORTABLE"), version: 3)
        town.world.advance(by: .seconds(2))

        let filter: JSON = [
            "fieldName": "text", "comparator": "EQUALS", "fieldValue": ["value": "t"],
        ]
        let unsorted: JSON = ["recordType": "Note", "filterBy": filter]
        let sorted = unsorted.setting("sortBy", [["fieldName": "text"]])
        for (number, part) in ([nil] + Self.database.parts.map(Optional.some)).enumerated() {
            if let part { try town.router.runJobs(of: part) }
            // A short page could be had from the first bucket alone.
            for (question, limit) in [(unsorted, 1), (unsorted, 200), (sorted, 200)] {
                let answer = try await self.query(town, question, limit: .number("\(limit)"))
                if number < Self.count {
                    // Nobody has saved since, and yet every bucket knows what is asked of it.
                    #expect(answer.status == 400, "\(number): \(answer)")
                    #expect(answer.text.contains("is not marked"), "\(answer)")
                } else if limit == 1 {
                    #expect(answer.json["records"].elements.count == 1, "\(answer)")
                } else {
                    #expect(
                        Set(answer.json["records"].elements.compactMap { $0["recordName"].text })
                            == Set(names), "\(answer)")
                }
            }
        }
    }

    // MARK: Grants

    @Test(arguments: [1, 4])
    func `a grant that is taken away is gone a second later, though nobody saves`(buckets: Int)
        async throws
    {
        let town = Neighbourhood(isOpen: true)
        _ = try await town.authenticator.registry.create(Neighbourhood.container, buckets: buckets)
        _ = try await town.makeContainer()
        let names = (0..<12).map { "a\($0)" }
        _ = try await self.modify(town, names.map { Self.book("create", $0, 1) })
        let lookup: JSON = ["records": .array(names.map { ["recordName": .string($0)] })]
        func found() async throws -> Int {
            let answer = try await town.post("public/records/lookup", lookup, api: Self.api)
            try #require(answer.status == 200, "\(answer)")
            return answer.json["records"].elements.count { $0["recordType"] == "Book" }
        }
        #expect(try await found() == 12)
        try await town.install(
            Library.schema.replacing(
                "GRANT READ TO \"_world\"", with: "GRANT READ TO \"_creator\""), version: 2)
        town.world.advance(by: .seconds(1))
        #expect(try await found() == 0)
        let query = try await town.post(
            "public/records/query", ["query": ["recordType": "Book"]], api: Self.api,
            user: "stratus-user-bob")
        #expect(query.json["records"].elements.isEmpty, "\(query)")
        // Their owner can still read them, for a while even if the schema's home cannot be asked.
        for isAway in [false, true] {
            if isAway {
                _ = town.router.away.withLock { $0.insert(.container(Neighbourhood.container)) }
            }
            town.world.advance(by: .seconds(1))
            let own = try await town.post(
                "public/records/lookup", lookup, api: Self.api, user: "stratus-user-ann")
            #expect(
                own.json["records"].elements.count { $0["recordType"] == "Book" } == 12, "\(own)")
        }
    }

    // MARK: Quotas

    private static func book(_ kind: String, _ name: String, _ length: Int) -> JSON {
        [
            "operationType": .string(kind),
            "record": [
                "recordName": .string(name), "recordType": "Book",
                "fields": ["title": ["value": .string(String(repeating: "x", count: length))]],
            ],
        ]
    }

    private func held(_ town: Neighbourhood) async throws -> UInt64 {
        try await ContainerUsage(town.service.directory).held(by: Self.database).use.size
    }

    @Test func `a quota is passed by what is saved between two looks, and no more`() async throws {
        var limits = Limits()
        limits.publicDatabaseSizeMax = ByteCount(20_000)
        let town = try await self.town(limits)
        var refusals: [JSON] = []
        for number in 0..<100 {
            // Saved slowly: every save looks anew.
            town.world.advance(by: .seconds(1))
            let entry = try await self.modify(
                town, [Self.book("create", "b\(number)", 400)])[0]
            if entry["serverErrorCode"] != nil { refusals.append(entry) }
        }
        #expect(
            refusals.allSatisfy {
                $0["serverErrorCode"] == "QUOTA_EXCEEDED"
                    && $0["reason"] == "the database would exceed its quota of 20000 bytes"
            })
        let full = try await self.held(town)
        // Not a quarter of it in the fullest bucket, and not four times as much.
        #expect(full <= 20_000 && full > 19_000, "\(full)")
        // What makes it no larger goes on; deleting in one bucket makes room in another.
        let same = try await self.modify(town, [Self.book("forceUpdate", "b0", 400)])
        #expect(same[0]["serverErrorCode"] == nil, "\(same)")
        let gone = try await self.modify(
            town, (0..<10).map { Operation.of("forceDelete", "b\($0)") })
        #expect(gone.allSatisfy { $0["deleted"] == true })
        town.world.advance(by: .seconds(1))
        let again = try await self.modify(town, [Self.book("create", "new", 2_000)])
        #expect(again[0]["serverErrorCode"] == nil, "\(again)")

        // Concurrent saves know nothing of each other: they pass the quota by that much, and no
        // further.
        let many = try await self.modify(
            town, (0..<40).map { Self.book("create", "many\($0)", 1_000) })
        #expect(many.contains { $0["serverErrorCode"] == nil })
        town.world.advance(by: .seconds(1))
        let late = try await self.modify(
            town, (0..<40).map { Self.book("create", "late\($0)", 1_000) })
        #expect(late.allSatisfy { $0["serverErrorCode"] == "QUOTA_EXCEEDED" }, "\(late)")
    }

    @Test func `a bucket that cannot be reached holds up no quota`() async throws {
        var limits = Limits()
        limits.publicDatabaseSizeMax = ByteCount(5_000)
        let town = try await self.town(limits)
        _ = try await self.modify(town, (0..<8).map { Self.book("create", "b\($0)", 100) })
        town.world.advance(by: .seconds(1))
        let lost = Self.database.part(of: "b0")
        _ = town.router.away.withLock { $0.insert(.database(lost)) }
        let names = (0..<12).map { "c\($0)" }
        let saved = try await self.modify(town, names.map { Self.book("create", $0, 10) })
        for (name, entry) in zip(names, saved) {
            #expect(
                entry["serverErrorCode"]
                    == (Self.database.part(of: name) == lost ? "TRY_AGAIN_LATER" : nil),
                "\(entry)")
        }
    }

    @Test func `what a bucket may come to`() {
        #expect(BucketUses.bounds(of: [10, 20, 30], quota: 100) == [50, 60, 70])
        #expect(BucketUses.bounds(of: [10, 20, 30], quota: 60) == [10, 20, 30])
        // Beyond it already: each may only shrink. Nothing at all would be no quota.
        #expect(BucketUses.bounds(of: [10, 20, 30], quota: 45) == [1, 5, 15])
        #expect(BucketUses.bounds(of: [0, 50], quota: 45) == [1, 45])

        let uses = BucketUses(countMax: 2)
        let database = SpreadParts(Self.database.parts[0].whole, bucketCount: Self.count)
        var now = MonotonicTime(nanoseconds: 0)
        #expect(uses.sizes(of: database, at: now) == nil)
        #expect(uses.keep([1, nil, 3, 4], of: database, at: now) == [1, 0, 3, 4])
        #expect(uses.sizes(of: database, at: now) == [1, 0, 3, 4])
        now = now + .seconds(1)
        // One looks, the others go by what was seen before, but not for ever.
        #expect(uses.sizes(of: database, at: now) == nil)
        #expect(uses.sizes(of: database, at: now) == [1, 0, 3, 4])
        now = now + BucketUses.patience
        #expect(uses.sizes(of: database, at: now) == nil)
        #expect(uses.keep([nil, 2, nil, 5], of: database, at: now) == [1, 2, 3, 5])
    }
}
