/// The character classes of RFC 9110 and RFC 3986 as bit sets over ASCII.
enum HTTPCharacters {
    struct Class: Sendable {
        let low: UInt64
        let high: UInt64

        @inline(__always)
        func contains(_ byte: UInt8) -> Bool {
            let word = byte < 64 ? self.low : self.high
            return byte < 128 && (word >> UInt64(byte & 63)) & 1 == 1
        }
    }

    /// ``!#$%&'*+-.^_`|~``, digits, letters.
    static let token = Class(low: 0x03FF_6CFA_0000_0000, high: 0x57FF_FFFF_C7FF_FFFE)
    /// Printable but `"`, `#`, `<`, `>`, `\`. More than RFC 3986 allows: clients send `{`, `|` and
    /// `^` unencoded, CloudKit's `${f}` among them, and no two readers differ about them. They do
    /// about a fragment and a backslash.
    static let target = Class(low: 0xAFFF_FFF2_0000_0000, high: 0x7FFF_FFFF_EFFF_FFFF)
    /// The characters of a registered name (RFC 3986 §3.2.2), without percent-encoding: no DNS name
    /// needs it.
    static let host = Class(low: 0x2BFF_7FD2_0000_0000, high: 0x47FF_FFFE_87FF_FFFE)
}
