import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl push`: the keys by which a container sends to push providers, and what a node sends.
struct PushCommands: AdminConversation {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    static func serves(_ path: [String]) -> Bool { path.first == "push" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        if self.invocation.path != ["push", "status"] {
            let name = self.invocation.value("container")
            guard ContainerReference.isName(name) else {
                throw AdminClient.Failure(.usage, "'\(name)' cannot name a container")
            }
        }
        switch self.invocation.path {
        case ["push", "status"]: return try await self.status()
        case ["push", "trace"]: return try await self.trace()
        case ["push", "devices"]: return try await self.devices()
        case ["push", "send"]: return try await self.send()
        case ["push", "explain"]: return try await self.explain()
        case ["push", "pause"]: return try await self.pause(true)
        case ["push", "resume"]: return try await self.pause(false)
        case ["push", "apns", "add"]: return try await self.addKey()
        case ["push", "apns", "list"]: return try await self.listKeys()
        case ["push", "apns", "remove"]: return try await self.removeKey()
        case ["push", "apns", "check"]: return try await self.check()
        case ["push", "vapid", "create"]: return try await self.makeVAPID(isFirst: true)
        case ["push", "vapid", "rotate"]: return try await self.makeVAPID(isFirst: false)
        case ["push", "vapid", "show"]: return try await self.showVAPID()
        default:
            preconditionFailure("'\(self.invocation.path)' is declared and goes nowhere")
        }
    }

    // MARK: APNs

    private func addKey() async throws(AdminClient.Failure) -> ExitCode {
        let pem: Bytes
        do throws(SmallFile.Failure) {
            pem = try SmallFile.read(self.invocation.value("key-file"), limit: .kibibytes(16))
        } catch { throw AdminClient.Failure(.missingInput, error.description) }
        let topics = self.invocation.value("topics").split(separator: ",").map(String.init)
        var json = JSONWriter()
        json.object {
            $0.member("team", self.invocation.value("team"))
            $0.member("key", self.invocation.value("key-id"))
            $0.key("topics")
            $0.array { array in for topic in topics { array.write(topic) } }
            $0.member("privateKey", String(decoding: pem, as: UTF8.self))
        }
        let answer = try await self.ask("POST", self.place("/apns"), body: json.finish())
        return self.show(self.isJSON ? answer.text + "\n" : "added\n")
    }

    private func listKeys() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", self.place())
        if self.isJSON { return self.show(answer.text + "\n") }
        var table = TextTable([.init("TEAM"), .init("KEY"), .init("CREATED"), .init("TOPICS")])
        for row in try self.document(answer)["apns"]?.array.map(Array.init) ?? [] {
            let topics = (row["topics"]?.array.map(Array.init) ?? []).compactMap(\.string)
            table.append(
                ["team", "key", "created"].map { row[$0]?.string ?? "" }
                    + [topics.joined(separator: " ")])
        }
        return self.show(table.write())
    }

    private func removeKey() async throws(AdminClient.Failure) -> ExitCode {
        let names = ["team", "key-id"].map { PercentCoding.encode(self.invocation.value($0)) }
        let answer = try await self.ask(
            "DELETE", self.place("/apns/" + names.joined(separator: "/")))
        return self.show(self.isJSON ? answer.text + "\n" : "removed\n")
    }

    private func check() async throws(AdminClient.Failure) -> ExitCode {
        var json = JSONWriter()
        json.object {
            if let topic = self.invocation["topic"] { $0.member("topic", topic) }
            if let name = self.invocation["apns-environment"] {
                $0.member("apnsEnvironment", name)
            }
        }
        let answer = try await self.ask("POST", self.place("/apns/check"), body: json.finish())
        let checks = try self.document(answer)["checks"]?.array.map(Array.init) ?? []
        let isGood = checks.allSatisfy { $0["good"]?.bool == true }
        if self.isJSON {
            _ = self.show(answer.text + "\n")
            return isGood ? .success : .refused
        }
        var table = TextTable([.init("TEAM"), .init("KEY"), .init("GOOD"), .init("ANSWER")])
        for row in checks {
            table.append([
                row["team"]?.string ?? "", row["key"]?.string ?? "",
                row["good"]?.bool == true ? "yes" : "no", row["answer"]?.string ?? "",
            ])
        }
        _ = self.show(table.write())
        return isGood ? .success : .refused
    }

    // MARK: Web Push

    private func makeVAPID(isFirst: Bool) async throws(AdminClient.Failure) -> ExitCode {
        let known = try await self.vapid()
        if isFirst, !known.isEmpty {
            throw AdminClient.Failure(
                .usage, "the container has a key: 'stratusctl push vapid rotate' makes the next")
        }
        guard isFirst || !known.isEmpty else {
            throw AdminClient.Failure(
                .usage, "the container has no key: 'stratusctl push vapid create' makes one")
        }
        let before: String = known.last?["contact"]?.string ?? ""
        let contact: String = self.invocation["contact"] ?? before
        var json = JSONWriter()
        json.object { $0.member("contact", contact) }
        let answer = try await self.ask("POST", self.place("/vapid"), body: json.finish())
        if self.isJSON { return self.show(answer.text + "\n") }
        return self.show((try self.document(answer)["publicKey"]?.string ?? "") + "\n")
    }

    private func showVAPID() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", self.place())
        if self.isJSON { return self.show(answer.text + "\n") }
        var table = TextTable([
            .init("NUMBER", alignsRight: true), .init("CREATED"), .init("CONTACT"),
            .init("PUBLIC KEY"),
        ])
        for row in try self.document(answer)["vapid"]?.array.map(Array.init) ?? [] {
            table.append(
                ["number", "created", "contact", "publicKey"].map {
                    row[$0]?.string ?? row[$0]?.numberText ?? ""
                })
        }
        return self.show(table.write())
    }

    private func vapid() async throws(AdminClient.Failure) -> [JSONValue] {
        let answer = try await self.ask("GET", self.place())
        return try self.document(answer)["vapid"]?.array.map(Array.init) ?? []
    }

    // MARK: Sending

    private func pause(_ isPaused: Bool) async throws(AdminClient.Failure) -> ExitCode {
        var json = JSONWriter()
        json.object { $0.member("paused", isPaused) }
        let answer = try await self.ask("POST", self.place("/pause"), body: json.finish())
        return self.show(
            self.isJSON ? answer.text + "\n" : isPaused ? "paused\n" : "resumed\n")
    }

    private func status() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", "/v1/push")
        if self.isJSON { return self.show(answer.text + "\n") }
        let document = try self.document(answer)
        var table = TextTable([
            .init("LANE"), .init("STATE"), .init("WAITING", alignsRight: true),
            .init("UNDER WAY", alignsRight: true), .init("ANSWERS", alignsRight: true),
            .init("TROUBLE"),
        ])
        for row in document["lanes"]?.array.map(Array.init) ?? [] {
            table.append(
                ["lane", "state", "waiting", "underWay", "answers", "trouble"].map {
                    row[$0]?.string ?? row[$0]?.numberText ?? ""
                })
        }
        let active = document["active"]?.numberText ?? "0"
        let parked = document["parked"]?.numberText ?? "0"
        return self.show(
            "devices that are worked on: \(active), that wait: \(parked)\n" + table.write())
    }

    private func trace() async throws(AdminClient.Failure) -> ExitCode {
        let terms = ["record", "event", "user", "limit"].compactMap { name in
            self.invocation[name].map { "\(name)=\(PercentCoding.encode($0))" }
        }
        let answer = try await self.ask(
            "GET",
            self.place("/trace") + (terms.isEmpty ? "" : "?" + terms.joined(separator: "&")))
        if self.isJSON { return self.show(answer.text + "\n") }
        let names = [
            "event", "record", "subscription", "user", "device", "saved", "matched", "sent",
            "judged", "verdict",
        ]
        var table = TextTable(names.map { .init($0.uppercased()) })
        for row in try self.document(answer)["pushes"]?.array.map(Array.init) ?? [] {
            table.append(names.map { row[$0]?.string ?? row[$0]?.numberText ?? "" })
        }
        return self.show(table.write())
    }

    // MARK: Asking

    func place(_ rest: String = "") -> String {
        "/v1/containers/" + PercentCoding.encode(self.invocation.value("container"))
            + "/environments/\(self.invocation.value("environment"))/push" + rest
    }
}
