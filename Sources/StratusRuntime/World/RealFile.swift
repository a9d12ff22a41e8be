import Glibc
import StratusModel

/// One open file on a real disk.
///
/// A sync that failed is final for the file: after it, neither this nor any other handle on it
/// writes or syncs again. The kernel marks the pages clean although they never reached the disk, so
/// a second sync would succeed and prove nothing.
///
/// Its loops are not inlined: across the module's border Swift 6.3.1's optimiser crashes on them.
/// Beside a system call the extra call costs nothing.
final class RealFile: File {
    private let descriptor: Int32
    private let path: DiskPath
    private let inode: RealFiles.Inode
    private let poisoned: RealFiles.Poisoned

    /// Takes `descriptor` over and closes it in the end.
    init(
        descriptor: Int32, path: DiskPath, poisoned: RealFiles.Poisoned
    ) throws(DiskError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            let code = errno
            close(descriptor)
            throw DiskError(code, during: "stat", path: path)
        }
        self.descriptor = descriptor
        self.path = path
        self.inode = RealFiles.Inode(
            device: UInt64(status.st_dev), number: UInt64(status.st_ino))
        self.poisoned = poisoned
    }

    deinit { close(self.descriptor) }

    @inline(never)
    func read(
        _ into: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(DiskError) -> Int {
        var done = 0
        while done < into.count {
            let count = pread(
                self.descriptor, into.baseAddress! + done, into.count - done,
                off_t(offset) + off_t(done))
            if count == 0 { break }
            if count > 0 {
                done += count
            } else if errno != EINTR {
                throw DiskError(errno, during: "read", path: self.path)
            }
        }
        return done
    }

    @inline(never)
    func write(_ from: UnsafeRawBufferPointer, at offset: UInt64) throws(DiskError) {
        try self.refuseIfPoisoned("write")
        var done = 0
        while done < from.count {
            let count = pwrite(
                self.descriptor, from.baseAddress! + done, from.count - done,
                off_t(offset) + off_t(done))
            if count >= 0 {
                done += count
            } else if errno != EINTR {
                throw DiskError(errno, during: "write", path: self.path)
            }
        }
    }

    @inline(never)
    func sync() throws(DiskError) {
        try self.refuseIfPoisoned("sync")
        while fdatasync(self.descriptor) != 0 {
            if errno == EINTR { continue }
            let code = errno
            self.poisoned.insert(self.inode)
            throw DiskError(.syncFailed, during: "sync", path: self.path, code: code)
        }
    }

    @inline(never)
    func resize(_ length: UInt64) throws(DiskError) {
        try self.refuseIfPoisoned("resize")
        while ftruncate(self.descriptor, off_t(length)) != 0 {
            if errno != EINTR { throw DiskError(errno, during: "resize", path: self.path) }
        }
    }

    var length: UInt64 {
        get throws(DiskError) {
            var status = stat()
            guard fstat(self.descriptor, &status) == 0 else {
                throw DiskError(errno, during: "stat", path: self.path)
            }
            return UInt64(status.st_size)
        }
    }

    private func refuseIfPoisoned(_ operation: StaticString) throws(DiskError) {
        if self.poisoned.contains(self.inode) {
            throw DiskError(.syncFailed, during: operation, path: self.path)
        }
    }
}
