import StratusCoding
package import StratusModel

// The file STRATUS in a data directory, version 1
//
// | bytes | what                                                              |
// | ----- | ----------------------------------------------------------------- |
// | 8     | "STRATUS" and a line feed                                         |
// | 1     | version of the data directory, 1                                  |
// | 8 + 8 | identity: drawn when the directory was made, the same ever after  |
// | 4     | CRC-32C of the bytes before                                       |

/// A node's data directory: the node it belongs to, the version that wrote it, and a lock that
/// keeps a second process out.
///
/// Nothing in the directory is written before its version is known to be one that this build can
/// write.
package final class DataDirectory: Sendable {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        case inUse
        case newerVersion(UInt8)
        case damaged(String)
        case disk(String)

        package var description: String {
            switch self {
            case .inUse: "the data directory is in use by another process"
            case .newerVersion(let version):
                "the data directory has format \(version), and this Stratus reads format 1: "
                    + "run the version that wrote it, or a later one"
            case .damaged(let what): "the data directory's STRATUS file is damaged: \(what)"
            case .disk(let text): text
            }
        }
    }

    static let version: UInt8 = 1
    private static let mark = Bytes("STRATUS\n".utf8)
    static let stamp: DiskPath = "STRATUS"

    package let identity: RequestIdentity
    /// Whether this call made it: there was nothing before.
    package let isNew: Bool
    private let lock: any DiskLock

    /// Locks the directory, then reads its stamp, or writes one if there is none.
    package init(in world: any World) throws(Refusal) {
        let files = world.files
        do throws(DiskError) { self.lock = try files.lock("LOCK") } catch {
            throw error.kind == .denied ? .inUse : .disk(error.description)
        }
        do {
            if try files.exists(Self.stamp) {
                switch try Self.read(files) {
                case .success(let identity):
                    self.identity = identity
                    // An earlier process may have died between renaming it and this.
                    try files.syncDirectory(.root)
                case .failure(let refusal): throw refusal
                }
                self.isNew = false
            } else {
                self.identity = world.drawIdentity()
                self.isNew = true
                try Self.write(self.identity, files)
            }
        } catch let error as DiskError {
            throw .disk(error.description)
        } catch let refusal as Refusal {
            throw refusal
        } catch { preconditionFailure("\(error)") }
    }

    private static func read(_ files: any Files) throws(DiskError) -> Result<
        RequestIdentity, Refusal
    > {
        let bytes = try files.contents(of: Self.stamp, limit: 64)
        var reader = ByteReader(bytes)
        do throws(DecodingError) {
            guard try reader.raw(8) == Self.mark else { return .failure(.damaged("no mark")) }
            let version = try reader.byte()
            // Before the checksum: a later version may keep it elsewhere.
            guard version <= Self.version else { return .failure(.newerVersion(version)) }
            let identity = RequestIdentity(high: try reader.fixed64(), low: try reader.fixed64())
            let crc = try reader.fixed32()
            try reader.finish()
            guard CRC32C.of(Bytes(bytes[..<25])) == crc else {
                return .failure(.damaged("wrong checksum"))
            }
            return .success(identity)
        } catch { return .failure(.damaged(error.description)) }
    }

    private static func write(_ identity: RequestIdentity, _ files: any Files) throws(DiskError) {
        var writer = ByteWriter()
        writer.write(raw: Self.mark)
        writer.write(Self.version)
        writer.write(fixed: identity.high)
        writer.write(fixed: identity.low)
        writer.write(fixed: CRC32C.of(writer.bytes))
        try files.replace(Self.stamp, with: writer.bytes)
    }
}

extension File {
    /// Up to `count` bytes at `offset`; fewer mean the end of the file.
    func bytes(_ count: Int, at offset: UInt64) throws(DiskError) -> Bytes {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
        defer { buffer.deallocate() }
        let read = try self.read(buffer, at: offset)
        return Bytes(buffer[..<read])
    }

    func write(_ bytes: Bytes, at offset: UInt64 = 0) throws(DiskError) {
        try bytes.span.bytes.withUnsafeBytes { (buffer) throws(DiskError) in
            try self.write(buffer, at: offset)
        }
    }
}

extension Files {
    /// Makes the names in a directory, and its own, and those above, durable.
    func syncDirectories(upFrom directory: DiskPath) throws(DiskError) {
        var path = directory
        try self.syncDirectory(path)
        while path != .root {
            path = path.parent
            try self.syncDirectory(path)
        }
    }

    /// The first `limit` bytes of a file.
    package func contents(of path: DiskPath, limit: Int) throws(DiskError) -> Bytes {
        try self.open(path, create: false).bytes(limit, at: 0)
    }

    /// Replaces the file at `path` by `bytes`: after a crash one or the other is there, whole.
    package func replace(_ path: DiskPath, with bytes: Bytes) throws(DiskError) {
        let unfinished = DiskPath(path.raw + ".new")
        let file = try self.open(unfinished, create: true)
        try file.resize(0)
        try file.write(bytes)
        try file.sync()
        try self.rename(unfinished, to: path)
        try self.syncDirectory(path.parent)
    }
}
