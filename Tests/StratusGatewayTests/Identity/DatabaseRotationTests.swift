import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
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

        /// - Parameter pause: what happens where it would wait.
        func rotation(pause: @escaping @Sendable () async throws -> Void = {}) throws
            -> DatabaseRotation
        {
            try #require(
                DatabaseRotation(
                    self.town.service.directory, of: Neighbourhood.container, files: nil,
                    retries: Retries { _ in try await pause() }))
        }

        /// Runs it to its end.
        ///
        /// - Returns: what failed.
        func finish(_ rotation: inout DatabaseRotation) async throws -> [FailingDatabase] {
            var failing: [FailingDatabase] = []
            while try await rotation.next() { failing += rotation.failing }
            return failing + rotation.failing
        }

        /// Another person with one secret.
        func addPerson(_ name: String) async throws -> DatabaseID {
            let id = try await self.town.account("\(name)@example.org")
            let token = try await self.town.signIn(id)
            let saved = try await self.town.post(
                "private/records/modify",
                [
                    "operations": [
                        Operation.create("x", ["secret": DatabaseRotationTests.secret("y")])
                    ]
                ],
                api: self.api, user: token)
            #expect(saved.json?["records"][0]["serverErrorCode"] == nil, "\(saved)")
            return DatabaseID(
                container: Neighbourhood.container, scope: .private,
                owner: self.town.recordName(id))
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
        var rotation = try house.rotation()
        #expect(try await house.finish(&rotation).isEmpty)
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
        var again = try house.rotation()
        #expect(try await house.finish(&again).isEmpty)
        #expect(again.progress.recordCount == 480)
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
        var rotation = try house.rotation()
        let failing = try await house.finish(&rotation)
        house.town.router.afterRead.withLock { $0 = nil }
        #expect(saved.withLock { $0 } > 4)
        #expect(failing.isEmpty, "\(failing)")
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
        _ = try await house.addPerson("bob")
        house.town.router.away.withLock { $0 = [.database(house.database.home)] }
        var rotation = try house.rotation()
        let failing = try await house.finish(&rotation)
        house.town.router.away.withLock { $0 = [] }
        #expect(failing.map(\.owner) == [house.database.home.owner])
        #expect(rotation.progress.failingCount == 1)
        #expect(rotation.progress.recordCount == 1)
        #expect(try await house.keys.key(1, of: house.database.home) != nil)
        #expect(try await house.read(nil, ["a"])[0]["fields"]["secret"] == Self.secret("x"))
    }

    @Test func `a partition whose leader changes fails no database`() async throws {
        let house = try await House()
        try await house.save(nil, [Operation.create("a", ["secret": Self.secret("x")])])
        // Away at every other step, once for the list of users too, and back after two waits.
        let homes: Set<ShardKey> = [
            .database(house.database.home), .container(Neighbourhood.container),
        ]
        let waits = Mutex(0)
        let router = house.town.router
        router.away.withLock { $0 = homes }
        var rotation = try house.rotation {
            let number = waits.withLock { count -> Int in
                count += 1
                return count
            }
            if number % 2 == 0 { router.away.withLock { $0 = [] } }
        }
        var failing: [FailingDatabase] = []
        while try await rotation.next() {
            failing += rotation.failing
            router.away.withLock { $0 = homes }
        }
        router.away.withLock { $0 = [] }
        #expect(failing.isEmpty, "\(failing)")
        #expect(rotation.progress.recordCount == 1)
        #expect(try await house.keys.key(1, of: house.database.home) == nil)
    }

    @Test func `a record that changes all the time is sealed anew in the end`() async throws {
        let house = try await House()
        try await house.save(nil, [Operation.create("a", ["secret": Self.secret("x")])])
        let home = ShardKey.database(house.database.home)
        let saved = Mutex(0)
        house.town.router.afterRead.withLock {
            $0 = { key in
                guard key == home else { return }
                let number = saved.withLock { count -> Int in
                    count += 1
                    return count
                }
                guard number <= 150 else { return }
                try? await house.save(
                    nil,
                    [
                        Operation.of(
                            "forceUpdate", "a", fields: ["title": ["value": "t\(number)"]])
                    ])
            }
        }
        var rotation = try house.rotation()
        let failing = try await house.finish(&rotation)
        house.town.router.afterRead.withLock { $0 = nil }
        #expect(failing.isEmpty, "\(failing)")
        #expect(try await house.keys.key(1, of: house.database.home) == nil)
        #expect(try await house.read(nil, ["a"])[0]["fields"]["secret"] == Self.secret("x"))
    }

    @Test func `a rotation that was interrupted goes on with the keys that it made`() async throws {
        var (stops, stepCount) = (1, 2)
        // All but the last step, after which it is over.
        while stops < stepCount {
            let house = try await House()
            try await house.save(nil, [Operation.create("a", ["secret": Self.secret("x")])])
            var databases = [house.database.home]
            for name in ["bob", "cid", "dan"] { databases.append(try await house.addPerson(name)) }
            if stops == 1 {
                var whole = try house.rotation()
                stepCount = 0
                while try await whole.next() { stepCount += 1 }
                #expect(stepCount > 10)
            }
            let version: UInt32 = stops == 1 ? 3 : 2
            var first = try house.rotation()
            for _ in 0..<stops { #expect(try await first.next()) }
            var second = try house.rotation()
            #expect(try await house.finish(&second).isEmpty)
            for database in databases {
                #expect(
                    try await house.keys.newestVersion(of: database) == version, "stop \(stops)")
                #expect(
                    try await house.keys.key(version - 1, of: database) == nil, "stop \(stops)")
            }
            #expect(try await house.read(nil, ["a"])[0]["fields"]["secret"] == Self.secret("x"))
            // The first run makes no key any more.
            while (try? await first.next()) == true {}
            for database in databases {
                #expect(
                    try await house.keys.newestVersion(of: database) == version, "stop \(stops)")
            }
            stops += 1
        }
    }

    @Test func `a database that was erased gets no key`() async throws {
        let house = try await House()
        try await house.save(nil, [Operation.create("a", ["secret": Self.secret("x")])])
        _ = try await house.town.router.submit(
            RecordCommand.eraseDatabase(EraseDatabase(database: house.database.home)).enveloped(
                container: Neighbourhood.container, identity: house.town.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0,
                principal: Principal(kind: .system)),
            to: .database(house.database.home), deadline: house.town.world.now)
        #expect(try await house.keys.newestVersion(of: house.database.home) == nil)
        var rotation = try house.rotation()
        #expect(try await house.finish(&rotation).isEmpty)
        #expect(rotation.progress.databaseCount == 0)
        #expect(try await house.keys.key(2, of: house.database.home) == nil)
    }

    // MARK: Archives

    private func archive(_ house: House) async throws -> String {
        let accounts = house.town.accounts
        let address = try #require(EmailAddress("ann@example.org"))
        let account = try #require(try await accounts.account(of: address))
        let body = try #require(
            try await UserArchive(house.town.service.directory).export(
                account, in: Neighbourhood.container))
        var text = ""
        while let piece = try await body.next() { text += String(decoding: piece, as: UTF8.self) }
        return text
    }

    @Test func `an archive has what a rotation seals anew while it is written`() async throws {
        let house = try await House()
        try await house.makeZones(["One"])
        try await house.save("One", [Operation.create("a", ["secret": Self.secret("planted")])])
        // A whole rotation between the read of a page and that of its key.
        let home = ShardKey.database(house.database.home)
        let router = house.town.router
        let count = Mutex(0)
        router.afterRead.withLock {
            $0 = { key in
                let isNow = count.withLock { count in
                    if key == home { count += 1 }
                    return key == home && count % 5 == 1
                }
                guard isNow else { return }
                let hook = router.afterRead.withLock { hook in
                    defer { hook = nil }
                    return hook
                }
                if var rotation = try? house.rotation() { _ = try? await house.finish(&rotation) }
                router.afterRead.withLock { $0 = hook }
            }
        }
        let text = try await self.archive(house)
        router.afterRead.withLock { $0 = nil }
        #expect(try #require(try await house.keys.newestVersion(of: house.database.home)) > 2)
        #expect(text.contains("planted"), "\(text)")
        #expect(!text.contains("unopened"))
    }

    @Test func `an archive of which a key is gone for good ends with an error`() async throws {
        let house = try await House()
        try await house.makeZones(["One"])
        try await house.save("One", [Operation.create("a", ["secret": Self.secret("planted")])])
        _ = try await house.keys.rotate(house.database.home, to: 2)
        _ = try await house.town.router.submit(
            RetireKeys(house.database.home) { $0.below = 2 }.enveloped(
                container: Neighbourhood.container, identity: house.town.world.drawIdentity(),
                deadlineMilliseconds: .max, principal: Principal(kind: .system)),
            to: .database(house.database.home), deadline: house.town.world.now)
        await #expect(throws: RouteError.refused("the keys of encrypted fields are gone")) {
            try await self.archive(house)
        }
    }
}
