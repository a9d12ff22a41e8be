import StratusCoding
import StratusModel
import StratusRows
import Testing

@testable import StratusRecords

/// Rows of files that contradict each other are named by the audit of a partition.
@Suite struct AssetRowFaultTests {
    var bench = AssetBench()

    /// The assets 1 to 3, of which record "a" holds the first two, and record "b" the second.
    init() throws {
        try self.bench.putKey(0)
        try self.bench.putKey(1)
        try self.bench.zone("Shelves")
        for number in 1...3 as ClosedRange<UInt128> {
            _ = try self.bench.pin(number, content: nil, size: 600)
        }
        try self.bench.save("a", in: "Shelves", [1, 2])
        try self.bench.save("b", in: "Shelves", [2])
    }

    private func fault(_ kind: AssetRowFault.Kind, _ asset: UInt128, _ record: String? = nil)
        -> AssetRowFault
    {
        AssetRowFault(kind, of: AssetID(asset)) {
            $0.database = Bench.privateDatabase
            $0.zone = record == nil ? nil : "Shelves"
            $0.record = record
        }
    }

    private mutating func change(_ asset: UInt128, _ change: (inout AssetRow) -> Void) throws {
        var row = try #require(try self.bench.row(asset))
        change(&row)
        try self.bench.rows.put(.asset, AssetKeys.asset(AssetID(asset)), row.encoded())
    }

    @Test mutating func `rows that agree are no fault, for Stratus itself`() throws {
        #expect(try self.bench.rowFaults().isEmpty)
        #expect(
            try self.bench.ask(AssetRowsAsk(), as: Bench.user)
                == .failure(RequestRefusal(.accessDenied)))
    }

    @Test mutating func `a body that is not there, or another file's`() throws {
        try self.bench.rows.remove(.body, BodyCoding.key(of: BodyID(1_000_001)))
        try self.change(2) { $0.keyVersion = 2 }
        #expect(try self.bench.rowFaults() == [self.fault(.noBody, 1), self.fault(.noBody, 2)])
    }

    @Test mutating func `a file that nobody holds, and that never ends`() throws {
        let end = try #require(try self.bench.row(3)?.end)
        try self.bench.rows.remove(.asset, AssetKeys.end(end, of: AssetID(3)))
        #expect(try self.bench.rowFaults() == [self.fault(.noEnd, 3)])
        try self.change(3) { row in
            row.pins = []
        }
        #expect(try self.bench.rowFaults() == [self.fault(.neverEnds, 3)])
    }

    @Test mutating func `a file that says wrongly whether it is held`() throws {
        try self.change(1) { $0.isHeld = false }
        try self.change(3) { $0.isHeld = true }
        // The first has no end, because it was held.
        #expect(
            try self.bench.rowFaults() == [
                self.fault(.heldWrongly, 1), self.fault(.heldWrongly, 3),
            ])
    }

    @Test mutating func `a file that is named, and is not there`() throws {
        try self.bench.rows.remove(.asset, AssetKeys.asset(AssetID(2)))
        #expect(
            try self.bench.rowFaults() == [
                self.fault(.noAsset, 2, "a"), self.fault(.noAsset, 2, "b"),
                self.fault(.noAsset, 2, "a"), self.fault(.noAsset, 2, "b"),
            ])
    }

    @Test mutating func `a record and the rows of its files that disagree`() throws {
        let database = try #require(try self.bench.row(1)).database
        let shelves = try StoredRows.zone("Shelves", in: database, over: self.bench.rows.view)
        let zone = try #require(shelves).number
        try self.bench.rows.remove(.asset, AssetKeys.holder(of: AssetID(2), zone, "b"))
        #expect(try self.bench.rowFaults() == [self.fault(.noHolder, 2, "b")])
        for record in ["b", "none"] {
            try self.bench.rows.put(
                .asset, AssetKeys.holder(of: AssetID(1), zone, record), AssetKeys.mark)
        }
        #expect(
            try self.bench.rowFaults() == [
                self.fault(.notInRecord, 1, "b"), self.fault(.notInRecord, 1, "none"),
                self.fault(.noHolder, 2, "b"),
            ])
    }

    @Test mutating func `pages of many rows and many faults end`() throws {
        for number in 10...459 as ClosedRange<UInt128> {
            _ = try self.bench.pin(number, content: nil, size: 600)
        }
        #expect(try self.bench.rowFaults().isEmpty)
        let page = try self.bench.ask(AssetRowsAsk()).get()
        #expect(page.next?.last == AssetKeys.asset(AssetID(66)))
        for number in 10...59 as ClosedRange<UInt128> {
            try self.bench.rows.remove(.body, BodyCoding.key(of: BodyID(number + 1_000_000)))
        }
        #expect(
            try self.bench.rowFaults()
                == (10...59 as ClosedRange<UInt128>).map { self.fault(.noBody, $0) })
    }

    /// A record may hold more files than one question looks for, and a partition may have more zones
    /// than it looks through.
    @Test mutating func `a record of many files in the last of many zones is audited whole`() throws
    {
        let files = 1_000...1_199 as ClosedRange<UInt128>
        for number in 0..<(2 * ZoneSearch.stepCountMax) { try self.bench.zone("A\(number)") }
        try self.bench.zone("Z")
        for number in files { _ = try self.bench.pin(number, content: nil, size: 0) }
        try self.bench.save("many", in: "Z", Array(files))
        #expect(try self.bench.rowFaults().isEmpty)
        for number in files {
            try self.bench.rows.remove(.asset, AssetKeys.asset(AssetID(number)))
        }
        let faults = files.map { number in
            AssetRowFault(.noAsset, of: AssetID(number)) {
                $0.database = Bench.privateDatabase
                $0.zone = "Z"
                $0.record = "many"
            }
        }
        // Once by the rows of holders, once by the record.
        #expect(try self.bench.rowFaults() == faults + faults)
    }
}
