import StratusCluster
import StratusIdentity
import StratusModel
import StratusRecords
import StratusSealing
import Testing

/// Keys of containers: drawn once, wrapped under the master key, ended with the container.
@Suite struct ContainerKeysTests {
    private static let container = Neighbourhood.container
    private static let row = IdentityKey(
        .containerKey, of: IdentityKey.home(container))

    private func keys(_ town: Neighbourhood, secret: UInt8 = 9) -> ContainerKeys {
        ContainerKeys(
            store: town.authenticator.store,
            master: InstallationMaster(secret: Bytes(repeating: secret, count: 32)))
    }

    @Test func `every node finds the key that the first one drew`() async throws {
        let town = Neighbourhood()
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
        let town = Neighbourhood()
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
        let town = Neighbourhood()
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
        let town = Neighbourhood()
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
        let town = Neighbourhood()
        let keys = self.keys(town)
        _ = try await keys.key(of: Self.container)
        let store = town.authenticator.store
        let row = try #require(try await store.row(Self.row, at: .container(Self.container)))
        let moved = IdentityKey(.containerKey, of: IdentityKey.home(Neighbourhood.production))
        _ = try await store.submit(
            [.init(moved, .put(body: row.body, expiresAtMilliseconds: 0))],
            to: .container(Neighbourhood.production))
        await #expect(throws: RouteError.refused("a row that cannot be read")) {
            try await keys.key(of: Neighbourhood.production)
        }
    }

    @Test func `a key that was replaced is noticed when it is read afresh`() async throws {
        let town = Neighbourhood()
        let keys = self.keys(town)
        let before = try await keys.key(of: Self.container)
        _ = try await town.authenticator.store.submit(
            [.init(Self.row, .remove)], to: .container(Self.container))
        #expect(try await keys.key(of: Self.container).isEqual(to: before))
        let after = try await keys.key(of: Self.container, fresh: true)
        #expect(!after.isEqual(to: before))
        #expect(try await keys.key(of: Self.container).isEqual(to: after))
    }
}
