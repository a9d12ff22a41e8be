import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

/// Rows that a transaction keeps back until its commit.
@Suite struct RowDatabaseTests {
    private let files = SimulatedFiles(seed: 1)

    private func open() throws -> RowDatabase {
        let system = FileSystem(self.files)
        try RowDatabase.make("rows.db", in: system, fileTag: 7)
        return try RowDatabase(
            "rows.db", in: system, Connection.Options(synchronous: .normal, fileTag: 7))
    }

    /// Every row, read as a file gives it.
    private func contents(of file: RowDatabase) throws -> [Table: [Bytes: Bytes]] {
        var found: [Table: [Bytes: Bytes]] = [:]
        let all = Bytes()
        for table in Table.all {
            try file.scan(table, from: all.span.bytes, to: all.span.bytes, descending: false) {
                key, row in
                found[table, default: [:]][Bytes(copying: key)] = Bytes(copying: row)
                return .next
            }
        }
        return found
    }

    @Test func `reads in one piece share a transaction that ends with them`() throws {
        let file = try self.open()
        let keys: [Bytes] = [[1], [2], [3]]
        let written = Rows(over: file)
        for key in keys { try written.put(.request, key, key) }
        try written.commit()
        // They have nothing in memory.
        let rows = Rows(over: file)
        let found = try file.reading { () throws(StoreError) in
            var found: [Bytes?] = []
            for key in keys {
                found.append(try rows.row(.request, key))
                // One read needs none of its own.
                #expect(file.isInTransaction == (found.count > 1))
            }
            // Within another one it is the same transaction.
            return try file.reading { () throws(StoreError) in found }
        }
        #expect(found == keys && !file.isInTransaction)
        #expect(throws: StoreError.self) {
            try file.reading { () throws(StoreError) in
                for key in keys { _ = try rows.row(.request, key) }
                throw StoreError(.io, "in the middle")
            }
        }
        #expect(!file.isInTransaction)
        // Writes go on, a transaction is left alone, and a checkpoint waits for nobody.
        let (first, second) = ([4] as Bytes, keys[1])
        rows.begin()
        try rows.put(.request, first, second)
        let kept = try file.reading { () throws(StoreError) in
            for key in keys { _ = try rows.row(.request, key) }
            return try rows.row(.request, first)
        }
        #expect(kept == second && file.isInTransaction)
        try rows.commit()
        #expect(try file.checkpoint().isComplete)
    }

    @Test func `reads in one piece that fail throw no batch away`() throws {
        let file = try self.open()
        let rows = Rows(over: file)
        let keys: [Bytes] = [[1], [2], [3]]
        func failing(_ rows: Rows) {
            #expect(throws: StoreError.self) {
                try file.reading { () throws(StoreError) in
                    for key in keys { _ = try rows.row(.request, key) }
                    throw StoreError(.io, "in the middle")
                }
            }
        }
        rows.begin()
        try rows.put(.request, [1], [1])
        failing(rows)
        #expect(file.isInTransaction)
        try rows.commit()
        #expect(try rows.row(.request, [1]) == [1])
        // Within reads that go on, only the inner ones end.
        let others = Rows(over: file)
        try file.reading { () throws(StoreError) in
            for key in keys { _ = try others.row(.request, key) }
            failing(others)
            #expect(file.isInTransaction)
        }
        #expect(!file.isInTransaction)
    }

    /// Goal: rows of a batch cannot be told from rows written at once, whatever is put, removed,
    /// read, scanned, flushed and discarded. Method: the same random steps on a file with batches
    /// and slices of flushes, on one where each step is committed, and on a dictionary.
    @Test(arguments: 0..<24 as Range<UInt64>)
    func `in a batch or written at once, the rows and their digest are the same`(seed: UInt64)
        throws
    {
        var random = SeededGenerator(seed: seed)
        let (file, other) = (try self.open(), try self.open())
        let (batch, written) = (Rows(over: file), Rows(over: other))
        var model: [Table: [Bytes: Bytes]] = [:]
        var published = model
        var frozen = model
        // Whether a row that was said to be new, and was not, is not written yet.
        var isGuess = false
        let tables: [Table] = [.request, .zone, .feed, .mail]
        for step in 0..<600 {
            batch.begin()
            let table = tables.randomElement(using: &random)!
            let key: Bytes = [UInt8.random(in: 0..<6, using: &random)]
            let size = Int.random(in: 0..<20, using: &random) == 0 ? 300_000 : 9
            let row = Bytes(repeating: UInt8.random(in: 0...255, using: &random), count: size)
            let before = (batch.writeCount, written.writeCount)
            var isCounted = true
            switch Int.random(in: 0..<24, using: &random) {
            case 0..<9:
                if Bool.random(using: &random) {
                    try batch.putNew(table, key, row)
                    isGuess = isGuess || model[table]?[key] != nil
                } else {
                    try batch.put(table, key, row)
                }
                try written.put(table, key, row)
                model[table, default: [:]][key] = row
            case 9..<15:
                try batch.remove(table, key)
                try written.remove(table, key)
                model[table]?[key] = nil
            case 15..<20:
                let found = try batch.row(table, key)
                #expect(found == model[table]?[key], "seed \(seed) step \(step)")
            case 20:
                for table in tables {
                    let found = batch.contents(of: table).map { [$0.key, $0.row] }
                    let expected = (model[table] ?? [:]).sorted { $0.key[0] < $1.key[0] }
                    #expect(
                        found == expected.map { [$0.key, $0.value] }, "seed \(seed) step \(step)")
                }
            case 21:
                try batch.publish()
                if !batch.isFlushing {
                    batch.freeze()
                    frozen = model
                }
                if try batch.writeFrozen(upTo: .random(in: 0...4, using: &random)) {
                    try batch.endFlush()
                    published = frozen
                }
            case 22:
                try batch.commit()
                published = model
                isGuess = false
                #expect(try batch.computeDigest() == batch.digest, "seed \(seed) step \(step)")
                #expect(
                    try self.contents(of: file) == model.filter { !$0.value.isEmpty },
                    "seed \(seed) step \(step)")
            default:
                try batch.discard()
                isCounted = false
                isGuess = false
                // The other one goes back row by row.
                for table in tables {
                    let (was, shall) = (model[table] ?? [:], published[table] ?? [:])
                    for key in was.keys where shall[key] == nil {
                        try written.remove(table, key)
                    }
                    for (key, row) in shall where was[key] != row {
                        try written.put(table, key, row)
                    }
                }
                model = published
            }
            try written.commit()
            if isCounted {
                #expect(
                    batch.writeCount - before.0 == written.writeCount - before.1,
                    "seed \(seed) step \(step)")
            }
            if isGuess { continue }
            #expect(batch.digest == written.digest, "seed \(seed) step \(step)")
        }
        try batch.commit()
        let found = try self.contents(of: file)
        #expect(found == model.filter { !$0.value.isEmpty }, "seed \(seed)")
        #expect(try self.contents(of: other) == found, "seed \(seed)")
        #expect(try batch.computeDigest() == written.digest, "seed \(seed)")
    }

    @Test func `a row that a batch writes a thousand times is written once`() throws {
        func frameCount(_ rounds: Int) throws -> Int {
            let file = try Self().open()
            let rows = Rows(over: file)
            for number in 0..<rounds {
                let row = Bytes("\(number)".utf8)
                try rows.put(.zone, [1], row)
                // What was made and removed within the batch never gets there.
                let passing: Bytes = [2, UInt8(truncatingIfNeeded: number)]
                try rows.put(.feed, passing, row)
                try rows.remove(.feed, passing)
            }
            try rows.commit()
            #expect(rows.writeCount == 3 * rounds)
            return file.walFrameCount
        }
        #expect(try frameCount(1_000) == frameCount(1))
    }
}
