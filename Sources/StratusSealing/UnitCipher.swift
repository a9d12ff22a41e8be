import COpenSSL

/// AES-256-XTS (IEEE 1619, NIST SP 800-38E) over data units of 4 KiB.
///
/// It keeps length and place: block *n* of a file is sealed into block *n*. It hides what stands
/// there from whoever reads the disk. It does not notice a change: a block that somebody altered
/// opens to other bytes.
///
/// Not for two threads at once: OpenSSL's contexts are written by each use. `@unchecked Sendable`,
/// since the owner's lock says so and the compiler cannot see it.
package final class UnitCipher: @unchecked Sendable {
    package static let keySize = 64
    package static let blockSize = 16
    package static let unitSize = 4_096

    private let sealing: OpaquePointer
    private let opening: OpaquePointer
    /// For a piece that does not begin with its unit.
    private let scratch: UnsafeMutableRawBufferPointer

    /// - Parameter key: 64 bytes: the key of the texts, then the key of the units' numbers.
    package init(key: SecretBytes) {
        precondition(key.count == Self.keySize, "AES-256-XTS takes a key of 64 bytes")
        guard let sealing = EVP_CIPHER_CTX_new(), let opening = EVP_CIPHER_CTX_new() else {
            preconditionFailure("OpenSSL has no memory")
        }
        let cipher = Algorithms.shared.cipher
        let isReady = key.withBytes { key in
            let start = key.bindMemory(to: UInt8.self).baseAddress
            return EVP_EncryptInit_ex2(sealing, cipher, start, nil, nil) == 1
                && EVP_DecryptInit_ex2(opening, cipher, start, nil, nil) == 1
        }
        // The two halves of a key must differ; those of a derived one do.
        precondition(isReady, "AES-256-XTS could not be set up")
        self.sealing = sealing
        self.opening = opening
        self.scratch = .allocate(byteCount: Self.unitSize, alignment: 64)
        self.scratch.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        // Frees the key's schedule wiped.
        EVP_CIPHER_CTX_free(self.sealing)
        EVP_CIPHER_CTX_free(self.opening)
        OPENSSL_cleanse(self.scratch.baseAddress, self.scratch.count)
        self.scratch.deallocate()
    }

    /// Seals whole blocks in their place.
    ///
    /// - Parameter offset: where the bytes stand in the file; a multiple of the block's size.
    package func seal(_ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) {
        self.run(bytes, at: offset) { unit, bytes in
            Self.check(
                EVP_EncryptInit_ex2(self.sealing, nil, nil, unit, nil) == 1
                    && Self.update(EVP_EncryptUpdate, self.sealing, bytes))
        }
    }

    /// Opens whole blocks in their place.
    package func open(_ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) {
        self.run(bytes, at: offset) { unit, bytes in
            Self.check(
                EVP_DecryptInit_ex2(self.opening, nil, nil, unit, nil) == 1
                    && Self.update(EVP_DecryptUpdate, self.opening, bytes))
        }
    }

    private typealias Update = (
        OpaquePointer?, UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<Int32>?,
        UnsafePointer<UInt8>?, Int32
    ) -> Int32

    private static func update(
        _ update: Update, _ context: OpaquePointer, _ bytes: UnsafeMutableRawBufferPointer
    ) -> Bool {
        var written: Int32 = 0
        let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return update(context, start, &written, start, Int32(bytes.count)) == 1
            && Int(written) == bytes.count
    }

    private static func check(_ isDone: Bool) { precondition(isDone, "AES-256-XTS failed") }

    /// Calls `body` with each unit's number, as 16 bytes, and the bytes of it from its beginning.
    private func run(
        _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64,
        _ body: (UnsafePointer<UInt8>, UnsafeMutableRawBufferPointer) -> Void
    ) {
        precondition(
            offset % UInt64(Self.blockSize) == 0 && bytes.count % Self.blockSize == 0,
            "\(bytes.count) bytes at \(offset) are no whole blocks")
        var done = 0
        while done < bytes.count {
            let (unit, within) = (offset + UInt64(done)).quotientAndRemainder(
                dividingBy: UInt64(Self.unitSize))
            let lead = Int(within)
            let count = min(bytes.count - done, Self.unitSize - lead)
            let piece = UnsafeMutableRawBufferPointer(rebasing: bytes[done..<(done + count)])
            // The number of the unit, little-endian.
            var tweak = (unit.littleEndian, UInt64(0))
            withUnsafeBytes(of: &tweak) { tweak in
                guard let number = tweak.bindMemory(to: UInt8.self).baseAddress else { return }
                if lead == 0 { return body(number, piece) }
                // A block's text depends on its own bytes and its place only. What stands before it
                // in the unit is of no matter, but OpenSSL counts the places from the beginning.
                let whole = UnsafeMutableRawBufferPointer(
                    rebasing: self.scratch[..<(lead + count)])
                let part = UnsafeMutableRawBufferPointer(rebasing: whole[lead...])
                part.copyMemory(from: UnsafeRawBufferPointer(piece))
                body(number, whole)
                piece.copyMemory(from: UnsafeRawBufferPointer(part))
            }
            done += count
        }
    }

    /// Fetched once, because a fetch costs more than the use itself.
    ///
    /// Unchecked, since the compiler knows nothing of C: OpenSSL's algorithm objects are immutable
    /// and counted atomically, and this is never freed.
    private struct Algorithms: @unchecked Sendable {
        static let shared = Algorithms()
        let cipher: OpaquePointer

        init() {
            guard let cipher = EVP_CIPHER_fetch(nil, "AES-256-XTS", nil) else {
                preconditionFailure("OpenSSL lacks AES-256-XTS")
            }
            self.cipher = cipher
        }
    }
}
