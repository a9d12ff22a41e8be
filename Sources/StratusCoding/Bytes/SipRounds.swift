/// The state of SipHash-2-4 (Aumasson, Bernstein 2012) and its rounds. What is hashed, how it ends
/// and how many bits come out is its users' affair.
package struct SipRounds: Sendable {
    package var v0: UInt64
    package var v1: UInt64
    package var v2: UInt64
    package var v3: UInt64

    @inline(__always)
    package init(key: (UInt64, UInt64)) {
        self.v0 = 0x736f_6d65_7073_6575 ^ key.0
        self.v1 = 0x646f_7261_6e64_6f6d ^ key.1
        self.v2 = 0x6c79_6765_6e65_7261 ^ key.0
        self.v3 = 0x7465_6462_7974_6573 ^ key.1
    }

    /// Takes in the next eight bytes of the message.
    @inline(__always)
    package mutating func compress(_ word: UInt64) {
        self.v3 ^= word
        self.round()
        self.round()
        self.v0 ^= word
    }

    /// Ends with four rounds, and returns 64 bits of the hash.
    @inline(__always)
    package mutating func squeeze() -> UInt64 {
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
