import StratusHTTP
import StratusModel

/// The `date` header line (RFC 9110 §5.6.7), written once a second for all answers of a loop.
struct HTTPDateLine {
    private var second: Int64 = .min
    private var line: Bytes = []

    mutating func line(at milliseconds: Int64) -> Bytes {
        // Towards the past also before 1970.
        let second = milliseconds >= 0 ? milliseconds / 1_000 : (milliseconds - 999) / 1_000
        if second != self.second {
            self.second = second
            self.line = Bytes("date: \(Self.text(second))\r\n".utf8)
        }
        return self.line
    }

    static func text(_ second: Int64) -> String {
        let day = second >= 0 ? second / 86_400 : (second - 86_399) / 86_400
        let time = Int(second - day * 86_400)
        let (year, month, dayOfMonth) = Self.civil(day)
        // 1 January 1970 was a Thursday.
        let weekday = Int(((day + 4) % 7 + 7) % 7)
        return "\(Self.weekdays[weekday]), \(Self.two(dayOfMonth)) \(Self.months[month - 1]) "
            + "\(year) \(Self.two(time / 3_600)):\(Self.two(time / 60 % 60)):\(Self.two(time % 60)) GMT"
    }

    private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// The date of a day counted from 1 January 1970, in the Gregorian calendar: years are taken from
    /// March, so that the leap day is the last.
    private static func civil(_ day: Int64) -> (year: Int, month: Int, day: Int) {
        let shifted = Int(day) + 719_468
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
