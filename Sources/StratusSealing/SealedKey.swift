package import StratusCoding
package import StratusModel

// Wrapped key, version 1
//
// | bytes | what                                                                       |
// | ----- | -------------------------------------------------------------------------- |
// | 4     | the version of the key above, under which it is wrapped                    |
// | 8     | the check value of the key above                                           |
// | 12    | nonce, drawn                                                               |
// | 48    | AES-256-GCM of the 32 bytes, under HKDF(key above, `stratus key wrap 1`)   |
//
// Authenticated beside it: the text `stratus wrapped key 1`, the version, the check value, and what
// the key is for. A check value is HKDF(key, `stratus key check 1`), 8 bytes of it.

/// A key of 32 bytes, sealed under another one.
///
/// The check value tells a key that is missing or exchanged from a row that is damaged: a node says
/// which one it is.
package struct SealedKey: Sendable, Hashable {
    package enum Problem: Error, Sendable, Equatable {
        /// The key above is another one than the one it was wrapped under.
        case otherKey
        /// It was altered, or wrapped for something else.
        case damaged
    }

    package static let encodedSize = 72
    package static let keySize = 32
    private static let sealedSize = keySize + AuthenticatedCipher.tagSize

    /// The version of the key above.
    package let version: UInt32
    package let check: Bytes
    private let nonce: Bytes
    private let sealed: Bytes

    /// - Parameters:
    ///   - purpose: what the key is for. It opens for nothing else.
    ///   - nonce: 12 unpredictable bytes.
    package init(
        _ key: SecretBytes, under above: SecretBytes, version: UInt32, for purpose: Bytes,
        nonce: Bytes
    ) {
        precondition(key.count == Self.keySize, "a key of another size")
        precondition(nonce.count == AuthenticatedCipher.nonceSize, "a nonce of another size")
        self.version = version
        self.check = Self.check(of: above)
        self.nonce = nonce
        var plain = key.withBytes { Bytes($0) }
        self.sealed = AuthenticatedCipher.seal(
            plain, key: Self.wrapping(above), nonce: nonce,
            associated: Self.associated(version, self.check, purpose))
        // Wiped by the copy that takes it.
        _ = SecretBytes(taking: &plain)
    }

    package func open(under above: SecretBytes, for purpose: Bytes) throws(Problem) -> SecretBytes {
        guard Self.check(of: above) == self.check else { throw .otherKey }
        guard
            var plain = AuthenticatedCipher.open(
                self.sealed, key: Self.wrapping(above), nonce: self.nonce,
                associated: Self.associated(self.version, self.check, purpose)),
            plain.count == Self.keySize
        else { throw .damaged }
        return SecretBytes(taking: &plain)
    }

    /// Eight bytes that say which key it is and nothing of the key.
    package static func check(of key: SecretBytes) -> Bytes {
        KeyDerivation.derive(from: key, info: Bytes("stratus key check 1".utf8), count: 8)
            .withBytes { Bytes($0) }
    }

    package var encoded: Bytes {
        var writer = ByteWriter(reserving: Self.encodedSize)
        writer.write(fixed: self.version)
        writer.write(raw: self.check)
        writer.write(raw: self.nonce)
        writer.write(raw: self.sealed)
        return writer.bytes
    }

    /// Nonce, sealed key and tag: what stands in a row that has version and check value beside it.
    package var text: Bytes { self.nonce + self.sealed }

    /// - Parameters:
    ///   - text: as ``text`` gives it.
    package init(text: Bytes, version: UInt32, check: Bytes) throws(DecodingError) {
        var reader = ByteReader(text)
        self.version = version
        self.check = check
        self.nonce = try reader.raw(AuthenticatedCipher.nonceSize)
        self.sealed = try reader.raw(Self.sealedSize)
        try reader.finish()
    }

    package init(decoding bytes: Bytes) throws(DecodingError) {
        var reader = ByteReader(bytes)
        self.version = try reader.fixed32()
        self.check = try reader.raw(8)
        self.nonce = try reader.raw(AuthenticatedCipher.nonceSize)
        self.sealed = try reader.raw(Self.sealedSize)
        try reader.finish()
    }

    private static func wrapping(_ above: SecretBytes) -> SecretBytes {
        KeyDerivation.derive(from: above, info: Bytes("stratus key wrap 1".utf8))
    }

    private static func associated(_ version: UInt32, _ check: Bytes, _ purpose: Bytes) -> Bytes {
        var writer = ByteWriter(reserving: 64 + purpose.count)
        writer.write(text: "stratus wrapped key 1")
        writer.write(fixed: version)
        writer.write(raw: check)
        writer.write(prefixed: purpose)
        return writer.bytes
    }
}
