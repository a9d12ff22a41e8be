import CShims
import Glibc

/// One non-blocking stream socket. The value owns the descriptor, so that it is closed exactly once.
///
/// A closed peer never raises SIGPIPE here: every send says so.
struct Socket: ~Copyable {
    let descriptor: Int32

    /// Takes `descriptor` over.
    init(takingOwnershipOf descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(self.descriptor) }

    /// What came of one attempt to move bytes.
    enum Transfer: Equatable {
        case moved(Int)
        /// Nothing now; the loop will tell.
        case wouldBlock
        /// The peer has said its last byte. Only of reading.
        case ended
        case failed(SocketError)
    }

    // MARK: Listening

    /// A socket that listens on `address`. With `isShared`, others may listen there too, and the kernel
    /// spreads the connections between them.
    static func listening(
        on address: SocketAddress, backlog: Int, isShared: Bool
    ) throws(SocketError) -> Socket {
        let socket = try Socket.new(family: address.family)
        switch address {
        case .ip:
            socket.set(SOL_SOCKET, SO_REUSEADDR, 1)
            if isShared { socket.set(SOL_SOCKET, SO_REUSEPORT, 1) }
            if address.family == AF_INET6 { socket.set(Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1) }
        case .unix(let path): try Self.removeStaleSocket(at: path)
        }
        let bound = try address.withSystemAddress { bind(socket.descriptor, $0, $1) }
        guard bound == 0 else { throw SocketError(code: errno, during: "bind") }
        guard listen(socket.descriptor, Int32(clamping: backlog)) == 0 else {
            throw SocketError(code: errno, during: "listen")
        }
        return socket
    }

    /// A socket file outlives its listener. One that nobody answers is removed; anything else stays, and
    /// `bind` says that the address is in use.
    private static func removeStaleSocket(at path: String) throws(SocketError) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        let probe = try Socket.new(family: AF_UNIX)
        let code = try probe.connect(to: .unix(path: path))
        if code == ECONNREFUSED { unlink(path) }
    }

    /// The next connection, and who it is from.
    enum Acceptance: ~Copyable {
        case connection(Socket, from: SocketAddress)
        case none
        case failed(SocketError)
    }

    func accept() -> Acceptance {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = stratus_accept4(self.descriptor, &storage, &length)
        if result >= 0 {
            let socket = Socket(takingOwnershipOf: result)
            return .connection(socket, from: SocketAddress(&storage) ?? .unix(path: ""))
        }
        switch -result {
        case EAGAIN: return .none
        default: return .failed(SocketError(code: -result, during: "accept"))
        }
    }

    /// The address it is bound to, with the port the system chose.
    var localAddress: SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = withUnsafeMutablePointer(to: &storage) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(self.descriptor, $0, &length)
            }
        }
        return code == 0 ? SocketAddress(&storage) : nil
    }

    // MARK: Connecting

    static func new(family: Int32) throws(SocketError) -> Socket {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw SocketError(code: errno, during: "socket") }
        return Socket(takingOwnershipOf: descriptor)
    }

    /// Begins to connect.
    /// - Returns: 0 when it is connected, `EINPROGRESS` when it will be writable once it is or has failed.
    func connect(to address: SocketAddress) throws(SocketError) -> Int32 {
        try address.withSystemAddress {
            Glibc.connect(self.descriptor, $0, $1) == 0 ? 0 : errno
        }
    }

    /// How a connection begun has ended; also the reason a broken socket is broken. Reading clears it.
    func takeError() -> SocketError? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(self.descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        return code == 0 ? nil : SocketError(code: code, during: "connect")
    }

    /// Answers leave at once: we write whole answers, so there is nothing to wait for.
    func disableDelay() { self.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(self.descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }

    // MARK: Bytes

    func read(into room: UnsafeMutableRawBufferPointer) -> Transfer {
        while true {
            let count = recv(self.descriptor, room.baseAddress, room.count, 0)
            if count > 0 { return .moved(count) }
            if count == 0 { return .ended }
            if errno == EAGAIN { return .wouldBlock }
            if errno != EINTR { return .failed(SocketError(code: errno, during: "read")) }
        }
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        while true {
            let count = send(self.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if count >= 0 { return .moved(count) }
            if errno == EAGAIN { return .wouldBlock }
            if errno != EINTR { return .failed(SocketError(code: errno, during: "write")) }
        }
    }

    /// Says that nothing more will be written; reading goes on.
    func endWriting() { shutdown(self.descriptor, Int32(SHUT_WR)) }

    /// Closing will cut the connection (RST) instead of ending it: what was sent may be lost, and the
    /// peer cannot take a part for the whole.
    func cutOnClose() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(
            self.descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}
