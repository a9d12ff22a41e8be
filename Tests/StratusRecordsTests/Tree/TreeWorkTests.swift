import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// What the tree of a zone costs an entry, counted in what the entry reads.
@Suite struct TreeWorkTests {
    private func bench(_ zone: String = "Shelves") throws -> Bench {
        var bench = Bench()
        if zone != ZoneID.defaultName { try bench.zones(.create, zone) }
        return bench
    }

    /// Decides a batch, writes nothing, and says what was read.
    private func read(
        _ bench: Bench, in name: String = "Shelves", _ operations: [RecordOperation]
    ) throws -> (results: [ModifiedRecords.Result], work: ReadWork) {
        let meter = ReadMeter(touchCountMax: 1 << 40)
        let rows = RowView(bench.rows, meter: meter)
        let id = Bench.privateDatabase
        guard let database = try StoredRows.database(id, over: bench.rows.view),
            let zone = try StoredRows.zone(name, in: database.number, over: bench.rows.view)
        else { throw BenchError("no zone") }
        var batch = RecordBatch(
            ModifyRecords(
                database: id, zone: name, drawnIncarnation: ZoneIncarnation(1),
                operations: operations),
            edit: ZoneEdit(
                name, of: id, database: database, zone: zone, at: bench.time, bugs: PlantedBugs()),
            schema: nil, principal: Bench.user, sizeMax: 48 << 20, room: nil)
        _ = try batch.run(over: rows)
        return (batch.finalResults(), meter.work)
    }

    @Test func `a save that does not move the record reads the record and nothing else`() throws {
        for zone in ["Shelves", ZoneID.defaultName] {
            var bench = try self.bench(zone)
            _ = try bench.modify(in: zone, .create("p"))
            _ = try bench.modify(in: zone, .create("k", parent: "p"))
            let stated = RecordOperation(
                .forceUpdate, recordName: "k", fields: [number("n", 1)], parent: .set("p"))
            let operations: [RecordOperation] = [
                .create("new"), RecordOperation(.forceUpdate, recordName: "p"),
                RecordOperation(.forceUpdate, recordName: "k"), stated,
            ]
            for operation in operations {
                let (results, work) = try self.read(bench, in: zone, [operation])
                #expect(results[0].saved != nil)
                #expect(work.seekCount == 1 && work.rowCount <= 1, "\(operation): \(work)")
            }
        }
    }

    @Test func `a deletion of a record without children reads what it read`() throws {
        for zone in ["Shelves", ZoneID.defaultName] {
            var bench = try self.bench(zone)
            _ = try bench.modify(in: zone, .create("p"))
            let (results, work) = try self.read(bench, in: zone, [.delete("p")])
            #expect(results[0].isDeleted)
            #expect(work.seekCount == 2 && work.rowCount == 1, "record and counts: \(work)")
        }
    }

    @Test func `two hundred walks of 256 levels are what one entry may walk`() throws {
        var bench = try self.bench()
        let count = RecordState.operationCountMax
        try bench.modify((0..<count).map { .create("p\($0)") })
        guard
            let database = try StoredRows.database(Bench.privateDatabase, over: bench.rows.view),
            let zone = try StoredRows.zone("Shelves", in: database.number, over: bench.rows.view)
        else { throw BenchError("no zone") }
        for chain in 0..<count {
            var name = "p\(chain)"
            for level in 0..<258 {
                let above = "\(chain)-\(level)"
                try bench.rows.put(
                    .reference, Keys.tree(zone.number, name),
                    TreeRow { $0.parent = above }.encoded()
                )
                name = above
            }
        }
        let (results, work) = try self.read(
            bench, (0..<count).map { .create("k\($0)", parent: "p\($0)") })
        #expect(results.allSatisfy { $0.refusal == .parentCircle })
        #expect(work.seekCount <= count * (RecordBatch.treeLevelCountMax + 2), "\(work)")
        #expect(work.seekCount > count * (RecordBatch.treeLevelCountMax - 2), "\(work)")
    }

    @Test func `siblings walk once`() throws {
        var bench = try self.bench()
        try bench.modify(.create("l0"))
        for level in 1...100 { try bench.modify(.create("l\(level)", parent: "l\(level - 1)")) }
        let (results, work) = try self.read(
            bench, (0..<100).map { .create("k\($0)", parent: "l100") })
        #expect(results.allSatisfy { $0.saved != nil })
        #expect(work.seekCount < 100 + 101 + 5, "\(work)")
    }

    /// The worst order: each round finds one deletion that nothing stands against any more.
    @Test func `deletions that wait for each other through 199 rounds read no more for it`() throws
    {
        var bench = try self.bench()
        try bench.modify(.create("n199"))
        for number in (0..<199).reversed() {
            try bench.modify(.create("n\(number)", parent: "n\(number + 1)"))
        }
        let order = Array(1..<200) + [0]
        let (results, work) = try self.read(bench, order.map { .delete("n\($0)") })
        #expect(results.allSatisfy { $0.isDeleted })
        #expect(work.seekCount + work.rowCount < 200 * 8, "\(work)")
    }
}
