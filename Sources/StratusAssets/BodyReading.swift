import StratusModel
import StratusRuntime
import StratusSealing

/// Carries out what ``BodyReader`` decides for one download: fetches copies, opens them, and gives
/// their bytes out as fast as they are taken.
actor BodyReading: ResponseBody {
    private let plan: BodyReadPlan
    private let carrier: any CopyCarrier
    private let own: NodeID
    private let thread: WorkerThread
    private let now: @Sendable () -> MonotonicTime
    private var reader: BodyReader
    private var ready: [Bytes] = []
    private var isFinished = false
    private var failure: BodyReader.Failure?
    /// Some source did not say whether it has a copy.
    private var wasSilent = false
    private var waiter: CheckedContinuation<Void, Never>?

    private static let copyPatience = Duration.seconds(10)

    init(
        _ plan: BodyReadPlan, by carrier: any CopyCarrier, as own: NodeID,
        on thread: WorkerThread, now: @escaping @Sendable () -> MonotonicTime
    ) {
        self.plan = plan
        self.carrier = carrier
        self.own = own
        self.thread = thread
        self.now = now
        let others = plan.members.all.subtracting([own]).sorted()
        let sources: [BodyReader.Source] =
            (plan.members.all.contains(own) ? [.here] : []) + others.map { .node($0) }
        self.reader = BodyReader(
            plan.manifest, plan.range, sources: sources, deadline: plan.deadline)
    }

    /// Returns once the first bytes are there.
    ///
    /// - Returns: why they are not, if so.
    func begin() async -> BodyBeginning.Failure? {
        await self.advance()
        guard let failure = self.failure else { return nil }
        if case .absent = failure, !self.wasSilent { return .absent }
        return .unreachable
    }

    func next() async throws -> Bytes? {
        await self.advance()
        if !self.ready.isEmpty { return self.ready.removeFirst() }
        if let failure = self.failure { throw failure }
        return nil
    }

    private func advance() async {
        if self.ready.isEmpty { self.perform(self.reader.tick(self.now())) }
        self.perform(self.reader.advance(sendsMore: self.ready.count < 2))
        while self.ready.isEmpty, !self.isFinished, self.failure == nil {
            await withCheckedContinuation { self.waiter = $0 }
        }
    }

    private func perform(_ actions: [BodyReader.Action]) {
        for action in actions {
            switch action {
            case .fetch(let name, let source): Task { await self.fetch(name, from: source) }
            case .open(let ordinal, let bytes): Task { await self.open(ordinal, bytes) }
            case .send(let bytes): if !bytes.isEmpty { self.ready.append(bytes) }
            case .repair(let name, let bytes): Task { await self.repair(name, bytes) }
            case .finished: self.isFinished = true
            case .failed(let failure): self.failure = failure
            }
        }
        self.waiter?.resume()
        self.waiter = nil
    }

    private func fetch(_ name: CopyName, from source: BodyReader.Source) async {
        let node = if case .node(let node) = source { node } else { self.own }
        let fetched = await self.carrier.fetch(
            name, of: self.plan.members.group, from: node,
            deadline: min(self.plan.deadline, self.now() + Self.copyPatience))
        if case .silent = fetched { self.wasSilent = true }
        self.perform(self.reader.arrived(fetched.bytes, name, from: source))
    }

    private func open(_ ordinal: UInt32, _ bytes: Bytes) async {
        let place = ChunkPlace(
            ordinal: ordinal, size: self.plan.manifest.plainSize(of: ordinal),
            isLast: self.plan.manifest.isLast(ordinal))
        let sealer = self.plan.sealer
        let plain = await self.thread.run { SealingLine.open(bytes, at: place, with: sealer) }
        self.perform(self.reader.opened(plain, ordinal))
    }

    /// Puts a sound copy where this node's own was not. The keeper checks it against the row.
    private func repair(_ name: CopyName, _ bytes: Bytes) async {
        _ = await self.carrier.put(
            StoredCopy(name: name, orphanAfterMilliseconds: .max, bytes: bytes),
            of: self.plan.members.group, on: self.own,
            deadline: self.now() + Self.copyPatience)
    }
}
