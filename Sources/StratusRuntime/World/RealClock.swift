import Glibc
package import StratusModel

/// The machine's two clocks.
package enum RealClock {
    /// `CLOCK_MONOTONIC`: stands still while the machine sleeps, as every deadline here should.
    package static var now: MonotonicTime {
        MonotonicTime(nanoseconds: Self.nanoseconds(of: CLOCK_MONOTONIC))
    }

    /// Milliseconds since 1970.
    package static var wallMilliseconds: Int64 {
        Self.nanoseconds(of: CLOCK_REALTIME) / 1_000_000
    }

    /// The time of the processor that the calling thread has had. A system call.
    static var threadTime: Duration {
        .nanoseconds(Self.nanoseconds(of: CLOCK_THREAD_CPUTIME_ID))
    }

    private static func nanoseconds(of clock: clockid_t) -> Int64 {
        var time = timespec()
        let code = clock_gettime(clock, &time)
        precondition(code == 0, "the clock cannot be read (\(errno))")
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
}
