import Glibc

/// The signals a node listens to, taken by threads that wait for them.
///
/// ``block()`` comes first in `main`, before any thread exists: threads inherit the mask, so that
/// no signal ever interrupts another thread's system call. SIGPIPE is always ignored: a
/// disconnected client is an error code, not the end of the process.
package enum ProcessSignals {
    package enum Event: Sendable, Equatable {
        /// SIGTERM or SIGINT, with its number.
        case stop(Int32)
        /// SIGHUP.
        case reload
    }

    package static func block() {
        Self.ignoreBrokenPipes()
        var set = Self.set
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    package static func ignoreBrokenPipes() { signal(SIGPIPE, SIG_IGN) }

    /// Waits for the next one. Two threads may wait; each signal goes to one of them.
    package static func next() -> Event {
        var set = Self.set
        var number: Int32 = 0
        while sigwait(&set, &number) != 0 {}
        return number == SIGHUP ? .reload : .stop(number)
    }

    private static var set: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&set, number) }
        return set
    }
}
