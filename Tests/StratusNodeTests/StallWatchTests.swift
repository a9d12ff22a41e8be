import StratusModel
import Testing

@testable import StratusNode

@Suite struct StallWatchTests {
    private static func time(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    private static func busy(_ thread: String, since: Double) -> StallWatch.Busy {
        StallWatch.Busy(thread: thread, since: self.time(since)) { "a query of type 'L'" }
    }

    @Test func `a thread that is stuck is told once, and once when it goes on (security audit 1e)`()
    {
        var watch = StallWatch()
        #expect(watch.look([Self.busy("storage", since: 1)], at: Self.time(2.9)) == [])
        #expect(watch.text(at: Self.time(2.9)) == nil)
        let stall = StallWatch.Stall(
            thread: "storage", since: Self.time(1), what: "a query of type 'L'")
        #expect(watch.look([Self.busy("storage", since: 1)], at: Self.time(3)) == [.began(stall)])
        #expect(watch.look([Self.busy("storage", since: 1)], at: Self.time(9)) == [])
        #expect(
            watch.text(at: Self.time(9))
                == "the thread 'storage' has been busy for 8 s with a query of type 'L'")
        // Busy again, with something else.
        #expect(
            watch.look([Self.busy("storage", since: 9.5)], at: Self.time(10)) == [.ended(stall)])
        #expect(watch.text(at: Self.time(10)) == nil)
        #expect(watch.count == 1)
    }

    @Test func `two threads are two stalls`() {
        var watch = StallWatch()
        let news = watch.look(
            [Self.busy("storage", since: 0), Self.busy("loop-1", since: 1)], at: Self.time(5))
        #expect(news.count == 2)
        #expect(watch.look([], at: Self.time(6)).count == 2)
        #expect(watch.stalls.isEmpty)
    }
}
