package import StratusCommandLine

/// The handling of a command line that all programs share, before each does its own work.
package enum ProgramFront {
    /// Answers for help, the version and mistakes; everything else is `body`'s.
    ///
    /// - Parameter version: what `--version` prints.
    package static func run(
        _ definition: CommandDefinition, _ arguments: [String],
        version: @autoclosure () -> VersionText = Versions.common,
        _ body: (Invocation) -> ExitCode
    ) -> ExitCode {
        let parser = CommandLineParser(definition, width: min(100, Terminal.width))
        switch parser.parse(arguments) {
        case .help(let text):
            return Terminal.write(text) ? .success : .inputOutput
        case .version(let json):
            return Terminal.write(version().write(json: json)) ? .success : .inputOutput
        case .refused(let error):
            Terminal.write(error.description + "\n", to: Terminal.errors)
            return .usage
        case .run(let invocation):
            return body(invocation)
        }
    }
}
