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

    private typealias Keys = KeyedContexts

    private static func keys(_ key: Bytes) -> Keys {
        precondition(key.count == 32, "a token key has 32 bytes")
        return KeyedContexts(
            mac: KeyedHash.hmac(key: key, parts: [Bytes("stratus token mac 1".utf8)]),
            cipher: KeyedHash.hmac(key: key, parts: [Bytes("stratus token cipher 1".utf8)]))
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
        self.first = Self.keys(key)
        self.ring = Mutex(Ring(sealing: self.first, opening: [self.first], made: [:]))
    }

    /// Changes the keys: `sealing` seals from now on, and any of `opening` opens. Nil stands for
    /// the key it was made with.
    package func adopt(sealing: Bytes?, opening: [Bytes?]) {
        let known = self.ring.withLock { $0.made }
        var made: [Bytes: Keys] = [:]
        func keys(_ key: Bytes?) -> Keys {
            guard let key else { return self.first }
            let keys = made[key] ?? known[key] ?? Self.keys(key)
            made[key] = keys
            return keys
        }
        let chosen = keys(sealing)
        let all = opening.map { keys($0) }
        self.ring.withLock { [made] in $0 = Ring(sealing: chosen, opening: all, made: made) }
    }

    package func seal(_ content: Bytes, for circumstances: Bytes) -> Bytes {
        self.ring.withLock { $0.sealing }.withContext { context in
            Bytes(unsafeUninitializedCapacity: Self.overhead + content.count) { output, count in
                Self.withTag(of: content, circumstances, context) { tag in
                    for position in 0..<Self.overhead { output[position] = tag[position] }
                    content.withUnsafeBytes {
                        context.encrypt(
                            $0, counter: tag, into: output.baseAddress! + Self.overhead)
                    }
                }
                count = Self.overhead + content.count
            }
        }
    }

    /// Nil for anything but what ``seal(_:for:)`` made for the same circumstances.
    package func open(_ sealed: Bytes, for circumstances: Bytes) -> Bytes? {
        guard sealed.count >= Self.overhead else { return nil }
        for keys in self.ring.withLock({ $0.opening }) {
            let content = keys.withContext { context -> Bytes? in
                let size = sealed.count - Self.overhead
                return sealed.withUnsafeBufferPointer { sealed in
                    let initial = sealed.baseAddress!
                    let content = Bytes(unsafeUninitializedCapacity: size) { output, count in
                        if let start = output.baseAddress {
                            context.encrypt(
                                UnsafeRawBufferPointer(
                                    start: initial + Self.overhead, count: size),
                                counter: initial, into: start)
                        }
                        count = size
                    }
                    let isSame = Self.withTag(of: content, circumstances, context) { tag in
                        var difference: UInt8 = 0
                        for position in 0..<Self.overhead {
                            difference |= tag[position] ^ initial[position]
                        }
                        return difference == 0
                    }
                    return isSame ? content : nil
                }
            }
            if let content { return content }
        }
        return nil
    }

    /// Makes 128 bits that nobody without the first key can foretell: equal for equal
    /// circumstances, even after later keys.
    package func identity(of circumstances: Bytes) -> RequestIdentity {
        self.first.withContext { context in
            Self.withTag(of: [], circumstances, context) { tag in
                func word(_ start: Int) -> UInt64 {
                    (start..<start + 8).reduce(0) { $0 << 8 | UInt64(tag[$1]) }
                }
                return RequestIdentity(high: word(0), low: word(8))
            }
        }
    }

    /// Passes on the 32 bytes that the first 16 bytes of a sealed text begin.
    private static func withTag<Result>(
        of content: Bytes, _ circumstances: Bytes, _ context: KeyedContexts.Context,
        _ body: (UnsafePointer<UInt8>) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 32) { tag in
            let start = tag.baseAddress!
            withUnsafeBytes(of: UInt64(circumstances.count).bigEndian) { length in
                circumstances.withUnsafeBytes { circumstances in
                    content.withUnsafeBytes { content in
                        context.tag(length, circumstances, content, into: start)
                    }
                }
            }
            return body(UnsafePointer(start))
        }
    }
}
