import Glibc
import StratusAdminModel
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
            "Talks to the administrators' listener of a node. A variable of the environment stands "
                + "for an option where its help names one. Prints tables for people; with --json it "
                + "prints the node's answer, for scripts.",
            "A command that takes --container and --environment says on standard error what it was "
                + "about. A container that is in one environment needs no --environment.",
        ],
        options: [
            .value(
                "node", .text("URL"), variable: "STRATUSCTL_NODE",
                "http://HOST:PORT, https://HOST:PORT or unix:PATH "
                    + "(default: http://127.0.0.1:8081)"),
            .value(
                "token-file", .file, variable: "STRATUSCTL_TOKEN_FILE",
                "The file with the administrators' token"),
            .value(
                "authority", .file, variable: "STRATUSCTL_AUTHORITY",
                "PEM of the authority that signed the node's certificate"),
            .value(
                "certificate", .file, variable: "STRATUSCTL_CERTIFICATE",
                "PEM of a certificate to show instead of a token"),
            .value(
                "key", .file, variable: "STRATUSCTL_KEY",
                "PEM of that certificate's key"),
            .flag("json", nil, "Print JSON"),
        ],
        subcommands: Self.commands.map(\.definition))

    /// Every command, with what it does.
    static let commands: [ControlCommand] =
        [
            ControlCommand(
                "status", "The node's state: readiness and its reasons, version, disk, partitions",
                options: [
                    .flag(
                        "partitions", nil,
                        "Every partition with a replica here, not only those with a problem")
                ],
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
                examples: [.init("stratusctl alive", "In a liveness probe")],
                run: NodeCommands.alive),
            ControlCommand(
                "metrics", "The node's metrics, as Prometheus reads them",
                examples: [
                    .init("stratusctl metrics | grep stratus_ready", "To look at one figure")
                ],
                run: NodeCommands.metrics),
            ControlCommand(
                "config", "The configuration in force",
                subcommands: [
                    ControlCommand(
                        "show", "Every value and where it comes from",
                        options: [
                            .flag("changed", nil, "Only values that differ from the default")
                        ],
                        examples: [
                            .init(
                                "stratusctl config show --changed",
                                "What is set here that is not the default?")
                        ],
                        run: NodeCommands.configuration)
                ]),
            ControlCommand(
                "schema", "The schema of a container, in CloudKit's schema language",
                options: [PlaceOptions.container],
                subcommands: [
                    ControlCommand(
                        "export", "Print the schema",
                        options: [PlaceOptions.environment],
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
                            PlaceOptions.development,
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
                        options: [PlaceOptions.development],
                        positionals: [PositionalDefinition("FILE", .file, "the schema, .ckdb")],
                        examples: [
                            .init(
                                "stratusctl schema diff --container iCloud.org.example.app app.ckdb",
                                "Before an import")
                        ],
                        run: SchemaCommands.diff),
                    ControlCommand(
                        "promote", "Add development's schema to production's",
                        discussion: [
                            "Shows the difference and asks. Production keeps types and fields that "
                                + "only it has. This cannot be undone, because types and fields are "
                                + "never removed from production."
                        ],
                        options: [
                            .value(
                                "confirm", .text("ID"),
                                "The container's name again, instead of the question"),
                            .flag("dry-run", nil, "Show what would change, and change nothing"),
                        ],
                        examples: [
                            .init(
                                "stratusctl schema promote --container iCloud.org.example.app "
                                    + "--dry-run", "To look first"),
                            .init(
                                "stratusctl schema promote --container iCloud.org.example.app "
                                    + "--confirm iCloud.org.example.app", "In a script"),
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
                        examples: [.init("stratusctl log-level show", "Before it is changed")],
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
            let context = ControlContext(
                invocation: try await PlaceOptions.resolve(invocation, client), client: client,
                isJSON: invocation.flag("json"))
            if !context.isJSON, let about = context.about {
                Terminal.write(about.remark, to: Terminal.errors)
            }
            return try await run(context)
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
        let certificate = invocation["certificate"]
        let key = invocation["key"]
        guard (certificate == nil) == (key == nil) else {
            throw AdminClient.Failure(
                .usage,
                "'--certificate' and '--key' go together, and so do STRATUSCTL_CERTIFICATE and "
                    + "STRATUSCTL_KEY")
        }
        return AdminClient.Target(
            node: invocation["node"] ?? "http://127.0.0.1:8081",
            tokenFile: invocation["token-file"], authorityFile: invocation["authority"],
            certificateFile: certificate, keyFile: key)
    }
}
