/// The text of `Docs/reference/command-line.md`, made from the declarations of the programs. A test
/// fails when the page differs.
package enum CommandLinePages {
    package static func reference(of programs: [CommandDefinition]) -> String {
        var text = """
            # Command line

            This page shows the `--help` of every program and command, made from the same declarations. \
            Give an option's value as `--name value` or `--name=value`; `--` ends the options. A program's \
            options may stand before or after its commands. For an unknown word, the program suggests the \
            nearest known one.

            ## Exit codes

            The codes are those of `sysexits.h`, where it has one.

            | Code | Meaning |
            | --- | --- |

            """
        for code in ExitCode.allCases { text += "| \(code.rawValue) | \(code.meaning) |\n" }
        for program in programs {
            text += "\n## \(program.name)\n" + Self.commands([program])
        }
        return text
    }

    private static func commands(_ chain: [CommandDefinition]) -> String {
        var text = ""
        if chain.count > 1 {
            text += "\n### \(chain.map(\.name).joined(separator: " "))\n"
        }
        text += "\n```text\n\(HelpText.write(chain, width: 100))```\n"
        for command in chain[chain.count - 1].subcommands {
            text += Self.commands(chain + [command])
        }
        return text
    }
}
