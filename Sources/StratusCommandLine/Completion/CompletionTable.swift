/// What may be typed where, flat: a row for a program and for each of its commands. The scripts for
/// shells are made of it.
struct CompletionTable {
    struct Row {
        /// The words behind the program's name: `cluster status`; empty for the program.
        var path: String
        var commands: [CommandDefinition]
        /// Its own; those of the rows above it count as well.
        var options: [OptionDefinition]
        var positionals: [PositionalDefinition]
    }

    let name: String
    let rows: [Row]

    init(_ program: CommandDefinition) {
        self.name = program.name
        var rows: [Row] = []
        func add(_ command: CommandDefinition, _ path: [String]) {
            rows.append(
                Row(
                    path: path.joined(separator: " "), commands: command.subcommands,
                    options: command.options + (path.isEmpty ? CommandDefinition.common : []),
                    positionals: command.positionals))
            for next in command.subcommands { add(next, path + [next.name]) }
        }
        add(program, [])
        self.rows = rows
    }

    /// The name of the shell's functions: a dash is a sign to some shells.
    var function: String { "_" + self.name.replacing("-", with: "_") }

    /// `--name`, and `-n` where there is one.
    static func forms(_ option: OptionDefinition) -> [String] {
        (option.letter.map { ["-\($0)"] } ?? []) + ["--\(option.name)"]
    }

    /// What a shell offers for a value: a mark of ours, or the words themselves.
    static func offer(_ kind: ValueKind) -> String {
        switch kind {
        case .choice(let words): words.joined(separator: " ")
        case .file: "@file"
        case .directory: "@directory"
        case .text, .address, .integer, .duration: "@none"
        }
    }

    /// A word in quotes, for all three shells: none of our texts ends with a backslash.
    static func quoted(_ text: String) -> String {
        "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
