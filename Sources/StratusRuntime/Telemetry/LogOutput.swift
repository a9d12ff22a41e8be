import CShims
import Glibc
import StratusModel
import Synchronization

/// The writing of the log, apart from the rest so that the log works before the runtime does and
/// after it has gone.
enum LogOutput {
    /// Writes all bytes, unless the descriptor takes no more because its disk is full or its reader
    /// has gone.
    /// - Returns: how many bytes were written.
    static func write(_ bytes: Bytes, to descriptor: Int32) -> Int {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count, let start = buffer.baseAddress {
                let count = Glibc.write(descriptor, start + offset, buffer.count - offset)
                if count > 0 {
                    offset += count
                } else if errno == EAGAIN {
                    // Somebody made the shared terminal non-blocking.
                    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    poll(&ready, 1, 1_000)
                } else if errno != EINTR {
                    break
                }
            }
            return offset
        }
    }
}
