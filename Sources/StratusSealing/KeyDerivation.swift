import COpenSSL
package import StratusModel

/// HKDF with SHA-256 (RFC 5869): a key of its own for each purpose from one key.
package enum KeyDerivation {
    /// The most that one key and one purpose give.
    package static let countMax = 255 * 32

    /// Derives `count` bytes.
    ///
    /// - Parameter info: the purpose of the key. Two purposes must differ in it. Neither may be the
    ///   beginning of the other, followed by a text that somebody else chooses.
    package static func derive(
        from key: SecretBytes, salt: Bytes = [], info: Bytes, count: Int = 32
    ) -> SecretBytes {
        var input = key.withBytes { Bytes($0) }
        defer { OPENSSL_cleanse(&input, input.count) }
        var derived = Self.hkdf(input, salt: salt, info: info, count: count)
        return SecretBytes(taking: &derived)
    }

    /// The same over plain bytes, as the published vectors have it.
    package static func hkdf(_ key: Bytes, salt: Bytes, info: Bytes, count: Int) -> Bytes {
        precondition((1...Self.countMax).contains(count), "HKDF cannot give \(count) bytes")
        var extracted = KeyedHash.hmac(
            key: salt.isEmpty ? Bytes(repeating: 0, count: 32) : salt, parts: [key])
        defer { OPENSSL_cleanse(&extracted, extracted.count) }
        var result = Bytes()
        var block = Bytes()
        defer { OPENSSL_cleanse(&block, block.count) }
        var number: UInt8 = 0
        while result.count < count {
            number += 1
            block = KeyedHash.hmac(key: extracted, parts: [block, info, [number]])
            result.append(contentsOf: block)
        }
        result.removeLast(result.count - count)
        return result
    }
}
