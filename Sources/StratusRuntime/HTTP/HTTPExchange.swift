import StratusHTTP
import StratusModel
import Synchronization

/// The source of an exchange's body: a connection of HTTP/1.1, or a stream of HTTP/2.
protocol BodySource: AnyObject {
    /// The handler waits for bytes that have not come.
    func bodyIsAwaited()
    /// Nothing of what has come waits any more.
    func bodyWasTaken()
}

/// One request on its way through a connection: what of its body waits for the handler, and who
/// waits for more.
///
/// Lives on the connection's loop. `@unchecked`: the handler holds it as its ``RequestBody`` and
/// may ask from any executor; every entry comes back to the loop first.
final class HTTPExchange: RequestBody, @unchecked Sendable {
    enum BodyState {
        case arriving
        case complete
        case failed(RequestBodyError)
    }

    let head: RequestHead
    let identity: RequestIdentity
    let plan: RequestPlan
    var patience: RequestPatience { self.plan.patience }
    private let loop: EventLoop
    /// Nil once the connection has let go of the request.
    private var source: (any BodySource)?

    /// In the order received; `taken` of them are gone already.
    private var chunks: [Bytes] = []
    private var taken = 0
    private(set) var bufferedCount = 0
    /// The handler may ask from any executor.
    private let given = Atomic(0)
    private(set) var state = BodyState.arriving
    private var waiter: CheckedContinuation<Result<Bytes?, RequestBodyError>, Never>?
    var task: Task<Void, Never>?
    var hasBegun = false
    /// The refusal that the answer must carry, when the body was refused before there was one.
    var refusal: HTTPRefusal?

    /// Chunks smaller than this are put together.
    private static let chunkSizeMin = 4 << 10

    init(
        head: RequestHead, identity: RequestIdentity, plan: RequestPlan,
        source: any BodySource, loop: EventLoop
    ) {
        self.head = head
        self.identity = identity
        self.plan = plan
        self.source = source
        self.loop = loop
    }

    var isWaiting: Bool { self.waiter != nil }

    // MARK: The connection's side

    func append(_ chunk: Bytes) {
        if let waiter = self.waiter {
            self.waiter = nil
            self.given.add(chunk.count, ordering: .relaxed)
            waiter.resume(returning: .success(chunk))
        } else {
            self.bufferedCount += chunk.count
            let last = self.chunks.count - 1
            if last >= 0, self.chunks[last].count + chunk.count <= Self.chunkSizeMin {
                self.chunks[last] += chunk
            } else {
                self.chunks.append(chunk)
            }
        }
    }

    func end(_ state: BodyState) {
        guard case .arriving = self.state else { return }
        self.state = state
        guard let waiter = self.waiter else { return }
        self.waiter = nil
        switch state {
        case .arriving: preconditionFailure("a body ends in an end")
        case .complete: waiter.resume(returning: .success(nil))
        case .failed(let error): waiter.resume(returning: .failure(error))
        }
    }

    /// The body as the handler sees it: as it lies here when all of it came at once.
    func body() -> any RequestBody {
        guard case .complete = self.state, self.chunks.count <= 1 else { return self }
        return CollectedBody(self.chunks.first ?? [])
    }

    /// All of the body, where it came at once. It stays here.
    var wholeBody: Bytes? {
        guard case .complete = self.state, self.chunks.count <= 1 else { return nil }
        return self.chunks.first ?? []
    }

    /// A handler that holds its request answers now. Its answer is still heard.
    func hurry() {
        if self.patience.isHeld { self.task?.cancel() }
    }

    /// Nothing of the body is wanted any more.
    func letGo() {
        self.source = nil
        self.end(.failed(.cutShort))
        self.chunks = []
        self.taken = 0
        self.bufferedCount = 0
    }

    // MARK: The handler's side

    var takenSize: Int { self.given.load(ordering: .relaxed) }

    func next() async throws(RequestBodyError) -> Bytes? {
        let result: Result<Bytes?, RequestBodyError>
        if self.loop.isCurrent, let ready = self.takeReady() {
            result = ready
        } else {
            result = await withCheckedContinuation { continuation in
                self.loop.perform { self.wait(continuation) }
            }
        }
        return try result.get()
    }

    private func takeReady() -> Result<Bytes?, RequestBodyError>? {
        if self.taken < self.chunks.count {
            let chunk = self.chunks[self.taken]
            self.taken += 1
            self.bufferedCount -= chunk.count
            self.given.add(chunk.count, ordering: .relaxed)
            if self.taken == self.chunks.count {
                self.chunks.removeAll(keepingCapacity: true)
                self.taken = 0
                self.source?.bodyWasTaken()
            }
            return .success(chunk)
        }
        switch self.state {
        case .arriving: return nil
        case .complete: return .success(nil)
        case .failed(let error): return .failure(error)
        }
    }

    private func wait(_ continuation: CheckedContinuation<Result<Bytes?, RequestBodyError>, Never>)
    {
        if let ready = self.takeReady() { return continuation.resume(returning: ready) }
        precondition(self.waiter == nil, "a body is read by one reader")
        self.waiter = continuation
        self.source?.bodyIsAwaited()
    }
}
