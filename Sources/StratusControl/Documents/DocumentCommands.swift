import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl documents`: what is in a person's documents, the locks on it and the links to it.
struct DocumentCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    static let commands: [ControlCommand] = [
        ControlCommand(
            "documents", "People's documents", options: PersonPlace.options,
            subcommands: [
                ControlCommand(
                    "list", "Every item with its path",
                    options: [.value("path", .text("PATH"), "Only what is below this folder")],
                    examples: [
                        .init(
                            "stratusctl documents list --email mara@example.org --container iCloud.org.example.app --path Documents",
                            "What lies in the folder that people see?")
                    ],
                    run: DocumentCommands.list),
                ControlCommand(
                    "usage", "Files, folders and bytes in the folder Documents and beside it",
                    examples: [
                        .init(
                            "stratusctl documents usage --email mara@example.org --container iCloud.org.example.app",
                            "How much of the quota is used?")
                    ],
                    run: DocumentCommands.usage),
                ControlCommand(
                    "versions", "The contents of a file that wait to be settled",
                    positionals: [
                        PositionalDefinition("PATH", .text("PATH"), "the file's path")
                    ],
                    examples: [
                        .init(
                            "stratusctl documents versions --email ann@example.org "
                                + "--container iCloud.org.example.app Documents/report.txt",
                            "To see which devices disagree")
                    ],
                    run: DocumentCommands.versions),
                ControlCommand(
                    "locks", "The locks that WebDAV clients hold",
                    examples: [
                        .init(
                            "stratusctl documents locks --email mara@example.org --container iCloud.org.example.app",
                            "Why can a file not be saved?")
                    ],
                    run: DocumentCommands.locks),
                ControlCommand(
                    "unlock", "End a lock whose client does not come back",
                    positionals: [
                        PositionalDefinition(
                            "TOKEN", .text("TOKEN"), "its token in 'documents locks'")
                    ],
                    examples: [
                        .init(
                            "stratusctl documents unlock --email mara@example.org --container iCloud.org.example.app urn:uuid:1f2e",
                            "Once the program that held it is gone")
                    ],
                    run: DocumentCommands.unlock),
                ControlCommand(
                    "publications", "The links by which anybody may read a file",
                    examples: [
                        .init(
                            "stratusctl documents publications --email mara@example.org --container iCloud.org.example.app",
                            "Which files can anybody read?")
                    ],
                    run: DocumentCommands.publications),
                ControlCommand(
                    "withdraw", "End such a link",
                    positionals: [
                        PositionalDefinition(
                            "PUBLICATION", .text("ID"), "its ID in 'documents publications'")
                    ],
                    examples: [
                        .init(
                            "stratusctl documents withdraw --email mara@example.org --container iCloud.org.example.app 1f2e",
                            "To end a published link")
                    ],
                    run: DocumentCommands.withdraw),
            ])
    ]

    private func documents(_ rest: String) throws(AdminClient.Failure) -> String {
        try self.storage("/documents" + rest)
    }

    func list() async throws(AdminClient.Failure) -> ExitCode {
        let path = self.invocation["path"].map { "?path=" + PercentCoding.encode($0) } ?? ""
        return try await self.table(of: DocumentRow.self, try self.documents(path))
    }

    func usage() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: DocumentUseRow.self, try self.documents("/usage"))
    }

    func versions() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(
            of: DocumentVersionRow.self,
            try self.documents("/versions?path=" + self.encoded("PATH")))
    }

    func locks() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: DocumentLockRow.self, try self.documents("/locks"))
    }

    func unlock() async throws(AdminClient.Failure) -> ExitCode {
        _ = try await self.ask("DELETE", try self.documents("/locks/" + self.encoded("TOKEN")))
        return self.show(EmptyAnswer(), "unlocked\n")
    }

    func publications() async throws(AdminClient.Failure) -> ExitCode {
        try await self.table(of: PublicationRow.self, try self.documents("/publications"))
    }

    func withdraw() async throws(AdminClient.Failure) -> ExitCode {
        _ = try await self.ask(
            "DELETE", try self.documents("/publications/" + self.encoded("PUBLICATION")))
        return self.show(EmptyAnswer(), "withdrawn\n")
    }
}
