import StratusAdmin
import StratusCoding
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusControl

/// The packs of another disk, and what is sent of them.
@Suite struct FoundPacksTests {
    static let group = GroupID(12)

    static func bytes(_ body: Int, _ ordinal: Int) -> Bytes {
        Bytes(repeating: UInt8(body * 16 + ordinal), count: 100 + ordinal)
    }

    /// A pack with these copies.
    static func pack(_ number: UInt64, _ copies: [(body: Int, ordinal: Int)]) -> Bytes {
        let header = PackHeader(group: Self.group, number: number, salt: 0x1234_5678 + number)
        var pack = PackFormat.encode(header)
        for copy in copies {
            let bytes = Self.bytes(copy.body, copy.ordinal)
            let record = PackRecord(
                copy: HeldCopy(
                    name: CopyName(
                        body: BodyID(UInt128(copy.body)), ordinal: UInt32(copy.ordinal)),
                    orphanAfterMilliseconds: 9, storedSize: UInt32(bytes.count),
                    crc: CRC32C.of(bytes)), position: UInt64(pack.count))
            pack += PackFormat.encode(record, in: header) + bytes
            pack += repeatElement(0, count: Int(record.end) - pack.count)
        }
        return pack
    }

    private func folder(_ packs: [UInt64: Bytes]) throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        let files = try RealFiles(directory: directory.path)
        try files.makeDirectory("data/assets/00012")
        for (number, bytes) in packs {
            let file = try files.open(
                DiskPath("data/assets/00012/0000000\(number).pack"), create: true)
            try bytes.withUnsafeBytes { (buffer) throws in try file.write(buffer, at: 0) }
        }
        return directory
    }

    private func packs(in directory: TemporaryDirectory) throws -> FoundPacks {
        let folders = try FoundPacks.folders(in: directory.path + "/data")
        return try FoundPacks(in: #require(folders.first))
    }

    @Test func `a data directory, its folder of files and one partition's folder are known`() throws
    {
        let directory = try self.folder([1: Self.pack(1, [])])
        let data = directory.path + "/data"
        let folder = FoundPacks.Folder(group: Self.group, path: data + "/assets/00012")
        for path in [data, data + "/assets", data + "/assets/00012"] {
            #expect(try FoundPacks.folders(in: path) == [folder], "\(path)")
        }
        #expect(try FoundPacks.folders(in: directory.path).isEmpty)
        #expect(throws: (any Error).self) { try FoundPacks.folders(in: data + "/nowhere") }
    }

    @Test func `copies are found in all packs, without an index`() throws {
        let directory = try self.folder([
            1: Self.pack(1, [(7, 0), (7, 1), (8, 0)]), 2: Self.pack(2, [(7, 2), (8, 0)]),
        ])
        let packs = try self.packs(in: directory)
        #expect(packs.group == Self.group)
        #expect(packs.bodies == [BodyID(7), BodyID(8)])
        #expect(packs.ordinals(of: BodyID(7)) == [0, 1, 2])
        #expect(packs.troubles.isEmpty)
        for ordinal in 0..<3 {
            #expect(packs.copy(BodyID(7), UInt32(ordinal)) == Self.bytes(7, ordinal))
        }
        #expect(packs.copy(BodyID(9), 0) == nil)
    }

    @Test func `rot hides the copies that it struck, and no others`() throws {
        var first = Self.pack(1, [(7, 0), (7, 1), (7, 2), (8, 0)])
        // Bytes of the first copy, and the head of the second.
        first[64 + 64 + 5] ^= 1
        first[64 + 64 + 104 + 9] ^= 1
        let directory = try self.folder([1: first, 2: Self.pack(2, [(7, 0)])])
        let packs = try self.packs(in: directory)
        #expect(packs.ordinals(of: BodyID(7)) == [0, 2])
        #expect(packs.copy(BodyID(7), 0) == Self.bytes(7, 0), "the other pack has it")
        #expect(packs.copy(BodyID(8), 0) == Self.bytes(8, 0))
    }

    @Test func `a pack whose beginning is unreadable is named`() throws {
        var first = Self.pack(1, [(7, 0)])
        for position in 0..<128 { first[position] = 0xEE }
        let packs = try self.packs(in: self.folder([1: first, 2: Self.pack(2, [(8, 0)])]))
        #expect(packs.bodies == [BodyID(8)])
        #expect(packs.troubles.count == 1)
    }

    /// Gives its bytes in pieces of one size.
    private final class Pieces: RequestBody {
        private let left: Mutex<ArraySlice<UInt8>>
        private let size: Int

        init(_ bytes: Bytes, _ size: Int) {
            self.left = Mutex(bytes[...])
            self.size = size
        }

        func next() async throws(RequestBodyError) -> Bytes? {
            self.left.withLock { left in
                if left.isEmpty { return nil }
                defer { left = left.dropFirst(self.size) }
                return Bytes(left.prefix(self.size))
            }
        }
    }

    @Test(arguments: [1, 7, 8, 9, 100, 1_000])
    func `copies arrive one by one, however they are cut`(size: Int) async throws {
        var sent = Bytes()
        for ordinal in 0..<3 {
            let bytes = Self.bytes(7, ordinal)
            sent += CopyFrame(ordinal: UInt32(ordinal), storedSize: UInt32(bytes.count)).encoded()
            sent += bytes
        }
        #expect(sent[..<8] == [0, 0, 0, 0, 100, 0, 0, 0])
        var frames = CopyFrames(Pieces(sent, size))
        for ordinal in 0..<3 {
            let copy = try #require(try await frames.next())
            #expect(copy.ordinal == UInt32(ordinal))
            #expect(copy.bytes == Self.bytes(7, ordinal))
        }
        #expect(try await frames.next() == nil)
        var cut = CopyFrames(Pieces(Bytes(sent.dropLast()), size))
        _ = try await cut.next()
        _ = try await cut.next()
        await #expect(throws: NodeControlFailure.refused("the last copy is cut short")) {
            _ = try await cut.next()
        }
        var head = CopyFrames(Pieces(Bytes(sent.prefix(5)), size))
        await #expect(throws: NodeControlFailure.refused("the last copy is cut short")) {
            _ = try await head.next()
        }
        let large = CopyFrame(ordinal: 0, storedSize: AssetLimits.storedSizeMax + 1).encoded()
        var over = CopyFrames(Pieces(large, size))
        await #expect(throws: NodeControlFailure.self) { _ = try await over.next() }
    }
}
