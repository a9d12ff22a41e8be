import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl upgrade`: how far the upgrade of a cluster is, whether it can be finalised, and
/// finalising it.
struct UpgradeCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    static let command = ControlCommand(
        "upgrade", "Upgrade a cluster to a new release",
        discussion: [
            "Install the release on one node after the other. Until 'finalise', the cluster "
                + "writes nothing that the previous release cannot read, so you can go back."
        ],
        subcommands: [
            ControlCommand(
                "status", "The release and feature level of every node, and the cluster's level",
                examples: [.init("stratusctl upgrade status", "Which release does each node run?")],
                run: UpgradeCommands.status),
            ControlCommand(
                "check", "Check whether the upgrade can be finalised: exit code 1 if not",
                examples: [.init("stratusctl upgrade check", "Before each node is restarted")],
                run: UpgradeCommands.check),
            ControlCommand(
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
                ],
                examples: [
                    .init("stratusctl upgrade finalise", "Once every node runs the new release")
                ],
                run: UpgradeCommands.finalise),
        ])

    private static let patience = Duration.seconds(15)

    private func standing() async throws(AdminClient.Failure) -> UpgradeAnswer {
        try await self.insist("GET", "/v1/cluster/upgrade", for: Self.patience).read()
    }

    func status() async throws(AdminClient.Failure) -> ExitCode {
        let standing = try await self.standing()
        let health: ClusterHealthAnswer = try await self.insist(
            "GET", "/v1/cluster/health", for: Self.patience
        ).read()
        let releases = health.nodes.reduce(into: [:]) { $0[$1.name] = $1.version }
        let status = UpgradeStatus(standing, releases)
        return self.show(
            status,
            TextTable.text(status.nodes)
                + "\nThe cluster is at feature level \(status.featureLevel). "
                + Self.advice(standing) + "\n")
    }

    private static func advice(_ standing: UpgradeAnswer) -> String {
        if standing.isFinalised { return "Nothing is left to finalise." }
        guard standing.canFinalise else {
            return "Install the new release on " + standing.laggingNames + "."
        }
        return
            "Every node reads level \(standing.newestLevel): 'stratusctl upgrade finalise' ends the "
            + "upgrade."
    }

    func check() async throws(AdminClient.Failure) -> ExitCode {
        self.tell(try await self.obstacles(try await self.standing()))
    }

    /// The reasons not to finalise now: nodes of the release before, and whatever the doctor finds.
    private func obstacles(_ standing: UpgradeAnswer) async throws(AdminClient.Failure)
        -> [DoctorFinding]
    {
        var findings: [DoctorFinding] = []
        if !standing.isFinalised, !standing.canFinalise {
            findings.append(Diagnosis.olderRelease.finding(["nodes": standing.laggingNames]))
        }
        return findings
            + (try await DoctorCommand(self.context).findings()).filter {
                $0.alarm != Diagnosis.unfinishedUpgrade
            }
    }

    func finalise() async throws(AdminClient.Failure) -> ExitCode {
        let standing = try await self.standing()
        if standing.isFinalised {
            return self.show(
                FinalisedAnswer(standing.featureLevel), "Nothing is left to finalise.\n")
        }
        if !self.invocation.flag("anyway") {
            let obstacles = try await self.obstacles(standing)
            guard obstacles.isEmpty else { return self.tell(obstacles) }
        }
        _ = try await self.insist("POST", "/v1/cluster/upgrade", for: Self.patience)
        return self.show(
            FinalisedAnswer(standing.newestLevel),
            "Finalised: the cluster is at feature level \(standing.newestLevel). Nodes of the "
                + "previous release can no longer join.\n")
    }

    private func tell(_ findings: [DoctorFinding]) -> ExitCode {
        _ = self.show(
            DoctorAnswer {
                $0.isGood = findings.isEmpty
                $0.findings = findings
            },
            findings.isEmpty
                ? "No problems found: the upgrade can be finalised.\n"
                : DoctorCommand.text(findings))
        return findings.isEmpty ? .success : .refused
    }
}
