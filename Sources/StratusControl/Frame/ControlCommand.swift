import StratusCommandLine

/// A command of `stratusctl`: what it takes, and what it does. Or a group of commands.
///
/// ``ControlProgram/commands`` is the table of them. The parser, the help and the reference page
/// read it, and so does whoever runs a command: one that is declared cannot go nowhere.
struct ControlCommand: Sendable {
    typealias Run = @Sendable (ControlContext) async throws(AdminClient.Failure) -> ExitCode

    private enum Content: Sendable {
        case run(Run)
        case group([ControlCommand])
    }

    /// What it takes, and all of its commands.
    let definition: CommandDefinition
    private let content: Content

    /// - Parameter run: a method of the group that does the work.
    init<Group: AdminConversation>(
        _ name: String, _ summary: String, discussion: [String] = [],
        options: [OptionDefinition] = [], positionals: [PositionalDefinition] = [],
        examples: [CommandDefinition.Example] = [],
        run: @escaping @Sendable (Group) -> () async throws(AdminClient.Failure) -> ExitCode
    ) {
        self.definition = CommandDefinition(
            name, summary, discussion: discussion, options: options, positionals: positionals,
            examples: examples)
        self.content = .run { context throws(AdminClient.Failure) in
            try await run(Group(context))()
        }
    }

    init(
        _ name: String, _ summary: String, discussion: [String] = [],
        options: [OptionDefinition] = [], subcommands: [ControlCommand]
    ) {
        self.definition = CommandDefinition(
            name, summary, discussion: discussion, options: options,
            subcommands: subcommands.map(\.definition))
        self.content = .group(subcommands)
    }

    /// What the command behind these words does; nil: there is none, or it is a group.
    static func run(_ path: some Collection<String>, in commands: [ControlCommand]) -> Run? {
        guard let name = path.first,
            let found = commands.first(where: { $0.definition.name == name })
        else { return nil }
        switch found.content {
        case .run(let run): return path.count == 1 ? run : nil
        case .group(let commands): return Self.run(path.dropFirst(), in: commands)
        }
    }
}
