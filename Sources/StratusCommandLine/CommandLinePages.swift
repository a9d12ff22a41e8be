/// `Docs/reference/command-line.md`, made from the declarations of the programs. A test keeps it in step.
package enum CommandLinePages {
    package static func reference(of programs: [CommandDefinition]) -> String {
        var text = """
            # Command line

            What the programs take: this is what their `--help` says, made from the same declarations. \
            Options take their value as `--name value` or `--name=value`; `--` ends the options; a program's \
            options may stand before or after its commands. A word that is not understood is answered with \
            the nearest one that would be.

            ## Exit codes

            Those of `sysexits.h` where it has one.

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
