import Glibc
package import StratusTLS

/// A connected socket, plain or under TLS, as one pair of read and write.
///
/// Belongs to one connection on one loop.
final class Transport {
    /// The result of one attempt to move bytes.
    enum Transfer: Equatable {
        case moved(Int)
        /// Nothing now: try again when the socket is ready for this.
        case blocked(on: Readiness)
        /// The peer has said its last byte. Only of reading.
        case ended
        case failed(TransportError)
    }

    private(set) var descriptor: Int32
    private(set) var session: TLSSession?
    private var isHandshaking: Bool
    /// The readiness that TLS needs, besides the obvious, before it can go on reading or writing.
    private(set) var readNeeds = Readiness.readable
    private(set) var writeNeeds = Readiness.writable

    /// Takes the descriptor over.
    init(takingOwnershipOf descriptor: Int32) {
        self.descriptor = descriptor
        self.isHandshaking = false
    }

    deinit { if self.descriptor >= 0 { Glibc.close(self.descriptor) } }

    /// From now on everything goes through `session`, which begins with its handshake.
    func secure(with session: TLSSession) {
        self.session = session
        self.isHandshaking = true
    }

    var isReady: Bool { !self.isHandshaking }

    /// Goes on with the handshake. `.moved(0)`: it is done.
    func handshake() -> Transfer {
        guard let session = self.session, self.isHandshaking else { return .moved(0) }
        let transfer = self.translate(session.handshake())
        if transfer == .moved(0) { self.isHandshaking = false }
        return transfer
    }

    func read(into room: UnsafeMutableRawBufferPointer) -> Transfer {
        guard let session = self.session else {
            while true {
                let count = recv(self.descriptor, room.baseAddress, room.count, 0)
                if count > 0 { return .moved(count) }
                if count == 0 { return .ended }
                if errno == EAGAIN { return .blocked(on: .readable) }
                if errno != EINTR {
                    return .failed(.socket(SocketError(code: errno, during: "read")))
                }
            }
        }
        let transfer = self.translate(session.read(into: room))
        if case .blocked(let needs) = transfer { self.readNeeds = needs }
        return transfer
    }

    /// May move a part.
    func write(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        guard let session = self.session else {
            while true {
                let count = send(
                    self.descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                if count >= 0 { return .moved(count) }
                if errno == EAGAIN { return .blocked(on: .writable) }
                if errno != EINTR {
                    return .failed(.socket(SocketError(code: errno, during: "write")))
                }
            }
        }
        let transfer = self.translate(session.write(bytes))
        if case .blocked(let needs) = transfer { self.writeNeeds = needs }
        return transfer
    }

    /// Whether bytes from the socket wait that `read` has not returned: the event loop will not
    /// report those.
    var hasPending: Bool { self.session?.hasPending ?? false }

    /// Says that nothing more will be written; reading goes on.
    func endWriting() {
        if self.isReady { self.session?.sayGoodbye() }
        shutdown(self.descriptor, Int32(SHUT_WR))
    }

    /// - Parameter isCut: tells the peer that this is no proper end (RST), whatever is on its way.
    func close(isCut: Bool) {
        guard self.descriptor >= 0 else { return }
        if isCut {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                self.descriptor, SOL_SOCKET, SO_LINGER, &option,
                socklen_t(MemoryLayout<linger>.size))
        }
        Glibc.close(self.descriptor)
        self.descriptor = -1
        self.session = nil
    }

    private func translate(_ transfer: TLSSession.Transfer) -> Transfer {
        switch transfer {
        case .moved(let count): .moved(count)
        case .wantsRead: .blocked(on: .readable)
        case .wantsWrite: .blocked(on: .writable)
        case .ended: .ended
        case .failed(let error): .failed(.tls(error))
        }
    }
}

/// Why a connection failed.
package enum TransportError: Error, Sendable, Equatable {
    case socket(SocketError)
    case tls(TLSError)
}
