import StratusCommandLine
import StratusHTTP
import StratusProcess

/// `stratusctl encryption-key`: the master keys, and what is wrapped under them.
struct EncryptionKeyCommands: AdminConversation {
    let invocation: Invocation
    let client: AdminClient
    let isJSON: Bool

    /// Slices that one command asks for: a hundred containers each.
    private static let sliceCountMax = 1_000
    /// How often one command waits until what was begun under a version has arrived.
    private static let settlingCountMax = 10

    /// The options that name a container.
    private static let ofContainer: [OptionDefinition] = [
        .value("container", .text("ID"), required: true, "The container"),
        .value(
            "environment", .choice(["development", "production"]), default: "development",
            "The environment"),
    ]

    static let definition = CommandDefinition(
        "encryption-key", "The keys that files and encrypted fields are sealed under",
        subcommands: [
            CommandDefinition(
                "list", "The master keys, and how many containers' keys each of them wraps",
                discussion: [
                    "Speaks of the node that is asked. A master key that wraps nothing can be "
                        + "retired: put its version into keys.retiredMasters, and remove its file.",
                    "CHECK is a value that says which key it is and nothing of the key. It must be "
                        + "the same on every node.",
                ]),
            CommandDefinition(
                "rotate", "Wrap the keys of all containers under the master key that seals",
                discussion: [
                    "Use this once every node has been started with the key in keys.masterFiles, "
                        + "and with its version as keys.sealingMaster. Clients notice nothing. If it "
                        + "is interrupted, run it again.",
                    "A key that cannot be opened is named and left as it is. Exit code 1 if there "
                        + "is one.",
                ]),
            CommandDefinition(
                "rotate-databases",
                "Give a container's databases newer keys, and seal fields and files anew",
                discussion: [
                    "Clients go on meanwhile. A database's old keys are destroyed once no record "
                        + "and no file needs them. They stay where a file is lost: 'assets lost' "
                        + "names it. Files are read and written at assets.repairRate.",
                    "If it is interrupted, run it again: it goes on where it was. Exit code 1 if a "
                        + "database could not be rotated to the end. With --json, the answer is "
                        + "lines.",
                ],
                options: Self.ofContainer,
                examples: [
                    .init(
                        "stratusctl encryption-key rotate-databases --container "
                            + "iCloud.org.example.app --environment production",
                        "Once a year")
                ]),
            CommandDefinition(
                "rotate-container",
                "Give a container a newer key, and wrap the keys of its databases anew",
                discussion: [
                    "Clients go on meanwhile. It waits 15 s until no node can wrap anything under "
                        + "the older key, looks through all partitions, and destroys the older key.",
                    "If it is interrupted, run it again: it goes on with the key that it made. Exit "
                        + "code 1 if a key of a database does not open: the older key stays then. "
                        + "With --json, the answer is lines.",
                ],
                options: Self.ofContainer,
                examples: [
                    .init(
                        "stratusctl encryption-key rotate-container --container "
                            + "iCloud.org.example.app --environment production",
                        "Once a year")
                ]),
            CommandDefinition(
                "check", "Open the key of every container, and compare the master keys",
                discussion: [
                    "Exit code 1 if the node that is asked cannot open one of them, or was given "
                        + "another master key than the other nodes."
                ]),
            CommandDefinition(
                "forget", "Let another key come under the version of a master key",
                discussion: [
                    "Use this where the first node was given a wrong file. Refused while the "
                        + "version wraps a container's key, or seals. Takes 15 s: until then a node "
                        + "may be wrapping a key under it. The forgotten key never comes under this "
                        + "version again, whichever node still has its file.",
                    "Every node that has noted the key must then be started once with the version "
                        + "in keys.retiredMasters and not in keys.masterFiles.",
                ],
                positionals: [
                    PositionalDefinition(
                        "VERSION", .integer(1...1_000_000), "its number in keys.masterFiles")
                ],
                examples: [
                    .init(
                        "stratusctl encryption-key forget 1",
                        "After a wrong file was given as version 1")
                ]),
        ])

    static func serves(_ path: [String]) -> Bool { path.first == "encryption-key" }

    func run() async throws(AdminClient.Failure) -> ExitCode {
        switch self.invocation.path.last {
        case "rotate": try await self.rotate()
        case "rotate-databases": try await self.rotateDatabases()
        case "rotate-container": try await self.rotateContainer()
        case "forget": try await self.forget()
        default: try await self.list()
        }
    }

    private struct Master {
        var version: Int64
        var state: String
        var count: Int64
        var check: String
        var noted: String
        var differs: Bool
    }

    private struct Failing {
        var container: String
        var environment: String
        var reason: String

        init(_ one: JSONValue) {
            self.container = one["container"]?.string ?? ""
            self.environment = one["environment"]?.string ?? ""
            self.reason = one["reason"]?.string ?? ""
        }

        func write(to json: inout JSONWriter) {
            json.object {
                $0.member("container", self.container)
                $0.member("environment", self.environment)
                $0.member("reason", self.reason)
            }
        }
    }

    // MARK: Looking

    private func list() async throws(AdminClient.Failure) -> ExitCode {
        var masters: [Master] = []
        var failing: [Failing] = []
        var without: Int64 = 0
        try await self.slices { (place) throws(AdminClient.Failure) in
            let query = place.map { "?after=" + PercentCoding.encode($0) } ?? ""
            return try await self.ask("GET", "/v1/encryption-keys" + query)
        } _: { root in
            for master in ClusterFacts.array(root, "masters") {
                guard let version = master["version"]?.int64 else { continue }
                let count = master["containers"]?.int64 ?? 0
                if let known = masters.firstIndex(where: { $0.version == version }) {
                    masters[known].count += count
                } else {
                    masters.append(
                        Master(
                            version: version, state: master["state"]?.string ?? "", count: count,
                            check: master["check"]?.string ?? "",
                            noted: master["noted"]?.string ?? "",
                            differs: master["differs"]?.bool ?? false))
                }
            }
            failing += ClusterFacts.array(root, "failing").map { Failing($0) }
            without += root["withoutKey"]?.int64 ?? 0
        }
        masters.sort { $0.version < $1.version }
        let isCheck = self.invocation.path.last == "check"
        let shown = self.show(
            self.isJSON
                ? Self.json(masters, failing, without)
                : Self.text(masters, failing, without, isCheck: isCheck))
        guard shown == .success, isCheck else { return shown }
        return failing.isEmpty && !masters.contains(where: \.differs) ? .success : .refused
    }

    private static func json(_ masters: [Master], _ failing: [Failing], _ without: Int64) -> String
    {
        var json = JSONWriter()
        json.object {
            $0.member("masters", objects: masters) { json, master in
                json.member("version", master.version)
                json.member("state", master.state)
                json.member("containers", master.count)
                json.member("check", master.check)
                json.member("differs", master.differs)
            }
            $0.member("withoutKey", without)
            $0.key("failing")
            $0.array { array in for one in failing { one.write(to: &array) } }
        }
        return String(decoding: json.finish(), as: UTF8.self) + "\n"
    }

    private static func text(
        _ masters: [Master], _ failing: [Failing], _ without: Int64, isCheck: Bool
    ) -> String {
        var text = ""
        if !isCheck {
            var table = TextTable([
                .init("MASTER", alignsRight: true), .init("STATE"),
                .init("CONTAINERS", alignsRight: true), .init("CHECK"),
            ])
            for master in masters {
                table.append([
                    "\(master.version)", master.state, "\(master.count)", master.check,
                ])
            }
            text += table.write()
            if without > 0 { text += "containers without a key yet: \(without)\n" }
        }
        for master in masters where master.differs {
            text +=
                "master key \(master.version) of this node has the check value \(master.check), "
                + "and the cluster has noted \(master.noted): the nodes were given different "
                + "files\n"
        }
        text += Self.text(failing)
        if isCheck, failing.isEmpty {
            let count = masters.reduce(0) { $0 + $1.count }
            text += "the keys of \(count) containers open\n"
        }
        return text
    }

    private static func text(_ failing: [Failing]) -> String {
        failing.reduce("") { text, one in
            text + "cannot open the key of \(one.container) (\(one.environment)): \(one.reason)\n"
        }
    }

    // MARK: Changing

    private func rotate() async throws(AdminClient.Failure) -> ExitCode {
        var wrapped: Int64 = 0
        var version: Int64 = 0
        var failing: [Failing] = []
        try await self.slices { (place) throws(AdminClient.Failure) in
            var json = JSONWriter()
            json.object { if let place { $0.member("after", place) } }
            return try await self.ask("POST", "/v1/encryption-keys/rotation", body: json.finish())
        } _: { root in
            wrapped += root["wrapped"]?.int64 ?? 0
            version = root["version"]?.int64 ?? version
            failing += ClusterFacts.array(root, "failing").map { Failing($0) }
        }
        let text: String
        if self.isJSON {
            var json = JSONWriter()
            json.object {
                $0.member("version", version)
                $0.member("wrapped", wrapped)
                $0.key("failing")
                $0.array { array in for one in failing { one.write(to: &array) } }
            }
            text = String(decoding: json.finish(), as: UTF8.self) + "\n"
        } else {
            text =
                Self.text(failing)
                + "\(wrapped) containers' keys are now wrapped under master \(version)\n"
        }
        let shown = self.show(text)
        return shown == .success && !failing.isEmpty ? .refused : shown
    }

    /// Runs a rotation that answers in lines, and shows what it says of databases that fail.
    ///
    /// - Returns: its last line; nil where nothing more can be shown.
    private func rotation(_ path: String, failing: (_ database: String) -> String)
        async throws(AdminClient.Failure) -> JSONValue?
    {
        var json = JSONWriter()
        json.object {
            $0.member("container", self.invocation.value("container"))
            $0.member("environment", self.invocation.value("environment"))
        }
        var (isWritten, isShown) = (true, false)
        var last: JSONValue?
        try await self.client.lines("POST", path, body: json.finish()) { line in
            guard let root = try? JSONDocument(parsing: line).root else { return true }
            if self.isJSON {
                isWritten = self.show(String(decoding: line, as: UTF8.self) + "\n") == .success
            }
            if let reason = root["failing"]?.string {
                let owner = root["owner"]?.string ?? ""
                if !self.isJSON {
                    let database = owner.isEmpty ? "public database" : "database of \(owner)"
                    isWritten = self.show("\(failing(database)): \(reason)\n") == .success
                }
                return isWritten
            }
            if !self.isJSON, !isShown, let time = root["resumed"]?.string {
                isShown = true
                isWritten =
                    self.show("going on with the rotation that began at \(time)\n") == .success
            }
            last = root
            return isWritten
        }
        guard isWritten else { return nil }
        guard let last, last["done"]?.bool == true else {
            let stopped = last?["stopped"]?.string
            throw AdminClient.Failure(
                stopped == nil ? .inputOutput : .temporary,
                "the rotation was interrupted\(stopped.map { ": " + $0 } ?? ""). Run it again: it "
                    + "goes on where it was")
        }
        return last
    }

    private func rotateDatabases() async throws(AdminClient.Failure) -> ExitCode {
        let last = try await self.rotation("/v1/encryption-keys/databases/rotation") {
            "the \($0) has its old keys still"
        }
        guard let last else { return .inputOutput }
        let failures = last["failures"]?.int64 ?? 0
        if !self.isJSON {
            let names = ["databases", "records", "files", "keptFiles", "olderKeys"]
            let count = names.map { last[$0]?.int64 ?? 0 }
            var text = "\(count[0]) databases have newer keys, and \(count[1]) records and "
            text += "\(count[2]) files were sealed anew\n"
            if count[3] > 0 {
                text += "\(count[4]) older keys stay for \(count[3]) files that are lost\n"
            }
            if failures > 0 { text += "\(failures) databases have their old keys still\n" }
            guard self.show(text) == .success else { return .inputOutput }
        }
        return failures == 0 ? .success : .refused
    }

    private func rotateContainer() async throws(AdminClient.Failure) -> ExitCode {
        let last = try await self.rotation("/v1/encryption-keys/containers/rotation") {
            "the container's older key stays for the \($0)"
        }
        guard let last else { return .inputOutput }
        let failures = last["failures"]?.int64 ?? 0
        if !self.isJSON {
            var text: String
            if let version = last["version"]?.int64 {
                text = "version \(version) of the container's key seals, and "
                text += "\(last["keys"]?.int64 ?? 0) keys were wrapped anew\n"
                text +=
                    last["retired"]?.bool == true
                    ? "the older version is destroyed\n" : "the older version stays\n"
            } else {
                text = "the container has no key yet\n"
            }
            guard self.show(text) == .success else { return .inputOutput }
        }
        return failures == 0 ? .success : .refused
    }

    private func forget() async throws(AdminClient.Failure) -> ExitCode {
        let version = Int64(self.invocation.integer("VERSION") ?? 0)
        var isForgotten = false
        try await self.slices { (place) throws(AdminClient.Failure) in
            var json = JSONWriter()
            json.object {
                $0.member("version", version)
                if let place { $0.member("after", place) }
            }
            let body = json.finish()
            for _ in 0..<Self.settlingCountMax {
                let answer = try await self.ask(
                    "POST", "/v1/encryption-keys/forgetting", body: body)
                guard let rest = try self.document(answer)["waitsMilliseconds"]?.int64 else {
                    return answer
                }
                try? await Task.sleep(for: .milliseconds(min(max(rest, 1), 60_000)))
            }
            throw AdminClient.Failure(.temporary, "the version does not settle: try again later")
        } _: { root in
            isForgotten = root["forgotten"]?.bool ?? isForgotten
        }
        if self.isJSON {
            var json = JSONWriter()
            json.object { $0.member("forgotten", isForgotten) }
            return self.show(String(decoding: json.finish(), as: UTF8.self) + "\n")
        }
        return self.show(
            isForgotten
                ? "master key \(version) is forgotten\n"
                : "no node has noted a master key \(version)\n")
    }

    /// Asks for one slice of the containers after the other: `next` in an answer is what the next
    /// one begins behind.
    private func slices(
        _ ask: (String?) async throws(AdminClient.Failure) -> AdminClient.Answer,
        _ take: (JSONValue) -> Void
    ) async throws(AdminClient.Failure) {
        var place: String?
        for _ in 0..<Self.sliceCountMax {
            let root = try self.document(try await ask(place))
            take(root)
            guard let next = root["next"]?.string else { return }
            place = next
        }
    }
}
