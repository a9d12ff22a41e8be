import StratusCluster
import StratusContainers
import StratusDoubles
import StratusIdentity
import StratusModel
import StratusRecords
import StratusSealing
import Synchronization
import Testing

/// Keys of containers: drawn once, wrapped under the master key, ended with the container.
@Suite struct ContainerKeysTests {
    private static let container = Neighbourhood.container
    private static let row = IdentityKey(
        .containerKey, of: IdentityKey.home(container))

    /// With two containers that somebody has made.
    private static func town() async throws -> Neighbourhood {
        let town = Neighbourhood()
        for container in [Neighbourhood.container, Neighbourhood.production] {
            _ = try await town.authenticator.registry.create(container)
        }
        return town
    }

    private func keys(_ town: Neighbourhood, secret: UInt8 = 9) -> ContainerKeys {
        ContainerKeys(
            store: town.authenticator.store,
            master: InstallationMaster(secret: Bytes(repeating: secret, count: 32)))
    }

    @Test func `every node finds the key that the first one drew`() async throws {
        let town = try await Self.town()
        let (one, two) = (self.keys(town), self.keys(town))
        async let first = one.key(of: Self.container)
        async let second = two.key(of: Self.container)
        let (key, same) = try await (first, second)
        #expect(key.isEqual(to: same))
        #expect(try await self.keys(town).key(of: Self.container).isEqual(to: key))
        let other = try await one.key(of: Neighbourhood.production)
        #expect(!other.isEqual(to: key))
    }

    @Test func `A-13 a node with another master key opens nothing and says so`() async throws {
        let town = try await Self.town()
        _ = try await self.keys(town).key(of: Self.container)
        await #expect(throws: RouteError.refused("master key 0 of this node is another one")) {
            try await self.keys(town, secret: 8).key(of: Self.container)
        }
    }

    private func keys(_ town: Neighbourhood, named: [UInt32: UInt8], sealing: UInt32)
        -> ContainerKeys
    {
        ContainerKeys(
            store: town.authenticator.store,
            master: NamedMasters(
                InstallationMaster(secret: Bytes(repeating: 9, count: 32)),
                named: named.mapValues { SecretBytes(copying: Bytes(repeating: $0, count: 32)) },
                sealing: sealing))
    }

    @Test func `a rotation of the master key wraps keys anew and changes none of them`()
        async throws
    {
        let town = try await Self.town()
        let before = self.keys(town, named: [:], sealing: 0)
        #expect(try await before.state(of: Self.container) == .none)
        #expect(try await !before.wrapAnew(Self.container))
        let key = try await before.key(of: Self.container)
        #expect(try await before.state(of: Self.container) == .wrapped(master: 0))
        // Given, and not used yet.
        let given = self.keys(town, named: [1: 1], sealing: 0)
        #expect(try await !given.wrapAnew(Self.container))
        let sealing = self.keys(town, named: [1: 1], sealing: 1)
        #expect(try await sealing.key(of: Self.container).isEqual(to: key))
        #expect(try await sealing.wrapAnew(Self.container))
        #expect(try await !sealing.wrapAnew(Self.container))
        #expect(try await sealing.state(of: Self.container) == .wrapped(master: 1))
        // Every node that was given it goes on, whichever of them seals.
        #expect(try await given.key(of: Self.container, fresh: true).isEqual(to: key))
        let next = self.keys(town, named: [1: 1, 7: 7], sealing: 7)
        #expect(try await next.wrapAnew(Self.container))
        let last = self.keys(town, named: [7: 7], sealing: 7)
        #expect(try await last.key(of: Self.container).isEqual(to: key))
    }

    @Test func `A-13 a node without the master key of a container says which it lacks`()
        async throws
    {
        let town = try await Self.town()
        _ = try await self.keys(town, named: [1: 1], sealing: 1).key(of: Self.container)
        let without = self.keys(town, named: [:], sealing: 0)
        #expect(
            try await without.state(of: Self.container)
                == .closed(master: 1, reason: "this node lacks master key 1"))
        await #expect(throws: RouteError.refused("this node lacks master key 1")) {
            try await without.wrapAnew(Self.container)
        }
        let other = self.keys(town, named: [1: 2], sealing: 1)
        #expect(
            try await other.state(of: Self.container)
                == .closed(master: 1, reason: "master key 1 of this node is another one"))
        // Nothing was written.
        let right = self.keys(town, named: [1: 1], sealing: 1)
        #expect(try await right.state(of: Self.container) == .wrapped(master: 1))
    }

    @Test func `the file of a master key holds 64 hexadecimal digits`() {
        let digits = String(repeating: "0aF9", count: 16)
        let key = NamedMasters.key(Bytes(" \n\(digits)\r\n".utf8))
        #expect(key?.withBytes { Bytes($0) } == Bytes((0..<16).flatMap { _ in [0x0A, 0xF9] }))
        for text in ["", digits + "0", String(digits.dropLast()), String(digits.dropLast()) + "g"] {
            #expect(NamedMasters.key(Bytes(text.utf8)) == nil, "\(text)")
        }
    }

    @Test func `a key of one container opens for no other`() async throws {
        let town = try await Self.town()
        let keys = self.keys(town)
        _ = try await keys.key(of: Self.container)
        let store = town.authenticator.store
        let row = try #require(try await store.row(Self.row, at: .container(Self.container)))
        let moved = IdentityKey(.containerKey, of: IdentityKey.home(Neighbourhood.production))
        _ = try await store.submit(
            [.init(moved, .put(body: row.body, expiresAtMilliseconds: 0))],
            to: .container(Neighbourhood.production))
        await #expect(throws: RouteError.unreadable("a row that cannot be read")) {
            try await keys.key(of: Neighbourhood.production)
        }
    }

    @Test func `a key that was replaced is noticed when it is read afresh`() async throws {
        let town = try await Self.town()
        let keys = self.keys(town)
        let before = try await keys.key(of: Self.container)
        _ = try await town.authenticator.store.submit(
            [.init(Self.row, .remove)], to: .container(Self.container))
        #expect(try await keys.key(of: Self.container).isEqual(to: before))
        let after = try await keys.key(of: Self.container, fresh: true)
        #expect(!after.isEqual(to: before))
        #expect(try await keys.key(of: Self.container).isEqual(to: after))
    }

    @Test func `A-13 of two nodes with different keys under one number, one wraps`() async throws {
        let town = try await Self.town()
        let one = self.keys(town, named: [1: 1], sealing: 0)
        let two = self.keys(town, named: [1: 2], sealing: 1)
        // As at their starts: nothing is wrapped yet.
        #expect(try await one.agreement.compare(1) == nil)
        let noted = try #require(try await two.agreement.compare(1))
        #expect(noted == one.agreement.check(of: 1))
        #expect(try await two.agreement.noted() == [1: noted])
        let row = try await town.authenticator.store.row(
            IdentityKey(.masterCheck, of: [], [0, 0, 0, 1]), at: MasterAgreement.home)
        #expect(row?.body == [1, 0] + noted + [0] && noted.count == 8)
        // One that is damaged hides no other, and nothing is wrapped under it.
        _ = try await town.authenticator.store.submit(
            [
                .init(
                    IdentityKey(.masterCheck, of: [], [0, 0, 0, 4]),
                    .put(body: [1, 2], expiresAtMilliseconds: 0))
            ], to: MasterAgreement.home)
        #expect(try await two.agreement.noted() == [1: noted])
        let damaged = self.keys(town, named: [4: 4], sealing: 4)
        await #expect(throws: RouteError.unreadable("a row that cannot be read")) {
            try await damaged.key(of: Self.container)
        }
        let difference = RouteError.refused(two.agreement.difference(1, noted))
        await #expect(throws: difference) { try await two.key(of: Self.container) }
        let key = try await one.key(of: Self.container)
        await #expect(throws: difference) { try await two.wrapAnew(Self.container) }
        // It opens what others wrapped under keys that it has.
        #expect(try await two.key(of: Self.container).isEqual(to: key))
        #expect(try await one.state(of: Self.container) == .wrapped(master: 0))
        // Forgotten, the number is free for the right key, and for no other that was there.
        try await self.leave(1, one, town)
        #expect(try await one.agreement.free(1))
        #expect(try await one.agreement.leave(1) == .unknown)
        await #expect(throws: RouteError.self) { try await one.agreement.compare(1) }
        #expect(try await two.wrapAnew(Self.container))
        #expect(try await one.agreement.noted() == [1: two.agreement.check(of: 1)])
        #expect(try await one.agreement.compare(1) == two.agreement.check(of: 1))
    }

    /// Waits until nothing can be under way under a version.
    private func leave(_ version: UInt32, _ keys: ContainerKeys, _ town: Neighbourhood)
        async throws
    {
        guard case .settles = try await keys.agreement.leave(version) else {
            Issue.record("\(version) was leaving already")
            return
        }
        town.world.advance(by: MasterAgreement.settling)
        #expect(try await keys.agreement.leave(version) == .settled)
    }

    @Test func `nothing is wrapped under a version while it is being forgotten`() async throws {
        let town = try await Self.town()
        let before = self.keys(town, named: [:], sealing: 0)
        let key = try await before.key(of: Self.container)
        let sealing = self.keys(town, named: [1: 1], sealing: 1)
        #expect(try await sealing.agreement.compare(1) == nil)
        try await self.leave(1, sealing, town)
        await #expect(throws: RouteError.self) { try await sealing.wrapAnew(Self.container) }
        await #expect(throws: RouteError.self) {
            try await sealing.key(of: Neighbourhood.production)
        }
        #expect(try await sealing.key(of: Self.container).isEqual(to: key))
        // Found to be in use, it goes on.
        try await sealing.agreement.keep(1)
        #expect(try await sealing.wrapAnew(Self.container))
    }

    @Test func `what was begun under a version before it left arrives in time or never`()
        async throws
    {
        let town = try await Self.town()
        let keys = self.keys(town, named: [1: 1], sealing: 1)
        // The node stops for a while behind the look at the row.
        let isSlow = Mutex(true)
        town.router.afterRead.withLock {
            $0 = { [world = town.world] key in
                guard key == MasterAgreement.home, isSlow.withLock({ $0 }) else { return }
                isSlow.withLock { $0 = false }
                world.advance(by: MasterAgreement.settling)
            }
        }
        _ = try await keys.agreement.compare(1)
        isSlow.withLock { $0 = true }
        await #expect(throws: RouteError.self) { try await keys.key(of: Self.container) }
        #expect(try await keys.state(of: Self.container) == .none)
    }

    @Test func `the key of a container that nobody has made is under no named master key`()
        async throws
    {
        let town = Neighbourhood()
        let keys = self.keys(town, named: [1: 1], sealing: 1)
        _ = try await keys.key(of: Self.container)
        #expect(try await keys.state(of: Self.container) == .wrapped(master: 0))
        _ = try await town.authenticator.registry.create(Self.container)
        #expect(try await keys.wrapAnew(Self.container))
    }

    @Test func `rows of master checks, format 1`() throws {
        let (one, two) = (Bytes(1...8), Bytes(11...18))
        let rows: [(MasterCheck, Bytes)] = [
            (MasterCheck(.noted(one)), [1, 0] + one + [0]),
            (MasterCheck(.noted(one), forgotten: [two]), [1, 0] + one + [1] + two),
            (
                MasterCheck(.leaving(one, sinceMilliseconds: 1_000)),
                [1, 1] + one + [0xD0, 0x0F, 0]
            ),
            (MasterCheck(.free, forgotten: [two, one]), [1, 2, 2] + two + one),
        ]
        for (check, bytes) in rows {
            #expect(check.encoded() == bytes)
            #expect(try MasterCheck(decoding: bytes) == check)
            for count in 0..<bytes.count {
                #expect(throws: (any Error).self) {
                    try MasterCheck(decoding: Bytes(bytes.prefix(count)))
                }
            }
        }
        #expect(throws: (any Error).self) { try MasterCheck(decoding: [1, 3, 0]) }
    }

    @Test func `the row of a rotation, format 1`() throws {
        let run = Bytes(0..<16)
        let rows: [(KeyRotation, Bytes)] = [
            (KeyRotation(run: run, begunMilliseconds: 1_000), [1] + run + [0xD0, 0x0F, 0, 0, 0]),
            (
                KeyRotation(
                    run: run, begunMilliseconds: 1_000, databaseCount: 300, failingCount: 2,
                    place: .init(owner: "_u", bucket: 3, version: 7)),
                [1] + run + [0xD0, 0x0F, 0xAC, 2, 2, 1, 2, 0x5F, 0x75, 4, 7, 0, 0, 0]
            ),
        ]
        for (rotation, bytes) in rows {
            #expect(rotation.encoded() == bytes)
            #expect(try KeyRotation(decoding: bytes) == rotation)
            for count in 0..<bytes.count {
                #expect(throws: (any Error).self) {
                    try KeyRotation(decoding: Bytes(bytes.prefix(count)))
                }
            }
        }
    }

    @Test func `a node notes a key before it wraps under it`() async throws {
        let town = try await Self.town()
        let notes = Mutex<[UInt32]>([])
        let keys = ContainerKeys(
            store: town.authenticator.store,
            master: NamedMasters(
                InstallationMaster(secret: Bytes(repeating: 9, count: 32)),
                named: [3: SecretBytes(copying: Bytes(repeating: 3, count: 32))], sealing: 3),
            agreed: { (version, check) throws(RouteError) in
                guard check.count == 8 else { throw .refused("no check value") }
                notes.withLock { $0.append(version) }
            })
        _ = try await keys.key(of: Self.container)
        #expect(notes.withLock { $0 } == [3])
        let full = ContainerKeys(
            store: town.authenticator.store, master: keys.master,
            agreed: { (_, _) throws(RouteError) in throw .refused("the disk is full") })
        await #expect(throws: RouteError.refused("the disk is full")) {
            try await full.key(of: Neighbourhood.production)
        }
        #expect(try await full.state(of: Neighbourhood.production) == .none)
    }

    // MARK: Surveys

    private static func name(_ number: Int) -> ContainerReference {
        ContainerReference(container: "iCloud.org.example.n\(number)", environment: .production)
    }

    private func town(_ count: Int, _ keys: (Neighbourhood) -> ContainerKeys) async throws
        -> Neighbourhood
    {
        let town = Neighbourhood()
        for number in 0..<count {
            _ = try await town.authenticator.registry.create(Self.name(number))
            _ = try await keys(town).key(of: Self.name(number))
        }
        return town
    }

    @Test func `slices go by name, so a container that goes meanwhile hides no other`()
        async throws
    {
        let town = try await self.town(6) { self.keys($0, named: [:], sealing: 0) }
        let registry = town.authenticator.registry
        let survey = MasterSurvey(registry, self.keys(town, named: [1: 1], sealing: 1), slice: 2)
        var (after, seen, wrapped) = (nil as ContainerReference?, 0, 0)
        repeat {
            let rotation = try await survey.rotate(after: after)
            #expect(rotation.failing.isEmpty)
            wrapped += rotation.wrapped
            after = rotation.next
            seen += 1
            if seen == 1 {
                // One of the first slice is gone from the list.
                _ = try await town.authenticator.store.submit(
                    [
                        .init(
                            IdentityKey(
                                .containerListing, of: [], IdentityKey.home(Self.name(0))), .remove)
                    ], to: ContainerRegistry.listingHome)
            }
        } while after != nil && seen < 10
        #expect(wrapped == 6)
        var counts = try await survey.count(after: nil)
        #expect(counts.wrapped == [1: 2] && counts.next == Self.name(2))
        counts = try await survey.count(after: Self.name(4))
        #expect(counts.wrapped == [1: 1] && counts.next == nil)
    }

    @Test func `a key that does not open, or cannot be read, ends no rotation and no list`()
        async throws
    {
        let town = try await self.town(4) { self.keys($0, named: [:], sealing: 0) }
        let store = town.authenticator.store
        func key(_ number: Int) -> IdentityKey {
            IdentityKey(.containerKey, of: IdentityKey.home(Self.name(number)))
        }
        // Another installation's, and one that is cut off.
        let other = Neighbourhood(seed: 12)
        _ = try await self.keys(other, secret: 8).key(of: Self.name(0))
        let foreign = try #require(
            try await other.authenticator.store.row(key(0), at: .container(Self.name(0))))
        for (number, body) in [(0, foreign.body), (2, [1, 2, 3])] {
            _ = try await store.submit(
                [.init(key(number), .put(body: body, expiresAtMilliseconds: 0))],
                to: .container(Self.name(number)))
        }
        town.router.away.withLock { $0 = [.container(Self.name(3))] }
        let survey = MasterSurvey(
            town.authenticator.registry, self.keys(town, named: [1: 1], sealing: 1),
            retries: Retries { _ in })
        let rotation = try await survey.rotate(after: nil)
        #expect(rotation.wrapped == 1)
        #expect(
            rotation.failing == [
                .init(container: Self.name(0), reason: "master key 0 of this node is another one"),
                .init(container: Self.name(2), reason: "a row that cannot be read"),
                .init(
                    container: Self.name(3),
                    reason: "its partition does not answer"),
            ])
        let some = try await survey.count(after: nil)
        #expect(some.wrapped == [0: 1, 1: 1])
        #expect(some.failing.map(\.container) == [0, 2, 3].map { Self.name($0) })
        town.router.away.withLock { $0 = [] }
        let counts = try await survey.count(after: nil)
        #expect(counts.wrapped == [0: 2, 1: 1])
        #expect(counts.failing.map(\.container) == [Self.name(0), Self.name(2)])
        // Nobody knows what the unreadable one is under.
        let given = self.keys(town, named: [7: 7], sealing: 0)
        #expect(try await given.agreement.compare(7) == nil)
        try await self.leave(7, given, town)
        #expect(
            try await survey.forget(7, after: nil)
                == .unreadable(Self.name(2), "a row that cannot be read"))
        // Nor what one is under that does not answer.
        _ = try await store.submit([.init(key(2), .remove)], to: .container(Self.name(2)))
        try await self.leave(7, given, town)
        town.router.away.withLock { $0 = [.container(Self.name(3))] }
        #expect(
            try await survey.forget(7, after: nil)
                == .unreadable(Self.name(3), "its partition does not answer"))
        town.router.away.withLock { $0 = [] }
        #expect(try await given.agreement.noted().keys.sorted() == [1, 7])
    }

    @Test func `a version is forgotten only while nothing is under it`() async throws {
        let town = try await self.town(3) { self.keys($0, named: [5: 5], sealing: 5) }
        let registry = town.authenticator.registry
        let sealing = MasterSurvey(registry, self.keys(town, named: [5: 5], sealing: 5), slice: 2)
        #expect(try await sealing.forget(5, after: nil) == .seals)
        let keys = self.keys(town, named: [5: 5, 6: 6], sealing: 6)
        let survey = MasterSurvey(registry, keys, slice: 2)
        try await self.leave(5, keys, town)
        #expect(try await survey.forget(5, after: nil) == .wraps(Self.name(0)))
        while case let rotation = try await survey.rotate(after: nil), rotation.wrapped > 0 {
            if let next = rotation.next { _ = try await survey.rotate(after: next) }
        }
        #expect(try await keys.agreement.noted().keys.sorted() == [5, 6])
        guard case .settles = try await survey.forget(5, after: nil) else {
            Issue.record("what was begun is not waited for")
            return
        }
        town.world.advance(by: MasterAgreement.settling)
        #expect(try await survey.forget(5, after: nil) == .goesOn(after: Self.name(1)))
        #expect(try await survey.forget(5, after: Self.name(1)) == .forgotten)
        #expect(try await survey.forget(5, after: Self.name(1)) == .unknown)
        #expect(try await keys.agreement.noted().keys.sorted() == [6])
    }
}
