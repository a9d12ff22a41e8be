package import StratusModel

/// The keyed 128-bit hash of one row, of which a partition's digest is the sum: SipHash-2-4-128
/// (Aumasson, Bernstein 2012) of table, key and row under a key that is fixed for ever.
///
/// The key is no secret. The hash shows when replicas have diverged; it does not withstand somebody
/// who can choose rows and wants two states to collide.
package enum RowHash {
    // On disk and between peers for ever, through the digests made with it.
    private static let key: (UInt64, UInt64) = (0x5374_7261_7475_7352, 0x6F77_4469_6765_7374)

    package static func of(
        _ table: Table, _ key: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer
    ) -> StateDigest {
        var hash = SipHash128(key: Self.key)
        // The key's length keeps a byte from moving between key and row unnoticed.
        hash.absorb(word: UInt64(table.rawValue) << 56 | UInt64(key.count))
        hash.absorb(key)
        hash.absorb(row)
        return hash.finish()
    }
}

/// SipHash-2-4 with 128 bits of output.
struct SipHash128 {
    private var v0: UInt64
    private var v1: UInt64
    private var v2: UInt64
    private var v3: UInt64
    private var tail: UInt64 = 0
    private var count = 0

    init(key: (UInt64, UInt64)) {
        self.v0 = 0x736f_6d65_7073_6575 ^ key.0
        self.v1 = 0x646f_7261_6e64_6f6d ^ key.1 ^ 0xEE
        self.v2 = 0x6c79_6765_6e65_7261 ^ key.0
        self.v3 = 0x7465_6462_7974_6573 ^ key.1
    }

    /// Only at the start, or after multiples of eight bytes.
    mutating func absorb(word: UInt64) {
        precondition(self.count & 7 == 0, "a word inside a word")
        self.count += 8
        self.compress(word)
    }

    mutating func absorb(_ bytes: UnsafeRawBufferPointer) {
        var position = 0
        while self.count & 7 != 0, position < bytes.count {
            self.absorb(byte: bytes[position])
            position += 1
        }
        while position + 8 <= bytes.count {
            let word = bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            self.compress(UInt64(littleEndian: word))
            self.count += 8
            position += 8
        }
        while position < bytes.count {
            self.absorb(byte: bytes[position])
            position += 1
        }
    }

    private mutating func absorb(byte: UInt8) {
        self.tail |= UInt64(byte) << (8 * UInt64(self.count & 7))
        self.count += 1
        if self.count & 7 == 0 {
            self.compress(self.tail)
            self.tail = 0
        }
    }

    mutating func finish() -> StateDigest {
        self.compress(self.tail | UInt64(truncatingIfNeeded: self.count) << 56)
        self.v2 ^= 0xEE
        for _ in 0..<4 { self.round() }
        let low = self.v0 ^ self.v1 ^ self.v2 ^ self.v3
        self.v1 ^= 0xDD
        for _ in 0..<4 { self.round() }
        return StateDigest(high: self.v0 ^ self.v1 ^ self.v2 ^ self.v3, low: low)
    }

    private mutating func compress(_ word: UInt64) {
        self.v3 ^= word
        self.round()
        self.round()
        self.v0 ^= word
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
