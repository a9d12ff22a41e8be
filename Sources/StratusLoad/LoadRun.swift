import StratusHTTP
import StratusModel
package import StratusRuntime
import Synchronization

/// Drives clients against a target and measures what they see.
///
/// A client retries: a request that is refused for now, or cut off, is sent again, to the next
/// address. The time until its answer is one latency. With a rate, that time begins when the
/// request was due, not when a client was free to send it, so a stalled server cannot hide it.
package final class LoadRun: Sendable {
    package struct Settings: Sendable {
        package var clientCount = 16
        /// Operations a second; nil: as fast as the clients get their answers.
        package var rate: Double?
        package var duration: Duration = .seconds(10)
        package var recordCount = 10_000
        package var seed: UInt64 = 1
        /// For one operation with all its tries.
        package var patience: Duration = .seconds(30)
        /// For one try.
        package var deadline: Duration = .seconds(5)

        package init() {}
    }

    private struct Tally {
        var seconds: [LoadReport.Second] = []
        var latencies = Latencies()
        var kinds: [Step.Kind: Latencies] = [:]
        var failures: [String: Int] = [:]
    }

    /// Reasons told apart; the others are one.
    private static let reasonCountMax = 100

    private let target: any LoadTarget
    private let endpoints: [HTTPEndpoint]
    private let settings: Settings
    private let tally = Mutex(Tally())
    private let nextDue = Atomic(0)

    package init(_ target: any LoadTarget, at endpoints: [HTTPEndpoint], _ settings: Settings) {
        precondition(!endpoints.isEmpty, "nowhere to send to")
        self.target = target
        self.endpoints = endpoints
        self.settings = settings
    }

    /// Operations done so far, and how long the slowest hundredth of this second's took.
    package var progress: (done: Int, lastSecond: LoadReport.Second?) {
        self.tally.withLock { tally in
            (tally.latencies.count, tally.seconds.dropLast().last ?? tally.seconds.last)
        }
    }

    package struct Failure: Error, CustomStringConvertible {
        package var description: String
        package var isSilence = false
        package init(_ description: String) { self.description = description }
    }

    /// Makes the place and the records the load will find.
    ///
    /// - Parameter progress: records so far.
    package func prepare(on loop: EventLoop, progress: (Int) -> Void) async throws {
        let connection = LoadConnection(self.endpoints, first: 0, loop: loop)
        for request in self.target.preparations() {
            try await self.require(request, over: connection)
        }
        var owners = 1
        if let stratus = self.target as? StratusTarget {
            owners = max(1, stratus.place.webAuthTokens.count)
        }
        var done = 0
        // Everybody with a database of their own has all of the records in it.
        for owner in 0..<owners {
            var client = LoadClient(number: owner, seed: self.settings.seed)
            while done < self.settings.recordCount * (owner + 1) {
                let start = done - self.settings.recordCount * owner
                let keys = start..<min(start + 1_000, self.settings.recordCount)
                for request in self.target.insertion(of: keys, by: &client) {
                    try await self.require(request, over: connection)
                }
                done += keys.count
                progress(done)
            }
        }
        await connection.close()
    }

    private func require(
        _ request: HTTPClientRequest, over connection: LoadConnection
    ) async throws {
        for attempt in 0..<50 {
            let answer = await connection.send(request, deadline: self.settings.deadline)
            if case .success(let (status, body)) = answer {
                if self.target.isPrepared(by: status, body) { return }
                if status < 500, status != 429, !body.contains("TRY_AGAIN_LATER") {
                    let text = String(decoding: body.prefix(300), as: UTF8.self)
                    throw Failure(
                        "\(request.target.prefix(while: { $0 != "?" })): \(status) \(text)")
                }
            }
            connection.turn()
            try? await Task.sleep(for: .milliseconds(min(1_000, 20 << min(attempt, 6))))
        }
        var failure = Failure("nobody answers")
        failure.isSilence = true
        throw failure
    }

    /// Runs the load and says what it measured.
    package func run(_ workload: Workload, on loops: [EventLoop]) async -> LoadReport {
        var report = LoadReport(
            target: self.target.name, workload: workload.name,
            clientCount: self.settings.clientCount, rate: self.settings.rate)
        report.startedMilliseconds = RealClock.wallMilliseconds
        let zipfian = workload.keys == .uniform ? nil : Zipfian(count: self.settings.recordCount)
        let start = RealClock.now
        let end = start + self.settings.duration
        await withTaskGroup { group in
            for number in 0..<self.settings.clientCount {
                let loop = loops[number % loops.count]
                let source = StepSource(
                    workload, recordCount: self.settings.recordCount,
                    seed: self.settings.seed &+ UInt64(number) &* 7_919, offset: number,
                    stride: self.settings.clientCount, zipfian: zipfian)
                group.addTask(executorPreference: loop) {
                    await self.drive(number, source, on: loop, from: start, until: end)
                }
            }
        }
        let elapsed = RealClock.now - start
        report.elapsed = Double(elapsed.clampedNanoseconds) / 1e9
        self.tally.withLock { tally in
            report.seconds = tally.seconds
            report.latencies = tally.latencies
            report.kinds = Step.Kind.allCases.compactMap { kind in
                tally.kinds[kind].map { (kind, $0) }
            }
            report.failures = tally.failures.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
                .map { (reason: $0.key, count: $0.value) }
        }
        return report
    }

    private func drive(
        _ number: Int, _ source: StepSource, on loop: EventLoop, from start: MonotonicTime,
        until end: MonotonicTime
    ) async {
        var source = source
        var client = LoadClient(number: number, seed: self.settings.seed)
        let connection = LoadConnection(self.endpoints, first: number, loop: loop)
        while true {
            var due = RealClock.now
            if let rate = self.settings.rate {
                let place = self.nextDue.wrappingAdd(1, ordering: .relaxed).oldValue
                due = start + .nanoseconds(Int64(Double(place) / rate * 1e9))
                if due < end, due > RealClock.now { try? await loop.sleep(until: due) }
            }
            guard due < end else { break }
            let step = source.next()
            var failure = await self.perform(step, of: &client, over: connection, since: start)
            if failure == nil, case .readModifyWrite(let key) = step {
                failure = await self.perform(
                    .save(key), of: &client, over: connection, since: start)
            }
            let now = RealClock.now
            let microseconds = UInt64(max(0, (now - due).clampedNanoseconds)) / 1_000
            self.note(start, now) { tally, second in
                if let failure {
                    tally.seconds[second].failed += 1
                    let isKnown = tally.failures[failure] != nil
                    let isFew = tally.failures.count < Self.reasonCountMax
                    tally.failures[isKnown || isFew ? failure : "others", default: 0] += 1
                } else {
                    tally.seconds[second].done += 1
                    tally.seconds[second].latencies.record(microseconds: microseconds)
                    tally.latencies.record(microseconds: microseconds)
                    tally.kinds[step.kind, default: Latencies()].record(microseconds: microseconds)
                }
            }
        }
        await connection.close()
    }

    /// One operation with all its tries.
    ///
    /// - Returns: why it failed in the end; nil: it did not.
    private func perform(
        _ step: Step, of client: inout LoadClient, over connection: LoadConnection,
        since start: MonotonicTime
    ) async -> String? {
        // The same request each time: one that was carried out unheard is carried out again, with
        // the same result.
        let request = self.target.request(for: step, of: &client)
        let last = RealClock.now + self.settings.patience
        var pause = Duration.milliseconds(10)
        while true {
            var wait = pause
            switch await connection.send(request, deadline: self.settings.deadline) {
            case .success(let (status, body)):
                switch self.target.judge(step, status: status, body: body, of: &client) {
                case .done: return nil
                case .failed(let reason): return reason
                case .again(let after): wait = min(after ?? pause, .seconds(2))
                }
            case .failure: connection.turn()
            }
            let now = RealClock.now
            if now + wait > last { return "no answer in time" }
            self.note(start, now) { tally, second in tally.seconds[second].again += 1 }
            try? await connection.loop.sleep(for: wait)
            pause = min(pause * 2, .seconds(1))
        }
    }

    private func note(
        _ start: MonotonicTime, _ now: MonotonicTime, _ change: (inout Tally, Int) -> Void
    ) {
        let second = Int(max(0, (now - start).clampedNanoseconds) / 1_000_000_000)
        self.tally.withLock { tally in
            while tally.seconds.count <= second { tally.seconds.append(LoadReport.Second()) }
            change(&tally, second)
        }
    }
}

/// One client's way to the servers: one at a time, the next when that one fails.
///
/// `@unchecked`: used by one task at a time.
final class LoadConnection: @unchecked Sendable {
    let loop: EventLoop
    private let clients: [HTTPClient]
    private let home: Int
    private var current: Int
    private var answersAway = 0

    /// The number of answers from elsewhere after which a client goes back to its first address.
    /// Otherwise all clients end up with the one server that never failed, and its failure would
    /// hit all of them.
    private static let answersAwayMax = 100

    init(_ endpoints: [HTTPEndpoint], first: Int, loop: EventLoop) {
        self.loop = loop
        self.clients = endpoints.map { HTTPClient($0, loop: loop, idleCountMax: 1) }
        self.home = first % endpoints.count
        self.current = self.home
    }

    func turn() {
        self.current = (self.current + 1) % self.clients.count
        self.answersAway = 0
    }

    func send(
        _ request: HTTPClientRequest, deadline: Duration
    ) async -> Result<(status: Int, body: Bytes), HTTPClientError> {
        do throws(HTTPClientError) {
            let (head, body) = try await self.clients[self.current].send(
                request, deadline: deadline)
            self.noteAnswer()
            return .success((head.status, body))
        } catch { return .failure(error) }
    }

    private func noteAnswer() {
        guard self.current != self.home else { return }
        self.answersAway += 1
        if self.answersAway >= Self.answersAwayMax { self.current = self.home }
    }

    func close() async { for client in self.clients { await client.close() } }
}
