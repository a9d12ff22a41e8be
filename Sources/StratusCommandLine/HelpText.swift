/// `--help`, written from the declaration: usage, what it does, commands, options, examples.
package enum HelpText {
    /// - Parameter chain: the program and the commands down to the one that is explained.
    package static func write(_ chain: [CommandDefinition], width: Int) -> String {
        precondition(!chain.isEmpty, "help for nothing")
        let command = chain[chain.count - 1]
        var lines = ["\(chain.map(\.name).joined(separator: " ")): \(command.summary)", ""]
        lines.append("Usage: " + Self.usage(chain))
        for paragraph in command.discussion {
            lines.append("")
            lines += Self.wrap(paragraph, width: width, indent: 0)
        }
        if !command.subcommands.isEmpty {
            lines += ["", "Commands:"]
            lines += Self.list(command.subcommands.map { ($0.name, $0.summary) }, width: width)
        }
        if !command.positionals.isEmpty {
            lines += ["", "Arguments:"]
            lines += Self.list(command.positionals.map { ($0.name, $0.summary) }, width: width)
        }
        lines += Self.options(chain, width: width)
        if !command.examples.isEmpty {
            lines += ["", "Examples:"]
            for example in command.examples {
                lines += Self.wrap("# " + example.says, width: width, indent: 2)
                lines.append("  " + example.command)
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// The command's own options first, then those of the commands that it belongs to, and last
    /// those of the whole program.
    private static func options(_ chain: [CommandDefinition], width: Int) -> [String] {
        let own = chain.dropFirst().reversed().flatMap(\.options)
        let common = chain[0].options + CommandDefinition.common
        func list(_ heading: String, _ options: [OptionDefinition]) -> [String] {
            options.isEmpty
                ? []
                : ["", heading]
                    + Self.list(options.map { (Self.left($0), Self.right($0)) }, width: width)
        }
        return list("Options:", own)
            + list(own.isEmpty ? "Options:" : "Options of every command:", common)
    }

    /// One line: the commands, what must stand after them, what may.
    package static func usage(_ chain: [CommandDefinition]) -> String {
        let command = chain[chain.count - 1]
        var words = chain.map(\.name)
        if !command.subcommands.isEmpty { words.append("COMMAND") }
        words += command.positionals.map { $0.required ? $0.name : "[\($0.name)]" }
        let options = chain.flatMap(\.options)
        words += options.filter(\.required).map(Self.left)
        if options.contains(where: { !$0.required }) { words.append("[OPTIONS]") }
        return words.joined(separator: " ")
    }

    static func left(_ option: OptionDefinition) -> String {
        var text = option.letter.map { "-\($0), " } ?? ""
        text += "--" + option.name
        if let value = option.value { text += " " + value.placeholder }
        return text
    }

    static func right(_ option: OptionDefinition) -> String {
        var text = option.summary
        if option.required { text += " (required)" }
        if option.repeats { text += " (may be given more than once)" }
        if let value = option.default { text += " (default: \(value))" }
        if let name = option.variable { text += " (or \(name))" }
        return text
    }

    private static func list(_ rows: [(left: String, right: String)], width: Int) -> [String] {
        let column = min(30, (rows.map(\.left.count).max() ?? 0) + 4)
        return rows.flatMap { row in
            let wrapped = Self.wrap(row.right, width: width, indent: column)
            let left = "  " + row.left
            guard left.count + 2 <= column, let first = wrapped.first else {
                return [left] + wrapped
            }
            let padded = left + String(repeating: " ", count: column - left.count)
            return [padded + first.dropFirst(column)] + wrapped.dropFirst()
        }
    }

    /// Breaks at spaces; a word longer than a line stays whole.
    static func wrap(_ text: String, width: Int, indent: Int) -> [String] {
        let margin = String(repeating: " ", count: indent)
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, indent + line.count + 1 + word.count > width {
                lines.append(margin + line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return lines + [margin + line]
    }
}
