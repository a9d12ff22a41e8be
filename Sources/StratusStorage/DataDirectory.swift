import StratusCoding
package import StratusModel

// The file STRATUS in a data directory, version 1; version 2 in a directory that is sealed
//
// | bytes | what                                                              |
// | ----- | ----------------------------------------------------------------- |
// | 8     | "STRATUS" and a line feed                                         |
// | 1     | version of the data directory, 1 or 2                             |
// | 8 + 8 | identity: drawn when the directory was made, the same ever after  |
// | 1     | version 2 only: 1, every file but those that `SealedFiles` names  |
// |       | is sealed, and was from the beginning                             |
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
        /// It was made without sealing, and is to be sealed.
        case isClear
        /// It was made sealed, and is to be used without.
        case isSealed

        package var description: String {
            switch self {
            case .inUse: "the data directory is in use by another process"
            case .newerVersion(let version):
                "the data directory has format \(version), and this Stratus reads formats 1 and 2: "
                    + "run the version that wrote it, or a later one"
            case .isClear:
                "this data directory was made without sealing, and a directory is sealed from its "
                    + "beginning or not at all: set 'storage.atRest' to false, or remove this node "
                    + "from the cluster and let it join anew with an empty directory"
            case .isSealed:
                "this data directory is sealed: set 'storage.atRest' to true, or remove this node "
                    + "from the cluster and let it join anew with an empty directory"
            case .damaged(let what): "the data directory's STRATUS file is damaged: \(what)"
            case .disk(let text): text
            }
        }
    }

    /// The version of a directory whose files are written as they are.
    private static let clear: UInt8 = 1
    private static let sealed: UInt8 = 2
    private static let isSealedThroughout: UInt8 = 1
    private static let mark = Bytes("STRATUS\n".utf8)
    static let stamp: DiskPath = "STRATUS"

    package let identity: RequestIdentity
    /// Whether this call made it: there was nothing before.
    package let isNew: Bool
    /// Whether its files are sealed.
    package let isSealed: Bool
    private let lock: any DiskLock

    /// Locks the directory, then reads its stamp, or writes one if there is none.
    ///
    /// - Parameter atRest: whether its files are to be sealed. That is decided when a directory is
    ///   made, and one that was made otherwise is refused. Nil: as it is; a new one is not.
    package init(in world: any World, atRest: Bool? = nil) throws(Refusal) {
        let files = world.files
        do throws(DiskError) { self.lock = try files.lock("LOCK") } catch {
            throw error.kind == .denied ? .inUse : .disk(error.description)
        }
        do {
            if try files.exists(Self.stamp) {
                switch try Self.read(files) {
                case .success(let found):
                    if let atRest, atRest != found.isSealed {
                        throw atRest ? Refusal.isClear : Refusal.isSealed
                    }
                    self.identity = found.identity
                    self.isSealed = found.isSealed
                    // An earlier process may have died between renaming it and this.
                    try files.syncDirectory(.root)
                case .failure(let refusal): throw refusal
                }
                self.isNew = false
            } else {
                self.identity = world.drawIdentity()
                self.isSealed = atRest ?? false
                self.isNew = true
                try Self.write(self.identity, isSealed: self.isSealed, files)
            }
        } catch let error as DiskError {
            throw .disk(error.description)
        } catch let refusal as Refusal {
            throw refusal
        } catch { preconditionFailure("\(error)") }
    }

    private static func read(_ files: any Files) throws(DiskError) -> Result<
        (identity: RequestIdentity, isSealed: Bool), Refusal
    > {
        let bytes = try files.contents(of: Self.stamp, limit: 64)
        var reader = ByteReader(bytes)
        do throws(DecodingError) {
            guard try reader.raw(8) == Self.mark else { return .failure(.damaged("no mark")) }
            let version = try reader.byte()
            // Before the checksum: a later version may keep it elsewhere.
            guard version <= Self.sealed else { return .failure(.newerVersion(version)) }
            let identity = RequestIdentity(high: try reader.fixed64(), low: try reader.fixed64())
            let state = try version == Self.sealed ? reader.byte() : nil
            let end = reader.offset
            let crc = try reader.fixed32()
            try reader.finish()
            guard CRC32C.of(Bytes(bytes[..<end])) == crc else {
                return .failure(.damaged("wrong checksum"))
            }
            guard version == Self.clear || state == Self.isSealedThroughout else {
                return .failure(.damaged("version \(version) with state \(state ?? 0)"))
            }
            return .success((identity, state != nil))
        } catch { return .failure(.damaged(error.description)) }
    }

    private static func write(
        _ identity: RequestIdentity, isSealed: Bool, _ files: any Files
    ) throws(DiskError) {
        var writer = ByteWriter()
        writer.write(raw: Self.mark)
        writer.write(isSealed ? Self.sealed : Self.clear)
        writer.write(fixed: identity.high)
        writer.write(fixed: identity.low)
        if isSealed { writer.write(Self.isSealedThroughout) }
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
