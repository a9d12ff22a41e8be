import Glibc
import StratusCommandLine
import StratusControl
import StratusDoubles
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// Runs the commands of `stratus-load`.
struct LoadCommands {
    private let invocation: Invocation
    private let loops = EventLoop.group(count: 2, name: "load")

    init(_ invocation: Invocation) { self.invocation = invocation }

    // MARK: Commands

    func run() async throws -> ExitCode {
        let target: any LoadTarget =
            switch self.invocation.value("target") {
            case "etcd": EtcdTarget(valueSize: self.valueSize)
            case "pocketbase": PocketBaseTarget(valueSize: self.valueSize)
            default: StratusTarget(self.place)
            }
        var settings = self.settings
        settings.rate = self.invocation.integer("rate").map(Double.init)
        let load = LoadRun(target, at: try await self.endpoints(), settings)
        let workload = try self.workload(for: target)
        try await self.prepare(load, settings)
        var report = try await self.measure(load, workload, settings)
        report.marks = try self.marks(since: report.startedMilliseconds)
        try self.write(report)
        return report.doneCount > 0 ? .success : .unavailable
    }

    func registers() async throws -> ExitCode {
        let target = StratusTarget(self.place)
        let endpoints = try await self.endpoints()
        var settings = self.settings
        settings.recordCount = 0
        let preparation = LoadRun(target, at: endpoints, settings)
        try await preparation.prepare(on: self.loops[0]) { _ in }
        let load = RegisterRun(
            target, at: endpoints, registerCount: self.invocation.integer("registers") ?? 8,
            run: UInt64(RealClock.wallMilliseconds), settings)
        let (history, measured) = try await self.watched(settings) {
            (load.progress, nil)
        } while: {
            await load.go(on: self.loops)
        }
        var report = measured
        report.marks = try self.marks(since: report.startedMilliseconds)
        try self.write(report)
        if let path = self.invocation["history"] { try Self.write(history.lines, to: path) }
        return Self.judge(history)
    }

    static func check(_ path: String) throws -> ExitCode {
        Self.judge(
            try RegisterHistory(lines: try SmallFile.read(path, limit: .mebibytes(1_024))))
    }

    func compare() async throws -> ExitCode {
        var targets: [(target: any LoadTarget, endpoints: [HTTPEndpoint])] = [
            (StratusTarget(self.place), try await self.endpoints())
        ]
        if let url = self.invocation["etcd"] {
            targets.append(
                (EtcdTarget(valueSize: self.valueSize), [try await self.endpoint(url)]))
        }
        if let url = self.invocation["pocketbase"] {
            targets.append(
                (PocketBaseTarget(valueSize: self.valueSize), [try await self.endpoint(url)]))
        }
        let settings = self.settings
        for (target, _) in targets { _ = try self.workload(for: target) }
        for (target, endpoints) in targets {
            try await self.prepare(LoadRun(target, at: endpoints, settings), settings)
        }
        var rounds: [[LoadReport]] = []
        for round in 0..<(self.invocation.integer("rounds") ?? 5) {
            var reports: [LoadReport] = []
            for (target, endpoints) in targets {
                var drawn = settings
                drawn.seed += UInt64(round)
                let load = LoadRun(target, at: endpoints, drawn)
                reports.append(try await self.measure(load, self.workload(for: target), drawn))
            }
            rounds.append(reports)
        }
        Terminal.write(Comparison(rounds).table)
        return .success
    }

    // MARK: Parts

    private var valueSize: Int { self.invocation.integer("value-size") ?? 300 }

    private var place: StratusTarget.Place {
        let hasValues = ["run", "compare"].contains(self.invocation.path[0])
        return StratusTarget.Place(
            container: self.invocation.value("container"),
            environment: self.invocation.value("environment"),
            database: self.invocation.value("database"),
            apiToken: self.invocation.value("api-token"),
            webAuthTokens: self.invocation.all("web-auth-token"),
            valueSize: hasValues ? self.valueSize : 0)
    }

    private var settings: LoadRun.Settings {
        var settings = LoadRun.Settings()
        settings.clientCount = self.invocation.integer("clients") ?? settings.clientCount
        settings.duration = .seconds(self.invocation.integer("seconds") ?? 10)
        settings.seed = UInt64(self.invocation.integer("seed") ?? 1)
        if self.invocation.path != ["registers"] {
            settings.recordCount = self.invocation.integer("records") ?? settings.recordCount
        }
        return settings
    }

    private func workload(for target: any LoadTarget) throws -> Workload {
        let name = self.invocation.value("workload")
        guard let workload = Workload.named(name) else {
            preconditionFailure("'\(name)' is no workload")
        }
        for (part, _) in workload.parts where !target.supports(part.kind) {
            throw LoadRun.Failure(
                "\(target.name) cannot '\(part.kind.rawValue)' here, which '\(name)' needs")
        }
        return workload
    }

    private func endpoints() async throws -> [HTTPEndpoint] {
        let urls = self.invocation.all("url")
        var endpoints: [HTTPEndpoint] = []
        for url in urls.isEmpty ? ["http://127.0.0.1:8080"] : urls {
            endpoints.append(try await self.endpoint(url))
        }
        return endpoints
    }

    private func endpoint(_ url: String) async throws -> HTTPEndpoint {
        try await AdminClient.endpoint(
            AdminClient.Target(node: url, authorityFile: self.invocation["authority"]))
    }

    private func prepare(_ load: LoadRun, _ settings: LoadRun.Settings) async throws {
        if self.invocation.flag("no-prepare") { return }
        var bar = ProgressBar(
            "Preparing", isTerminal: Terminal.isTerminal(Terminal.errors), width: Terminal.width)
        let start = RealClock.now
        try await load.prepare(on: self.loops[0]) { done in
            if let line = bar.update(
                done: done, total: nil, unit: "records", elapsed: RealClock.now - start)
            {
                Terminal.write(line, to: Terminal.errors)
            }
        }
        if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
    }

    private func measure(
        _ load: LoadRun, _ workload: Workload, _ settings: LoadRun.Settings
    ) async throws -> LoadReport {
        try await self.watched(settings) {
            load.progress
        } while: {
            await load.run(workload, on: self.loops)
        }
    }

    /// Shows how a load goes, five times a second, where somebody looks on.
    private func watched<Value: Sendable>(
        _ settings: LoadRun.Settings,
        _ progress: @escaping @Sendable () -> (done: Int, lastSecond: LoadReport.Second?),
        while work: @escaping @Sendable () async -> Value
    ) async throws -> Value {
        guard Terminal.isTerminal(Terminal.errors) else { return await work() }
        let loop = self.loops[0]
        let start = RealClock.now
        let watching = Task {
            while !Task.isCancelled {
                let (done, second) = progress()
                let elapsed = (RealClock.now - start).clampedNanoseconds / 1_000_000_000
                var line =
                    "\r\(elapsed) s of \(settings.duration.components.seconds)  \(done) operations"
                if let second {
                    line += "  \(second.done)/s"
                    line +=
                        "  p99 \(LoadPage.rounded(Double(second.latencies.microseconds(at: 0.99)) / 1_000)) ms"
                    if second.again + second.failed > 0 {
                        line += "  \(second.again) again, \(second.failed) failed"
                    }
                }
                Terminal.write(line + "\u{1B}[K", to: Terminal.errors)
                do { try await loop.sleep(for: .milliseconds(200)) } catch { break }
            }
        }
        let value = await work()
        watching.cancel()
        await watching.value
        Terminal.write("\r\u{1B}[K", to: Terminal.errors)
        return value
    }

    private func marks(since start: Int64) throws -> [LoadReport.Mark] {
        guard let path = self.invocation["marks"] else { return [] }
        let text = String(decoding: try SmallFile.read(path), as: UTF8.self)
        return text.split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2, let at = Int64(parts[0]) else { return nil }
            return LoadReport.Mark(seconds: Double(at - start) / 1_000, text: String(parts[1]))
        }
    }

    private func write(_ report: LoadReport) throws {
        if let path = self.invocation["json"] { try Self.write(report.json, to: path) }
        if let path = self.invocation["html"] {
            try Self.write(Bytes(LoadPage(report).html.utf8), to: path)
        }
        Terminal.write(Comparison.table(of: report))
    }

    private static func write(_ bytes: Bytes, to path: String) throws {
        guard let file = fopen(path, "w") else {
            throw LoadRun.Failure("'\(path)' cannot be written")
        }
        let isWhole = fwrite(bytes, 1, bytes.count, file) == bytes.count
        guard fclose(file) == 0, isWhole else {
            throw LoadRun.Failure("'\(path)' cannot be written")
        }
    }

    private static func judge(_ history: RegisterHistory) -> ExitCode {
        let findings = history.findings()
        let unknown = history.entries.count { $0.event.returnedAt == nil }
        var text = "\(history.entries.count) operations, \(unknown) of unknown outcome: "
        if findings.isEmpty {
            Terminal.write(text + "linearizable\n")
            return .success
        }
        text += "\(findings.count) registers are not explained by any one order\n"
        for finding in findings { text += "  register \(finding.register): \(finding.verdict)\n" }
        Terminal.write(text)
        return .refused
    }
}

extension Workload.Part {
    var kind: Step.Kind {
        switch self {
        case .save, .insert: .save
        case .batch: .batch
        case .lookup: .lookup
        case .query: .query
        case .sync: .sync
        case .readModifyWrite: .readModifyWrite
        }
    }
}
