/// Reads the words of a command line against a ``CommandDefinition``.
///
/// - `--name value`, `--name=value`, `-n value` for options that take one; flags alone.
/// - `--` ends the options: everything after it is a positional, dashes and all.
/// - A lone `-` is a positional (by custom standard input).
/// - An option that is absent may have its value in a variable of the environment.
/// - `--help` and `--version` win over everything typed after them, and over what is missing.
package struct CommandLineParser: Sendable {
    package enum Request: Sendable, Equatable {
        case run(Invocation)
        /// Help for the command typed so far.
        case help(String)
        /// `--version`; with `json` when `--json` stood there too.
        case version(json: Bool)
        case refused(CommandLineError)
    }

    private let program: CommandDefinition
    private let width: Int
    private let variables: [String: String]

    /// - Parameters:
    ///   - width: columns to wrap the help at.
    ///   - variables: those of the process. An empty one counts as absent.
    package init(
        _ program: CommandDefinition, width: Int = 80, variables: [String: String] = [:]
    ) {
        self.program = program
        self.width = width
        self.variables = variables
    }

    /// - Parameter arguments: the words after the program's name.
    package func parse(_ arguments: [String]) -> Request {
        var reading = Reading(program: self.program, variables: self.variables)
        do throws(Stop) {
            try reading.read(arguments)
            return .run(try reading.finish())
        } catch {
            switch error {
            case .help:
                return .help(HelpText.write(reading.chain, width: self.width))
            case .version: return .version(json: arguments.contains("--json"))
            case .error(let error): return .refused(error)
            }
        }
    }

    private enum Stop: Error {
        case help, version
        case error(CommandLineError)
    }

    /// The state while words are read, one after the other.
    private struct Reading {
        /// The program and the commands descended into so far.
        var chain: [CommandDefinition]
        let variables: [String: String]
        var values: [(name: String, value: String)] = []
        var positionalCount = 0

        init(program: CommandDefinition, variables: [String: String]) {
            self.chain = [program]
            self.variables = variables
        }

        var command: CommandDefinition { self.chain[self.chain.count - 1] }
        var options: [OptionDefinition] {
            self.chain.flatMap(\.options) + CommandDefinition.common
        }

        mutating func read(_ arguments: [String]) throws(Stop) {
            var index = 0
            while index < arguments.count {
                let word = arguments[index]
                index += 1
                if word == "--" {
                    for word in arguments[index...] { try self.positional(word) }
                    return
                }
                guard word.hasPrefix("-"), word != "-" else {
                    try self.positional(word)
                    continue
                }
                let (option, attached) = try self.option(word)
                if option.name == "help" { throw .help }
                if option.name == "version" { throw .version }
                if !option.repeats, self.values.contains(where: { $0.name == option.name }) {
                    throw self.error(.repeatedOption, "'--\(option.name)' is given twice")
                }
                guard let kind = option.value else {
                    if attached != nil {
                        throw self.error(
                            .unwantedValue, "'--\(option.name)' takes no value: it is there or not")
                    }
                    self.values.append((option.name, ""))
                    continue
                }
                var value = attached
                // A word that looks like an option is more likely a forgotten value than a value.
                if value == nil, index < arguments.count, !Self.looksLikeOption(arguments[index]) {
                    value = arguments[index]
                    index += 1
                }
                guard let value else {
                    throw self.error(
                        .missingValue, "'--\(option.name)' needs a value: \(kind.placeholder)")
                }
                if let wanted = kind.refusal(of: value) {
                    throw self.error(
                        .wrongValue, "'--\(option.name)' wants \(wanted), not '\(value)'")
                }
                self.values.append((option.name, value))
            }
        }

        /// Splits `--name=value` and finds the option.
        private func option(_ word: String) throws(Stop) -> (OptionDefinition, String?) {
            var name = word.drop { $0 == "-" }
            var attached: String?
            if let equals = name.firstIndex(of: "=") {
                attached = String(name[name.index(after: equals)...])
                name = name[..<equals]
            }
            let isLong = word.hasPrefix("--")
            let found = self.options.first {
                isLong ? $0.name == name : name.count == 1 && $0.letter == name.first
            }
            if let found { return (found, attached) }
            let near = Suggestion.nearest(to: String(name), among: self.options.map(\.name))
            throw self.error(
                .unknownOption, "there is no option '\(isLong ? "--" : "-")\(name)'",
                near.map { "--" + $0 })
        }

        /// A word without dashes: a subcommand where there are any, otherwise the next positional.
        private mutating func positional(_ word: String) throws(Stop) {
            if !self.command.subcommands.isEmpty {
                guard let next = self.command.subcommands.first(where: { $0.name == word }) else {
                    let names = self.command.subcommands.map(\.name)
                    throw self.error(
                        .unknownCommand, "there is no command '\(word)'",
                        Suggestion.nearest(to: word, among: names)
                            .map { "\(self.commandLine) \($0)" })
                }
                self.chain.append(next)
                return
            }
            guard self.positionalCount < self.command.positionals.count else {
                throw self.error(.unexpectedArgument, "'\(word)' is one argument too many")
            }
            let positional = self.command.positionals[self.positionalCount]
            if let wanted = positional.value.refusal(of: word) {
                throw self.error(.wrongValue, "\(positional.name) must be \(wanted), not '\(word)'")
            }
            self.values.append((positional.name, word))
            self.positionalCount += 1
        }

        /// The value that the option's variable has.
        private func variable(of option: OptionDefinition) throws(Stop) -> String? {
            guard let name = option.variable, let kind = option.value,
                let value = self.variables[name], !value.isEmpty
            else { return nil }
            if let wanted = kind.refusal(of: value) {
                throw self.error(.wrongValue, "\(name) wants \(wanted), not '\(value)'")
            }
            return value
        }

        /// Holds what was read against what is required, and fills in variables and defaults.
        func finish() throws(Stop) -> Invocation {
            guard self.command.subcommands.isEmpty else {
                // Somebody who types only the program's name wants to know what it can do.
                if self.chain.count == 1, self.values.isEmpty { throw .help }
                let names = self.command.subcommands.map(\.name).joined(separator: ", ")
                throw self.error(.missingCommand, "a command is missing: one of \(names)")
            }
            var values = self.values
            for option in self.options
            where option.value != nil && !values.contains(where: { $0.name == option.name }) {
                if let value = try self.variable(of: option) ?? option.default {
                    values.append((option.name, value))
                } else if option.required {
                    let other = option.variable.map { ", or the variable \($0)" } ?? ""
                    throw self.error(
                        .missingOption,
                        "'--\(option.name) \(option.value?.placeholder ?? "")' is required\(other)")
                }
            }
            for positional in self.command.positionals.dropFirst(self.positionalCount)
            where positional.required {
                throw self.error(
                    .missingArgument, "\(positional.name) is missing: \(positional.summary)")
            }
            return Invocation(
                path: self.chain.dropFirst().map(\.name),
                declared: self.options.map(\.name) + self.command.positionals.map(\.name),
                values: values)
        }

        private var commandLine: String { self.chain.map(\.name).joined(separator: " ") }

        private func error(
            _ kind: CommandLineError.Kind, _ text: String, _ suggestion: String? = nil
        ) -> Stop {
            .error(
                CommandLineError(
                    kind: kind, command: self.commandLine, text: text, suggestion: suggestion))
        }

        /// A negative number is a value; so is a lone dash.
        private static func looksLikeOption(_ word: String) -> Bool {
            word.hasPrefix("-") && word != "-" && Int(word) == nil
        }
    }
}
