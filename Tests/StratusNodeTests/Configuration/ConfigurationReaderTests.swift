import StratusCommandLine
import StratusConfiguration
import StratusModel
import StratusNode
import StratusProcess
import Testing

/// O-06: a configuration that cannot be meant is refused with file, line, key and what is allowed.
@Suite struct ConfigurationReaderTests {
    static func read(
        _ text: String?, environment: [(name: String, value: String)] = [],
        probe: @escaping (String) -> ConfigurationReader.PathState = { _ in .file(mode: 0o600) }
    ) -> ConfigurationReader.Result {
        var reader = ConfigurationReader(probe: probe)
        return reader.read(file: text.map { ("/etc/stratus.json5", $0) }, environment: environment)
    }

    typealias Refused = (name: String, text: String, problems: [String])
    static let refused: [Refused] = [
        ("no object", "[]", ["1:1: must be an object, not an array"]),
        (
            "a proxy that is none", "{limits: {trustedProxies: ['10.0.0.0/8', 'unix', 'nginx']}}",
            ["1:27: limits.trustedProxies: 'nginx' is no address, no network and not 'unix'"]
        ),
        (
            "does not parse", "{\n  log: {level: info}\n}",
            ["2:16: 'info' is not a value: a string needs quotes"]
        ),
        (
            "a key misspelt", "{\n  log: {\n    levle: 'info',\n  },\n}",
            ["3:5: log.levle: there is no such key; did you mean 'log.level'?"]
        ),
        (
            "a section misspelt", "{\n  limit: {},\n}",
            ["2:3: limit: there is no such key"]
        ),
        (
            "a key in the wrong section", "{client: {tokenFile: 'x'}}",
            ["1:11: client.tokenFile: there is no such key; did you mean 'admin.tokenFile'?"]
        ),
        (
            "a key at the top that has a section", "{openMetrics: true}",
            ["1:2: openMetrics: there is no such key; did you mean 'admin.openMetrics'?"]
        ),
        ("nonsense", "{zebra: 1}", ["1:2: zebra: there is no such key"]),
        (
            "a section that is no object", "{log: 'info'}",
            ["1:7: log: must be an object, not a string"]
        ),
        (
            "a word where a truth belongs", "{log: {access: 'yes'}}",
            ["1:16: log.access: must be true or false, not a string"]
        ),
        (
            "a choice misspelt", "{log: {level: 'warn'}}",
            [#"1:15: log.level: must be one of "debug", "info", "warning", "error", not "warn""#]
        ),
        (
            "a number out of range", "{loopCount: 257}",
            ["1:13: loopCount: must be a whole number from 0 to 256, not 257.0"]
        ),
        (
            "a fraction", "{loopCount: 1.5}",
            ["1:13: loopCount: must be a whole number from 0 to 256, not 1.5"]
        ),
        (
            "a number as large as they come", "{loopCount: 1e300}",
            ["1:13: loopCount: must be a whole number from 0 to 256, not 1e+300"]
        ),
        (
            "a size without a unit we know", "{limits: {recordSizeMax: '1MB'}}",
            [
                #"1:26: limits.recordSizeMax: must be a size such as "16MiB", from 1KiB to 16MiB, "#
                    + #"not "1MB""#
            ]
        ),
        (
            "a size out of range", "{limits: {recordSizeMax: 1}}",
            [
                #"1:26: limits.recordSizeMax: must be a size such as "16MiB", from 1KiB to 16MiB, "#
                    + "not 1.0"
            ]
        ),
        (
            "a duration out of range", "{stop: {deadline: '11m'}}",
            [#"1:19: stop.deadline: must be a duration such as "30s", from 0ms to 10m, not "11m""#]
        ),
        (
            "an address alone where a list belongs", "{client: {listen: '127.0.0.1:1'}}",
            [
                #"1:19: client.listen: must be an array, each: "HOST:PORT", "[IPV6]:PORT" or "#
                    + #""unix:PATH", not a string"#
            ]
        ),
        (
            "an address in a list that is none", "{client: {listen: ['127.0.0.1:1',\n 'here']}}",
            [#"2:2: client.listen: must be "HOST:PORT", "[IPV6]:PORT" or "unix:PATH", not "here""#]
        ),
        (
            "several at once", "{loopCount: -1, log: {colour: 1}, client: {listen: [1]}}",
            [
                "1:13: loopCount: must be a whole number from 0 to 256, not -1.0",
                "1:23: log.colour: there is no such key",
                "1:53: client.listen: must be \"HOST:PORT\", \"[IPV6]:PORT\" or \"unix:PATH\", not a number",
            ]
        ),
        (
            "nowhere to listen", "{client: {listen: []}}",
            ["1:19: client.listen: needs one address at least"]
        ),
        (
            "a certificate without its key", "{client: {tls: {certificateFile: 'c'}}}",
            ["1:34: client.tls.certificateFile: needs 'client.tls.keyFile' too"]
        ),
        (
            "a key without its certificate", "{admin: {tls: {keyFile: 'c'}}}",
            ["1:25: admin.tls.keyFile: needs 'admin.tls.certificateFile' too"]
        ),
        (
            "client certificates without TLS", "{admin: {tls: {clientAuthorityFile: 'c'}}}",
            [
                "1:37: admin.tls.clientAuthorityFile: client certificates need TLS: set "
                    + "'admin.tls.certificateFile'"
            ]
        ),
        (
            "one address for clients and administrators",
            "{client: {listen: ['127.0.0.1:9']}, admin: {listen: '127.0.0.1:9'}}",
            [
                "1:53: admin.listen: '127.0.0.1:9' is in 'client.listen' too: administrators have a "
                    + "listener of their own"
            ]
        ),
        (
            "one address twice", "{client: {listen: ['[::1]:9', '[::1]:9']}}",
            ["1:19: client.listen: '[::1]:9' is listed twice"]
        ),
        (
            "X-30 plain to the world", "{client: {listen: ['0.0.0.0:80']}}",
            [
                "1:19: client.listen: '0.0.0.0:80' can be reached from other machines and there is no "
                    + "TLS: set 'client.tls.certificateFile', or 'client.allowPlain: true' where "
                    + "something in front of the node speaks TLS"
            ]
        ),
        (
            "X-30 development in the network",
            "{development: true, client: {allowPlain: true, listen: ['10.0.0.1:80']}}",
            [
                "1:15: development: '10.0.0.1:80' in 'client.listen' can be reached from other "
                    + "machines, and with 'development' nobody's credentials are checked; set "
                    + "'client.allowDevelopment: true' where something else keeps others out"
            ]
        ),
        (
            "X-30 administrators to the world", "{admin: {listen: '0.0.0.0:81'}}",
            [
                "1:18: admin.listen: '0.0.0.0:81' can be reached from other machines and there is no "
                    + "TLS: set 'admin.tls.certificateFile', or listen on 127.0.0.1 or a Unix socket"
            ]
        ),
    ]

    @Test(arguments: refused)
    func `O-06 is refused with file, line, key and what is allowed`(row: Refused) {
        let problems = Self.read(row.text).problems.map(\.description)
        #expect(problems == row.problems.map { "/etc/stratus.json5:" + $0 }, "\(row.name)")
    }

    static let files: [(state: ConfigurationReader.PathState, problem: String?)] = [
        (.absent, "'/etc/k' does not exist"),
        (.unreadable("Permission denied"), "'/etc/k' cannot be read: Permission denied"),
        (.directory, "'/etc/k' is a directory, not a file"),
        (.file(mode: 0o600), nil), (.file(mode: 0o400), nil), (.file(mode: 0o640), nil),
        (
            .file(mode: 0o644),
            "'/etc/k' holds a secret and its mode 644 lets others read or change it; "
                + "run 'chmod 600 /etc/k'"
        ),
        (
            .file(mode: 0o660),
            "'/etc/k' holds a secret and its mode 660 lets others read or change it; "
                + "run 'chmod 600 /etc/k'"
        ),
    ]

    @Test(arguments: files)
    func `a secret's file must be there and be secret`(
        row: (state: ConfigurationReader.PathState, problem: String?)
    ) {
        let text = "{client: {tls: {certificateFile: 'c', keyFile: 'k'}}}"
        let problems = Self.read(text) { $0 == "/etc/k" ? row.state : .file(mode: 0o644) }.problems
        #expect(
            problems.map(\.description)
                == (row.problem.map { ["/etc/stratus.json5:1:48: client.tls.keyFile: \($0)"] } ?? [])
        )
    }

    @Test func `the environment wins over the file, and the command line over both`() {
        var reader = ConfigurationReader(probe: { _ in .absent })
        let result = reader.read(
            file: ("s.json5", "{loopCount: 1, log: {level: 'error', access: false}}"),
            environment: [
                ("STRATUS_LOOP_COUNT", "2"), ("STRATUS_LOG_LEVEL", "debug"),
                ("STRATUS_CLIENT_LISTEN", "127.0.0.1:1,[::1]:2"), ("PATH", "/bin"),
            ],
            overrides: [("loopCount", .integer(3), "--loops")])
        #expect(result.problems.isEmpty)
        #expect(result.settings.integer("loopCount") == 3)
        #expect(result.settings.origin("loopCount") == .commandLine("--loops"))
        #expect(result.settings.text("log.level") == "debug")
        #expect(result.settings.origin("log.level") == .environment("STRATUS_LOG_LEVEL"))
        #expect(!result.settings.bool("log.access"))
        #expect(result.settings.origin("stop.deadline") == .default)
        #expect(
            result.settings.addresses("client.listen")
                == [.tcp(host: "127.0.0.1", port: 1), .tcp(host: "::1", port: 2)])
    }

    @Test func `a variable with a wrong value is a problem, an unknown one is only reported`() {
        let result = Self.read(
            nil,
            environment: [
                ("STRATUS_LOG_LEVEL", "loud"), ("STRATUS_LOG_LEVLE", "info"),
                ("STRATUS_PORT", "tcp://10.0.0.1:80"),
            ])
        #expect(
            result.problems.map(\.description) == [
                #"STRATUS_LOG_LEVEL: log.level: must be one of "debug", "info", "warning", "error", "#
                    + #"not "loud""#
            ])
        #expect(
            result.unknownVariables.map(\.description) == [
                "STRATUS_LOG_LEVLE: there is no such key; did you mean 'STRATUS_LOG_LEVEL'?",
                "STRATUS_PORT: there is no such key",
            ])
    }

    @Test func `a relative path in the file counts from the file`() {
        let settings = Self.read("{dataDirectory: 'data', admin: {tokenFile: '/t'}}").settings
        #expect(settings.text("dataDirectory") == "/etc/data")
        #expect(settings.text("admin.tokenFile") == "/t")
        // Whatever names a file is a path.
        for key in ConfigurationKey.all where key.name.hasSuffix("File") {
            #expect([.file, .secretFile, .path].contains(key.kind), "\(key.path)")
        }
    }

    @Test(arguments: [
        ("from: 'a@b.c'", "signIn.mail.from: needs 'signIn.mail.server' too"),
        ("server: 'mail', from: 'a@b.c'", "signIn.mail.server: 'mail' is not HOST:PORT"),
        ("server: 'm:465', from: 'a b@c'", "signIn.mail.from: 'a b@c' is not an e-mail address"),
        ("server: 'm:465'", "signIn.mail.from: '' is not an e-mail address"),
        (
            "server: 'm:465', from: 'a@b.c', user: 'u'",
            "'signIn.mail.user' and 'signIn.mail.passwordFile' go together"
        ),
    ])
    func `e-mail that cannot be sent is refused`(text: String, says: String) {
        let result = Self.read("{signIn: {url: 'https://a.b', mail: {\(text)}}}")
        #expect(
            result.problems.contains { $0.description.contains(says) }, "\(result.problems)")
        let sound = "server: 'm:465', from: 'a@b.c', user: 'u', passwordFile: '/p'"
        #expect(
            Self.read("{signIn: {url: 'https://a.b', mail: {\(sound)}}}").problems.isEmpty)
        #expect(
            Self.read("{signIn: {mail: {\(sound)}}}").problems.map(\.description).contains {
                $0.contains("needs 'signIn.url' too")
            })
    }

    @Test func `null leaves the default`() {
        #expect(
            Self.read("{loopCount: null, log: {level: null}}").settings == ConfigurationSettings())
    }

    @Test func `changes are found key by key`() {
        let one = Self.read("{log: {level: 'debug'}}").settings
        let other = Self.read("{loopCount: 4}").settings
        #expect(one.changes(to: other).map(\.path) == ["loopCount", "log.level"])
        #expect(one.changes(to: one).isEmpty)
    }

    @Test func `the table is whole`() {
        let paths = ConfigurationKey.all.map(\.path)
        #expect(Set(paths).count == paths.count)
        #expect(Set(ConfigurationKey.all.map(\.environmentName)).count == paths.count)
        #expect(
            ConfigurationKey.named("client.tls.certificateFile")?.environmentName
                == "STRATUS_CLIENT_TLS_CERTIFICATE_FILE")
        for key in ConfigurationKey.all {
            #expect(key.text.hasSuffix("."), "\(key.path)")
            let known = ConfigurationKey.sections.contains { $0.path == key.section }
            #expect(key.section.isEmpty || known, "\(key.path)")
        }
    }

    @Test func `every default is a value the key allows`() {
        for key in ConfigurationKey.all {
            guard let value = key.default else { continue }
            var text = "\(key.name): \(value.source)"
            for section in key.section.split(separator: ".").reversed() {
                text = "\(section): {\(text)}"
            }
            let result = Self.read("{\(text)}")
            #expect(result.problems.isEmpty, "\(key.path): \(result.problems)")
        }
    }
}
