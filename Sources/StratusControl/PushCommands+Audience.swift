import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl push devices`, `send` and `explain`: one user's devices.
extension PushCommands {
    func devices() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", self.place("/devices?" + self.terms(["user"])))
        if self.isJSON { return self.show(answer.text + "\n") }
        return self.show(Self.table(of: try self.document(answer)))
    }

    private func terms(_ names: [String]) -> String {
        names.compactMap { name in
            self.invocation[name].map { "\(name)=\(PercentCoding.encode($0))" }
        }.joined(separator: "&")
    }

    private static func table(of document: JSONValue) -> String {
        let names = [
            "device", "kind", "topic", "apnsEnvironment", "registered", "moved", "behind",
            "trouble",
        ]
        var table = TextTable(
            names.map { .init($0 == "apnsEnvironment" ? "APNS" : $0.uppercased()) })
        for row in document["devices"]?.array.map(Array.init) ?? [] {
            table.append(names.map { row[$0]?.string ?? row[$0]?.numberText ?? "" })
        }
        return table.write()
    }

    func send() async throws(AdminClient.Failure) -> ExitCode {
        var json = JSONWriter()
        json.object {
            $0.member("user", self.invocation.value("user"))
            $0.member("alert", self.invocation.value("alert"))
            if let device = self.invocation["device"] { $0.member("device", device) }
        }
        let answer = try await self.ask("POST", self.place("/send"), body: json.finish())
        let document = try self.document(answer)
        let isAccepted = document["accepted"]?.bool == true
        let text = ["device", "lane", "answer"].map { document[$0]?.string ?? "" }
        _ = self.show(
            self.isJSON ? answer.text + "\n" : "\(text[0]) over \(text[1]): \(text[2])\n")
        return isAccepted ? .success : .refused
    }

    func explain() async throws(AdminClient.Failure) -> ExitCode {
        let terms = self.terms(["user", "record", "zone", "database", "change"])
        let answer = try await self.ask("GET", self.place("/explain?" + terms))
        let document = try self.document(answer)
        let reaches = document["reaches"]?.bool == true
        if self.isJSON {
            _ = self.show(answer.text + "\n")
            return reaches ? .success : .refused
        }
        var table = TextTable([
            .init("SUBSCRIPTION"), .init("KIND"), .init("FIRES"), .init("WHY"),
        ])
        for row in document["subscriptions"]?.array.map(Array.init) ?? [] {
            table.append([
                row["subscription"]?.string ?? "", row["kind"]?.string ?? "",
                row["fires"]?.bool == true ? "yes" : "no", row["why"]?.string ?? "",
            ])
        }
        var text = reaches ? "it reaches a device\n\n" : "it reaches no device\n\n"
        text += table.write() + "\n" + Self.table(of: document)
        if document["cut"]?.bool == true { text += "there are more subscriptions\n" }
        _ = self.show(text)
        return reaches ? .success : .refused
    }
}
