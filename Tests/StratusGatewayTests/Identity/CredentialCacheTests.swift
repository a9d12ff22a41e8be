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
