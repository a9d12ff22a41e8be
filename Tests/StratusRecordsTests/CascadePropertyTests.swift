import Foundation
import StratusDoubles
import StratusModel
import StratusQuery
import StratusRecords
import StratusRows
import StratusSimulation
import Testing

/// Cascades longer than one entry, while clients recreate records and save others that refer to
/// them. The tests check the records left when jobs, or mail, have finished everything.
/// `STRATUS_SEEDS` sets the number of seeds.
@Suite struct CascadePropertyTests {
    static let seedCount =
        ProcessInfo.processInfo.environment["STRATUS_SEEDS"].flatMap { UInt64($0) } ?? 60

    private static let names =
        ["p0", "p1"] + ["d", "e"].flatMap { level in (0..<4).map { "\(level)\($0)" } }

    /// Records of the second and third kind refer to those of the one before, mostly to the same.
    private static func target(of name: String, using random: inout SeededGenerator) -> String? {
        guard let level = ["d": "p", "e": "d"][String(name.prefix(1))],
            let number = Int(name.dropFirst())
        else { return nil }
        let isOther = Int.random(in: 0..<5, using: &random) == 0
        return "\(level)\((isOther ? number + 1 : number) % 2)"
    }

    /// A save that states its record's reference, a save that does not speak of it, or a deletion.
    private static func operation(
        _ field: (_ target: String) -> Field, _ step: Int, using random: inout SeededGenerator
    ) -> RecordOperation {
        let name = Self.names.randomElement(using: &random)!
        let kind = Int.random(in: 0..<8, using: &random)
        if kind == 0 { return RecordOperation(.forceDelete, recordName: name) }
        var fields = [number("n", Int64(step))]
        if kind > 2, let target = Self.target(of: name, using: &random) {
            fields.append(field(target))
        }
        return RecordOperation(
            kind == 3 ? .forceReplace : .forceUpdate, recordName: name, recordType: "Book",
            fields: fields)
    }

    private struct Life {
        var problem: String?
        var stayCount = 0
        var goCount = 0
    }

    /// One zone whose cascades are left to jobs.
    private static func live(_ seed: UInt64) throws -> Life {
        var random = SeededGenerator(seed: seed)
        var bench = Bench()
        bench.keepsCommands = true
        var model = CascadeModel(field: "t")
        try bench.zones(.create, "Shelves")
        for step in 0..<80 {
            if Int.random(in: 0..<8, using: &random) == 0 {
                let budget = Int.random(in: 1...3, using: &random)
                _ = try bench.apply(
                    .continueJobs(ContinueJobs(budget: budget)), as: Bench.system)
                continue
            }
            let operation = Self.operation(
                { reference("t", to: $0, .deleteSelf) }, step, using: &random)
            let rules = RecordRules(cascadeCountMax: .random(in: 1...4, using: &random))
            for result in try bench.modify(rules: rules, operation) {
                model.apply(operation, result)
            }
        }
        try bench.finishJobs()
        var found: [String: Record] = [:]
        for name in Self.names { found[name] = try bench.lookup(name) }
        // A replica that has seen nothing else has the same.
        let rows = Rows()
        var state = DataState()
        for (command, position) in bench.commands {
            _ = try state.apply(command, at: position, over: rows)
        }
        #expect(rows.contents == bench.rows.contents, "seed \(seed)")
        let counts = model.sureCounts
        return Life(
            problem: model.problem(in: found), stayCount: counts.stay, goCount: counts.go)
    }

    @Test func `a cascade's jobs take what was there, and nothing that was said since`() throws {
        var (stayCount, goCount) = (0, 0)
        for seed in 0..<Self.seedCount {
            let life = try Self.live(seed)
            #expect(life.problem == nil, "seed \(seed): \(life.problem ?? "")")
            stayCount += life.stayCount
            goCount += life.goCount
        }
        #expect(stayCount > 100 && goCount > 20, "\(stayCount) stay, \(goCount) go")
    }

    @Test func `a cascade's mail takes what was there, and nothing that was said since`() throws {
        var (stayCount, goCount) = (0, 0)
        for seed in 0..<Self.seedCount {
            var world = BucketWorld(
                seed: seed, bucketCount: 2 + Int(seed % 3),
                outboxCountMax: seed % 3 == 0 ? 3 : 50)
            var model = CascadeModel(field: "t")
            for step in 0..<100 {
                switch Int.random(in: 0..<8, using: &world.random) {
                case 0, 1:
                    try world.carry(from: world.groups.randomElement(using: &world.random)!)
                case 2: try world.work(in: world.groups.randomElement(using: &world.random)!)
                case 3: world.advance(by: Int64.random(in: 0...200, using: &world.random))
                default:
                    let operation = Self.operation(
                        { .refers("t", to: $0, .deleteSelf) }, step, using: &world.random)
                    guard let result = try world.finish(try world.prepare(operation)) else {
                        continue
                    }
                    model.apply(operation, result)
                }
            }
            try world.settle()
            var found: [String: Record] = [:]
            for name in Self.names { found[name] = try world.lookup(name) }
            let problem = model.problem(in: found)
            #expect(problem == nil, "seed \(seed): \(problem ?? "")")
            stayCount += model.sureCounts.stay
            goCount += model.sureCounts.go
            let links = try world.links(among: Self.names)
            #expect(links.unconfirmedCount == 0, "seed \(seed)")
        }
        #expect(stayCount > 100 && goCount > 20, "\(stayCount) stay, \(goCount) go")
    }
}
