import Glibc
package import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// The program `stratusctl`: what it takes, and where each command goes.
package enum ControlProgram {
    package static let definition = CommandDefinition(
        "stratusctl", "Administer a running node",
        discussion: [
            "Talks to the administrators' listener of a node. Name the node with --node or "
                + "STRATUSCTL_NODE, and the token's file with --token-file or "
                + "STRATUSCTL_TOKEN_FILE. The variables STRATUSCTL_AUTHORITY, STRATUSCTL_CERTIFICATE "
                + "and STRATUSCTL_KEY stand for the options of the same names. Prints tables for "
                + "people; with --json it prints the node's answer, for scripts."
        ],
        options: [
            .value(
                "node", .text("URL"),
                "http://HOST:PORT, https://HOST:PORT or unix:PATH "
                    + "(default: http://127.0.0.1:8081)"),
            .value("token-file", .file, "The file with the administrators' token"),
            .value("authority", .file, "PEM of the authority that signed the node's certificate"),
            .value("certificate", .file, "PEM of a certificate to show instead of a token"),
            .value("key", .file, "PEM of that certificate's key"),
            .flag("json", nil, "Print JSON"),
        ],
        subcommands: Self.commands.map(\.definition))

    /// Every command, with what it does.
    static let commands: [ControlCommand] =
        [
            ControlCommand(
                "status", "The node's state: readiness and its reasons, version, disk, partitions",
                examples: [
                    .init(
                        "stratusctl --token-file /var/lib/stratus/admin.token status",
                        "On the node's own machine")
                ],
                run: NodeCommands.status),
            ControlCommand(
                "ready", "Whether the node can serve: exit code 0, or 75 when it cannot",
                options: [
                    .value(
                        "wait", .duration,
                        "Wait at most this long until it can, with progress on a terminal")
                ],
                examples: [.init("stratusctl ready --wait 30s", "In a script that starts a node")],
                run: NodeCommands.ready),
            ControlCommand(
                "alive", "Whether the node's process answers: exit code 0, or 69 when it does not",
                discussion: [
                    "For whatever restarts processes. A node that lost its majority is alive and "
                        + "not ready: restarting it does not help."
                ],
                run: NodeCommands.alive),
            ControlCommand(
                "metrics", "The node's metrics, as Prometheus reads them",
                run: NodeCommands.metrics),
            ControlCommand(
                "config", "The configuration in force",
                subcommands: [
                    ControlCommand(
                        "show", "Every value and where it comes from",
                        options: [
                            .flag("changed", nil, "Only values that differ from the default")
                        ],
                        run: NodeCommands.configuration)
                ]),
            ControlCommand(
                "schema", "The schema of a container, in CloudKit's schema language",
                options: [
                    .value("container", .text("ID"), required: true, "The container"),
                    .value(
                        "environment", .choice(["development", "production"]),
                        default: "development", "The environment; promote always changes production"
                    ),
                ],
                subcommands: [
                    ControlCommand(
                        "export", "Print the schema",
                        examples: [
                            .init(
                                "stratusctl schema export --container iCloud.org.example.app > app.ckdb",
                                "To keep it beside the app's sources")
                        ],
                        run: SchemaCommands.export),
                    ControlCommand(
                        "import", "Replace the whole schema with that of a file",
                        discussion: [
                            "Removes types and fields that the file lacks. A field cannot "
                                + "change its type. Only the development environment can be "
                                + "imported into. A container that is not there is made, and the "
                                + "command says so."
                        ],
                        options: [
                            .flag("dry-run", nil, "Show what would change, and change nothing"),
                            ContainerCommands.existing,
                        ],
                        positionals: [PositionalDefinition("FILE", .file, "the schema, .ckdb")],
                        examples: [
                            .init(
                                "stratusctl schema import --container iCloud.org.example.app app.ckdb",
                                "After a change")
                        ],
                        run: SchemaCommands.importFile),
                    ControlCommand(
                        "diff", "Show what an import of the file would change",
                        positionals: [PositionalDefinition("FILE", .file, "the schema, .ckdb")],
                        run: SchemaCommands.diff),
                    ControlCommand(
                        "promote", "Add development's schema to production's",
                        discussion: [
                            "Production keeps types and fields that only it has. Look first "
                                + "with --dry-run: this cannot be undone, because types and fields "
                                + "are never removed from production."
                        ],
                        options: [
                            .flag("dry-run", nil, "Show what would change, and change nothing")
                        ],
                        run: SchemaCommands.promote),
                    SchemaResetCommand.command,
                ]),
        ] + ClusterControlCommands.commands + MembershipCommands.commands
        + [
            UpgradeCommands.command, SupportCommand.command, AssetCommands.command,
            EncryptionKeyCommands.command,
        ]
        + ContainerCommands.commands + KeyValueCommands.commands
        + DocumentCommands.commands
        + IdentityCommands.commands + PushCommands.commands + [
            ControlCommand(
                "log-level", "Show or change what the node writes to its log",
                subcommands: [
                    ControlCommand(
                        "show", "The level in force",
                        run: NodeCommands.logLevel),
                    ControlCommand(
                        "set", "Change it until the next SIGHUP or restart",
                        positionals: [
                            PositionalDefinition(
                                "LEVEL", .choice(["debug", "info", "warning", "error"]),
                                "the level"
                            )
                        ],
                        examples: [
                            .init("stratusctl log-level set debug", "While looking closer")
                        ],
                        run: NodeCommands.setLogLevel),
                ])
        ]

    /// The whole of `main.swift`.
    package static func main() -> Never {
        exit(Self.run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    package static func run(_ arguments: [String]) -> ExitCode {
        ProgramFront.run(Self.definition, arguments) { invocation in
            Blocking.wait { await Self.run(invocation) }
        }
    }

    private static func run(_ invocation: Invocation) async -> ExitCode {
        ProcessSignals.ignoreBrokenPipes()
        let loop = EventLoop(name: "control")
        defer { loop.stop() }
        do throws(AdminClient.Failure) {
            let client = try await AdminClient(Self.target(invocation), loop: loop)
            guard let run = ControlCommand.run(invocation.path, in: ControlProgram.commands) else {
                preconditionFailure("the parser knows '\(invocation.path)', and the table does not")
            }
            return try await run(
                ControlContext(
                    invocation: invocation, client: client, isJSON: invocation.flag("json")))
        } catch {
            if invocation.flag("json") {
                Terminal.write(ProgramFront.json("\(error)", error.code) + "\n")
            } else {
                Terminal.write("stratusctl: \(error)\n", to: Terminal.errors)
            }
            return error.code
        }
    }

    private static func target(_ invocation: Invocation) throws(AdminClient.Failure)
        -> AdminClient.Target
    {
        func value(_ option: String, _ variable: String) -> String? {
            invocation[option] ?? getenv(variable).map { String(cString: $0) }
        }
        let certificate = value("certificate", "STRATUSCTL_CERTIFICATE")
        let key = value("key", "STRATUSCTL_KEY")
        guard (certificate == nil) == (key == nil) else {
            throw AdminClient.Failure(
                .usage,
                "'--certificate' and '--key' go together, and so do STRATUSCTL_CERTIFICATE and "
                    + "STRATUSCTL_KEY")
        }
        return AdminClient.Target(
            node: value("node", "STRATUSCTL_NODE") ?? "http://127.0.0.1:8081",
            tokenFile: value("token-file", "STRATUSCTL_TOKEN_FILE"),
            authorityFile: value("authority", "STRATUSCTL_AUTHORITY"),
            certificateFile: certificate, keyFile: key)
    }
}
