import Foundation
import Glibc

/// A blocking connection to the loopback that says what it is told. Every wait ends after a minute.
final class RawConnection {
    private var descriptor: Int32

    /// - Parameter url: `http://127.0.0.1:PORT`.
    init(_ url: String) throws {
        self.descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(
                self.descriptor, SOL_SOCKET, option, &patience,
                socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(URL(string: url)?.port ?? 0).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let descriptor = self.descriptor
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
    }

    deinit { close(self.descriptor) }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.send(self.descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Receives the bytes that arrive at once: a short answer, whole.
    func receive() -> String {
        var room = [UInt8](repeating: 0, count: 1 << 14)
        let count = recv(self.descriptor, &room, room.count, 0)
        return String(decoding: room.prefix(max(0, count)), as: UTF8.self)
    }

    /// Receives everything until the server closes or the time-out ends.
    func receiveAll() -> String {
        var all: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 1 << 14)
        while true {
            let count = recv(self.descriptor, &room, room.count, 0)
            if count <= 0 { return String(decoding: all, as: UTF8.self) }
            all += room[..<count]
        }
    }
}
