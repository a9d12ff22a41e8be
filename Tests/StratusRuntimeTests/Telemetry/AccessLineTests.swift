import StratusModel
import Testing

@testable import StratusRuntime

@Suite struct AccessLineTests {
    private static let texts = [
        "GET", "127.0.0.1", "a\"b\\c", "a\nb\u{7F}\u{202E}", "", "größer",
        String(repeating: "x", count: 3_000),
    ]

    @Test func `a line that is put together is the one that its fields make`() {
        let seed = UInt64.random(in: 0..<1_000_000)
        var generator = SeededGenerator(seed: seed)
        func draw(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }
        func text() -> String { Self.texts[draw(Self.texts.count)] }
        for _ in 0..<500 {
            let (container, count) = (text(), draw(1 << 40) - 5)
            var route = RequestRoute(
                RouteLabel(text()), level: draw(2) == 0 ? .debug : .info,
                fields: ["container": .text(container), "count": .count(count), "flag": true])
            if draw(2) == 0 { route = route.written }
            let line = AccessLine(
                identity: RequestIdentity(high: generator.next(), low: generator.next()),
                listener: text(), method: text(), route: route, status: 100 + draw(500),
                duration: .nanoseconds(Int64(draw(1 << 45)) - 1_000), received: draw(1 << 30),
                sent: draw(10), isWhole: draw(3) > 0, peer: text())
            let time = Int64(draw(1 << 42)) - 1_000_000_000
            var (put, made) = (Bytes(), Bytes())
            line.append(time, line.level, to: &put)
            LogFormat.json.write(
                LogRecord(
                    wallMilliseconds: time, level: line.level, text: "request",
                    fields: line.fields), into: &made)
            #expect(put == made, "seed \(seed): \(String(decoding: put, as: UTF8.self))")
        }
    }

    @Test func `lines of both kinds keep their order, and lost ones are counted`() {
        let paper = LogTests.Paper()
        let log = Log(level: .info, format: .json, capacity: 8_192) { paper.take($0) }
        func line(_ number: Int, _ level: LogLevel) -> AccessLine {
            AccessLine(
                identity: RequestIdentity(high: 0, low: UInt64(number)), listener: "client",
                method: "GET", route: RequestRoute(RouteLabel("n\(number)"), level: level),
                status: 200, duration: .zero, received: 0, sent: 0, peer: "p")
        }
        for number in 0..<300 {
            switch number % 5 {
            case 0: log.info("plain", ["number": .count(number)])
            case 1: line(number, .debug).write(to: log)
            case 2: line(number, .warning).write(to: log)
            default: line(number, .info).write(to: log)
            }
        }
        log.flush()
        let lines = paper.text.split(separator: "\n")
        let numbers = (0..<300).filter { $0 % 5 != 1 }
        #expect(lines.count == numbers.count)
        for (line, number) in zip(lines, numbers) {
            #expect(line.contains("\"number\":\(number)}") || line.contains("\"n\(number)\""))
        }
        #expect(
            String(decoding: log.memory.newestGrave, as: UTF8.self).split(separator: "\n").count
                == 60)
        log.close()
        line(1, .info).write(to: log)
        #expect(log.droppedCount == 1)
    }
}
