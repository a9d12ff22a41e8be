import Foundation
import StratusHTTP
import StratusModel
import Testing

@Suite struct NegotiationTests {
    static let encodings: [(String?, Bool)] = [
        (nil, false), ("", false), ("gzip", true), ("GZIP", true), ("x-gzip", true),
        ("deflate", false), ("br, gzip", true), ("gzip, deflate, br", true), ("identity", false),
        ("*", true), ("*;q=0", false), ("gzip;q=0", false), ("gzip;q=0.0", false),
        ("gzip;q=0.000", false), ("gzip;q=0.001", true), ("gzip; q=0.5", true), ("gzip;q=1", true),
        ("gzip;q=1.000", true), ("gzip;q=1.001", false), ("gzip;q=2", false), ("gzip;q=x", false),
        ("gzip;q", false), ("gzip;q=", false), ("gzip;q=0.5;x=y", false), ("*, gzip;q=0", false),
        ("gzip;q=0, *", false), ("identity, gzip;q=0.5", false), ("identity;q=0.5, gzip", true),
        ("identity;q=1, gzip;q=1", true), ("gzip;Q=0.3", true), ("gzipped", false),
        ("identity;q=0.9, *;q=0.5", false), ("gzip;q=0.0001", false),
    ]

    @Test(arguments: encodings)
    func `gzip is used where it is welcome`(field: String?, expected: Bool) {
        let headers: HeaderFields = field.map { ["Accept-Encoding": $0] } ?? [:]
        #expect(AcceptEncoding.prefersGzip(headers) == expected, "\(field ?? "absent")")
    }

    static let dates: [(Int64, String)] = [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"), (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
        (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"), (.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (-62_135_596_800, "Mon, 01 Jan 0001 00:00:00 GMT"), (.min, "Mon, 01 Jan 0001 00:00:00 GMT"),
    ]

    @Test(arguments: dates)
    func `dates are written as HTTP has them`(seconds: Int64, text: String) {
        #expect(HTTPDate.text(seconds) == text)
    }

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Sun Nov 16 08:49:37 1994", 784_975_777),
        ("Tue, 29 Feb 2000 23:59:60 GMT", 951_868_799),
        // In 2026 the year 76 is to come, and 77 is past.
        ("Wednesday, 01-Jan-76 00:00:00 GMT", 3_345_062_400),
        ("Saturday, 01-Jan-77 00:00:00 GMT", 220_924_800), ("", nil), ("now", nil),
        ("Mon, 29 Feb 2100 00:00:00 GMT", nil), ("Sun, 31 Nov 1994 08:49:37 GMT", nil),
        ("Sun, 06 Nov 1994 24:49:37 GMT", nil), ("Sun, 6 Nov 1994 08:49:37 GMT", nil),
        ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("Sun, 06 Nov 1994 08:49:37", nil),
        ("Sun, 06 Nov 1994 +8:49:37 GMT", nil), ("Sun, 06 Nov -994 08:49:37 GMT", nil),
        ("Sun, 00 Nov 1994 08:49:37 GMT", nil), ("Day, 06 Nov 1994 08:49:37 GMT", nil),
        ("Sunday, 06-Nov-1994 08:49:37 GMT", nil),
    ])
    func `dates are read in the three forms of HTTP`(text: String, seconds: Int64?) {
        #expect(HTTPDate.seconds(text, at: 1_795_600_000_000) == seconds, "\(text)")
    }

    @Test(arguments: [3, 4] as [UInt64])
    func `what is written is read again`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<500 {
            let seconds = Int64.random(in: -62_135_596_800...253_402_300_799, using: &random)
            #expect(HTTPDate.seconds(HTTPDate.text(seconds), at: 0) == seconds, "\(seconds)")
        }
    }

    @Test(arguments: [1, 2] as [UInt64])
    func `dates agree with Foundation's calendar`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        for _ in 0..<200 {
            let seconds = Int64.random(in: -9_000_000_000...100_000_000_000, using: &random)
            let date = Date(timeIntervalSince1970: TimeInterval(seconds))
            #expect(HTTPDate.text(seconds) == formatter.string(from: date), "\(seconds)")
        }
    }
}
