/// Owned bytes. A plain array: `span` and `bytes` give views of it without copying.
package typealias Bytes = [UInt8]

/// A number of bytes, where a bare `Int` could be taken for a count of something else.
package struct ByteCount: Sendable, Hashable, Comparable, ExpressibleByIntegerLiteral {
    package var raw: Int

    package init(_ raw: Int) { self.raw = raw }
    package init(integerLiteral value: Int) { self.raw = value }

    package static func < (one: Self, other: Self) -> Bool { one.raw < other.raw }
    package static func kibibytes(_ count: Int) -> Self { Self(count << 10) }
    package static func mebibytes(_ count: Int) -> Self { Self(count << 20) }
}

extension String {
    /// The bytes as text, if they are UTF-8. Takes bytes in one piece: an initializer for any
    /// sequence costs several times as much.
    @inline(__always)
    package init?(utf8 bytes: Span<UInt8>) {
        guard let text = try? UTF8Span(validating: bytes) else { return nil }
        self.init(copying: text)
    }

    /// Whether `test` holds for every byte. The bytes are looked at in one piece: a sequence of
    /// them costs several times as much.
    @inline(__always)
    package func holdsOnlyBytes(_ test: (UInt8) -> Bool) -> Bool {
        let bytes = self.utf8Span.span
        for place in bytes.indices where !test(bytes[place]) { return false }
        return true
    }

    /// Whether a zero byte is in it.
    package var holdsZero: Bool { !self.holdsOnlyBytes { $0 != 0 } }
}

extension Array where Element == UInt8 {
    /// Copies a borrowed view into bytes of one's own.
    package init(copying view: borrowing RawSpan) {
        self = unsafe view.withUnsafeBytes { unsafe Self($0) }
    }
}
