import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl key-value`: what a person's apps keep in the key-value store.
struct KeyValueCommands: AdminConversation {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    private static let key = PositionalDefinition("KEY", .text("KEY"), "the key")

    static let definitions: [CommandDefinition] = [
        CommandDefinition(
            "key-value", "People's key-value stores", options: PersonPlace.options,
            subcommands: [
                CommandDefinition(
                    "list", "Every key with its value",
                    discussion: [
                        "A value is shown with its type, as apps send it: {\"integer\":7}."
                    ]),
                CommandDefinition(
                    "get", "The value of one key", positionals: [Self.key]),
                CommandDefinition(
                    "set", "Set one key: the change goes to the person's devices",
                    positionals: [
                        Self.key,
                        PositionalDefinition(
                            "VALUE", .text("JSON"),
                            "the value with its type, for instance {\"string\":\"dark\"}"),
                    ],
                    examples: [
                        .init(
                            "stratusctl key-value set --email ann@example.org "
                                + "--container iCloud.org.example.app theme "
                                + "'{\"string\":\"dark\"}'",
                            "To correct a setting that a person cannot reach")
                    ]),
                CommandDefinition(
                    "remove", "Remove one key: the removal goes to the person's devices",
                    positionals: [Self.key]),
                CommandDefinition("devices", "The devices that have sent changes"),
            ])
    ]

    static func serves(_ path: [String]) -> Bool { path.first == "key-value" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        switch self.invocation.path {
        case ["key-value", "list"]: return try await self.list()
        case ["key-value", "get"]: return try await self.get()
        case ["key-value", "set"]: return try await self.set()
        case ["key-value", "remove"]: return try await self.remove()
        case ["key-value", "devices"]: return try await self.devices()
        default:
            preconditionFailure("'\(self.invocation.path)' is declared and goes nowhere")
        }
    }

    private func list() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", try self.target())
        if self.isJSON { return self.show(answer.text + "\n") }
        var table = TextTable([.init("KEY"), .init("VALUE")])
        for row in try self.document(answer)["values"]?.array.map(Array.init) ?? [] {
            table.append([row["key"]?.string ?? "", Self.text(row["value"])])
        }
        return self.show(table.write())
    }

    private func get() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", try self.target())
        let key = Bytes(self.invocation.value("KEY").utf8)
        for row in try self.document(answer)["values"]?.array.map(Array.init) ?? []
        where row["key"]?.utf8 == key {
            return self.show(Self.text(row["value"]) + "\n")
        }
        throw AdminClient.Failure(
            .unavailable, "the store has no key '\(self.invocation.value("KEY"))'")
    }

    private func set() async throws(AdminClient.Failure) -> ExitCode {
        let value = Bytes(self.invocation.value("VALUE").utf8)
        guard let document = try? JSONDocument(parsing: value), document.root.object != nil else {
            throw AdminClient.Failure(
                .usage, "VALUE is an object of JSON with one member, for instance {\"integer\":7}")
        }
        var json = JSONWriter()
        json.object {
            $0.member("key", self.invocation.value("KEY"))
            $0.key("value")
            $0.write(raw: value)
        }
        _ = try await self.ask("POST", try self.target(), body: json.finish())
        return self.show(self.isJSON ? "{}\n" : "set\n")
    }

    private func remove() async throws(AdminClient.Failure) -> ExitCode {
        var json = JSONWriter()
        json.object {
            $0.member("key", self.invocation.value("KEY"))
            $0.member("removed", true)
        }
        _ = try await self.ask("POST", try self.target(), body: json.finish())
        return self.show(self.isJSON ? "{}\n" : "removed\n")
    }

    private func devices() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", try self.target() + "/devices")
        if self.isJSON { return self.show(answer.text + "\n") }
        var table = TextTable([
            .init("DEVICE"), .init("LAST BATCH", alignsRight: true), .init("LAST SEEN"),
        ])
        for row in try self.document(answer)["devices"]?.array.map(Array.init) ?? [] {
            table.append(
                ["device", "lastBatch", "lastSeen"].map {
                    row[$0]?.string ?? row[$0]?.numberText ?? ""
                })
        }
        return self.show(table.write())
    }

    private static func text(_ value: JSONValue?) -> String {
        value.map { String(decoding: $0.source, as: UTF8.self) } ?? ""
    }

    private func target() throws(AdminClient.Failure) -> String {
        try PersonPlace.path(self.invocation, "key-values")
    }
}
