import StratusCluster
import StratusDoubles
import StratusIdentity
import StratusModel
import StratusRecords
import StratusSealing
import Testing

@testable import StratusGateway

/// The keys by which containers send to push providers.
@Suite struct PushKeysTests {
    private static let container = Neighbourhood.container

    private func rows(_ town: Neighbourhood) async throws -> [Bytes] {
        try await town.authenticator.store.list(
            .pushKey, of: IdentityKey.home(Self.container), at: .container(Self.container)
        ).map(\.row.body)
    }

    private func add(
        _ keys: PushKeys, _ key: String = "ABC123DEFG", _ signing: SigningKey = SigningKey.make()
    ) async throws -> PushKeys.Change {
        try await keys.add(
            team: "DEF123GHIJ", key: key, topics: ["org.a"], signing, to: Self.container)
    }

    @Test func `I-9: keys are sealed in their rows, and read by every node`() async throws {
        let town = Neighbourhood()
        let keys = InProcess.pushKeys(town.router, town.world)
        let signing = SigningKey.make()
        #expect(try await self.add(keys, "ABC123DEFG", signing) == .done)
        let row = try #require(try await self.rows(town).first)
        #expect(!String(decoding: row, as: UTF8.self).contains("PRIVATE"))
        let known = try await InProcess.pushKeys(town.router, town.world)
            .known(of: Self.container)
        let found = try #require(known.apns.first)
        #expect(found.team == "DEF123GHIJ" && found.topics == ["org.a"])
        #expect(found.signing.publicPoint == signing.publicPoint)
        #expect(try await keys.known(of: Neighbourhood.production).apns.isEmpty)
    }

    @Test func `a key in the place of another of its name is told apart`() async throws {
        let town = Neighbourhood()
        let keys = InProcess.pushKeys(town.router, town.world)
        _ = try await self.add(keys)
        let before = try #require(try await keys.known(of: Self.container).apns.first)
        _ = try await self.add(keys)
        let after = try await keys.known(of: Self.container).apns
        #expect(after.count == 1 && after[0].revision != before.revision)
        for number in 0..<(PushKeys.apnsCountMax - 1) {
            #expect(try await self.add(keys, "ABC123DEF\(number)") == .done)
        }
        #expect(try await self.add(keys, "ABC123DEFX") == .tooMany)
        #expect(try await self.add(keys) == .done)
    }

    @Test func `a private key is parsed once for each revision of its row`() async throws {
        let town = Neighbourhood()
        let keys = InProcess.pushKeys(town.router, town.world)
        func known() async throws -> PushKeys.Known {
            town.world.advance(by: .seconds(2))
            return try await keys.known(of: Self.container)
        }
        _ = try await self.add(keys)
        _ = try await keys.makeVAPID(contact: "mailto:a@b.example", in: Self.container)
        for _ in 0..<5 {
            #expect(try await known().apns.count == 1)
            #expect(keys.parseCount(of: Self.container) == 2)
        }
        let second = SigningKey.make()
        _ = try await self.add(keys, "ABC123DEFG", second)
        for _ in 0..<5 {
            #expect(try await known().apns.first?.signing.publicPoint == second.publicPoint)
            #expect(keys.parseCount(of: Self.container) == 3)
        }
        // Another node takes the key away and adds one under its name.
        let other = InProcess.pushKeys(town.router, town.world)
        #expect(
            try await other.remove(team: "DEF123GHIJ", key: "ABC123DEFG", from: Self.container))
        let third = SigningKey.make()
        _ = try await self.add(other, "ABC123DEFG", third)
        #expect(try await known().apns.first?.signing.publicPoint == third.publicPoint)
        #expect(keys.parseCount(of: Self.container) == 4)
    }

    @Test func `P-05: nodes show one token, and make the next when it is due`() async throws {
        let town = Neighbourhood()
        let nodes = (0..<3).map { _ in InProcess.pushKeys(town.router, town.world) }
        _ = try await self.add(nodes[0])
        let key = try #require(try await nodes[0].known(of: Self.container).apns.first)
        func tokens(_ isDue: @escaping @Sendable (Int64) -> Bool) async throws -> [String] {
            var texts: [String] = []
            for (number, node) in nodes.enumerated() {
                texts.append(
                    try await node.providerToken(
                        of: key, in: Self.container, isDue: isDue,
                        make: { "node \(number) at \($0)" }
                    ).text)
            }
            return texts
        }
        let first = try await tokens { _ in false }
        #expect(Set(first).count == 1 && first[0].hasPrefix("node 0"))
        town.world.advance(by: .seconds(2_500))
        let now = town.world.wallMilliseconds / 1_000
        let second = try await tokens { now - $0 >= 2_400 }
        #expect(Set(second).count == 1 && second[0] != first[0])
        for row in try await self.rows(town) {
            #expect(!String(decoding: row, as: UTF8.self).contains("node 0"))
        }
        // Another key of the same name does not show the old one's token.
        _ = try await self.add(nodes[0])
        let exchanged = try #require(
            try await nodes[0].known(of: Self.container, fresh: true).apns.first)
        let third = try await nodes[1].providerToken(
            of: exchanged, in: Self.container, isDue: { _ in false }, make: { _ in "third" })
        #expect(third.text == "third")
    }

    @Test func `four keys for Web Push are kept`() async throws {
        let town = Neighbourhood()
        let keys = InProcess.pushKeys(town.router, town.world)
        for _ in 0..<6 {
            _ = try await keys.makeVAPID(contact: "mailto:a@b.example", in: Self.container)
        }
        #expect(try await keys.known(of: Self.container).vapid.map(\.number) == [3, 4, 5, 6])
    }
}
