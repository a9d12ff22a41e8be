import StratusCoding
package import StratusModel

// The file STRATUS in a data directory, version 16
//
// | bytes | what                                                              |
// | ----- | ----------------------------------------------------------------- |
// | 8     | "STRATUS" and a line feed                                         |
// | 1     | version of the data directory, 16                                 |
// | 8 + 8 | identity: drawn when the directory was made, the same ever after  |
// | 1     | state: 1 clear; 2 sealed: every file but those that `SealedFiles`  |
// |       | names; 3 becoming sealed, 4 becoming clear, while the files of a   |
// |       | conversion take their places                                      |
// | 4     | CRC-32C of the bytes before                                       |
//
// Versions 1 to 3 were those of builds before 0.1.0, which no release reads.

/// A node's data directory: the node it belongs to, the version that wrote it, and a lock that
/// keeps a second process out.
///
/// Nothing in the directory is written before its version is known to be one that this build can
/// write.
package final class DataDirectory: Sendable {
    package enum Refusal: Error, Sendable, Equatable, CustomStringConvertible {
        case inUse
        case newerVersion(UInt8)
        /// Made by a build before the first release.
        case unreleasedVersion(UInt8)
        case damaged(String)
        case disk(String)
        /// It is not sealed, and is to be used sealed.
        case isClear
        /// It is sealed, and is to be used without.
        case isSealed
        /// Some of its files are sealed and some are not: see ``DirectoryConversion``.
        case isBeingConverted(to: Form)

        package var description: String {
            switch self {
            case .inUse: "the data directory is in use by another process"
            case .newerVersion(let version):
                "the data directory has format \(version), and this Stratus reads format "
                    + "\(DataDirectory.version): run the version that wrote it, or a later one"
            case .unreleasedVersion(let version):
                "the data directory has format \(version): it was made by a build before 0.1.0, which "
                    + "this release does not read"
            case .isClear:
                "this data directory is not sealed: set 'storage.atRest' to false, or seal the "
                    + "directory with '\(Form.sealed.command)'"
            case .isSealed:
                "this data directory is sealed: set 'storage.atRest' to true, or unseal the "
                    + "directory with '\(Form.clear.command)'"
            case .isBeingConverted(let form):
                "a conversion of this data directory was interrupted while the new files took their "
                    + "places: run '\(form.command)' again, which finishes it"
            case .damaged(let what):
                "the data directory's STRATUS file is damaged: \(what). \(DataDirectory.rejoin)"
            case .disk(let text): text
            }
        }
    }

    /// How the files of a directory are written.
    package enum Form: Sendable {
        /// As they are.
        case clear
        case sealed

        /// The command that brings a directory into this form.
        package var command: String {
            switch self {
            case .clear: "stratus data-directory unseal"
            case .sealed: "stratus data-directory seal"
            }
        }
    }

    /// What the stamp says of the files.
    package enum State: Sendable, Equatable {
        case whole(Form)
        case converting(to: Form)
    }

    /// What to do about a file that says what the directory is, who the node is or whom it knows. An
    /// older copy of it would be a lie.
    package static let rejoin =
        "Remove the node with 'stratusctl node remove NAME --now', asked of another one, and let it join "
        + "anew with an empty data directory. A node alone: restore the whole directory from a backup"

    private static let version: UInt8 = 16
    private static let unreleasedVersions: ClosedRange<UInt8> = 1...3
    private static let mark = Bytes("STRATUS\n".utf8)
    static let stamp: DiskPath = "STRATUS"

    package let identity: RequestIdentity
    /// Whether this call made it: there was nothing before.
    package let isNew: Bool
    /// As of the time when it was locked.
    package let state: State
    /// Whether its files are sealed, or are to become so.
    package var isSealed: Bool { self.state.form == .sealed }
    private let lock: any DiskLock

    /// Locks the directory, then reads its stamp, or writes one if there is none.
    ///
    /// - Parameter atRest: whether its files are to be sealed. That is decided when a directory is
    ///   made, and one that was made otherwise is refused. Nil: as it is; a new one is not.
    package init(in world: any World, atRest: Bool? = nil) throws(Refusal) {
        let files = world.files
        self.lock = try Self.take(files)
        do {
            if try files.exists(Self.stamp) {
                switch try Self.read(files) {
                case .success(let found):
                    guard case .whole(let form) = found.state else {
                        throw Refusal.isBeingConverted(to: found.state.form)
                    }
                    if let atRest, atRest != (form == .sealed) {
                        throw atRest ? Refusal.isClear : Refusal.isSealed
                    }
                    self.identity = found.identity
                    self.state = found.state
                    // An earlier process may have died between renaming it and this.
                    try files.syncDirectory(.root)
                case .failure(let refusal): throw refusal
                }
                self.isNew = false
            } else {
                self.identity = world.drawIdentity()
                self.state = .whole(atRest == true ? .sealed : .clear)
                self.isNew = true
                try Self.write(self.state, of: self.identity, files)
            }
        } catch let error as DiskError {
            throw .disk(error.description)
        } catch let refusal as Refusal {
            throw refusal
        } catch { preconditionFailure("\(error)") }
    }

    /// Locks a directory that has been used and is to be converted, whatever its state.
    package init(toConvert files: any Files) throws(Refusal) {
        self.lock = try Self.take(files)
        let found: Result<(identity: RequestIdentity, state: State), Refusal>
        do throws(DiskError) {
            found = try Self.read(files)
            // An earlier process may have died between renaming it and this.
            try files.syncDirectory(.root)
        } catch { throw .disk(error.description) }
        (self.identity, self.state) = try found.get()
        self.isNew = false
    }

    private static func take(_ files: any Files) throws(Refusal) -> any DiskLock {
        do throws(DiskError) { return try files.lock("LOCK") } catch {
            throw error.kind == .denied ? .inUse : .disk(error.description)
        }
    }

    /// Durably.
    package func note(_ state: State, in files: any Files) throws(DiskError) {
        try Self.write(state, of: self.identity, files)
    }

    private static func read(_ files: any Files) throws(DiskError) -> Result<
        (identity: RequestIdentity, state: State), Refusal
    > {
        let bytes = try files.contents(of: Self.stamp, limit: 64)
        var reader = ByteReader(bytes)
        do throws(DecodingError) {
            guard try reader.raw(8) == Self.mark else { return .failure(.damaged("no mark")) }
            let version = try reader.byte()
            // Before the checksum: another version may keep it elsewhere.
            if Self.unreleasedVersions.contains(version) {
                return .failure(.unreleasedVersion(version))
            }
            if version > Self.version { return .failure(.newerVersion(version)) }
            guard version == Self.version else { return .failure(.damaged("version \(version)")) }
            let identity = RequestIdentity(high: try reader.fixed64(), low: try reader.fixed64())
            let byte = try reader.byte()
            let end = reader.offset
            let crc = try reader.fixed32()
            try reader.finish()
            guard CRC32C.of(Bytes(bytes[..<end])) == crc else {
                return .failure(.damaged("wrong checksum"))
            }
            guard let state = State(byte: byte) else {
                return .failure(.damaged("state \(byte)"))
            }
            return .success((identity, state))
        } catch { return .failure(.damaged(error.description)) }
    }

    private static func write(
        _ state: State, of identity: RequestIdentity, _ files: any Files
    ) throws(DiskError) {
        var writer = ByteWriter()
        writer.write(raw: Self.mark)
        writer.write(Self.version)
        writer.write(fixed: identity.high)
        writer.write(fixed: identity.low)
        writer.write(state.byte)
        writer.write(fixed: CRC32C.of(writer.bytes))
        try files.replace(Self.stamp, with: writer.bytes)
    }
}

extension DataDirectory.State {
    /// As the stamp says it.
    fileprivate var byte: UInt8 {
        switch self {
        case .whole(.clear): 1
        case .whole(.sealed): 2
        case .converting(to: .sealed): 3
        case .converting(to: .clear): 4
        }
    }

    fileprivate init?(byte: UInt8) {
        switch byte {
        case 1: self = .whole(.clear)
        case 2: self = .whole(.sealed)
        case 3: self = .converting(to: .sealed)
        case 4: self = .converting(to: .clear)
        default: return nil
        }
    }

    /// What the files are, or are to become.
    package var form: DataDirectory.Form {
        switch self {
        case .whole(let form), .converting(let form): form
        }
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
