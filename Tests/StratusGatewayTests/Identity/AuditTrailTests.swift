import StratusIdentity
import StratusModel
import StratusRecords
import Testing

/// what administrators did.
@Suite struct AuditTrailTests {
    @Test func `entries follow from one another, and whoever edits one is found`() async throws {
        let town = Neighbourhood()
        let trail = AuditTrail(store: town.accounts.store)
        #expect(try await trail.verify() == (0, nil))
        // Two administrators at once: every entry has a place.
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<12 {
                group.addTask {
                    try await trail.note(
                        actor: "192.0.2.1", action: "token create", subject: "t\(number)")
                }
            }
            try await group.waitForAll()
        }
        let entries = try await trail.entries(limit: 5)
        #expect(entries.map(\.number) == [8, 9, 10, 11, 12])
        #expect(try await trail.verify() == (12, nil))

        let store = town.accounts.store
        let home = ShardKey.account("audit")
        func key(_ number: UInt8) -> IdentityKey {
            IdentityKey(.audit, of: [], [0, 0, 0, 0, 0, 0, 0, number])
        }
        let row = try #require(try await store.row(key(5), at: home))
        var edited = row.body
        edited[edited.count - 33] ^= 1
        _ = try await store.submit(
            [.init(key(5), .put(body: edited, expiresAtMilliseconds: 0))], to: home)
        #expect(try await trail.verify().broken == 5)
        _ = try await store.submit([.init(key(5), .remove)], to: home)
        #expect(try await trail.verify().broken == 6)
    }
}
