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

    // MARK: Reading

    private static let longDays = [
        "Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday",
    ]

    /// Reads the three forms that recipients must know: the one above, that of RFC 850
    /// (`Sunday, 06-Nov-94 08:49:37 GMT`) and that of C (`Sun Nov  6 08:49:37 1994`). The name of
    /// the day may be any, as long as it is one.
    ///
    /// - Parameter milliseconds: the time now: a year of two digits is at most 50 years after it.
    /// - Returns: seconds since 1970, UTC; nil for what is no date.
    package static func seconds(_ text: String, at milliseconds: Int64) -> Int64? {
        guard text.utf8.count <= 40 else { return nil }
        // C writes a day of one digit with two spaces before it.
        let parts = text.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
        let isC = parts.count == 5 && Self.days.contains(parts[0])
        let day: Int64?
        let month: Int?
        var year: Int64?
        let clock: String
        if isC {
            (month, day) = (Self.months.firstIndex(of: parts[1]), Self.number(parts[2], 1...2))
            (clock, year) = (parts[3], Self.number(parts[4], 4...4))
        } else if parts.count == 6, Self.days.contains(where: { $0 + "," == parts[0] }),
            parts[5] == "GMT"
        {
            (day, month) = (Self.number(parts[1], 2...2), Self.months.firstIndex(of: parts[2]))
            (year, clock) = (Self.number(parts[3], 4...4), parts[4])
        } else if parts.count == 4, Self.longDays.contains(where: { $0 + "," == parts[0] }),
            parts[3] == "GMT"
        {
            let date = parts[1].split(separator: "-", omittingEmptySubsequences: false)
            guard date.count == 3 else { return nil }
            day = Self.number(String(date[0]), 2...2)
            month = Self.months.firstIndex(of: String(date[1]))
            clock = parts[2]
            let (now, _, _) = Self.civil(Self.floorDivide(milliseconds, 86_400_000))
            year = Self.number(String(date[2]), 2...2).map { two in
                let year = now - now % 100 + two
                return year > now + 50 ? year - 100 : year
            }
        } else {
            return nil
        }
        guard let day, let month, let year, year > 0, let time = Self.time(clock),
            (1...31).contains(day)
        else { return nil }
        let days = Self.day(year, Int64(month) + 1, day)
        // The 31st of a month of 30 days is none.
        guard Self.civil(days) == (year, Int64(month) + 1, day) else { return nil }
        return days * 86_400 + time
    }

    private static func number(_ text: String, _ count: ClosedRange<Int>) -> Int64? {
        guard count.contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) })
        else { return nil }
        return Int64(text)
    }

    /// `08:49:37`. A leap second counts as the one before it.
    private static func time(_ text: String) -> Int64? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map {
            Self.number(String($0), 2...2)
        }
        guard parts.count == 3, let hour = parts[0], let minute = parts[1], let second = parts[2],
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return hour * 3_600 + minute * 60 + min(second, 59)
    }

    /// The day since 1970 of a date.
    private static func day(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
        let shiftedYear = month <= 2 ? year - 1 : year
        let era = Self.floorDivide(shiftedYear, 400)
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    // MARK: Writing

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
