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
