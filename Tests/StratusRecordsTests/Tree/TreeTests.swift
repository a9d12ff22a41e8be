import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Parents and children in custom zones: what may stand where, what may go, and what it costs.
@Suite struct TreeTests {
    private func bench() throws -> Bench {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        return bench
    }

    @Test func `a parent stays while others hang on it, by either deletion`() throws {
        var bench = try self.bench()
        try bench.modify(.create("p"), .create("k", parent: "p"))
        for kind in [RecordOperation.Kind.delete, .forceDelete] {
            let result = try bench.modify(RecordOperation(kind, recordName: "p"))[0]
            guard case .refused(let refusal) = result else {
                Issue.record("\(result)")
                continue
            }
            #expect(refusal.reason == .parentOfOthers)
            #expect(refusal.parentAndChild.map { [$0.parent, $0.child] } == ["p", "k"])
        }
        let cleared = RecordOperation(.forceUpdate, recordName: "k", parent: .cleared)
        #expect(try bench.modify(cleared, .delete("p"))[1].isDeleted)
    }

    @Test func `a subtree goes in one batch, in any order`() throws {
        let names = ["a", "b", "c", "d", "e", "f"]
        let orders = [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [2, 0, 5, 1, 4, 3]]
        for (order, isAtomic) in orders.flatMap({ [($0, true), ($0, false)] }) {
            var bench = try self.bench()
            try bench.modify(.create("a"))
            for (child, parent) in zip(names.dropFirst(), names) {
                try bench.modify(.create(child, parent: parent))
            }
            let modify = ModifyRecords(
                database: Bench.privateDatabase, zone: "Shelves", isAtomic: isAtomic,
                drawnIncarnation: ZoneIncarnation(1), operations: order.map { .delete(names[$0]) })
            let outcome = try bench.apply(.modifyRecords(modify))
            guard case .records(let modified) = outcome else { throw BenchError("\(outcome)") }
            #expect(modified.results.allSatisfy { $0.isDeleted }, "\(order)")
            #expect(bench.rows.count(.reference) == 0)
        }
    }

    @Test(arguments: [true, false])
    func `whoever goes along with another deletion of the batch is deleted`(isAtomic: Bool) throws {
        var bench = try self.bench()
        try bench.modify(
            .create("p"), .create("q", [reference("up", to: "p", .deleteSelf)]),
            .create("r", parent: "q"))
        let results = try bench.modify(
            atomic: isAtomic, .delete("q"), .delete("p"), .delete("r"))
        for result in results {
            guard case .deleted(tag: .some) = result else {
                Issue.record("\(results)")
                return
            }
        }
    }

    /// Each round frees one deletion, and all others are decided anew with hundreds that go along:
    /// one request would hold its partition for seconds.
    @Test(arguments: [false, true])
    func `a batch that looks at too many referrers leaves the rest to another entry`(
        isAtomic: Bool
    ) throws {
        let count = 60
        var bench = try self.bench()
        func make(_ operations: [RecordOperation]) throws {
            for start in stride(from: 0, to: operations.count, by: 200) {
                let part = Array(operations[start..<min(start + 200, operations.count)])
                let results = try bench.modify(part)
                #expect(results.allSatisfy { $0.refusal == nil }, "\(results)")
            }
        }
        try make((0..<count).map { .create("a\($0)") })
        let fields = (0..<count).map { reference("r\($0)", to: "a\($0)", .deleteSelf) }
        try make((0..<3).map { .create("b\($0)", fields) })
        try make(
            (0..<900).map { .create("f\($0)", [reference("up", to: "b\($0 % 3)", .deleteSelf)]) })
        for number in 0..<count {
            let above = number == 0 ? nil : "x\(number - 1)"
            try bench.modify(.create("k\(number)", parent: above))
            try bench.modify(
                .create(
                    "x\(number)",
                    [
                        reference("one", to: "b0", .deleteSelf),
                        reference("two", to: "k\(number)", .deleteSelf),
                    ]))
        }
        let names =
            (0..<(count - 1)).reversed().map { "k\($0)" } + (0..<count).map { "a\($0)" }
            + ["k\(count - 1)"]
        var left = names
        var entries = 0
        while !left.isEmpty, entries < 100 {
            entries += 1
            let results = try bench.modify(atomic: isAtomic, left.map { .delete($0) })
            if isAtomic { return #expect(results.contains { $0.refusal == .cascadeTooLarge }) }
            left = zip(left, results).filter { $1.refusal == .deferred }.map(\.0)
        }
        #expect(entries > 1 && left.isEmpty, "\(entries) entries, \(left.count) left")
    }

    @Test func `one that is kept keeps only those above it`() throws {
        var bench = try self.bench()
        try bench.modify(
            .create("a"), .create("b", parent: "a"), .create("c", parent: "b"),
            .create("x"), .create("y", parent: "x"))
        let results = try bench.modify(.delete("a"), .delete("b"), .delete("x"), .delete("y"))
        #expect(results[0].refusal == .parentOfOthers && results[1].refusal == .parentOfOthers)
        #expect(results[2].isDeleted && results[3].isDeleted)
        let atomic = try bench.modify(atomic: true, .delete("b"), .create("z"))
        #expect(atomic.map(\.refusal) == [.parentOfOthers, .atomicFailure])
    }

    @Test func `children that refer to it by DELETE_SELF go along`() throws {
        var bench = try self.bench()
        try bench.modify(
            .create("p"), .create("k", [reference("up", to: "p", .deleteSelf)], parent: "p"),
            .create("l", [reference("up", to: "k", .deleteSelf)], parent: "k"))
        // One below them does not, and holds them all.
        try bench.modify(.create("m", parent: "l"))
        let kept = try bench.modify(.delete("p"))[0]
        guard case .refused(let refusal) = kept else { throw BenchError("\(kept)") }
        #expect(refusal.parentAndChild.map { [$0.parent, $0.child] } == ["l", "m"])
        try bench.modify(.delete("m"))
        #expect(try bench.modify(.delete("p"))[0].isDeleted)
        #expect(try bench.lookup("l") == nil)
        #expect(bench.rows.count(.reference) == 0)
    }

    @Test func `circles and level 257 are refused`() throws {
        var bench = try self.bench()
        try bench.modify(.create("l1"))
        for level in 2...256 { try bench.modify(.create("l\(level)", parent: "l\(level - 1)")) }
        #expect(try bench.lookup("l256")?.parent == "l255")
        #expect(
            try bench.modify(.create("l257", parent: "l256"))[0].refusal == .parentCircle)
        // A record that moves counts by itself; what is below it may lie deeper.
        try bench.modify(.create("top"), .create("tall"), .create("below", parent: "tall"))
        let moved = RecordOperation(.forceUpdate, recordName: "tall", parent: .set("l255"))
        #expect(try bench.modify(moved)[0].saved?.parent == "l255")
        #expect(
            try bench.modify(.create("deeper", parent: "below"))[0].refusal == .parentCircle)
        for parent in ["l1", "l2", "l256"] {
            let circle = RecordOperation(.forceUpdate, recordName: "l1", parent: .set(parent))
            #expect(try bench.modify(circle)[0].refusal == .parentCircle, "\(parent)")
        }
    }

    @Test func `a name whose children still wait for a cascade is not made again`() throws {
        var bench = try self.bench()
        try bench.modify(.create("p"))
        for child in ["a", "b", "c"] {
            try bench.modify(
                .create(child, [reference("up", to: "p", .deleteSelf)], parent: "p"))
        }
        let rules = RecordRules(cascadeCountMax: 2)
        #expect(try bench.modify(rules: rules, .delete("p"))[0].isDeleted)
        #expect(try bench.modify(.create("p"))[0].refusal == .cascadePending)
        // Others are made, and what waits may be saved: it still goes.
        #expect(try bench.modify(.create("q"))[0].saved != nil)
        let touched = RecordOperation(.forceUpdate, recordName: "a", fields: [number("n", 1)])
        #expect(try bench.modify(touched)[0].saved?.parent == "p")
        // By none of these it would stay: its parent is gone.
        let restated = RecordOperation(
            .forceUpdate, recordName: "a", fields: [reference("up", to: "p", .deleteSelf)])
        let dropped = RecordOperation(.forceUpdate, recordName: "a", clearedFields: ["up"])
        for operation in [restated, dropped] {
            #expect(try bench.modify(operation)[0].refusal == .treeParentMissing)
        }
        let freed = RecordOperation(
            .forceUpdate, recordName: "b", clearedFields: ["up"], parent: .cleared)
        #expect(try bench.modify(freed)[0].saved != nil)
        try bench.finishJobs(budget: 1)
        #expect(try bench.lookup("a") == nil && bench.lookup("c") == nil)
        #expect(try bench.lookup("b")?.parent == nil)
        #expect(try bench.modify(.create("p"))[0].saved != nil)
    }

    @Test func `a cascade leaves who has children that stay, and they lose the parent that went`()
        throws
    {
        var bench = try self.bench()
        try bench.modify(.create("p"))
        for child in ["a", "b", "c"] {
            try bench.modify(
                .create(child, [reference("up", to: "p", .deleteSelf)], parent: "p"))
        }
        try bench.modify(.create("k", parent: "b"))
        let before = try bench.changes().position
        #expect(try bench.modify(rules: RecordRules(cascadeCountMax: 2), .delete("p"))[0].isDeleted)
        try bench.finishJobs(budget: 2)
        #expect(try bench.lookup("a") == nil && bench.lookup("c") == nil)
        let left = try #require(try bench.lookup("b"))
        #expect(left.parent == nil && left.fields.count == 1)
        #expect(try bench.lookup("k")?.parent == "b")
        #expect(
            try bench.changes(after: before).changes.map(\.name).sorted() == ["a", "b", "c", "p"])
    }

    @Test func `default zones and public databases keep no tree`() throws {
        var bench = Bench()
        for database in [Bench.privateDatabase, Bench.publicDatabase] {
            func modify(_ operation: RecordOperation) throws -> ModifiedRecords.Result {
                try bench.modify(in: ZoneID.defaultName, of: database, operation)[0]
            }
            #expect(try modify(.create("k", parent: "p")).refusal == .parentMissing)
            _ = try modify(.create("p"))
            #expect(try modify(.create("k", parent: "p")).saved != nil)
            #expect(try modify(.delete("p")).isDeleted)
        }
        #expect(bench.rows.count(.reference) == 0)
    }

    /// What a command reads and writes, by the rows that a counting view saw.
    @Test func `a save without a parent, or with the one it has, touches no row of the tree`()
        throws
    {
        var bench = try self.bench()
        try bench.modify(.create("p"), .create("k", parent: "p"), .create("r"))
        let tree = bench.rows.contents(of: .reference)
        let update = RecordOperation(.forceUpdate, recordName: "k", fields: [number("n", 1)])
        let stated = RecordOperation(
            .forceUpdate, recordName: "k", fields: [number("n", 2)], parent: .set("p"))
        let root = RecordOperation(.forceUpdate, recordName: "r", fields: [number("n", 1)])
        for operation in [update, stated, root] {
            #expect(try bench.modify(operation)[0].saved != nil)
            #expect(bench.rows.contents(of: .reference) == tree)
        }
    }
}
