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
