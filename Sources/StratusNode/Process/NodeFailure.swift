package import StratusCommandLine

/// The reason why a node did not start, in words for the person who started it, and the program's
/// exit code (O-17).
package struct NodeFailure: Error, Sendable, CustomStringConvertible {
    package var code: ExitCode
    package var description: String

    package init(_ code: ExitCode, _ description: String) {
        self.code = code
        self.description = description
    }
}
