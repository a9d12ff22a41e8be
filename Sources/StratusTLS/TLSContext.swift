import COpenSSL
import Synchronization

package enum TLSVersion: Sendable, Hashable {
    case tls12, tls13

    var number: Int32 {
        switch self {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }
}

package struct TLSServerConfiguration: Sendable {
    package enum ClientCertificates: Sendable, Equatable {
        case ignored
        /// Verified when shown; a bad one ends the handshake.
        case requested(authorityPEM: [UInt8])
        case required(authorityPEM: [UInt8])
    }

    package var identity: CertificateAndKey
    package var minimumVersion: TLSVersion
    package var clientCertificates: ClientCertificates
    /// The protocols spoken inside, by their names in ALPN, the best first. A client that offers
    /// none of them is refused; one without ALPN is spoken to in HTTP/1.1.
    package var protocols = ["http/1.1"]

    package init(
        identity: CertificateAndKey, minimumVersion: TLSVersion = .tls13,
        clientCertificates: ClientCertificates = .ignored
    ) {
        self.identity = identity
        self.minimumVersion = minimumVersion
        self.clientCertificates = clientCertificates
    }
}

package struct TLSClientConfiguration: Sendable {
    /// Whom to believe; nil means the authorities that the system knows.
    package var authorityPEM: [UInt8]?
    /// Shown when the server asks.
    package var identity: CertificateAndKey?
    package var minimumVersion: TLSVersion
    package var maximumVersion: TLSVersion
    /// Offered by their names in ALPN, the best first.
    package var protocols = ["http/1.1"]

    package init(
        authorityPEM: [UInt8]? = nil, identity: CertificateAndKey? = nil,
        minimumVersion: TLSVersion = .tls12, maximumVersion: TLSVersion = .tls13
    ) {
        self.authorityPEM = authorityPEM
        self.identity = identity
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
    }
}

/// Certificates and rules that many connections share.
///
/// `@unchecked`: an `SSL_CTX` counts its references with atomics and locks what it changes; nothing
/// here writes to it after `init`. OpenSSL's header cannot tell the compiler so.
package final class TLSContext: @unchecked Sendable {
    let pointer: OpaquePointer
    private let isServer: Bool
    private let protocols: [String]

    package init(server configuration: TLSServerConfiguration) throws(TLSError) {
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(TLS_server_method()) else {
            throw TLSError.taken(.other, during: "make server context")
        }
        self.pointer = pointer
        self.isServer = true
        self.protocols = configuration.protocols
        stratus_ssl_ctx_harden(pointer)
        stratus_ssl_ctx_set_read_ahead(pointer, 1)
        stratus_ssl_ctx_set_min_version(pointer, configuration.minimumVersion.number)
        // Of TLS 1.2 only what keeps past traffic secret and authenticates what it encrypts.
        SSL_CTX_set_cipher_list(pointer, "ECDHE+AESGCM:ECDHE+CHACHA20")
        // Tickets are self-contained: nothing is remembered here, and a reload forgets them all.
        stratus_ssl_ctx_disable_session_cache(pointer)
        SSL_CTX_set_num_tickets(pointer, 1)
        // Without it, resuming a session that carries a client's certificate is refused.
        let name = Array("stratus".utf8)
        SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count))
        SSL_CTX_set_alpn_select_cb(
            pointer, Self.selectProtocol, Unmanaged.passUnretained(self).toOpaque())
        try self.use(configuration.identity)
        switch configuration.clientCertificates {
        case .ignored: SSL_CTX_set_verify(pointer, SSL_VERIFY_NONE, nil)
        case .requested(let authority):
            try self.trust(authority)
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        case .required(let authority):
            try self.trust(authority)
            SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
    }

    package init(client configuration: TLSClientConfiguration) throws(TLSError) {
        ERR_clear_error()
        guard let pointer = SSL_CTX_new(TLS_client_method()) else {
            throw TLSError.taken(.other, during: "make client context")
        }
        self.pointer = pointer
        self.isServer = false
        self.protocols = configuration.protocols
        stratus_ssl_ctx_harden(pointer)
        stratus_ssl_ctx_set_read_ahead(pointer, 1)
        stratus_ssl_ctx_set_min_version(pointer, configuration.minimumVersion.number)
        stratus_ssl_ctx_set_max_version(pointer, configuration.maximumVersion.number)
        SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        // OpenSSL's list: one length byte and the name, for each.
        let protocols = configuration.protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        SSL_CTX_set_alpn_protos(pointer, protocols, UInt32(protocols.count))
        if let identity = configuration.identity { try self.use(identity) }
        if let authority = configuration.authorityPEM {
            try self.trust(authority)
        } else if SSL_CTX_set_default_verify_paths(pointer) != 1 {
            throw TLSError.taken(.other, during: "load the system's authorities")
        }
    }

    deinit { SSL_CTX_free(self.pointer) }

    private func use(_ identity: CertificateAndKey) throws(TLSError) {
        let chain = try X509Handle.all(inPEM: identity.certificatePEM)
        let key = try KeyHandle(pem: identity.privateKeyPEM)
        ERR_clear_error()
        guard
            SSL_CTX_use_certificate(self.pointer, chain[0].pointer) == 1,
            SSL_CTX_use_PrivateKey(self.pointer, key.pointer) == 1,
            SSL_CTX_check_private_key(self.pointer) == 1
        else { throw TLSError.taken(.badCertificate, during: "use certificate") }
        for intermediate in chain.dropFirst() {
            // The context takes this reference over; the handle keeps its own.
            X509_up_ref(intermediate.pointer)
            guard stratus_ssl_ctx_add_chain_certificate(self.pointer, intermediate.pointer) == 1
            else {
                X509_free(intermediate.pointer)
                throw TLSError.taken(.badCertificate, during: "use certificate chain")
            }
        }
    }

    private func trust(_ authorityPEM: [UInt8]) throws(TLSError) {
        let store = SSL_CTX_get_cert_store(self.pointer)
        for authority in try X509Handle.all(inPEM: authorityPEM) {
            ERR_clear_error()
            guard X509_STORE_add_cert(store, authority.pointer) == 1 else {
                throw TLSError.taken(.badCertificate, during: "trust authority")
            }
            // Tells clients which certificates are worth showing.
            if self.isServer { SSL_CTX_add_client_CA(self.pointer, authority.pointer) }
        }
    }

    /// Agrees on the first of the server's protocols that the client offers (RFC 7301 §3.2): a
    /// client that offers only others is told so instead of being answered in a language it did not
    /// ask for.
    private static let selectProtocol:
        @convention(c) (
            OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
            UnsafeMutablePointer<UInt8>?, UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
        ) -> Int32 = { _, chosen, chosenLength, offered, offeredLength, context in
            // Sessions keep the context that owns this callback.
            let context = Unmanaged<TLSContext>.fromOpaque(context!).takeUnretainedValue()
            for wanted in context.protocols {
                var rest = UnsafeBufferPointer(start: offered, count: Int(offeredLength))[...]
                while let length = rest.popFirst() {
                    let name = rest.prefix(Int(length))
                    if name.elementsEqual(wanted.utf8) {
                        chosen?.pointee = offered! + name.startIndex
                        chosenLength?.pointee = length
                        return SSL_TLSEXT_ERR_OK
                    }
                    rest = rest.dropFirst(Int(length))
                }
            }
            return SSL_TLSEXT_ERR_ALERT_FATAL
        }
}

/// The context that new connections use, replaced as a whole while the server runs.
///
/// Connections that exist keep the context they began with.
package final class TLSContextSource: Sendable {
    private let current: Mutex<TLSContext>

    package init(_ configuration: TLSServerConfiguration) throws(TLSError) {
        self.current = Mutex(try TLSContext(server: configuration))
    }

    package var context: TLSContext { self.current.withLock { $0 } }

    /// Takes the new configuration for connections from now on; when it is unusable it throws, and
    /// the old one stays.
    package func reload(_ configuration: TLSServerConfiguration) throws(TLSError) {
        let context = try TLSContext(server: configuration)
        self.current.withLock { $0 = context }
    }
}
