import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl partition of`: where a user's private database, or one zone of it, lies.
struct PartitionOfCommand {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    static let definition = CommandDefinition(
        "of", "The partitions that a user's private database, or one zone of it, lies in",
        discussion: [
            "A private database lies whole in one partition, its home, unless its container was "
                + "created with '--placement zone'. Then the default zone lies at the home, and "
                + "each custom zone in the bucket that its name hashes to."
        ],
        options: [
            .value("container", .text("ID"), required: true, "The container"),
            .value(
                "environment", .choice(["development", "production"]), default: "development",
                "The environment"),
            .value(
                "owner", .text("USER"), required: true, "The owner: a user's record name"),
            .value("zone", .text("NAME"), "Only the partition of this zone"),
        ],
        examples: [
            .init(
                "stratusctl partition of --container iCloud.org.example.teams --owner _1f2e "
                    + "--zone Boards", "Then 'stratusctl partition show' says who leads it")
        ])

    static func serves(_ path: [String]) -> Bool { path == ["partition", "of"] }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        let name = self.invocation.value("container")
        guard ContainerReference.isName(name) else {
            throw AdminClient.Failure(.usage, "'\(name)' cannot name a container")
        }
        var target =
            "/v1/containers/" + PercentCoding.encode(name) + "/environments/"
            + self.invocation.value("environment") + "/places?owner="
            + PercentCoding.encode(self.invocation.value("owner"))
        if let zone = self.invocation["zone"] { target += "&zone=" + PercentCoding.encode(zone) }
        let answer = try self.client.require(try await self.client.send("GET", target))
        if self.isJSON {
            let text = String(decoding: answer.body, as: UTF8.self)
            return Terminal.write(text + "\n") ? .success : .inputOutput
        }
        let document: JSONValue
        do throws(JSONError) { document = try JSONDocument(parsing: answer.body).root } catch {
            throw AdminClient.Failure(.inputOutput, "the node's answer is not JSON")
        }
        var table = TextTable([
            .init("PART"), .init("PARTITION", alignsRight: true), .init("IN USE"),
        ])
        for place in document["places"]?.array.map(Array.init) ?? [] {
            table.append([
                place["part"]?.string ?? "", place["partition"]?.string ?? "0",
                place["inUse"]?.bool == true ? "yes" : "no",
            ])
        }
        return Terminal.write(table.write()) ? .success : .inputOutput
    }
}
