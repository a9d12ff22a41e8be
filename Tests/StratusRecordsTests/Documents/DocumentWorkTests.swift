import StratusModel
import StratusRows
import Testing

@testable import StratusQuery
@testable import StratusRecords

/// What one entry of documents reads: it is bounded in bytes, not in things alone.
@Suite struct DocumentWorkTests {
    private static let large = Bytes(repeating: 7, count: 500_000)
    private static let root = "root"

    /// A folder of large files.
    private static func bench(count: Int) throws -> DocumentBench {
        var own = DocumentBench()
        let folder = try own.folder(1, "f")
        for number in 0..<count {
            try own.file(0x1000 + number, "a\(number)", in: folder, Self.large)
        }
        return own
    }

    /// Decides a command, writes nothing, and says what was read.
    private static func read(
        _ own: DocumentBench, atomic: Bool = true, _ operations: [DocumentOperation]
    ) throws -> (results: [DocumentResult], work: ReadWork) {
        let meter = ReadMeter(touchCountMax: 1 << 40)
        let rows = RowView(own.bench.rows, meter: meter)
        let id = Bench.privateDatabase
        guard let database = try StoredRows.database(id, over: rows),
            let zone = try StoredRows.zone(
                ZoneID.documentsName, in: database.number, over: rows)
        else { throw BenchError("no documents") }
        let modify = ModifyDocuments(
            database: id, device: "mac", nowMilliseconds: own.milliseconds,
            drawnIncarnation: ZoneIncarnation(9), isAtomic: atomic, rules: own.rules,
            operations: operations)
        var edit = DocumentEdit(
            modify,
            zone: ZoneEdit(
                ZoneID.documentsName, of: id, database: database, zone: zone,
                at: own.bench.time, bugs: PlantedBugs()), principal: Bench.user, room: nil)
        return (try edit.run(over: rows).results, meter.work)
    }

    private static func copy(
        _ source: String, _ name: String, _ id: Int, isDeep: Bool = true
    ) -> DocumentOperation {
        .copy(
            DocumentCopy(
                source: source, name: name, folder: Self.root, id: DocumentBench.id(id),
                isDeep: isDeep), tag: nil)
    }

    private static func refusal(_ result: DocumentResult) -> DocumentRefusal? {
        if case .refused(let refusal, _) = result { refusal } else { nil }
    }

    // MARK: Copies

    @Test func `a refused copy has read items only`() throws {
        let own = try Self.bench(count: 60)
        let (results, work) = try Self.read(
            own, [Self.copy(DocumentBench.id(1), "g", 0x9000)])
        #expect(Self.refusal(results[0]) == .contentTooLarge)
        #expect(work.byteCount < 60_000, "\(work)")
    }

    @Test func `a copy that holds too many items has read no more of them than its bound`() throws {
        var own = DocumentBench()
        let folder = try own.folder(1, "f")
        for number in 0..<300 { try own.folder(0x1000 + number, "a\(number)", in: folder) }
        let (results, work) = try Self.read(own, [Self.copy(folder, "g", 0x9000)])
        #expect(Self.refusal(results[0]) == .tooManyItems)
        #expect(work.rowCount < 600 && work.byteCount < 200_000, "\(work)")
    }

    @Test func `the copies of one command share one bound`() throws {
        let own = try Self.bench(count: 5)
        let copies = (0..<5).map {
            Self.copy(DocumentBench.id(0x1000 + $0), "g\($0)", 0x9000 + $0)
        }
        let (results, work) = try Self.read(own, atomic: false, copies)
        #expect(
            results.map(Self.refusal)
                == [nil, nil, .contentTooLarge, .contentTooLarge, .contentTooLarge])
        #expect(work.byteCount < 1_100_000, "\(work)")
    }

    @Test func `a copy of packages ends with the one that passes its bound`() throws {
        var own = DocumentBench()
        let folder = try own.folder(1, "f")
        // Their items say nothing of how large their lists are.
        for number in 0..<4 {
            let parts = (0..<40).map {
                DocumentPart("p\($0)", .inline(Bytes(repeating: 1, count: 16_000)))
            }
            try own.item(
                .create(
                    id: DocumentBench.id(0x1000 + number), .package, name: "a\(number)",
                    folder: folder, .refuse, content: .package(DocumentPackage(parts)),
                    atMilliseconds: own.milliseconds))
        }
        let (results, work) = try Self.read(own, [Self.copy(folder, "g", 0x9000)])
        #expect(Self.refusal(results[0]) == .contentTooLarge)
        #expect(work.byteCount < 1_400_000, "\(work)")
    }

    // MARK: Removals

    @Test func `an entry that removes is bounded in bytes, and a job goes on`() throws {
        var own = try Self.bench(count: 60)
        let removal = DocumentOperation.remove(id: DocumentBench.id(1), basedOn: nil)
        let (_, work) = try Self.read(own, [removal])
        #expect(work.byteCount < DocumentEdit.removedSizeMax + 600_000, "\(work)")
        #expect(try own.run(removal) == [.removed(id: DocumentBench.id(1))])
        #expect(try own.lookup("f") == nil)
        // Two of these records are a slice.
        let slices = try own.bench.finishJobs()
        #expect((30...40).contains(slices), "\(slices)")
        #expect(try own.bench.rows.view.rows(.reference, from: [], to: [], limit: .max).isEmpty)
    }

    @Test func `the removals of one command are bounded together`() throws {
        var own = try Self.bench(count: 40)
        let removals = (0..<40).map {
            DocumentOperation.remove(id: DocumentBench.id(0x1000 + $0), basedOn: nil)
        }
        let (results, work) = try Self.read(own, removals)
        #expect(
            results == (0..<40).map { DocumentResult.removed(id: DocumentBench.id(0x1000 + $0)) })
        #expect(work.byteCount < DocumentEdit.removedSizeMax + 600_000, "\(work)")
        let outcome = try own.outcome(removals)
        guard case .documents(let removed) = outcome else { throw BenchError("\(outcome)") }
        #expect(removed == results)
        #expect(try own.list(DocumentBench.id(1)) == [])
        try own.bench.finishJobs()
        // Only the folder and its name are left.
        let names = try own.bench.rows.view.rows(.reference, from: [], to: [], limit: .max)
        #expect(names.count == 1)
        let records = try own.bench.rows.view.rows(.record, from: [], to: [], limit: .max)
        #expect(records.reduce(0) { $0 + $1.row.count } < 20_000)
    }

    @Test func `an ID is taken again when the contents that had it are gone`() throws {
        var own = try Self.bench(count: 5)
        let last = DocumentBench.id(0x1004)
        guard
            case .documents = try own.outcome(
                (0..<5).map { .remove(id: DocumentBench.id(0x1000 + $0), basedOn: nil) })
        else { throw BenchError("refused") }
        // Its item is gone, and its content waits for the job.
        #expect(try own.item(last) == nil)
        #expect(try own.refusal(own.create(0x1004, "again")) == .idInvalid)
        try own.bench.finishJobs()
        try own.file(0x1004, "again", [1])
        #expect(try own.versions(last)?.count == 1)
        #expect(try own.content(last) == [1])
    }

    // MARK: Packages

    @Test func `a folder becomes a package only as far as the package may be large`() throws {
        let own = try Self.bench(count: 20)
        let (results, work) = try Self.read(
            own,
            [
                .convert(
                    id: DocumentBench.id(1), .package, first: DocumentBench.id(0x9000),
                    countMax: DocumentPackage.countMax, sizeMax: DocumentPackage.sizeMax)
            ])
        #expect(Self.refusal(results[0]) == .contentTooLarge)
        #expect(work.byteCount < DocumentPackage.sizeMax + 600_000, "\(work)")
    }

    @Test func `one command brings so many paths of packages`() throws {
        var own = DocumentBench()
        func packages(_ count: Int, from first: Int) -> [DocumentOperation] {
            (0..<count).map { number in
                .create(
                    id: DocumentBench.id(first + number), .package, name: "p\(first + number)",
                    folder: Self.root, .refuse,
                    content: .package(
                        DocumentPackage((0..<999).map { DocumentPart("f\($0)", .inline([])) })),
                    atMilliseconds: own.milliseconds)
            }
        }
        let outcome = try own.outcome(packages(5, from: 0x100))
        #expect(
            outcome
                == .refused(
                    RequestRefusal(.tooManyItems, String(ModifyDocuments.pathCountMax))))
        guard case .documents(let results) = try own.outcome(packages(4, from: 0x200)) else {
            throw BenchError("refused")
        }
        #expect(results.allSatisfy { Self.refusal($0) == nil })
    }
}
