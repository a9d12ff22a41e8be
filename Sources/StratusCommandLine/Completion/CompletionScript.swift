/// Scripts that complete a program's commands, options and values in a shell. They are made from
/// the program's declaration and ask nobody.
package enum CompletionScript: String, Sendable, CaseIterable {
    case bash, zsh, fish

    package func text(of program: CommandDefinition) -> String {
        let table = CompletionTable(program)
        let body =
            switch self {
            case .bash: BashCompletion(table: table).text
            case .zsh: ZshCompletion(table: table).text
            case .fish: FishCompletion(table: table).text
            }
        return body
    }

    /// The name by which the shell finds the script.
    package func fileName(of program: CommandDefinition) -> String {
        switch self {
        case .bash: program.name
        case .zsh: "_\(program.name)"
        case .fish: "\(program.name).fish"
        }
    }
}
