import Glibc
package import StratusModel

/// Files that fit into memory: the configuration, tokens, certificates.
package enum SmallFile {
    package struct Failure: Error, Sendable, Equatable, CustomStringConvertible {
        package var path: String
        /// `read`, `create`, …
        package var operation: String
        package var code: Int32

        package var isAbsent: Bool { self.code == ENOENT }
        package var exists: Bool { self.code == EEXIST }
        package var reason: String { String(cString: strerror(self.code)) }
        package var description: String {
            "cannot \(self.operation) '\(self.path)': \(self.reason)"
        }
    }

    /// The kind of thing at a path, as far as checks of a configuration need to know.
    package enum PathState: Sendable, Equatable {
        case absent
        case unreadable(String)
        case directory
        /// The permission bits.
        case file(mode: UInt32)
    }

    /// All of a file; EFBIG beyond `limit`.
    package static func read(_ path: String, limit: ByteCount = .mebibytes(1)) throws(Failure)
        -> Bytes
    {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure(path: path, operation: "read", code: errno)
        }
        defer { close(descriptor) }
        var all = Bytes()
        var piece = Bytes(repeating: 0, count: 1 << 14)
        while true {
            let count = Glibc.read(descriptor, &piece, piece.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure(path: path, operation: "read", code: errno) }
            if count == 0 { return all }
            all += piece[..<count]
            if all.count > limit.raw { throw Failure(path: path, operation: "read", code: EFBIG) }
        }
    }

    /// Makes a file that was not there, readable by its owner only. It is whole or absent, whatever
    /// happens meanwhile: written under another name, synced, then linked to its own.
    package static func createSecret(_ path: String, _ bytes: Bytes) throws(Failure) {
        func failure(_ code: Int32) -> Failure {
            Failure(path: path, operation: "create", code: code)
        }
        let temporary = "\(path).new-\(getpid())"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure(errno) }
        defer { unlink(temporary) }
        // The mode at creation is subject to the umask and to a file that was left there before.
        var code: Int32 = fchmod(descriptor, 0o600) == 0 ? 0 : errno
        if code == 0 { code = Self.writeAll(bytes, to: descriptor) }
        if code == 0, fsync(descriptor) != 0 { code = errno }
        close(descriptor)
        // `link` fails where a file is already; `rename` would replace it.
        if code == 0, link(temporary, path) != 0 { code = errno }
        guard code == 0 else { throw failure(code) }
    }

    /// The same, in the place of a file that may be there: the old one or the new one, whole.
    package static func replaceSecret(_ path: String, _ bytes: Bytes) throws(Failure) {
        let next = path + ".next"
        unlink(next)
        try Self.createSecret(next, bytes)
        guard rename(next, path) == 0 else {
            throw Failure(path: path, operation: "replace", code: errno)
        }
    }

    private static func writeAll(_ bytes: Bytes, to descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count, let start = buffer.baseAddress {
                let count = write(descriptor, start + offset, buffer.count - offset)
                if count < 0, errno != EINTR { return errno }
                offset += max(0, count)
            }
            return 0
        }
    }

    /// Makes a directory and its parents, for their owner only; existing ones are no error.
    package static func makeDirectory(_ path: String) throws(Failure) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
            throw Failure(path: path, operation: "create", code: errno)
        }
        try Self.makeDirectory(String(path[..<slash]))
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw Failure(path: path, operation: "create", code: errno)
        }
    }

    /// Removes a directory and everything in it; follows no symbolic link.
    package static func removeTree(_ path: String) {
        var info = stat()
        guard lstat(path, &info) == 0 else { return }
        if info.st_mode & S_IFMT == S_IFDIR, let directory = opendir(path) {
            var names: [String] = []
            while let entry = readdir(directory) {
                let name = withUnsafeBytes(of: entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                }
                if name != ".", name != ".." { names.append(name) }
            }
            closedir(directory)
            for name in names { Self.removeTree(path + "/" + name) }
        }
        remove(path)
    }

    /// Returns what is at a path, for the checks of the configuration.
    package static func state(_ path: String) -> PathState {
        var info = stat()
        guard stat(path, &info) == 0 else {
            return errno == ENOENT || errno == ENOTDIR
                ? .absent : .unreadable(String(cString: strerror(errno)))
        }
        if info.st_mode & S_IFMT == S_IFDIR { return .directory }
        guard access(path, R_OK) == 0 else {
            return .unreadable(String(cString: strerror(errno)))
        }
        return .file(mode: UInt32(info.st_mode) & 0o7777)
    }
}
