import StratusCluster
import StratusContainers
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusRecords
import StratusRows
import StratusRuntime
import StratusSealing
import Synchronization
import Testing

@testable import WireScenarios

/// A newer key for a container, while clients go on.
@Suite struct ContainerRotationTests {
    private static let container = Neighbourhood.container

    private struct House {
        let town = Neighbourhood()
        let api: String
        let keys: DatabaseKeys
        /// A node that has had the container's keys in memory since before.
        let other: DatabaseKeys

        init() async throws {
            _ = try await self.town.authenticator.registry.create(Neighbourhood.container)
            _ = try await self.town.makeContainer()
            self.api = try await self.town.apiToken()
            self.keys = InProcess.databaseKeys(self.town.router, self.town.world)
            self.other = InProcess.databaseKeys(self.town.router, self.town.world)
        }

        /// A key that does not open.
        func putClosedKey(
            _ version: UInt32, of database: DatabaseID, under above: ContainerKeys.Version
        ) async throws {
            let put = PutKey(database) {
                $0.version = version
                $0.key.wrapped = Bytes(repeating: 3, count: 60)
                $0.key.check = above.check
            }
            _ = try await self.town.router.submit(
                put.enveloped(
                    container: database.container, identity: self.town.world.drawIdentity(),
                    deadlineMilliseconds: .max, principal: Principal(kind: .system)),
                to: .database(database), deadline: self.town.world.now)
        }

        /// A person with one secret.
        func addPerson(_ name: String) async throws -> (token: String, database: DatabaseID) {
            let id = try await self.town.account("\(name)@example.org")
            let token = try await self.town.signIn(id)
            try await self.save("x", token)
            return (
                token,
                DatabaseID(
                    container: Neighbourhood.container, scope: .private,
                    owner: self.town.recordName(id))
            )
        }

        func save(_ name: String, _ token: String) async throws {
            let saved = try await self.town.post(
                "private/records/modify",
                [
                    "operations": [
                        Operation.create(
                            name,
                            [
                                "secret": [
                                    "value": "planted", "type": "STRING", "isEncrypted": true,
                                ]
                            ])
                    ]
                ], api: self.api, user: token)
            let record = try #require(saved.json?["records"][0], "\(saved)")
            #expect(record["serverErrorCode"] == nil, "\(record)")
        }

        func reads(_ name: String, _ token: String) async throws -> Bool {
            let read = try await self.town.post(
                "private/records/lookup", ["records": [["recordName": .string(name)]]],
                api: self.api, user: token)
            return read.json?["records"][0]["fields"]["secret"]["value"] == "planted"
        }

        /// The clock goes on where it would wait.
        func rotation() throws -> ContainerRotation {
            let town = self.town
            let retries = Retries { duration in town.world.advance(by: duration) }
            let rotation = ContainerRotation(
                town.service.directory, of: Neighbourhood.container, retries: retries)
            return try #require(rotation)
        }

        func finish(_ rotation: inout ContainerRotation) async throws {
            while try await rotation.next() { #expect(rotation.failing.isEmpty) }
        }

        func versions() async throws -> [UInt32] {
            try await self.keys.containers.keys(of: Neighbourhood.container, fresh: true).map(
                \.number)
        }
    }

    @Test func `every key of a database is wrapped anew, and the older key is destroyed`()
        async throws
    {
        let house = try await House()
        var people: [(token: String, database: DatabaseID)] = []
        for name in ["ann", "bob", "cid"] { people.append(try await house.addPerson(name)) }
        // Files have keys of several versions, and a secret for equal ones.
        _ = try await house.keys.secret(of: people[0].database)
        _ = try await house.keys.rotate(people[0].database, to: 2)
        let before = try await house.other.key(1, of: people[0].database)
        let wrapped = try await house.keys.containers.key(of: Self.container)
        var rotation = try house.rotation()
        try await house.finish(&rotation)
        #expect(rotation.progress.isRetired && rotation.progress.version == 1)
        #expect(rotation.progress.keyCount == 5, "\(rotation.progress)")
        #expect(try await house.versions() == [1])
        let newest = try await house.keys.containers.key(of: Self.container, fresh: true)
        #expect(!newest.isEqual(to: wrapped))
        // The keys themselves are what they were, also for a node that knew the older key only.
        let after = try #require(try await house.other.key(1, of: people[0].database))
        #expect(after.isEqual(to: try #require(before)))
        for person in people {
            #expect(try await house.reads("x", person.token))
            try await house.save("after", person.token)
        }
        var again = try house.rotation()
        try await house.finish(&again)
        #expect(again.progress.version == 2 && again.progress.keyCount == 5)
        #expect(try await house.versions() == [2])
        for person in people { #expect(try await house.reads("after", person.token)) }
        // A master key can be changed afterwards.
        let named = ContainerKeys(
            store: house.town.authenticator.store,
            master: NamedMasters(
                InstallationMaster(secret: Bytes(repeating: 9, count: 32)),
                named: [1: SecretBytes(copying: Bytes(repeating: 1, count: 32))], sealing: 1))
        #expect(try await named.wrapAnew(Self.container))
        #expect(try await named.state(of: Self.container) == .wrapped(master: 1))
    }

    @Test func `a rotation that was ended after any piece is gone on with`() async throws {
        var (stops, pieceCount) = (0, 1)
        while stops <= pieceCount {
            let house = try await House()
            let ann = try await house.addPerson("ann")
            var first = try house.rotation()
            var count = 0
            while count < stops, try await first.next() { count += 1 }
            let bob = try await house.addPerson("bob")
            var second = try house.rotation()
            var secondCount = 0
            while try await second.next() { secondCount += 1 }
            if stops == 0 { pieceCount = secondCount }
            #expect(second.progress.isRetired, "stop \(stops)")
            // One that came to its end is followed by another one.
            let version: UInt32 = first.progress.isRetired ? 2 : 1
            #expect(try await house.versions() == [version], "stop \(stops)")
            for person in [ann, bob] {
                #expect(try await house.reads("x", person.token), "stop \(stops)")
            }
            // The first run, late: it makes no key, and puts back none.
            while stops > 0, (try? await first.next()) == true {}
            #expect(try await house.versions() == [version], "stop \(stops)")
            for person in [ann, bob] {
                #expect(try await house.reads("x", person.token), "stop \(stops)")
            }
            stops += 1
        }
        #expect(pieceCount > 5)
    }

    @Test func `two rotations at once work on one key`() async throws {
        let house = try await House()
        let ann = try await house.addPerson("ann")
        var (one, two) = (try house.rotation(), try house.rotation())
        _ = try await one.next()
        var goesOn = true
        while goesOn {
            let (first, second) = (try await one.next(), try await two.next())
            goesOn = first || second
        }
        #expect(one.progress.isRetired && two.progress.isRetired)
        #expect(two.progress.resumedMilliseconds != nil)
        #expect(try await house.versions() == [1])
        #expect(try await house.reads("x", ann.token))
    }

    @Test func `databases that are made between any two pieces can be read`() async throws {
        let house = try await House()
        _ = try await house.addPerson("ann")
        var rotation = try house.rotation()
        var people: [(token: String, database: DatabaseID)] = []
        while try await rotation.next() {
            if people.count < 8 {
                people.append(try await house.addPerson("p\(people.count)"))
            }
        }
        #expect(rotation.progress.isRetired && people.count > 4)
        for person in people { #expect(try await house.reads("x", person.token)) }
    }

    @Test func `what a node began to wrap under the older key comes in time or not at all`()
        async throws
    {
        let house = try await House()
        _ = try await house.addPerson("ann")
        let bob = try await house.town.account("bob@example.org")
        let database = DatabaseID(
            container: Self.container, scope: .private, owner: house.town.recordName(bob))
        // A node has read the container's key, and stands still while a whole rotation goes on.
        let home = ShardKey.container(Self.container)
        let router = house.town.router
        router.afterRead.withLock {
            $0 = { key in
                guard key == home else { return }
                router.afterRead.withLock { $0 = nil }
                guard var rotation = try? house.rotation() else { return }
                while (try? await rotation.next()) == true {}
            }
        }
        await #expect(throws: RouteError.self) { _ = try await house.other.sealing(of: database) }
        #expect(try await house.versions() == [1])
        // The next try makes one that every node opens.
        let sealing = try await house.other.sealing(of: database)
        let read = try await house.keys.key(sealing.version, of: database)
        #expect(try #require(read).isEqual(to: sealing.key))
    }

    @Test func `a row that was read before it was wrapped anew is read again`() async throws {
        let house = try await House()
        let ann = try await house.addPerson("ann")
        // The whole rotation is between the read of the row and that of the container's key.
        let fresh = InProcess.databaseKeys(house.town.router, house.town.world)
        let home = ShardKey.database(ann.database)
        let router = house.town.router
        router.afterRead.withLock {
            $0 = { key in
                guard key == home else { return }
                router.afterRead.withLock { $0 = nil }
                guard var rotation = try? house.rotation() else { return }
                while (try? await rotation.next()) == true {}
            }
        }
        #expect(try await fresh.key(1, of: ann.database) != nil)
        #expect(try await house.versions() == [1])
    }

    @Test func `an erased database keeps no key, and hinders nothing`() async throws {
        let house = try await House()
        let (ann, bob) = (try await house.addPerson("ann"), try await house.addPerson("bob"))
        var rotation = try house.rotation()
        _ = try await rotation.next()
        _ = try await house.town.router.submit(
            RecordCommand.eraseDatabase(EraseDatabase(database: ann.database)).enveloped(
                container: Self.container, identity: house.town.world.drawIdentity(),
                deadlineMilliseconds: .max, schemaVersion: 0,
                principal: Principal(kind: .system)),
            to: .database(ann.database), deadline: house.town.world.now)
        try await house.finish(&rotation)
        #expect(rotation.progress.isRetired && rotation.progress.keyCount == 1)
        #expect(try await house.keys.key(1, of: ann.database) == nil)
        #expect(try await house.reads("x", bob.token))
    }

    @Test func `a container whose key goes in the middle ends the rotation`() async throws {
        let house = try await House()
        _ = try await house.addPerson("ann")
        var rotation = try house.rotation()
        for _ in 0..<3 { _ = try await rotation.next() }
        _ = try await house.town.authenticator.store.submit(
            [.init(IdentityKey(.containerKey, of: IdentityKey.home(Self.container)), .remove)],
            to: .container(Self.container))
        // Another container of the name may have been made meanwhile.
        for isMade in [false, true] {
            if isMade { _ = try await house.keys.containers.key(of: Self.container, fresh: true) }
            var copy = rotation
            await #expect(throws: RouteError.self) { try await house.finish(&copy) }
        }
        #expect(try await house.versions() == [0])
        var other = try house.rotation()
        try await house.finish(&other)
        #expect(other.progress.isRetired)
    }

    @Test func `a key that does not open keeps the older key`() async throws {
        let house = try await House()
        let ann = try await house.addPerson("ann")
        let bob = try await house.town.account("bob@example.org")
        let database = DatabaseID(
            container: Self.container, scope: .private, owner: house.town.recordName(bob))
        let older = try await house.keys.containers.keys(of: Self.container)[0]
        try await house.putClosedKey(1, of: database, under: older)
        var rotation = try house.rotation()
        var failing: [FailingDatabase] = []
        while try await rotation.next() { failing += rotation.failing }
        #expect(failing.map(\.owner) == [database.owner])
        #expect(!rotation.progress.isRetired)
        #expect(try await house.versions() == [1, 0])
        #expect(try await house.reads("x", ann.token))
    }

    @Test
    func `what is under the older key after its partition was passed is found by another pass`()
        async throws
    {
        let house = try await House()
        let ann = try await house.addPerson("ann")
        let older = try await house.keys.containers.keys(of: Self.container)[0]
        var rotation = try house.rotation()
        var failing: [FailingDatabase] = []
        var isPut = false
        while try await rotation.next() {
            failing += rotation.failing
            guard rotation.progress.keyCount == 1, !isPut else { continue }
            isPut = true
            try await house.putClosedKey(2, of: ann.database, under: older)
        }
        #expect(isPut && failing.map(\.owner) == [ann.database.owner])
        #expect(!rotation.progress.isRetired)
        #expect(try await house.versions() == [1, 0])
    }

    @Test func `a partition that does not answer keeps the older key until another run`()
        async throws
    {
        let house = try await House()
        let ann = try await house.addPerson("ann")
        var rotation = try house.rotation()
        for _ in 0..<2 { _ = try await rotation.next() }
        house.town.router.away.withLock { $0 = [.database(ann.database)] }
        await #expect(throws: RouteError.self) { try await house.finish(&rotation) }
        house.town.router.away.withLock { $0 = [] }
        #expect(try await house.versions() == [1, 0])
        #expect(try await house.reads("x", ann.token))
        var again = try house.rotation()
        try await house.finish(&again)
        #expect(again.progress.resumedMilliseconds != nil && again.progress.isRetired)
        #expect(try await house.reads("x", ann.token))
    }

    @Test func `a container without a key has nothing to rotate`() async throws {
        let house = try await House()
        var rotation = try house.rotation()
        try await house.finish(&rotation)
        #expect(rotation.progress == ContainerRotation.Progress())
    }

    @Test func `push keys and provider tokens are sealed anew`() async throws {
        let house = try await House()
        let (one, two) = (
            InProcess.pushKeys(house.town.router, house.town.world),
            InProcess.pushKeys(house.town.router, house.town.world)
        )
        let signing = SigningKey.make()
        _ = try await one.add(
            team: "TEAM123456", key: "ABC123DEFG", topics: ["org.example.app"], signing,
            to: Self.container)
        let pair = try await one.makeVAPID(
            contact: "mailto:a@example.org", in: Self.container)
        let key = try #require(try await two.known(of: Self.container, fresh: true).apns.first)
        let token = try await two.providerToken(
            of: key, in: Self.container, isDue: { _ in false }, make: { "token \($0)" })
        for version in 1...2 {
            var rotation = try house.rotation()
            try await house.finish(&rotation)
            #expect(rotation.progress.isRetired && rotation.progress.version == UInt32(version))
            #expect(rotation.progress.pushKeyCount == 3)
            // Both have had the older key in memory.
            for keys in [one, two] {
                let known = try await keys.known(of: Self.container, fresh: true)
                #expect(known.apns.map(\.signing.publicPoint) == [signing.publicPoint])
                #expect(known.vapid.map(\.signing.publicPoint) == [pair.signing.publicPoint])
                let again = try await keys.providerToken(
                    of: key, in: Self.container, isDue: { _ in false }, make: { "new \($0)" })
                #expect(again.text == token.text)
            }
        }
    }

    @Test func `the row of a container's key, format 1`() throws {
        let above = SecretBytes(copying: Bytes(repeating: 1, count: 32))
        func entry(_ version: UInt32, master: UInt32 = 3) -> ContainerKeyRow.Entry {
            ContainerKeyRow.Entry(
                version: version,
                key: SealedKey(
                    SecretBytes(copying: Bytes(repeating: 2, count: 32)), under: above,
                    version: master, for: [], nonce: Bytes(repeating: 4, count: 12)))
        }
        let bytes = entry(0).key.encoded
        let rows: [(ContainerKeyRow, Bytes)] = [
            (ContainerKeyRow(entry(0)), [1, 0, 1, 0, 0, 0, 0] + bytes),
            (
                ContainerKeyRow(entry(1), older: entry(0), sinceMilliseconds: 1_000),
                [1, 0xD0, 0x0F, 2, 1, 0, 0, 0] + bytes + [0, 0, 0, 0] + bytes
            ),
            (
                ContainerKeyRow(entry(5), sinceMilliseconds: 1_000),
                [1, 0xD0, 0x0F, 1, 5, 0, 0, 0] + bytes
            ),
        ]
        for (row, bytes) in rows {
            #expect(row.encoded() == bytes)
            #expect(try ContainerKeyRow(decoding: bytes) == row)
            for count in 0..<bytes.count {
                #expect(throws: (any Error).self) {
                    try ContainerKeyRow(decoding: Bytes(bytes.prefix(count)))
                }
            }
        }
        // Two master keys, the older one first, and none at all.
        let wrong = [
            ContainerKeyRow(entry(1), older: entry(0, master: 4)),
            ContainerKeyRow(entry(1), older: entry(2)),
        ].map { $0.encoded() }
        for bytes in wrong + [[1, 0, 0], [3]] {
            #expect(throws: (any Error).self) { try ContainerKeyRow(decoding: bytes) }
        }
    }
}
