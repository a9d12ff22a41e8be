/// For fish: a line for each command, option and value, with the commands behind which it stands.
struct FishCompletion {
    let table: CompletionTable

    var text: String {
        let name = "_\(self.table.function)"
        let paths = self.table.rows.map(\.path).filter { !$0.isEmpty }
        let valued = self.table.rows.flatMap(\.options).filter { $0.value != nil }
            .flatMap(CompletionTable.forms)
        let isEverywhere = Set(valued).sorted().joined(separator: " ")
        let lines = self.table.rows.flatMap(self.row)
        return """
            # Completion of \(self.table.name) in fish, made from the program's own table.

            set -g \(name)_paths \(paths.map(CompletionTable.quoted).joined(separator: " "))
            set -g \(name)_valued \(isEverywhere)

            # The commands that were typed so far.
            function \(name)_typed
                set -l at
                set -l skip 0
                for word in (commandline -opc)[2..]
                    if test $skip = 1
                        set skip 0
                    else if contains -- $word $\(name)_valued
                        set skip 1
                    else if not string match -q -- '-*' $word
                        set -l next (string trim -- "$at $word")
                        contains -- $next $\(name)_paths; and set at $next
                    end
                end
                echo $at
            end

            # Whether the commands $argv[1] were typed, and none below them.
            function \(name)_at
                test (\(name)_typed) = "$argv[1]"
            end

            # Whether the commands $argv[1] were typed, or commands below them.
            function \(name)_under
                string match -q -- "$argv[1] *" (\(name)_typed)" "
            end

            complete -c \(self.table.name) -f
            \(lines.joined(separator: "\n"))

            """
    }

    private func row(_ row: CompletionTable.Row) -> [String] {
        let (name, program) = ("_\(self.table.function)", self.table.name)
        let quoted = CompletionTable.quoted
        let at = "-n \(quoted("\(name)_at \"\(row.path)\""))"
        let under = row.path.isEmpty ? "" : " -n \(quoted("\(name)_under \"\(row.path)\""))"
        var lines = row.commands.map {
            "complete -c \(program) \(at) -a \($0.name) -d \(quoted($0.summary))"
        }
        for option in row.options {
            var line = "complete -c \(program)\(under) -l \(option.name)"
            if let letter = option.letter { line += " -s \(letter)" }
            if let value = option.value { line += Self.value(value) }
            lines.append(line + " -d \(quoted(option.summary))")
        }
        for positional in row.positionals {
            switch positional.value {
            case .file, .directory: lines.append("complete -c \(program) \(at) -F")
            case .choice(let words):
                lines.append(
                    "complete -c \(program) \(at) -a \(quoted(words.joined(separator: " ")))")
            case .text, .address, .integer, .duration: break
            }
        }
        return lines
    }

    private static func value(_ kind: ValueKind) -> String {
        switch kind {
        case .choice(let words): " -x -a \(CompletionTable.quoted(words.joined(separator: " ")))"
        case .file: " -r -F"
        case .directory: " -x -a '(__fish_complete_directories)'"
        case .text, .address, .integer, .duration: " -x"
        }
    }
}
