import Glibc
package import StratusModel
import Synchronization

/// A data directory on a real disk.
///
/// Every path is resolved from the directory opened at the start, so that renaming a parent of it
/// while the node runs changes nothing.
package final class RealFiles: Files {
    /// A file by what the kernel knows it as: a rename does not change it.
    struct Inode: Sendable, Hashable {
        let device: UInt64
        let number: UInt64
    }

    private let root: Int32
    /// Files that failed to sync. They stay here until the process ends, however often they are
    /// opened again: the kernel reports each failure once, and a new descriptor would not see it.
    private let poisoned = Poisoned()

    /// Opens a data directory; it is made, with its parents, when it is absent.
    package init(directory: String) throws(DiskError) {
        var built = directory.hasPrefix("/") ? "/" : "."
        for component in directory.split(separator: "/") {
            built += (built == "/" ? "" : "/") + component
            guard mkdir(built, 0o700) == 0 || errno == EEXIST else {
                throw DiskError(errno, during: "mkdir", path: DiskPath(built))
            }
        }
        self.root = Glibc.open(built, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard self.root >= 0 else {
            throw DiskError(errno, during: "open", path: DiskPath(built))
        }
    }

    deinit { close(self.root) }

    @inline(never)
    package func open(_ path: DiskPath, create: Bool) throws(DiskError) -> any File {
        let flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0)
        let descriptor = try Self.retrying("open", path) {
            openat(self.root, Self.checked(path), flags, 0o600)
        }
        return try RealFile(descriptor: descriptor, path: path, poisoned: self.poisoned)
    }

    @inline(never)
    package func rename(_ from: DiskPath, to: DiskPath) throws(DiskError) {
        try Self.retrying("rename", from) {
            renameat(self.root, Self.checked(from), self.root, Self.checked(to))
        }
    }

    @inline(never)
    package func remove(_ path: DiskPath) throws(DiskError) {
        let name = Self.checked(path)
        let code = unlinkat(self.root, name, 0)
        if code == 0 { return }
        if errno == EISDIR, unlinkat(self.root, name, AT_REMOVEDIR) == 0 { return }
        throw DiskError(errno, during: "remove", path: path)
    }

    @inline(never)
    package func exists(_ path: DiskPath) throws(DiskError) -> Bool {
        var status = stat()
        if fstatat(self.root, Self.checked(path), &status, 0) == 0 { return true }
        if errno == ENOENT || errno == ENOTDIR { return false }
        throw DiskError(errno, during: "stat", path: path)
    }

    @inline(never)
    package func makeDirectory(_ path: DiskPath) throws(DiskError) {
        var built = DiskPath.root
        for component in path.raw.split(separator: "/") {
            built = built.appending(String(component))
            guard mkdirat(self.root, Self.checked(built), 0o700) == 0 || errno == EEXIST else {
                throw DiskError(errno, during: "mkdir", path: built)
            }
        }
    }

    @inline(never)
    package func syncDirectory(_ path: DiskPath) throws(DiskError) {
        let descriptor = try self.openDirectory(path)
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else {
            throw DiskError(errno, during: "sync directory", path: path)
        }
    }

    @inline(never)
    package func list(_ path: DiskPath) throws(DiskError) -> [DiskPath] {
        let descriptor = try self.openDirectory(path)
        guard let stream = fdopendir(descriptor) else {
            let code = errno
            close(descriptor)
            throw DiskError(code, during: "list", path: path)
        }
        // Closes the descriptor too.
        defer { closedir(stream) }
        var names: [DiskPath] = []
        while true {
            errno = 0
            guard let entry = readdir(stream) else { break }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(DiskPath(name)) }
        }
        guard errno == 0 else { throw DiskError(errno, during: "list", path: path) }
        return names.sorted()
    }

    @inline(never)
    package func lock(_ path: DiskPath) throws(DiskError) -> any DiskLock {
        let descriptor = try Self.retrying("lock", path) {
            openat(self.root, Self.checked(path), O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        }
        // The lock belongs to this opening of the file, not to the process: a second one is refused
        // here too.
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            if code == EWOULDBLOCK {
                throw DiskError(.denied, during: "lock", path: path, code: code)
            }
            throw DiskError(code, during: "lock", path: path)
        }
        return RealLock(descriptor: descriptor)
    }

    package func space() throws(DiskError) -> DiskSpace {
        var facts = statvfs()
        guard fstatvfs(self.root, &facts) == 0 else {
            throw DiskError(errno, during: "statvfs", path: .root)
        }
        return DiskSpace(
            free: UInt64(facts.f_bavail) * UInt64(facts.f_frsize),
            all: UInt64(facts.f_blocks) * UInt64(facts.f_frsize))
    }

    private func openDirectory(_ path: DiskPath) throws(DiskError) -> Int32 {
        try Self.retrying("open directory", path) {
            openat(self.root, Self.checked(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        }
    }

    // Not inlined: see ``RealFile``.
    @inline(never)
    @discardableResult
    private static func retrying(
        _ operation: StaticString, _ path: DiskPath, _ call: () -> Int32
    ) throws(DiskError) -> Int32 {
        while true {
            let result = call()
            if result >= 0 { return result }
            if errno != EINTR { throw DiskError(errno, during: operation, path: path) }
        }
    }

    /// Paths come from our own code alone; one that could leave the directory is a bug.
    private static func checked(_ path: DiskPath) -> String {
        let components = path.raw.split(separator: "/", omittingEmptySubsequences: false)
        precondition(
            path.raw.isEmpty || !components.contains { $0.isEmpty || $0 == "." || $0 == ".." },
            "'\(path)' is not a path inside the data directory")
        return path.raw.isEmpty ? "." : path.raw
    }

    /// The files that failed to sync, shared with every open one.
    final class Poisoned: Sendable {
        private let inodes = Mutex<Set<Inode>>([])

        func insert(_ inode: Inode) { self.inodes.withLock { _ = $0.insert(inode) } }
        func contains(_ inode: Inode) -> Bool { self.inodes.withLock { $0.contains(inode) } }
    }
}

/// Goes when its descriptor does.
private final class RealLock: DiskLock {
    private let descriptor: Int32

    init(descriptor: Int32) { self.descriptor = descriptor }
    deinit { close(self.descriptor) }
}

extension DiskError {
    /// The system's word for it, as a kind to act on.
    init(_ code: Int32, during operation: StaticString, path: DiskPath) {
        let kind: Kind =
            switch code {
            case ENOENT, ENOTDIR: .notFound
            case ENOSPC, EDQUOT, EFBIG: .full
            case EACCES, EPERM, EROFS: .denied
            case EMFILE, ENFILE: .tooManyOpen
            default: .io
            }
        self.init(kind, during: operation, path: path, code: code)
    }
}
