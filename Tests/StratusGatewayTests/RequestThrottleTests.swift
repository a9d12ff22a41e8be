import StratusModel
import StratusSimulation
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
}
