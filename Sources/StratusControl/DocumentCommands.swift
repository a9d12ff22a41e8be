import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess

/// `stratusctl documents`: what is in a person's documents, the locks on it and the links to it.
struct DocumentCommands: AdminConversation {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    static let definitions: [CommandDefinition] = [
        CommandDefinition(
            "documents", "People's documents", options: PersonPlace.options,
            subcommands: [
                CommandDefinition(
                    "list", "Every item with its path",
                    options: [.value("path", .text("PATH"), "Only what is below this folder")]),
                CommandDefinition(
                    "usage", "Files, folders and bytes in the folder Documents and beside it"),
                CommandDefinition(
                    "versions", "The contents of a file that wait to be settled",
                    positionals: [
                        PositionalDefinition("PATH", .text("PATH"), "the file's path")
                    ],
                    examples: [
                        .init(
                            "stratusctl documents versions --email ann@example.org "
                                + "--container iCloud.org.example.app Documents/report.txt",
                            "To see which devices disagree")
                    ]),
                CommandDefinition("locks", "The locks that WebDAV clients hold"),
                CommandDefinition(
                    "unlock", "End a lock whose client does not come back",
                    positionals: [
                        PositionalDefinition(
                            "TOKEN", .text("TOKEN"), "its token in 'documents locks'")
                    ]),
                CommandDefinition(
                    "publications", "The links by which anybody may read a file"),
                CommandDefinition(
                    "withdraw", "End such a link",
                    positionals: [
                        PositionalDefinition(
                            "PUBLICATION", .text("ID"), "its ID in 'documents publications'")
                    ]),
            ])
    ]

    static func serves(_ path: [String]) -> Bool { path.first == "documents" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        switch self.invocation.path {
        case ["documents", "list"]:
            let path = self.invocation["path"].map { "?path=" + PercentCoding.encode($0) } ?? ""
            return try await self.table(
                path, "items",
                [
                    ("PATH", "path"), ("KIND", "kind"), ("BYTES", "size"), ("EDITED", "edited"),
                    ("DEVICE", "device"), ("CONFLICTS", "conflicts"),
                ])
        case ["documents", "usage"]:
            return try await self.table(
                "/usage", "parts",
                [
                    ("PART", "part"), ("FILES", "files"), ("FOLDERS", "folders"),
                    ("BYTES", "bytes"), ("VERSIONS", "versions"),
                ])
        case ["documents", "versions"]:
            return try await self.table(
                "/versions?path=" + PercentCoding.encode(self.invocation.value("PATH")),
                "versions",
                [
                    ("CONTENT", "contentTag"), ("STATE", "state"), ("BYTES", "size"),
                    ("EDITED", "edited"), ("DEVICE", "device"),
                ])
        case ["documents", "locks"]:
            return try await self.table(
                "/locks", "locks",
                [
                    ("PATH", "path"), ("TOKEN", "token"), ("SCOPE", "scope"), ("DEPTH", "depth"),
                    ("UNTIL", "until"),
                ])
        case ["documents", "unlock"]:
            let token = PercentCoding.encode(self.invocation.value("TOKEN"))
            _ = try await self.ask("DELETE", try self.target() + "/locks/" + token)
            return self.show(self.isJSON ? "{}\n" : "unlocked\n")
        case ["documents", "publications"]:
            return try await self.table(
                "/publications", "publications",
                [
                    ("PATH", "path"), ("PUBLICATION", "publication"), ("NAME", "name"),
                    ("BYTES", "size"), ("UNTIL", "until"),
                ])
        case ["documents", "withdraw"]:
            let id = PercentCoding.encode(self.invocation.value("PUBLICATION"))
            _ = try await self.ask("DELETE", try self.target() + "/publications/" + id)
            return self.show(self.isJSON ? "{}\n" : "withdrawn\n")
        default:
            preconditionFailure("'\(self.invocation.path)' is declared and goes nowhere")
        }
    }

    private func table(
        _ path: String, _ key: String, _ columns: [(title: String, key: String)]
    ) async throws(AdminClient.Failure) -> ExitCode {
        let answer = try await self.ask("GET", try self.target() + path)
        if self.isJSON { return self.show(answer.text + "\n") }
        var table = TextTable(columns.map { .init($0.title) })
        for row in try self.document(answer)[key]?.array.map(Array.init) ?? [] {
            table.append(
                columns.map { row[$0.key]?.string ?? row[$0.key]?.numberText ?? "" })
        }
        return self.show(table.write())
    }

    private func target() throws(AdminClient.Failure) -> String {
        try PersonPlace.path(self.invocation, "documents")
    }
}
