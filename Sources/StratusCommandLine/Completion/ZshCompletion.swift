/// For zsh: the same walk as in bash, with the summaries beside the words.
struct ZshCompletion {
    let table: CompletionTable

    var text: String {
        let name = self.table.function
        return """
            #compdef \(self.table.name)
            # Completion of \(self.table.name) in zsh, made from the program's own table.

            # Adds what may stand behind the commands $1.
            \(name)_at() {
                commands=() arguments=()
                case $1 in
            \(self.table.rows.map(self.row).joined())    esac
            }

            # Offers the values that $1 stands for.
            \(name)_offer() {
                case $1 in
                    @file) _files ;;
                    @directory) _files -/ ;;
                    @none) _message 'a value' ;;
                    *) compadd -- ${=1} ;;
                esac
            }

            \(name)() {
                local at= typed
                local -i index place=0
                local -a commands options arguments
                local -A values
                \(name)_at ''
                for ((index = 2; index < CURRENT; index++)); do
                    typed=${words[index]}
                    if [[ -n ${values[$typed]-} ]]; then
                        index+=1
                    elif [[ $typed == -* ]]; then
                        continue
                    elif [[ -n ${(M)commands:#$typed:*} ]]; then
                        at="${at:+$at }$typed"
                        \(name)_at "$at"
                    else
                        place+=1
                    fi
                done
                typed=${words[CURRENT]}
                if [[ $typed == --*=* && -n ${values[${typed%%=*}]-} ]]; then
                    compset -P '*='
                    \(name)_offer "${values[${typed%%=*}]}"
                elif [[ -n ${values[${words[CURRENT - 1]}]-} ]]; then
                    \(name)_offer "${values[${words[CURRENT - 1]}]}"
                elif [[ $typed == -* ]]; then
                    _describe -o option options
                elif (( ${#commands} )); then
                    _describe command commands
                else
                    \(name)_offer "${arguments[place + 1]:-@none}"
                fi
            }

            \(name) "$@"

            """
    }

    private func row(_ row: CompletionTable.Row) -> String {
        let quoted = CompletionTable.quoted
        var lines = ["        \(quoted(row.path)))"]
        if !row.commands.isEmpty {
            lines.append("commands=(")
            for command in row.commands {
                lines.append("    \(Self.described(command.name, command.summary))")
            }
            lines.append(")")
        }
        if !row.options.isEmpty {
            lines.append("options+=(")
            for option in row.options {
                for form in CompletionTable.forms(option) {
                    lines.append("    \(Self.described(form, option.summary))")
                }
            }
            lines.append(")")
        }
        for option in row.options {
            guard let value = option.value else { continue }
            for form in CompletionTable.forms(option) {
                lines.append("values[\(form)]=\(quoted(CompletionTable.offer(value)))")
            }
        }
        if !row.positionals.isEmpty {
            let offers = row.positionals.map { quoted(CompletionTable.offer($0.value)) }
            lines.append("arguments=(\(offers.joined(separator: " ")))")
        }
        return lines.joined(separator: "\n            ") + " ;;\n"
    }

    /// A word and what it does. The first colon parts them.
    private static func described(_ word: String, _ summary: String) -> String {
        CompletionTable.quoted(word + ":" + summary)
    }
}
