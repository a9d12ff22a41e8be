import COpenSSL
package import StratusModel
import Synchronization

/// Seals the tokens that clients hold for us: positions in feeds and places in queries.
///
/// It uses the synthetic IV of RFC 5297 with HMAC-SHA256 as its mac and AES-256-CTR as its cipher.
/// Equal content sealed for equal circumstances is equal text, which reveals nothing about content
/// or position. A text sealed elsewhere, or for other circumstances, does not open.
///
/// | bytes | what                                                              |
/// | ----- | ----------------------------------------------------------------- |
/// | 16    | the first 16 of HMAC(mac key, length of circumstances ‖ circumstances ‖ content) |
/// | rest  | AES-256-CTR(cipher key, those 16 as counter, content)             |
///
/// It starts with one key. ``adopt(sealing:opening:)`` gives it others: one seals, and each opens.
package final class TokenCipher: Sendable {
    package static let overhead = 16

    private struct Keys: Sendable {
        let mac: Bytes
        let cipher: Bytes

        init(_ key: Bytes) {
            precondition(key.count == 32, "a token key has 32 bytes")
            self.mac = KeyedHash.hmac(key: key, parts: [Bytes("stratus token mac 1".utf8)])
            self.cipher = KeyedHash.hmac(key: key, parts: [Bytes("stratus token cipher 1".utf8)])
        }
    }

    private struct Ring: Sendable {
        var sealing: Keys
        /// The likeliest first.
        var opening: [Keys]
        var made: [Bytes: Keys]
    }

    /// Its own, for as long as it lives: what identities come from.
    private let first: Keys
    private let ring: Mutex<Ring>

    /// - Parameter key: 32 secret bytes, the same on every node and over every restart.
    package init(key: Bytes) {
        self.first = Keys(key)
        self.ring = Mutex(Ring(sealing: self.first, opening: [self.first], made: [:]))
    }

    /// Changes the keys: `sealing` seals from now on, and any of `opening` opens. Nil stands for
    /// the key it was made with.
    package func adopt(sealing: Bytes?, opening: [Bytes?]) {
        let known = self.ring.withLock { $0.made }
        var made: [Bytes: Keys] = [:]
        func keys(_ key: Bytes?) -> Keys {
            guard let key else { return self.first }
            let keys = made[key] ?? known[key] ?? Keys(key)
            made[key] = keys
            return keys
        }
        let chosen = keys(sealing)
        let all = opening.map { keys($0) }
        self.ring.withLock { [made] in $0 = Ring(sealing: chosen, opening: all, made: made) }
    }

    package func seal(_ content: Bytes, for circumstances: Bytes) -> Bytes {
        let keys = self.ring.withLock { $0.sealing }
        let initial = Self.initial(content, circumstances, keys)
        return initial + Self.cipher(content, initial: initial, keys)
    }

    /// Nil for anything but what ``seal(_:for:)`` made for the same circumstances.
    package func open(_ sealed: Bytes, for circumstances: Bytes) -> Bytes? {
        guard sealed.count >= Self.overhead else { return nil }
        let initial = Bytes(sealed[..<Self.overhead])
        let rest = Bytes(sealed[Self.overhead...])
        for keys in self.ring.withLock({ $0.opening }) {
            let content = Self.cipher(rest, initial: initial, keys)
            let expected = Self.initial(content, circumstances, keys)
            var difference: UInt8 = 0
            for position in 0..<Self.overhead {
                difference |= expected[position] ^ initial[position]
            }
            if difference == 0 { return content }
        }
        return nil
    }

    /// Makes 128 bits that nobody without the first key can foretell: equal for equal
    /// circumstances, even after later keys.
    package func identity(of circumstances: Bytes) -> RequestIdentity {
        let bytes = Self.initial([], circumstances, self.first)
        func word(_ part: ArraySlice<UInt8>) -> UInt64 { part.reduce(0) { $0 << 8 | UInt64($1) } }
        return RequestIdentity(high: word(bytes[..<8]), low: word(bytes[8...]))
    }

    private static func initial(
        _ content: Bytes, _ circumstances: Bytes, _ keys: Keys
    ) -> Bytes {
        var length = UInt64(circumstances.count).bigEndian
        let prefix = withUnsafeBytes(of: &length) { Bytes($0) }
        return Bytes(
            KeyedHash.hmac(key: keys.mac, parts: [prefix, circumstances, content])[
                ..<Self.overhead])
    }

    private static func cipher(_ content: Bytes, initial: Bytes, _ keys: Keys) -> Bytes {
        guard !content.isEmpty else { return [] }
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        var result = Bytes(repeating: 0, count: content.count)
        var written: Int32 = 0
        let done =
            EVP_EncryptInit_ex2(context, Algorithms.shared.counter, keys.cipher, initial, nil)
            == 1
            && EVP_EncryptUpdate(context, &result, &written, content, Int32(content.count)) == 1
        precondition(done && Int(written) == content.count, "AES-CTR failed on \(content.count)")
        return result
    }

    /// Fetched once, because a fetch costs more than the use itself.
    ///
    /// Unchecked, since the compiler knows nothing of C: OpenSSL's algorithm objects are immutable
    /// and counted atomically, and this is never freed.
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
