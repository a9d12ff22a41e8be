import StratusDoubles
import StratusModel
import StratusRecords
import Testing

/// Reference part 1, §4.4, and the blueprint's §8.
@Suite struct ReferenceTests {
    private func bench() throws -> Bench {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        return bench
    }

    @Test func `NONE: the target may be missing and may go`() throws {
        var bench = try self.bench()
        #expect(
            try bench.modify(.create("loan", [reference("book", to: "ghost", .none)]))[0].saved
                != nil)
        try bench.modify(.create("book"))
        try bench.modify(.create("loan2", [reference("book", to: "book", .none)]))
        #expect(try bench.modify(.delete("book"))[0].isDeleted)
        #expect(try bench.lookup("loan2") != nil)
    }

    @Test func `VALIDATE to nothing is refused`() throws {
        var bench = try self.bench()
        let result = try bench.modify(.create("loan", [reference("book", to: "x", .validate)]))[0]
        #expect(result == .refused(RecordRefusal(.referenceTargetMissing, "x")))
        try bench.modify(.create("loan"))
        let list = Field(
            name: "books",
            value: .list(
                .reference,
                ["loan", "x"].map {
                    .reference(
                        Reference(
                            recordName: $0, zone: ZoneID(name: "Shelves", owner: Bench.owner),
                            action: .validate))
                }))
        #expect(
            try bench.modify(.create("other", [list]))[0].refusal == .referenceTargetMissing)
    }

    @Test func `VALIDATE keeps its target until the reference is gone`() throws {
        var bench = try self.bench()
        try bench.modify(.create("book"), .create("loan", [reference("b", to: "book", .validate)]))
        #expect(
            try bench.modify(.delete("book"))[0]
                == .refused(RecordRefusal(.referenced, "loan")))
        try bench.modify(
            RecordOperation(.forceUpdate, recordName: "loan", clearedFields: ["b"]))
        #expect(try bench.modify(.delete("book"))[0].isDeleted)
        #expect(bench.rows.count(.reference) == 0)
    }

    @Test func `VALIDATE: targets are saved before sources, whatever the order`() throws {
        var bench = try self.bench()
        let results = try bench.modify(
            atomic: true, .create("c", [reference("r", to: "b", .validate)]),
            .create("b", [reference("r", to: "a", .validate)]), .create("a"))
        #expect(results.map { $0.saved?.name } == ["c", "b", "a"])
        #expect(try bench.changes().changes.map(\.name) == ["a", "b", "c"])
    }

    @Test func `VALIDATE: a target that fails fails its sources too`() throws {
        var bench = try self.bench()
        let results = try bench.modify(
            .create("b", [reference("r", to: "a", .validate)]),
            RecordOperation(.create, recordName: "a"))
        #expect(results.map(\.refusal) == [.referenceTargetMissing, .typeMissing])
    }

    @Test func `VALIDATE: a circle of new records cannot be entered`() throws {
        var bench = try self.bench()
        let results = try bench.modify(
            .create("a", [reference("r", to: "b", .validate)]),
            .create("b", [reference("r", to: "a", .validate)]))
        // Deciding `a` needs `b` first, and `b` finds no `a`.
        #expect(results.map(\.refusal) == [.referenceTargetMissing, .referenceTargetMissing])
        #expect(
            try bench.modify(.create("me", [reference("r", to: "me", .validate)]))[0].saved != nil)
        #expect(try bench.modify(.delete("me"))[0].isDeleted)
    }

    @Test func `VALIDATE: deleting source and target in one batch works in that order only`() throws
    {
        var bench = try self.bench()
        try bench.modify(.create("book"), .create("loan", [reference("b", to: "book", .validate)]))
        let wrong = try bench.modify(atomic: true, .delete("book"), .delete("loan"))
        #expect(wrong.map(\.refusal) == [.referenced, .atomicFailure])
        let right = try bench.modify(atomic: true, .delete("loan"), .delete("book"))
        #expect(right.allSatisfy { $0.isDeleted })
    }

    @Test func `DELETE_SELF: the cascade is transitive and stands in the feed`() throws {
        var bench = try self.bench()
        try bench.modify(
            .create("shelf"), .create("book", [reference("s", to: "shelf", .deleteSelf)]),
            .create("loan", [reference("b", to: "book", .deleteSelf)]), .create("other"))
        let before = try bench.changes()
        let results = try bench.modify(.delete("shelf"))
        #expect(results.count == 1, "victims are not listed in the answer")
        let page = try bench.changes(after: before.position)
        #expect(page.changes.map(\.name) == ["shelf", "book", "loan"])
        #expect(page.changes.allSatisfy { $0.isDeletion })
        #expect(try bench.lookup("other") != nil)
        #expect(bench.rows.count(.reference) == 0)
    }

    @Test func `DELETE_SELF: a circle ends, and a record may refer to itself`() throws {
        var bench = try self.bench()
        try bench.modify(
            .create("a", [reference("r", to: "b", .deleteSelf)]),
            .create(
                "b", [reference("r", to: "a", .deleteSelf), reference("s", to: "b", .deleteSelf)]))
        try bench.modify(.delete("a"))
        #expect(try bench.changes().changes.map(\.isDeletion) == [true, true])
        #expect(bench.rows.count(.reference) == 0)
    }

    @Test func `DELETE_SELF: the referrer may come before its target`() throws {
        var bench = try self.bench()
        #expect(
            try bench.modify(.create("book", [reference("s", to: "shelf", .deleteSelf)]))[0].saved
                != nil)
        try bench.modify(.create("shelf"))
        try bench.modify(.delete("shelf"))
        #expect(try bench.lookup("book") == nil)
    }

    @Test func `DELETE_SELF: a VALIDATE reference from outside stops the whole cascade`() throws {
        var bench = try self.bench()
        try bench.modify(
            .create("shelf"), .create("book", [reference("s", to: "shelf", .deleteSelf)]),
            .create("loan", [reference("b", to: "book", .validate)]))
        #expect(
            try bench.modify(.delete("shelf"))[0]
                == .refused(RecordRefusal(.referenced, "loan")))
        #expect(try bench.lookup("shelf") != nil)
        // Inside the cascade it stops nothing.
        try bench.modify(
            RecordOperation(
                .forceUpdate, recordName: "loan",
                fields: [reference("s", to: "shelf", .deleteSelf)]))
        #expect(try bench.modify(.delete("shelf"))[0].isDeleted)
        #expect(try bench.changes().changes.map(\.isDeletion) == [true, true, true])
    }

    @Test func `DELETE_SELF: operations of one batch see each other's references`() throws {
        var bench = try self.bench()
        try bench.modify(
            .create("shelf"), .create("book", [reference("s", to: "shelf", .deleteSelf)]))
        let results = try bench.modify(
            RecordOperation(.forceUpdate, recordName: "book", clearedFields: ["s"]),
            .create("new", [reference("s", to: "shelf", .deleteSelf)]), .delete("shelf"))
        #expect(results.allSatisfy { $0.refusal == nil })
        #expect(try bench.lookup("book") != nil)
        #expect(try bench.lookup("new") == nil)
        #expect(try bench.changes().changes.map(\.name) == ["book", "shelf", "new"])
    }

    @Test func `DELETE_SELF: as many referrers as the limit, not one more`() throws {
        var bench = try self.bench()
        let rules = RecordRules(deleteSelfReferrerCountMax: 3)
        try bench.modify(.create("t"))
        let results = try bench.modify(
            rules: rules, (0..<4).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        #expect(results.map(\.refusal) == [nil, nil, nil, .tooManyReferrers])
        try bench.modify(.delete("r0"))
        #expect(
            try bench.modify(rules: rules, .create("r4", [reference("t", to: "t", .deleteSelf)]))[0]
                .saved != nil)
        // One that is there may be saved again.
        #expect(
            try bench.modify(
                rules: rules,
                RecordOperation(
                    .forceReplace, recordName: "r4", fields: [reference("t", to: "t", .deleteSelf)]
                ))[0].saved != nil)
    }

    @Test func `a parent must exist, or be made in the same batch`() throws {
        var bench = try self.bench()
        #expect(
            try bench.modify(.create("page", parent: "book"))[0]
                == .refused(RecordRefusal(.treeParentMissing, "book")))
        let results = try bench.modify(.create("page", parent: "book"), .create("book"))
        #expect(results[0].saved?.parent == "book")
        #expect(
            try bench.modify(RecordOperation(.forceUpdate, recordName: "page"))[0].saved?.parent
                == "book")
        #expect(
            try bench.modify(RecordOperation(.forceReplace, recordName: "page"))[0].saved?.parent
                == nil)
        #expect(
            try bench.modify(
                RecordOperation(.forceUpdate, recordName: "page", parent: .set("page")))[0].refusal
                == .parentCircle)
    }

    // MARK: Cascades larger than one entry

    @Test func `an atomic batch whose cascade is too large is refused, naming the limit`()
        throws
    {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify((0..<10).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        let before = bench.rows.contents
        let rules = RecordRules(cascadeCountMax: 10)
        #expect(
            try bench.modify(atomic: true, rules: rules, .delete("t"), .create("u"))[0]
                == .refused(RecordRefusal(.cascadeTooLarge, "10")))
        #expect(bench.rows.contents == before)
        try bench.modify(.delete("r9"))
        #expect(
            try bench.modify(atomic: true, rules: rules, .delete("t"), .create("u"))[0].isDeleted)
        #expect(bench.rows.count(.job) == 0)
    }

    @Test func `a delete alone in an atomic batch goes on by jobs like any other`() throws {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify((0..<10).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        let rules = RecordRules(cascadeCountMax: 10)
        #expect(try bench.modify(atomic: true, rules: rules, .delete("t"))[0].isDeleted)
        #expect(bench.rows.count(.job) == 1)
    }

    @Test func `a large cascade deletes its root now and the rest by jobs`() throws {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify(
            (0..<100).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        try bench.modify(
            (0..<100).map { .create("s\($0)", [reference("r", to: "r\($0)", .deleteSelf)]) })
        let rules = RecordRules(cascadeCountMax: 50)
        #expect(try bench.modify(rules: rules, .delete("t"))[0].isDeleted)
        #expect(try bench.lookup("r7") != nil)
        #expect(try bench.ask(.jobs) == .jobs(isWaiting: true))
        #expect(try bench.finishJobs(budget: 30) > 5)
        #expect(try bench.lookup("r7") == nil)
        #expect(try bench.lookup("s7") == nil)
        #expect(bench.rows.count(.reference) == 0)
        #expect(try bench.ask(.jobs) == .jobs(isWaiting: false))
    }

    @Test func `a cascade's job spares records made, and references written, after the delete`()
        throws
    {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify(
            (0..<40).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        let rules = RecordRules(cascadeCountMax: 5)
        try bench.modify(rules: rules, .delete("t"))
        // The root lives again; one referrer was made again, one new one joined.
        try bench.modify(.create("t"), .delete("r39"))
        try bench.modify(
            .create("r39", [reference("t", to: "t", .deleteSelf)]),
            .create("new", [reference("t", to: "t", .deleteSelf)]))
        try bench.finishJobs(budget: 7)
        let live = try bench.changes().changes.filter { !$0.isDeletion }.map(\.name)
        #expect(Set(live) == ["t", "r39", "new"])
        // And they still hang on the new root.
        try bench.modify(.delete("t"))
        #expect(try bench.lookup("new") == nil)
    }

    /// Forty children of a target that is deleted and made again, and no job has come to them yet.
    private func benchWithTargetMadeAgain() throws -> Bench {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify(
            (0..<40).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        try bench.modify(rules: RecordRules(cascadeCountMax: 5), .delete("t"))
        try bench.modify(.create("t"))
        return bench
    }

    @Test func `a cascade's job spares whose save has stated its reference again`() throws {
        var bench = try self.benchWithTargetMadeAgain()
        let stated = [reference("t", to: "t", .deleteSelf)]
        for (name, kind) in [
            ("r7", RecordOperation.Kind.forceUpdate), ("r8", .forceReplace), ("r9", .update),
        ] {
            let tag = try bench.lookup(name)?.tag.text
            let saved = try bench.modify(
                RecordOperation(
                    kind, recordName: name, recordType: "Book",
                    changeTag: kind == .update ? tag : nil, fields: stated))
            #expect(saved[0].saved != nil, "\(name): \(saved[0])")
        }
        try bench.finishJobs(budget: 7)
        let live = try bench.changes().changes.filter { !$0.isDeletion }.map(\.name)
        #expect(Set(live) == ["t", "r7", "r8", "r9"])
        // And they hang on the new target.
        try bench.modify(.delete("t"))
        #expect(try bench.changes().changes.allSatisfy(\.isDeletion))
        #expect(bench.rows.count(.reference) == 0)
    }

    @Test func `a save that does not speak of its reference leaves it with the old target`() throws
    {
        var bench = try self.benchWithTargetMadeAgain()
        let saved = try bench.modify(
            RecordOperation(.forceUpdate, recordName: "r7", fields: [number("n", 1)]))
        #expect(saved[0].saved != nil)
        try bench.finishJobs(budget: 7)
        #expect(try bench.lookup("r7") == nil)
        #expect(bench.rows.count(.reference) == 0)
    }

    @Test func `a reference that is stated behind the deletion in one batch is spared`()
        throws
    {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify(
            (0..<10).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        try bench.modify(rules: RecordRules(cascadeCountMax: 5), .delete("t"))
        try bench.modify(.create("t"))
        let restated = RecordOperation(
            .forceUpdate, recordName: "r3", fields: [reference("t", to: "t", .deleteSelf)])
        // The first deletion's job is still there; this one begins it anew.
        try bench.modify(rules: RecordRules(cascadeCountMax: 5), .delete("t"), restated)
        try bench.modify(.create("t"))
        try bench.finishJobs(budget: 3)
        let live = try bench.changes().changes.filter { !$0.isDeletion }.map(\.name)
        #expect(Set(live) == ["t", "r3"])
    }

    @Test func `a cascade's job leaves what VALIDATE protects, its reference dangling`() throws {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify(
            (0..<10).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        try bench.modify(.create("guard", [reference("r", to: "r3", .validate)]))
        try bench.modify(rules: RecordRules(cascadeCountMax: 5), .delete("t"))
        try bench.finishJobs()
        let live = try bench.changes().changes.filter { !$0.isDeletion }.map(\.name)
        #expect(Set(live) == ["r3", "guard"])
    }

    @Test func `a deleted zone takes its cascades with it`() throws {
        var bench = try self.bench()
        try bench.modify(.create("t"))
        try bench.modify(
            (0..<10).map { .create("r\($0)", [reference("t", to: "t", .deleteSelf)]) })
        try bench.modify(rules: RecordRules(cascadeCountMax: 5), .delete("t"))
        try bench.zones(.delete, "Shelves")
        try bench.zones(.create, "Shelves")
        try bench.modify(.create("r1"))
        try bench.finishJobs()
        #expect(try bench.changes().changes.map(\.name) == ["r1"])
        #expect(bench.rows.count(.record) == 1)
        #expect(bench.rows.count(.reference) == 0)
    }
}
