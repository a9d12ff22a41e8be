import StratusCommandLine
import StratusHTTP
import StratusProcess

/// Asks on which nodes' disks something erased is left, and waits until it is left on none.
struct RemainsLoop {
    let conversation: IdentityCommands

    private static let patience: Int64 = 3_600
    private static let pause = Duration.seconds(1)

    /// - Parameter receipt: of the erasure that is waited for; it is printed first.
    func run(waits: Bool, receipt: AdminClient.Answer?) async throws(AdminClient.Failure)
        -> ExitCode
    {
        let invocation = self.conversation.invocation
        let patience = invocation["wait-time"].flatMap { Int64($0) } ?? Self.patience
        let clock = ContinuousClock()
        let end = clock.now + .seconds(patience)
        let interval = Duration.seconds(30)
        var spokeAt = clock.now
        // How far the partitions were when it was first asked; what is erased later is another's.
        var wanted: JSONValue?
        var answer = try await self.ask(upTo: wanted)
        var document = try self.conversation.document(answer)
        wanted = document["positions"]
        while waits, document["isCleared"]?.bool != true, clock.now < end {
            try? await Task.sleep(for: Self.pause)
            // A node that is being restarted is no reason to give up.
            guard let next = try? await self.ask(upTo: wanted) else { continue }
            answer = next
            document = try self.conversation.document(answer)
            if clock.now >= spokeAt + interval {
                spokeAt = clock.now
                Terminal.write(
                    "waiting for \(Self.names(document).joined(separator: ", "))\n",
                    to: Terminal.errors)
            }
        }
        let isCleared = document["isCleared"]?.bool == true
        let shown = try self.text(receipt, answer, document)
        guard self.conversation.show(shown) == .success else { return .inputOutput }
        return isCleared ? .success : .refused
    }

    private func ask(upTo wanted: JSONValue?) async throws(AdminClient.Failure)
        -> AdminClient.Answer
    {
        var json = JSONWriter()
        json.object {
            guard let wanted = wanted?.array else { return }
            $0.member("positions", objects: wanted) { json, position in
                json.member("partition", position["partition"]?.int64 ?? 0)
                json.member("applied", position["applied"]?.int64 ?? 0)
            }
        }
        return try await self.conversation.ask("POST", "/v1/remains", body: json.finish())
    }

    /// The nodes where something is left, or that do not answer.
    private static func names(_ document: JSONValue) -> [String] {
        ClusterFacts.array(document, "nodes").filter { $0["isCleared"]?.bool != true }.map {
            ($0["node"]?.string ?? "?")
                + ($0["answers"]?.bool == true ? "" : " (does not answer)")
        }
    }

    private func text(
        _ receipt: AdminClient.Answer?, _ answer: AdminClient.Answer, _ document: JSONValue
    ) throws(AdminClient.Failure) -> String {
        if self.conversation.isJSON {
            return (receipt.map { $0.text + "\n" } ?? "") + answer.text + "\n"
        }
        var text = ""
        if let receipt {
            text += UserFacts.receipt(
                try self.conversation.document(receipt),
                hasLeft: document["isCleared"]?.bool == true)
        }
        var table = TextTable([.init("NODE"), .init("LEFT ON ITS DISK"), .init("CLEARED")])
        for node in ClusterFacts.array(document, "nodes") {
            table.append([
                node["node"]?.string ?? "", Self.left(node), node["cleared"]?.string ?? "",
            ])
        }
        return text + table.write()
    }

    private static func left(_ node: JSONValue) -> String {
        guard node["answers"]?.bool == true else { return "does not answer" }
        if node["isCleared"]?.bool == true { return "nothing" }
        var parts: [String] = []
        if let count = node["partitions"]?.int64, count > 0 { parts.append("\(count) partitions") }
        if node["log"]?.bool == true { parts.append("the log") }
        if parts.isEmpty { parts.append("it is catching up") }
        return parts.joined(separator: ", ")
    }
}
