import CShims
import Glibc

/// Rouses a thread that sleeps in `epoll_wait` or in ``lower()``.
struct WakeSignal: ~Copyable, Sendable {
    let descriptor: Int32

    init(blocking: Bool) {
        let flags = Int32(EFD_CLOEXEC) | (blocking ? 0 : Int32(EFD_NONBLOCK))
        self.descriptor = eventfd(0, flags)
        precondition(self.descriptor >= 0, "the system refused an eventfd (\(errno))")
    }

    deinit { close(self.descriptor) }

    func raise() {
        // Fails only when 2⁶⁴ - 1 signals wait unread, and then the sleeper is awake anyway.
        _ = eventfd_write(self.descriptor, 1)
    }

    /// Waits for the first signal, and clears every one raised so far. Only for a blocking signal:
    /// an event loop sees each raise once.
    func lower() {
        var count = eventfd_t()
        while eventfd_read(self.descriptor, &count) < 0, errno == EINTR {}
    }
}
