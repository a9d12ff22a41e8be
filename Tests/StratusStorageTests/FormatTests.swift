import Foundation
import StratusCoding
import StratusDoubles
import StratusModel
import StratusRows
import StratusSQLite
import StratusStorage
import Testing

/// Every storage format still reads and writes as it did. Once a release has written one, its file in
/// `Golden/` is never edited, and a new version adds another. With `STRATUS_GOLDEN=write` the files
/// are written anew.
@Suite struct FormatTests {
    private static func place(of name: String) -> URL {
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden/\(name).hex")
    }

    static func golden(_ name: String) throws -> Bytes {
        let url = Self.place(of: name)
        let digits = Array(try String(contentsOf: url, encoding: .utf8).utf8.filter { $0 > 32 })
        return stride(from: 0, to: digits.count, by: 2).map { offset in
            UInt8(String(decoding: digits[offset..<(offset + 2)], as: UTF8.self), radix: 16)!
        }
    }

    static func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
        var text = ""
        for (number, byte) in bytes.enumerated() {
            if number > 0, number % 32 == 0 { text += "\n" }
            text += byte < 16 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
        }
        return text + "\n"
    }

    static func expect(_ bytes: some Collection<UInt8>, _ name: String) throws {
        if ProcessInfo.processInfo.environment["STRATUS_GOLDEN"] == "write" {
            try Data(Self.hexadecimal(bytes).utf8).write(to: Self.place(of: name))
        }
        #expect(Self.hexadecimal(bytes) == Self.hexadecimal(try Self.golden(name)), "\(name)")
    }

    static let position = AppliedPosition(
        index: LogIndex(300), term: Term(7),
        time: HybridTime(milliseconds: 1_700_000_000_000, count: 5),
        digest: StateDigest(high: 0x0123_4567_89AB_CDEF, low: 0xFEDC_BA98_7654_3210),
        configuration: [1, 2, 3])

    @Test func `an applied position of version 1 reads and writes as ever`() throws {
        try Self.expect(Self.position.encoded(), "applied-1")
        #expect(try AppliedPosition(decoding: Self.position.encoded()) == Self.position)
        var newer = Self.position.encoded()
        newer[0] = 2
        #expect(throws: DecodingError.self) { _ = try AppliedPosition(decoding: newer) }
    }

    @Test func `an erasure's mark and note of version 1 read and write as ever`() throws {
        let mark = ErasureMark(
            index: LogIndex(300), sinceMilliseconds: 1_700_000_000_000, horizon: 77,
            outcomesThrough: 1_700_000_030_000)
        try Self.expect(mark.encoded(), "erasure-mark-1")
        #expect(try ErasureMark(decoding: mark.encoded()) == mark)
        let note = ErasureNote.encode(1_700_000_000_000)
        try Self.expect(note, "erasure-note-1")
        #expect(try ErasureNote.decode(note) == 1_700_000_000_000)
    }

    @Test func `a data directory's stamp reads and writes as ever`() throws {
        let forms: [(name: String, isSealed: Bool)] = [("stamp-16-1", false), ("stamp-16-2", true)]
        for (name, isSealed) in forms {
            let world = SimulatedWorld(seed: 4)
            let directory = try DataDirectory(in: world, atRest: isSealed)
            let bytes = try #require(world.simulatedFiles.contents(of: "STRATUS"))
            try Self.expect(bytes, name)
            let other = SimulatedWorld(seed: 5)
            other.simulatedFiles.plant(bytes, at: "STRATUS")
            let read = try DataDirectory(in: other, atRest: isSealed)
            #expect(read.identity == directory.identity && read.isSealed == isSealed)
            #expect(!read.isNew)
            for state in [0, 5, isSealed ? 1 : 2] as [UInt8] {
                var altered = bytes
                altered[25] = state
                other.simulatedFiles.restart(after: .processCrash)
                other.simulatedFiles.plant(altered, at: "STRATUS")
                #expect(throws: DataDirectory.Refusal.damaged("wrong checksum")) {
                    _ = try DataDirectory(in: other)
                }
            }
        }
    }

    @Test func `a stamp of a conversion reads and writes as ever`() throws {
        for (number, form) in [DataDirectory.Form.sealed, .clear].enumerated() {
            let world = SimulatedWorld(seed: 4)
            let directory = try DataDirectory(in: world, atRest: form == .clear)
            try directory.note(.converting(to: form), in: world.files)
            let bytes = try #require(world.simulatedFiles.contents(of: "STRATUS"))
            try Self.expect(bytes, "stamp-16-\(number + 3)")
            let other = SimulatedWorld(seed: 5)
            other.simulatedFiles.plant(bytes, at: "STRATUS")
            #expect(throws: DataDirectory.Refusal.isBeingConverted(to: form)) {
                _ = try DataDirectory(in: other)
            }
            let read = try DataDirectory(toConvert: other.files)
            #expect(read.identity == directory.identity && read.state == .converting(to: form))
        }
    }

    /// The stamps that builds before the first release wrote, in their four states.
    @Test func `a directory of a build before the first release is refused by name`() throws {
        let identity = Bytes(0..<16)
        for (version, state) in [(1, []), (2, [1]), (3, [1]), (3, [2])] as [(UInt8, Bytes)] {
            var stamp = Bytes("STRATUS\n".utf8) + [version] + identity + state
            var writer = ByteWriter()
            writer.write(fixed: CRC32C.of(stamp))
            stamp += writer.bytes
            let world = SimulatedWorld(seed: 4)
            world.simulatedFiles.plant(stamp, at: "STRATUS")
            let refusal = DataDirectory.Refusal.unreleasedVersion(version)
            #expect(throws: refusal) { _ = try DataDirectory(in: world) }
            #expect(throws: refusal) { _ = try DataDirectory(toConvert: world.files) }
            #expect(
                refusal.description.contains(
                    "made by a build before 0.1.0, which this release does not read"))
            // Nothing was written.
            #expect(world.simulatedFiles.contents(of: "STRATUS") == stamp)
        }
    }

    @Test func `a data directory is opened only in the form that it has`() throws {
        for isSealed in [false, true] {
            let world = SimulatedWorld(seed: 4)
            do { _ = try DataDirectory(in: world, atRest: isSealed) }
            let before = world.simulatedFiles.contents(of: "STRATUS")
            #expect(throws: isSealed ? DataDirectory.Refusal.isSealed : .isClear) {
                _ = try DataDirectory(in: world, atRest: !isSealed)
            }
            #expect(world.simulatedFiles.contents(of: "STRATUS") == before)
            #expect(try DataDirectory(in: world).isSealed == isSealed)
        }
    }

    static func log(_ world: SimulatedWorld, isNew: Bool) throws -> SegmentedLog {
        var limits = SegmentedLog.Limits()
        limits.segmentSize = 4_096
        return try SegmentedLog(in: "log", of: world, isNew: isNew, limits: limits) { _ in }
    }

    @Test func `a log segment of version 1 reads and writes as ever`() throws {
        let world = SimulatedWorld(seed: 4)
        do {
            let log = try Self.log(world, isNew: true)
            log.submit([
                LogBatch(
                    group: GroupID(3), hardState: HardState(term: Term(2), vote: NodeID(9)),
                    entries: [LogBench.entry(1, size: 20), LogBench.entry(2, size: 0)])
            ])
            log.flush()
            log.release(GroupID(3), through: LogIndex(1))
            log.submit([
                LogBatch(
                    group: GroupID(3), truncateFrom: LogIndex(2),
                    entries: [LogBench.entry(2, term: 2, size: 9)])
            ])
            log.flush()
        }
        let bytes = try #require(world.simulatedFiles.contents(of: "log/00000001.seg"))
        let end = bytes.lastIndex { $0 != 0 }! + 1
        try Self.expect(bytes[..<end], "segment-1")
        try Self.expectToRead(bytes)
    }

    private static func expectToRead(_ bytes: Bytes) throws {
        let other = SimulatedWorld(seed: 5)
        try other.files.makeDirectory("log")
        other.simulatedFiles.plant(bytes, at: "log/00000001.seg")
        let log = try Self.log(other, isNew: false)
        #expect(log.hardState(of: GroupID(3)) == HardState(term: Term(2), vote: NodeID(9)))
        #expect(log.start(of: GroupID(3)).index == LogIndex(1))
        #expect(try log.all(3) == [LogBench.entry(2, term: 2, size: 9)])
    }

    @Test func `a snapshot of version 1 reads and writes as ever`() throws {
        let store = try PartitionBench().open()
        var outcomes: [Outcome] = []
        try store.apply([PartitionBench.entry(1, size: 10)][...], into: &outcomes)
        try store.commit()
        let frames = try PartitionStoreTests.Frames(store.snapshot().whole())
        try Self.expect(frames.frames.flatMap { $0 }, "snapshot-1")
        let other = try PartitionBench(seed: 2).open()
        let identity = SnapshotIdentity(
            index: LogIndex(1), term: Term(1), configuration: Configuration(voters: []),
            digest: store.digest)
        try other.install(identity, from: frames).finish()
        #expect(other.digest == store.digest)
    }

    @Test func `a database page of version 1 is sealed as ever`() throws {
        let files = SimulatedFiles(seed: 1)
        let system = FileSystem(files)
        try RowDatabase.make("rows.db", in: system, fileTag: 0x0001_000C)
        let bytes = try #require(files.contents(of: "rows.db"))
        #expect(bytes[20] == 8, "reserved bytes")
        #expect(bytes[4_092..<4_096] == [0x0C, 0, 1, 0], "the file's tag")
        // The checksum by another implementation, over page, number and tag.
        let crc = CRC32C.of(Bytes(bytes[..<4_088]) + [1, 0, 0, 0, 0x0C, 0, 1, 0])
        #expect(
            Bytes(bytes[4_088..<4_092])
                == (0..<4).map { UInt8(truncatingIfNeeded: crc >> (8 * $0)) })
    }

    /// Computed by another implementation of SipHash-2-4-128, itself checked against the first
    /// vectors of its authors.
    @Test func `the digest of a row stays what it was`() {
        let key: Bytes = [1, 2, 3]
        let row: Bytes = [4, 5, 6, 7, 8, 9, 10, 11, 12]
        let hash = RowHash.of(.record, key.span.bytes, row.span.bytes)
        #expect(hash.description == Self.rowHash)
    }

    static let rowHash = "24a5fe8fdf37d4b9:7e31c537b09031e8"
}
