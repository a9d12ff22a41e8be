import StratusCluster
import StratusCommandLine
import StratusConfiguration
import StratusProcess

/// What the commands share that work on the data directory of a stopped node.
enum OfflineCommand {
    struct Failure: Error {
        var code: ExitCode
        var text: String

        init(_ code: ExitCode, _ text: String) {
            self.code = code
            self.text = text
        }
    }

    /// - Parameter body: returns what to tell.
    static func run(_ body: () throws -> String) -> ExitCode {
        do {
            Terminal.write(try body())
            return .success
        } catch let refusal as ConfigurationLoading.Refusal {
            return ConfigurationCommands.fail(refusal)
        } catch {
            let (code, text): (ExitCode, String) =
                switch error {
                case let failure as Failure: (failure.code, failure.text)
                case let failure as NodeFailure: (failure.code, failure.description)
                case let refusal as ClusterMaster.Refusal: (.configuration, refusal.description)
                default: (.inputOutput, "\(error)")
                }
            Terminal.write("stratus: \(text)\n", to: Terminal.errors)
            return code
        }
    }
}
