/// A program or one of its commands, declared: the parser, the help and the reference page all read
/// this and nothing else.
///
/// A command either has subcommands or runs. Its options hold for all of its subcommands too and
/// may stand anywhere after the command that declares them.
package struct CommandDefinition: Sendable, Equatable {
    package struct Example: Sendable, Equatable {
        package var command: String
        package var says: String
        package init(_ command: String, _ says: String) {
            self.command = command
            self.says = says
        }
    }

    package var name: String
    /// One sentence for the list of commands, without a full stop.
    package var summary: String
    /// The background a user needs before running it: paragraphs, wrapped when shown.
    package var discussion: [String]
    package var options: [OptionDefinition]
    package var positionals: [PositionalDefinition]
    package var examples: [Example]
    package var subcommands: [CommandDefinition]

    package init(
        _ name: String, _ summary: String, discussion: [String] = [],
        options: [OptionDefinition] = [], positionals: [PositionalDefinition] = [],
        examples: [Example] = [], subcommands: [CommandDefinition] = []
    ) {
        precondition(
            subcommands.isEmpty || positionals.isEmpty,
            "the word after '\(name)' cannot be both a command and a value")
        self.name = name
        self.summary = summary
        self.discussion = discussion
        self.options = options
        self.positionals = positionals
        self.examples = examples
        self.subcommands = subcommands
    }

    /// The options that every command of every program takes.
    package static let common: [OptionDefinition] = [
        .flag("help", "h", "Show this help and stop"),
        .flag("version", nil, "Show the versions of Stratus and of the libraries in use, and stop"),
    ]
}
