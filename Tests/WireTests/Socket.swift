import Glibc

/// A blocking TCP connection with just enough HTTP/1.1 for a conversation: it sends the given bytes
/// and reads one answer by its Content-Length. It retries nothing and hides nothing.
struct Socket: ~Copyable {
    struct Failure: Error { let text: String }

    private let descriptor: Int32
    private var buffer: [UInt8] = []

    init(host: String, port: UInt16) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(text: "socket: \(errno)") }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else {
            close(descriptor)
            throw Failure(text: "no address: \(host)")
        }
        var patience = timeval(tv_sec: 120, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(
                descriptor, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        let connected = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard connected == 0 else {
            close(descriptor)
            throw Failure(text: "connect: \(errno)")
        }
        self.descriptor = descriptor
    }

    deinit { close(self.descriptor) }

    /// Sends everything, or as much as the server takes before it answers and closes.
    func send(_ bytes: [UInt8]) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(
                    self.descriptor, $0.baseAddress! + sent, bytes.count - sent,
                    Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

    /// Reads one answer; nil where the server closed without one.
    mutating func receive() throws -> (
        status: Int, headers: [(name: String, value: String)], body: [UInt8]
    )? {
        var end = Self.headEnd(self.buffer)
        while end == nil {
            guard try self.fill() else {
                if self.buffer.isEmpty { return nil }
                throw Failure(text: "half a head")
            }
            end = Self.headEnd(self.buffer)
        }
        let head = String(decoding: self.buffer[..<end!], as: UTF8.self)
        self.buffer.removeFirst(end! + 4)
        let lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)
        guard let status = lines.first?.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
        else { throw Failure(text: "no status line: \(head)") }
        var headers: [(name: String, value: String)] = []
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers.append(
                (
                    String(line[..<colon]),
                    String(line[line.index(after: colon)...].drop { $0 == " " })
                ))
        }
        let length = headers.first { $0.name.lowercased() == "content-length" }
            .flatMap { Int($0.value) }
        let count = status == 204 ? 0 : length ?? 0
        while self.buffer.count < count {
            guard try self.fill() else { throw Failure(text: "half a body") }
        }
        let body = Array(self.buffer[..<count])
        self.buffer.removeFirst(count)
        return (status, headers, body)
    }

    private mutating func fill() throws -> Bool {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(self.descriptor, &chunk, chunk.count, 0)
        if count < 0 {
            if errno == ECONNRESET { return false }
            throw Failure(text: "recv: \(errno)")
        }
        self.buffer += chunk[..<count]
        return count > 0
    }

    private static func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (0...(bytes.count - 4)).first {
            bytes[$0] == 13 && bytes[$0 + 1] == 10 && bytes[$0 + 2] == 13 && bytes[$0 + 3] == 10
        }
    }
}
