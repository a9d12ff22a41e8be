import Glibc
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// Runs each command of `stratusctl`: what it asks, and how it shows the answer.
struct ControlCommands: AdminConversation {
    private typealias Failure = AdminClient.Failure

    private let invocation: Invocation
    let client: AdminClient
    private let isJSON: Bool

    static func run(_ invocation: Invocation) async -> ExitCode {
        ProcessSignals.ignoreBrokenPipes()
        let loop = EventLoop(name: "control")
        defer { loop.stop() }
        do throws(AdminClient.Failure) {
            let client = try await AdminClient(Self.target(invocation), loop: loop)
            let commands = ControlCommands(
                invocation: invocation, client: client, isJSON: invocation.flag("json"))
            return try await commands.run()
        } catch {
            if invocation.flag("json") {
                Terminal.write(UpgradeCommands.json(error) + "\n")
            } else {
                Terminal.write("stratusctl: \(error)\n", to: Terminal.errors)
            }
            return error.code
        }
    }

    private static func target(_ invocation: Invocation) throws(AdminClient.Failure)
        -> AdminClient.Target
    {
        func value(_ option: String, _ variable: String) -> String? {
            invocation[option] ?? getenv(variable).map { String(cString: $0) }
        }
        let certificate = value("certificate", "STRATUSCTL_CERTIFICATE")
        let key = value("key", "STRATUSCTL_KEY")
        guard (certificate == nil) == (key == nil) else {
            throw AdminClient.Failure(
                .usage,
                "'--certificate' and '--key' go together, and so do STRATUSCTL_CERTIFICATE and "
                    + "STRATUSCTL_KEY")
        }
        return AdminClient.Target(
            node: value("node", "STRATUSCTL_NODE") ?? "http://127.0.0.1:8081",
            tokenFile: value("token-file", "STRATUSCTL_TOKEN_FILE"),
            authorityFile: value("authority", "STRATUSCTL_AUTHORITY"),
            certificateFile: certificate, keyFile: key)
    }

    private func run() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation.path.first == "schema" {
            let container = self.invocation.value("container")
            guard ContainerReference.isName(container) else {
                throw AdminClient.Failure(.usage, ContainerReference.refusal(of: container))
            }
        }
        switch self.invocation.path {
        case ["status"]: return try await self.status()
        case ["ready"]: return try await self.ready()
        case ["alive"]:
            _ = try await self.ask("GET", "/healthz")
            return self.show(self.isJSON ? "{\"alive\":true}\n" : "alive\n")
        case ["metrics"]:
            let answer = try await self.ask("GET", "/metrics")
            return Terminal.write(answer.body, to: Terminal.output) ? .success : .inputOutput
        case ["schema", "export"]:
            let environment = self.invocation.value("environment")
            return self.show(try await self.ask("GET", self.schemaTarget(environment)).text)
        case ["schema", "import"]:
            return try await self.importSchema(isDry: self.invocation.flag("dry-run"))
        case ["schema", "diff"]: return try await self.importSchema(isDry: true)
        case ["schema", "promote"]:
            let isDry = self.invocation.flag("dry-run")
            let target = self.schemaTarget("production") + "/promote" + (isDry ? "?dryRun=1" : "")
            return try self.changes(try await self.ask("POST", target), isDry: isDry)
        case ["schema", "reset"]:
            return try await SchemaResetCommand(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run(self.schemaTarget("development") + "/reset")
        case ["config", "show"]: return try await self.configuration()
        case ["log-level", "show"]:
            return try self.level(try await self.ask("GET", "/v1/log-level"))
        case ["log-level", "set"]:
            var json = JSONWriter()
            json.beginObject()
            json.member("level", self.invocation.value("LEVEL"))
            json.endObject()
            return try self.level(
                try await self.ask("PUT", "/v1/log-level", body: json.finish()))
        case ["support"]:
            return try await SupportCommand(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where UpgradeCommands.serves(path):
            return try await UpgradeCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where EncryptionKeyCommands.serves(path):
            return try await EncryptionKeyCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where AssetCommands.serves(path):
            return try await AssetCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where MembershipCommands.serves(path):
            return try await MembershipCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where PartitionOfCommand.serves(path):
            return try await PartitionOfCommand(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where ClusterControlCommands.serves(path):
            let answer = try await self.ask("GET", "/v1/cluster?lastKnown=1")
            if self.isJSON { return self.show(answer.text + "\n") }
            let cluster = try self.document(answer)
            if let remark = ClusterControlCommands.remark(cluster) {
                Terminal.write(remark, to: Terminal.errors)
            }
            let health = try? await self.client.send("GET", "/v1/cluster/health")
            guard
                let text = ClusterControlCommands.text(
                    self.invocation, cluster,
                    health.flatMap { $0.status == 200 ? try? self.document($0) : nil })
            else { throw AdminClient.Failure(.usage, "there is no node of this name") }
            return self.show(text)
        case let path where ContainerCommands.serves(path):
            return try await ContainerCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where PushCommands.serves(path):
            return try await PushCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where KeyValueCommands.serves(path):
            return try await KeyValueCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where DocumentCommands.serves(path):
            return try await DocumentCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        case let path where IdentityCommands.serves(path):
            return try await IdentityCommands(
                invocation: self.invocation, client: self.client, isJSON: self.isJSON
            ).run()
        default:
            preconditionFailure("'\(self.invocation.path)' is declared and goes nowhere")
        }
    }

    // MARK: Commands

    private func status() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", "/v1/status")
        if self.isJSON { return self.show(answer.text + "\n") }
        let status = try self.document(answer)
        var table = TextTable([.init(""), .init("")])
        func row(_ name: String, _ value: String?) {
            if let value { table.append([name, value]) }
        }
        let isReady = status["ready"]?.bool == true
        row("ready", isReady ? "yes" : "no")
        for reason in status["notReady"]?.array.map(Array.init) ?? [] {
            row("", "\(reason["component"]?.string ?? ""): \(reason["reason"]?.string ?? "")")
        }
        for warning in status["warnings"]?.array.map(Array.init) ?? [] {
            row(
                "warning",
                "\(warning["component"]?.string ?? ""): \(warning["reason"]?.string ?? "")")
        }
        row("version", status["version"]?.string)
        row("started", status["startedAt"]?.string)
        row("up", status["uptimeSeconds"]?.double.map { Self.span(seconds: $0) })
        for url in status["clientURLs"]?.array.map(Array.init) ?? [] { row("clients", url.string) }
        row("admin", status["adminURL"]?.string)
        let isSealed = status["sealed"]?.bool == true
        row("data", status["dataDirectory"]?.string.map { isSealed ? $0 + ", sealed" : $0 })
        if let free = status["freeBytes"]?.int64, let whole = status["diskBytes"]?.int64 {
            row(
                "disk",
                "\(free >> 20) MiB free of \(whole >> 20), "
                    + "\((status["reserveBytes"]?.int64 ?? 0) >> 20) in reserve")
        }
        row("memory", status["residentBytes"]?.int64.map { "\($0 >> 20) MiB" })
        row("in flight", status["requestsInFlight"]?.int64.map { "\($0)" })
        row("log lines lost", status["droppedLogLines"]?.int64.map { "\($0)" })
        for library in status["libraries"]?.array.map(Array.init) ?? [] {
            row(library["name"]?.string ?? "", library["version"]?.string)
        }
        var text = table.write()
        var partitions = TextTable([
            .init("PARTITION"), .init("APPLIED", alignsRight: true),
            .init("DURABLE", alignsRight: true), .init("PROBLEM"),
        ])
        for partition in status["partitions"]?.array.map(Array.init) ?? [] {
            partitions.append([
                partition["name"]?.string ?? "", partition["applied"]?.numberText ?? "",
                partition["durable"]?.numberText ?? "", partition["problem"]?.string ?? "",
            ])
        }
        text += "\n" + partitions.write()
        return self.show(text)
    }

    /// Asks until the node is ready or the time is up. A node that is not there yet is one to wait
    /// for.
    private func ready() async throws(AdminClient.Failure) -> ExitCode {
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
                    return self.show(self.isJSON ? "{\"ready\":true}\n" : "ready\n")
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

    private func configuration() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", "/v1/config")
        if self.isJSON { return self.show(answer.text + "\n") }
        let rows = try self.document(answer)["configuration"]?.array
        var table = TextTable([.init("KEY"), .init("VALUE"), .init("FROM")])
        for row in rows.map(Array.init) ?? [] {
            let origin = row["origin"]?.string ?? ""
            if self.invocation.flag("changed"), origin == "default" { continue }
            let value = row["value"]
            let text = value.map { String(decoding: $0.source, as: UTF8.self) } ?? ""
            table.append([
                row["key"]?.string ?? "", value?.isNull == true ? "none" : text, origin,
            ])
        }
        return self.show(table.write())
    }

    private func schemaTarget(_ environment: String) -> String {
        let container = PercentCoding.encode(self.invocation.value("container"))
        return "/v1/containers/\(container)/environments/\(environment)/schema"
    }

    private func importSchema(isDry: Bool) async throws(AdminClient.Failure) -> ExitCode {
        let path = self.invocation.value("FILE")
        let text: Bytes
        do throws(SmallFile.Failure) { text = try SmallFile.read(path) } catch {
            throw AdminClient.Failure(.missingInput, error.description)
        }
        let environment = self.invocation.value("environment")
        var query = isDry ? ["dryRun=1"] : []
        if self.invocation.path == ["schema", "import"], self.invocation.flag("existing") {
            query.append("existing=1")
        }
        let target =
            self.schemaTarget(environment)
            + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
        do throws(AdminClient.Failure) {
            return try self.changes(try await self.ask("PUT", target, body: text), isDry: isDry)
        } catch {
            // The node says line and column; only we know the file.
            guard error.name == "BAD_SCHEMA" else { throw error }
            throw AdminClient.Failure(.malformedInput, "\(path): \(error.description)")
        }
    }

    private func changes(_ answer: AdminClient.Answer, isDry: Bool) throws(AdminClient.Failure)
        -> ExitCode
    {
        if self.isJSON { return self.show(answer.text + "\n") }
        let document = try self.document(answer)
        self.tellCreation(document, of: self.invocation.value("container"))
        let changes = document["changes"]?.array.map { $0.compactMap(\.string) } ?? []
        let version = document["version"]?.numberText ?? ""
        let end =
            changes.isEmpty
            ? "nothing to change: version \(version) remains in force"
            : isDry ? "nothing was changed" : "version \(version) is in force"
        return self.show((changes + [end]).map { $0 + "\n" }.joined())
    }

    private func level(_ answer: AdminClient.Answer) throws(AdminClient.Failure) -> ExitCode {
        if self.isJSON { return self.show(answer.text + "\n") }
        return self.show((try self.document(answer)["level"]?.string ?? "") + "\n")
    }

    // MARK: Words

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
