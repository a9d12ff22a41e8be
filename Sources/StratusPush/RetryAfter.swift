import StratusModel

/// How long a provider asks to be left alone (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Whatever it asks, no longer than this.
    package static let max = Duration.seconds(3_600)

    /// Seconds, or a date in the form that is sent today. Nil for anything else.
    /// - Parameter now: seconds since 1970.
    package static func duration(_ text: String?, at now: Int64) -> Duration? {
        guard let text, text.utf8.count <= 64 else { return nil }
        if !text.isEmpty, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) {
            guard let seconds = Int64(text) else { return Self.max }
            return min(.seconds(seconds), Self.max)
        }
        guard let date = Self.date(text) else { return nil }
        return min(.seconds(Swift.max(0, date - now)), Self.max)
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, as seconds since 1970.
    private static func date(_ text: String) -> Int64? {
        let words = text.split(separator: " ")
        guard words.count == 6, words[0].hasSuffix(","), words[5] == "GMT",
            let day = Int64(words[1]), (1...31).contains(day),
            let month = Self.months.firstIndex(of: String(words[2])),
            let year = Int64(words[3]), (1970...9999).contains(year)
        else { return nil }
        let time = words[4].split(separator: ":").compactMap { Int64($0) }
        guard time.count == 3, (0...23).contains(time[0]), (0...59).contains(time[1]),
            (0...60).contains(time[2])
        else { return nil }
        // Days since 1970 by the civil calendar, the year beginning in March.
        let number = Int64(month) + 1
        let y = number <= 2 ? year - 1 : year
        let era = y / 400
        let yearOfEra = y - era * 400
        let dayOfYear = (153 * (number + (number > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        let days = era * 146_097 + dayOfEra - 719_468
        return days * 86_400 + time[0] * 3_600 + time[1] * 60 + time[2]
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
