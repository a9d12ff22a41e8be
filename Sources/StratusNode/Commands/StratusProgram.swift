import Glibc
package import StratusCommandLine

/// The program `stratus`: what it takes, and where each command goes.
package enum StratusProgram {
    package static let definition = CommandDefinition(
        "stratus", "The CloudKit you run yourself",
        discussion: [
            "A store for records and assets that speaks CloudKit Web Services. 'stratus dev' starts "
                + "one for development at once; 'stratus serve' runs a node from a configuration; "
                + "'stratusctl' talks to a node that runs."
        ],
        subcommands: [
            CommandDefinition(
                "config", "Check, show and explain configurations",
                subcommands: [
                    CommandDefinition(
                        "check",
                        "Hold a configuration against every rule, without starting anything",
                        discussion: [
                            "Prints one line for each problem: file, line, column, key, what is allowed "
                                + "and the nearest key. Variables STRATUS_… count, as they would at the "
                                + "start."
                        ],
                        options: [.flag("json", nil, "Print the problems as JSON")],
                        positionals: [
                            PositionalDefinition("FILE", .file, "the configuration, JSON5")
                        ],
                        examples: [
                            .init("stratus config check /etc/stratus.json5", "Before a restart")
                        ]),
                    CommandDefinition(
                        "print", "Show every value and where it comes from",
                        options: [
                            .value("config", .file, "The configuration, JSON5"),
                            .flag("changed", nil, "Only what is not the default"),
                            .flag("json", nil, "Print JSON"),
                        ],
                        examples: [
                            .init(
                                "stratus config print --config /etc/stratus.json5 --changed",
                                "What this machine does differently")
                        ]),
                    CommandDefinition(
                        "example", "Print a commented configuration with every key and its default",
                        examples: [
                            .init("stratus config example > stratus.json5", "A file to start from")
                        ]),
                ])
        ])

    /// The whole of `main.swift`, where code at the top level would belong to the main actor.
    package static func main() -> Never {
        exit(Self.run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    /// Runs one command line.
    ///
    /// - Parameter arguments: the words after the program's name.
    package static func run(_ arguments: [String]) -> ExitCode {
        let parser = CommandLineParser(Self.definition, width: min(100, Terminal.width))
        switch parser.parse(arguments) {
        case .help(let text):
            return Terminal.write(text) ? .success : .inputOutput
        case .version(let json):
            return Terminal.write(VersionText.write(json: json)) ? .success : .inputOutput
        case .refused(let error):
            Terminal.write(error.description + "\n", to: Terminal.errors)
            return .usage
        case .run(let invocation):
            return Self.run(invocation)
        }
    }

    private static func run(_ invocation: Invocation) -> ExitCode {
        switch invocation.path {
        case ["config", "check"]: ConfigurationCommands.check(invocation)
        case ["config", "print"]: ConfigurationCommands.print(invocation)
        case ["config", "example"]:
            Terminal.write(ConfigurationPages.example()) ? .success : .inputOutput
        default: preconditionFailure("'\(invocation.path)' is declared and goes nowhere")
        }
    }
}
