import CShims
import Glibc
import StratusModel
import Synchronization

/// The writing of the log. It stands alone so that the log works before the runtime does and after it
/// has gone.
enum LogOutput {
    /// Writes all of it. A reader that went away takes the rest of the log with it: there is nobody left
    /// to tell.
    static func writeAll(_ bytes: Bytes, to descriptor: Int32) {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count {
                guard let start = buffer.baseAddress else { return }
                let count = write(descriptor, start + offset, buffer.count - offset)
                if count > 0 {
                    offset += count
                } else if errno == EAGAIN {
                    // Somebody made the shared terminal non-blocking.
                    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&ready, 1, 1_000)
                } else if errno != EINTR {
                    return
                }
            }
        }
    }
}

/// Wakes one waiting thread; a raise without a waiter is remembered once.
final class Signal: Sendable {
    private let descriptor: Int32

    init() {
        self.descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        precondition(self.descriptor >= 0, "no eventfd: error \(errno)")
    }

    deinit { Glibc.close(self.descriptor) }

    func raise() {
        var one: UInt64 = 1
        _ = Glibc.write(self.descriptor, &one, 8)
    }

    func wait() { self.wait(milliseconds: -1) }

    /// Waits no longer than this: for several waiters, of whom one raise wakes one.
    func wait(milliseconds: Int32) {
        var ready = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&ready, 1, milliseconds)
        var count: UInt64 = 0
        _ = Glibc.read(self.descriptor, &count, 8)
    }
}
