import Glibc
package import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusProcess

/// The program `stratus`: what it takes, and where each command goes.
package enum StratusProgram {
    package static let definition = CommandDefinition(
        "stratus", "The CloudKit you run yourself",
        discussion: [
            "A store for records and assets that speaks CloudKit Web Services. 'stratus dev' "
                + "starts a node for development at once, 'stratus serve' runs a node from a "
                + "configuration, and 'stratusctl' administers a running node."
        ],
        subcommands: [
            CommandDefinition(
                "dev", "Start a node for development, at once and without a configuration",
                discussion: [
                    "Accepts any container, any well-formed API token in the development "
                        + "environment, and any web-auth token for the development user. An "
                        + "existing client only has to change its host. Listens on this machine "
                        + "only.",
                    "SIGTERM and SIGINT stop it after the requests in flight; a second signal "
                        + "stops it at once.",
                ],
                options: [
                    .value(
                        "data", .directory,
                        "Where to keep the data; without it, a temporary "
                            + "directory that is removed at the end"),
                    .value(
                        "listen", .address, default: "127.0.0.1:8080",
                        "Where clients connect; "
                            + "port 0 lets the system choose"),
                    .value("admin", .address, default: "127.0.0.1:0", "Where stratusctl connects"),
                    .flag(
                        "tls", nil,
                        "Serve clients over HTTPS, with a certificate of an authority made "
                            + "for this data directory. Clients must trust tls/authority.pem "
                            + "in it"),
                    .value(
                        "container", .text("ID"), default: "iCloud.org.example.stratus",
                        "The container to use in the examples; all others work too"),
                    .value(
                        "schema", .choice(["justInTime", "strict"]), default: "justInTime",
                        "Whether a save creates the types and fields it needs"),
                    .value(
                        "placement", .choice(["whole", "zone"]), default: "whole",
                        "How the private databases of containers are placed that you use without "
                            + "creating them; see 'stratusctl container create'"),
                    .value(
                        "zone-buckets", .choice(["2", "4", "8", "16", "32", "64"]),
                        "With '--placement zone': the number of buckets of each private database; "
                            + "\(ContainerLayout.zoneBucketCountStandard) otherwise"),
                    .value(
                        "users", .choice(["any", "strict"]), default: "any",
                        "Which web-auth tokens are accepted: any text, or only those of the "
                            + "development users. 'strict' lets you test an app with an expired "
                            + "token"),
                    .flag(
                        "json", nil,
                        "Print one line of JSON when ready: url, container, environment, "
                            + "apiToken, webAuthToken, otherWebAuthToken, adminURL, adminTokenFile, dataDirectory, pid, and authorityFile with --tls"
                    ),
                ],
                examples: [
                    .init("stratus dev", "Try it"),
                    .init("stratus dev --data ./data --listen 127.0.0.1:0 --json", "In a test"),
                ]),
            CommandDefinition(
                "serve", "Run a node from a configuration",
                discussion: [
                    "Stays in the foreground and writes its log to standard error. SIGHUP "
                        + "reads certificates, limits and the log level again. SIGTERM and SIGINT "
                        + "stop it after the requests in flight; a second signal stops it at once."
                ],
                options: [
                    .value("config", .file, required: true, "The configuration, JSON5")
                ],
                examples: [
                    .init(
                        "stratus serve --config /etc/stratus/stratus.json5", "As a service runs it")
                ]),
            CommandDefinition(
                "cluster", "Prepare a cluster, or recover what is left of one",
                subcommands: [
                    CertificatesCommand.definition,
                    ConvertCommand.definition,
                    RecoverCommand.definition,
                ]),
            CommandDefinition(
                "data-directory", "Seal the data directory of a stopped node, or unseal it",
                subcommands: SealCommand.definitions),
            CommandDefinition(
                "config", "Check and show configurations",
                subcommands: [
                    CommandDefinition(
                        "check",
                        "Check a configuration without starting a node",
                        discussion: [
                            "Prints one line for each problem: file, line, column, key, what "
                                + "is allowed and the nearest key. Variables named STRATUS_… "
                                + "override keys of the file, as they do when a node starts."
                        ],
                        options: [.flag("json", nil, "Print the problems as JSON")],
                        positionals: [
                            PositionalDefinition("FILE", .file, "the configuration, JSON5")
                        ],
                        examples: [
                            .init(
                                "stratus config check /etc/stratus/stratus.json5",
                                "Before a restart")
                        ]),
                    CommandDefinition(
                        "print", "Show every value and where it comes from",
                        options: [
                            .value("config", .file, "The configuration, JSON5"),
                            .flag("changed", nil, "Only values that differ from the default"),
                            .flag("json", nil, "Print JSON"),
                        ],
                        examples: [
                            .init(
                                "stratus config print --config /etc/stratus/stratus.json5 --changed",
                                "What this machine does differently")
                        ]),
                    CommandDefinition(
                        "example", "Print a commented configuration with every key and its default",
                        examples: [
                            .init("stratus config example > stratus.json5", "A file to start from")
                        ]),
                ]),
        ])

    /// The whole of `main.swift`, where code at the top level would belong to the main actor.
    package static func main() -> Never {
        exit(Self.run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    /// Runs one command line.
    ///
    /// - Parameter arguments: the words after the program's name.
    package static func run(_ arguments: [String]) -> ExitCode {
        ProgramFront.run(Self.definition, arguments, version: NodeVersions.text) { Self.run($0) }
    }

    private static func run(_ invocation: Invocation) -> ExitCode {
        switch invocation.path {
        case ["dev"]: NodeCommands.dev(invocation)
        case ["serve"]: NodeCommands.serve(invocation)
        case ["cluster", "certificates"]: CertificatesCommand.run(invocation)
        case ["cluster", "convert"]: ConvertCommand.run(invocation)
        case ["cluster", "recover"]: RecoverCommand.run(invocation)
        case ["data-directory", "seal"]: SealCommand.seal(invocation)
        case ["data-directory", "unseal"]: SealCommand.unseal(invocation)
        case ["config", "check"]: ConfigurationCommands.check(invocation)
        case ["config", "print"]: ConfigurationCommands.print(invocation)
        case ["config", "example"]:
            Terminal.write(ConfigurationPages.example()) ? .success : .inputOutput
        default: preconditionFailure("'\(invocation.path)' is declared and goes nowhere")
        }
    }
}
