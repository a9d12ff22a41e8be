package import StratusModel
package import StratusSealing

/// A message encrypted for one browser (RFC 8291), as the one record of an `aes128gcm` body (RFC
/// 8188).
package enum WebPushMessage {
    package enum Problem: Error, Sendable, Equatable {
        /// Not a point of P-256.
        case publicKey
        /// Not 16 bytes.
        case secret
        case tooLarge
    }

    /// The most plain bytes that still fit the 4,096 bytes that a service takes (RFC 8030 §7.2).
    package static let plainSizeMax = 3_993
    private static let recordSize: UInt32 = 4_096

    /// - Parameters:
    ///   - publicKey: the subscription's `p256dh`, 65 bytes.
    ///   - secret: its `auth`, 16 bytes.
    ///   - ephemeral: a key that was made for this message alone.
    ///   - salt: 16 bytes drawn for this message.
    package static func encrypt(
        _ plain: Bytes, publicKey: Bytes, secret: Bytes, ephemeral: SigningKey, salt: Bytes
    ) throws(Problem) -> Bytes {
        precondition(salt.count == 16, "a salt has 16 bytes")
        guard secret.count == 16 else { throw .secret }
        guard plain.count <= Self.plainSizeMax else { throw .tooLarge }
        guard let agreed = ephemeral.agree(with: publicKey) else { throw .publicKey }
        let point = ephemeral.publicPoint
        let input = agreed.withBytes {
            KeyDerivation.hkdf(
                Bytes($0), salt: secret,
                info: Bytes("WebPush: info".utf8) + [0] + publicKey + point, count: 32)
        }
        let key = KeyDerivation.hkdf(
            input, salt: salt, info: Bytes("Content-Encoding: aes128gcm".utf8) + [0], count: 16)
        let nonce = KeyDerivation.hkdf(
            input, salt: salt, info: Bytes("Content-Encoding: nonce".utf8) + [0], count: 12)
        let size = withUnsafeBytes(of: Self.recordSize.bigEndian) { Bytes($0) }
        // 2 marks the last record; there is no padding behind it.
        let record = ContentEncryption.seal(plain + [2], key: key, nonce: nonce)
        return salt + size + [UInt8(point.count)] + point + record
    }
}
