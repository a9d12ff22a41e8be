import StratusDoubles
import StratusHTTP
import StratusModel
package import StratusRuntime
import Synchronization

/// Clients that read, write, and conditionally write (by change tag) a few records, and remember
/// exactly the answers. An unanswered write may have happened at any time since.
package final class RegisterRun: Sendable {
    private let target: StratusTarget
    private let endpoints: [HTTPEndpoint]
    private let settings: LoadRun.Settings
    private let registerCount: Int
    /// Part of the records' names: every run begins with registers that nobody has written.
    private let run: UInt64
    private let entries = Mutex<[RegisterHistory.Entry]>([])
    private let seconds = Mutex<[LoadReport.Second]>([])

    package init(
        _ target: StratusTarget, at endpoints: [HTTPEndpoint], registerCount: Int, run: UInt64,
        _ settings: LoadRun.Settings
    ) {
        self.target = target
        self.endpoints = endpoints
        self.registerCount = registerCount
        self.run = run
        self.settings = settings
    }

    package var progress: Int { self.entries.withLock { $0.count } }

    package func go(on loops: [EventLoop]) async -> (RegisterHistory, LoadReport) {
        var report = LoadReport(
            target: self.target.name, workload: "registers",
            clientCount: self.settings.clientCount, rate: nil)
        report.startedMilliseconds = RealClock.wallMilliseconds
        let start = RealClock.now
        let end = start + self.settings.duration
        await withTaskGroup { group in
            for number in 0..<self.settings.clientCount {
                let loop = loops[number % loops.count]
                group.addTask(executorPreference: loop) {
                    await self.drive(number, on: loop, from: start, until: end)
                }
            }
        }
        report.elapsed = Double((RealClock.now - start).clampedNanoseconds) / 1e9
        report.seconds = self.seconds.withLock(\.self)
        for second in report.seconds { report.latencies.merge(second.latencies) }
        return (RegisterHistory(self.entries.withLock(\.self)), report)
    }

    /// The last state of a register that a client saw: the base of its next change by tag.
    private struct Seen {
        var value: Int?
        var tag: String
    }

    private func drive(
        _ number: Int, on loop: EventLoop, from start: MonotonicTime, until end: MonotonicTime
    ) async {
        var generator = SeededGenerator(seed: self.settings.seed ^ UInt64(number + 1) &* 0x9E3779B9)
        let connection = LoadConnection(self.endpoints, first: number, loop: loop)
        var seen: [Int: Seen] = [:]
        var serial = 0
        while RealClock.now < end {
            let register = Int(generator.next() % UInt64(self.registerCount))
            serial += 1
            let value = (number + 1) << 32 | serial
            let draw = generator.next() % 10
            let called = (RealClock.now - start).clampedNanoseconds
            let outcome: Outcome
            var ground: Seen?
            if draw < 4 {
                outcome = await self.ask(self.target.registerRead(self.name(register)), connection)
            } else if draw < 8, let known = seen[register] {
                ground = known
                outcome = await self.ask(
                    self.target.registerWrite(self.name(register), value, over: known.tag),
                    connection)
            } else {
                outcome = await self.ask(
                    self.target.registerWrite(self.name(register), value, over: nil), connection)
            }
            let returned = (RealClock.now - start).clampedNanoseconds
            let isRead = draw < 4
            let operation: RegisterHistory.Entry
            func entry(
                _ operation: RegisterOperation, returnedAt: Int64?
            ) -> RegisterHistory.Entry {
                RegisterHistory.Entry(
                    register: register, client: number,
                    event: .init(operation, calledAt: called, returnedAt: returnedAt))
            }
            let change: RegisterOperation =
                ground.map { .compareAndSet(expected: $0.value, value: value) } ?? .write(value)
            switch outcome {
            case .found(let held, let tag):
                seen[register] = Seen(value: held, tag: tag)
                operation = entry(isRead ? .read(held) : change, returnedAt: returned)
            case .absent:
                seen[register] = nil
                operation = entry(.read(nil), returnedAt: returned)
            case .conflict:
                seen[register] = nil
                operation = entry(
                    .failedCompareAndSet(expected: ground?.value), returnedAt: returned)
            case .unknown:
                connection.turn()
                operation = entry(isRead ? .read(nil) : change, returnedAt: nil)
            }
            self.entries.withLock { $0.append(operation) }
            self.note(outcome, called: called, returned: returned)
            if case .unknown = outcome { try? await loop.sleep(for: .milliseconds(20)) }
        }
        await connection.close()
    }

    private func note(_ outcome: Outcome, called: Int64, returned: Int64) {
        self.seconds.withLock { seconds in
            let second = Int(returned / 1_000_000_000)
            while seconds.count <= second { seconds.append(LoadReport.Second()) }
            if case .unknown = outcome {
                seconds[second].again += 1
            } else {
                seconds[second].done += 1
                seconds[second].latencies.record(microseconds: UInt64(returned - called) / 1_000)
            }
        }
    }

    private func name(_ register: Int) -> String { "register-\(self.run)-\(register)" }

    private enum Outcome {
        case found(Int?, tag: String)
        case absent
        case conflict
        case unknown
    }

    private func ask(_ request: HTTPClientRequest, _ connection: LoadConnection) async -> Outcome {
        guard
            case .success(let (status, body)) = await connection.send(
                request, deadline: self.settings.deadline), status == 200,
            let record = (try? JSONDocument(parsing: body))?.root["records"]?.array?.first(
                where: { _ in true })
        else { return .unknown }
        switch record["serverErrorCode"]?.string {
        case nil:
            guard let tag = record["recordChangeTag"]?.string else { return .unknown }
            return .found(
                record["fields"]?["number"]?["value"]?.int64.map { Int($0) }, tag: tag)
        case "NOT_FOUND": return .absent
        case "CONFLICT": return .conflict
        default: return .unknown
        }
    }
}
