import Glibc

/// How full the disk is that a path lies on.
struct DiskSpace {
    /// Bytes that this process may still write, and bytes there are.
    let free: UInt64
    let all: UInt64

    static func of(_ path: String) -> DiskSpace? {
        var facts = statvfs()
        guard statvfs(path, &facts) == 0 else { return nil }
        return DiskSpace(
            free: UInt64(facts.f_bavail) * UInt64(facts.f_frsize),
            all: UInt64(facts.f_blocks) * UInt64(facts.f_frsize))
    }
}
