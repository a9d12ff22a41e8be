package import StratusCommandLine
import StratusModel
import StratusProcess

/// Reads a configuration from this machine: its file, its variables, its permissions.
package enum ConfigurationLoading {
    package struct Refusal: Error, Sendable {
        package var code: ExitCode
        /// One line for each problem.
        package var lines: [String]

        package init(code: ExitCode, lines: [String]) {
            self.code = code
            self.lines = lines
        }
    }

    package typealias Override = (path: String, value: ConfigurationValue, option: String)

    /// - Parameter path: nil to run on defaults, variables and overrides.
    package static func load(_ path: String?, overrides: [Override] = [])
        throws(Refusal) -> ConfigurationReader.Result
    {
        var file: (path: String, text: String)?
        if let path {
            do {
                let bytes = try SmallFile.read(path)
                guard let text = String(validating: bytes, as: UTF8.self) else {
                    throw Refusal(code: .configuration, lines: ["\(path): is not UTF-8"])
                }
                file = (path, text)
            } catch let failure as SmallFile.Failure {
                throw Refusal(code: .missingInput, lines: [failure.description])
            } catch let refusal as Refusal {
                throw refusal
            } catch {
                preconditionFailure("reading a file throws \(error)")
            }
        }
        var reader = ConfigurationReader(probe: SmallFile.state)
        return reader.read(file: file, environment: Terminal.environment, overrides: overrides)
    }
}

extension ConfigurationReader.Result {
    /// The settings, if nothing is wrong with them.
    package func sound() throws(ConfigurationLoading.Refusal) -> ConfigurationSettings {
        guard self.problems.isEmpty else {
            throw ConfigurationLoading.Refusal(
                code: .configuration, lines: self.problems.map(\.description))
        }
        return self.settings
    }
}
