import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl partition of`: where a user's private database, or one zone of it, lies.
struct PartitionOfCommand: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    static let command = ControlCommand(
        "of", "The partitions that a user's private database, or one zone of it, lies in",
        discussion: [
            "A private database lies whole in one partition, its home, unless its container was "
                + "created with '--placement zone'. Then the default zone lies at the home, and "
                + "each custom zone in the bucket that its name hashes to."
        ],
        options: PlaceOptions.all + [
            .value(
                "owner", .text("USER"), required: true, "The owner: a user's record name"),
            .value("zone", .text("NAME"), "Only the partition of this zone"),
        ],
        examples: [
            .init(
                "stratusctl partition of --container iCloud.org.example.teams --owner _1f2e "
                    + "--zone Boards", "Then 'stratusctl partition show' says who leads it")
        ],
        run: PartitionOfCommand.run)

    func run() async throws(AdminClient.Failure) -> ExitCode {
        try self.context.requireContainer()
        var target = self.place("/places?owner=" + self.encoded("owner"))
        if let zone = self.invocation["zone"] { target += "&zone=" + PercentCoding.encode(zone) }
        return try await self.table(of: PlaceAnswer.self, target)
    }
}
