package import StratusCommandLine

/// Why a node did not start, in words for whoever started it, and how the program ends (O-17).
package struct NodeFailure: Error, Sendable, CustomStringConvertible {
    package var code: ExitCode
    package var description: String

    package init(_ code: ExitCode, _ description: String) {
        self.code = code
        self.description = description
    }
}
