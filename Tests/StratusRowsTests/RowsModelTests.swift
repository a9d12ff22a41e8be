import StratusDoubles
import StratusModel
import StratusRows
import Testing

/// Rows in memory, and rows over a file, are the same rows.
@Suite struct RowsModelTests {
    /// What the rows have to be, and what they were at the last publish.
    private struct Model {
        var rows: [Table: [Bytes: Bytes]] = [:]
        var published: [Table: [Bytes: Bytes]] = [:]

        var digest: StateDigest {
            var digest = StateDigest.empty
            for (table, rows) in self.rows where table != .meta {
                for (key, row) in rows {
                    digest.add(RowHash.of(table, key.span.bytes, row.span.bytes))
                }
            }
            return digest
        }
    }

    private static let tables: [Table] = [.meta, .request, .feed, .record]

    private static func contents(
        of rows: Rows, _ table: Table, _ from: Bytes, _ to: Bytes, _ descending: Bool
    ) throws -> [(key: Bytes, value: Bytes)] {
        try rows.view.rows(table, from: from, to: to, descending: descending, limit: .max)
            .map { (key: $0.key, value: $0.row) }
    }

    /// Goal: rows cannot be told from a dictionary, whatever is put, removed, read, scanned,
    /// published and discarded, and their digest is the sum of their hashes. Method: the same
    /// random steps on rows in memory, on rows over a file, and on a dictionary that is sorted for
    /// each scan.
    @Test(arguments: 0..<40 as Range<UInt64>)
    func `rows and their digest are those of a sorted dictionary`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let file = DictionaryFile()
        let stores = [Rows(), Rows(over: file)]
        var model = Model()
        // Whether a row that was said to be new, and was not, is not written yet.
        var isGuess = false
        func key() -> Bytes {
            (0..<Int.random(in: 0...3, using: &random)).map { _ in
                [0, 1, 0x7F, 0xFF].randomElement(using: &random)!
            }
        }
        for step in 0..<500 {
            let place: Comment = "seed \(seed), step \(step)"
            let table = Self.tables.randomElement(using: &random)!
            let key = key()
            switch Int.random(in: 0..<30, using: &random) {
            case 0..<9:
                let size = Int.random(in: 0..<20, using: &random) == 0 ? 20_000 : 9
                let row = Bytes(repeating: .random(in: 0...255, using: &random), count: size)
                let isNew = Bool.random(using: &random)
                isGuess = isGuess || (isNew && model.rows[table]?[key] != nil)
                for rows in stores {
                    if isNew {
                        try rows.putNew(table, key, row)
                    } else {
                        try rows.put(table, key, row)
                    }
                }
                model.rows[table, default: [:]][key] = row
            case 9..<14:
                for rows in stores { try rows.remove(table, key) }
                model.rows[table]?[key] = nil
            case 14:
                // What a scan has just found.
                guard let found = try stores[1].view.rows(table, from: key, to: [], limit: 1).first
                else { continue }
                for rows in stores {
                    try rows.remove(
                        table, found.key.span.bytes, holding: found.row.span.bytes)
                }
                model.rows[table]?[found.key] = nil
            case 15..<20:
                for rows in stores {
                    let row = try rows.row(table, key)
                    #expect(row == model.rows[table]?[key], place)
                    let head = try rows.head(table, key.span.bytes, sizeMax: 4)
                    #expect(head == row.map { Bytes($0.prefix(4)) }, place)
                }
            case 20..<26:
                let to = Bool.random(using: &random) ? [] : key
                let from = Bool.random(using: &random) ? [] : key
                let descending = Bool.random(using: &random)
                let expected = DictionaryFile.sorted(
                    model.rows[table] ?? [:], from, to, descending)
                for rows in stores {
                    let found = try Self.contents(of: rows, table, from, to, descending)
                    #expect(found.elementsEqual(expected, by: ==), place)
                }
            case 26: for rows in stores { try rows.begin() }
            case 27:
                for rows in stores { try rows.writeOut() }
                isGuess = false
            case 28:
                for rows in stores { try rows.publish() }
                model.published = model.rows
                isGuess = false
                #expect(
                    file.committed.filter { !$0.value.isEmpty }
                        == model.rows.filter { !$0.value.isEmpty }, place)
                #expect(!file.isInTransaction, place)
            default:
                for rows in stores { try rows.discard() }
                model.rows = model.published
                isGuess = false
            }
            // Every hash of every row: now and then is enough.
            guard step % 7 == 0 else { continue }
            let digest = model.digest
            #expect(stores[0].digest == digest, place)
            if !isGuess { #expect(stores[1].digest == digest, place) }
        }
        for rows in stores {
            try rows.publish()
            #expect(try rows.digest == rows.computeDigest(), "seed \(seed)")
            for table in Self.tables {
                let found = try Self.contents(of: rows, table, [], [], false)
                let expected = DictionaryFile.sorted(model.rows[table] ?? [:], [], [], false)
                #expect(found.elementsEqual(expected, by: ==), "seed \(seed)")
            }
        }
    }

    @Test func `a batch reads a row of the file once, and tells it the last one only`() throws {
        let file = DictionaryFile()
        let rows = Rows(over: file)
        try rows.put(.zone, [1], [1])
        try rows.publish()
        let (reads, writes) = (file.readCount, file.writeCount)
        try rows.begin()
        for number in 0..<100 as Range<UInt8> {
            #expect(try rows.row(.zone, [1]) == [number == 0 ? 1 : number - 1])
            try rows.put(.zone, [1], [number])
            // What was made and removed within the batch never gets there.
            try rows.putNew(.feed, [number], [number])
            try rows.remove(.zone, [2])
        }
        #expect(file.readCount - reads == 1 + 100)
        try rows.publish()
        #expect(file.writeCount - writes == 1 + 100)
        #expect(try rows.digest == rows.computeDigest())
    }

    @Test func `a transaction that was lost takes the batch with it`() throws {
        let file = DictionaryFile()
        let rows = Rows(over: file)
        try rows.put(.zone, [1], [1])
        try rows.publish()
        let digest = rows.digest
        // A part of the batch is in the transaction.
        try rows.begin()
        try rows.put(.zone, [2], [2])
        try rows.writeOut()
        try file.rollBack()
        try rows.put(.zone, [3], [3])
        #expect(throws: StoreError.self) { try rows.begin() }
        #expect(throws: StoreError.self) { try rows.publish() }
        try rows.discard()
        #expect(rows.digest == digest)
        #expect(rows.contents == [.zone: [KeyedRow(key: [1], row: [1])]])
        // A write that fails does the same.
        try rows.put(.zone, [2], [2])
        file.failsNext = true
        #expect(throws: StoreError.self) { try rows.publish() }
        try rows.discard()
        #expect(rows.digest == digest && file.committed == [.zone: [[1]: [1]]])
        // Where nothing was in it yet, another one takes its place.
        try rows.begin()
        try rows.put(.zone, [2], [2])
        try file.rollBack()
        try rows.publish()
        #expect(file.committed == [.zone: [[1]: [1], [2]: [2]]])
        #expect(try rows.digest == rows.computeDigest())
    }

    @Test func `what is in memory has a bound`() throws {
        let file = DictionaryFile()
        let rows = Rows(over: file)
        for number in 0..<5_000 as Range<UInt16> {
            try rows.putNew(.feed, [UInt8(number >> 8), UInt8(number & 255)], [1])
        }
        #expect(file.writeCount > 4_000 && file.isInTransaction)
        try rows.discard()
        #expect(rows.contents.isEmpty && rows.digest == .empty)
        // Reads are remembered up to the same bound.
        try rows.begin()
        for number in 0..<10_000 as Range<UInt16> {
            _ = try rows.row(.feed, [UInt8(number >> 8), UInt8(number & 255)])
        }
        try rows.put(.feed, [1], [1])
        #expect(file.current[.feed] == [[1]: [1]])
        try rows.publish()
        #expect(rows.contents == [.feed: [KeyedRow(key: [1], row: [1])]])
    }

    @Test func `a view with a meter counts what it reads, and one without does not`() throws {
        let rows = Rows()
        try rows.put(.record, [1], [1, 2, 3])
        let meter = ReadMeter()
        let view = RowView(rows, meter: meter)
        #expect(try view.row(.record, [1]) == [1, 2, 3])
        #expect(try view.row(.record, [2]) == nil)
        #expect(try view.head(.record, [1], sizeMax: 1) == [1])
        #expect(try view.keys(.record, from: [], to: [], limit: 9) == [[1]])
        #expect(try rows.view.row(.record, [1]) != nil)
        #expect(meter.work.seekCount == 4 && meter.work.rowCount == 3)
        #expect(meter.work.byteCount == 4 + 2 + 4)
    }
}
