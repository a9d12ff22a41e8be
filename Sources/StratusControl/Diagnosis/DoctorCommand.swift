import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl doctor`: asks the node for what ``Diagnosis`` judges, and shows the findings.
struct DoctorCommand: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    /// Goes on for as long as it may while there are findings. A node that does not answer is waited
    /// for as well.
    func run() async throws(AdminClient.Failure) -> ExitCode {
        let patience = self.invocation.duration("wait") ?? .zero
        var bar = ProgressBar(
            "Waiting until the doctor finds nothing",
            isTerminal: Terminal.isTerminal(Terminal.errors), width: Terminal.width)
        let clock = ContinuousClock()
        let start = clock.now
        while true {
            let found: Result<[DoctorFinding], AdminClient.Failure>
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

    /// No longer than a screen.
    private static let shownMax = 9
    private static let pause = Duration.milliseconds(500)

    /// Whether waiting changes nothing: all is well, or the question was wrong.
    private static func isFinal(_ found: Result<[DoctorFinding], AdminClient.Failure>) -> Bool {
        switch found {
        case .success(let findings): findings.isEmpty
        case .failure(let failure):
            ![.unavailable, .temporary, .inputOutput].contains(failure.code)
        }
    }

    /// What is wrong now. A move that is under way takes five seconds to judge.
    func findings() async throws(AdminClient.Failure) -> [DoctorFinding] {
        let first: Look
        do throws(AdminClient.Failure) { first = try await self.look() } catch {
            switch error.name {
            case AdminCode.notFormed.rawValue: return [try await self.unformed()]
            case AdminCode.notClustered.rawValue:
                let status: Result<StatusAnswer, AdminClient.Failure> = await self.page(
                    "/v1/status", within: Self.lookPatience)
                return Diagnosis.findings(try status.get())
            default: throw error
            }
        }
        switch first {
        case .withoutLeader(let finding): return [finding]
        case .whole(let cluster, let health):
            // A move is stuck if it is still the same one a while later.
            guard !cluster.moves.isEmpty else {
                return Diagnosis.findings(ClusterSight(cluster, earlier: cluster, health))
            }
            try? await Task.sleep(for: .seconds(5))
            switch try await self.look() {
            case .withoutLeader(let finding): return [finding]
            case .whole(let later, let health):
                return Diagnosis.findings(ClusterSight(later, earlier: cluster, health))
            }
        }
    }

    /// Why the cluster is not formed, in the words of the node.
    private func unformed() async throws(AdminClient.Failure) -> DoctorFinding {
        let ready = try await self.client.send("GET", "/readyz")
        let reasons = ready.text.split(separator: "\n").dropFirst().joined(separator: "; ")
        return Diagnosis.unformed.finding(["reasons": reasons])
    }

    private enum Look {
        case whole(cluster: ClusterAnswer, health: ClusterHealthAnswer)
        /// The nodes answer, but the cluster does not.
        case withoutLeader(DoctorFinding)
    }

    /// Both pages, asked for side by side and for this long in all.
    private func look() async throws(AdminClient.Failure) -> Look {
        let clock = ContinuousClock()
        let end = clock.now + Self.lookPatience
        while true {
            let left = max(.milliseconds(100), end - clock.now)
            async let clusterPage: Result<ClusterAnswer, AdminClient.Failure> = self.page(
                "/v1/cluster", within: left)
            async let healthPage: Result<ClusterHealthAnswer, AdminClient.Failure> = self.page(
                "/v1/cluster/health", within: left)
            let (health, cluster) = (await healthPage, await clusterPage)
            if case .success(let health) = health {
                if case .success(let cluster) = cluster {
                    return .whole(cluster: cluster, health: health)
                }
                if let finding = Diagnosis.withoutLeader(health) { return .withoutLeader(finding) }
            }
            let failures = [Self.failure(cluster), Self.failure(health)].compactMap(\.self)
            // Waiting does not form a cluster.
            if let failure = failures.first(where: { $0.name == AdminCode.notFormed.rawValue }) {
                throw failure
            }
            for failure in failures
            where failure.code != .temporary || clock.now + Self.lookPause >= end {
                throw failure
            }
            try? await Task.sleep(for: Self.lookPause)
        }
    }

    private static let lookPatience = Duration.seconds(5)
    private static let lookPause = Duration.milliseconds(200)

    private static func failure<Page>(_ page: Result<Page, AdminClient.Failure>)
        -> AdminClient.Failure?
    {
        if case .failure(let failure) = page { failure } else { nil }
    }

    private func page<Page: NamedMembers>(_ path: String, within deadline: Duration) async
        -> Result<Page, AdminClient.Failure>
    {
        do throws(AdminClient.Failure) {
            let answer = try self.client.require(
                try await self.client.send("GET", path, deadline: deadline))
            return .success(try answer.read())
        } catch { return .failure(error) }
    }

    static func text(_ findings: [DoctorFinding]) -> String {
        if findings.isEmpty { return "No problems found.\n" }
        let shown = findings.prefix(Self.shownMax).map { "- \($0.what)\n  \($0.advice)\n" }.joined()
        let left = findings.count - Self.shownMax
        guard left > 0 else { return shown }
        return shown
            + "- \(left) more\n  Solve these first. 'stratusctl --json doctor' shows all.\n"
    }

    private func tell(_ findings: [DoctorFinding]) -> ExitCode {
        _ = self.show(DoctorAnswer { $0.findings = findings }, Self.text(findings))
        return findings.isEmpty ? .success : .refused
    }
}
