import StratusDoubles
import StratusModel
import Testing

@testable import StratusGateway
@testable import WireScenarios

@Suite struct RequestThrottleTests {
    @Test func `so many a second, twice as many at once, and the wait is exact`() {
        let throttle = RequestThrottle(ratePerSecond: 10)
        var now = MonotonicTime(nanoseconds: 5_000_000_000)
        for _ in 0..<20 { #expect(throttle.wait(of: "a", at: now) == nil) }
        let wait = throttle.wait(of: "a", at: now)
        #expect(wait == .milliseconds(100))
        #expect(throttle.wait(of: "b", at: now) == nil)
        now = now + .milliseconds(99)
        #expect(throttle.wait(of: "a", at: now) == .milliseconds(1))
        now = now + .milliseconds(1)
        #expect(throttle.wait(of: "a", at: now) == nil)
        #expect(throttle.wait(of: "a", at: now) != nil)
        now = now + .seconds(60)
        for _ in 0..<20 { #expect(throttle.wait(of: "a", at: now) == nil) }
        #expect(throttle.wait(of: "a", at: now) != nil)
    }

    @Test func `a counter that was dropped counts no more, and its caller is looked up again`() {
        let throttle = RequestThrottle(1, in: .seconds(1), countMax: 2)
        let now = MonotonicTime(nanoseconds: 5_000_000_000)
        let kept = throttle.counter(of: "a", at: now)
        for _ in 0..<2 { #expect(throttle.wait(of: "a", at: now, by: kept) == nil) }
        #expect(throttle.wait(of: "a", at: now) != nil, "both ways count by the same number")
        // Others need the place once nothing of the share is used.
        let later = now + .seconds(10)
        for name in ["b", "c", "d"] { #expect(throttle.wait(of: name, at: later) == nil) }
        for _ in 0..<2 { #expect(throttle.wait(of: "a", at: later, by: kept) == nil) }
        #expect(throttle.wait(of: "a", at: later, by: kept) != nil)
        #expect(throttle.wait(of: "a", at: later) != nil, "both ways count by the same number")
    }

    @Test func `a caller beyond its share is told when to come back`() async throws {
        var settings = GatewaySettings()
        settings.requestRateMax = 2
        let wire = InProcess(settings: settings)
        let caller = Caller(wire: wire, container: try await wire.makeContainer())
        var answers: [WireAnswer] = []
        for _ in 0..<6 { answers.append(try await caller.post("private/zones/list", [:])) }
        #expect(answers.map(\.status) == [200, 200, 200, 200, 429, 429])
        expectFailure(answers[5], 429, "THROTTLED")
        #expect(answers[5].json["retryAfter"] == 1 && answers[5].header("Retry-After") == "1")
        // Somebody else does not notice.
        let other = try await caller.acting(as: .other("x")).post("private/zones/list", [:])
        #expect(other.status == 200)
        wire.world.advance(by: .seconds(3))
        #expect(try await caller.post("private/zones/list", [:]).status == 200)
    }

    @Test func `X-26 each limit by itself, and every answer says which there are`() async throws {
        func answers(_ settings: GatewaySettings, _ callers: [Caller.Identity] = [.user])
            async throws -> [WireAnswer]
        {
            let wire = InProcess(settings: settings)
            let container = try await wire.makeContainer()
            var answers: [WireAnswer] = []
            for turn in 0..<6 {
                let caller = Caller(wire: wire, container: container)
                    .acting(as: callers[turn % callers.count])
                answers.append(try await caller.post("private/zones/list", [:]))
            }
            return answers
        }
        let people = [Caller.Identity.user, .other("x"), .other("y")]
        for (set, reason) in [
            (
                { (settings: inout GatewaySettings) in settings.containerRequestRateMax = 2 },
                "too many requests of this container, retry later"
            ),
            (
                { (settings: inout GatewaySettings) in settings.tokenRequestRateMax = 2 },
                "too many requests with this API token, retry later"
            ),
            (
                { (settings: inout GatewaySettings) in settings.addressRequestRateMax = 2 },
                "too many requests from this address, retry later"
            ),
        ] {
            var settings = GatewaySettings()
            set(&settings)
            // Whoever asks: the three share what is counted.
            let found = try await answers(settings, people)
            #expect(found.map(\.status) == [200, 200, 200, 200, 429, 429], "\(reason)")
            #expect(found[5].json["reason"].text == reason)
            #expect(found[5].json["retryAfter"] == 1)
            #expect(found.allSatisfy { $0.header("RateLimit-Policy")?.contains("q=4;w=2") == true })
        }
        var settings = GatewaySettings()
        settings.requestRateMax = 2
        #expect(try await answers(settings, people).allSatisfy { $0.status == 200 })
        // Off by default, and then nothing is said.
        let free = try await answers(GatewaySettings())
        #expect(free.allSatisfy { $0.status == 200 && $0.header("RateLimit-Policy") == nil })
    }
}
