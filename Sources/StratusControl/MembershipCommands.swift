import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl` where it changes the cluster, waits for it to change, or looks for what is wrong
/// with it.
struct MembershipCommands {
    private typealias Failure = AdminClient.Failure

    /// For a look at the cluster, of which many follow one another while nodes come and go.
    private static let patience = Duration.seconds(15)
    /// For a change: the node waits this long itself for the system partition's leader, so that one
    /// attempt is enough to say that there is none.
    private static let changePatience = Duration.seconds(5)

    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    static func serves(_ path: [String]) -> Bool { Self.paths.contains(path) }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        switch self.invocation.path {
        case ["cluster", "join-token"]: return try await self.joinToken()
        case ["cluster", "certificate", "withdraw"]:
            try await self.send("POST", self.certificate("withdraw"))
            return self.say("withdrawn: no peer takes this certificate any more")
        case ["cluster", "certificate", "restore"]:
            try await self.send("POST", self.certificate("restore"))
            return self.say("restored: peers take this certificate again")
        case ["cluster", "certificate", "list"]: return try await self.listCertificates()
        case ["node", "drain"]:
            try await self.send("POST", try self.node("NODE", "drain"), try self.body())
            return try await self.waitUntilEmpty("NODE", isRemoved: false)
        case ["node", "undrain"]:
            try await self.send("POST", try self.node("NODE", "undrain"))
            return self.say("undrained: its share of the replicas moves back to it")
        case ["node", "remove"] where self.invocation.flag("now"):
            try await self.send("POST", try self.node("NODE", "remove"), try self.body())
            return self.say("removed")
        case ["node", "remove"]:
            try await self.send(
                "POST", try self.node("NODE", "drain"), try self.body(leaves: true))
            return try await self.waitUntilEmpty("NODE", isRemoved: true)
        case ["node", "replace"]: return try await self.replace()
        case ["node", "weight"]: return try await self.weight()
        case ["partition", "show"]: return try await self.showPartition()
        case ["partition", "move"]: return try await self.movePartition()
        case ["partition", "leader"]:
            try await self.send(
                "POST", self.partition("leader"), Self.object { $0.member("to", self.value("to")) })
            return self.say("\(self.value("to")) leads partition \(self.value("PARTITION"))")
        case ["doctor"]:
            return try await DoctorCommand(client: self.client, isJSON: self.isJSON)
                .run(waiting: self.invocation.duration("wait") ?? .zero)
        default: return try await self.top()
        }
    }

    // MARK: Asking

    private func value(_ name: String) -> String { self.invocation.value(name) }

    /// Again for a while where the node could not do it just now: the system partition changes its
    /// leader while nodes come and go. What is asked here may be asked twice.
    @discardableResult
    private func send(_ method: String, _ path: String, _ body: Bytes = [])
        async throws(AdminClient.Failure) -> JSONValue
    {
        let clock = ContinuousClock()
        let deadline = clock.now + (method == "GET" ? Self.patience : Self.changePatience)
        var answer = try await self.client.send(method, path, body: body)
        while answer.status == 503, clock.now < deadline {
            try? await Task.sleep(for: .milliseconds(200))
            answer = try await self.client.send(method, path, body: body)
        }
        answer = try self.client.require(answer)
        do throws(JSONError) { return try JSONDocument(parsing: answer.body).root } catch {
            throw Failure(.inputOutput, "the node's answer is not JSON")
        }
    }

    private func fetch(_ path: String) async throws(AdminClient.Failure) -> (
        bytes: Bytes, json: JSONValue
    ) {
        let answer = try self.client.require(try await self.client.send("GET", path))
        do throws(JSONError) {
            return (answer.body, try JSONDocument(parsing: answer.body).root)
        } catch { throw Failure(.inputOutput, "the node's answer is not JSON") }
    }

    private static func object(_ write: (inout JSONWriter) -> Void) -> Bytes {
        var json = JSONWriter()
        json.object { write(&$0) }
        return json.finish()
    }

    private func body(leaves: Bool = false) throws(AdminClient.Failure) -> Bytes {
        var accepted: Int64?
        if let text = self.invocation["accept"] {
            guard let number = Int64(text), number >= 0 else {
                throw Failure(.usage, "'--accept' takes the number that the refusal named")
            }
            accepted = number
        }
        return Self.object {
            if let accepted { $0.member("accept", accepted) }
            if leaves { $0.member("leave", true) }
        }
    }

    private func node(_ positional: String, _ action: String) throws(AdminClient.Failure)
        -> String
    {
        let name = self.value(positional)
        guard NodeName.isName(name) else {
            throw Failure(.usage, "'\(name)' is not a node's name")
        }
        return "/v1/cluster/nodes/\(name)/\(action)"
    }

    private func partition(_ action: String) -> String {
        let name = self.value("PARTITION").filter { $0.isLetter || $0.isNumber }
        return "/v1/cluster/partitions/\(name)/\(action)"
    }

    private func certificate(_ action: String) -> String {
        let digits = self.value("FINGERPRINT").filter(\.isHexDigit).lowercased()
        return "/v1/cluster/certificates/\(digits.isEmpty ? "none" : digits)/\(action)"
    }

    private func listCertificates() async throws(AdminClient.Failure) -> ExitCode {
        let (bytes, json) = try await self.fetch("/v1/cluster/certificates")
        if self.isJSON {
            return Terminal.write(String(decoding: bytes, as: UTF8.self) + "\n")
                ? .success : .inputOutput
        }
        let text = ClusterFacts.array(json, "withdrawn").compactMap(\.string)
            .reduce(into: "") { $0 += $1 + "\n" }
        return Terminal.write(text.isEmpty ? "none\n" : text) ? .success : .inputOutput
    }

    private func say(_ text: String) -> ExitCode {
        if self.isJSON { return Terminal.write("{\"done\":true}\n") ? .success : .inputOutput }
        return Terminal.write(text + "\n") ? .success : .inputOutput
    }

    // MARK: Nodes

    private func joinToken() async throws(AdminClient.Failure) -> ExitCode {
        let seconds = (self.invocation.duration("valid") ?? .seconds(3_600)).components.seconds
        let made = try await self.send(
            "POST", "/v1/cluster/join-tokens",
            Self.object { $0.member("validSeconds", seconds) })
        if self.isJSON {
            var json = JSONWriter()
            json.object {
                $0.member("token", made["token"]?.string ?? "")
                $0.member("expiresMilliseconds", made["expiresMilliseconds"]?.int64 ?? 0)
            }
            return Terminal.write(String(decoding: json.finish(), as: UTF8.self) + "\n")
                ? .success : .inputOutput
        }
        Terminal.write(
            "Valid for one node, for \(DurationText.write(.seconds(seconds))).\n",
            to: Terminal.errors)
        return Terminal.write((made["token"]?.string ?? "") + "\n") ? .success : .inputOutput
    }

    private func weight() async throws(AdminClient.Failure) -> ExitCode {
        guard let weight = Int64(self.value("WEIGHT")), (1...100_000).contains(weight) else {
            throw Failure(.usage, "the weight must be a whole number from 1 to 100000")
        }
        let name = self.value("NODE")
        guard NodeName.isName(name) else {
            throw Failure(.usage, "'\(name)' is not a node's name")
        }
        try await self.send(
            "PUT", "/v1/cluster/nodes/\(name)",
            Self.object {
                $0.member("weight", weight)
                if let rack = self.invocation["rack"] { $0.member("rack", rack) }
            })
        return self.say("changed: replicas move until every node has its share")
    }

    private func replace() async throws(AdminClient.Failure) -> ExitCode {
        let new = self.value("NEW")
        let cluster = try await self.send("GET", "/v1/cluster")
        guard
            let successor = ClusterFacts.nodes(cluster).first(where: {
                $0["name"]?.string == new && $0["state"]?.string == "active"
            }), successor["wasHeard"]?.bool == true
        else {
            throw Failure(
                .refused, "'\(new)' is not an active node of the cluster: let it join first")
        }
        try await self.send("POST", try self.node("OLD", "drain"), try self.body(leaves: true))
        return try await self.waitUntilEmpty("OLD", isRemoved: true)
    }

    /// Until the node holds nothing, with progress. Interrupting it stops the waiting and nothing
    /// else.
    private func waitUntilEmpty(_ positional: String, isRemoved: Bool)
        async throws(AdminClient.Failure) -> ExitCode
    {
        let name = self.value(positional)
        if self.invocation.flag("no-wait") { return self.say("begun") }
        var bar = ProgressBar(
            "Moving replicas off \(name)", isTerminal: Terminal.isTerminal(Terminal.errors),
            width: Terminal.width)
        let clock = ContinuousClock()
        let start = clock.now
        var total: Int?
        while true {
            let cluster = try await self.send("GET", "/v1/cluster")
            let node = ClusterFacts.nodes(cluster).last { $0["name"]?.string == name }
            let held = ClusterFacts.replicaCount(of: node?["node"]?.int64 ?? 0, in: cluster)
            total = max(total ?? held, held)
            if let line = bar.update(
                done: (total ?? 0) - held, total: total, unit: "replicas",
                elapsed: clock.now - start)
            {
                Terminal.write(line, to: Terminal.errors)
            }
            let isGone = node == nil || node?["state"]?.string == "removed"
            if isRemoved ? isGone : held == 0 {
                if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
                return self.say(
                    isRemoved ? "removed: stop the node" : "drained: it holds no replicas")
            }
            try? await Task.sleep(for: .milliseconds(200))
        }
    }

    // MARK: Partitions

    private func showPartition() async throws(AdminClient.Failure) -> ExitCode {
        let cluster = try await self.send("GET", "/v1/cluster")
        let health = try await self.send("GET", "/v1/cluster/health")
        if self.isJSON {
            guard
                let text = ClusterFacts.partitionJSON(self.value("PARTITION"), cluster, health)
            else { throw Failure(.refused, "there is no partition '\(self.value("PARTITION"))'") }
            return Terminal.write(text + "\n") ? .success : .inputOutput
        }
        guard let text = ClusterFacts.partition(self.value("PARTITION"), cluster, health) else {
            throw Failure(.refused, "there is no partition '\(self.value("PARTITION"))'")
        }
        return Terminal.write(text) ? .success : .inputOutput
    }

    private func movePartition() async throws(AdminClient.Failure) -> ExitCode {
        try await self.send(
            "POST", self.partition("move"),
            Self.object {
                $0.member("from", self.value("from"))
                $0.member("to", self.value("to"))
            })
        if self.invocation.flag("no-wait") { return self.say("begun") }
        let name = self.value("PARTITION")
        var bar = ProgressBar(
            "Moving partition \(name)", isTerminal: Terminal.isTerminal(Terminal.errors),
            width: Terminal.width)
        let clock = ContinuousClock()
        let start = clock.now
        var count = 0
        while true {
            let cluster = try await self.send("GET", "/v1/cluster")
            let isMoving = ClusterFacts.array(cluster, "moves").contains {
                $0["partition"]?.string == name
            }
            if !isMoving {
                if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
                return self.say("moved")
            }
            count += 1
            if let line = bar.update(
                done: count, total: nil, unit: "looks", elapsed: clock.now - start)
            {
                Terminal.write(line, to: Terminal.errors)
            }
            try? await Task.sleep(for: .milliseconds(200))
        }
    }

    // MARK: Looking

    private func top() async throws(AdminClient.Failure) -> ExitCode {
        let pause = self.invocation.duration("every") ?? .seconds(2)
        var left = self.invocation["count"].flatMap { Int($0) }
        while true {
            let cluster = try await self.fetch("/v1/cluster?lastKnown=1")
            let health = try await self.fetch("/v1/cluster/health")
            if self.isJSON {
                // A line for each look, so that a script can read them as they come.
                var json = JSONWriter()
                json.object {
                    $0.key("cluster")
                    $0.write(raw: cluster.bytes)
                    $0.key("health")
                    $0.write(raw: health.bytes)
                }
                Terminal.write(String(decoding: json.finish(), as: UTF8.self) + "\n")
            } else {
                let isTerminal = Terminal.isTerminal(Terminal.output)
                let text =
                    (ClusterControlCommands.remark(cluster.json) ?? "")
                    + ClusterFacts.overview(cluster.json, health.json)
                Terminal.write((isTerminal ? "\u{1B}[H\u{1B}[2J" : "") + text)
            }
            if let count = left {
                left = count - 1
                if count <= 1 { return .success }
            }
            try? await Task.sleep(for: pause)
        }
    }
}
