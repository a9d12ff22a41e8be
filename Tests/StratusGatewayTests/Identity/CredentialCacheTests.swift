import StratusCluster
import StratusDoubles
import StratusIdentity
import StratusModel
import Synchronization
import Testing

/// How long a credential is believed, and who asks for it again.
@Suite final class CredentialCacheTests {
    private let world: SimulatedWorld
    private let cache: CredentialCache<String, Int>
    private let readCount = Mutex(0)

    init() {
        let world = SimulatedWorld(seed: 1)
        self.world = world
        self.cache = CredentialCache(world: world, countMax: 2)
    }

    private func ask(_ key: String = "a", finding value: Int?) async throws(RouteError) -> Int {
        try await self.cache.value(key) { () async throws(RouteError) in
            self.readCount.withLock { $0 += 1 }
            guard let value else { throw .outcomeUnknown }
            return value
        }
    }

    private var reads: Int { self.readCount.withLock { $0 } }

    @Test func `one request asks again before the second ends, and nobody believes longer`()
        async throws
    {
        #expect(try await self.ask(finding: 1) == 1)
        self.world.advance(by: .milliseconds(749))
        #expect(try await self.ask(finding: 2) == 1 && self.reads == 1)
        self.world.advance(by: .milliseconds(1))
        let renewed = try await self.cache.value("a") { () async throws(RouteError) in
            // While it asks, the others go on with what is known.
            for _ in 0..<32 { #expect(try await self.ask(finding: 2) == 1) }
            #expect(self.reads == 1)
            self.world.advance(by: .milliseconds(250))
            // The second is over, and it has not been answered.
            #expect(try await self.ask(finding: 3) == 3)
            return 2
        }
        #expect(renewed == 2)
        // The answer to who asked later stays.
        #expect(try await self.ask(finding: 4) == 3 && self.reads == 2)
    }

    /// Requests that begin now and go on until they wait.
    private func begin(_ count: Int, finding value: Int) -> [Task<Int, any Error>] {
        let cache = self.cache
        return (0..<count).map { _ in
            Task.immediate { try await cache.value("a") { () throws(RouteError) in value } }
        }
    }

    @Test func `requests that know nothing wait for the first one's answer`() async throws {
        var others: [Task<Int, any Error>] = []
        let first = try await self.cache.value("a") { () async throws(RouteError) in
            others = self.begin(32, finding: 2)
            return 1
        }
        #expect(first == 1)
        for other in others { #expect(try await other.value == 1) }
        // The same where the second is over and its renewal has not been answered.
        self.world.advance(by: .milliseconds(800))
        let renewed = try await self.cache.value("a") { () async throws(RouteError) in
            self.world.advance(by: .milliseconds(200))
            let hedge = try await self.cache.value("a") { () async throws(RouteError) in
                others = self.begin(32, finding: 5)
                return 4
            }
            #expect(hedge == 4)
            return 3
        }
        #expect(renewed == 3)
        for other in others { #expect(try await other.value == 4) }
    }

    @Test func `what cannot be believed is asked for by each who waited`() async throws {
        var others: [Task<Int, any Error>] = []
        await #expect(throws: RouteError.self) {
            try await self.cache.value("a") { () async throws(RouteError) in
                others = self.begin(4, finding: 2)
                throw .outcomeUnknown
            }
        }
        for other in others { #expect(try await other.value == 2) }
        self.cache.forget("a")
        _ = try await self.cache.value("a") { () async throws(RouteError) in
            others = self.begin(4, finding: 4)
            self.cache.forget("a")
            return 3
        }
        for other in others { #expect(try await other.value == 4) }
        // A read of long ago is good for nobody who begins now.
        self.cache.forget("a")
        _ = try await self.cache.value("a") { () async throws(RouteError) in
            self.world.advance(by: .milliseconds(1_000))
            others = self.begin(4, finding: 6)
            return 5
        }
        for other in others { #expect(try await other.value == 6) }
    }

    @Test func `a renewal that fails leaves the next one to ask`() async throws {
        #expect(try await self.ask(finding: 1) == 1)
        self.world.advance(by: .milliseconds(800))
        // Its partition cannot be asked: the last answer holds for ten seconds.
        #expect(try await self.ask(finding: nil) == 1)
        #expect(try await self.ask(finding: 2) == 2 && self.reads == 3)
        self.world.advance(by: .milliseconds(10_001))
        await #expect(throws: RouteError.self) { try await self.ask(finding: nil) }
    }

    @Test func `what is forgotten while it is read is not believed`() async throws {
        let read = try await self.cache.value("a") { () async throws(RouteError) in
            self.cache.forget("a")
            return 1
        }
        #expect(read == 1)
        #expect(try await self.ask(finding: 2) == 2)
        // Nor while it is renewed, when its partition does not answer.
        self.world.advance(by: .milliseconds(800))
        await #expect(throws: RouteError.self) {
            try await self.cache.value("a") { () async throws(RouteError) in
                self.cache.forgetAll()
                throw .outcomeUnknown
            }
        }
        #expect(try await self.ask(finding: 3) == 3)
        #expect(try await self.ask(finding: 4) == 3)
    }

    @Test func `what is forgotten is asked for at once, and the cache has a bound`() async throws {
        #expect(try await self.ask(finding: 1) == 1)
        self.cache.forget("a")
        #expect(try await self.ask(finding: 2) == 2)
        // During a renewal, too.
        self.world.advance(by: .milliseconds(800))
        _ = try await self.cache.value("a") { () async throws(RouteError) in
            self.cache.forget("a")
            #expect(try await self.ask(finding: 3) == 3)
            return 3
        }
        #expect(try await self.ask("b", finding: 4) == 4)
        #expect(try await self.ask("c", finding: 5) == 5)
        // Two are its bound: it began anew.
        #expect(try await self.ask(finding: 6) == 6)
        self.cache.forgetAll()
        #expect(try await self.ask("c", finding: 7) == 7)
    }
}
