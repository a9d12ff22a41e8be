import StratusModel
import Synchronization

/// What all handles of one sealed file share: its key, its length, and the lock under which its
/// blocks are read, changed and written.
///
/// A write may end inside a block of 16 bytes. Then the block is read and written whole. It lies
/// in one sector, so a power cut leaves its other bytes as they were.
final class SealedFileState: Sendable {
    private struct Content {
        /// Nil: the file is empty, and has no header yet.
        var cipher: UnitCipher?
        /// Nil: an operation failed, and the disk must be asked.
        var length: UInt64?
        /// The last block of the latest write: most writes go on where it ended.
        var last: Block?
    }

    private struct Block {
        var offset: UInt64
        var low: UInt64
        var high: UInt64
    }

    private static let blockSize = UInt64(UnitCipher.blockSize)
    private static let headerSize = UInt64(FileSeal.headerSize)
    private static let tailSize = FileSeal.tailSize

    private let path: DiskPath
    private let masters: FileMasters
    private let random: @Sendable () -> UInt64
    private let content: Mutex<Content>

    /// Reads the header of a file. One that is not synced yet is written with the first bytes.
    init(
        _ file: any File, _ path: DiskPath, _ masters: FileMasters,
        _ random: @escaping @Sendable () -> UInt64
    ) throws(DiskError) {
        self.path = path
        self.masters = masters
        self.random = random
        let length = try file.length
        var content = Content(cipher: nil, length: 0, last: nil)
        if length > 0 {
            let finding = FileSeal.find(in: try file.start(), length: length)
            let key: SecretBytes?
            do throws(FileMasters.Problem) { key = try masters.key(of: finding) } catch {
                throw DiskError(error, path: path)
            }
            // What stands at the beginning of a file that never grew may be in memory only: its
            // first write makes a header anew, and syncs it.
            content.length = Self.contentLength(length)
            if content.length ?? 0 > 0 { content.cipher = key.map { Self.cipher($0) } }
        }
        self.content = Mutex(content)
    }

    private static func cipher(_ key: SecretBytes) -> UnitCipher {
        UnitCipher(
            key: KeyDerivation.derive(
                from: key, info: Bytes("stratus file units 1".utf8), count: UnitCipher.keySize))
    }

    // MARK: Lengths

    private static func contentLength(_ onDisk: UInt64) -> UInt64 {
        let around = Self.headerSize + UInt64(Self.tailSize)
        return onDisk > around ? onDisk - around : 0
    }

    private static func down(_ offset: UInt64) -> UInt64 { offset & ~(Self.blockSize - 1) }
    private static func up(_ offset: UInt64) -> UInt64 { Self.down(offset + Self.blockSize - 1) }

    private func length(_ content: inout Content, _ file: any File) throws(DiskError) -> UInt64 {
        if let length = content.length { return length }
        let length = Self.contentLength(try file.length)
        content.length = length
        return length
    }

    func length(through file: any File) throws(DiskError) -> UInt64 {
        try self.content.withLock { content throws(DiskError) in
            try self.length(&content, file)
        }
    }

    // MARK: Reading

    func read(
        _ into: UnsafeMutableRawBufferPointer, at offset: UInt64, through file: any File
    ) throws(DiskError) -> Int {
        try self.content.withLock { content throws(DiskError) -> Int in
            let length = try self.length(&content, file)
            guard let cipher = content.cipher, offset < length, !into.isEmpty else { return 0 }
            let count = Int(min(UInt64(into.count), length - offset))
            let start = Self.down(offset)
            let lead = Int(offset - start)
            let size = Int(Self.up(offset + UInt64(count)) - start)
            if size == count {
                let room = UnsafeMutableRawBufferPointer(rebasing: into[..<count])
                return try self.open(room, at: start, cipher, file)
            }
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
            defer { room.deallocate() }
            let read = try self.open(room, at: start, cipher, file)
            let used = max(0, min(count, read - lead))
            if used > 0 {
                into.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: room[lead..<(lead + used)]))
            }
            return used
        }
    }

    /// Reads and opens whole blocks.
    /// - Returns: how many bytes: fewer if the file on disk ends before.
    private func open(
        _ room: UnsafeMutableRawBufferPointer, at start: UInt64, _ cipher: UnitCipher,
        _ file: any File
    ) throws(DiskError) -> Int {
        let read = try file.read(room, at: Self.headerSize + start) & ~(UnitCipher.blockSize - 1)
        var done = 0
        while done < read {
            let piece = UnsafeMutableRawBufferPointer(
                rebasing: room[done..<min(read, done + Self.pieceSize)])
            let holes = Self.zeroBlocks(piece)
            cipher.open(piece, at: start + UInt64(done))
            for hole in holes {
                UnsafeMutableRawBufferPointer(
                    rebasing: piece[hole..<(hole + UnitCipher.blockSize)]
                ).initializeMemory(as: UInt8.self, repeating: 0)
            }
            done += piece.count
        }
        return read
    }

    /// Opened at a time, so that the list of holes stays short.
    private static let pieceSize = 16 * UnitCipher.unitSize

    /// The offsets of blocks that were never written.
    private static func zeroBlocks(_ blocks: UnsafeMutableRawBufferPointer) -> [Int] {
        var holes: [Int] = []
        guard let start = blocks.baseAddress else { return holes }
        var offset = 0
        while offset < blocks.count {
            if start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) == 0,
                start.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self) == 0
            {
                holes.append(offset)
            }
            offset += UnitCipher.blockSize
        }
        return holes
    }

    // MARK: Writing

    func write(
        _ from: UnsafeRawBufferPointer, at offset: UInt64, through file: any File
    ) throws(DiskError) {
        if from.isEmpty { return }
        try self.content.withLock { content throws(DiskError) in
            let length = try self.length(&content, file)
            let cipher = try self.begun(&content, file)
            let start = Self.down(offset)
            let end = offset + UInt64(from.count)
            if offset > length, start > Self.down(length) {
                try self.endWithZeros(&content, length, cipher, file)
            }
            let whole = Int(Self.up(end) - start)
            let grows = end > length
            let size = grows ? Int(end - start) + Self.tailSize : whole
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
            defer { room.deallocate() }
            let lead = Int(offset - start)
            let lastStart = whole - UnitCipher.blockSize
            if lead > 0 {
                try self.read(
                    block: room, 0, at: start, before: length, &content, cipher, file)
            }
            if lead + from.count < whole, lead == 0 || lastStart > 0 {
                try self.read(
                    block: room, lastStart, at: start + UInt64(lastStart), before: length,
                    &content, cipher, file)
            }
            UnsafeMutableRawBufferPointer(rebasing: room[lead...]).copyMemory(from: from)
            if size > whole {
                UnsafeMutableRawBufferPointer(rebasing: room[whole...])
                    .initializeMemory(as: UInt8.self, repeating: 0)
            }
            let last = Block(
                offset: start + UInt64(lastStart),
                low: room.loadUnaligned(fromByteOffset: lastStart, as: UInt64.self),
                high: room.loadUnaligned(fromByteOffset: lastStart + 8, as: UInt64.self))
            cipher.seal(UnsafeMutableRawBufferPointer(rebasing: room[..<whole]), at: start)
            content.last = nil
            content.length = nil
            try file.write(UnsafeRawBufferPointer(room), at: Self.headerSize + start)
            content.last = last
            content.length = max(length, end)
        }
    }

    /// Puts a block of the file into `room`: what stands before `length`, then zeros.
    private func read(
        block room: UnsafeMutableRawBufferPointer, _ place: Int, at offset: UInt64,
        before length: UInt64, _ content: inout Content, _ cipher: UnitCipher, _ file: any File
    ) throws(DiskError) {
        let block = UnsafeMutableRawBufferPointer(
            rebasing: room[place..<(place + UnitCipher.blockSize)])
        var kept = 0
        if offset < length {
            if let last = content.last, last.offset == offset {
                block.storeBytes(of: last.low, toByteOffset: 0, as: UInt64.self)
                block.storeBytes(of: last.high, toByteOffset: 8, as: UInt64.self)
                kept = UnitCipher.blockSize
            } else {
                kept = try self.open(block, at: offset, cipher, file)
            }
            kept = Int(min(UInt64(kept), length - offset))
        }
        UnsafeMutableRawBufferPointer(rebasing: block[kept...])
            .initializeMemory(as: UInt8.self, repeating: 0)
    }

    /// Makes what stands behind the file's end zeros, because the file is about to grow beyond it.
    /// A shorter file than before leaves bytes there.
    private func endWithZeros(
        _ content: inout Content, _ length: UInt64, _ cipher: UnitCipher, _ file: any File
    ) throws(DiskError) {
        let start = Self.down(length)
        let block = start == length ? 0 : UnitCipher.blockSize
        let size = Int(length - start) + Self.tailSize
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
        defer { room.deallocate() }
        room.initializeMemory(as: UInt8.self, repeating: 0)
        if block > 0 {
            try self.read(block: room, 0, at: start, before: length, &content, cipher, file)
            cipher.seal(UnsafeMutableRawBufferPointer(rebasing: room[..<block]), at: start)
        }
        content.last = nil
        content.length = nil
        try file.write(UnsafeRawBufferPointer(room), at: Self.headerSize + start)
        content.length = length
    }

    func resize(_ length: UInt64, through file: any File) throws(DiskError) {
        try self.content.withLock { content throws(DiskError) in
            let before = try self.length(&content, file)
            if length > before {
                let cipher = try self.begun(&content, file)
                try self.endWithZeros(&content, before, cipher, file)
            } else if content.cipher == nil {
                return
            }
            content.last = nil
            content.length = nil
            try file.resize(
                Self.headerSize + (length == 0 ? 0 : length + UInt64(Self.tailSize)))
            content.length = length
        }
    }

    /// The file's cipher. A file that is still empty gets its key and its header, synced: what is
    /// written behind it never lacks it.
    private func begun(_ content: inout Content, _ file: any File) throws(DiskError) -> UnitCipher {
        if let cipher = content.cipher { return cipher }
        let key = self.masters.draw(random: self.random)
        let seal = FileSeal(generation: 1, key: self.masters.wrap(key, random: self.random))
        try file.write(all: seal.header, at: 0)
        try file.sync()
        let cipher = Self.cipher(key)
        content.cipher = cipher
        return cipher
    }
}

extension File {
    /// The first bytes of a file, as many as a header has.
    func start() throws(DiskError) -> Bytes {
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: FileSeal.headerSize, alignment: 16)
        defer { room.deallocate() }
        let count = try self.read(room, at: 0)
        return Bytes(room[..<count])
    }

    func write(all bytes: Bytes, at offset: UInt64) throws(DiskError) {
        try bytes.span.bytes.withUnsafeBytes { (buffer) throws(DiskError) in
            try self.write(buffer, at: offset)
        }
    }
}
