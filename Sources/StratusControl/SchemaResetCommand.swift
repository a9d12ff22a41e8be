import StratusCommandLine
import StratusHTTP
import StratusProcess

/// `stratusctl schema reset`: a development environment back to production's schema and to no
/// records.
struct SchemaResetCommand {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    static let definition = CommandDefinition(
        "reset", "Take development back to production's schema and remove all of its records",
        discussion: [
            "Every record and zone of the development environment, in the public and in every private database, "
                + "and every type and field that production does not have. Tokens, keys, users and sessions stay.",
            "While it lasts nobody gets in: requests are answered TRY_AGAIN_LATER. Removing begins once requests "
                + "that were let in before have ended, half a minute later, and goes on piece by piece for as long "
                + "as this command runs. Interrupted, it is continued by the same command. There is no way back.",
        ],
        options: [
            .value("confirm", .text("ID"), "The container's name again: this is meant"),
            .flag("dry-run", nil, "Say what the schema would lose, and change nothing"),
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
        let begun = try await self.ask(target + "?confirm=" + PercentCoding.encode(confirmed))
        if !self.isJSON {
            _ = self.show(
                try self.lines(begun, end: "nobody gets in until the records are removed"))
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
            "removed \(records) records and \(zones) zones beside the default ones; version \(version) is in "
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

    private func document(_ answer: AdminClient.Answer) throws(AdminClient.Failure) -> JSONValue {
        do throws(JSONError) { return try JSONDocument(parsing: answer.body).root } catch {
            throw AdminClient.Failure(.inputOutput, "the node's answer is not JSON")
        }
    }

    private func show(_ text: String) -> ExitCode {
        Terminal.write(text) ? .success : .inputOutput
    }
}
