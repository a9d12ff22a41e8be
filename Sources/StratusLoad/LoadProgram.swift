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
            "The server's URL; if several are given, a client tries the next one when one "
                + "does not answer"),
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
            "The clients' web-auth token; if several are given, the clients share them out"),
        .value("clients", .integer(1...10_000), default: "16", "The number of concurrent clients"),
        .value("seconds", .integer(1...86_400), default: "10", "How many seconds to run"),
        .value(
            "seed", .integer(0...1_000_000_000), default: "1",
            "The seed of the load: the same seed gives the same operations"),
        .value("json", .text("FILE"), "Write the results as JSON"),
        .value("html", .text("FILE"), "Write the results as a page with plots"),
        .value(
            "marks", .file,
            "Events to mark in the plots, such as faults: each line holds milliseconds since "
                + "1970, then a text"
        ),
    ]

    private static let load: [OptionDefinition] = [
        .value(
            "workload", .choice(Workload.all.map(\.name)), default: "cloudkit",
            "The operations that clients send"),
        .value(
            "records", .integer(1...10_000_000), default: "10000",
            "The number of records at the start"
        ),
        .value(
            "value-size", .integer(1...900_000), default: "300", "The bytes of text in a record"),
        .flag("no-prepare", nil, "Do not create the records: an earlier run has"),
    ]

    package static let definition = CommandDefinition(
        "stratus-load", "Puts load on a server and measures what its clients see",
        discussion: [
            "A client repeats an operation, at the next server, until it is answered; that "
                + "whole time is one latency. Operations that are refused for good are counted and "
                + "listed."
        ],
        subcommands: [
            CommandDefinition(
                "run", "Run one workload against one kind of server",
                discussion: ["Workloads:"]
                    + Workload.all.map { "\($0.name): \($0.summary)." }
                    + [
                        "Without --rate, each client waits for its answer before it sends the "
                            + "next request. With --rate, requests are sent when they are due, and "
                            + "latencies begin then, so that a stalled server cannot hide its "
                            + "delay. --clients then limits how many are in flight."
                    ],
                options: Self.place + Self.load + [
                    .value(
                        "target", .choice(["stratus", "etcd", "pocketbase"]), default: "stratus",
                        "The kind of server"),
                    .value(
                        "rate", .integer(1...1_000_000),
                        "The operations per second to send, however slow the answers are"),
                ],
                examples: [
                    .init(
                        "stratus-load run --url http://127.0.0.1:8080 --web-auth-token development "
                            + "--workload ycsb-b --html load.html", "Against 'stratus dev'")
                ]),
            CommandDefinition(
                "registers",
                "Read and write a few records, and check the history for linearizability",
                discussion: [
                    "Records every request and answer with its time. At the end, one order of "
                        + "operations must explain them all. Run it while nodes are killed and cut "
                        + "off."
                ],
                options: Self.place + [
                    .value("registers", .integer(1...1_000), default: "8", "The number of records"),
                    .value("history", .text("FILE"), "Write the history that the clients saw"),
                ],
                examples: [
                    .init(
                        "stratus-load registers --url http://127.0.0.1:8081 --url "
                            + "http://127.0.0.1:8082 --api-token TOKEN --web-auth-token TOKEN "
                            + "--seconds 60 --history history", "While nodes are killed")
                ]),
            CommandDefinition(
                "check", "Check whether a history is linearizable",
                positionals: [
                    PositionalDefinition(
                        "FILE", .file, "a history, written by 'registers --history'")
                ],
                examples: [
                    .init("stratus-load check history", "A history of an earlier run")
                ]
            ),
            CommandDefinition(
                "compare", "Run the same workload against several servers, in turn",
                discussion: [
                    "Rounds alternate between the servers, so that other load on the machine "
                        + "affects all of them. Prints medians and ratios of the rounds. --url is "
                        + "the Stratus that the others are compared with."
                ],
                options: Self.place + Self.load + [
                    .value("etcd", .text("URL"), "The URL of an etcd"),
                    .value(
                        "pocketbase", .text("URL"),
                        "The URL of a PocketBase with a collection 'items'"),
                    .value("rounds", .integer(1...100), default: "5", "The number of rounds"),
                ],
                examples: [
                    .init(
                        "stratus-load compare --url http://127.0.0.1:8080 --web-auth-token "
                            + "development --workload lookup --etcd http://127.0.0.1:2379",
                        "Look-ups, beside an etcd")
                ]),
            CommandDefinition(
                "schema", "Print the schema that the container needs",
                examples: [
                    .init("stratus-load schema > load.ckdb", "For 'stratusctl schema import'")
                ]),
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
