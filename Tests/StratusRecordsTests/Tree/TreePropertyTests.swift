import Foundation
import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import StratusSimulation
import Testing

@testable import StratusRecords

/// Random trees of a custom zone. In one half of the lives everything ends in its entry, and a model
/// that looks at all records says what each operation comes to. In the other half cascades are left
/// to jobs. After each step the rows of the tree are those that the live records call for.
/// `STRATUS_SEEDS` sets the number of seeds.
@Suite struct TreePropertyTests {
    private static let seedCount =
        ProcessInfo.processInfo.environment["STRATUS_SEEDS"].flatMap { UInt64($0) } ?? 24
    private static let stepCount = 150
    private static let names = (0..<9).map { "r\($0)" }

    private struct Life {
        let seed: UInt64
        let hasJobs: Bool
        var random: SeededGenerator
        var bench = Bench()
        var model = RecordModel()
        /// How often a parent kept its deletion away, and how often a batch overcame that.
        var keptCount = 0
        var waitedCount = 0

        init(_ seed: UInt64, bugs: PlantedBugs) throws {
            self.seed = seed
            self.hasJobs = seed % 2 == 1
            self.random = SeededGenerator(seed: seed)
            self.bench.state = DataState(bugs: bugs)
            try self.bench.zones(.create, "Shelves")
            _ = self.model.apply(
                ModifyZones(
                    database: Bench.privateDatabase,
                    operations: [
                        .init(.create, zone: "Shelves", drawnIncarnation: ZoneIncarnation(1))
                    ]))
        }

        private mutating func draw(_ count: Int) -> Int {
            Int.random(in: 0..<count, using: &self.random)
        }
        private mutating func name() -> String {
            TreePropertyTests.names[self.draw(TreePropertyTests.names.count)]
        }

        private mutating func operation(_ name: String) -> RecordOperation {
            if self.draw(4) == 0 { return .delete(name) }
            let kind: RecordOperation.Kind =
                [.create, .forceUpdate, .forceUpdate, .forceReplace][self.draw(4)]
            var parent = RecordOperation.ParentChange.unmentioned
            var fields = [number("n", Int64(self.draw(100)))]
            var target = self.name()
            switch self.draw(5) {
            case 0: parent = .cleared
            case 1...3: parent = .set(target)
            default: break
            }
            if self.draw(3) == 0 { target = self.name() }
            switch self.draw(6) {
            case 0...2: fields.append(reference("up", to: target, .deleteSelf))
            case 3: fields.append(reference("needs", to: target, .validate))
            default: break
            }
            return RecordOperation(
                kind, recordName: name, recordType: "Book", fields: fields,
                clearedFields: self.draw(5) == 0 ? ["up"] : [], parent: parent)
        }

        /// - Returns: what is not as it must be.
        mutating func step() throws -> String? {
            if self.draw(10) == 0 {
                self.bench.state.forget()
                let budget = 1 + self.draw(3)
                _ = try self.bench.apply(
                    .continueJobs(ContinueJobs(budget: budget)), as: Bench.system)
                return try self.checkRows(isSettled: false)
            }
            var names: [String] = []
            for _ in 0..<(1 + self.draw(5)) {
                let name = self.name()
                if !names.contains(name) { names.append(name) }
            }
            let limit = self.hasJobs ? 1 + self.draw(3) : 2_000
            let modify = ModifyRecords(
                database: Bench.privateDatabase, zone: "Shelves", isAtomic: self.draw(3) == 0,
                drawnIncarnation: ZoneIncarnation(1), rules: RecordRules(cascadeCountMax: limit),
                operations: names.map { self.operation($0) })
            let before = try self.live()
            let outcome = try self.bench.apply(.modifyRecords(modify))
            guard case .records(let modified) = outcome else { return "\(outcome)" }
            for (operation, result) in zip(modify.operations, modified.results) {
                if result.refusal == .parentOfOthers { self.keptCount += 1 }
                if result.isDeleted,
                    before.values.contains(where: { $0.parent == operation.recordName })
                {
                    self.waitedCount += 1
                }
            }
            if let problem = try self.checkCaught(modify, modified, before) { return problem }
            if !self.hasJobs {
                let told = self.model.apply(
                    modify, by: Bench.user, at: self.bench.time.milliseconds)
                let expected = (told ?? []).map { Self.word($0) }
                let found = modified.results.map { Self.word($0) }
                if found != expected { return "\(modify.operations): \(found), not \(expected)" }
            }
            return try self.checkRows(isSettled: false)
        }

        private static func word(_ result: RecordModel.Result) -> String {
            switch result {
            case .saved(let record): "saved \(record.name) below \(record.parent ?? "-")"
            case .deleted(let tag): "deleted \(tag?.raw ?? 0)"
            case .refused(let reason): "\(reason)"
            }
        }

        private static func word(_ result: ModifiedRecords.Result) -> String {
            switch result {
            case .saved(let saved):
                "saved \(saved.record?.name ?? "?") below \(saved.record?.parent ?? "-")"
            case .deleted(let tag): "deleted \(tag?.raw ?? 0)"
            case .refused(let refusal): "\(refusal.reason)"
            case .left: "left"
            }
        }

        private func live() throws -> [String: Record] {
            var live: [String: Record] = [:]
            for name in TreePropertyTests.names { live[name] = try self.bench.lookup(name) }
            return live
        }

        /// A record that is made has no children but those that this batch gave it.
        private func checkCaught(
            _ modify: ModifyRecords, _ modified: ModifiedRecords, _ before: [String: Record]
        ) throws -> String? {
            let mentioned = Set(modify.operations.map(\.recordName))
            for (operation, result) in zip(modify.operations, modified.results)
            where result.saved != nil && before[operation.recordName] == nil {
                for (name, record) in before
                where record.parent == operation.recordName && !mentioned.contains(name) {
                    if try self.bench.lookup(name)?.parent == operation.recordName {
                        return "\(operation.recordName) was made and has the child \(name)"
                    }
                }
            }
            return nil
        }

        private func zone() throws -> ZoneRow? {
            let view = self.bench.rows.view
            guard let database = try StoredRows.database(Bench.privateDatabase, over: view) else {
                return nil
            }
            return try StoredRows.zone("Shelves", in: database.number, over: view)
        }

        /// - Parameter isSettled: all jobs are done.
        func checkRows(isSettled: Bool) throws -> String? {
            guard let zone = try self.zone() else { return "no zone" }
            let view = self.bench.rows.view
            let live = try self.live()
            for (name, record) in live {
                guard let parent = record.parent, live[parent] == nil else { continue }
                let waits = TreeLink(of: record)?.goesAlong == true && zone.hasCascades
                if isSettled || !waits { return "\(name) hangs on \(parent), which is gone" }
            }
            if isSettled, zone.hasCascades { return "cascades never end" }
            for name in TreePropertyTests.names {
                var above: [String] = [name]
                while let last = above.last, let next = live[last]?.parent, above.count < 20 {
                    above.append(next)
                }
                if above.count == 20 { return "a circle above \(name)" }
                let row = try TreeRow.stored(
                    .reference, Keys.tree(zone.number, name), over: view)
                if row?.parent != live[name]?.parent {
                    return "row of \(name): \(row?.parent ?? "-")"
                }
                if let row, let record = live[name], row.tag > record.tag.raw { return "late tag" }
                let children = live.values.filter { $0.parent == name }
                for kind in [ReferenceKind.child, .childThatGoes] {
                    let expected = children.filter { TreeLink(of: $0)?.kind == kind }.map(\.name)
                    let start = Keys.references(zone.number, target: name, kind)
                    let found = try view.keys(
                        .reference, from: start, to: Keys.end(of: start), limit: .max
                    ).map { String(decoding: $0.dropFirst(start.count), as: UTF8.self) }
                    if found != expected.sorted() { return "\(kind) of \(name): \(found)" }
                }
                var counts = ReferrerCounts()
                if let row = try view.row(
                    .reference, Keys.referrerCount(zone.number, target: name))
                {
                    counts = try ReferrerCounts(decoding: row)
                }
                let staying = children.filter { TreeLink(of: $0)?.goesAlong == false }.count
                if counts.children != children.count || counts.stayingChildren != staying {
                    return "\(name) counts \(counts), and has \(children.map(\.name))"
                }
            }
            return nil
        }
    }

    private static func live(
        _ seed: UInt64, bugs: PlantedBugs = PlantedBugs()
    ) throws -> (problem: String?, keptCount: Int, waitedCount: Int) {
        var life = try Life(seed, bugs: bugs)
        var problem: String?
        for step in 0..<Self.stepCount where problem == nil {
            problem = try life.step().map { "seed \(seed) step \(step): \($0)" }
        }
        if problem == nil {
            try life.bench.finishJobs(budget: 3)
            problem = try life.checkRows(isSettled: true).map { "seed \(seed) at the end: \($0)" }
        }
        return (problem, life.keptCount, life.waitedCount)
    }

    @Test func `the tree is what the records say, and no child is left without its parent`() throws
    {
        var (keptCount, waitedCount) = (0, 0)
        for seed in 1...Self.seedCount {
            let life = try Self.live(seed)
            #expect(life.problem == nil)
            keptCount += life.keptCount
            waitedCount += life.waitedCount
        }
        #expect(keptCount > 100 && waitedCount > 50, "\(keptCount) kept, \(waitedCount) gone")
    }

    @Test(
        .enabled(if: PlantedBugs.isPossible),
        arguments: [
            PlantedBug.childCountNotKept, .danglingChildCaught, .deletionDecidedOnce, .circleTaken,
        ])
    func `a planted bug is found`(bug: PlantedBug) throws {
        #if STRATUS_PLANTED
            let isFound = try (1...120).contains { seed in
                try Self.live(seed, bugs: PlantedBugs([bug])).problem != nil
            }
            #expect(isFound)
        #endif
    }
}
