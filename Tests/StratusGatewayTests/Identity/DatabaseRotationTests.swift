import StratusCluster
import StratusContainers
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRecords
import Synchronization
import Testing

@testable import WireScenarios

/// Newer keys for the databases of a container, while clients go on.
@Suite struct DatabaseRotationTests {
    private static func secret(_ text: String) -> JSON {
        ["value": .string(text), "type": "STRING", "isEncrypted": true]
    }

    private struct House {
        let town = Neighbourhood()
        let api: String
        let token: String
        let database: PrivateDatabase
        let keys: DatabaseKeys

        init(zoneBuckets: Int = 1) async throws {
            _ = try await self.town.authenticator.registry.create(
                Neighbourhood.container, zoneBuckets: zoneBuckets)
            _ = try await self.town.makeContainer()
            self.api = try await self.town.apiToken()
            let ann = try await self.town.account("ann@example.org")
            self.token = try await self.town.signIn(ann)
            self.database = PrivateDatabase(
                of: self.town.recordName(ann), in: Neighbourhood.container,
                bucketCount: zoneBuckets)
            self.keys = InProcess.databaseKeys(self.town.router, self.town.world)
        }

        func post(_ operation: String, _ body: JSON) async throws -> JSON {
            let answer = try await self.town.post(
                "private/" + operation, body, api: self.api, user: self.token)
            return try #require(answer.json, "\(answer)")
        }

        func makeZones(_ names: [String]) async throws {
            let made = try await self.post(
                "zones/modify",
                [
                    "operations": .array(
                        names.map {
                            [
                                "operationType": "create",
                                "zone": ["zoneID": ["zoneName": .string($0)]],
                            ]
                        })
                ])
            #expect(made["zones"].elements.count == names.count, "\(made)")
        }

        /// Of records of one zone; nil: of the default zone.
        func zoneMember(_ zone: String?) -> JSON {
            zone.map { ["zoneID": ["zoneName": .string($0)]] } ?? [:]
        }

        func save(_ zone: String?, _ operations: [JSON]) async throws {
            let answer = try await self.post(
                "records/modify",
                self.zoneMember(zone).setting("operations", .array(operations)))
            for record in answer["records"].elements {
                #expect(record["serverErrorCode"] == nil, "\(record)")
            }
        }

        func read(_ zone: String?, _ names: [String]) async throws -> [JSON] {
            try await self.post(
                "records/lookup",
                self.zoneMember(zone).setting(
                    "records", .array(names.map { ["recordName": .string($0)] })))["records"]
                .elements
        }

        func rotation() async throws -> DatabaseRotation {
            try #require(
                try await DatabaseRotation(
                    self.town.service.directory, of: Neighbourhood.container))
        }
    }

    @Test(arguments: [1, 4])
    func `every value is sealed anew, nothing else changes, and the old keys are gone`(
        zoneBuckets: Int
    ) async throws {
        let house = try await House(zoneBuckets: zoneBuckets)
        let zones = ["One", "Two", "Three"]
        try await house.makeZones(zones)
        let names = (0..<120).map { "r\($0)" }
        let places: [String?] = [nil] + zones
        for zone in places {
            try await house.save(
                zone,
                names.map { name in
                    Operation.create(name, ["secret": Self.secret("hush \(name)")])
                })
        }
        var before: [[JSON]] = []
        for zone in places { before.append(try await house.read(zone, names)) }
        var tokens: [String] = []
        for zone in zones {
            let feed = try await house.post(
                "changes/zone", ["zones": [["zoneID": ["zoneName": .string(zone)]]]])
            tokens.append(try #require(feed["zones"][0]["syncToken"].text, "\(feed)"))
        }
        var rotation = try await house.rotation()
        while try await rotation.next() {}
        #expect(rotation.progress.failing.isEmpty)
        #expect(rotation.progress.recordCount == 480)
        #expect(rotation.progress.olderKeyCount == 0)
        for (zone, old) in zip(places, before) {
            #expect(try await house.read(zone, names) == old)
        }
        for (zone, token) in zip(zones, tokens) {
            let feed = try await house.post(
                "changes/zone",
                [
                    "zones": [
                        [
                            "zoneID": ["zoneName": .string(zone)],
                            "syncToken": .string(token),
                        ]
                    ]
                ])
            #expect(feed["zones"][0]["records"].elements.isEmpty, "\(feed)")
        }
        var rotated = 0
        for part in house.database.parts {
            #expect(try await house.keys.key(1, of: part) == nil)
            if try await house.keys.key(2, of: part) != nil { rotated += 1 }
        }
        #expect(rotated == rotation.progress.databaseCount && rotated > 0)
        // Once more: there is a third key then.
        var again = try await house.rotation()
        while try await again.next() {}
        #expect(again.progress.recordCount == 480 && again.progress.failing.isEmpty)
        #expect(try await house.read("Two", names) == before[2])
    }

    @Test func `saves go on between any two pieces, and none is lost`() async throws {
        let house = try await House()
        try await house.makeZones(["One"])
        let names = (0..<20).map { "r\($0)" }
        try await house.save(
            "One", names.map { Operation.create($0, ["secret": Self.secret("old")]) })
        // A client saves other fields of each record whenever a piece has been read.
        let saved = Mutex(0)
        let home = ShardKey.database(house.database.home)
        house.town.router.afterRead.withLock {
            $0 = { key in
                guard key == home else { return }
                let number = saved.withLock { count -> Int? in
                    count += 1
                    return count <= 40 && count % 4 == 0 ? count : nil
                }
                guard let number else { return }
                try? await house.save(
                    "One",
                    [
                        Operation.of(
                            "forceUpdate", names[number % 20],
                            fields: ["title": ["value": .string("t\(number)")]])
                    ])
            }
        }
        var rotation = try await house.rotation()
        while try await rotation.next() {}
        house.town.router.afterRead.withLock { $0 = nil }
        #expect(saved.withLock { $0 } > 4)
        #expect(rotation.progress.failing.isEmpty, "\(rotation.progress)")
        #expect(rotation.progress.recordCount >= 20)
        for record in try await house.read("One", names) {
            #expect(record["fields"]["secret"]["value"] == "old", "\(record)")
        }
        #expect(try await house.keys.key(1, of: house.database.home) == nil)
    }

    @Test func `a database that cannot be rotated keeps its old keys, and the others go on`()
        async throws
    {
        let house = try await House()
        try await house.save(nil, [Operation.create("a", ["secret": Self.secret("x")])])
        let bob = try await house.town.account("bob@example.org")
        let token = try await house.town.signIn(bob)
        let saved = try await house.town.post(
            "private/records/modify",
            ["operations": [Operation.create("b", ["secret": Self.secret("y")])]],
            api: house.api, user: token)
        #expect(saved.json?["records"][0]["fields"]["secret"] == Self.secret("y"), "\(saved)")
        house.town.router.away.withLock { $0 = [.database(house.database.home)] }
        var rotation = try await house.rotation()
        while try await rotation.next() {}
        house.town.router.away.withLock { $0 = [] }
        #expect(rotation.progress.failing.map(\.owner) == [house.database.home.owner])
        #expect(rotation.progress.recordCount == 1)
        #expect(try await house.keys.key(1, of: house.database.home) != nil)
        #expect(try await house.read(nil, ["a"])[0]["fields"]["secret"] == Self.secret("x"))
    }
}
