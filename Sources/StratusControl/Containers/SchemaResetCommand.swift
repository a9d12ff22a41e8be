import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl schema reset`: a development environment back to production's schema and to no
/// records.
struct SchemaResetCommand: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    static let command = ControlCommand(
        "reset", "Reset development to production's schema and remove all its records",
        discussion: [
            "Removes every record and zone of the development environment, in the public and "
                + "in every private database, and every type and field that production does not "
                + "have. Tokens, keys, users and sessions stay.",
            "Meanwhile every request is answered TRY_AGAIN_LATER. Removing begins half a "
                + "minute later, when requests that were accepted before have ended. It proceeds "
                + "piece by piece while this command runs; after an interruption, run the command "
                + "again. This cannot be undone.",
        ],
        options: [
            PlaceOptions.development,
            .value("confirm", .text("ID"), "The container's name again, to confirm"),
            .flag("dry-run", nil, "Show what the schema would lose, and change nothing"),
        ],
        examples: [
            .init(
                "stratusctl schema reset --container iCloud.org.example.app --dry-run",
                "To look first"),
            .init(
                "stratusctl schema reset --container iCloud.org.example.app --confirm "
                    + "iCloud.org.example.app", "To begin anew"),
        ],
        run: SchemaResetCommand.run)

    func run() async throws(AdminClient.Failure) -> ExitCode {
        try SchemaCommands(self.context).requireContainer()
        guard self.invocation.value("environment") == "development" else {
            throw Failure(.usage, "production is never reset")
        }
        let target = self.place("/schema/reset")
        if self.invocation.flag("dry-run") {
            let answer = try await self.ask("POST", target + "?dryRun=1")
            return try self.tell(answer) { Self.lines($0, end: "nothing was changed") }
        }
        guard let confirmed = self.invocation["confirm"] else {
            throw Failure(
                .usage, "repeat the container's name with '--confirm', or look with '--dry-run'")
        }
        try ContainerCommands.confirm(confirmed, self.invocation.value("container"))
        let begun = try await self.ask(
            "POST", target + "?confirm=" + PercentCoding.encode(confirmed))
        if !self.isJSON {
            _ = self.show(
                Self.lines(
                    try begun.read(), end: "every request is refused until the records are removed")
            )
        }
        var removal = RemovalLoop()
        let last = try await removal.run { () throws(AdminClient.Failure) in
            try await self.ask("POST", target + "/piece").read()
        }
        let receipt = ResetReceipt {
            $0.version = last.version ?? 0
            $0.zones = removal.zones
            $0.records = removal.records
        }
        return self.show(
            receipt,
            "removed \(receipt.records) records and \(receipt.zones) custom zones; version "
                + "\(receipt.version) is in force\n")
    }

    private static func lines(_ answer: ResetAnswer, end: String) -> String {
        (answer.changes + [end]).map { $0 + "\n" }.joined()
    }
}
