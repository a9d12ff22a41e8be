/// For bash: a function that walks over the words so far, and one that holds the table.
struct BashCompletion {
    let table: CompletionTable

    var text: String {
        let name = self.table.function
        return """
            # Completion of \(self.table.name) in bash, made from the program's own table.

            # Adds what may stand behind the commands $1.
            \(name)_at() {
                commands= arguments=()
                case $1 in
            \(self.table.rows.map(self.row).joined())    esac
            }

            # Offers the values that $1 stands for, of which $word is the beginning.
            \(name)_offer() {
                case $1 in
                    @file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$word")) ;;
                    @directory) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$word")) ;;
                    @none) ;;
                    *) COMPREPLY=($(compgen -W "$1" -- "$word")) ;;
                esac
            }

            \(name)() {
                local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
                local commands at= options= index next place=0 typed
                local -a arguments
                local -A values=()
                COMPREPLY=()
                # Bash takes '--name=value' for three words.
                if [[ $word == = ]]; then
                    word=
                elif [[ $previous == = ]]; then
                    previous=${COMP_WORDS[COMP_CWORD - 2]}
                fi
                \(name)_at ''
                for ((index = 1; index < COMP_CWORD; index++)); do
                    typed=${COMP_WORDS[index]}
                    if [[ -n ${values[$typed]-} ]]; then
                        [[ ${COMP_WORDS[index + 1]} == = ]] && index=$((index + 1))
                        index=$((index + 1))
                    elif [[ $typed == -* || $typed == = ]]; then
                        continue
                    elif [[ " $commands " == *" $typed "* ]]; then
                        at="${at:+$at }$typed"
                        \(name)_at "$at"
                    else
                        place=$((place + 1))
                    fi
                done
                if [[ -n ${values[$previous]-} ]]; then
                    \(name)_offer "${values[$previous]}"
                elif [[ $word == -* ]]; then
                    \(name)_offer "$options"
                elif [[ -n $commands ]]; then
                    \(name)_offer "$commands"
                else
                    \(name)_offer "${arguments[place]:-@none}"
                fi
            }

            complete -F \(name) \(self.table.name)

            """
    }

    private func row(_ row: CompletionTable.Row) -> String {
        let quoted = CompletionTable.quoted
        var lines = ["        \(quoted(row.path)))"]
        if !row.commands.isEmpty {
            lines.append("commands=\(quoted(row.commands.map(\.name).joined(separator: " ")))")
        }
        let forms = row.options.flatMap(CompletionTable.forms)
        if !forms.isEmpty { lines.append("options+=\(quoted(" " + forms.joined(separator: " ")))") }
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
}
