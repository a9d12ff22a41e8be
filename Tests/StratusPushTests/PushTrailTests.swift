import StratusModel
import Testing

@testable import StratusPush

@Suite struct PushTrailTests {
    private static let container = ContainerReference(
        container: "iCloud.org.example.app", environment: .development)

    private static func target(_ device: UInt8, user: String = "_anna") -> PushTarget {
        PushTarget(
            group: GroupID(1),
            database: DatabaseID(container: Self.container, scope: .private, owner: user),
            subscriber: user, token: Bytes(repeating: device, count: 16))
    }

    private static func change(_ event: UInt64, record: String? = "book") -> PushTrail.Change {
        PushTrail.Change(event: event, subscription: "books", zone: "shelf", record: record)
    }

    private static let all = PushTrail.Ask(container: Self.container, countMax: 1_000)

    @Test func `a change is followed from its match to its verdict and its settlement`() throws {
        var trail = PushTrail()
        trail.matched(Self.change(7), Self.target(1), lane: "apns", at: 10)
        trail.sent(Self.target(1), at: 11)
        trail.judged(Self.target(1), "accepted", at: 15)
        trail.settled(Self.target(1), at: 17)
        let entry = try #require(trail.entries(Self.all).first)
        #expect(trail.count == 1)
        #expect(entry.change == Self.change(7))
        #expect(entry.matchedAt == 10 && entry.sentAt == 11 && entry.verdictAt == 15)
        #expect(entry.verdict == "accepted" && entry.settledAt == 17 && entry.sendCount == 1)
    }

    @Test func `a repeat goes on in its entry, and the next change has its own`() {
        var trail = PushTrail()
        for time in [Int64(10), 20] {
            trail.matched(Self.change(7), Self.target(1), lane: "apns", at: time)
            trail.sent(Self.target(1), at: time + 1)
            trail.judged(Self.target(1), "again", at: time + 2)
        }
        trail.matched(Self.change(8), Self.target(1), lane: "apns", at: 30)
        let entries = trail.entries(Self.all)
        #expect(entries.map(\.change.event) == [7, 8])
        #expect(entries.map(\.sendCount) == [2, 0])
        #expect(entries.first?.matchedAt == 10 && entries.first?.sentAt == 21)
        #expect(entries.last?.verdict == nil)
    }

    @Test func `record, event, user and container choose`() {
        var trail = PushTrail()
        trail.matched(Self.change(1, record: "one"), Self.target(1), lane: "", at: 1)
        trail.matched(Self.change(2, record: "two"), Self.target(2), lane: "", at: 2)
        trail.matched(Self.change(2, record: nil), Self.target(3, user: "_ben"), lane: "", at: 3)
        func found(_ edit: (inout PushTrail.Ask) -> Void) -> [Int64] {
            var ask = Self.all
            edit(&ask)
            return trail.entries(ask).map(\.matchedAt)
        }
        #expect(found { _ in } == [1, 2, 3])
        #expect(found { $0.record = "two" } == [2])
        #expect(found { $0.event = 2 } == [2, 3])
        #expect(found { $0.subscriber = "_ben" } == [3])
        #expect(found { $0.countMax = 2 } == [2, 3])
        #expect(found { $0.container.environment = .production } == [])
    }

    @Test func `count and bytes are bounded, and the oldest go first`() {
        var trail = PushTrail(countMax: 8, sizeMax: 3_000)
        for event in 1...100 as ClosedRange<UInt64> {
            let target = Self.target(UInt8(event % 5))
            trail.matched(Self.change(event), target, lane: "apns", at: Int64(event))
            trail.judged(target, String(repeating: "é", count: Int(event) * 4), at: 0)
            #expect(trail.count <= 8 && trail.size <= 3_000)
        }
        let entries = trail.entries(Self.all)
        #expect(!entries.isEmpty)
        #expect(entries.map(\.change.event) == Array((101 - UInt64(entries.count))...100))
        #expect(entries.allSatisfy { ($0.verdict?.utf8.count ?? 0) <= PushTrail.verdictSizeMax })
        // What is forgotten is told nothing more, and nothing else in its place.
        trail.judged(Self.target(9), "accepted", at: 1)
        #expect(trail.entries(Self.all) == entries)
    }
}
