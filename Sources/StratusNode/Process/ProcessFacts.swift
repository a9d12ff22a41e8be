import Glibc
import StratusModel
import StratusProcess

/// Reads what the system knows of this process.
enum ProcessFacts {
    /// Cores that this process may use: a container may have fewer than the machine.
    static var coreCount: Int {
        let bytes = (try? SmallFile.read("/proc/self/status")) ?? []
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        where line.hasPrefix("Cpus_allowed:") {
            // A mask in hexadecimal, with commas between its words.
            let digits = line.dropFirst("Cpus_allowed:".count)
            let count = digits.reduce(0) { $0 + ($1.hexDigitValue?.nonzeroBitCount ?? 0) }
            if count > 0 { return count }
        }
        return max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
    }

    /// Memory of this process that is in use now.
    static var residentBytes: Int {
        guard let bytes = try? SmallFile.read("/proc/self/statm", limit: .kibibytes(4)) else {
            return 0
        }
        let words = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return words.count > 1 ? (Int(words[1]) ?? 0) * sysconf(Int32(_SC_PAGESIZE)) : 0
    }

    /// Gives free memory of the allocator back to the system, where the allocator knows how:
    /// `Glibc` does not import `malloc.h`, and other libraries do not have it.
    static func returnMemory() {
        typealias Trim = @convention(c) (Int) -> Int32
        guard let symbol = dlsym(nil, "malloc_trim") else { return }
        _ = unsafeBitCast(symbol, to: Trim.self)(0)
    }

    static var openDescriptorCount: Int {
        guard let directory = opendir("/proc/self/fd") else { return 0 }
        defer { closedir(directory) }
        var count = 0
        while readdir(directory) != nil { count += 1 }
        // Itself, `.` and `..`.
        return max(0, count - 3)
    }

    /// The most files and sockets that the process may have open; 0 if that cannot be read.
    static var descriptorCountMax: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 0 }
        return Int(clamping: limit.rlim_cur)
    }

    static var processorSeconds: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Lets the process open as many files and sockets as it may.
    static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}
