import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl key-value`: what a person's apps keep in the key-value store.
struct KeyValueCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    private static let key = PositionalDefinition("KEY", .text("KEY"), "the key")

    static let commands: [ControlCommand] = [
        ControlCommand(
            "key-value", "People's key-value stores", options: PersonPlace.options,
            subcommands: [
                ControlCommand(
                    "list", "Every key with its value",
                    discussion: [
                        "A value is shown with its type, as apps send it: {\"integer\":7}."
                    ],
                    examples: [
                        .init(
                            "stratusctl key-value list --email mara@example.org --container iCloud.org.example.app",
                            "Which settings does the app keep?")
                    ],
                    run: KeyValueCommands.list),
                ControlCommand(
                    "get", "The value of one key", positionals: [Self.key],
                    examples: [
                        .init(
                            "stratusctl key-value get --email mara@example.org --container iCloud.org.example.app theme",
                            "One of them")
                    ],
                    run: KeyValueCommands.get),
                ControlCommand(
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
                    ],
                    run: KeyValueCommands.set),
                ControlCommand(
                    "remove", "Remove one key: the removal goes to the person's devices",
                    positionals: [Self.key],
                    examples: [
                        .init(
                            "stratusctl key-value remove --email mara@example.org --container iCloud.org.example.app theme",
                            "To begin with the app's own default")
                    ],
                    run: KeyValueCommands.remove),
                ControlCommand(
                    "devices", "The devices that have sent changes",
                    examples: [
                        .init(
                            "stratusctl key-value devices --email mara@example.org --container iCloud.org.example.app",
                            "Which device has sent nothing for long?")
                    ],
                    run: KeyValueCommands.devices),
            ])
    ]

    func list() async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", try self.storage("/key-values"))
        return try self.tell(answer) { (store: KeyValuesAnswer) in TextTable.text(store.values) }
    }

    func get() async throws(AdminClient.Failure) -> ExitCode {
        let store: KeyValuesAnswer = try await self.ask("GET", try self.storage("/key-values"))
            .read()
        let key = self.invocation.value("KEY")
        // Byte for byte: to Swift, texts that look the same are equal.
        guard let row = store.values.last(where: { $0.key.utf8.elementsEqual(key.utf8) }) else {
            throw Failure(.unavailable, "the store has no key '\(key)'")
        }
        return self.show((row.value?.text ?? "") + "\n")
    }

    func set() async throws(AdminClient.Failure) -> ExitCode {
        let value = Bytes(self.invocation.value("VALUE").utf8)
        guard let document = try? JSONDocument(parsing: value), document.root.object != nil else {
            throw Failure(
                .usage,
                "VALUE is an object of JSON with one member, for instance {\"integer\":7}")
        }
        return try await self.change(said: "set") { $0.value = RawJSON(value) }
    }

    func remove() async throws(AdminClient.Failure) -> ExitCode {
        try await self.change(said: "removed") { $0.isRemoved = true }
    }

    private func change(said: String, _ fill: (inout KeyValueBody) -> Void)
        async throws(AdminClient.Failure) -> ExitCode
    {
        var body = KeyValueBody()
        body.key = self.invocation.value("KEY")
        fill(&body)
        _ = try await self.ask("POST", try self.storage("/key-values"), body)
        return self.show(EmptyAnswer(), said + "\n")
    }

    func devices() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: DeviceRow.self, try self.storage("/key-values/devices"))
    }
}
