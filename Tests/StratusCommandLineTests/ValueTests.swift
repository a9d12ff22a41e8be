import StratusCommandLine
import Testing

@Suite struct ValueTests {
    static let addresses: [(text: String, address: ListenAddress?)] = [
        ("127.0.0.1:8080", .tcp(host: "127.0.0.1", port: 8080)),
        ("localhost:0", .tcp(host: "localhost", port: 0)),
        ("[::1]:65535", .tcp(host: "::1", port: 65535)),
        ("unix:/run/stratus.sock", .unix(path: "/run/stratus.sock")),
        ("unix:", nil), ("unix:" + String(repeating: "x", count: 108), nil),
        ("", nil), (":80", nil), ("host", nil), ("host:", nil), ("host:x", nil),
        ("host:65536", nil), ("host:-1", nil), ("host:+1", nil), ("::1:80", nil), ("[::1]", nil),
        ("[]:1", nil), ("[host]:1", nil), ("http://a:1", nil), ("a b:1", nil),
    ]

    @Test(arguments: addresses)
    func `an address is read and written back`(row: (text: String, address: ListenAddress?)) {
        #expect(ListenAddress(row.text) == row.address)
        if let address = row.address { #expect(address.description == row.text) }
    }

    static let durations: [(text: String, duration: Duration?, written: String)] = [
        ("250ms", .milliseconds(250), "250ms"), ("5s", .seconds(5), "5s"),
        ("90s", .seconds(90), "90s"), ("120s", .seconds(120), "2m"), ("24h", .seconds(86400), "1d"),
        ("0s", .zero, "0ms"), ("999999999d", .seconds(86_400 * 999_999_999), "999999999d"),
        ("", nil, ""), ("s", nil, ""), ("5", nil, ""), ("-5s", nil, ""), ("1.5s", nil, ""),
        ("5 s", nil, ""), ("9999999999s", nil, ""), ("5w", nil, ""),
    ]

    @Test(arguments: durations)
    func `a duration is read and written back`(
        row: (text: String, duration: Duration?, written: String)
    ) {
        #expect(DurationText.parse(row.text) == row.duration)
        if let duration = row.duration {
            #expect(DurationText.write(duration) == row.written)
            #expect(DurationText.parse(row.written) == duration)
        }
    }

    static let words = ["listen", "listenAdmin", "limits", "log", "data", "certificateFile"]
    static let nearest: [(typed: String, meant: String?)] = [
        ("listne", "listen"), ("Listen", "listen"), ("limit", "limits"), ("logs", "log"),
        ("dtaa", "data"), ("certificate", "certificateFile"),
        ("certificatefile", "certificateFile"),
        ("zebra", nil), ("", nil), (String(repeating: "a", count: 5_000), nil),
    ]

    @Test(arguments: nearest)
    func `the nearest word is suggested, and none when none is near`(
        row: (typed: String, meant: String?)
    ) {
        #expect(Suggestion.nearest(to: row.typed, among: Self.words) == row.meant)
    }

    @Test func `exit codes are distinct and documented`() {
        #expect(Set(ExitCode.allCases.map(\.rawValue)).count == ExitCode.allCases.count)
        #expect(ExitCode.allCases.allSatisfy { !$0.meaning.isEmpty })
    }
}
