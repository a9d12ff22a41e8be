import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Who would hear of a change. The answer must be that of the code that matches changes.
@Suite struct AudienceTests {
    private typealias Own = SubscriptionBench

    private static func audience(
        _ own: Own, _ record: String, zone: String = "Shelves",
        _ reason: Subscription.Reasons = .updated
    ) throws -> Audience {
        try own.ask(
            AudienceAsk(own.database) {
                $0.change = AudienceAsk.Change {
                    $0.zone = zone
                    $0.record = record
                    $0.reason = reason
                }
            })
    }

    @Test func `each subscription says why it does not fire`() throws {
        var own = try Own()
        try own.modify(
            .create(Own.query("fires", [Own.titled("Sea")])),
            .create(Own.query("filter", [Own.titled("Sea"), Own.titled("Land")])),
            .create(Own.query("reason", on: .created)),
            .create(Own.query("type", type: "Loan")),
            .create(Own.query("zone", zone: "Other")),
            .create(Own.zone("watches", "Shelves")), .create(Own.zone("elsewhere", "Other")),
            .create(Own.database("all")))
        try own.follow()
        try own.follow(token: Bytes(repeating: 8, count: 16), as: .device)
        try own.bench.modify(.create("a", [text("title", "Sea")]))
        let audience = try Self.audience(own, "a")
        let verdicts = Dictionary(
            uniqueKeysWithValues: audience.findings.map { ($0.subscription, $0.verdict) })
        #expect(
            verdicts == [
                "fires": .fires, "filter": .filterFails, "reason": .otherReason,
                "type": .otherType, "zone": .otherZone, "watches": .fires,
                "elsewhere": .otherZone, "all": .fires,
            ])
        #expect(audience.findings.first { $0.subscription == "filter" }?.filter == 2)
        #expect(audience.hasRecord && !audience.isCut)
        #expect(audience.followers.map(\.kind) == [.poll, .device])
        #expect(audience.followers.allSatisfy { $0.position < audience.lastEvent })
        let missing = try Self.audience(own, "nobody")
        #expect(!missing.hasRecord)
        #expect(
            missing.findings.filter { $0.verdict == .noRecord }.map(\.kind)
                == Array(repeating: .query, count: 5))
        // Nobody else sees them.
        own.principal = Principal(kind: .user, userRecordName: "_somebody")
        #expect(throws: BenchError.self) { try Self.audience(own, "a") }
    }

    @Test(arguments: [UInt64(3), 11, 29])
    func `what it says of a change is what the change then fires`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        func draw(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }
        var own = try Own()
        let titles = ["Sea", "Land", "Sky"]
        for number in 0..<12 {
            let filters = (0..<draw(3)).map { _ in Own.titled(titles[draw(3)]) }
            let reasons = Subscription.Reasons(rawValue: UInt8(1 + draw(7)))
            let query = Own.query(
                "q\(number)", type: draw(4) == 0 ? "Loan" : "Book", filters, on: reasons,
                zone: draw(3) == 0 ? "Other" : nil)
            let choices: [Subscription] = [
                query, query, query, Own.zone("q\(number)", draw(2) == 0 ? "Shelves" : "Other"),
                Own.database("q\(number)"),
            ]
            try own.modify(.create(choices[draw(choices.count)]))
        }
        try own.follow()
        for step in 0..<40 {
            let zone = draw(2) == 0 ? "Shelves" : "Other"
            let name = "r\(step)"
            try own.bench.modify(
                in: zone, .create(name, [text("title", titles[draw(3)])]))
            _ = try own.taken()
            // What a deletion is asked of is the record as it is now.
            let audience = try Self.audience(own, name, zone: zone, .deleted)
            try own.bench.modify(in: zone, .delete(name))
            let fired = Set(try own.taken().map { String($0.prefix { $0 != " " }) })
            let said = Set(audience.findings.filter { $0.verdict == .fires }.map(\.subscription))
            #expect(fired == said, "seed \(seed), step \(step)")
        }
    }
}
