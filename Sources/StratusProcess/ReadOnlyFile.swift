import Glibc
package import StratusModel

/// A file of any size that is only read, as one of a disk that was taken out of another machine.
package final class ReadOnlyFile: Sendable {
    private let path: String
    private let descriptor: Int32

    package init(_ path: String) throws(SmallFile.Failure) {
        self.path = path
        self.descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard self.descriptor >= 0 else { throw self.failure() }
    }

    deinit { if self.descriptor >= 0 { close(self.descriptor) } }

    package var length: UInt64 {
        get throws(SmallFile.Failure) {
            var info = stat()
            guard fstat(self.descriptor, &info) == 0 else { throw self.failure() }
            return UInt64(info.st_size)
        }
    }

    /// Fewer bytes at the end of the file.
    package func bytes(_ count: Int, at position: UInt64) throws(SmallFile.Failure) -> Bytes {
        var code: Int32 = 0
        let bytes = Bytes(unsafeUninitializedCapacity: count) { room, filled in
            while filled < count {
                let read = pread(
                    self.descriptor, room.baseAddress! + filled, count - filled,
                    off_t(position) + off_t(filled))
                if read < 0, errno == EINTR { continue }
                if read < 0 { code = errno }
                if read <= 0 { break }
                filled += read
            }
        }
        if code != 0 { throw self.failure(code) }
        return bytes
    }

    private func failure(_ code: Int32 = errno) -> SmallFile.Failure {
        SmallFile.Failure(path: self.path, operation: "read", code: code)
    }

    /// The names in a directory, sorted, without `.` and `..`.
    package static func names(in directory: String) throws(SmallFile.Failure) -> [String] {
        guard let stream = opendir(directory) else {
            throw SmallFile.Failure(path: directory, operation: "read", code: errno)
        }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}
