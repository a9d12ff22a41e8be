import Glibc
import StratusCommandLine
import StratusConfiguration
import StratusControl
import StratusLoad
import StratusNode
import StratusProcess

/// Writes the man pages and completions of the programs that people run, for packages.
enum ManualProgram {
    private static let definition = CommandDefinition(
        "stratus-manual", "Write man pages and completions, as a package holds them",
        options: [
            .value("output", .directory, required: true, "Where share/man and the others go"),
            .value("date", .text("YYYY-MM-DD"), required: true, "The date on the pages"),
        ])

    private struct Failure: Error {
        var text: String
    }

    static func main() -> Never {
        let code = ProgramFront.run(
            Self.definition, Array(CommandLine.arguments.dropFirst())
        ) { invocation in
            do throws(Failure) {
                for (path, text) in Self.files(date: invocation.value("date")) {
                    try Self.write(text, to: invocation.value("output") + "/" + path)
                }
                return .success
            } catch {
                Terminal.write("stratus-manual: \(error.text)\n", to: Terminal.errors)
                return .cannotCreate
            }
        }
        exit(code.rawValue)
    }

    /// Path and text, in the folders where Debian looks.
    private static func files(date: String) -> [(path: String, text: String)] {
        let edition = ManualPage.Edition(version: Versions.stratus, date: date)
        var files: [(path: String, text: String)] = []
        for (program, also) in [
            (StratusProgram.definition, ["stratus.json5(5)", "stratusctl(1)"]),
            (ControlProgram.definition, ["stratus(1)"]),
            (LoadProgram.definition, ["stratus(1)"]),
        ] {
            for page in ManualPage.pages(of: program, edition, also: also) {
                files.append(("share/man/man\(page.section)/\(page.fileName)", page.text))
            }
            for shell in CompletionScript.allCases {
                let path = Self.folder(of: shell) + "/" + shell.fileName(of: program)
                files.append((path, shell.text(of: program)))
            }
        }
        let page = ConfigurationPages.manual(edition)
        files.append(("share/man/man\(page.section)/\(page.fileName)", page.text))
        return files
    }

    private static func folder(of shell: CompletionScript) -> String {
        switch shell {
        case .bash: "share/bash-completion/completions"
        case .zsh: "share/zsh/vendor-completions"
        case .fish: "share/fish/vendor_completions.d"
        }
    }

    private static func write(_ text: String, to path: String) throws(Failure) {
        for (index, character) in path.enumerated() where character == "/" && index > 0 {
            let folder = String(path.prefix(index))
            guard mkdir(folder, 0o755) == 0 || errno == EEXIST else {
                throw Failure(text: "cannot make '\(folder)': \(String(cString: strerror(errno)))")
            }
        }
        guard let file = fopen(path, "w") else {
            throw Failure(text: "cannot write '\(path)': \(String(cString: strerror(errno)))")
        }
        let isWritten = fputs(text, file) >= 0
        guard fclose(file) == 0, isWritten else {
            throw Failure(text: "cannot write all of '\(path)'")
        }
    }
}
