/// Dates as HTTP writes them (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// - Parameter seconds: since 1970, UTC. Held within the years 1 to 9999.
    package static func text(_ seconds: Int64) -> String {
        let seconds = min(max(seconds, -62_135_596_800), 253_402_300_799)
        let day = Self.floorDivide(seconds, 86_400)
        let time = seconds - day * 86_400
        let (year, month, dayOfMonth) = Self.civil(day)
        let weekday = Self.days[Int(day - Self.floorDivide(day, 7) * 7)]
        return "\(weekday), \(Self.two(dayOfMonth)) \(Self.months[Int(month - 1)]) "
            + "\(Self.two(year / 100))\(Self.two(year % 100)) "
            + "\(Self.two(time / 3600)):\(Self.two(time / 60 % 60)):\(Self.two(time % 60)) GMT"
    }

    private static func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }

    private static func floorDivide(_ value: Int64, _ by: Int64) -> Int64 {
        value >= 0 ? value / by : (value + 1) / by - 1
    }

    /// Year, month and day of a day since 1970. Years are counted from March, so that the leap day
    /// is their last; an era is 400 years.
    private static func civil(_ day: Int64) -> (Int64, Int64, Int64) {
        let shifted = day + 719_468
        let era = Self.floorDivide(shifted, 146_097)
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfMonth)
    }
}
