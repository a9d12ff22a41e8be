import StratusCluster
import StratusDoubles
import StratusGateway
import StratusIdentity
import StratusModel
import StratusSealing
import Testing
import WireScenarios

/// Keys change while people stay signed in; and end, with everything they sealed.
@Suite struct SealingKeyRingTests {
    private static let master = Bytes(repeating: 9, count: 32)

    /// Another node of the same cluster: the same secret and rows, ciphers of its own.
    private func node(_ town: Neighbourhood) -> (
        ring: SealingKeyRing, cipher: TokenCipher, feeds: TokenCipher
    ) {
        let keys = IdentityKeys(master: Self.master)
        let feeds = TokenCipher(key: Self.master)
        return (
            SealingKeyRing(store: Self.store(town.router, town, keys), feeds: feeds),
            keys.cipher, feeds
        )
    }

    private static func store(
        _ router: any PartitionRouter, _ town: Neighbourhood, _ keys: IdentityKeys
    ) -> IdentityStore {
        IdentityStore(partitions: PartitionClient(router, in: town.world), keys: keys)
    }

    private func number(_ rotation: SealingKeyRing.Rotation) throws -> UInt64 {
        guard case .made(let number) = rotation else { throw Problem(text: "\(rotation)") }
        return number
    }

    @Test func `a new key seals when every node has read it, and old ones open what they sealed`()
        async throws
    {
        let town = Neighbourhood()
        let (one, two) = (self.node(town), self.node(town))
        try await one.ring.keepUp()
        try await two.ring.keepUp()
        let first = one.cipher.seal([1, 2, 3], for: [7])
        let feed = one.feeds.seal([4], for: [8])
        #expect(try self.number(await one.ring.rotate()) == 1)
        // Two has not heard of it; one does not use it yet.
        #expect(two.cipher.open(one.cipher.seal([1, 2, 3], for: [7]), for: [7]) == [1, 2, 3])
        #expect(one.cipher.seal([1, 2, 3], for: [7]) == first)
        town.world.advance(by: .seconds(10))
        for node in [one, two] { try await node.ring.read() }
        let second = one.cipher.seal([1, 2, 3], for: [7])
        #expect(second != first)
        #expect(one.feeds.seal([4], for: [8]) != feed)
        for node in [one, two] {
            #expect(node.cipher.open(first, for: [7]) == [1, 2, 3])
            #expect(node.cipher.open(second, for: [7]) == [1, 2, 3])
            #expect(node.feeds.open(feed, for: [8]) == [4])
            // A key for each purpose.
            #expect(node.feeds.open(second, for: [7]) == nil)
        }
        #expect(try await two.ring.read().filter(\.isSealing).map(\.number) == [1])

        #expect(try await one.ring.revoke(before: 1) == 1)
        try await two.ring.read()
        for node in [one, two] {
            #expect(node.cipher.open(first, for: [7]) == nil)
            #expect(node.cipher.open(second, for: [7]) == [1, 2, 3])
            #expect(node.feeds.open(feed, for: [8]) == nil)
        }
        #expect(try await one.ring.revoke(before: 9) == nil)
        #expect(try await one.ring.revoke(before: 1) == 0)
    }

    @Test func `X-11 a node that was asked nothing for a while knows what was revoked meanwhile`()
        async throws
    {
        let town = Neighbourhood()
        let (one, two) = (self.node(town), self.node(town))
        try await two.ring.keepUp()
        let sealed = two.cipher.seal([1], for: [])
        _ = try await one.ring.rotate()
        #expect(try await one.ring.revoke(before: 1) == 1)
        town.world.advance(by: .seconds(2))
        try await two.ring.keepUp()
        #expect(two.cipher.open(sealed, for: []) == nil)
    }

    @Test func `what must never change does not`() async throws {
        let town = Neighbourhood()
        let node = self.node(town)
        let identity = node.feeds.identity(of: [1])
        _ = try await node.ring.rotate()
        town.world.advance(by: .seconds(10))
        try await node.ring.read()
        #expect(node.feeds.identity(of: [1]) == identity)
    }

    @Test func `the rows alone open nothing`() async throws {
        let town = Neighbourhood()
        _ = try await self.node(town).ring.rotate()
        let stranger = IdentityKeys(master: Bytes(repeating: 8, count: 32))
        let ring = SealingKeyRing(
            store: Self.store(town.router, town, stranger), feeds: nil)
        await #expect(throws: RouteError.self) { try await ring.read() }
    }

    @Test func `keys that open are bounded`() async throws {
        let town = Neighbourhood()
        let node = self.node(town)
        for _ in 0..<SealingKeyRing.liveCountMax { _ = try self.number(await node.ring.rotate()) }
        #expect(try await node.ring.rotate() == .tooMany)
        #expect(try await node.ring.revoke(before: 16) == 16)
        #expect(try self.number(await node.ring.rotate()) == 17)
    }

    @Test func `a rotation signs nobody out, a revocation of all everybody`() async throws {
        let town = Neighbourhood()
        _ = try await town.makeContainer()
        let api = try await town.apiToken()
        let ann = try await town.account("ann@example.org")
        let old = try await town.signIn(ann)
        func status(_ token: String) async throws -> Int {
            try await town.post("public/users/caller", api: api, user: token).status
        }
        #expect(try await status(old) == 200)
        let ring = town.authenticator.sealingKeys
        _ = try await ring.rotate()
        town.world.advance(by: .seconds(11))
        try await ring.read()
        let answer = try await town.post("public/users/caller", api: api, user: old)
        #expect(answer.status == 200)
        // The answer brings one that the new key sealed.
        let fresh = try #require(answer.header("X-Apple-CloudKit-Web-Auth-Token"))
        #expect(fresh != old)
        #expect(try await status(fresh) == 200)
        #expect(try await ring.revoke(before: 1) == 1)
        #expect(try await status(old) == 421)
        #expect(try await status(fresh) == 200)
        _ = try await ring.rotate()
        #expect(try await ring.revoke(before: 2) == 1)
        #expect(try await status(fresh) == 421)
        // Whoever signs in again is in, at once.
        #expect(try await status(try await town.signIn(ann)) == 200)
    }

    @Test func `X-11 who cannot read the keys for ten seconds opens nothing`() async throws {
        let town = Neighbourhood()
        let ring = SealingKeyRing(
            store: Self.store(LameRouter(), town, IdentityKeys(master: Self.master)), feeds: nil)
        await #expect(throws: RouteError.self) { try await ring.keepUp() }
    }

    private struct LameRouter: PartitionRouter {
        func submit(
            _ command: Command, to address: PartitionAddress, deadline: MonotonicTime,
            mayRunLater: Bool
        ) async throws(RouteError) -> Outcome { throw .notExecuted(retryAfter: .seconds(1)) }
        func read(_ query: Query, at address: PartitionAddress, deadline: MonotonicTime)
            async throws(RouteError) -> QueryAnswer
        { throw .notExecuted(retryAfter: .seconds(1)) }
        func hasPartition(_ group: GroupID) -> Bool { true }
    }
}
