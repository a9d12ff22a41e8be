import COpenSSL

/// TLS on one connected, non-blocking socket, which stays its owner's to watch and to close.
///
/// Not `Sendable`: one thread at a time, the one that owns the socket.
package final class TLSSession {
    /// The result of one attempt.
    package enum Transfer: Sendable, Equatable {
        case moved(Int)
        /// Try again when the socket is readable, writable.
        case wantsRead
        case wantsWrite
        /// The peer said goodbye. Only of reading.
        case ended
        case failed(TLSError)
    }

    private let pointer: OpaquePointer
    /// Keeps the certificates that `pointer` may still refer to.
    private let context: TLSContext

    /// The server's side.
    package init(server context: TLSContext, descriptor: Int32) throws(TLSError) {
        self.pointer = try Self.make(context, descriptor)
        self.context = context
        SSL_set_accept_state(self.pointer)
    }

    /// The client's side. The server must prove that it is `host`, a name or an address.
    package init(client context: TLSContext, descriptor: Int32, host: String) throws(TLSError) {
        self.pointer = try Self.make(context, descriptor)
        self.context = context
        SSL_set_connect_state(self.pointer)
        let parameters = SSL_get0_param(self.pointer)
        // Certificates hold addresses as bytes, and a name indication must not be one (RFC 6066
        // §3).
        if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 {
            ERR_clear_error()
            return
        }
        ERR_clear_error()
        guard
            SSL_set1_host(self.pointer, host) == 1,
            stratus_ssl_set_host_name(self.pointer, host) == 1
        else { throw TLSError.taken(.other, during: "name the server") }
    }

    private static func make(
        _ context: TLSContext, _ descriptor: Int32
    ) throws(TLSError) -> OpaquePointer {
        ERR_clear_error()
        guard let pointer = SSL_new(context.pointer) else {
            throw TLSError.taken(.other, during: "make session")
        }
        guard SSL_set_fd(pointer, descriptor) == 1 else {
            SSL_free(pointer)
            throw TLSError.taken(.other, during: "attach socket")
        }
        return pointer
    }

    deinit { SSL_free(self.pointer) }

    /// Goes on with the handshake. `.moved(0)`: it is done.
    package func handshake() -> Transfer {
        ERR_clear_error()
        let code = SSL_do_handshake(self.pointer)
        return code == 1 ? .moved(0) : self.outcome(of: code, "handshake")
    }

    package func read(into room: UnsafeMutableRawBufferPointer) -> Transfer {
        ERR_clear_error()
        var count = 0
        let code = SSL_read_ex(self.pointer, room.baseAddress, room.count, &count)
        return code == 1 ? .moved(count) : self.outcome(of: code, "read")
    }

    /// Writes all or part of the bytes. After `.wantsRead` or `.wantsWrite` the same bytes must be
    /// passed again; they may lie elsewhere in memory.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Transfer {
        ERR_clear_error()
        var count = 0
        let code = SSL_write_ex(self.pointer, bytes.baseAddress, bytes.count, &count)
        return code == 1 ? .moved(count) : self.outcome(of: code, "write")
    }

    /// Says goodbye; does not wait for the peer's. Only after a handshake, and not after a failure.
    package func sayGoodbye() {
        ERR_clear_error()
        SSL_shutdown(self.pointer)
        ERR_clear_error()
    }

    /// Whether the session holds bytes from the socket that `read` has not returned: the event loop
    /// will not report those.
    package var hasPending: Bool { SSL_has_pending(self.pointer) == 1 }

    package var isResumed: Bool { SSL_session_reused(self.pointer) == 1 }

    package var version: String { String(cString: SSL_get_version(self.pointer)) }

    /// The protocol agreed on by ALPN.
    package var applicationProtocol: String? {
        var start: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(self.pointer, &start, &count)
        guard let start, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// The peer's certificate, when it showed one and it was verified. After the handshake.
    package var peerCertificate: PeerCertificate? {
        guard let pointer = SSL_get1_peer_certificate(self.pointer) else { return nil }
        let certificate = X509Handle(takingOwnershipOf: pointer)
        guard SSL_get_verify_result(self.pointer) == X509_V_OK else { return nil }
        return PeerCertificate(certificate)
    }

    private func outcome(of code: Int32, _ operation: StaticString) -> Transfer {
        switch SSL_get_error(self.pointer, code) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .ended
        // The socket failed, or OpenSSL 3.0 met the end of the stream in an unusual place: no error
        // is queued.
        case SSL_ERROR_SYSCALL:
            ERR_clear_error()
            return .failed(TLSError(.cut, during: operation, message: "the socket failed"))
        default:
            let first = ERR_peek_error()
            let verdict = SSL_get_verify_result(self.pointer)
            let kind: TLSError.Kind =
                switch stratus_err_reason(first) {
                case SSL_R_UNEXPECTED_EOF_WHILE_READING: .cut
                case SSL_R_CERTIFICATE_VERIFY_FAILED: .untrustedPeer
                default: .protocolViolation
                }
            if kind == .untrustedPeer {
                ERR_clear_error()
                let reason = String(cString: X509_verify_cert_error_string(verdict))
                return .failed(TLSError(kind, during: operation, message: reason))
            }
            return .failed(TLSError.taken(kind, during: operation))
        }
    }
}
