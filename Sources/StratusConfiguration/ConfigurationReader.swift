import StratusCommandLine
import StratusModel
package import StratusProcess

/// Holds a configuration file and the environment against the table of keys.
///
/// Every problem is found in one pass, not only the first: who fixes a file by trial and error
/// starts a node once.
package struct ConfigurationReader {
    package typealias PathState = SmallFile.PathState

    private let probe: (String) -> PathState
    private var settings = ConfigurationSettings()
    private var problems: [ConfigurationProblem] = []

    /// - Parameter probe: looks at a path; injected so that the checks can be tested without a
    ///   disk.
    package init(probe: @escaping (String) -> PathState) { self.probe = probe }

    package struct Result: Sendable {
        package var settings: ConfigurationSettings
        /// Empty when the node may start.
        package var problems: [ConfigurationProblem]
        /// `STRATUS_…` variables that are no key. Not fatal: an orchestrator that names a service
        /// "stratus" puts `STRATUS_PORT` and the like into every container beside it.
        package var unknownVariables: [ConfigurationProblem]
    }

    /// - Parameters:
    ///   - file: its path as given, and its text; nil to run on defaults and the environment.
    ///   - environment: all variables.
    ///   - overrides: values from the command line, which win over everything.
    package mutating func read(
        file: (path: String, text: String)?, environment: [(name: String, value: String)],
        overrides: [(path: String, value: ConfigurationValue, option: String)] = []
    ) -> Result {
        if let file { self.read(file.path, file.text) }
        let unknown = self.read(environment)
        for override in overrides {
            self.settings.set(override.path, override.value, .commandLine(override.option))
        }
        // Combinations of values that are wrong already say nothing new.
        if self.problems.isEmpty {
            self.problems += ConfigurationRules.problems(self.settings)
            self.checkFiles()
        }
        return Result(
            settings: self.settings, problems: self.problems, unknownVariables: unknown)
    }

    // MARK: The file

    private mutating func read(_ path: String, _ text: String) {
        do {
            let root = try JSON5Parser.parse(text)
            self.readObject(root, prefix: "", path: path)
        } catch {
            self.problems.append(
                ConfigurationProblem(.file(path, error.position), key: nil, error.text))
        }
    }

    private mutating func readObject(_ value: JSON5Value, prefix: String, path: String) {
        guard case .object(let members) = value.kind else {
            let place = prefix.isEmpty ? nil : prefix
            self.problems.append(
                ConfigurationProblem(
                    .file(path, value.position), key: place,
                    "must be an object, not \(value.kindName)"))
            return
        }
        for member in members {
            let name = prefix.isEmpty ? member.key : prefix + "." + member.key
            if let key = ConfigurationKey.named(name) {
                self.take(key, member.value, path: path)
            } else if ConfigurationKey.all.contains(where: { $0.path.hasPrefix(name + ".") }) {
                self.readObject(member.value, prefix: name, path: path)
            } else {
                self.problems.append(
                    ConfigurationProblem(
                        .file(path, member.position), key: name, "there is no such key",
                        suggestion: ConfigurationKey.nearest(to: name)))
            }
        }
    }

    private mutating func take(_ key: ConfigurationKey, _ value: JSON5Value, path: String) {
        // `null` says "as if I were not here", which is how one comments out a value with a comma.
        if case .null = value.kind { return }
        do {
            let read = try Self.value(value, of: key.kind)
            let resolved = Self.resolve(read, key.kind, besides: path)
            self.settings.set(key.path, resolved, .file(path, value.position))
        } catch {
            self.problems.append(
                ConfigurationProblem(.file(path, error.position), key: key.path, error.text))
        }
    }

    private static func value(_ value: JSON5Value, of kind: ConfigurationKind)
        throws(JSON5Error) -> ConfigurationValue
    {
        func wrong(_ found: String) -> JSON5Error {
            JSON5Error(
                position: value.position, text: "must be \(kind.allowed), not \(found)")
        }
        switch (kind, value.kind) {
        case (.bool, .bool(let flag)): return .bool(flag)
        case (.integer, .number(let number)), (.size, .number(let number)):
            guard let whole = Int(exactly: number), let read = Self.value("\(whole)", of: kind)
            else { throw wrong("\(number)") }
            return read
        case (.list(let kind), .array(let values)):
            var list: [ConfigurationValue] = []
            for value in values { list.append(try Self.value(value, of: kind)) }
            return .list(list)
        case (.list, _), (.bool, _), (.integer, _): throw wrong(value.kindName)
        case (_, .string(let text)):
            guard let read = Self.value(text, of: kind) else {
                throw wrong(ConfigurationValue.text(text).source)
            }
            return read
        default: throw wrong(value.kindName)
        }
    }

    /// Reads text as it stands in quotes or in the environment; nil when it is not of the kind.
    static func value(_ text: String, of kind: ConfigurationKind) -> ConfigurationValue? {
        switch kind {
        case .bool: return text == "true" ? .bool(true) : text == "false" ? .bool(false) : nil
        case .integer(let range):
            return Int(text).flatMap { range.contains($0) ? .integer($0) : nil }
        case .size(let range):
            return SizeText.parse(text).flatMap {
                range.contains($0) ? .size(ByteCount($0)) : nil
            }
        case .duration(let range):
            return DurationText.parse(text).flatMap { range.contains($0) ? .duration($0) : nil }
        case .choice(let words): return words.contains(text) ? .text(text) : nil
        case .address: return ListenAddress(text) == nil ? nil : .text(text)
        case .text, .file, .secretFile, .path:
            return text.isEmpty || text.utf8.contains(0) ? nil : .text(text)
        case .list(let kind):
            if text.isEmpty { return .list([]) }
            let parts = text.split(separator: ",", omittingEmptySubsequences: false).map {
                Self.value(String($0), of: kind)
            }
            let read = parts.compactMap { $0 }
            return read.count == parts.count ? .list(read) : nil
        }
    }

    /// A relative path in a file counts from the file, wherever the node was started.
    private static func resolve(
        _ value: ConfigurationValue, _ kind: ConfigurationKind, besides path: String
    ) -> ConfigurationValue {
        switch (kind, value) {
        case (.file, .text(let text)), (.secretFile, .text(let text)), (.path, .text(let text)):
            guard !text.hasPrefix("/"), let slash = path.lastIndex(of: "/") else { return value }
            return .text(path[...slash] + text)
        default: return value
        }
    }

    // MARK: The environment

    private mutating func read(_ environment: [(name: String, value: String)])
        -> [ConfigurationProblem]
    {
        var unknown: [ConfigurationProblem] = []
        let names = ConfigurationKey.all.map(\.environmentName)
        for (name, text) in environment.sorted(by: { $0.name < $1.name })
        where name.hasPrefix("STRATUS_") {
            guard let key = ConfigurationKey.all.first(where: { $0.environmentName == name }) else {
                unknown.append(
                    ConfigurationProblem(
                        .environment(name), key: nil, "there is no such key",
                        suggestion: Suggestion.nearest(to: name, among: names)))
                continue
            }
            if let value = Self.value(text, of: key.kind) {
                self.settings.set(key.path, value, .environment(name))
            } else {
                self.problems.append(
                    ConfigurationProblem(
                        .environment(name), key: key.path,
                        "must be \(Self.inEnvironment(key.kind)), not "
                            + ConfigurationValue.text(text).source))
            }
        }
        return unknown
    }

    private static func inEnvironment(_ kind: ConfigurationKind) -> String {
        guard case .list(let kind) = kind else { return kind.allowed }
        return "values separated by commas, each: \(kind.allowed)"
    }

    // MARK: Files that must be there

    private mutating func checkFiles() {
        for key in ConfigurationKey.all {
            guard key.kind == .file || key.kind == .secretFile,
                let path = self.settings.text(key.path)
            else { continue }
            if let text = Self.problem(
                self.probe(path), path: path, secret: key.kind == .secretFile)
            {
                self.problems.append(
                    ConfigurationProblem(self.settings.origin(key.path), key: key.path, text))
            }
        }
    }

    /// Also for secret files that are named elsewhere.
    package static func problem(_ state: PathState, path: String, secret: Bool) -> String? {
        switch state {
        case .absent: return "'\(path)' does not exist"
        case .unreadable(let why): return "'\(path)' cannot be read: \(why)"
        case .directory: return "'\(path)' is a directory, not a file"
        case .file(let mode):
            // Its group may read, so that a key can belong to root and be lent to the node.
            guard secret, mode & 0o027 != 0 else { return nil }
            let octal = String(mode & 0o777, radix: 8)
            return "'\(path)' holds a secret and its mode \(octal) lets others read or change it; "
                + "run 'chmod 600 \(path)'"
        }
    }
}
