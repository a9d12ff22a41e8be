package import StratusModel

/// Carries out what ``BodyWriter`` decides for one body: sends copies, hears the answers, and makes
/// its caller wait while enough is under way.
package actor BodyWriting {
    private var writer: BodyWriter
    private let group: GroupID
    private let carrier: any CopyCarrier
    private let deadline: MonotonicTime
    private let now: @Sendable () -> MonotonicTime
    private let sleep: @Sendable (Duration) async -> Void
    /// Where tasks begin; nil: anywhere.
    private let executor: (any TaskExecutor)?
    private var outcome: Result<[CopyHolding], BodyWriter.Failure>?
    /// There is one caller, and it waits for one thing.
    private var waiter: CheckedContinuation<Void, Never>?
    private var wakeAt: MonotonicTime?

    /// The longest that one copy may take before it is sent again.
    private static let copyPatience = Duration.seconds(10)

    package init(
        _ writer: BodyWriter, of group: GroupID, by carrier: any CopyCarrier,
        deadline: MonotonicTime, now: @escaping @Sendable () -> MonotonicTime,
        sleep: @escaping @Sendable (Duration) async -> Void,
        on executor: (any TaskExecutor)? = nil
    ) {
        self.writer = writer
        self.group = group
        self.carrier = carrier
        self.deadline = deadline
        self.now = now
        self.sleep = sleep
        self.executor = executor
    }

    /// Sends the next chunk once there is room for it.
    package func add(_ bytes: Bytes) async throws(BodyWriter.Failure) {
        while self.outcome == nil, !self.writer.wantsChunk { await self.wait() }
        if case .failure(let failure)? = self.outcome { throw failure }
        self.perform(self.writer.add(bytes))
        if case .failure(let failure)? = self.outcome { throw failure }
    }

    /// Waits until a majority has all of the body.
    package func finish() async throws(BodyWriter.Failure) -> [CopyHolding] {
        if self.outcome == nil { self.perform(self.writer.end()) }
        while self.outcome == nil { await self.wait() }
        return try self.outcome!.get()
    }

    /// Nobody wants the body any more.
    package func cancel() { self.perform(self.writer.cancel()) }

    private func wait() async {
        await withCheckedContinuation { self.waiter = $0 }
    }

    private func rouse() {
        self.waiter?.resume()
        self.waiter = nil
    }

    private func perform(_ actions: [BodyWriter.Action]) {
        for action in actions {
            switch action {
            case .put(let copy, let node):
                Task(executorPreference: self.executor) { await self.put(copy, on: node) }
            case .drop(let node): self.carrier.drop(self.writer.body, of: self.group, on: node)
            case .stored(let storers): self.outcome = .success(storers)
            case .failed(let failure): self.outcome = .failure(failure)
            }
        }
        self.arm()
        self.rouse()
    }

    private func put(_ copy: StoredCopy, on node: NodeID) async {
        let answer = await self.carrier.put(
            copy, of: self.group, on: node,
            deadline: min(self.deadline, self.now() + Self.copyPatience))
        self.perform(
            self.writer.answered(answer, to: copy.name.ordinal, by: node, at: self.now()))
    }

    /// One sleeper at a time for tries that wait. Every other step follows an answer, and each
    /// answer has a deadline.
    private func arm() {
        guard self.wakeAt == nil, !self.writer.isOver, let next = self.writer.nextWake,
            next < self.deadline
        else { return }
        self.wakeAt = next
        Task(executorPreference: self.executor) {
            await self.sleep(next - self.now())
            await self.woke()
        }
    }

    private func woke() {
        self.wakeAt = nil
        self.perform(self.writer.tick(self.now()))
    }
}
