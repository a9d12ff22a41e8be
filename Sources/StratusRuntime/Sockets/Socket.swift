import CShims
import Glibc

/// One non-blocking stream socket. The value owns the descriptor, so that it is closed exactly
/// once.
struct Socket: ~Copyable {
    let descriptor: Int32

    /// Takes `descriptor` over.
    init(takingOwnershipOf descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(self.descriptor) }

    /// Gives the descriptor away.
    consuming func release() -> Int32 {
        let descriptor = self.descriptor
        discard self
        return descriptor
    }

    // MARK: Listening

    /// Opens a socket that listens on `address`. With `isShared`, others may listen there too, and
    /// the kernel spreads the connections between them.
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

    /// Removes a socket file whose listener is gone. A socket file outlives its listener, so one
    /// that nobody answers is stale. Any other file stays, and `bind` reports that the address is
    /// in use.
    private static func removeStaleSocket(at path: String) throws(SocketError) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        let probe = try Socket.new(family: AF_UNIX)
        let code = try probe.connect(to: .unix(path: path))
        if code == ECONNREFUSED { unlink(path) }
    }

    static func removeSocketFile(at path: String) { unlink(path) }

    /// The next connection, and who it is from.
    enum Acceptance: ~Copyable {
        case connection(Socket, from: SocketAddress)
        case none
        case failed(SocketError)
    }

    func accept() -> Acceptance {
        guard DescriptorReserve.leavesRoom(besides: self.descriptor) else {
            return .failed(SocketError(code: EMFILE, during: "accept"))
        }
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
    /// - Returns: 0 if it is connected, or `EINPROGRESS` if the socket becomes writable once it is
    ///   connected or has failed.
    func connect(to address: SocketAddress) throws(SocketError) -> Int32 {
        try address.withSystemAddress {
            Glibc.connect(self.descriptor, $0, $1) == 0 ? 0 : errno
        }
    }

    /// How a connection begun has ended. Reading clears it.
    static func pendingError(of descriptor: Int32) -> SocketError? {
        var code: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length)
        return code == 0 ? nil : SocketError(code: code, during: "connect")
    }

    /// Answers leave at once: we write whole answers, so there is nothing to wait for.
    func disableDelay() { self.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1) }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        var value = value
        setsockopt(self.descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
    }
}
