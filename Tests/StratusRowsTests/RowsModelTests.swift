import StratusDoubles
import StratusModel
import StratusRows
import Testing

/// Rows in memory, and rows over a file, are the same rows.
@Suite struct RowsModelTests {
    private struct Change {
        let table: Table
        let key: Bytes
        let row: Bytes?
        let isNew: Bool
    }

    /// What the rows have to be, and what they were at the last publish.
    private struct Model {
        var rows: [Table: [Bytes: Bytes]] = [:]
        var published: [Table: [Bytes: Bytes]] = [:]
        /// What a flush under way brings to the file.
        var frozen: [Table: [Bytes: Bytes]] = [:]
        /// Changes of the batch, those that were published since, and those of the flush: what a log
        /// would bring back.
        var batch: [Change] = []
        var unfrozen: [Change] = []
        var unflushed: [Change] = []

        var digest: StateDigest {
            var digest = StateDigest.empty
            for (table, rows) in self.rows where table != .meta {
                for (key, row) in rows {
                    digest.add(RowHash.of(table, key.span.bytes, row.span.bytes))
                }
            }
            return digest
        }

        mutating func change(_ change: Change) {
            self.rows[change.table, default: [:]][change.key] = change.row
            self.batch.append(change)
        }

        mutating func publish() {
            self.published = self.rows
            self.unfrozen += self.batch
            self.batch = []
        }

        mutating func freeze() {
            self.frozen = self.published
            self.unflushed = self.unfrozen
            self.unfrozen = []
        }

        /// - Returns: what the file has lost with the memory.
        mutating func discard() -> [Change] {
            self.rows = self.published
            self.batch = []
            self.unfrozen = self.unflushed + self.unfrozen
            self.unflushed = []
            return self.unfrozen
        }
    }

    private static func apply(_ change: Change, to rows: Rows) throws {
        guard let row = change.row else { return try rows.remove(change.table, change.key) }
        if change.isNew {
            try rows.putNew(change.table, change.key, row)
        } else {
            try rows.put(change.table, change.key, row)
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
    /// published, flushed in any slices and discarded, and their digest is the sum of their hashes.
    /// Method: the same random steps on rows in memory, on rows over a file, and on a dictionary
    /// that is sorted for each scan. What a discard takes from the file is applied again.
    @Test(arguments: 0..<60 as Range<UInt64>)
    func `rows and their digest are those of a sorted dictionary`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let file = DictionaryFile()
        let stores = [Rows(), Rows(over: file)]
        let upper = stores[1]
        var model = Model()
        // Whether a row that was said to be new, and was not, is not written yet.
        var isGuess = false
        func key() -> Bytes {
            (0..<Int.random(in: 0...3, using: &random)).map { _ in
                [0, 1, 0x7F, 0xFF].randomElement(using: &random)!
            }
        }
        func publish() throws {
            for rows in stores { try rows.publish() }
            model.publish()
        }
        func ended(_ place: Comment) {
            model.unflushed = []
            #expect(
                file.committed.filter { !$0.value.isEmpty }
                    == model.frozen.filter { !$0.value.isEmpty }, place)
            #expect(!file.isInTransaction, place)
        }
        for step in 0..<500 {
            let place: Comment = "seed \(seed), step \(step)"
            let table = Self.tables.randomElement(using: &random)!
            let key = key()
            switch Int.random(in: 0..<32, using: &random) {
            case 0..<9:
                let size = Int.random(in: 0..<20, using: &random) == 0 ? 20_000 : 9
                let row = Bytes(repeating: .random(in: 0...255, using: &random), count: size)
                let isNew = Bool.random(using: &random)
                isGuess = isGuess || (isNew && model.rows[table]?[key] != nil)
                let change = Change(table: table, key: key, row: row, isNew: isNew)
                for rows in stores { try Self.apply(change, to: rows) }
                model.change(change)
            case 9..<14:
                let change = Change(table: table, key: key, row: nil, isNew: false)
                for rows in stores { try Self.apply(change, to: rows) }
                model.change(change)
            case 14:
                // What a scan has just found.
                guard let found = try upper.view.rows(table, from: key, to: [], limit: 1).first
                else { continue }
                for rows in stores {
                    try rows.remove(
                        table, found.key.span.bytes, holding: found.row.span.bytes)
                }
                model.change(Change(table: table, key: found.key, row: nil, isNew: false))
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
            case 26: for rows in stores { rows.begin() }
            case 27:
                try publish()
                if upper.isFlushing { continue }
                upper.freeze()
                model.freeze()
            case 28:
                guard upper.isFlushing else { continue }
                try publish()
                file.failsNext = Int.random(in: 0..<8, using: &random) == 0
                do throws(StoreError) {
                    if try upper.writeFrozen(upTo: .random(in: 0...5, using: &random)) {
                        try upper.endFlush()
                        ended(place)
                    }
                } catch {
                    try upper.backOff()
                    #expect(upper.isFlushing && !file.isInTransaction, place)
                }
                file.failsNext = false
            case 29: try publish()
            case 30:
                for rows in stores { try rows.commit() }
                model.publish()
                model.freeze()
                ended(place)
                isGuess = false
            default:
                for rows in stores { try rows.discard() }
                for change in model.discard() { try Self.apply(change, to: upper) }
                try upper.publish()
            }
            // Every hash of every row: now and then is enough.
            guard step % 7 == 0 else { continue }
            let digest = model.digest
            #expect(stores[0].digest == digest, place)
            if !isGuess { #expect(upper.digest == digest, place) }
        }
        for rows in stores {
            try rows.commit()
            #expect(try rows.digest == rows.computeDigest(), "seed \(seed)")
            for table in Self.tables {
                let found = try Self.contents(of: rows, table, [], [], false)
                let expected = DictionaryFile.sorted(model.rows[table] ?? [:], [], [], false)
                #expect(found.elementsEqual(expected, by: ==), "seed \(seed)")
            }
        }
    }

    @Test func `memory reads a row of the file once, and tells it the last one only`() throws {
        let file = DictionaryFile()
        let rows = Rows(over: file)
        try rows.put(.zone, [1], [1])
        try rows.commit()
        let (reads, writes) = (file.readCount, file.writeCount)
        for number in 0..<100 as Range<UInt8> {
            rows.begin()
            #expect(try rows.row(.zone, [1]) == [number == 0 ? 1 : number - 1])
            #expect(try rows.row(.zone, [2]) == nil)
            try rows.put(.zone, [1], [number])
            // What was made and removed in memory never gets there.
            try rows.put(.feed, [1, number], [number])
            try rows.remove(.feed, [1, number])
            try rows.putNew(.feed, [number], [number])
            try rows.publish()
        }
        // The row that was written before is still in memory.
        #expect(file.readCount - reads == 1 + 100)
        try rows.commit()
        #expect(file.writeCount - writes == 1 + 100)
        #expect(try rows.digest == rows.computeDigest())
    }

    @Test func `a flush that fails leaves its rows in memory, and is tried again`() throws {
        let file = DictionaryFile()
        let rows = Rows(over: file)
        try rows.put(.feed, [1], [1])
        try rows.put(.record, [9], [9])
        try rows.commit()
        // What was flushed is known until the next freeze.
        try rows.commit()
        // One row is there although nobody expects it, and is written over before the failure.
        try rows.putNew(.record, [9], [10])
        try rows.remove(.feed, [1])
        try rows.put(.feed, [2], [2])
        rows.freeze()
        try rows.put(.feed, [3], [3])
        #expect(try !rows.writeFrozen(upTo: 2))
        #expect(rows.hasFoundUnexpected)
        file.failsNext = true
        #expect(throws: StoreError.self) { _ = try rows.writeFrozen() }
        try rows.backOff()
        #expect(file.committed == [.feed: [[1]: [1]], .record: [[9]: [9]]])
        let expected: [Table: [KeyedRow]] = [
            .feed: [KeyedRow(key: [2], row: [2]), KeyedRow(key: [3], row: [3])],
            .record: [KeyedRow(key: [9], row: [10])],
        ]
        #expect(rows.contents == expected)
        // A transaction that was lost is noticed, and is no loss.
        #expect(try !rows.writeFrozen(upTo: 1))
        try rows.backOff()
        #expect(try rows.writeFrozen())
        try rows.endFlush()
        #expect(file.committed == [.feed: [[2]: [2]], .record: [[9]: [10]]])
        #expect(rows.contents == expected)
        #expect(try rows.digest == rows.computeDigest())
        try rows.discard()
        #expect(rows.contents[.feed] == [KeyedRow(key: [2], row: [2])])
        #expect(try rows.digest == rows.computeDigest())
    }

    @Test func `reads that are remembered have a bound`() throws {
        let file = DictionaryFile()
        let rows = Rows(over: file)
        rows.begin()
        for _ in 0..<2 {
            for number in 0..<10_000 as Range<UInt16> {
                _ = try rows.row(.feed, [UInt8(number >> 8), UInt8(number & 255)])
            }
        }
        #expect(file.readCount > 10_000 && file.readCount < 20_000)
        #expect(rows.freshCount == 0)
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
