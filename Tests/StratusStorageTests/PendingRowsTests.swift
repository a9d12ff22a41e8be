import StratusDoubles
import StratusModel
import StratusSQLite
import StratusStorage
import Testing

/// Rows that a transaction keeps back until its commit.
@Suite struct PendingRowsTests {
    private let files = SimulatedFiles(seed: 1)

    private func open() throws -> RowDatabase {
        let system = FileSystem(self.files)
        try RowDatabase.make("rows.db", in: system, fileTag: 7)
        return try RowDatabase(
            "rows.db", in: system, Connection.Options(synchronous: .normal, fileTag: 7))
    }

    private func contents(of rows: RowDatabase) throws -> [Table: [Bytes: Bytes]] {
        var found: [Table: [Bytes: Bytes]] = [:]
        let all = Bytes()
        for table in Table.all {
            try rows.scan(table, from: all.span.bytes, to: all.span.bytes, descending: false) {
                key, row in
                found[table, default: [:]][Bytes(copying: key)] = Bytes(copying: row)
                return .next
            }
        }
        return found
    }

    @Test func `reads in one piece share a transaction that ends with them`() throws {
        let rows = try self.open()
        let keys: [Bytes] = [[1], [2], [3]]
        for key in keys { try rows.put(.request, key.span.bytes, key.span.bytes) }
        let found = try rows.reading { () throws(StoreError) in
            var found: [Bytes?] = []
            for key in keys {
                found.append(try rows.row(.request, key.span.bytes))
                // One read needs none of its own.
                #expect(rows.isInTransaction == (found.count > 1))
            }
            // Within another one it is the same transaction.
            return try rows.reading { () throws(StoreError) in found }
        }
        #expect(found == keys && !rows.isInTransaction)
        #expect(throws: StoreError.self) {
            try rows.reading { () throws(StoreError) in
                for key in keys { _ = try rows.row(.request, key.span.bytes) }
                throw StoreError(.io, "in the middle")
            }
        }
        #expect(!rows.isInTransaction)
        // Writes go on, a transaction is left alone, and a checkpoint waits for nobody.
        let (first, second) = (keys[0], keys[1])
        try rows.beginTransaction()
        try rows.put(.request, first.span.bytes, second.span.bytes)
        let kept = try rows.reading { () throws(StoreError) in
            _ = try rows.row(.request, second.span.bytes)
            return try rows.row(.request, first.span.bytes)
        }
        #expect(kept == second && rows.isInTransaction)
        try rows.commitTransaction()
        #expect(try rows.checkpoint().isComplete)
    }

    @Test func `reads in one piece that fail throw away nothing that somebody keeps back`() throws {
        let rows = try self.open()
        let keys: [Bytes] = [[1], [2], [3]]
        func failing() {
            #expect(throws: StoreError.self) {
                try rows.reading { () throws(StoreError) in
                    for key in keys { _ = try rows.row(.request, key.span.bytes) }
                    throw StoreError(.io, "in the middle")
                }
            }
        }
        try rows.beginTransaction()
        let first = keys[0]
        try rows.put(.request, first.span.bytes, first.span.bytes)
        failing()
        #expect(rows.isInTransaction)
        try rows.commitTransaction()
        #expect(try rows.row(.request, first.span.bytes) == first)
        // Within reads that go on, only the inner ones end.
        try rows.reading { () throws(StoreError) in
            for key in keys { _ = try rows.row(.request, key.span.bytes) }
            failing()
            #expect(rows.isInTransaction)
        }
        #expect(!rows.isInTransaction)
    }

    /// Goal: rows that are kept back cannot be told from rows written at once, whatever is put,
    /// removed, read, scanned, committed and rolled back. Method: the same random steps on a
    /// database with transactions, on one without, and on a dictionary.
    @Test(arguments: 0..<24 as Range<UInt64>)
    func `kept back or written at once, the rows and their digest are the same`(seed: UInt64) throws
    {
        var random = SeededGenerator(seed: seed)
        let kept = try Self().open()
        let written = try Self().open()
        var model: [Table: [Bytes: Bytes]] = [:]
        var committed = model
        var isCounted = true
        // Whether a row that was said to be new, and was not, is not written yet.
        var isGuess = false
        let tables: [Table] = [.request, .zone, .feed, .mail]
        for step in 0..<600 {
            if !kept.isInTransaction {
                try kept.beginTransaction()
                kept.digest = written.digest
                isCounted = true
            }
            let table = tables.randomElement(using: &random)!
            let key: Bytes = [UInt8.random(in: 0..<6, using: &random)]
            let size = Int.random(in: 0..<20, using: &random) == 0 ? 300_000 : 9
            let row = Bytes(repeating: UInt8.random(in: 0...255, using: &random), count: size)
            let before = (kept.writeCount, written.writeCount)
            switch Int.random(in: 0..<24, using: &random) {
            case 0..<9:
                if Bool.random(using: &random) {
                    try kept.putNew(table, key.span.bytes, row.span.bytes)
                    isGuess = isGuess || model[table]?[key] != nil
                } else {
                    try kept.put(table, key.span.bytes, row.span.bytes)
                }
                try written.put(table, key.span.bytes, row.span.bytes)
                model[table, default: [:]][key] = row
            case 9..<15:
                try kept.remove(table, key.span.bytes)
                try written.remove(table, key.span.bytes)
                model[table]?[key] = nil
            case 15..<20:
                let found = try kept.row(table, key.span.bytes)
                #expect(found == model[table]?[key], "seed \(seed) step \(step)")
            case 20:
                let found = try self.contents(of: kept)
                #expect(found == model.filter { !$0.value.isEmpty }, "seed \(seed) step \(step)")
            case 21:
                try kept.writePending()
                isGuess = false
            case 22:
                try kept.commitTransaction()
                committed = model
                isGuess = false
                #expect(try kept.computeDigest() == kept.digest, "seed \(seed) step \(step)")
            default:
                try kept.rollBack()
                isCounted = false
                isGuess = false
                // The other one goes back row by row.
                for table in tables {
                    let (was, shall) = (model[table] ?? [:], committed[table] ?? [:])
                    for key in was.keys where shall[key] == nil {
                        try written.remove(table, key.span.bytes)
                    }
                    for (key, row) in shall where was[key] != row {
                        try written.put(table, key.span.bytes, row.span.bytes)
                    }
                }
                model = committed
            }
            guard isCounted else { continue }
            #expect(
                kept.writeCount - before.0 == written.writeCount - before.1,
                "seed \(seed) step \(step)")
            if isGuess { continue }
            #expect(kept.digest == written.digest, "seed \(seed) step \(step)")
        }
        if kept.isInTransaction { try kept.commitTransaction() }
        let found = try self.contents(of: kept)
        #expect(found == model.filter { !$0.value.isEmpty }, "seed \(seed)")
        #expect(try self.contents(of: written) == found, "seed \(seed)")
        #expect(try kept.computeDigest() == written.digest, "seed \(seed)")
    }

    @Test func `a row that a batch writes a thousand times is written once`() throws {
        func frameCount(_ rounds: Int) throws -> Int {
            let rows = try Self().open()
            try rows.beginTransaction()
            for number in 0..<rounds {
                let row = Bytes("\(number)".utf8)
                let key: Bytes = [1]
                try rows.put(.zone, key.span.bytes, row.span.bytes)
                // What was made and removed within the batch never gets there.
                let passing: Bytes = [2, UInt8(truncatingIfNeeded: number)]
                try rows.put(.feed, passing.span.bytes, row.span.bytes)
                try rows.remove(.feed, passing.span.bytes)
            }
            try rows.commitTransaction()
            #expect(rows.writeCount == 3 * rounds)
            return rows.walFrameCount
        }
        #expect(try frameCount(1_000) == frameCount(1))
    }
}
