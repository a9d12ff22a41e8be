import Glibc
import StratusCommandLine
import StratusConfiguration
import StratusHTTP
import StratusIdentity
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratus serve` and `stratus dev`: a node in the foreground, until a signal ends it.
enum NodeCommands {
    static func serve(_ invocation: Invocation) -> ExitCode {
        let path = invocation.value("config")
        return Self.run(path: path, overrides: []) { node in
            for url in node.clientURLs { node.log.info("clients", ["url": .text(url)]) }
            node.log.info(
                "administrators",
                ["url": .text(node.adminURL), "tokenFile": .text(node.adminTokenFile)])
        }
    }

    static func dev(_ invocation: Invocation) -> ExitCode {
        let container = invocation.value("container")
        guard ContainerReference.isName(container) else {
            Terminal.write(
                "stratus: \(ContainerReference.refusal(of: container))\n", to: Terminal.errors)
            return .usage
        }
        let directory: String
        let isTemporary = invocation["data"] == nil
        if let given = invocation["data"] {
            directory = given.hasPrefix("/") ? given : Self.currentDirectory + "/" + given
        } else {
            guard let made = Self.makeTemporaryDirectory() else {
                Terminal.write("stratus: cannot make a temporary directory\n", to: Terminal.errors)
                return .cannotCreate
            }
            directory = made
        }
        defer { if isTemporary { SmallFile.removeTree(directory) } }
        let isSpread = invocation.value("placement") == "zone"
        if !isSpread, invocation["zone-buckets"] != nil {
            Terminal.write(
                "stratus: '--zone-buckets' is for '--placement zone' only\n", to: Terminal.errors)
            return .usage
        }
        let zoneBuckets =
            isSpread
            ? invocation["zone-buckets"].flatMap { Int($0) }
                ?? ContainerLayout.zoneBucketCountStandard : 1
        var overrides: [ConfigurationLoading.Override] = [
            ("dataDirectory", .text(directory), "--data"),
            ("client.listen", .list([.text(invocation.value("listen"))]), "--listen"),
            ("admin.listen", .text(invocation.value("admin")), "--admin"),
            ("development", .bool(true), "stratus dev"),
            ("coreDumps", .bool(true), "stratus dev"),
            ("developmentSchema", .text(invocation.value("schema")), "--schema"),
            ("developmentUsers", .text(invocation.value("users")), "--users"),
            ("developmentZoneBuckets", .integer(zoneBuckets), "--placement"),
        ]
        var authorityFile: String?
        if invocation.flag("tls") {
            var host = "localhost"
            if case .tcp(let given, _)? = invocation.address("listen") { host = given }
            do throws(NodeFailure) {
                let certificates = try DevelopmentCertificates(
                    in: directory + "/tls", host: host)
                authorityFile = certificates.authorityFile
                overrides += [
                    ("client.tls.certificateFile", .text(certificates.certificateFile), "--tls"),
                    ("client.tls.keyFile", .text(certificates.keyFile), "--tls"),
                ]
            } catch {
                Terminal.write("stratus: \(error)\n", to: Terminal.errors)
                return error.code
            }
        }
        let trusted = authorityFile
        return Self.run(path: nil, overrides: overrides) { node in
            // What is printed is there, for administrators too.
            Blocking.wait {
                await node.admit(
                    ContainerReference(container: container, environment: .development))
            }
            let welcome = DevelopmentWelcome(
                url: node.clientURLs[0], adminURL: node.adminURL, container: container,
                apiToken: Self.apiToken(directory), adminTokenFile: node.adminTokenFile,
                dataDirectory: directory, isTemporary: isTemporary, authorityFile: trusted)
            Terminal.write(invocation.flag("json") ? welcome.json() : welcome.text())
        }
    }

    /// Starts a node, says that it is ready, and stays until SIGTERM or SIGINT.
    private static func run(
        path: String?, overrides: [ConfigurationLoading.Override],
        ready: @escaping @Sendable (Node) -> Void
    ) -> ExitCode {
        // Before the first thread: all of them inherit it.
        ProcessSignals.block()
        ProcessFacts.raiseDescriptorLimit()
        ProcessMemory.giveBack()
        let result: ConfigurationReader.Result
        let settings: ConfigurationSettings
        do throws(ConfigurationLoading.Refusal) {
            result = try ConfigurationLoading.load(path, overrides: overrides)
            settings = try result.sound()
        } catch { return ConfigurationCommands.fail(error) }
        for problem in NodeVersions.problems {
            Terminal.write("stratus: \(problem)\n", to: Terminal.errors)
        }
        guard NodeVersions.problems.isEmpty else { return .system }

        let log = Self.openLog(settings)
        // Before a secret is read.
        if !settings.bool("coreDumps"), !ProcessMemory.refuseCoreDumps() {
            log.warning("a crash may leave a core dump: the system refused to turn core dumps off")
        }
        for unknown in result.unknownVariables {
            log.warning("ignored a variable that names no key", ["variable": .describing(unknown)])
        }
        if settings.bool("development") {
            for address in settings.addresses("client.listen")
            where !ConfigurationRules.isLocal(address) {
                log.warning(
                    "development: whoever reaches this address can read and change everything",
                    ["address": .describing(address)])
            }
        }
        let plan = NodePlan(settings: settings, configurationPath: path, overrides: overrides)
        let started: Result<Node, NodeFailure> = Blocking.wait {
            do throws(NodeFailure) { return .success(try await Node(plan, log: log)) } catch {
                return .failure(error)
            }
        }
        let node: Node
        switch started {
        case .success(let running): node = running
        case .failure(let failure):
            log.flush()
            Terminal.write("stratus: \(failure)\n", to: Terminal.errors)
            return failure.code
        }
        ready(node)
        return Self.serveSignals(node, deadline: settings.duration("stop.deadline"))
    }

    /// The main thread's work: takes the signals one after the other.
    private static func serveSignals(_ node: Node, deadline: Duration) -> ExitCode {
        while true {
            switch ProcessSignals.next() {
            case .reload: node.reload()
            case .stop(let number):
                node.log.info("stopping", ["signal": .count(Int(number))])
                Self.leaveAtNextStopSignal()
                Self.leave(after: deadline + Self.stopGrace)
                Blocking.wait { await node.stop(deadline: deadline) }
                return .success
            }
        }
    }

    /// Within this time a second stop signal is the first one once more: a terminal and a
    /// supervisor often send one each.
    private static let oneStop = Duration.seconds(1)

    /// Somebody who asks again later does not want to wait. What is acknowledged is on disk
    /// already.
    private static func leaveAtNextStopSignal() {
        let first = RealClock.now
        OwnedThread.start(named: "signals") {
            while true {
                guard case .stop = ProcessSignals.next(), RealClock.now >= first + Self.oneStop
                else { continue }
                Terminal.write("stratus: stopped at once\n", to: Terminal.errors)
                _exit(ExitCode.interrupted.rawValue)
            }
        }
    }

    /// For all that a stop does when no request is in flight any more: seconds, on a disk that
    /// answers.
    private static let stopGrace = Duration.seconds(15)

    /// A stop has an end, whatever hangs. What is acknowledged is on disk already.
    private static func leave(after time: Duration) {
        OwnedThread.start(named: "stop") {
            let end = RealClock.now + time
            while RealClock.now < end { sleep(1) }
            Terminal.write("stratus: did not stop in time, ended at once\n", to: Terminal.errors)
            _exit(ExitCode.temporary.rawValue)
        }
    }

    private static func openLog(_ settings: ConfigurationSettings) -> Log {
        let level = LogLevel(name: settings.text("log.level") ?? "") ?? .info
        let format: LogFormat? =
            switch settings.text("log.format") {
            case "json": .json
            case "terminal": .terminal(colour: false)
            default: nil
            }
        return Log(level: level, descriptor: Terminal.errors, format: format)
    }

    // MARK: stratus dev

    private static var currentDirectory: String {
        guard let path = getcwd(nil, 0) else { return "." }
        defer { free(path) }
        return String(cString: path)
    }

    private static func makeTemporaryDirectory() -> String? {
        let base = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array((base + "/stratus-dev-XXXXXX").utf8CString)
        return mkdtemp(&template) == nil
            ? nil
            : String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// An API token for whoever starts here: drawn once for a data directory, and again if the file
    /// holds none. Any other well-formed one works as well.
    private static func apiToken(_ directory: String) -> String {
        let path = directory + "/api.token"
        let bytes = (try? SmallFile.read(path, limit: .kibibytes(1))) ?? []
        let kept = String(decoding: bytes.prefix { $0 > 0x20 }, as: UTF8.self)
        if TokenCredentials.isWellFormed(apiToken: kept) { return kept }
        guard let world = try? RealWorld(dataDirectory: directory) else { return "" }
        let drawn = AdminToken.hexadecimal(Node.draw(world))
        try? SmallFile.replaceSecret(path, drawn + [0x0A])
        return String(decoding: drawn, as: UTF8.self)
    }
}

/// The text that `stratus dev` prints once it is ready.
struct DevelopmentWelcome: Sendable {
    var url: String
    var adminURL: String
    var container: String
    var apiToken: String
    var adminTokenFile: String
    var dataDirectory: String
    var isTemporary: Bool
    /// The authority that clients have to trust, with `--tls`.
    var authorityFile: String?

    /// One line for a script.
    func json() -> String {
        var json = JSONWriter()
        json.beginObject()
        json.member("url", self.url)
        json.member("container", self.container)
        json.member("environment", "development")
        json.member("apiToken", self.apiToken)
        json.member("webAuthToken", DevelopmentAuthenticator.userToken)
        json.member("otherWebAuthToken", DevelopmentAuthenticator.otherUserToken)
        json.member("adminURL", self.adminURL)
        json.member("adminTokenFile", self.adminTokenFile)
        json.member("dataDirectory", self.dataDirectory)
        if let authorityFile { json.member("authorityFile", authorityFile) }
        json.member("pid", Int(getpid()))
        json.endObject()
        return String(decoding: json.finish(), as: UTF8.self) + "\n"
    }

    /// For a person, with a first request to paste.
    func text() -> String {
        let base = "\(self.url)/database/1/\(self.container)/development/private"
        let tokens =
            "ckAPIToken=\(self.apiToken)&ckWebAuthToken=\(DevelopmentAuthenticator.userToken)"
        let kept = self.isTemporary ? "removed at the end; --data DIR keeps it" : "kept"
        return """
            Stratus is ready at \(self.url)

              container    \(self.container), environment development (any other container works too)
              API token    \(self.apiToken)
              users        web-auth tokens \(DevelopmentAuthenticator.userToken) and \(DevelopmentAuthenticator.otherUserToken)
              data         \(self.dataDirectory) (\(kept))
              admin        \(self.adminURL), token in \(self.adminTokenFile)

            A first record:

              curl -s\(self.authorityFile.map { " --cacert \($0)" } ?? "") '\(base)/records/modify?\(tokens)' -d '{
                "operations": [{"operationType": "forceUpdate", "record": {"recordType": "Note",
                  "recordName": "first", "fields": {"text": {"value": "Hello"}}}}]}'

            Ctrl-C stops it.

            """
    }
}
