/// Turns the text of a JSON number, already held against the grammar, into values.
enum JSONNumber {
    /// Exact, or nil: a fraction, an exponent, or beyond 64 bits.
    static func int64(_ text: Span<UInt8>) -> Int64? {
        var at = 0
        let isNegative = text.count > 0 && text[0] == 0x2D
        if isNegative { at = 1 }
        guard at < text.count else { return nil }
        var magnitude: UInt64 = 0
        while at < text.count {
            let digit = text[at] &- 0x30
            guard digit < 10 else { return nil }
            let (scaled, overflow) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, carried) = scaled.addingReportingOverflow(UInt64(digit))
            guard !overflow, !carried else { return nil }
            magnitude = sum
            at += 1
        }
        if isNegative {
            guard magnitude <= 1 << 63 else { return nil }
            return Int64(truncatingIfNeeded: 0 &- magnitude)
        }
        return Int64(exactly: magnitude)
    }

    /// The nearest Double. Infinite where the number is beyond its range.
    static func double(_ text: Span<UInt8>) -> Double? {
        if let quick = Self.exactByOneOperation(text) { return quick }
        let copy = String(decoding: (0..<text.count).map { text[$0] }, as: UTF8.self)
        return Double(copy)
    }

    private static let powersOfTen: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
        1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ]

    /// Converts exactly if digits and power of ten are both exact as Doubles: then one
    /// multiplication or division rounds correctly (Clinger 1990). True of nearly every number
    /// people write.
    private static func exactByOneOperation(_ text: Span<UInt8>) -> Double? {
        var at = 0
        let isNegative = text.count > 0 && text[0] == 0x2D
        if isNegative { at = 1 }
        var digits: UInt64 = 0
        var digitCount = 0
        var exponent = 0
        var afterPoint = false
        while at < text.count {
            let byte = text[at]
            if byte == 0x2E {
                afterPoint = true
            } else if byte &- 0x30 < 10 {
                digits = digits &* 10 &+ UInt64(byte &- 0x30)
                if digits != 0 { digitCount += 1 }
                if afterPoint { exponent -= 1 }
            } else {
                break
            }
            at += 1
        }
        guard digitCount <= 18 else { return nil }
        if at < text.count {
            // The rest is an exponent: `e`, perhaps a sign, digits.
            at += 1
            guard at < text.count else { return nil }
            let isDown = text[at] == 0x2D
            if isDown || text[at] == 0x2B { at += 1 }
            guard text.count - at <= 4 else { return nil }
            var written = 0
            while at < text.count {
                written = written * 10 + Int(text[at] &- 0x30)
                at += 1
            }
            exponent += isDown ? -written : written
        }
        guard digits <= 1 << 53, exponent >= -22, exponent <= 22 else {
            return digits == 0 ? (isNegative ? -0.0 : 0.0) : nil
        }
        let whole = Double(digits)
        let value =
            exponent < 0
            ? whole / Self.powersOfTen[-exponent] : whole * Self.powersOfTen[exponent]
        return isNegative ? -value : value
    }
}
