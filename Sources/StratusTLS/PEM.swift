import COpenSSL

/// A memory BIO: OpenSSL's way to read from bytes and print into them.
struct MemoryBIO: ~Copyable {
    let pointer: OpaquePointer

    init() {
        self.pointer = BIO_new(BIO_s_mem())
    }

    /// Copies `bytes`, so that the BIO depends on nobody.
    init(_ bytes: [UInt8]) {
        self.init()
        BIO_write(self.pointer, bytes, Int32(bytes.count))
    }

    deinit { BIO_free(self.pointer) }

    var contents: [UInt8] {
        var start: UnsafeMutablePointer<CChar>?
        let count = stratus_bio_bytes(self.pointer, &start)
        return Array(UnsafeRawBufferPointer(start: start, count: count))
    }
}

/// One X.509 certificate. Freed with its last owner.
final class X509Handle {
    let pointer: OpaquePointer

    init(takingOwnershipOf pointer: OpaquePointer) { self.pointer = pointer }
    deinit { X509_free(self.pointer) }

    /// All certificates in a PEM file, in its order.
    static func all(inPEM bytes: [UInt8]) throws(TLSError) -> [X509Handle] {
        let source = MemoryBIO(bytes)
        var found: [X509Handle] = []
        ERR_clear_error()
        while let pointer = PEM_read_bio_X509(source.pointer, nil, nil, nil) {
            found.append(X509Handle(takingOwnershipOf: pointer))
        }
        // The end of the file is told as an error too; it is one only if nothing came before.
        if found.isEmpty { throw TLSError.taken(.badCertificate, during: "read certificate") }
        ERR_clear_error()
        return found
    }

    var pem: [UInt8] {
        let sink = MemoryBIO()
        PEM_write_bio_X509(sink.pointer, self.pointer)
        return sink.contents
    }
}

/// One private key. Freed with its last owner.
final class KeyHandle {
    let pointer: OpaquePointer

    init(takingOwnershipOf pointer: OpaquePointer) { self.pointer = pointer }
    deinit { EVP_PKEY_free(self.pointer) }

    convenience init(pem: [UInt8]) throws(TLSError) {
        let source = MemoryBIO(pem)
        ERR_clear_error()
        // Without a callback an encrypted key would ask on the terminal.
        let key = PEM_read_bio_PrivateKey(source.pointer, nil, { _, _, _, _ in -1 }, nil)
        guard let pointer = key else {
            throw TLSError.taken(.badCertificate, during: "read private key")
        }
        self.init(takingOwnershipOf: pointer)
    }

    static func newP256() throws(TLSError) -> KeyHandle {
        guard let pointer = stratus_evp_generate_p256() else {
            throw TLSError.taken(.other, during: "generate key")
        }
        return KeyHandle(takingOwnershipOf: pointer)
    }

    var pem: [UInt8] {
        let sink = MemoryBIO()
        PEM_write_bio_PrivateKey(sink.pointer, self.pointer, nil, nil, 0, nil, nil)
        return sink.contents
    }
}
