import Glibc
package import StratusModel

/// The wall clock as text: `2026-11-20T17:04:05.123Z`, always UTC, always 24 characters.
package enum WallTime {
    /// Milliseconds since 1970. Only for log lines and the like; code that decides takes its time
    /// from a `World`.
    package static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
    }

    package static func text(_ milliseconds: Int64) -> String {
        var bytes = Bytes()
        Self.append(milliseconds, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Appends the 24 characters of the time.
    package static func append(_ milliseconds: Int64, to bytes: inout Bytes) {
        // Years 0001 to 9999: beyond them the text would not be 24 characters long.
        let held = min(max(milliseconds, -62_135_596_800_000), 253_402_300_799_999)
        let days = Int(held >= 0 ? held / 86_400_000 : (held - 86_399_999) / 86_400_000)
        let rest = Int(held) - days * 86_400_000
        let (year, month, day) = Self.civil(daysSince1970: days)
        var text = InlineArray<24, UInt8>(repeating: 0)
        func put(_ number: Int, at place: Int, digits: Int, before end: UInt8) {
            var rest = number
            for digit in 0..<digits {
                let quotient = rest / 10
                text[place + digits - 1 - digit] =
                    0x30 + UInt8(truncatingIfNeeded: rest - quotient * 10)
                rest = quotient
            }
            text[place + digits] = end
        }
        put(year, at: 0, digits: 4, before: UInt8(ascii: "-"))
        put(month, at: 5, digits: 2, before: UInt8(ascii: "-"))
        put(day, at: 8, digits: 2, before: UInt8(ascii: "T"))
        put(rest / 3_600_000, at: 11, digits: 2, before: UInt8(ascii: ":"))
        put(rest / 60_000 % 60, at: 14, digits: 2, before: UInt8(ascii: ":"))
        put(rest / 1_000 % 60, at: 17, digits: 2, before: UInt8(ascii: "."))
        put(rest % 1_000, at: 20, digits: 3, before: UInt8(ascii: "Z"))
        let span = text.span
        unsafe span.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    }

    /// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
    private static func civil(daysSince1970: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = daysSince1970 + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
