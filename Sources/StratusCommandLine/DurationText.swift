/// Durations as people write them: `250ms`, `5s`, `2m`, `1h`, `7d`.
package enum DurationText {
    private static let units: [(suffix: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Nil for anything but a whole number (at most nine digits) and a unit.
    package static func parse(_ text: String) -> Duration? {
        for unit in Self.units where text.hasSuffix(unit.suffix) {
            let digits = text.dropLast(unit.suffix.count)
            guard (1...9).contains(digits.utf8.count),
                digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
                let count = Int64(digits)
            else { continue }
            return .milliseconds(count * unit.milliseconds)
        }
        return nil
    }

    /// The shortest text that ``parse(_:)`` reads back as the same duration, in whole milliseconds.
    package static func write(_ duration: Duration) -> String {
        let parts = duration.components
        let milliseconds = parts.seconds * 1_000 + parts.attoseconds / 1_000_000_000_000_000
        for unit in Self.units.reversed()
        where milliseconds != 0 && milliseconds % unit.milliseconds == 0 {
            return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
        }
        return "\(milliseconds)ms"
    }
}
