import StratusModel
import StratusRuntime
import Synchronization
import Testing

/// The last lines of a log.
@Suite struct LogMemoryTests {
    @Test func `the newest whole lines are kept, whatever was written`() {
        var tail = LogMemory.Tail(sizeMax: 20)
        var all: [String] = []
        for number in 0..<200 {
            let line = String(repeating: "x", count: number % 7) + "\(number)\n"
            all.append(line)
            tail.append(Bytes(line.utf8))
            let kept = String(decoding: tail.newest, as: UTF8.self)
            var expected = ""
            for line in all.reversed() {
                guard line.utf8.count + expected.utf8.count <= 20 else { break }
                expected = line + expected
            }
            #expect(kept == expected, "after \(number)")
        }
    }

    @Test func `a line longer than all that is kept leaves nothing`() {
        var tail = LogMemory.Tail(sizeMax: 10)
        tail.append(Bytes((String(repeating: "y", count: 100) + "\n").utf8))
        #expect(tail.newest.isEmpty)
        tail.append(Bytes("short\n".utf8))
        #expect(String(decoding: tail.newest, as: UTF8.self) == "short\n")
    }

    @Test func `many requests do not push a warning out`() {
        let log = Log(level: .info, format: .json) { $0.count }
        log.warning("once")
        for _ in 0..<20_000 {
            log.info("request", ["fields": "that make it as long as the line of a request is"])
            if log.memory.newest.isEmpty { log.flush() }
        }
        log.flush()
        let memory = log.memory
        #expect(!String(decoding: memory.newest, as: UTF8.self).contains("once"))
        #expect(String(decoding: memory.newestGrave, as: UTF8.self).contains("once"))
        #expect(memory.newest.count <= 256 << 10)
        log.close()
    }

    @Test func `health says when a node becomes ready, and when it is not any more`() {
        let health = Health()
        let seen = Mutex<[[String]]>([])
        health.observe { reasons in seen.withLock { $0.append(reasons.map(\.component)) } }
        health.raise("formation", "not yet")
        health.clear("starting")
        health.clear("formation")
        health.clear("formation")
        health.raise("disk", "full")
        health.raise("disk", "still full")
        health.raise("peers", "none")
        health.clear("disk")
        health.clear("peers")
        #expect(seen.withLock { $0 } == [[], ["disk"], []])
    }
}
