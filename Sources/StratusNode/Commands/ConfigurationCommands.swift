import StratusAdmin
import StratusCommandLine
import StratusConfiguration
import StratusHTTP
import StratusProcess

/// `stratus config …`
enum ConfigurationCommands {
    static func check(_ invocation: Invocation) -> ExitCode {
        let path = invocation.value("FILE")
        let result: ConfigurationReader.Result
        let isJSON = invocation.flag("json")
        do { result = try ConfigurationLoading.load(path) } catch {
            return Self.fail(error, asJSON: isJSON)
        }
        if result.problems.isEmpty {
            // The start would say the same of the first of them.
            let unusable = CertificateCheck.problems(result.settings)
            guard unusable.isEmpty else {
                return Self.fail(
                    ConfigurationLoading.Refusal(code: .configuration, lines: unusable),
                    asJSON: isJSON)
            }
        }
        let warnings =
            result.problems.isEmpty
            ? [KeyBesideData.warning(result.settings)].compactMap(\.self) : []
        if isJSON {
            Terminal.write(Self.json(result.problems, warnings))
        } else {
            for unknown in result.unknownVariables {
                Terminal.write("ignored: \(unknown)\n", to: Terminal.errors)
            }
            for problem in result.problems { Terminal.write("\(problem)\n", to: Terminal.errors) }
            for warning in warnings {
                Terminal.write("\(path): warning: \(warning)\n", to: Terminal.errors)
            }
            if result.problems.isEmpty { Terminal.write("\(path): good\n") }
        }
        return result.problems.isEmpty ? .success : .configuration
    }

    static func print(_ invocation: Invocation) -> ExitCode {
        let settings: ConfigurationSettings
        let isJSON = invocation.flag("json")
        do { settings = try ConfigurationLoading.load(invocation["config"]).sound() } catch {
            return Self.fail(error, asJSON: isJSON)
        }
        var rows = settings.rows()
        if invocation.flag("changed") { rows.removeAll { $0.origin == "default" } }
        if invocation.flag("json") {
            var json = JSONWriter()
            json.beginArray()
            for row in rows {
                json.beginObject()
                json.member("key", row.key)
                json.key("value")
                if let value = row.value { json.write(raw: value.utf8) } else { json.writeNull() }
                json.member("origin", row.origin)
                json.member("reloads", row.reloads)
                json.endObject()
            }
            json.endArray()
            return Terminal.write(String(decoding: json.finish(), as: UTF8.self) + "\n")
                ? .success : .inputOutput
        }
        var table = TextTable([.init("KEY"), .init("VALUE"), .init("FROM")])
        for row in rows { table.append([row.key, row.value ?? "none", row.origin]) }
        return Terminal.write(table.write()) ? .success : .inputOutput
    }

    static func fail(_ refusal: ConfigurationLoading.Refusal, asJSON: Bool = false) -> ExitCode {
        if asJSON {
            Terminal.write(
                ProgramFront.json(refusal.lines.joined(separator: "\n"), refusal.code) + "\n")
            return refusal.code
        }
        for line in refusal.lines { Terminal.write("stratus: \(line)\n", to: Terminal.errors) }
        return refusal.code
    }

    private static func json(
        _ problems: [ConfigurationProblem], _ warnings: [String]
    ) -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("good", problems.isEmpty)
        json.member("problems", objects: problems) { json, problem in
            json.member("at", problem.origin.description)
            if case .file(let path, let position) = problem.origin {
                json.member("file", path)
                json.member("line", position.line)
                json.member("column", position.column)
            }
            if let key = problem.key { json.member("key", key) }
            json.member("text", problem.text)
            if let suggestion = problem.suggestion { json.member("suggestion", suggestion) }
        }
        json.key("warnings")
        json.array { for warning in warnings { $0.write(warning) } }
        json.endObject()
        return String(decoding: json.finish(), as: UTF8.self) + "\n"
    }
}
