import Glibc
package import StratusCommandLine
import StratusControl
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// The program `stratus-load`, but for its main file.
package enum LoadProgram {
    private static let place: [OptionDefinition] = [
        .value(
            "url", .text("URL"), repeats: true,
            "A server; more of them are tried in turn when one does not answer"),
        .value("authority", .file, "The authority of the servers' certificates, PEM"),
        .value(
            "container", .text("ID"), default: "iCloud.org.example.load", "The container to use"),
        .value(
            "environment", .choice(["development", "production"]), default: "development",
            "The environment"),
        .value("database", .choice(["private", "public"]), default: "private", "The database"),
        .value(
            "api-token", .text("TOKEN"), default: String(repeating: "0", count: 64),
            "An API token; 'stratus dev' takes any"),
        .value(
            "web-auth-token", .text("TOKEN"), repeats: true,
            "Who the clients are; more of them are spread over the clients"),
        .value("clients", .integer(1...10_000), default: "16", "Clients at once"),
        .value("seconds", .integer(1...86_400), default: "10", "How long"),
        .value("seed", .integer(0...1_000_000_000), default: "1", "Draws the same load again"),
        .value("json", .text("FILE"), "Write what was measured"),
        .value("html", .text("FILE"), "Write a page with plots"),
        .value(
            "marks", .file,
            "What was done to the servers, marked in the plots: a line is milliseconds since 1970, then a text"
        ),
    ]

    private static let load: [OptionDefinition] = [
        .value(
            "workload", .choice(Workload.all.map(\.name)), default: "cloudkit", "What clients do"),
        .value(
            "records", .integer(1...10_000_000), default: "10000", "Records there are to begin with"
        ),
        .value("value-size", .integer(1...900_000), default: "300", "Bytes of text in a record"),
        .flag("no-prepare", nil, "The records are there from an earlier load"),
    ]

    package static let definition = CommandDefinition(
        "stratus-load", "Puts load on a server and measures what its clients see",
        discussion: [
            "A client tries again, at the next server, until it has its answer, and the time that takes is one "
                + "latency. What was refused for good is counted and named."
        ],
        subcommands: [
            CommandDefinition(
                "run", "One workload against one kind of server",
                discussion: ["Workloads:"]
                    + Workload.all.map { "\($0.name): \($0.summary)." }
                    + [
                        "Clients wait for their answers. With --rate requests are sent when they are due, and "
                            + "latencies begin then, so that a server that stalls cannot hide it; --clients is then "
                            + "how many may be under way."
                    ],
                options: Self.place + Self.load + [
                    .value(
                        "target", .choice(["stratus", "etcd", "pocketbase"]), default: "stratus",
                        "What the servers are"),
                    .value("rate", .integer(1...1_000_000), "Operations a second, come what may"),
                ],
                examples: [
                    .init(
                        "stratus-load run --url http://127.0.0.1:8080 --web-auth-token development "
                            + "--workload ycsb-b --html load.html", "Against 'stratus dev'")
                ]),
            CommandDefinition(
                "registers", "Reads and writes of few records, checked for linearizability",
                discussion: [
                    "Every answer is remembered with the times of the question and the answer. At the end one order of "
                        + "operations must explain them all. Meant to run while nodes are killed and cut off."
                ],
                options: Self.place + [
                    .value("registers", .integer(1...1_000), default: "8", "Records"),
                    .value("history", .text("FILE"), "Write what the clients saw"),
                ]),
            CommandDefinition(
                "check", "Whether a history is linearizable",
                positionals: [
                    PositionalDefinition("FILE", .file, "written by 'registers --history'")
                ]
            ),
            CommandDefinition(
                "compare", "The same workload against several servers, in turn",
                discussion: [
                    "Rounds alternate, so that whatever else the machine does hits all of them. Shown are medians and "
                        + "ratios of the rounds. --url is the Stratus everything is held against."
                ],
                options: Self.place + Self.load + [
                    .value("etcd", .text("URL"), "An etcd"),
                    .value("pocketbase", .text("URL"), "A PocketBase with a collection 'items'"),
                    .value("rounds", .integer(1...100), default: "5", "Rounds"),
                ]),
            CommandDefinition("schema", "Print the schema that the container needs"),
        ])

    package static func run(_ arguments: [String]) -> ExitCode {
        ProgramFront.run(Self.definition, arguments) { invocation in
            Blocking.wait { await Self.run(invocation) }
        }
    }

    private static func run(_ invocation: Invocation) async -> ExitCode {
        do {
            switch invocation.path {
            case ["run"]: return try await LoadCommands(invocation).run()
            case ["registers"]: return try await LoadCommands(invocation).registers()
            case ["compare"]: return try await LoadCommands(invocation).compare()
            case ["check"]: return try LoadCommands.check(invocation.value("FILE"))
            case ["schema"]: return Terminal.write(StratusTarget.schema) ? .success : .inputOutput
            default: preconditionFailure("'\(invocation.path)' is declared and goes nowhere")
            }
        } catch {
            Terminal.write("stratus-load: \(error)\n", to: Terminal.errors)
            if (error as? LoadRun.Failure)?.isSilence == true { return .unavailable }
            return (error as? AdminClient.Failure)?.code ?? .refused
        }
    }
}
