import StratusCoding
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
        _ table: Table, _ key: borrowing RawSpan, _ row: borrowing RawSpan
    ) -> StateDigest {
        var hash = SipHash128(key: Self.key)
        // The key's length keeps a byte from moving between key and row unnoticed.
        hash.absorb(word: UInt64(table.rawValue) << 56 | UInt64(key.byteCount))
        unsafe key.withUnsafeBytes { unsafe hash.absorb($0) }
        unsafe row.withUnsafeBytes { unsafe hash.absorb($0) }
        return hash.finish()
    }
}

/// SipHash-2-4 with 128 bits of output.
struct SipHash128 {
    private var rounds: SipRounds
    private var tail: UInt64 = 0
    private var count = 0

    init(key: (UInt64, UInt64)) {
        self.rounds = SipRounds(key: key)
        self.rounds.v1 ^= 0xEE
    }

    /// Only at the start, or after multiples of eight bytes.
    mutating func absorb(word: UInt64) {
        precondition(self.count & 7 == 0, "a word inside a word")
        self.count += 8
        self.rounds.compress(word)
    }

    mutating func absorb(_ bytes: UnsafeRawBufferPointer) {
        var position = 0
        while self.count & 7 != 0, position < bytes.count {
            unsafe self.absorb(byte: bytes[position])
            position += 1
        }
        while position + 8 <= bytes.count {
            let word = unsafe bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self)
            self.rounds.compress(UInt64(littleEndian: word))
            self.count += 8
            position += 8
        }
        while position < bytes.count {
            unsafe self.absorb(byte: bytes[position])
            position += 1
        }
    }

    private mutating func absorb(byte: UInt8) {
        self.tail |= UInt64(byte) << (8 * UInt64(self.count & 7))
        self.count += 1
        if self.count & 7 == 0 {
            self.rounds.compress(self.tail)
            self.tail = 0
        }
    }

    mutating func finish() -> StateDigest {
        self.rounds.compress(self.tail | UInt64(truncatingIfNeeded: self.count) << 56)
        self.rounds.v2 ^= 0xEE
        let low = self.rounds.squeeze()
        self.rounds.v1 ^= 0xDD
        return StateDigest(high: self.rounds.squeeze(), low: low)
    }
}
