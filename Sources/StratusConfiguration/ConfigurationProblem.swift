/// One thing that is wrong with a configuration: where, which key, what is allowed, what was meant.
package struct ConfigurationProblem: Error, Sendable, Equatable, CustomStringConvertible {
    package var origin: ConfigurationOrigin
    /// Nil where the file itself does not parse.
    package var key: String?
    package var text: String
    package var suggestion: String?

    package init(
        _ origin: ConfigurationOrigin, key: String?, _ text: String, suggestion: String? = nil
    ) {
        self.origin = origin
        self.key = key
        self.text = text
        self.suggestion = suggestion
    }

    /// `stratus.json5:12:5: log.levle: there is no such key; did you mean 'log.level'?`
    package var description: String {
        var line = "\(self.origin): "
        if let key { line += "\(key): " }
        line += self.text
        if let suggestion { line += "; did you mean '\(suggestion)'?" }
        return line
    }
}

/// The origin of a value. A later case in this list overrides an earlier one.
package enum ConfigurationOrigin: Sendable, Equatable, CustomStringConvertible {
    case `default`
    case file(String, SourcePosition)
    case environment(String)
    case commandLine(String)

    package var description: String {
        switch self {
        case .default: "default"
        case .file(let path, let position): "\(path):\(position.line):\(position.column)"
        case .environment(let name): name
        case .commandLine(let option): option
        }
    }
}
