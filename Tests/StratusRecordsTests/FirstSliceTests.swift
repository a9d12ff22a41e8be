import StratusModel
import StratusRecords
import Testing

@Suite struct FirstSliceTests {
    @Test func `a record created in the private default zone can be looked up whole`() throws {
        var bench = Bench()
        let fields = [number("pages", 312), text("title", "Sea Roads")]
        let results = try bench.modify(in: ZoneID.defaultName, .create("book-1", fields))
        let saved = try #require(results[0].saved)
        #expect(saved.type == "Book")
        #expect(saved.fields == fields)
        #expect(saved.created == saved.modified)
        #expect(saved.created.userRecordName == Bench.owner)
        #expect(saved.created.milliseconds == bench.time.milliseconds)
        #expect(try bench.lookup("book-1", in: ZoneID.defaultName) == saved)
        #expect(try bench.lookup("ghost", in: ZoneID.defaultName) == nil)
    }

    @Test func `create, update, conflict, delete and the feed of a custom zone`() throws {
        var bench = Bench()
        try bench.zones(.create, "Shelves")
        let made = try #require(
            try bench.modify(.create("book-1", [text("title", "Low Tide")]))[0].saved)
        let start = try bench.changes()
        #expect(start.changes == [.changed(made)])
        #expect(!start.moreComing)

        let changed = try #require(
            try bench.modify(.update("book-1", made.tag, [number("pages", 96)]))[0].saved)
        #expect(changed.fields == [number("pages", 96), text("title", "Low Tide")])
        #expect(changed.tag > made.tag)
        #expect(changed.created == made.created)
        #expect(changed.modified.milliseconds > made.modified.milliseconds)
        #expect(try bench.modify(.update("book-1", made.tag))[0].refusal == .tagMismatch)
        #expect(try bench.lookup("book-1") == changed)

        let next = try bench.changes(after: start.position)
        #expect(next.changes == [.changed(changed)])
        #expect(try bench.modify(.delete("book-1"))[0].isDeleted)
        let last = try bench.changes(after: next.position)
        #expect(last.changes.map(\.name) == ["book-1"])
        #expect(last.changes[0].isDeletion)
        #expect(try bench.lookup("book-1") == nil)
        #expect(try bench.changes(after: last.position).changes.isEmpty)
        #expect(try bench.changes().changes.map(\.isDeletion) == [true])
    }
}
