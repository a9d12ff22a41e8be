import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl status|ready|alive|metrics|config|log-level`: one node.
struct NodeCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    func alive() async throws(AdminClient.Failure) -> ExitCode {
        _ = try await self.ask("GET", "/healthz")
        return self.show(AliveAnswer { $0.isAlive = true }, "alive\n")
    }

    func metrics() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", "/metrics")
        return Terminal.write(answer.body, to: Terminal.output) ? .success : .inputOutput
    }

    func configuration() async throws(AdminClient.Failure) -> ExitCode {
        let onlyChanged = self.invocation.flag("changed")
        return try self.tell(try await self.ask("GET", "/v1/config")) {
            (keys: Listing<ConfiguredKey>) in
            TextTable.text(keys.rows.filter { !onlyChanged || $0.origin != "default" })
        }
    }

    func logLevel() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.ask("GET", "/v1/log-level")) { (level: LogLevelAnswer) in
            level.level + "\n"
        }
    }

    func setLogLevel() async throws(AdminClient.Failure) -> ExitCode {
        let body = LogLevelAnswer(self.invocation.value("LEVEL"))
        let answer = try await self.ask("PUT", "/v1/log-level", body)
        return try self.tell(answer) { (level: LogLevelAnswer) in level.level + "\n" }
    }

    func status() async throws(AdminClient.Failure) -> ExitCode {
        try self.tell(try await self.ask("GET", "/v1/status")) { (status: StatusAnswer) in
            let shown = status.partitions.filter {
                self.invocation.flag("partitions") || $0.problem != nil
            }
            return Self.text(status) + (shown.isEmpty ? "" : "\n" + TextTable.text(shown))
        }
    }

    private static func text(_ status: StatusAnswer) -> String {
        var table = TextTable([.init(""), .init("")])
        func row(_ name: String, _ value: String) { table.append([name, value]) }
        row("ready", status.isReady ? "yes" : "no")
        for reason in status.notReady { row("", reason.text) }
        for warning in status.warnings { row("warning", warning.text) }
        row("version", status.version)
        row("started", status.startedAt)
        row("up", Self.span(seconds: status.uptimeSeconds))
        for url in status.clientURLs { row("clients", url) }
        row("admin", status.adminURL)
        row("data", status.dataDirectory + (status.isSealed ? ", sealed" : ""))
        if let free = status.freeBytes, let whole = status.diskBytes {
            row(
                "disk",
                "\(free >> 20) MiB free of \(whole >> 20), "
                    + "\(status.reserveBytes >> 20) in reserve")
        }
        row("memory", "\(status.residentBytes >> 20) MiB")
        let troubled = status.partitions.count { $0.problem != nil }
        row(
            "partitions",
            "\(status.partitions.count)" + (troubled == 0 ? "" : ", \(troubled) with a problem"))
        row("in flight", "\(status.requestsInFlight)")
        row("log lines lost", "\(status.droppedLogLines)")
        for library in status.libraries { row(library.name, library.version) }
        return table.write()
    }

    /// Asks until the node is ready or the time is up. A node that is not there yet is one to wait
    /// for.
    func ready() async throws(AdminClient.Failure) -> ExitCode {
        let patience = self.invocation.duration("wait") ?? .zero
        var bar = ProgressBar(
            "Waiting for the node", isTerminal: Terminal.isTerminal(Terminal.errors),
            width: Terminal.width)
        let clock = ContinuousClock()
        let start = clock.now
        var count = 0
        while true {
            count += 1
            var failure: AdminClient.Failure
            do throws(AdminClient.Failure) {
                let answer = try await self.client.send(
                    "GET", "/readyz", deadline: .seconds(5))
                if answer.status == 200 {
                    if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
                    return self.show(ReadyAnswer { $0.isReady = true }, "ready\n")
                }
                failure = AdminClient.Failure(.temporary, Self.oneLine(answer.text))
            } catch { failure = error }
            let elapsed = clock.now - start
            if elapsed >= patience {
                if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
                throw failure
            }
            if let line = bar.update(done: count, total: nil, unit: "tries", elapsed: elapsed) {
                Terminal.write(line, to: Terminal.errors)
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
    }

    private static func oneLine(_ text: String) -> String {
        text.split(separator: "\n").joined(separator: "; ")
    }

    /// `3 d 4 h`, `5 min 2 s`: the two largest units.
    static func span(seconds: Double) -> String {
        let whole = seconds.isFinite && seconds < 1e15 ? max(0, Int(seconds)) : 0
        let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)]
        guard let first = units.firstIndex(where: { whole >= $0.1 }) else { return "0 s" }
        var text = "\(whole / units[first].1) \(units[first].0)"
        if first + 1 < units.count {
            let next = whole % units[first].1 / units[first + 1].1
            if next > 0 { text += " \(next) \(units[first + 1].0)" }
        }
        return text
    }
}
