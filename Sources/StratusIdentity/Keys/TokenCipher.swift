import COpenSSL
package import StratusModel

/// Seals what clients hold for us: positions in feeds and places in queries.
///
/// The synthetic IV of RFC 5297 with HMAC-SHA256 as its mac and AES-256-CTR as its cipher: equal
/// content sealed for equal circumstances is equal text, nothing is told about content or position, and
/// what was not sealed here, or was sealed for other circumstances, does not open.
///
/// | bytes | what                                                              |
/// | ----- | ----------------------------------------------------------------- |
/// | 16    | the first 16 of HMAC(mac key, length of circumstances ‖ circumstances ‖ content) |
/// | rest  | AES-256-CTR(cipher key, those 16 as counter, content)             |
package final class TokenCipher: Sendable {
    package static let overhead = 16

    private let macKey: Bytes
    private let cipherKey: Bytes

    /// - Parameter key: 32 secret bytes, the same on every node and over every restart.
    package init(key: Bytes) {
        precondition(key.count == 32, "a token key has 32 bytes")
        self.macKey = KeyedHash.hmac(key: key, parts: [Bytes("stratus token mac 1".utf8)])
        self.cipherKey = KeyedHash.hmac(key: key, parts: [Bytes("stratus token cipher 1".utf8)])
    }

    package func seal(_ content: Bytes, for circumstances: Bytes) -> Bytes {
        let initial = self.initial(content, circumstances)
        return initial + self.cipher(content, initial: initial)
    }

    /// Nil for anything but what ``seal(_:for:)`` made for the same circumstances.
    package func open(_ sealed: Bytes, for circumstances: Bytes) -> Bytes? {
        guard sealed.count >= Self.overhead else { return nil }
        let initial = Bytes(sealed[..<Self.overhead])
        let content = self.cipher(Bytes(sealed[Self.overhead...]), initial: initial)
        let expected = self.initial(content, circumstances)
        var difference: UInt8 = 0
        for position in 0..<Self.overhead { difference |= expected[position] ^ initial[position] }
        return difference == 0 ? content : nil
    }

    /// 128 bits that nobody without the key can foretell: equal for equal circumstances.
    package func identity(of circumstances: Bytes) -> RequestIdentity {
        let bytes = self.initial([], circumstances)
        func word(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        return RequestIdentity(high: word(bytes[..<8]), low: word(bytes[8...]))
    }

    private func initial(_ content: Bytes, _ circumstances: Bytes) -> Bytes {
        var length = UInt64(circumstances.count).bigEndian
        let prefix = withUnsafeBytes(of: &length) { Bytes($0) }
        return Bytes(
            KeyedHash.hmac(key: self.macKey, parts: [prefix, circumstances, content])[
                ..<Self.overhead])
    }

    private func cipher(_ content: Bytes, initial: Bytes) -> Bytes {
        guard !content.isEmpty else { return [] }
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        var result = Bytes(repeating: 0, count: content.count)
        var written: Int32 = 0
        let done =
            EVP_EncryptInit_ex2(context, Algorithms.shared.counter, self.cipherKey, initial, nil)
            == 1
            && EVP_EncryptUpdate(context, &result, &written, content, Int32(content.count)) == 1
        precondition(done && Int(written) == content.count, "AES-CTR failed on \(content.count)")
        return result
    }

    /// Fetched once: a fetch for each use costs more than the use.
    ///
    /// Unchecked, since the compiler knows nothing of C: OpenSSL's algorithm objects are immutable and
    /// counted atomically, and this is never freed.
    private struct Algorithms: @unchecked Sendable {
        static let shared = Algorithms()
        let counter: OpaquePointer

        init() {
            guard let counter = EVP_CIPHER_fetch(nil, "AES-256-CTR", nil) else {
                preconditionFailure("OpenSSL lacks AES-256-CTR")
            }
            self.counter = counter
        }
    }
}
