import StratusHTTP
import StratusIdentity
import StratusModel
import StratusRuntime
import Synchronization
import Testing

@testable import StratusGateway

/// The memory that all requests' bodies together may take.
@Suite struct BodyBudgetTests {
    private static func request(_ body: any RequestBody) -> HTTPRequest {
        HTTPRequest(
            head: RequestHead(
                method: "POST", path: "/database/1/iCloud.x/development/private/records/lookup",
                query: "ckAPIToken=\(String(repeating: "a", count: 64))&ckWebAuthToken=me"),
            body: body, peer: "test", identity: RequestIdentity(high: 1, low: 2))
    }

    /// A look-up with `padding` bytes of what nobody reads.
    private static func parts(padding: Int) -> (Bytes, Bytes) {
        (
            Bytes((#"{"pad":""# + String(repeating: "x", count: padding)).utf8),
            Bytes(#"","records":[{"recordName":"n"}]}"#.utf8)
        )
    }

    @Test func `a large body counts for what becomes of it (security audit 6)`() {
        let emptied = Count()
        let budget = BodyBudget(.mebibytes(256)) { emptied.value.add(1, ordering: .relaxed) }
        func hold(_ sizes: [Int]) -> Int {
            var shares: [Bool] = []
            for size in sizes {
                var share = BodyBudget.Share(of: budget)
                let hasRoom = share.grow(by: size)
                shares.append(hasRoom)
                #expect(budget.size == budget.charge(of: size))
            }
            return shares.filter(\.self).count
        }
        #expect(budget.charge(of: 1 << 20) == 1 << 20)
        #expect(budget.charge(of: 16 << 20) == 46 << 20)
        #expect(hold([1 << 20, 16 << 20]) == 2)
        #expect(budget.size == 0)
        // Little was held at once.
        #expect(emptied.value.load(ordering: .relaxed) == 0)
        do {
            var one = BodyBudget.Share(of: budget)
            var two = BodyBudget.Share(of: budget)
            for _ in 0..<16 {
                let hasRoom = one.grow(by: 1 << 20) && two.grow(by: 1 << 20)
                #expect(hasRoom)
            }
            #expect(budget.size == 92 << 20)
        }
        #expect(budget.size == 0)
        #expect(emptied.value.load(ordering: .relaxed) == 1)
        // One body finds room in the smallest budget there may be.
        #expect(BodyBudget(.mebibytes(16)).charge(of: 12 << 20) == 12 << 20)
    }

    @Test func `S-30 a body for which there is no room is told to come again, small ones pass`()
        async throws
    {
        var limits = Limits()
        limits.bufferedBodySizeMax = ByteCount(400_000)
        let budget = BodyBudget(limits.bufferedBodySizeMax)
        let handler = Gateway(
            InProcess.kernel(
                InProcess().router, InProcess().world, limits: limits, bodies: budget))
        let slow = SlowBody(Self.parts(padding: 200_000))
        let first = Task { await handler.respond(to: Self.request(slow)) }
        for _ in 0..<10_000 where !slow.isWaiting { try await Task.sleep(for: .milliseconds(1)) }
        #expect(budget.size > 200_000)

        func answer(padding: Int) async -> HTTPResponse {
            let (start, end) = Self.parts(padding: padding)
            return await handler.respond(to: Self.request(CollectedBody(start + end)))
        }
        // Three quarters for the large ones: 300,000.
        let refused = await answer(padding: 150_000)
        #expect(refused.status == 503)
        #expect(refused.headers["Retry-After"] == "1")
        guard case .bytes(let body) = refused.body else {
            Issue.record("no body")
            return
        }
        #expect(
            String(decoding: body, as: UTF8.self).contains(#""serverErrorCode":"TRY_AGAIN_LATER""#))
        #expect(await answer(padding: 90_000).status == 200)
        #expect(await answer(padding: 10).status == 200)

        slow.goOn()
        #expect(await first.value.status == 200)
        #expect(await answer(padding: 150_000).status == 200)
        #expect(budget.size == 0)
    }
}

private final class Count: Sendable {
    let value = Atomic(0)
}

/// Two pieces, the second when it is told to.
private final class SlowBody: RequestBody {
    private struct State {
        var pieces: [Bytes]
        var mayGoOn = false
        var isWaiting = false
    }
    private let state: Mutex<State>

    init(_ parts: (Bytes, Bytes)) { self.state = Mutex(State(pieces: [parts.0, parts.1])) }

    var isWaiting: Bool { self.state.withLock { $0.isWaiting } }
    func goOn() { self.state.withLock { $0.mayGoOn = true } }

    func next() async throws(RequestBodyError) -> Bytes? {
        for _ in 0..<30_000 {
            let piece = self.state.withLock { state -> Bytes?? in
                if state.pieces.count == 2 || state.mayGoOn {
                    return .some(state.pieces.isEmpty ? nil : state.pieces.removeFirst())
                }
                state.isWaiting = true
                return nil
            }
            if let piece { return piece }
            try? await Task.sleep(for: .milliseconds(1))
        }
        throw .cutShort
    }
}
