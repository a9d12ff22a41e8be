/// Looks at eight bytes at a time, little-endian: the first byte is the lowest.
///
/// Each function returns a word whose lowest set bit, if any, lies in the first byte looked for.
/// Bits above that one mean nothing: the subtraction borrows upwards.
enum WordScan {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    static let highs: UInt64 = 0x8080_8080_8080_8080

    @inline(__always)
    static func equal(_ word: UInt64, _ byte: UInt8) -> UInt64 {
        let difference = word ^ (Self.ones &* UInt64(byte))
        return (difference &- Self.ones) & ~difference & Self.highs
    }

    /// For `bound` up to 128.
    @inline(__always)
    static func below(_ word: UInt64, _ bound: UInt8) -> UInt64 {
        (word &- (Self.ones &* UInt64(bound))) & ~word & Self.highs
    }

    /// Whatever ends a plain run inside a JSON string: quote, backslash, control, or not ASCII.
    @inline(__always)
    static func stringSpecial(_ word: UInt64) -> UInt64 {
        Self.equal(word, 0x22) | Self.equal(word, 0x5C) | Self.below(word, 0x20)
            | (word & Self.highs)
    }

    /// Marks the bytes that a JSON writer must escape: quote, backslash, control.
    @inline(__always)
    static func mustEscape(_ word: UInt64) -> UInt64 {
        Self.equal(word, 0x22) | Self.equal(word, 0x5C) | Self.below(word, 0x20)
    }

    /// Returns zeros if no byte must be escaped, and something else otherwise.
    @inline(__always)
    static func mustEscape(_ block: SIMD4<UInt64>) -> SIMD4<UInt64> {
        let ones = SIMD4(repeating: Self.ones)
        let quotes = block ^ SIMD4(repeating: Self.ones &* 0x22)
        let slashes = block ^ SIMD4(repeating: Self.ones &* 0x5C)
        // Neither pattern has a highest bit, so the complement of the bytes serves all three tests.
        let low = (quotes &- ones) | (slashes &- ones) | (block &- ones &* 0x20)
        return low & ~block & Self.highs
    }
}

extension RawSpan {
    /// The eight bytes from `offset`, which must exist, as a little-endian number.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        // Any eight bytes are a UInt64; the span still checks that they are its own.
        UInt64(
            littleEndian: unsafe self.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }
}
