import Glibc
import StratusHTTP
package import StratusModel
import StratusProcess
import StratusSealing

/// The directory that an export writes files into: each is whole or absent.
///
/// One export at a time has it. A file is written under another name, synced and renamed.
package final class ExportFolder {
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        package var path: String
        /// `read`, `create`, …
        package var operation: String
        package var code: Int32

        package var isLocked: Bool { self.code == EWOULDBLOCK }
        package var description: String {
            "cannot \(self.operation) '\(self.path)': \(String(cString: strerror(self.code)))"
        }
    }

    package enum State: Sendable, Equatable {
        /// It has the size and the checksum.
        case same
        /// It is absent, or not what it should be: it may be replaced.
        case other
        /// Something else has the name, and is not removed.
        case blocked(String)
    }

    private static let pieceSize = 1 << 20
    private static let listName = ".list.partial"

    private let path: String
    private let directory: Int32
    private let list: Int32

    /// Makes the directory if it is missing.
    package init(_ path: String) throws(Failure) {
        self.path = path
        do throws(SmallFile.Failure) { try SmallFile.makeDirectory(path) } catch {
            throw Failure(path: path, operation: "create", code: error.code)
        }
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw Failure(path: path, operation: "use", code: errno) }
        guard flock(directory, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(directory)
            throw Failure(path: path, operation: "lock", code: code)
        }
        let list = openat(
            directory, Self.listName, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard list >= 0 else {
            let code = errno
            close(directory)
            throw Failure(path: path, operation: "write into", code: code)
        }
        unlinkat(directory, Self.listName, 0)
        self.directory = directory
        self.list = list
    }

    deinit {
        close(self.list)
        close(self.directory)
    }

    private func failure(_ name: String, _ operation: String, _ code: Int32) -> Failure {
        Failure(path: "\(self.path)/\(name)", operation: operation, code: code)
    }

    // MARK: The list of what is to be fetched

    /// Remembers lines, on the disk: there may be more than fit into memory.
    package func note(_ lines: [Bytes]) throws(Failure) {
        if lines.isEmpty { return }
        var text = Bytes()
        for line in lines { text += line + [0x0A] }
        let code = Self.write(text, to: self.list)
        guard code == 0 else { throw self.failure(Self.listName, "write", code) }
    }

    /// Goes back to the first of the lines.
    package func rewind() throws(Failure) {
        guard lseek(self.list, 0, SEEK_SET) == 0 else {
            throw self.failure(Self.listName, "read", errno)
        }
    }

    /// The next lines; none at the end.
    ///
    /// - Parameter rest: the beginning of a line from the call before; empty at first.
    package func lines(after rest: inout Bytes) throws(Failure) -> [Bytes] {
        var lines: [Bytes] = []
        while lines.isEmpty {
            let piece = try self.piece(of: self.list, Self.listName, size: 1 << 16)
            if piece.isEmpty { return [] }
            rest += piece
            var start = rest.startIndex
            while let end = rest[start...].firstIndex(of: 0x0A) {
                lines.append(Bytes(rest[start..<end]))
                start = end + 1
            }
            rest.removeFirst(start)
        }
        return lines
    }

    // MARK: Files

    package func state(of file: FileToFetch) throws(Failure) -> State {
        let descriptor = openat(
            self.directory, file.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            // A link is replaced; where it leads is left alone.
            if errno == ENOENT || errno == ELOOP { return .other }
            return .blocked(String(cString: strerror(errno)))
        }
        defer { close(descriptor) }
        var info = stat()
        guard fstat(descriptor, &info) == 0 else { throw self.failure(file.name, "read", errno) }
        switch info.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFDIR: return .blocked("a directory has this name")
        default: return .other
        }
        guard UInt64(info.st_size) == file.size else { return .other }
        let checksum = FileChecksum()
        while true {
            let piece: Bytes
            // What cannot be read is fetched again.
            do throws(Failure) {
                piece = try self.piece(of: descriptor, file.name, size: Self.pieceSize)
            } catch { return .other }
            if piece.isEmpty { break }
            checksum.update(piece)
        }
        return Base64.encode(checksum.finish()) == file.checksum ? .same : .other
    }

    /// Begins to write a file.
    package func begin(_ file: FileToFetch) throws(Failure) -> Writing {
        let name = ".\(file.name).partial"
        // What an interrupted export left may be anything.
        unlinkat(self.directory, name, 0)
        let descriptor = openat(
            self.directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw self.failure(file.name, "create", errno) }
        return Writing(self, file, descriptor, name)
    }

    /// Renames are on the disk when this returns.
    package func sync() throws(Failure) {
        guard fsync(self.directory) == 0 else {
            throw Failure(path: self.path, operation: "sync", code: errno)
        }
    }

    /// A file on its way. Nothing is left of one that is not finished.
    package final class Writing {
        private let folder: ExportFolder
        private let file: FileToFetch
        private let descriptor: Int32
        private let partial: String
        private let checksum = FileChecksum()
        private var size: UInt64 = 0
        private var isRenamed = false

        fileprivate init(
            _ folder: ExportFolder, _ file: FileToFetch, _ descriptor: Int32, _ partial: String
        ) {
            self.folder = folder
            self.file = file
            self.descriptor = descriptor
            self.partial = partial
        }

        deinit {
            close(self.descriptor)
            if !self.isRenamed { unlinkat(self.folder.directory, self.partial, 0) }
        }

        /// - Returns: false: there are more bytes than the file has.
        package func add(_ bytes: Bytes) throws(Failure) -> Bool {
            self.size += UInt64(bytes.count)
            guard self.size <= self.file.size else { return false }
            self.checksum.update(bytes)
            let code = ExportFolder.write(bytes, to: self.descriptor)
            guard code == 0 else { throw self.folder.failure(self.file.name, "write", code) }
            return true
        }

        /// Gives the file its name, if it is what it should be. To be asked once.
        ///
        /// - Returns: what is wrong with its bytes; nil: nothing is.
        package func finish() throws(Failure) -> String? {
            guard self.size == self.file.size else {
                return "the node sent more or fewer bytes than the file has"
            }
            guard Base64.encode(checksum.finish()) == self.file.checksum else {
                return "the bytes do not have the checksum of the export"
            }
            guard fsync(self.descriptor) == 0 else {
                throw self.folder.failure(self.file.name, "sync", errno)
            }
            let directory = self.folder.directory
            guard renameat(directory, self.partial, directory, self.file.name) == 0 else {
                throw self.folder.failure(self.file.name, "create", errno)
            }
            self.isRenamed = true
            return nil
        }
    }

    // MARK: Bytes

    private func piece(of descriptor: Int32, _ name: String, size: Int) throws(Failure) -> Bytes {
        var piece = Bytes(repeating: 0, count: size)
        while true {
            let count = read(descriptor, &piece, size)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw self.failure(name, "read", errno) }
            piece.removeLast(size - count)
            return piece
        }
    }

    /// - Returns: an error's number; 0: all of it was written.
    fileprivate static func write(_ bytes: Bytes, to descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count, let start = buffer.baseAddress {
                let count = Glibc.write(descriptor, start + offset, buffer.count - offset)
                if count < 0, errno != EINTR { return errno }
                offset += max(0, count)
            }
            return 0
        }
    }
}
