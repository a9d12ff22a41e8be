import StratusCommandLine
import Testing

/// A small program with every kind of option; each row is one command line and what it means.
@Suite struct CommandLineParserTests {
    static let program = CommandDefinition(
        "tool", "Does things",
        options: [.flag("json", nil, "Answer in JSON")],
        subcommands: [
            CommandDefinition(
                "serve", "Serve", discussion: ["It serves."],
                options: [
                    .value("config", .file, required: true, "The configuration"),
                    .value("listen", .address, default: "127.0.0.1:8080", "Where"),
                    .value("workers", .integer(1...64), "How many"),
                    .value("grace", .duration, default: "5s", "How long"),
                    .value("level", .choice(["debug", "info", "warning"]), "How much to log"),
                    .value("peer", .address, repeats: true, "Another node"),
                    .flag("quiet", "q", "Say less"),
                ], examples: [.init("tool serve --config a.json5", "The usual way")]),
            CommandDefinition(
                "config", "Look at configurations",
                subcommands: [
                    CommandDefinition(
                        "check", "Check a file",
                        positionals: [PositionalDefinition("FILE", .file, "the file to check")]),
                    CommandDefinition("print", "Print it"),
                ]),
        ])

    static func understood(_ words: String) -> Invocation? {
        let request = CommandLineParser(Self.program).parse(
            words.split(separator: " ").map(String.init))
        guard case .run(let invocation) = request else { return nil }
        return invocation
    }

    typealias Accepted = (name: String, words: String, option: String, values: [String])
    static let accepted: [Accepted] = [
        ("value after a space", "serve --config a", "config", ["a"]),
        ("value after equals", "serve --config=a", "config", ["a"]),
        ("equals inside the value", "serve --config=a=b", "config", ["a=b"]),
        ("options before the command", "--json serve --config a", "json", [""]),
        ("options of the program after the command", "serve --config a --json", "json", [""]),
        ("a letter", "serve --config a -q", "quiet", [""]),
        ("a default", "serve --config a", "listen", ["127.0.0.1:8080"]),
        ("a default replaced", "serve --config a --listen [::1]:0", "listen", ["[::1]:0"]),
        ("a Unix socket", "serve --config a --listen unix:/run/s", "listen", ["unix:/run/s"]),
        (
            "an option that repeats", "serve --config a --peer b:1 --peer c:2", "peer",
            ["b:1", "c:2"]
        ),
        ("absent", "serve --config a", "workers", []),
        ("a number", "serve --config a --workers 64", "workers", ["64"]),
        ("a duration", "serve --config a --grace 250ms", "grace", ["250ms"]),
        ("a positional", "config check a.json5", "FILE", ["a.json5"]),
        ("dashes after the end of options", "config check -- --odd", "FILE", ["--odd"]),
        ("standard input", "config check -", "FILE", ["-"]),
        ("a value that is a lone dash", "serve --config -", "config", ["-"]),
    ]

    @Test(arguments: accepted)
    func `is understood`(row: Accepted) throws {
        let invocation = try #require(Self.understood(row.words), "\(row.name)")
        #expect(invocation.all(row.option) == row.values, "\(row.name)")
    }

    typealias Refused = (
        name: String, words: String, kind: CommandLineError.Kind, text: String, suggestion: String?
    )
    static let refused: [Refused] = [
        (
            "a command misspelt", "sevre", .unknownCommand, "there is no command 'sevre'",
            "tool serve"
        ),
        (
            "the start of a command", "con", .unknownCommand, "there is no command 'con'",
            "tool config"
        ),
        ("nonsense", "qqqqqq", .unknownCommand, "there is no command 'qqqqqq'", nil),
        (
            "a subcommand misspelt", "config chek f", .unknownCommand, "there is no command 'chek'",
            "tool config check"
        ),
        (
            "no subcommand", "config", .missingCommand, "a command is missing: one of check, print",
            nil
        ),
        (
            "an option misspelt", "serve --confg a", .unknownOption, "there is no option '--confg'",
            "--config"
        ),
        (
            "an option of another command", "config print --listen a", .unknownOption,
            "there is no option '--listen'", nil
        ),
        ("a letter nobody has", "serve -x", .unknownOption, "there is no option '-x'", nil),
        (
            "a long name with one dash", "serve -config a", .unknownOption,
            "there is no option '-config'", "--config"
        ),
        (
            "a value forgotten", "serve --config --json", .missingValue,
            "'--config' needs a value: FILE", nil
        ),
        (
            "a value forgotten at the end", "serve --config", .missingValue,
            "'--config' needs a value: FILE", nil
        ),
        (
            "an empty value", "serve --config=", .wrongValue,
            "'--config' wants something other than an empty value, not ''", nil
        ),
        (
            "a flag with a value", "serve --quiet=yes", .unwantedValue,
            "'--quiet' takes no value: it is there or not", nil
        ),
        ("twice", "serve --config a --config b", .repeatedOption, "'--config' is given twice", nil),
        ("required and absent", "serve", .missingOption, "'--config FILE' is required", nil),
        (
            "a positional absent", "config check", .missingArgument,
            "FILE is missing: the file to check", nil
        ),
        (
            "one too many", "config check a b", .unexpectedArgument, "'b' is one argument too many",
            nil
        ),
        (
            "an address without a port", "serve --config a --listen localhost", .wrongValue,
            "'--listen' wants HOST:PORT, [IPV6]:PORT or unix:PATH, for example 127.0.0.1:8080, "
                + "not 'localhost'", nil
        ),
        (
            "a number out of range", "serve --config a --workers 65", .wrongValue,
            "'--workers' wants a whole number from 1 to 64, not '65'", nil
        ),
        (
            "a negative number", "serve --config a --workers -1", .wrongValue,
            "'--workers' wants a whole number from 1 to 64, not '-1'", nil
        ),
        (
            "a duration without a unit", "serve --config a --grace 5", .wrongValue,
            "'--grace' wants a number with ms, s, m, h or d, for example 30s, not '5'", nil
        ),
        (
            "a choice misspelt", "serve --config a --level warnign", .wrongValue,
            "'--level' wants one of debug, info, warning (did you mean 'warning'?), not 'warnign'",
            nil
        ),
    ]

    @Test(arguments: refused)
    func `is refused with what was meant`(row: Refused) {
        let request = CommandLineParser(Self.program)
            .parse(row.words.split(separator: " ").map(String.init))
        guard case .refused(let error) = request else {
            Issue.record("\(row.name): \(request)")
            return
        }
        #expect(error.kind == row.kind, "\(row.name)")
        #expect(error.text == row.text, "\(row.name)")
        #expect(error.suggestion == row.suggestion, "\(row.name)")
        #expect(error.description.hasSuffix("--help' to see what there is."), "\(row.name)")
    }

    @Test func `a variable stands for an option that is absent`() {
        let program = CommandDefinition(
            "tool", "Does things",
            options: [
                .value("place", .text("ID"), variable: "TOOL_PLACE", required: true, "Where"),
                .value("count", .integer(1...9), default: "2", variable: "TOOL_COUNT", "How many"),
            ])
        func parse(_ words: [String], _ variables: [String: String]) -> CommandLineParser.Request {
            CommandLineParser(program, variables: variables).parse(words)
        }
        func values(_ words: [String], _ variables: [String: String]) -> [String?] {
            guard case .run(let invocation) = parse(words, variables) else { return [] }
            return [invocation["place"], invocation["count"]]
        }
        #expect(values([], ["TOOL_PLACE": "here"]) == ["here", "2"])
        #expect(values(["--place", "there"], ["TOOL_PLACE": "here"]) == ["there", "2"])
        #expect(values(["--place", "x"], ["TOOL_COUNT": "7"]) == ["x", "7"])
        for (variables, says) in [
            (["TOOL_PLACE": ""], "'--place ID' is required, or the variable TOOL_PLACE"),
            (["TOOL_PLACE": "x", "TOOL_COUNT": "0"], "TOOL_COUNT wants a whole number"),
        ] {
            guard case .refused(let error) = parse([], variables) else {
                Issue.record("\(variables) was taken")
                continue
            }
            #expect(error.description.contains(says), "\(error)")
        }
        guard case .help(let text) = parse(["--help"], [:]) else { return }
        #expect(text.contains("(required) (or TOOL_PLACE)"), "\(text)")
    }

    @Test func `a command's own options come before those of the program`() throws {
        guard case .help(let text) = CommandLineParser(Self.program).parse(["serve", "--help"])
        else { return }
        let own = try #require(text.firstRange(of: "--config FILE  "))
        let common = try #require(text.firstRange(of: "Options of every command:"))
        let program = try #require(text.firstRange(of: "--json  "))
        #expect(own.lowerBound < common.lowerBound && common.lowerBound < program.lowerBound)
    }

    @Test func `help wins over everything that is missing`() {
        let parser = CommandLineParser(Self.program)
        guard case .help(let text) = parser.parse(["serve", "--help", "--nonsense"]) else {
            Issue.record("no help")
            return
        }
        #expect(text.hasPrefix("tool serve: Serve\n\nUsage: tool serve --config FILE [OPTIONS]\n"))
        for needed in [
            "It serves.", "--listen ADDRESS", "(default: 127.0.0.1:8080)", "-q, --quiet",
            "(required)", "--json", "tool serve --config a.json5", "debug|info|warning",
        ] {
            #expect(text.contains(needed), "\(needed)")
        }
        #expect(parser.parse([]) == parser.parse(["-h"]))
    }

    @Test(arguments: [40, 60, 80, 100])
    func `help keeps to the width where words allow it`(width: Int) {
        guard case .help(let text) = CommandLineParser(Self.program, width: width).parse(["--help"])
        else {
            Issue.record("no help")
            return
        }
        for line in text.split(separator: "\n") where line.hasPrefix("    ") {
            #expect(line.count <= width, "\(line)")
        }
    }

    @Test func `the version is asked for with and without JSON`() {
        let parser = CommandLineParser(Self.program)
        #expect(parser.parse(["--version"]) == .version(json: false))
        #expect(parser.parse(["--version", "--json"]) == .version(json: true))
        #expect(parser.parse(["serve", "--version"]) == .version(json: false))
    }

    @Test func `a name the command does not declare stops the process`() async {
        await #expect(processExitsWith: .failure) {
            _ = CommandLineParserTests.understood("config print")?["nonsense"]
        }
    }
}
