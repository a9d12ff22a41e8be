import StratusModel
import StratusRuntime
import Synchronization
import Testing

@Suite struct LogTests {
    /// Collects what a log wrote.
    final class Paper: Sendable {
        let bytes = Mutex(Bytes())
        /// Bytes that it takes yet.
        let room = Mutex(Int.max)
        var text: String { String(decoding: self.bytes.withLock { $0 }, as: UTF8.self) }

        func take(_ bytes: Bytes) -> Int {
            let count = self.room.withLock { room in
                defer { room -= min(room, bytes.count) }
                return min(room, bytes.count)
            }
            self.bytes.withLock { $0 += bytes.prefix(count) }
            return count
        }
    }

    static let stamp: Int64 = 1_795_194_245_123

    static func written(_ format: LogFormat, _ fields: LogFields) -> String {
        var bytes = Bytes()
        format.write(
            LogRecord(wallMilliseconds: Self.stamp, level: .info, text: "said", fields: fields),
            into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    typealias Line = (name: String, fields: LogFields, terminal: String, json: String)
    static let lines: [Line] = [
        ("no fields", [:], "", ""),
        ("plain text", ["a": "b"], " a=b", #","a":"b""#),
        ("text with a space", ["a": "b c"], #" a="b c""#, #","a":"b c""#),
        ("empty text", ["a": ""], #" a="""#, #","a":"""#),
        ("numbers", ["a": 3, "b": .double(0.5)], " a=3 b=0.5", #","a":3,"b":0.5"#),
        ("not a number", ["a": .double(.nan)], #" a="nan""#, #","a":"nan""#),
        ("truth", ["a": true], " a=true", #","a":true"#),
        ("a duration", ["a": .duration(.microseconds(1_500))], " a=1.5ms", #","a":1.5"#),
        ("X-15 a line break", ["a": "x\r\ny"], #" a="x\r\ny""#, #","a":"x\r\ny""#),
        ("X-15 an escape code", ["a": "\u{1B}[2J"], #" a="\u001b[2J""#, #","a":"\u001b[2J""#),
        ("X-15 text turned around", ["a": "\u{202E}x"], #" a="\u202ex""#, #","a":"\u202ex""#),
        (
            "X-15 a quote", ["a": #"x" level="error"#], #" a="x\" level=\"error""#,
            #","a":"x\" level=\"error""#
        ),
        (
            "X-15 a field of ten thousand letters",
            ["a": .text(String(repeating: "é", count: 5_000))],
            " a=\"" + String(repeating: "é", count: 1_024) + "… (10000 bytes)\"",
            ",\"a\":\"" + String(repeating: "é", count: 1_024) + "… (10000 bytes)\""
        ),
    ]

    @Test func `durations and integers are written as Swift describes them`() {
        var random = SeededGenerator(seed: 5)
        let edges: [Int64] = [0, 1, 499, 500, 999, 1_000, 10_000, 999_999, 1_000_000, 123_456_789]
        for nanoseconds in edges
            + (0..<500).map({ _ in
                Int64.random(in: 0..<1 << 50, using: &random) >> Int64(random.next() % 50)
            })
        {
            let milliseconds = (Double(nanoseconds) / 1_000).rounded() / 1_000
            let line = Self.written(.json, ["a": .duration(.nanoseconds(nanoseconds))])
            #expect(line.hasSuffix(",\"a\":\(milliseconds)}\n"), "\(nanoseconds): \(line)")
        }
        for number in [0, -1, 9, 10, .min, .max] + edges {
            let line = Self.written(.json, ["a": .integer(number)])
            #expect(line.hasSuffix(",\"a\":\(number)}\n"), "\(line)")
        }
    }

    @Test(arguments: lines)
    func `a line looks right on a terminal and as JSON`(line: Line) {
        #expect(
            Self.written(.terminal(colour: false), line.fields)
                == "17:04:05.123Z info    said\(line.terminal)\n", "\(line.name)")
        #expect(
            Self.written(.json, line.fields)
                == #"{"time":"2026-11-20T17:04:05.123Z","level":"info","text":"said""#
                + line.json + "}\n", "\(line.name)")
    }

    @Test func `X-14 a secret prints as nothing wherever Swift can print it`() {
        let secret = Secret("hunter2")
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), dumped, "\([secret])"] {
            #expect(!text.contains("hunter2"))
        }
        #expect(secret.reveal() == "hunter2")
    }

    @Test func `lines come out in the order logged, and flush waits for them`() {
        let paper = Paper()
        let log = Log(level: .info, format: .terminal(colour: false)) { paper.take($0) }
        for number in 0..<1_000 { log.info("line", ["number": .count(number)]) }
        log.flush()
        let numbers = paper.text.split(separator: "\n").map { $0.split(separator: "=").last ?? "" }
        #expect(numbers == (0..<1_000).map { Substring("\($0)") })
        log.close()
    }

    @Test func `below the level nothing is even made`() {
        let paper = Paper()
        let log = Log(level: .warning, format: .json) { paper.take($0) }
        var made = 0
        func fields() -> LogFields {
            made += 1
            return [:]
        }
        log.info("unheard", fields())
        log.level = .debug
        log.debug("heard", fields())
        log.close()
        #expect(made == 1)
        #expect(paper.text.contains("\"heard\""))
        #expect(!paper.text.contains("unheard"))
    }

    @Test func `a sink that hangs costs lines, never the caller's time, and the log says how many`()
    {
        let paper = Paper()
        let gate = Mutex(())
        // The sink takes the gate for each batch: while the test holds it, nothing is written.
        let log = gate.withLock { _ in
            let log = Log(level: .info, format: .json, capacity: 10) { bytes in
                gate.withLock { _ in paper.take(bytes) }
            }
            for number in 0..<100 { log.info("line", ["number": .count(number)]) }
            return log
        }
        log.flush()
        let dropped = log.droppedCount
        #expect(dropped >= 80 && dropped <= 90)
        log.close()
        let lines = paper.text.split(separator: "\n")
        #expect(lines.count { $0.contains("\"line\"") } == 100 - Int(dropped))
        #expect(paper.text.contains("log lines were lost"))
    }

    @Test
    func `O-10: a sink without room costs lines, which are counted and told of when there is room`()
    {
        let paper = Paper()
        paper.room.withLock { $0 = 20 }
        let log = Log(level: .info, format: .terminal(colour: false)) { paper.take($0) }
        func say(_ name: StaticString) {
            log.info(name)
            log.flush()
        }
        say("cut off in the middle")
        for _ in 0..<5 { say("never seen") }
        #expect(log.droppedCount == 6)
        paper.room.withLock { $0 = .max }
        say("seen")
        say("seen again")
        log.close()
        let lines = paper.text.split(separator: "\n")
        #expect(lines.count == 4 && lines[0].utf8.count == 20, "\(paper.text)")
        #expect(lines[1].hasSuffix(" seen") && lines[3].hasSuffix(" seen again"), "\(paper.text)")
        #expect(lines[2].contains("log lines were lost") && lines[2].contains("count=6"))
        #expect(log.droppedCount == 6)
    }

    static let times: [(milliseconds: Int64, text: String)] = [
        (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"), (Self.stamp, "2026-11-20T17:04:05.123Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (.max, "9999-12-31T23:59:59.999Z"), (.min, "0001-01-01T00:00:00.000Z"),
    ]

    @Test(arguments: times)
    func `a wall time is written as RFC 3339`(row: (milliseconds: Int64, text: String)) {
        #expect(WallTime.text(row.milliseconds) == row.text)
    }
}
