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
        func append(_ number: Int, digits: Int, before end: UInt8) {
            var unit = digits == 4 ? 1_000 : digits == 3 ? 100 : 10
            while unit > 0 {
                bytes.append(0x30 + UInt8(number / unit % 10))
                unit /= 10
            }
            bytes.append(end)
        }
        append(year, digits: 4, before: UInt8(ascii: "-"))
        append(month, digits: 2, before: UInt8(ascii: "-"))
        append(day, digits: 2, before: UInt8(ascii: "T"))
        append(rest / 3_600_000, digits: 2, before: UInt8(ascii: ":"))
        append(rest / 60_000 % 60, digits: 2, before: UInt8(ascii: ":"))
        append(rest / 1_000 % 60, digits: 2, before: UInt8(ascii: "."))
        append(rest % 1_000, digits: 3, before: UInt8(ascii: "Z"))
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
