import StratusCommandLine
import StratusHTTP
import StratusProcess

/// `stratusctl upgrade`: how far the upgrade of a cluster is, whether it can be finalised, and
/// finalising it.
struct UpgradeCommands {
    private typealias Failure = AdminClient.Failure

    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    static let definition = CommandDefinition(
        "upgrade", "Upgrade a cluster to a new release",
        discussion: [
            "Install the release on one node after the other. Until 'finalise', the cluster "
                + "writes nothing that the previous release cannot read, so you can go back."
        ],
        subcommands: [
            CommandDefinition(
                "status", "The release and feature level of every node, and the cluster's level"),
            CommandDefinition(
                "check", "Check whether the upgrade can be finalised: exit code 1 if not"),
            CommandDefinition(
                "finalise",
                "Raise the cluster to the feature level of the new release; this cannot be undone",
                discussion: [
                    "Refused while a member has announced a lower level. Also refused, "
                        + "without --anyway, while 'check' finds a problem."
                ],
                options: [
                    .flag(
                        "anyway", nil,
                        "Finalise although nodes do not answer or the doctor finds problems")
                ]),
        ])

    static func serves(_ path: [String]) -> Bool { path.first == "upgrade" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        let standing = try await self.document("GET", "/v1/cluster/upgrade")
        switch self.invocation.path.last {
        case "status": return try await self.status(standing)
        case "check": return self.tell(try await self.obstacles(standing))
        default: return try await self.finalise(standing)
        }
    }

    // MARK: Each of them

    private func status(_ standing: JSONValue) async throws(AdminClient.Failure) -> ExitCode {
        let health = try await self.document("GET", "/v1/cluster/health")
        var releases: [String: String] = [:]
        for node in ClusterFacts.nodes(health) {
            releases[node["name"]?.string ?? ""] = node["version"]?.string
        }
        if self.isJSON {
            var json = JSONWriter()
            json.object { json in
                for key in ["featureLevel", "newestLevel", "buildLevel"] {
                    json.member(key, standing[key]?.int64 ?? 0)
                }
                json.member("canFinalise", standing["canFinalise"]?.bool == true)
                json.member("isFinalised", standing["isFinalised"]?.bool == true)
                json.key("nodes")
                json.beginArray()
                for node in ClusterFacts.nodes(standing) {
                    let name = node["name"]?.string ?? ""
                    json.object { json in
                        json.member("name", name)
                        json.member("featureLevel", node["featureLevel"]?.int64 ?? 0)
                        json.member("reachable", releases[name] != nil)
                        if let release = releases[name] { json.member("release", release) }
                    }
                }
                json.endArray()
            }
            return self.write(String(decoding: json.finish(), as: UTF8.self))
        }
        var table = TextTable([
            .init("NODE"), .init("RELEASE"), .init("FEATURE LEVEL", alignsRight: true),
        ])
        for node in ClusterFacts.nodes(standing) {
            let name = node["name"]?.string ?? ""
            table.append([
                name, releases[name] ?? "does not answer", node["featureLevel"]?.numberText ?? "",
            ])
        }
        let level = standing["featureLevel"]?.numberText ?? ""
        return self.write(
            table.write() + "\nThe cluster is at feature level \(level). " + Self.advice(standing))
    }

    private static func advice(_ standing: JSONValue) -> String {
        if standing["isFinalised"]?.bool == true { return "Nothing is left to finalise." }
        let newest = standing["newestLevel"]?.numberText ?? ""
        if standing["canFinalise"]?.bool == true {
            return
                "Every node reads level \(newest): 'stratusctl upgrade finalise' ends the upgrade."
        }
        return "Install the new release on " + Self.lagging(standing) + "."
    }

    private static func lagging(_ standing: JSONValue) -> String {
        ClusterFacts.array(standing, "lagging").compactMap(\.string).map { "'\($0)'" }
            .joined(separator: ", ")
    }

    /// The reasons not to finalise now: nodes of the release before, and whatever the doctor finds.
    private func obstacles(_ standing: JSONValue) async throws(AdminClient.Failure)
        -> [Diagnosis.Finding]
    {
        var findings: [Diagnosis.Finding] = []
        if standing["isFinalised"]?.bool != true, standing["canFinalise"]?.bool != true {
            findings.append(
                Diagnosis.Finding(
                    alarm: .unfinishedUpgrade,
                    what: "nodes of an older release: " + Self.lagging(standing),
                    advice: "Install the new release there, or remove the node."))
        }
        let doctor = DoctorCommand(client: self.client, isJSON: self.isJSON)
        return findings
            + (try await doctor.findings()).filter { $0.alarm != .unfinishedUpgrade }
    }

    private func finalise(_ standing: JSONValue) async throws(AdminClient.Failure) -> ExitCode {
        if standing["isFinalised"]?.bool == true {
            return self.done("Nothing is left to finalise.", standing["featureLevel"]?.int64 ?? 0)
        }
        if !self.invocation.flag("anyway") {
            let obstacles = try await self.obstacles(standing)
            guard obstacles.isEmpty else { return self.tell(obstacles) }
        }
        _ = try await self.document("POST", "/v1/cluster/upgrade")
        let level = standing["newestLevel"]?.int64 ?? 0
        return self.done(
            "Finalised: the cluster is at feature level \(level). Nodes of the previous "
                + "release can no longer join.", level)
    }

    // MARK: Asking and telling

    private func document(_ method: String, _ path: String) async throws(AdminClient.Failure)
        -> JSONValue
    {
        let clock = ContinuousClock()
        let deadline = clock.now + Self.patience
        var answer = try await self.client.send(method, path)
        // The system partition changes its leader while nodes are exchanged.
        while answer.status == 503, clock.now < deadline {
            try? await Task.sleep(for: .milliseconds(200))
            answer = try await self.client.send(method, path)
        }
        answer = try self.client.require(answer)
        do throws(JSONError) { return try JSONDocument(parsing: answer.body).root } catch {
            throw Failure(.inputOutput, "the node's answer is not JSON")
        }
    }

    private static let patience = Duration.seconds(15)

    private func write(_ text: String) -> ExitCode {
        Terminal.write(text + "\n") ? .success : .inputOutput
    }

    private func done(_ text: String, _ level: Int64) -> ExitCode {
        guard self.isJSON else { return self.write(text) }
        return self.write("{\"featureLevel\":\(level),\"isFinalised\":true}")
    }

    private func tell(_ findings: [Diagnosis.Finding]) -> ExitCode {
        if self.isJSON {
            var json = JSONWriter()
            json.object { json in
                json.member("good", findings.isEmpty)
                json.key("findings")
                json.beginArray()
                for finding in findings {
                    json.object {
                        $0.member("what", finding.what)
                        $0.member("advice", finding.advice)
                    }
                }
                json.endArray()
            }
            _ = self.write(String(decoding: json.finish(), as: UTF8.self))
        } else if findings.isEmpty {
            _ = self.write("No problems found: the upgrade can be finalised.")
        } else {
            for finding in findings { _ = self.write("- \(finding.what)\n  \(finding.advice)") }
        }
        return findings.isEmpty ? .success : .refused
    }

    /// A failure as a script reads it.
    static func json(_ failure: AdminClient.Failure) -> String {
        ProgramFront.json("\(failure)", failure.code)
    }
}
