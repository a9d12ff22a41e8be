import StratusGateway
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import StratusSimulation
import Testing

@testable import WireScenarios

/// what a container holds about a person comes out whole, and goes whole.
@Suite struct UserArchiveTests {
    @Test(arguments: [1, 8])
    func `an archive holds every record of a person, and an erasure leaves none`(buckets: Int)
        async throws
    {
        let town = Neighbourhood()
        _ = try await town.authenticator.registry.create(
            Neighbourhood.container, buckets: buckets)
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let bob = try await town.account("bob@example.org")
        let tokens = [ann: try await town.signIn(ann), bob: try await town.signIn(bob)]
        func save(_ who: AccountID, _ names: [String], zone: String?, database: String) async throws
        {
            var body: JSON = [
                "operations": .array(
                    names.map { name in
                        [
                            "operationType": "create",
                            "record": [
                                "recordName": .string(name), "recordType": "Book",
                                "fields": ["title": ["value": "planted"]],
                            ],
                        ]
                    })
            ]
            if let zone { body = body.setting("zoneID", ["zoneName": .string(zone)]) }
            let answer = try await town.post(
                "\(database)/records/modify", body, api: api, user: tokens[who])
            #expect(!answer.text.contains("serverErrorCode"), "\(answer)")
        }
        for who in [ann, bob] {
            _ = try await town.post(
                "private/zones/modify",
                [
                    "operations": [
                        ["operationType": "create", "zone": ["zoneID": ["zoneName": "Shelves"]]]
                    ]
                ], api: api, user: tokens[who])
            for part in 0..<3 {
                let names = (0..<150).map { "\(part)-\($0)" }
                try await save(who, names, zone: "Shelves", database: "private")
            }
            try await save(who, ["d1", "d2"], zone: nil, database: "private")
            let own = (0..<10).map { "public-\(who.description.prefix(6))-\($0)" }
            try await save(who, own, zone: nil, database: "public")
        }

        let archive = UserArchive(town.service)
        let lines = try await self.lines(
            try #require(try await archive.export(ann, in: Neighbourhood.container)))
        #expect(lines[0]["email"] == "ann@example.org")
        #expect(lines[0]["userRecordName"].text == town.recordName(ann))
        #expect(lines.count == 464)
        #expect(lines.dropFirst().allSatisfy { $0["record"]["recordName"] != nil })
        // The person's own record, and the ten.
        #expect(lines.count { $0["database"] == "public" } == 11)
        let owners = Set(
            lines.dropFirst().compactMap { $0["record"]["created"]["userRecordName"].text })
        #expect(owners == [town.recordName(ann)])

        let receipt = try #require(try await archive.erase(ann, settling: .zero))
        #expect(receipt.containerCount == 1 && receipt.zoneCount == 1)
        // 450 in the zone, two in the default zone, and the person's own in the public database.
        #expect(receipt.recordCount == 453)
        town.world.advance(by: .seconds(1))
        #expect(
            try await town.post("public/users/caller", api: api, user: tokens[ann]).status == 421)
        #expect(try await archive.export(ann, in: Neighbourhood.container) == nil)
        #expect(try await town.accounts.all().map(\.email) == ["bob@example.org"])
        // Bob has lost nothing.
        let bobs = try await self.lines(
            try #require(try await archive.export(bob, in: Neighbourhood.container)))
        #expect(bobs.count == 464)
        // The address is free, and whoever takes it is somebody else.
        let other = try await town.account("ann@example.org")
        #expect(other != ann && town.recordName(other) != town.recordName(ann))
        let fresh = try await town.signIn(other)
        let zones = try await town.post("private/zones/list", api: api, user: fresh)
        #expect(!zones.text.contains("Shelves"))
    }

    private func lines(_ body: any ResponseBody) async throws -> [JSON] {
        var all: Bytes = []
        while let piece = try await body.next() { all += piece }
        return try all.split(separator: 0x0A).map { try JSON(parsing: Array($0)) }
    }
}
