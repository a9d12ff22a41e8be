import StratusHTTP
import StratusModel

/// The `date` header line, written once a second for all answers of a loop.
struct HTTPDateLine {
    private var second: Int64 = .min
    private var line: Bytes = []

    mutating func line(at milliseconds: Int64) -> Bytes {
        let second = milliseconds / 1_000
        if second != self.second {
            self.second = second
            self.line = Bytes("date: \(HTTPDate.text(second))\r\n".utf8)
        }
        return self.line
    }
}
