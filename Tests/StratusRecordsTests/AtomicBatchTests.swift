import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// Reference part 1, §5.5.
@Suite struct AtomicBatchTests {
    @Test
    func `G-29 one refused operation stores nothing, culprits keep their code, others say atomic`()
        throws
    {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("old", [number("n", 1)]))
        let before = bench.rows.contents
        let results = try bench.modify(
            atomic: true, .create("new"), .update("old", ChangeTag(77)), .delete("old2"),
            .update("ghost", nil))
        #expect(
            results.map(\.refusal) == [.atomicFailure, .tagMismatch, .atomicFailure, .notFound])
        #expect(bench.rows.contents == before)
        #expect(try bench.lookup("new") == nil)
    }

    @Test func `a failed atomic batch does not use up tags`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let one = try #require(try bench.modify(.create("a"))[0].saved)
        _ = try bench.modify(atomic: true, .create("b"), .create("a"))
        let two = try #require(try bench.modify(atomic: true, .create("b"), .create("c"))[0].saved)
        #expect(two.tag.raw == one.tag.raw + 1)
    }

    @Test func `a single operation that fails answers its own error`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        #expect(try bench.modify(atomic: true, .update("x", nil))[0].refusal == .notFound)
    }

    @Test func `I-6 an atomic batch that succeeds appears whole in the feed`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let results = try bench.modify(
            atomic: true, .create("a"), .create("b"), .create("c"))
        #expect(results.allSatisfy { $0.saved != nil })
        let page = try bench.changes(limit: 2)
        #expect(page.moreComing)
        let rest = try bench.changes(after: page.position, limit: 2)
        #expect(!rest.moreComing)
        #expect((page.changes + rest.changes).map(\.name) == ["a", "b", "c"])
    }

    @Test func `a first write that is refused makes no zone`() throws {
        var bench = Bench()
        let before = bench.rows.contents
        _ = try bench.modify(in: ZoneID.defaultName, .update("x", nil))
        #expect(bench.rows.contents == before)
    }
}
