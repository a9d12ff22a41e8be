import StratusCommandLine
import StratusHTTP
import StratusProcess

/// `stratusctl schema reset`: a development environment back to production's schema and to no
/// records.
struct SchemaResetCommand: AdminConversation {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    static let definition = CommandDefinition(
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
        ])

    /// - Parameter target: the path of the reset.
    func run(_ target: String) async throws(AdminClient.Failure) -> ExitCode {
        guard self.invocation.value("environment") == "development" else {
            throw AdminClient.Failure(.usage, "production is never reset")
        }
        if self.invocation.flag("dry-run") {
            let answer = try await self.ask(target + "?dryRun=1")
            if self.isJSON { return self.show(answer.text + "\n") }
            return self.show(try self.lines(answer, end: "nothing was changed"))
        }
        guard let confirmed = self.invocation["confirm"] else {
            throw AdminClient.Failure(
                .usage, "repeat the container's name with '--confirm', or look with '--dry-run'")
        }
        try ContainerCommands.confirm(confirmed, self.invocation.value("container"))
        let begun = try await self.ask(target + "?confirm=" + PercentCoding.encode(confirmed))
        if !self.isJSON {
            _ = self.show(
                try self.lines(begun, end: "every request is refused until the records are removed")
            )
        }
        var removal = RemovalLoop()
        let document = try await removal.run { () throws(AdminClient.Failure) in
            try self.document(try await self.ask(target + "/piece"))
        }
        return self.receipt(
            version: document["version"]?.int64 ?? 0, zones: removal.zones,
            records: removal.records)
    }

    private func receipt(version: Int64, zones: Int64, records: Int64) -> ExitCode {
        if self.isJSON {
            var json = JSONWriter()
            json.object {
                $0.member("version", version)
                $0.member("zones", zones)
                $0.member("records", records)
            }
            return self.show(String(decoding: json.finish(), as: UTF8.self) + "\n")
        }
        return self.show(
            "removed \(records) records and \(zones) custom zones; version \(version) is in "
                + "force\n")
    }

    private func lines(_ answer: AdminClient.Answer, end: String) throws(AdminClient.Failure)
        -> String
    {
        let changes = try self.document(answer)["changes"]?.array.map { $0.compactMap(\.string) }
        return ((changes ?? []) + [end]).map { $0 + "\n" }.joined()
    }

    private func ask(_ path: String) async throws(AdminClient.Failure) -> AdminClient.Answer {
        try self.client.require(try await self.client.send("POST", path, body: []))
    }
}
