import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl doctor`: asks the node for what ``Diagnosis`` judges, and shows the findings.
struct DoctorCommand {
    private typealias Failure = AdminClient.Failure

    let client: AdminClient
    let isJSON: Bool

    /// - Parameter patience: how long to go on while there are findings. A node that does not
    ///   answer is waited for as well.
    func run(waiting patience: Duration) async throws(AdminClient.Failure) -> ExitCode {
        var bar = ProgressBar(
            "Waiting until the doctor finds nothing",
            isTerminal: Terminal.isTerminal(Terminal.errors), width: Terminal.width)
        let clock = ContinuousClock()
        let start = clock.now
        while true {
            let found: Result<[Diagnosis.Finding], AdminClient.Failure>
            do throws(AdminClient.Failure) { found = .success(try await self.findings()) } catch {
                found = .failure(error)
            }
            let elapsed = clock.now - start
            let findings = (try? found.get()) ?? []
            if elapsed >= patience || Self.isFinal(found) {
                if let clear = bar.finish() { Terminal.write(clear, to: Terminal.errors) }
                return self.tell(try found.get())
            }
            if let line = bar.update(
                done: findings.count, total: nil, unit: "findings", elapsed: elapsed)
            {
                Terminal.write(line, to: Terminal.errors)
            }
            try? await Task.sleep(for: Self.pause)
        }
    }

    private static let pause = Duration.milliseconds(500)

    /// Whether waiting changes nothing: all is well, or the question was wrong.
    private static func isFinal(_ found: Result<[Diagnosis.Finding], AdminClient.Failure>) -> Bool {
        switch found {
        case .success(let findings): findings.isEmpty
        case .failure(let failure):
            ![.unavailable, .temporary, .inputOutput].contains(failure.code)
        }
    }

    /// What is wrong now. A move that is under way takes five seconds to judge.
    func findings() async throws(AdminClient.Failure) -> [Diagnosis.Finding] {
        let first: Look
        do throws(AdminClient.Failure) { first = try await self.look() } catch {
            switch error.name {
            case "NOT_FORMED": return [try await self.unformed()]
            case "NOT_CLUSTERED":
                switch await self.page("/v1/status", within: Self.lookPatience) {
                case .success(let status): return Diagnosis.ofSingleNode(status)
                case .failure(let failure): throw failure
                }
            default: throw error
            }
        }
        switch first {
        case .withoutLeader(let finding): return [finding]
        case .whole(let cluster, let health):
            // A move is stuck if it is still the same one a while later.
            guard !ClusterFacts.array(cluster, "moves").isEmpty else {
                return Diagnosis(cluster: cluster, earlier: cluster, health: health).findings
            }
            try? await Task.sleep(for: .seconds(5))
            switch try await self.look() {
            case .withoutLeader(let finding): return [finding]
            case .whole(let later, let health):
                return Diagnosis(cluster: later, earlier: cluster, health: health).findings
            }
        }
    }

    /// Why the cluster is not formed, in the words of the node.
    private func unformed() async throws(AdminClient.Failure) -> Diagnosis.Finding {
        let ready = try await self.client.send("GET", "/readyz")
        let reasons = ready.text.split(separator: "\n").dropFirst().joined(separator: "; ")
        return Diagnosis.Finding(
            alarm: .notReady,
            what: "the cluster is not formed yet. The node says: \(reasons)",
            advice:
                "Start the other founders. Each needs the same 'cluster.peers' and the same secret, and must "
                + "reach the others at the addresses of that list. Ask those that run too: "
                + "'stratusctl --node URL doctor'.")
    }

    private enum Look {
        case whole(cluster: JSONValue, health: JSONValue)
        /// The nodes answer, but the cluster does not.
        case withoutLeader(Diagnosis.Finding)
    }

    /// Both pages, asked for side by side and for this long in all.
    private func look() async throws(AdminClient.Failure) -> Look {
        let clock = ContinuousClock()
        let end = clock.now + Self.lookPatience
        while true {
            let left = max(.milliseconds(100), end - clock.now)
            async let clusterPage = self.page("/v1/cluster", within: left)
            async let healthPage = self.page("/v1/cluster/health", within: left)
            let (health, cluster) = (await healthPage, await clusterPage)
            if case .success(let health) = health {
                if case .success(let cluster) = cluster {
                    return .whole(cluster: cluster, health: health)
                }
                if let finding = Diagnosis.withoutLeader(health) { return .withoutLeader(finding) }
            }
            for page in [cluster, health] {
                // Waiting does not form a cluster.
                if case .failure(let failure) = page, failure.name == "NOT_FORMED" { throw failure }
            }
            for page in [cluster, health] {
                if case .failure(let failure) = page,
                    failure.code != .temporary || clock.now + Self.lookPause >= end
                {
                    throw failure
                }
            }
            try? await Task.sleep(for: Self.lookPause)
        }
    }

    private static let lookPatience = Duration.seconds(5)
    private static let lookPause = Duration.milliseconds(200)

    private func page(_ path: String, within deadline: Duration) async -> Result<
        JSONValue, AdminClient.Failure
    > {
        do throws(AdminClient.Failure) {
            let answer = try self.client.require(
                try await self.client.send("GET", path, deadline: deadline))
            do throws(JSONError) {
                return .success(try JSONDocument(parsing: answer.body).root)
            } catch {
                return .failure(Failure(.inputOutput, "the node's answer is not JSON"))
            }
        } catch { return .failure(error) }
    }

    static func text(_ findings: [Diagnosis.Finding]) -> String {
        if findings.isEmpty { return "No problems found.\n" }
        return findings.map { "- \($0.what)\n  \($0.advice)\n" }.joined()
    }

    private func tell(_ findings: [Diagnosis.Finding]) -> ExitCode {
        if self.isJSON {
            var json = JSONWriter()
            json.object { json in
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
            Terminal.write(String(decoding: json.finish(), as: UTF8.self) + "\n")
        } else {
            Terminal.write(Self.text(findings))
        }
        return findings.isEmpty ? .success : .refused
    }
}
