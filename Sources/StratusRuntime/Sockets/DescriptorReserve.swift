import Glibc

/// The last descriptors of the process, which no accepted connection may take.
///
/// Files, signals of threads and the libraries beneath need descriptors at moments of their own.
/// One of them, the pool that runs Swift's tasks, ends the process if it gets none when it reads
/// how busy its threads are. The system gives out the lowest free number, so that number shows how
/// many are left.
enum DescriptorReserve {
    /// A quarter of what the process may open, between 16 and 1,024.
    static func size(limit: Int) -> Int { min(max(limit / 4, 16), 1_024) }

    /// Read once: a process raises its limit before it listens.
    private static let firstReserved: Int32 = {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return .max
        }
        let count = Int(clamping: limit.rlim_cur)
        return Int32(clamping: count - Self.size(limit: count))
    }()

    /// - Parameter descriptor: any that is open.
    static func leavesRoom(besides descriptor: Int32) -> Bool {
        let next = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard next >= 0 else { return false }
        close(next)
        return next < Self.firstReserved
    }
}
