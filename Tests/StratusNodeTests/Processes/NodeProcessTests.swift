import ChildProcesses
import Foundation
import FoundationNetworking
import Glibc
import StratusCommandLine
import StratusNode
import Testing

/// Real nodes on real sockets: start, signals, administrators, `stratusctl`.
@Suite struct NodeProcessTests {
    let directory = try! TemporaryDirectory()

    /// A `stratus dev` that is ready, and what its first line said.
    struct Dev: Sendable {
        let running: ChildProcess
        private let texts: [String: String]
        let processIdentifier: Int?

        init(_ data: String, _ more: [String] = [], environment: [String: String] = [:])
            async throws
        {
            try await self.init(
                Program.start("stratus", Self.arguments(data) + more, environment: environment))
        }

        static func arguments(_ data: String) -> [String] {
            ["dev", "--json", "--listen", "127.0.0.1:0", "--data", data]
        }

        init(_ running: ChildProcess) async throws {
            self.running = running
            let text = try #require(await self.running.firstLine(), "\(self.running.errors)")
            let line = try #require(
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
            self.texts = line.compactMapValues { $0 as? String }
            self.processIdentifier = line["pid"] as? Int
        }

        func text(_ key: String) -> String { self.texts[key] ?? "" }

        func stop() async throws -> Int32 {
            self.running.signal(SIGTERM)
            return try await self.running.end().code
        }

        func control(_ arguments: String..., token: String? = nil) async throws
            -> ChildProcess.Ended
        { try await self.control(arguments, token: token) }

        func control(_ arguments: [String], token: String? = nil) async throws
            -> ChildProcess.Ended
        {
            try await Program.run(
                "stratusctl",
                [
                    "--node", self.text("adminURL"), "--token-file",
                    token ?? self.text("adminTokenFile"),
                ]
                    + arguments)
        }
    }

    static func get(
        _ url: String, body: String? = nil, token: String? = nil
    ) async throws -> (status: Int, text: String, headers: [AnyHashable: Any]) {
        var request = URLRequest(url: try #require(URL(string: url)))
        if let body {
            request.httpMethod = "POST"
            request.httpBody = Data(body.utf8)
        }
        if let token { request.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization") }
        let (data, answer) = try await Exchange.run(request)
        return (answer.statusCode, String(decoding: data, as: UTF8.self), answer.allHeaderFields)
    }

    @Test func `the first line of dev says all that a script needs`() async throws {
        let dev = try await Dev(self.directory.path + "/a")
        #expect(dev.text("url").hasPrefix("http://127.0.0.1:"))
        #expect(dev.text("container") == "iCloud.org.example.stratus")
        #expect(dev.text("environment") == "development")
        #expect(dev.text("apiToken").utf8.count == 64)
        #expect(dev.processIdentifier == Int(dev.running.identifier))
        let mode = try FileManager.default.attributesOfItem(atPath: dev.text("adminTokenFile"))
        #expect(mode[.posixPermissions] as? Int == 0o600, "X-30")
        #expect(try await dev.stop() == ExitCode.success.rawValue)
    }

    /// The stage of flipped bits found it: nobody was let in, and the doctor had no finding.
    @Test func `S-14 dev draws a token anew where its file holds none`() async throws {
        let data = self.directory.path + "/data"
        let first = try await Dev(data)
        let kept = first.text("apiToken")
        #expect(try await first.stop() == 0)
        try Data("z\(kept.dropFirst())\n".utf8).write(
            to: URL(fileURLWithPath: data + "/api.token"))
        let second = try await Dev(data)
        let drawn = second.text("apiToken")
        #expect(drawn != kept && drawn.count == 64 && drawn.allSatisfy(\.isHexDigit))
        #expect(try await second.stop() == 0)
        let third = try await Dev(data)
        #expect(third.text("apiToken") == drawn)
        #expect(try await third.stop() == 0)
    }

    @Test func `D4 what an administrator changes is in the audit trail`() async throws {
        let dev = try await Dev(self.directory.path + "/trail")
        let schema = try self.directory.write(
            "app.ckdb", "DEFINE SCHEMA RECORD TYPE A (x INT64);")
        let container = dev.text("container")
        #expect(
            try await dev.control("schema", "import", "--container", container, schema).code == 0)
        #expect(
            try await dev.control(
                "schema", "promote", "--container", container, "--confirm", container
            ).code == 0)
        #expect(try await dev.control("log-level", "set", "warning").code == 0)
        let trail = try await dev.control("audit").output
        for entry in ["schema import", "schema promote", "log-level set"] {
            #expect(trail.contains(entry), "\(trail)")
        }
        #expect(try await dev.stop() == 0)
    }

    @Test func `a container that a command makes is named, and may be refused`() async throws {
        let dev = try await Dev(self.directory.path + "/mistyped")
        let schema = try self.directory.write(
            "app.ckdb", "DEFINE SCHEMA RECORD TYPE A (x INT64);")
        let key = try self.directory.write(
            "public.pem",
            """
            -----BEGIN PUBLIC KEY-----
            MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAELy+nI94qJ4M9Cmb9kWaI+xsp5PMk
            2VigHeiVQ4nmP4126SbZh+q4Cc6XqeZ6K7Id/wDKtxBeVlViCQT4G5zMew==
            -----END PUBLIC KEY-----

            """)
        let commands: [(String, [String])] = [
            ("one", ["schema", "import", schema]), ("two", ["token", "create", "--name", "t"]),
            ("three", ["key", "add", "--name", "k", "--public-key", key]),
        ]
        for (name, command) in commands {
            let place = ["--container", "iCloud.org.example.\(name)"]
            let refused = try await dev.control(command + place + ["--existing"])
            #expect(refused.code != 0, "\(command)")
            #expect(refused.errors.contains("there is no container"), "\(refused.errors)")
            let made = try await dev.control(command + place)
            #expect(made.code == 0 && made.errors.contains("it was made"), "\(made.errors)")
            if name == "three" { continue }
            let again = try await dev.control(command + place + ["--existing", "--json"])
            #expect(again.code == 0 && again.output.contains(#""created":false"#), "\(again)")
        }
        // To look makes nothing.
        let looked = try await dev.control([
            "schema", "diff", "--container", "iCloud.org.example.four", schema,
        ])
        #expect(looked.code == 0, "\(looked.errors)")
        let list = try await dev.control(["container", "list"]).output
        #expect(list.contains("example.three") && !list.contains("example.four"), "\(list)")
        let json = try await dev.control([
            "--json", "token", "create", "--name", "t", "--container", "iCloud.org.example.five",
        ])
        #expect(json.output.contains(#""created":true"#), "\(json.output)")
        #expect(try await dev.stop() == 0)
    }

    @Test func `D6 a listener for metrics serves them to everybody, and nothing else`()
        async throws
    {
        let dev = try await Dev(
            self.directory.path + "/scraped",
            environment: ["STRATUS_METRICS_LISTEN": "127.0.0.1:0"])
        let line = try #require(
            dev.running.errors.split(separator: "\n").first { $0.contains(#""text":"metrics""#) },
            "\(dev.running.errors)")
        let fields = try #require(
            try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        let url = try #require(fields["url"] as? String)
        let metrics = try await Self.get(url + "/metrics")
        #expect(metrics.status == 200 && metrics.text.contains("stratus_build_info"))
        #expect(try await Self.get(url + "/readyz").status == 200)
        let token = try String(contentsOfFile: dev.text("adminTokenFile"), encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        for path in ["/v1/status", "/v1/config", "/v1/users", "/"] {
            #expect(try await Self.get(url + path, token: token).status == 404, "\(path)")
        }
        #expect(try await Self.get(url + "/metrics", body: "").status == 405)
        #expect(try await dev.stop() == 0)
    }

    @Test func `D14 with --json an error is JSON too`() async throws {
        let ended = try await Program.run(
            "stratusctl", ["--node", "http://127.0.0.1:9", "--json", "status"])
        #expect(ended.code == ExitCode.unavailable.rawValue)
        let json = try JSONSerialization.jsonObject(with: Data(ended.output.utf8))
        let error = (json as? [String: Any])?["error"] as? [String: Any]
        #expect((error?["reason"] as? String)?.contains("nobody answers") == true)
    }

    @Test
    func `what was saved is there after a stop and a start, and its answer names its log line`()
        async throws
    {
        let first = try await Dev(self.directory.path + "/b")
        let path = "/database/1/iCloud.x/development/private/records/"
        let tokens = "?ckAPIToken=\(first.text("apiToken"))&ckWebAuthToken=hunter2"
        let saved = try await Self.get(
            first.text("url") + path + "modify" + tokens,
            body: """
                {"operations":[{"operationType":"forceUpdate","record":{"recordType":"Note",
                "recordName":"n","fields":{"text":{"value":"secret words"}}}}]}
                """)
        #expect(saved.status == 200, "\(saved.text)")
        let identity = try #require(
            saved.headers["X-Apple-Request-Uuid"] as? String
                ?? saved.headers["X-Apple-Request-UUID"] as? String)
        #expect(try await first.stop() == 0)
        let log = first.running.errors
        let line = try #require(log.split(separator: "\n").first { $0.contains(identity) })
        #expect(line.contains(#""route":"records/modify""#))
        #expect(!log.contains("hunter2") && !log.contains("secret words"), "X-14")
        #expect(!log.contains(first.text("apiToken")), "X-14")

        let second = try await Dev(self.directory.path + "/b")
        #expect(second.text("apiToken") == first.text("apiToken"))
        let found = try await Self.get(
            second.text("url") + path + "lookup" + tokens,
            body: #"{"records":[{"recordName":"n"}]}"#)
        #expect(found.text.contains("secret words"))
        #expect(try await second.stop() == 0)
        let start = second.running.errors
        #expect(start.contains(#""text":"the log is read""#), "S-42: \(start)")
        #expect(start.contains(#""text":"opening partitions""#), "S-42: \(start)")
    }

    @Test func `X-16 the administrators' API is not on the clients' port, whatever the token`()
        async throws
    {
        let dev = try await Dev(self.directory.path + "/c")
        let token = try String(contentsOfFile: dev.text("adminTokenFile"), encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        for path in ["/v1/status", "/v1/config", "/v1/log-level", "/metrics"] {
            let client = try await Self.get(dev.text("url") + path, token: token)
            #expect(client.status == 404, "\(path): \(client.text)")
            let admin = try await Self.get(dev.text("adminURL") + path, token: token)
            #expect(admin.status == 200, "\(path)")
            #expect(try await Self.get(dev.text("adminURL") + path).status == 401, "\(path)")
            #expect(
                try await Self.get(dev.text("adminURL") + path, token: "wrong").status == 401,
                "\(path)")
        }
        for url in [dev.text("url"), dev.text("adminURL")] {
            #expect(try await Self.get(url + "/healthz").text == "alive\n")
            #expect(try await Self.get(url + "/readyz").text == "ready\n")
        }
        #expect(try await dev.stop() == 0)
    }

    @Test func `stratusctl shows and changes a node that runs`() async throws {
        let dev = try await Dev(self.directory.path + "/d", ["--schema", "strict"])
        let status = try await dev.control("status")
        #expect(status.code == 0)
        #expect(status.output.contains("ready           yes\n"))
        #expect(try await dev.control("status", "--json").output.hasPrefix(#"{"version":"#))
        #expect(try await dev.control("ready").output == "ready\n")
        #expect(try await dev.control("metrics").output.contains("\nstratus_ready 1\n"))
        #expect(try await dev.control("log-level", "set", "debug").output == "debug\n")
        #expect(
            try await dev.control("log-level", "show", "--json").output == "{\"level\":\"debug\"}\n"
        )
        #expect(
            try await dev.control("config", "show", "--changed").output.contains(
                "developmentSchema"))

        let wrong = try self.directory.write("wrong.token", String(repeating: "x", count: 64))
        let refused = try await dev.control("status", token: wrong)
        #expect(refused.code == ExitCode.denied.rawValue)
        #expect(refused.errors.contains("not the administrators' token"))

        let unnameable = try await dev.control("schema", "export", "--container", "naïve")
        #expect(unnameable.code == ExitCode.usage.rawValue)
        #expect(unnameable.errors.contains("'naïve' cannot name a container"))

        let schema = try self.directory.write(
            "a.ckdb", "DEFINE SCHEMA RECORD TYPE Note (text STRING QUERYABLE);")
        let imported = try await dev.control("schema", "import", "--container", "iCloud.x", schema)
        #expect(imported.code == 0, "\(imported.errors)")
        #expect(imported.output.hasSuffix("version 1 is in force\n"))
        let again = try await dev.control("schema", "import", "--container", "iCloud.x", schema)
        #expect(again.output == "nothing to change: version 1 remains in force\n")
        let exported = try await dev.control("schema", "export", "--container", "iCloud.x")
        #expect(exported.output.contains("RECORD TYPE Note ("))
        #expect(try await dev.stop() == 0)
        #expect(
            try await dev.control("status").code == ExitCode.unavailable.rawValue,
            "the node is gone")
    }

    @Test func `a container is given buckets when it is created, and never again`() async throws {
        let dev = try await Dev(self.directory.path + "/b")
        let create = ["container", "create", "--container", "iCloud.busy"]
        let odd = try await dev.control(create + ["--buckets", "3"])
        #expect(odd.code == ExitCode.usage.rawValue && odd.errors.contains("buckets"), "\(odd)")
        let created = try await dev.control(create + ["--buckets", "4", "--json"])
        #expect(created.code == 0, "\(created.errors)")
        #expect(created.output.contains("\"buckets\":4"), "\(created.output)")
        let again = try await dev.control(create)
        #expect(again.code != 0 && again.errors.contains("buckets: 4"), "\(again.errors)")
        let shown = try await dev.control("container", "show", "--container", "iCloud.busy")
        #expect(
            shown.output.split(separator: "\n").contains {
                $0.split(separator: " ") == ["buckets", "4"]
            }, "\(shown.output)")
        let listed = try await dev.control("container", "list")
        #expect(listed.output.contains("BUCKETS"), "\(listed.output)")

        let administrator = try String(
            contentsOfFile: dev.text("adminTokenFile"), encoding: .utf8
        ).trimmingCharacters(in: .newlines)
        let path = dev.text("adminURL") + "/v1/containers/iCloud.odd/environments/development"
        for (wrong, says) in [
            ("3", "power of two"), ("128", "power of two"), ("0", "power of two"),
            ("-4", "power of two"), ("\"4\"", "'buckets' must be a whole number"),
        ] {
            let refused = try await Self.get(
                path, body: "{\"buckets\":\(wrong)}", token: administrator)
            #expect(refused.status == 400 && refused.text.contains(says), "\(refused)")
        }

        // Whoever uses a container without creating it gets a whole database.
        let tokens = "?ckAPIToken=\(dev.text("apiToken"))&ckWebAuthToken=a"
        for container in ["iCloud.busy", "iCloud.odd"] {
            let saved = try await Self.get(
                dev.text("url") + "/database/1/\(container)/development/public/records/modify"
                    + tokens,
                body: #"""
                    {"operations":[{"operationType":"create",
                    "record":{"recordType":"Note","recordName":"n"}}]}
                    """#)
            #expect(saved.text.contains("recordChangeTag"), "\(saved.text)")
            let usage = try await dev.control("container", "usage", "--container", container)
            let line = usage.output.split(separator: "\n").first { $0.hasPrefix("(public)") }
            // The note, and the user's own record.
            #expect(line?.split(separator: " ").dropFirst(2).first == "2", "\(usage.output)")
        }
        let whole = try await dev.control(
            "container", "show", "--container", "iCloud.odd", "--json")
        #expect(whole.output.contains("\"buckets\":1"), "\(whole.output)")
        let metrics = try await dev.control("metrics")
        #expect(metrics.output.contains("\nstratus_mail_waiting 0\n"))
        #expect(metrics.output.contains("\nstratus_references_mended_total 0\n"))
        #expect(try await dev.stop() == 0)
    }

    @Test func `a development environment is reset, also by a second try after a kill`()
        async throws
    {
        let brief = ["STRATUS_LIMITS_COMMAND_DEADLINE": "1s"]
        let data = self.directory.path + "/j"
        let first = try await Dev(data, environment: brief)
        let path = "/database/1/iCloud.x/development/private/"
        let tokens = "?ckAPIToken=\(first.text("apiToken"))&ckWebAuthToken=a"
        let save = """
            {"operations":[{"operationType":"forceUpdate","record":{"recordType":"Note",
            "recordName":"n","fields":{"text":{"value":"words"}}}}]}
            """
        let lookup = #"{"records":[{"recordName":"n"}]}"#
        let saved = try await Self.get(
            first.text("url") + path + "records/modify" + tokens, body: save)
        #expect(saved.text.contains("recordChangeTag"), "\(saved.text)")
        let reset = ["schema", "reset", "--container", "iCloud.x"]
        let unsure = try await first.control(reset)
        #expect(unsure.code == ExitCode.usage.rawValue, "\(unsure.errors)")
        let wrong = try await first.control(reset + ["--confirm", "iCloud.y"])
        #expect(wrong.code != 0 && wrong.errors.contains("confirm"), "\(wrong.errors)")
        let dry = try await first.control(reset + ["--dry-run"])
        #expect(
            dry.output.contains("- record type Note\n")
                && dry.output.hasSuffix("nothing was changed\n"))

        // Begun, and broken off by the end of the node.
        let administrator = try String(
            contentsOfFile: first.text("adminTokenFile"), encoding: .utf8
        ).trimmingCharacters(in: .newlines)
        let begun = try await Self.get(
            first.text("adminURL") + "/v1/containers/iCloud.x/environments/development/schema/reset"
                + "?confirm=iCloud.x", body: "", token: administrator)
        #expect(begun.status == 202, "\(begun.text)")
        first.running.signal(SIGKILL)
        _ = try await first.running.end()

        let second = try await Dev(data, environment: brief)
        let shut = try await Self.get(
            second.text("url") + path + "records/lookup" + tokens, body: lookup)
        #expect(shut.status == 503 && shut.text.contains("TRY_AGAIN_LATER"), "\(shut.text)")
        let done = try await second.control(reset + ["--confirm", "iCloud.x"])
        #expect(done.code == 0, "\(done.errors)")
        // The note, and the user's own record, which is made again.
        #expect(done.output.contains("removed 2 records and 0 custom zones"), "\(done.output)")
        let shown = try await second.control("schema", "export", "--container", "iCloud.x")
        #expect(!shown.output.contains("Note"), "\(shown.output)")
        // A node believes for a second what it read of a container.
        var found = shut
        for _ in 0..<100 where found.status != 200 {
            try await Task.sleep(for: .milliseconds(50))
            found = try await Self.get(
                second.text("url") + path + "records/lookup" + tokens, body: lookup)
        }
        #expect(found.text.contains("NOT_FOUND"), "\(found.text)")
        // What the name was before binds nobody.
        let again = try await Self.get(
            second.text("url") + path + "records/modify" + tokens,
            body: save.replacing("\"words\"", with: "7"))
        #expect(again.text.contains(#""type":"INT64""#), "\(again.text)")
        #expect(try await second.stop() == 0)
    }

    @Test
    func `SIGHUP takes what reloads and reports what does not, and a bad file changes nothing`()
        async throws
    {
        let data = self.directory.path + "/e"
        func configuration(_ more: String) -> String {
            """
            {dataDirectory: '\(data)', development: true, client: {listen: ['127.0.0.1:0']},
             admin: {listen: 'unix:\(self.directory.path)/admin'}, \(more)}
            """
        }
        let path = try self.directory.write("a.json5", configuration(""))
        let node = try Program.start("stratus", ["serve", "--config", path])
        #expect(
            await node.waits { node.errors.contains(#""text":"administrators""#) }, "\(node.errors)"
        )
        func control(_ arguments: String...) async throws -> String {
            try await Program.run(
                "stratusctl",
                [
                    "--node", "unix:\(self.directory.path)/admin", "--token-file",
                    data + "/admin.token",
                ]
                    + arguments
            ).output
        }
        #expect(try await control("log-level", "show") == "info\n")
        _ = try self.directory.write(
            "a.json5", configuration("log: {level: 'debug'}, loopCount: 1"))
        node.signal(SIGHUP)
        #expect(await node.waits { node.errors.contains("configuration read again") })
        #expect(try await control("log-level", "show") == "debug\n")
        #expect(node.errors.contains(#""a changed key waits for a restart","key":"loopCount""#))

        _ = try self.directory.write("a.json5", configuration("log: {levle: 'error'}"))
        node.signal(SIGHUP)
        #expect(await node.waits { node.errors.contains("configuration not taken") })
        #expect(try await control("log-level", "show") == "debug\n")
        #expect(node.isRunning)
        node.signal(SIGINT)
        #expect(try await node.end().code == 0)
    }

    @Test func `a founder whose peers are not there yet is at no moment ready`() async throws {
        let certificates = self.directory.path + "/certificates"
        let made = try await Program.run(
            "stratus",
            ["cluster", "certificates", "--directory", certificates, "--nodes", "a"])
        #expect(made.code == 0, "\(made.errors)")
        // Nobody is at ports 1 and 2, and nobody asks at 3.
        let path = try self.directory.write(
            "founder.json5",
            """
            {dataDirectory: '\(self.directory.path)/founder', development: true,
             client: {listen: ['127.0.0.1:0']}, admin: {listen: 'unix:\(self.directory.path)/admin'},
             cluster: {
                name: 'a', peers: ['a@127.0.0.1:3', 'b@127.0.0.1:1', 'c@127.0.0.1:2'],
                listen: '127.0.0.1:0', partitionCount: 1, secretFile: '\(certificates)/secret',
                tls: {certificateFile: '\(certificates)/a.pem', keyFile: '\(certificates)/a.key',
                      authorityFile: '\(certificates)/authority.pem'}}}
            """)
        let node = try Program.start("stratus", ["serve", "--config", path])
        #expect(
            await node.waits { node.errors.contains(#""text":"administrators""#) }, "\(node.errors)"
        )
        let asked = try await Program.run(
            "stratusctl",
            [
                "--node", "unix:\(self.directory.path)/admin", "--token-file",
                self.directory.path + "/founder/admin.token", "status",
            ])
        #expect(asked.output.contains("the cluster is not formed yet"), "\(asked) \(node.errors)")
        node.signal(SIGTERM)
        #expect(try await node.end().code == 0)
    }

    @Test func `O-17 a port that is taken and data that is in use have their words and exit codes`()
        async throws
    {
        let dev = try await Dev(self.directory.path + "/f")
        let taken = dev.text("url").dropFirst("http://".count)
        let port = try await Program.run(
            "stratus", ["dev", "--listen", String(taken), "--data", self.directory.path + "/g"])
        #expect(port.code == ExitCode.system.rawValue)
        #expect(port.errors.contains("cannot listen on \(taken): the port is taken"))
        let data = try await Program.run(
            "stratus", ["dev", "--listen", "127.0.0.1:0", "--data", self.directory.path + "/f"])
        #expect(data.code == ExitCode.system.rawValue)
        #expect(data.errors.contains("in use by another process"))
        #expect(try await dev.stop() == 0)
    }

    @Test func `dev with --tls speaks HTTPS with a certificate of an authority that stays`()
        async throws
    {
        var authority = ""
        for _ in 0..<2 {
            let dev = try await Dev(self.directory.path + "/h", ["--tls"])
            #expect(dev.text("url").hasPrefix("https://127.0.0.1:"))
            let file = dev.text("authorityFile")
            let text = try String(contentsOfFile: file, encoding: .utf8)
            if !authority.isEmpty { #expect(text == authority) }
            authority = text
            let address = String(dev.text("url").dropFirst("https://".count))
            for name in ["localhost", "127.0.0.1"] {
                let check = name == "localhost" ? "-verify_hostname" : "-verify_ip"
                let ended = try await ChildProcess.run(
                    "/usr/bin/openssl",
                    [
                        "s_client", "-connect", address, "-CAfile", file, "-verify_return_error",
                        "-ign_eof", check, name,
                    ], input: .bytes(Array("GET /healthz HTTP/1.0\r\nhost: x\r\n\r\n".utf8)))
                #expect(ended.output.contains("alive"), "\(name): \(ended.errors)")
            }
            let mode = try FileManager.default.attributesOfItem(
                atPath: self.directory.path + "/h/tls/authority.key")
            #expect(mode[.posixPermissions] as? Int == 0o600, "X-30")
            #expect(try await dev.stop() == 0)
        }
    }

    @Test func `G-16 out of descriptors a node rests, and goes on when there are some again`()
        async throws
    {
        let path = Program.path("stratus")
        let running = try ChildProcess(
            "/bin/sh",
            [
                "-c", #"ulimit -n 64; exec "$0" "$@""#, path, "dev", "--json", "--listen",
                "127.0.0.1:0",
                "--data", self.directory.path + "/i",
            ])
        let line = try #require(await running.firstLine(), "\(running.errors)")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        let url = try #require(object?["url"] as? String)
        let first = try RawConnection(url)
        first.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        #expect(first.receive().hasSuffix("alive\n"), "it is accepted")
        var held = try (0..<150).map { _ in try RawConnection(url) }
        let process = "/proc/\(running.identifier)"
        func processorTicks() throws -> Int {
            let text = try String(contentsOfFile: process + "/stat", encoding: .utf8)
            let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
            return (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
        }
        // The accepted connections are served; the others wait in the kernel, and no thread spins
        // for them.
        let before = try processorTicks()
        try await Task.sleep(for: .seconds(1))
        #expect(try processorTicks() - before < 50, "a hundred are a second of one core")
        #expect(held.count == 150)
        // What is left is for files: a first save opens a partition.
        let open = try FileManager.default.contentsOfDirectory(atPath: process + "/fd").count
        #expect(32...56 ~= open, "\(open) of 64")
        let save = #"{"operations":[{"operationType":"create","record":{"recordType":"A"}}]}"#
        let route = "/database/1/iCloud.x/development/private/records/modify"
        first.send(
            "POST \(route)?ckAPIToken=\(object?["apiToken"] as? String ?? "")&ckWebAuthToken=a HTTP/1.1\r\n"
                + "host: x\r\nconnection: close\r\ncontent-length: \(save.utf8.count)\r\n\r\n"
                + save)
        let saved = first.receiveAll()
        #expect(saved.contains(#""recordChangeTag""#), "\(saved)")
        held = []
        let fresh = try RawConnection(url)
        fresh.send("GET /healthz HTTP/1.0\r\nhost: x\r\n\r\n")
        #expect(fresh.receiveAll().hasSuffix("alive\n"))
        running.signal(SIGTERM)
        #expect(try await running.end().code == 0)
    }

    @Test func `O-10 a node whose log finds no room serves on, and counts the lines`() async throws
    {
        let dev = try await Dev(
            ChildProcess(
                "/bin/sh",
                ["-c", #"exec "$0" "$@" 2>/dev/full"#, Program.path("stratus")]
                    + Dev.arguments(self.directory.path + "/log")))
        let path = "/database/1/iCloud.x/development/private/records/"
        let tokens = "?ckAPIToken=\(dev.text("apiToken"))&ckWebAuthToken=me"
        let operation =
            #"{"operationType":"forceUpdate","record":{"recordType":"Note","recordName":"n"}}"#
        for _ in 0..<3 {
            let saved = try await Self.get(
                dev.text("url") + path + "modify" + tokens,
                body: #"{"operations":[\#(operation)]}"#)
            #expect(saved.status == 200, "\(saved.text)")
        }
        let status = try await dev.control("status", "--json")
        let object = try JSONSerialization.jsonObject(with: Data(status.output.utf8))
        let lost = (object as? [String: Any])?["droppedLogLines"] as? Int
        #expect(try #require(lost, "\(status)") >= 3)
        #expect(try await dev.stop() == 0)
    }

    @Test func `dev without a directory leaves none behind`() async throws {
        let running = try Program.start("stratus", ["dev", "--json", "--listen", "127.0.0.1:0"])
        let line = try #require(await running.firstLine())
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        let path = try #require(object?["dataDirectory"] as? String)
        #expect(FileManager.default.fileExists(atPath: path))
        running.signal(SIGTERM)
        #expect(try await running.end().code == 0)
        #expect(!FileManager.default.fileExists(atPath: path))
    }
}

/// One HTTP exchange by Foundation, which is not ours.
enum Exchange {
    static func run(_ request: URLRequest) async throws -> (Data, HTTPURLResponse) {
        let (data, answer) = try await URLSession.shared.data(for: request)
        return (data, try #require(answer as? HTTPURLResponse))
    }
}
