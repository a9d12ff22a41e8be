import StratusModel

/// The appending functions that the JSON and HTTP writers share.
extension Array where Element == UInt8 {
    @inline(__always)
    mutating func append(literal text: StaticString) {
        // A literal's own bytes.
        unsafe self.append(
            contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    @inline(__always)
    mutating func append(copying run: Span<UInt8>) {
        // An array cannot take a span yet; the pointer lives no longer than this line.
        unsafe run.withUnsafeBufferPointer { unsafe self.append(contentsOf: $0) }
    }

    init(copying run: Span<UInt8>) {
        self = []
        self.reserveCapacity(run.count)
        self.append(copying: run)
    }

    mutating func append(decimal value: Int64) {
        if value < 0 { self.append(0x2D) }
        var rest = value.magnitude
        if rest < 10 { return self.append(0x30 + UInt8(truncatingIfNeeded: rest)) }
        // Filled from its end: no String in between.
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var start = 20
        while rest > 0 {
            start -= 1
            let (quotient, remainder) = rest.quotientAndRemainder(dividingBy: 10)
            digits[start] = 0x30 + UInt8(truncatingIfNeeded: remainder)
            rest = quotient
        }
        self.append(copying: digits.span.extracting(start..<20))
    }
}
