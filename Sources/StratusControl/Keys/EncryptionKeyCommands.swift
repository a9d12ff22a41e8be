import StratusAdminModel
import StratusCommandLine
import StratusHTTP
import StratusModel
import StratusProcess
import StratusRuntime

/// `stratusctl encryption-key`: the master keys, and what is wrapped under them.
struct EncryptionKeyCommands: AdminConversation {
    let context: ControlContext

    init(_ context: ControlContext) { self.context = context }

    /// Slices that one command asks for: a hundred containers each.
    private static let sliceCountMax = 1_000
    /// How often one command waits until what was begun under a version has arrived.
    private static let settlingCountMax = 10

    static let command = ControlCommand(
        "encryption-key", "The keys that files and encrypted fields are sealed under",
        subcommands: [
            ControlCommand(
                "list", "The master keys, and how many containers' keys each of them wraps",
                discussion: [
                    "Speaks of the node that is asked. A master key that wraps nothing can be "
                        + "retired: put its version into keys.retiredMasters, and remove its file.",
                    "CHECK is a value that says which key it is and nothing of the key. It must be "
                        + "the same on every node.",
                ],
                examples: [
                    .init("stratusctl encryption-key list", "Before a master key is retired")
                ],
                run: EncryptionKeyCommands.list),
            ControlCommand(
                "rotate", "Wrap the keys of all containers under the master key that seals",
                discussion: [
                    "Use this once every node has been started with the key in keys.masterFiles, "
                        + "and with its version as keys.sealingMaster. Clients notice nothing. If it "
                        + "is interrupted, run it again.",
                    "A key that cannot be opened is named and left as it is. Exit code 1 if there "
                        + "is one.",
                ],
                examples: [
                    .init(
                        "stratusctl encryption-key rotate", "Once every node has the new master key"
                    )
                ],
                run: EncryptionKeyCommands.rotate),
            ControlCommand(
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
                options: PlaceOptions.all,
                examples: [
                    .init(
                        "stratusctl encryption-key rotate-databases --container "
                            + "iCloud.org.example.app --environment production",
                        "Once a year")
                ],
                run: EncryptionKeyCommands.rotateDatabases),
            ControlCommand(
                "rotate-container",
                "Give a container a newer key, and wrap the keys of its databases anew",
                discussion: [
                    "Clients go on meanwhile. It waits 15 s until no node can wrap anything under "
                        + "the older key, looks through all partitions, and destroys the older key.",
                    "If it is interrupted, run it again: it goes on with the key that it made. Exit "
                        + "code 1 if a key of a database does not open: the older key stays then. "
                        + "With --json, the answer is lines.",
                ],
                options: PlaceOptions.all,
                examples: [
                    .init(
                        "stratusctl encryption-key rotate-container --container "
                            + "iCloud.org.example.app --environment production",
                        "Once a year")
                ],
                run: EncryptionKeyCommands.rotateContainer),
            ControlCommand(
                "check", "Open the key of every container, and compare the master keys",
                discussion: [
                    "Exit code 1 if the node that is asked cannot open one of them, or was given "
                        + "another master key than the other nodes."
                ],
                examples: [
                    .init("stratusctl encryption-key check", "After a restart with other key files")
                ],
                run: EncryptionKeyCommands.check),
            ControlCommand(
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
                ],
                run: EncryptionKeyCommands.forget),
        ])

    // MARK: Looking

    func list() async throws(AdminClient.Failure) -> ExitCode {
        let summary = try await self.masters()
        return self.show(summary, Self.table(summary) + Self.troubles(summary))
    }

    func check() async throws(AdminClient.Failure) -> ExitCode {
        let summary = try await self.masters()
        var text = Self.troubles(summary)
        if summary.failing.isEmpty {
            text +=
                "the keys of \(summary.masters.reduce(0) { $0 + $1.containers }) containers open\n"
        }
        let shown = self.show(summary, text)
        guard shown == .success else { return shown }
        let isSound = summary.failing.isEmpty && !summary.masters.contains(where: \.differs)
        return isSound ? .success : .refused
    }

    private func masters() async throws(AdminClient.Failure) -> MasterSummary {
        var summary = MasterSummary()
        try await self.slices { (place) throws(AdminClient.Failure) in
            let query = place.map { "?after=" + PercentCoding.encode($0) } ?? ""
            let slice: MasterKeysAnswer = try await self.ask("GET", "/v1/encryption-keys" + query)
                .read()
            for master in slice.masters {
                if let known = summary.masters.firstIndex(where: { $0.version == master.version }) {
                    summary.masters[known].containers += master.containers
                } else {
                    summary.masters.append(MasterRow(master))
                }
            }
            summary.failing += slice.failing
            summary.withoutKey += slice.withoutKey
            return slice.next
        }
        summary.masters.sort { $0.version < $1.version }
        return summary
    }

    private static func table(_ summary: MasterSummary) -> String {
        let without = summary.withoutKey
        return TextTable.text(summary.masters)
            + (without > 0 ? "containers without a key yet: \(without)\n" : "")
    }

    private static func troubles(_ summary: MasterSummary) -> String {
        var text = ""
        for master in summary.masters where master.differs {
            text +=
                "master key \(master.version) of this node has the check value \(master.check), "
                + "and the cluster has noted \(master.noted): the nodes were given different "
                + "files\n"
        }
        return text + Self.text(summary.failing)
    }

    private static func text(_ failing: [FailingKey]) -> String {
        failing.reduce("") { text, one in
            text + "cannot open the key of \(one.container) (\(one.environment)): \(one.reason)\n"
        }
    }

    // MARK: Changing

    func rotate() async throws(AdminClient.Failure) -> ExitCode {
        var all = MasterRotationAnswer()
        try await self.slices { (place) throws(AdminClient.Failure) in
            let slice: MasterRotationAnswer = try await self.ask(
                "POST", "/v1/encryption-keys/rotation", SliceBody { $0.after = place }
            ).read()
            all.wrapped += slice.wrapped
            all.version = slice.version
            all.failing += slice.failing
            return slice.next
        }
        let shown = self.show(
            all,
            Self.text(all.failing)
                + "\(all.wrapped) containers' keys are now wrapped under master \(all.version)\n")
        return shown == .success && !all.failing.isEmpty ? .refused : shown
    }

    /// Runs a rotation that answers in lines, and shows what it says of databases that fail.
    ///
    /// - Returns: its last counts; nil where nothing more can be shown.
    private func rotation<Counts: NamedMembers>(
        _ path: String, resumed: (Counts) -> String?, failing: (_ database: String) -> String
    ) async throws(AdminClient.Failure) -> Counts? {
        let body = PlaceBody {
            $0.container = self.invocation.value("container")
            $0.environment = self.invocation.value("environment")
        }
        var (isWritten, isShown) = (true, false)
        var last: RotationLine<Counts>?
        try await self.client.lines("POST", path, body: body.json) { bytes in
            guard let line = try? RotationLine<Counts>(reading: bytes),
                let trouble = try? FailingDatabaseLine(reading: bytes)
            else { return true }
            if self.isJSON {
                let line = self.context.stamp(String(decoding: bytes, as: UTF8.self))
                isWritten = self.show(line + "\n") == .success
            }
            if let reason = trouble.failing {
                let owner = trouble.owner ?? ""
                if !self.isJSON {
                    let database = owner.isEmpty ? "public database" : "database of \(owner)"
                    isWritten = self.show("\(failing(database)): \(reason)\n") == .success
                }
                return isWritten
            }
            if !self.isJSON, !isShown, let time = resumed(line.counts) {
                isShown = true
                isWritten =
                    self.show("going on with the rotation that began at \(time)\n") == .success
            }
            last = line
            return isWritten
        }
        guard isWritten else { return nil }
        guard let last, last.isDone else {
            let stopped = last?.stopped
            throw Failure(
                stopped == nil ? .inputOutput : .temporary,
                "the rotation was interrupted\(stopped.map { ": " + $0 } ?? ""). Run it again: it "
                    + "goes on where it was")
        }
        return last.counts
    }

    func rotateDatabases() async throws(AdminClient.Failure) -> ExitCode {
        let last: DatabaseRotationCounts? = try await self.rotation(
            "/v1/encryption-keys/databases/rotation", resumed: \.resumed
        ) { "the \($0) has its old keys still" }
        guard let last else { return .inputOutput }
        if !self.isJSON {
            var text =
                "\(last.databases) databases have newer keys, and \(last.records) records and "
            text += "\(last.files) files were sealed anew\n"
            if last.keptFiles > 0 {
                text +=
                    "\(last.olderKeys) older keys stay for \(last.keptFiles) files that are lost\n"
            }
            if last.failures > 0 {
                text += "\(last.failures) databases have their old keys still\n"
            }
            guard self.show(text) == .success else { return .inputOutput }
        }
        return last.failures == 0 ? .success : .refused
    }

    func rotateContainer() async throws(AdminClient.Failure) -> ExitCode {
        let last: ContainerRotationCounts? = try await self.rotation(
            "/v1/encryption-keys/containers/rotation", resumed: \.resumed
        ) { "the container's older key stays for the \($0)" }
        guard let last else { return .inputOutput }
        if !self.isJSON {
            var text = "the container has no key yet\n"
            if let version = last.version {
                text = "version \(version) of the container's key seals, and "
                text += "\(last.keys) keys were wrapped anew\n"
                text +=
                    last.isRetired
                    ? "the older version is destroyed\n" : "the older version stays\n"
            }
            guard self.show(text) == .success else { return .inputOutput }
        }
        return last.failures == 0 ? .success : .refused
    }

    func forget() async throws(AdminClient.Failure) -> ExitCode {
        let version = Int64(self.invocation.integer("VERSION") ?? 0)
        var isForgotten = false
        try await self.slices { (place) throws(AdminClient.Failure) in
            let body = SliceBody {
                $0.version = version
                $0.after = place
            }
            for _ in 0..<Self.settlingCountMax {
                let answer: ForgettingAnswer = try await self.ask(
                    "POST", "/v1/encryption-keys/forgetting", body
                ).read()
                guard let rest = answer.waitsMilliseconds else {
                    isForgotten = answer.isForgotten ?? isForgotten
                    return answer.next
                }
                try? await Task.sleep(for: .milliseconds(min(max(rest, 1), 60_000)))
            }
            throw Failure(.temporary, "the version does not settle: try again later")
        }
        return self.show(
            ForgottenAnswer { $0.isForgotten = isForgotten },
            isForgotten
                ? "master key \(version) is forgotten\n"
                : "no node has noted a master key \(version)\n")
    }

    /// Asks for one slice of the containers after the other.
    ///
    /// - Parameter ask: is given what the slice begins behind; returns what the next one does.
    private func slices(
        _ ask: (String?) async throws(AdminClient.Failure) -> String?
    ) async throws(AdminClient.Failure) {
        var place: String?
        for _ in 0..<Self.sliceCountMax {
            guard let next = try await ask(place) else { return }
            place = next
        }
    }
}
