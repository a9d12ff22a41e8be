import CShims
import Glibc

/// Wakes one waiting thread; a raise without a waiter is remembered once.
package final class Signal: Sendable {
    private let descriptor: Int32

    package init() {
        self.descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        precondition(self.descriptor >= 0, "no eventfd: error \(errno)")
    }

    deinit { Glibc.close(self.descriptor) }

    package func raise() {
        var one: UInt64 = 1
        _ = Glibc.write(self.descriptor, &one, 8)
    }

    package func wait() { self.wait(milliseconds: -1) }

    /// Waits no longer than this: for several waiters, of whom one raise wakes one.
    package func wait(milliseconds: Int32) {
        var ready = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, milliseconds)
        var count: UInt64 = 0
        _ = Glibc.read(self.descriptor, &count, 8)
    }
}
