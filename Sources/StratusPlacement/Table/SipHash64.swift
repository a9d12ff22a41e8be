import StratusModel

/// SipHash-2-4 with 64 bits of output (Aumasson, Bernstein 2012), over bytes.
///
/// It is fast enough for one short key per request, and even in every bit, which placement needs
/// because it uses the top ones. Its key is public, so anyone can choose keys that meet in one
/// partition. Nobody can choose an owner, because owners are made from a secret.
struct SipHash64 {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64

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

    private init(key: (UInt64, UInt64)) {
        self.v0 = 0x736f_6d65_7073_6575 ^ key.0
        self.v1 = 0x646f_7261_6e64_6f6d ^ key.1
        self.v2 = 0x6c79_6765_6e65_7261 ^ key.0
        self.v3 = 0x7465_6462_7974_6573 ^ key.1
    }

    private static func word(_ bytes: Bytes, _ start: Int, _ count: Int) -> UInt64 {
        var word: UInt64 = 0
        for offset in 0..<count { word |= UInt64(bytes[start + offset]) << (8 * UInt64(offset)) }
        return word
    }

    private mutating func compress(_ word: UInt64) {
        self.v3 ^= word
        self.round()
        self.round()
        self.v0 ^= word
    }

    private mutating func finish() -> UInt64 {
        self.v2 ^= 0xFF
        for _ in 0..<4 { self.round() }
        return self.v0 ^ self.v1 ^ self.v2 ^ self.v3
    }

    @inline(__always)
    private mutating func round() {
        self.v0 &+= self.v1
        self.v1 = self.v1 << 13 | self.v1 >> 51
        self.v1 ^= self.v0
        self.v0 = self.v0 << 32 | self.v0 >> 32
        self.v2 &+= self.v3
        self.v3 = self.v3 << 16 | self.v3 >> 48
        self.v3 ^= self.v2
        self.v0 &+= self.v3
        self.v3 = self.v3 << 21 | self.v3 >> 43
        self.v3 ^= self.v0
        self.v2 &+= self.v1
        self.v1 = self.v1 << 17 | self.v1 >> 47
        self.v1 ^= self.v2
        self.v2 = self.v2 << 32 | self.v2 >> 32
    }
}
