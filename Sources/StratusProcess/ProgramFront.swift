package import StratusCommandLine
import StratusHTTP

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
        let parser = CommandLineParser(
            definition, width: min(100, Terminal.width),
            variables: Dictionary(
                Terminal.environment.map { ($0.name, $0.value) },
                uniquingKeysWith: { one, _ in one }))
        switch parser.parse(arguments) {
        case .help(let text):
            return Terminal.write(text) ? .success : .inputOutput
        case .version(let json):
            return Terminal.write(version().write(json: json)) ? .success : .inputOutput
        case .refused(let error):
            // A script that asked for JSON reads what went wrong where it reads everything else.
            if arguments.contains("--json") {
                Terminal.write(Self.json(error.description, .usage) + "\n")
            } else {
                Terminal.write(error.description + "\n", to: Terminal.errors)
            }
            return .usage
        case .run(let invocation):
            return body(invocation)
        }
    }

    /// An error as a script reads it.
    package static func json(_ reason: String, _ code: ExitCode) -> String {
        var json = JSONWriter()
        json.object { json in
            json.key("error")
            json.object {
                $0.member("exitCode", Int64(code.rawValue))
                $0.member("reason", reason)
            }
        }
        return String(decoding: json.finish(), as: UTF8.self)
    }
}
