import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// The bodies of one database's files, without those of others beside them.
@Suite struct DatabaseFilesTests {
    var bench = AssetBench()

    @Test mutating func `a database's bodies come in pages, and nobody else's`() throws {
        try self.bench.putKey(0)
        try self.bench.putKey(1)
        let count = DatabaseFilesAsk.rowCountMax + 20
        for number in 1...UInt128(count) {
            _ = try self.bench.pin(number, content: nil, size: 600)
        }
        var bodies: [BodyExtent] = []
        var (after, pageCount) = (nil as AssetID?, 0)
        repeat {
            let page = try self.page(after: after)
            bodies += page.bodies
            after = page.next
            pageCount += 1
        } while after != nil
        #expect(pageCount == 2)
        #expect(bodies.map(\.body) == (1...UInt128(count)).map { BodyID($0 + 1_000_000) })
        let row = try #require(try AssetRows.body(BodyID(1_000_001), over: self.bench.rows.view))
        #expect(bodies.allSatisfy { $0.chunkCount == UInt32(row.chunks.count) })
        #expect(
            try self.bench.ask(DatabaseFilesAsk(Bench.publicDatabase) { _ in })
                == .success(DatabaseFiles()))
        #expect(
            try self.bench.ask(
                DatabaseFilesAsk(Bench.privateDatabase) { _ in }, as: Bench.user)
                == .failure(RequestRefusal(.accessDenied)))
        _ = try self.bench.apply(LoseBody(BodyID(1_000_001)))
        #expect(try self.page(after: nil).bodies.first?.body == BodyID(1_000_002))
    }

    private mutating func page(after asset: AssetID?) throws -> DatabaseFiles {
        try self.bench.ask(DatabaseFilesAsk(Bench.privateDatabase) { $0.after = asset }).get()
    }

}
