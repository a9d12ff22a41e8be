import Glibc
import StratusModel

/// The size of what lies in a directory, files in directories below included.
enum DirectorySize {
    /// No data directory has as many; a link that leads in a circle would.
    private static let fileCountMax = 1_000_000

    static func of(_ path: String) -> UInt64 {
        var size: UInt64 = 0
        var left = Self.fileCountMax
        Self.add(path, to: &size, &left)
        return size
    }

    private static func add(_ path: String, to size: inout UInt64, _ left: inout Int) {
        guard let directory = opendir(path) else { return }
        defer { closedir(directory) }
        while left > 0, let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name == "." || name == ".." { continue }
            left -= 1
            var info = stat()
            guard fstatat(dirfd(directory), name, &info, AT_SYMLINK_NOFOLLOW) == 0 else { continue }
            if info.st_mode & S_IFMT == S_IFDIR {
                Self.add(path + "/" + name, to: &size, &left)
            } else {
                // What it occupies: files of the log and of assets are made longer than filled.
                size += UInt64(clamping: info.st_blocks) * 512
            }
        }
    }
}
