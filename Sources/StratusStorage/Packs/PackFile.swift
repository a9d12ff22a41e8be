import CShims
import StratusCoding
import StratusModel

/// One pack: a file of copies that only grows.
final class PackFile {
    let header: PackHeader
    let path: DiskPath
    private let file: any File
    /// Behind the last synced record.
    private(set) var end: UInt64
    /// A planted bug: a sync that failed is asked for once more, and believed.
    var asksTwice = false

    var number: UInt64 { self.header.number }

    private init(_ header: PackHeader, _ path: DiskPath, _ file: any File, end: UInt64) {
        self.header = header
        self.path = path
        self.file = file
        self.end = end
    }

    /// Makes an empty pack, durably: its header is on the medium before any record is, so a pack
    /// without a sound header has nothing that was acknowledged, or it has rotted.
    static func make(_ header: PackHeader, in directory: PackDirectory, _ files: any Files)
        throws(DiskError) -> PackFile
    {
        let path = directory.pack(header.number)
        let file = try files.open(path, create: true)
        let bytes = PackFormat.encode(header)
        try Self.write(bytes, to: file, at: 0)
        try file.sync()
        try files.syncDirectory(directory.path)
        return PackFile(header, path, file, end: UInt64(bytes.count))
    }

    /// Opens a pack that is there. Nil: neither its header nor its first record is sound.
    static func open(_ number: UInt64, in directory: PackDirectory, _ files: any Files)
        throws(DiskError) -> PackFile?
    {
        let path = directory.pack(number)
        let file = try files.open(path, create: false)
        let bytes = try Self.read(PackScan.startSize, of: file, at: 0)
        let header = PackScan.header(bytes, of: directory.group, number: number)
        let end = try file.length
        return header.map { PackFile($0, path, file, end: end) }
    }

    // MARK: Writing

    /// Appends records and syncs them. After a throw ``end`` is where it was.
    func append(_ copies: [StoredCopy], isSynced: Bool) throws(PackFailure) -> [PackRecord] {
        var records: [PackRecord] = []
        var buffer = Bytes()
        var position = self.end
        for copy in copies {
            let held = HeldCopy(
                name: copy.name, orphanAfterMilliseconds: copy.orphanAfterMilliseconds,
                storedSize: UInt32(copy.bytes.count), crc: Self.checksum(copy.bytes[...]))
            let record = PackRecord(copy: held, position: position)
            buffer.append(contentsOf: PackFormat.encode(record, in: self.header))
            buffer.append(contentsOf: copy.bytes)
            position = record.end
            buffer.append(
                contentsOf: repeatElement(0, count: Int(position - self.end) - buffer.count))
            records.append(record)
        }
        try self.write(buffer, isSynced: isSynced)
        self.end = position
        return records
    }

    /// Ends the pack: nothing is written behind its seal.
    func seal() throws(PackFailure) {
        try self.write(PackFormat.encodeSeal(at: self.end, in: self.header), isSynced: true)
    }

    private func write(_ bytes: Bytes, isSynced: Bool) throws(PackFailure) {
        do throws(DiskError) {
            try Self.write(bytes, to: self.file, at: self.end)
        } catch {
            throw PackFailure(error: error, isSyncFailure: false)
        }
        if !isSynced { return }
        do throws(DiskError) {
            try self.file.sync()
        } catch {
            if self.asksTwice, (try? self.file.sync()) != nil { return }
            throw PackFailure(error: error, isSyncFailure: true)
        }
    }

    /// Takes back what a failed write may have left behind ``end``. Not after a failed sync.
    func cut() throws(DiskError) { try self.file.resize(self.end) }

    /// Writes what stands from `start` to `end` over itself and syncs it, so that what was read of
    /// it is on the medium too, whatever an earlier process' syncs came to. What stands behind
    /// goes.
    func makeDurable(from start: UInt64, to end: UInt64) throws(DiskError) {
        var position = start
        while position < end {
            let count = Int(min(end - position, 1 << 20))
            let bytes = try Self.read(count, of: self.file, at: position)
            guard bytes.count == count else {
                throw DiskError(.io, during: "read a pack twice", path: self.path)
            }
            try Self.write(bytes, to: self.file, at: position)
            position += UInt64(count)
        }
        try self.file.resize(end)
        try self.file.sync()
        self.end = end
    }

    // MARK: Reading

    var length: UInt64 { get throws(DiskError) { try self.file.length } }

    func bytes(_ count: Int, at position: UInt64) throws(DiskError) -> Bytes {
        try Self.read(count, of: self.file, at: position)
    }

    /// The record at `position`. Nil: there is none whose header is sound.
    func record(at position: UInt64) throws(DiskError) -> PackRecord? {
        PackFormat.record(
            try self.bytes(PackFormat.recordHeaderSize, at: position), at: position,
            in: self.header)
    }

    /// The bytes of a copy, if its header and its bytes are as they were written.
    func content(of record: PackRecord) throws(DiskError) -> Bytes? {
        let size = PackFormat.recordHeaderSize + Int(record.copy.storedSize)
        let bytes = try self.bytes(size, at: record.position)
        guard bytes.count == size,
            PackFormat.record(
                Bytes(bytes[..<PackFormat.recordHeaderSize]), at: record.position,
                in: self.header) == record
        else { return nil }
        let content = bytes[PackFormat.recordHeaderSize...]
        return Self.checksum(content) == record.copy.crc ? Bytes(content) : nil
    }

    /// Whether the pack ends with its seal; then the place of the seal.
    func sealPosition() throws(DiskError) -> UInt64? {
        let length = try self.file.length
        let size = UInt64(PackFormat.sealSize)
        guard length >= UInt64(PackFormat.headerSize) + size else { return nil }
        let position = length - size
        let bytes = try self.bytes(PackFormat.sealSize, at: position)
        return PackFormat.isSeal(bytes, at: position, in: self.header) ? position : nil
    }

    // MARK: Bytes

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.withUnsafeBytes { stratus_crc32c(0, $0.baseAddress, $0.count) }
    }

    private static func write(_ bytes: Bytes, to file: any File, at position: UInt64)
        throws(DiskError)
    {
        let result = bytes.withUnsafeBytes { buffer -> Result<Void, DiskError> in
            do throws(DiskError) {
                try file.write(buffer, at: position)
                return .success(())
            } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Fewer bytes at the end of the file.
    private static func read(_ count: Int, of file: any File, at position: UInt64)
        throws(DiskError) -> Bytes
    {
        var failure: DiskError?
        let bytes = Bytes(unsafeUninitializedCapacity: count) { room, initialized in
            do throws(DiskError) {
                initialized = try file.read(UnsafeMutableRawBufferPointer(room), at: position)
            } catch {
                initialized = 0
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}

/// Why a pack could not be written.
struct PackFailure: Error {
    var error: DiskError
    /// Then the pack is not written again: the system may have dropped what it should have kept,
    /// and another sync would say nothing about it.
    var isSyncFailure: Bool
}
