import StratusCoding
import StratusModel

/// SipHash-2-4 with 64 bits of output, over bytes.
///
/// It is fast enough for one short key per request, and even in every bit, which placement needs
/// because it uses the top ones. Its key is public, so anyone can choose keys that meet in one
/// partition. Nobody can choose an owner, because owners are made from a secret.
struct SipHash64 {
    private var rounds: SipRounds

    static func of(_ bytes: Bytes, key: (UInt64, UInt64)) -> UInt64 {
        var hash = SipHash64(key: key)
        let whole = bytes.count & ~7
        var position = 0
        while position < whole {
            hash.compress(Self.word(bytes, position, 8))
            position += 8
        }
        let tail = Self.word(bytes, whole, bytes.count - whole)
        hash.compress(tail | UInt64(truncatingIfNeeded: bytes.count) << 56)
        return hash.finish()
    }

    /// Hashes two little-endian words like ``of(_:key:)``, without an array for them.
    static func of(_ first: UInt64, _ second: UInt64, key: (UInt64, UInt64)) -> UInt64 {
        var hash = SipHash64(key: key)
        hash.compress(first)
        hash.compress(second)
        hash.compress(16 << 56)
        return hash.finish()
    }

    private init(key: (UInt64, UInt64)) { self.rounds = SipRounds(key: key) }

    private static func word(_ bytes: Bytes, _ start: Int, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in 0..<count { word |= UInt64(bytes[start + offset]) << (8 * UInt64(offset)) }
        return word
    }

    private mutating func compress(_ word: UInt64) { self.rounds.compress(word) }

    private mutating func finish() -> UInt64 {
        self.rounds.v2 ^= 0xFF
        return self.rounds.squeeze()
    }
}
